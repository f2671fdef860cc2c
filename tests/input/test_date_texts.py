"""Text that is dates, in memory, in batches and in calibrators."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import varcal as vc
from varcal._input.date_texts import with_dates
from varcal._input.variables import Variable
from varcal._sums import sources
from varcal.exceptions import InputError

DAYS = pd.date_range("2023-11-20", periods=60, freq="D")


def read(texts):
    return with_dates(Variable.of(texts, "day"))


@pytest.mark.parametrize(
    ("written", "zone", "form"),
    [
        ("%Y-%m-%d", "", "year-month-day"),
        ("%Y/%m/%d", "", "year-month-day"),
        ("%Y-%m-%dT%H:%M:%S", "", "year-month-day"),
        ("%Y-%m-%d %H:%M", "", "year-month-day"),
        ("%Y-%m-%dT%H:%M:%S.%fZ", "UTC", "year-month-day"),
        ("%Y-%m-%d %H:%M:%S+01:00", "+01:00", "year-month-day"),
        ("%Y-%m-%d %H:%M:%S-0330", "-03:30", "year-month-day"),
        ("%d.%m.%Y", "", "day.month.year"),
        ("%d/%m/%Y", "", "day/month/year"),
        ("%m/%d/%Y %H:%M", "", "month/day/year"),
        ("%d-%m-%Y", "", "day/month/year"),
        ("%d %B %Y", "", "day month year"),
        ("%b %d, %Y", "", "month day year"),
    ],
)
def test_ways_of_writing_agree_with_pandas(written, zone, form):
    texts = [day.strftime(written) for day in DAYS]
    found = read(texts)
    assert (found.kind, found.zone, found.date_format) == ("datetime", zone, form)
    stamps = pd.to_datetime(texts, format=written.replace("+01:00", "%z").replace("-0330", "%z"))
    naive = stamps.tz_convert("UTC").tz_localize(None) if stamps.tz is not None else stamps
    np.testing.assert_array_equal(found.values, naive.to_numpy("M8[s]").astype(np.int64))


@pytest.mark.parametrize(
    "texts",
    [
        ["03/04/2024", "05/06/2024"],
        ["2024", "2023"],
        ["2024-03", "2024-04"],
        ["2024-02-30"],
        ["2024-03-01", "unknown"],
        ["2024-03-01T10:00Z", "2024-03-01T10:00"],
        ["10:30", "11:30"],
        ["1.2.3", "1.2.4"],
        ["20240301", "20240302"],
        ["01.03.24", "02.03.24"],
        ["25/13/2024"],
    ],
)
def test_other_text_stays_text(texts):
    assert read(texts).kind == "levels"


def test_offsets_of_summer_and_winter_are_shown_in_utc():
    found = read(["2024-03-01 12:00:00+01:00", "2024-07-01 12:00:00+02:00"])
    assert found.zone == "UTC" and (found.values % 86_400 / 3600).tolist() == [11.0, 10.0]


def some_rows(written, n=3000):
    rng = np.random.default_rng(5)
    days = DAYS[rng.integers(0, len(DAYS), n)]
    p = rng.uniform(0.1, 0.9, n)
    late = np.asarray(days > DAYS[30])
    y = (rng.random(n) < np.clip(p + 0.15 * late, 0, 1)).astype(int)
    return pd.DataFrame({"y": y, "p": p, "day": [day.strftime(written) for day in days]}), days


@pytest.mark.parametrize("written", ["%Y-%m-%d", "%d/%m/%Y", "%Y-%m-%dT%H:%M:%SZ"])
def test_an_audit_of_text_is_that_of_dates_in_memory_and_in_batches(written, monkeypatch):
    frame, days = some_rows(written)
    real = days.tz_localize("UTC") if written.endswith("Z") else days
    wanted = vc.audit("y", "p", data=frame.assign(day=real))
    found = vc.audit("y", "p", data=frame)
    monkeypatch.setattr(sources, "FEW_ROWS", 100)
    monkeypatch.setattr(sources, "BATCH_ROWS", 7)  # batches that could be read in two ways
    lazy = vc.audit("y", "p", data=pl.from_pandas(frame).lazy())
    for one in (found, lazy):
        assert one.row("day").kind == "datetime"
        mine, theirs = (each.row("day").table.columns for each in (one, wanted))
        assert mine["bin"] == theirs["bin"]
        np.testing.assert_allclose(mine["gap"], theirs["gap"])
        np.testing.assert_allclose(one["day"].gap, wanted["day"].gap, atol=1e-9)


def test_batches_of_text_with_one_odd_value_stay_text(monkeypatch):
    frame, _ = some_rows("%Y-%m-%d")
    frame.loc[2900, "day"] = "unknown"
    monkeypatch.setattr(sources, "FEW_ROWS", 100)
    monkeypatch.setattr(sources, "BATCH_ROWS", 100)
    found = vc.audit("y", "p", data=pl.from_pandas(frame).lazy())
    assert found.row("day").kind == "levels"
    assert "'day' is read as text: 'unknown' is not a date like '20" in " ".join(found.notes)


def test_notes_say_how_dates_were_read():
    frame, _ = some_rows("%d/%m/%Y")
    assert (
        "'day' is read as dates, written as day/month/year." in vc.audit("y", "p", data=frame).notes
    )
    early = frame.assign(day=["03/04/2024", "05/06/2024", "01/02/2024"] * 1000)
    notes = vc.audit("y", "p", data=early).notes
    assert any("day and month cannot be told apart" in note for note in notes)
    iso, _ = some_rows("%Y-%m-%d")
    assert not any("is read as" in note for note in vc.audit("y", "p", data=iso).notes)


def test_a_calibrator_reads_single_rows_as_in_its_fit(tmp_path):
    frame, days = some_rows("%d/%m/%Y")
    by_text = vc.VariableCalibrator().fit(frame["p"], frame["y"], frame[["day"]])
    by_date = vc.VariableCalibrator().fit(frame["p"], frame["y"], {"day": days})
    by_text.save(tmp_path / "calibrator.json")
    again = vc.load(tmp_path / "calibrator.json")
    assert by_text.schema_.kinds == ("datetime",)
    wanted = by_date.predict_proba([0.5], {"day": np.array(["2023-12-05"], "M8[D]")})
    other = by_date.predict_proba([0.5], {"day": np.array(["2023-05-12"], "M8[D]")})
    assert abs(wanted - other).max() > 1e-3
    for one in (by_text, again):
        for day in (["05/12/2023"], np.array(["2023-12-05"], "M8[D]"), ["2023-12-05"]):
            np.testing.assert_allclose(one.predict_proba([0.5], {"day": day}), wanted, rtol=1e-12)
        with pytest.raises(
            InputError, match="holds 'unknown', but the calibrator was fitted on dat"
        ):
            one.predict_proba([0.5, 0.5], {"day": ["05/12/2023", "unknown"]})


def test_a_calibrator_that_was_fitted_on_text_takes_dates_as_text():
    frame, _ = some_rows("%Y-%m-%d")
    frame.loc[:40, "day"] = "unknown"
    fitted = vc.VariableCalibrator().fit(frame["p"], frame["y"], frame[["day"]])
    assert fitted.schema_.kinds == ("levels",)
    one = fitted.predict_proba([0.5], {"day": ["2023-12-05"]})
    two = fitted.predict_proba([0.5, 0.5], {"day": ["2023-12-05", "unknown"]})
    assert one[0].tolist() == two[0].tolist()


def test_cut_points_may_be_text():
    frame, days = some_rows("%Y-%m-%d")
    cuts = ["2023-11-20", "2024-01-01", "2024-01-18"]
    table = vc.bin_table("y", "p", "day", data=frame, bins=cuts)
    assert table.columns["bin"] == ["[2023-11-20, 2024-01-01]", "(2024-01-01, 2024-01-18]"]
    assert table.columns["n"][0] == (days <= "2024-01-01").sum()


def test_labels_and_groups_may_look_like_dates():
    p = np.linspace(0.1, 0.9, 40)
    y = np.array(["2024-01-01", "2024-01-02"] * 20)
    assert vc.ece(y, p) > 0
    assert vc.audit(y, p, {"v": p}, groups=[f"2024-01-0{1 + k % 8}" for k in range(40)]).grouped
