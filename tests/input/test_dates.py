"""Text that is dates, and parts of dates, in memory, in batches and in calibrators."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import varcal as vc
from varcal.exceptions import InputError

DAYS = pd.date_range("2023-11-20", periods=60, freq="D")


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr("varcal._sums.sources.FEW_ROWS", 100)
    monkeypatch.setattr("varcal._sums.sources.BATCH_ROWS", 7)  # which can be read in two ways


def means_by_day(column, cuts=None):
    """Return the rows on each side of some days, and the kind of the variable."""
    n = len(column)
    y, p = np.arange(n) % 2, np.linspace(0.1, 0.9, n)
    table = vc.bin_table(y, p, {"day": column}, bins=cuts or [*DAYS[::10], DAYS[-1]])
    return table.columns["n"], table.columns["bin"]


@pytest.mark.parametrize(
    ("written", "zone"),
    [
        ("%Y-%m-%d", None),
        ("%Y/%m/%d", None),
        ("%Y-%m-%dT%H:%M:%S", None),
        ("%Y-%m-%d %H:%M", None),
        ("%Y-%m-%dT%H:%M:%S.%fZ", "UTC"),
        ("%Y-%m-%d %H:%M:%S+01:00", "+01:00"),
        ("%Y-%m-%d %H:%M:%S-0330", "-03:30"),
        ("%d.%m.%Y", None),
        ("%-d.%-m.%Y %-H:%M:%S,5", None),
        ("%d/%m/%Y", None),
        ("%m/%d/%Y %H:%M", None),
        ("%d-%m-%Y", None),
        ("%d %B %Y", None),
        ("%b %d, %Y", None),
    ],
)
def test_ways_of_writing_mean_the_dates_of_pandas(written, zone):
    texts = [day.strftime(written) for day in DAYS]
    stamps = DAYS + pd.Timedelta("0.5s") if written.endswith(",5") else DAYS
    stamps = pd.Series(stamps).dt.tz_localize(zone) if zone else pd.Series(stamps)
    for shift in (0, 0.5, 12 * 3600):  # to the second
        cuts = [stamps.iloc[k] - pd.Timedelta(seconds=shift) for k in (0, 20, 59)]
        assert means_by_day(texts, cuts) == means_by_day(stamps, cuts)


@pytest.mark.parametrize(
    "texts",
    [
        ["03/04/2024", "05/06/2024"],
        ["2024", "2023"],
        ["2024-03", "2024-04"],
        ["2024-02-30"],
        ["2024-03-01", "unknown"],
        ["2024-03-01\n2024-03-02", "x"],
        ["2024-03-01T10:00Z", "2024-03-01T10:00"],
        ["10:30", "11:30"],
        ["1.2.3", "1.2.4"],
        ["20240301", "20240302"],
        ["01.03.24", "02.03.24"],
        ["25/13/2024"],
        ["2024-03-01 25:00"],
    ],
)
def test_other_text_stays_text(texts):
    table = vc.bin_table([0, 1] * len(texts), [0.4, 0.5] * len(texts), texts * 2)
    assert sorted(table.columns["bin"]) == sorted(texts)


def some_rows(written, n=3000):
    rng = np.random.default_rng(5)
    days = DAYS[rng.integers(0, len(DAYS), n)]
    p = rng.uniform(0.1, 0.9, n)
    y = (rng.random(n) < np.clip(p + 0.15 * (days > DAYS[30]), 0, 1)).astype(int)
    return pd.DataFrame({"y": y, "p": p, "day": days.strftime(written)}), days


def audited(data):
    return vc.audit("y", "p", data=data, ladder="none")


@pytest.mark.parametrize("written", ["%Y-%m-%d", "%d/%m/%Y", "%Y-%m-%dT%H:%M:%SZ"])
def test_an_audit_of_text_is_that_of_dates_in_memory_and_in_batches(written, small_batches):
    frame, days = some_rows(written)
    real = days.tz_localize("UTC") if written.endswith("Z") else days
    wanted = audited(frame.assign(day=real))
    for found in (audited(frame), audited(pl.from_pandas(frame).lazy())):
        assert found.row("day").kind == "datetime"
        mine, theirs = (each.row("day").table.columns for each in (found, wanted))
        assert mine["bin"] == theirs["bin"]
        np.testing.assert_allclose(mine["gap"], theirs["gap"])
        noted = "'day' is read as dates, written as day/month/year." in found.notes
        assert noted == (written == "%d/%m/%Y")


def test_a_calibrator_reads_single_rows_as_in_its_fit(tmp_path):
    frame, days = some_rows("%d/%m/%Y")
    by_text = vc.VariableCalibrator().fit(frame["p"], frame["y"], frame[["day"]])
    by_date = vc.VariableCalibrator().fit(frame["p"], frame["y"], {"day": days})
    by_text.save(tmp_path / "calibrator.json")
    wanted = by_date.predict_proba([0.5], {"day": np.array(["2023-12-05"], "M8[D]")})
    other = by_date.predict_proba([0.5], {"day": np.array(["2023-05-12"], "M8[D]")})
    assert abs(wanted - other).max() > 1e-5
    for one in (by_text, vc.load(tmp_path / "calibrator.json")):
        for day in (["05/12/2023"], np.array(["2023-12-05"], "M8[D]"), ["2023-12-05"]):
            np.testing.assert_allclose(one.predict_proba([0.5], {"day": day}), wanted, rtol=1e-12)
        with pytest.raises(InputError, match="holds 'unknown', but the calibrator was fitted on d"):
            one.predict_proba([0.5, 0.5], {"day": ["05/12/2023", "unknown"]})


# ------------------------------------------------------------------ parts of dates

NAMES = ["when (hour)", "when (weekday)", "when (month)"]


def audit_of(when):
    p = np.random.default_rng(2).uniform(0.2, 0.8, len(when))
    y = np.arange(len(when)) % 2
    return vc.audit(y, p, {"when": pd.Series(when)}, ladder="none")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/St_Johns", "UTC", None])
def test_parts_are_those_of_pandas(zone):
    seconds = np.sort(np.random.default_rng(0).integers(0, 5 * 365 * 86_400, 6_000))
    when = pd.Series(pd.to_datetime(seconds + 1_500_000_000, unit="s", utc=True))
    when = when.dt.tz_convert(zone) if zone else when.dt.tz_localize(None)
    when[::50] = pd.NaT
    found = audit_of(when)
    for name, names in zip(NAMES[1:], (when.dt.day_name(), when.dt.month_name()), strict=True):
        table = pd.DataFrame(found.row(name).table.columns).query("side == 'all'")
        assert dict(zip(table["bin"], table["n"], strict=True)) == {
            **names.value_counts(),
            "missing": 120,
        }
    hours = pd.DataFrame(found.row("when (hour)").table.columns).query("side == 'all'")
    for one in hours[hours["bin"] != "missing"].itertuples():
        first = one.Index == hours.index[0]
        inside = when.dt.hour.between(one.low, one.high, inclusive="both" if first else "right")
        assert one.n == inside.sum()


@pytest.mark.parametrize(
    ("start", "periods", "step", "names"),
    [
        ("2024-01-01", 40, "h", []),  # in less than two days an hour hardly comes back
        ("2024-01-01", 300, "h", NAMES[:1]),
        ("2024-01-01", 30, "D", NAMES[1:2]),  # days have no hours
        ("2020-01-01", 300, "W", NAMES[2:]),  # always the same weekday
        ("1970-01-01", 300, "YS", NAMES[1:2]),
    ],
)
def test_a_part_is_a_variable_if_it_comes_back_and_varies(start, periods, step, names):
    found = audit_of(pd.date_range(start, periods=periods, freq=step))
    assert {row.variable for row in found} == {"when", *names}


@pytest.fixture(scope="module")
def rows():
    """Return rows with an error that comes back every day on the clock of Berlin."""
    rng = np.random.default_rng(1)
    seconds = np.sort(rng.integers(0, 90 * 86_400, 20_000)) + 1_672_531_200
    when = pd.Series(pd.to_datetime(seconds, unit="s", utc=True)).dt.tz_convert("Europe/Berlin")
    p = rng.beta(2, 3, 20_000)
    y = rng.random(20_000) < p - 0.06 * np.sin(2 * np.pi * when.dt.hour.to_numpy() / 24)
    noise = rng.random(20_000)
    return pd.DataFrame({"y": y.astype(int), "p": p, "when": when, "noise": noise})


def test_all_sources_find_the_same_daily_cycle(rows, tmp_path, monkeypatch):
    audit = audited(rows)
    assert audit.rows[0].variable == "when (hour)" and audit.rows[0].verdict == "above limit"
    assert [row.verdict for row in audit.rows[1:]] == ["no evidence"] * 3
    assert "Parts of dates are variables of their own: when (hour), when (weekday)." in audit.notes
    wanted = {row.variable: row.uneven.value for row in audit}
    bins = vc.make_bins("y", "p", data=rows)
    total = vc.collect(rows[:9_000], bins) + vc.collect(rows[9_000:], bins)
    total.save(tmp_path / "sums.json")
    for sums in (total, vc.load(tmp_path / "sums.json")):
        assert {row.variable: row.uneven.value for row in vc.audit(sums)} == pytest.approx(wanted)
    monkeypatch.setattr("varcal._sums.sources.FEW_ROWS", 1_000)
    rows.to_parquet(tmp_path / "rows.parquet")
    rows.assign(when=rows.when.dt.tz_localize(None)).to_csv(tmp_path / "rows.csv", index=False)
    lazy = pl.scan_parquet(tmp_path / "rows.parquet")
    for data in (lazy, tmp_path / "rows.parquet", tmp_path / "rows.csv"):
        found = vc.audit("y", "p", data=data, edges="exact", ladder="none")
        for name in NAMES[:2]:
            assert found.row(name).uneven.value == pytest.approx(wanted[name])
