"""Hour of day, weekday and month of dates, as variables of audits."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import varcal as vc
from varcal._input.calendar_parts import with_calendar
from varcal._input.variables import Variable
from varcal._sums import sources

NAMES = ("when (hour)", "when (weekday)", "when (month)")


def parts_of(column):
    return {one.name: one for one in with_calendar([Variable.of(column, "when")])[1:]}


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "UTC", None])
def test_parts_are_those_of_pandas(zone):
    rng = np.random.default_rng(0)
    seconds = np.sort(rng.integers(0, 5 * 365 * 86_400, 20_000))
    when = pd.Series(pd.to_datetime(seconds + 1_500_000_000, unit="s", utc=True))
    when = when.dt.tz_convert(zone) if zone else when.dt.tz_localize(None)
    when[::50] = pd.NaT
    found = parts_of(when)
    assert tuple(found) == NAMES
    hour, weekday, month = (found[name] for name in NAMES)
    assert np.array_equal(hour.values, when.dt.hour.to_numpy(), equal_nan=True)
    for part, names in ((weekday, when.dt.day_name()), (month, when.dt.month_name())):
        levels = [*part.levels, "none"]
        assert [levels[code] for code in part.values] == names.fillna("none").tolist()


@pytest.mark.parametrize(
    ("start", "hours", "step", "names"),
    [
        ("2024-01-01", 40, "h", ()),  # in less than two days an hour hardly comes back
        ("2024-01-01", 300, "h", NAMES[:1]),
        ("2024-01-01", 30, "D", NAMES[1:2]),  # days have no hours
        ("2020-01-01", 300, "W", NAMES[2:]),  # always the same weekday
        ("1970-01-01", 300, "YS", NAMES[1:2]),
    ],
)
def test_a_part_is_a_variable_if_it_comes_back_and_varies(start, hours, step, names):
    assert tuple(parts_of(pd.Series(pd.date_range(start, periods=hours, freq=step)))) == names


def world(n=20_000, amount=0.06):
    """Return rows with an error that comes back every day on the clock of Berlin."""
    rng = np.random.default_rng(1)
    seconds = np.sort(rng.integers(0, 90 * 86_400, n)) + 1_672_531_200
    when = pd.Series(pd.to_datetime(seconds, unit="s", utc=True)).dt.tz_convert("Europe/Berlin")
    p = rng.beta(2, 3, n)
    y = rng.random(n) < p - amount * np.sin(2 * np.pi * when.dt.hour.to_numpy() / 24)
    noise = rng.random(n)
    return pd.DataFrame({"y": y.astype(int), "p": p, "when": when, "noise": noise})


@pytest.fixture(scope="module")
def rows():
    return world()


@pytest.fixture(scope="module")
def audit(rows):
    return vc.audit("y", "p", data=rows, ladder="none")


def figures(audit):
    found = {row.variable: row.uneven.value for row in audit}
    return found | {f"p along {row.variable}": row.uneven.p_value for row in audit}


def test_an_audit_finds_a_daily_cycle(rows, audit):
    assert audit.rows[0].variable == "when (hour)" and audit.rows[0].verdict == "above limit"
    assert [row.verdict for row in audit.rows[1:]] == ["no evidence"] * 3
    table = pd.DataFrame(audit.row("when (hour)").table.columns).query("side == 'all'")
    hour, gap = rows.when.dt.hour, rows.p - rows.y
    for bin_ in table.itertuples():
        inside = hour.between(np.ceil(bin_.low), bin_.high)
        if bin_.n == inside.sum():
            assert bin_.gap == pytest.approx(gap[inside].mean())
    assert "Parts of dates are variables of their own: when (hour), when (weekday)." in audit.notes


def test_all_sources_have_the_same_parts(rows, audit, tmp_path, monkeypatch):
    wanted = figures(audit)
    assert figures(vc.audit("y", "p", data=pl.from_pandas(rows), ladder="none")) == wanted
    bins = vc.make_bins("y", "p", data=rows)
    total = vc.collect(rows[:9_000], bins) + vc.collect(rows[9_000:], bins)
    total.save(tmp_path / "sums.json")
    for sums in (total, vc.load(tmp_path / "sums.json")):
        assert figures(vc.audit(sums)) == pytest.approx(wanted)
    monkeypatch.setattr(sources, "FEW_ROWS", 1_000)
    rows.to_parquet(tmp_path / "rows.parquet")
    local = rows.assign(when=rows.when.dt.tz_localize(None))
    local.to_csv(tmp_path / "rows.csv", index=False)
    lazy = pl.scan_parquet(tmp_path / "rows.parquet")
    for data in (lazy, tmp_path / "rows.parquet", tmp_path / "rows.csv"):
        found = vc.audit("y", "p", data=data, edges="exact", ladder="none")
        for name in ("when (hour)", "when (weekday)"):
            assert figures(found)[name] == pytest.approx(wanted[name])


def test_a_repair_reads_columns_and_no_parts(rows):
    few = rows[:6_000]
    audit = vc.audit("y", "p", data=few)
    variables = audit.ladder.rungs[-1]
    assert variables.uneven["when (hour)"].value > 0.02  # a calibrator of "when" cannot repair it
    found = vc.compare("y", {"raw": "p"}, ["when"], data=few)
    assert "when (hour)" in {row.variable for row in found.rows}


def test_a_column_of_that_name_stays_what_it_is(rows):
    few = rows[:2_000].assign(**{"when (hour)": 1.5 + np.arange(2_000) % 7})
    audit = vc.audit("y", "p", data=few, ladder="none")
    names = [row.variable for row in audit]
    assert names.count("when (hour)") == 1
    assert max(audit.row("when (hour)").table.columns["high"]) == 7.5
