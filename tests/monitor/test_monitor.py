"""Monitors: alarms and their place, batches in any form, order and number of parts, arguments."""

import copy
import datetime as dt
import re

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import varcal as vc
from cases.monitors import BINS, assert_same_state, make_bins, make_rows
from varcal.exceptions import InputError, VarcalWarning


@pytest.fixture(scope="module")
def bins():
    return make_bins()


@pytest.fixture(scope="module")
def alarmed(bins):
    """A monitor whose rows change at day 20."""
    monitor = vc.Monitor(bins)
    watch(monitor, *[0] * 20, *[0.15] * 20)
    return monitor


def watch(monitor, *shifts, n=1000, rows=make_rows, **more):
    """Update a monitor with one batch per shift, from day 0 on; return its last status."""
    for shift in shifts:
        day = monitor.n_batches
        status = monitor.update(rows(n, shift, day, **more), id=f"day {day}")
    return status


def day_of(id):
    return int(id.split()[1])


def claims_of(monitor):
    return set(monitor.to_frame("polars")["claim"])


def test_a_change_is_found_where_and_when_it_happened(alarmed):
    status, where = alarmed.status, alarmed.status.where
    assert status.alarm and not status.acknowledged
    assert (status.where.variable, status.where.claim, status.where.direction) == (
        "age",
        "probability",
        "under",
    )
    assert where.text == "above 40 to 50" and where.proven and where.also == ()
    assert 18 <= day_of(status.where.since) <= 21 and 20 < day_of(status.raised) < 32
    assert where.low < -0.15 < where.high < 0
    assert status.where.gap == pytest.approx(where.predicted - where.observed)
    said = r"Alarm: too low by 1\d\.\d points \(\d\.\d to 1\d\.\d\) where age above 40 to 50, since"
    assert re.match(said, str(status))


def test_no_value_is_in_two_places():
    rows = make_rows(2000) | {
        "plain": np.arange(2000),
        "often": np.where(np.arange(2000) % 3, np.arange(2000), 600),
        "day": np.datetime64("2024-01-01") + np.arange(2000) // 10,
    }
    names = ["plain", "often", "day"]
    frame = vc.Monitor(vc.make_bins("y", "p", names, data=rows, n_bins=3, monitor=0.02)).to_frame()
    places = frame[frame["claim"] == "probability"].groupby("variable")["where"].agg(list)
    told = ["up to 666.333", "above 666.333 to 1332.67", "above 1332.67", "missing"]
    assert places["plain"] == told
    told = ["below 600", "600", "above 600 to 999.666", "above 999.666", "missing"]
    assert places["often"] == told
    assert places["day"][0] == "up to " + places["day"][1].split(" ")[1]
    assert places["day"][2] == "after " + places["day"][1].split(" ")[3]


@pytest.mark.filterwarnings("ignore:the bins were chosen")
@pytest.mark.parametrize(
    ("given", "bins_for", "method"),
    [
        ({"arl": 500}, {}, "bets"),
        ({"event": "positive", "alpha": 0.001}, {}, "bets"),
        ({"limit": 0.05}, {}, "sums"),
        ({}, {"monitor": None}, "sums"),
        ({}, {"sample_weight": "w", "weight_cap": 4}, "bets"),
        ({"reference": True}, {}, "sums"),
    ],
)
def test_every_kind_of_evidence_finds_the_change(given, bins_for, method):
    def weight(rng, n):
        return rng.choice([0.5, 1.0, 4.0], n)

    plan = {"data": make_rows(3000, seed=99, w=weight), "bins": BINS, "monitor": 0.02} | bins_for
    bins = vc.make_bins("y", "p", ["age", "job"], **plan)
    shifts, normal = [0.0] * 10 + [0.3] * 30, None
    if "reference" in given:
        shifts, normal = [0.2] * 10 + [0.5] * 30, make_rows(20_000, 0.2, seed=98, w=weight)
        given = {}
    monitor = vc.Monitor(bins, reference=normal, **given)
    assert monitor.method == method
    assert not watch(monitor, *shifts[:10], w=weight).alarm
    status = watch(monitor, *shifts[10:], w=weight)
    assert status.where.text == "above 40 to 50" and 8 <= day_of(status.where.since) <= 12


def test_what_weakens_the_evidence_is_said(bins):
    with pytest.warns(VarcalWarning, match=r"for a limit of 0\.02.*monitor=0\.05"):
        monitor = vc.Monitor(bins, limit=0.05)
    assert "self-normalized" in monitor.notes[0]
    with pytest.warns(VarcalWarning, match="chosen without monitor"):
        assert vc.Monitor(vc.make_bins("y", "p", data=make_rows())).limit == 0.02
    few = vc.Monitor(bins, reference=make_rows(60))
    assert "cells have too few reference rows to be judged" in few.notes[-1]


def test_gaps_within_the_limit_raise_no_alarm_and_larger_ones_do():
    bins = make_bins(0.1)
    status = watch(vc.Monitor(bins), *[0.09] * 60)
    assert not status.alarm and status.where is None
    assert str(status).startswith("No alarm after 60 batches (60,000 rows): evidence 0.")
    assert watch(vc.Monitor(bins), *[0.25] * 60).where.text == "above 40 to 50"


def test_overconfidence_on_both_sides_is_found_as_confidence(bins):
    # Too extreme: risks below one half are too low, those above too high; on average right.
    def rows(n, shift, seed):
        rng = np.random.default_rng(seed)
        p = rng.choice([0.05, 0.95], n)
        return make_rows(n) | {"p": p, "y": (rng.random(n) < 0.5 + shift * (p - 0.5)).astype(int)}

    status = watch(vc.Monitor(bins), *[0.6] * 12, n=2000, rows=rows)
    assert (status.where.claim, status.where.direction) == ("confidence", "over")
    assert status.where.variable == ""
    assert "too sure by" in str(status) and str(status).count("over all rows") == 1


def test_any_form_and_split_of_a_batch_gives_the_same_state(bins, tmp_path):
    rows = make_rows(5000, 0.1, seed=5)
    order = np.random.default_rng(0).permutation(5000)
    parts = [{name: column[k::3] for name, column in rows.items()} for k in range(3)]
    one, *others = (vc.collect(part, bins) for part in parts)
    one.save(tmp_path / "0.json")
    monitors = []
    for batch in (
        rows,
        {name: column[order] for name, column in rows.items()},
        pl.DataFrame(rows),
        vc.collect(rows, bins),
        sum([*others, vc.load(tmp_path / "0.json")]),
    ):
        monitors.append(vc.Monitor(bins))
        watch(monitors[-1], 0)
        monitors[-1].update(batch, id="day 1")
        assert_same_state(monitors[-1], monitors[0])


def test_batches_that_are_refused_change_nothing(bins, tmp_path):
    monitor, state = vc.Monitor(bins), tmp_path / "state.json"
    for id in ("day 9", "day 10"):
        monitor.update(make_rows(100), id=id)
    monitor.save(state)
    before, rows = state.read_bytes(), make_rows(100)
    other = vc.collect(rows, vc.make_bins("y", "p", data=rows))
    nameless = (None, True, 1.5, [1], np.datetime64("NaT"), " ", "x" * 501)
    for batch, id, what in (
        (rows, "day 10", "id is 'day 10', which is already counted"),
        (rows, "day 9", "id is 'day 9', and the latest batch is 'day 10'\nhint: .*closed windows"),
        ({name: rows[name] for name in ("y", "p", "job")}, "day 11", "no column 'age'"),
        (other, "day 11", "other bins"),
        *((rows, id, "id is ") for id in nameless),
    ):
        with pytest.raises(InputError, match=what):
            monitor.update(batch, id=id)
    monitor.save(state)
    assert state.read_bytes() == before


def test_bins_have_a_limit_and_a_cap_of_weights_above_which_rows_are_refused():
    rows = make_rows(3000) | {"w": np.where(np.arange(3000) == 7, 5.0, 1.0)}
    options = {"data": rows, "monitor": 0.02}
    with pytest.raises(InputError, match="weight_cap is not given"):
        vc.make_bins("y", "p", ["age"], sample_weight="w", **options)
    with pytest.raises(InputError, match=r"monitor must lie between 0 and 0\.5; got 2"):
        make_bins(2)
    with pytest.raises(InputError, match="weight_cap is given without sample_weight"):
        vc.make_bins("y", "p", ["age"], weight_cap=4, **options)
    with pytest.raises(InputError, match="weights without a cap"):
        vc.Monitor(vc.make_bins("y", "p", data=rows, sample_weight="w"))
    bins = vc.make_bins("y", "p", ["age"], sample_weight="w", weight_cap=4, **options)
    with pytest.raises(InputError, match=r"above weight_cap, 4: 5.0 at row 7\nhint: .* larger"):
        vc.collect(rows, bins)
    assert "at most 4" in " ".join(vc.Monitor(bins).notes)


def test_groups_are_judged_by_unit():
    # Ten rows of a unit share an outcome: by row this looks like much evidence.
    def rows(n, shift, seed):
        rng = np.random.default_rng(seed)
        unit, age, p = rng.integers(0, 10**9, n), rng.integers(20, 70, n), rng.beta(1, 2, n)
        y = (rng.random(n) < np.clip(p + shift * (age >= 45), 0, 1)).astype(int)
        made = {"y": y, "p": p, "age": age, "unit": unit}
        return {name: np.repeat(column, 10) for name, column in made.items()}

    options = {"data": rows(400, 0, 99), "bins": {"age": [20, 45, 70]}, "monitor": 0.02}
    grouped = vc.make_bins("y", "p", ["age"], groups="unit", **options)
    good, bad = vc.Monitor(grouped), vc.Monitor(vc.make_bins("y", "p", ["age"], **options))
    assert watch(bad, *[0] * 40, n=400, rows=rows).alarm
    assert not watch(good, *[0] * 40, n=400, rows=rows).alarm
    assert good.method == "units" and "units" in good.notes[0]
    status = watch(good, *[0.2] * 40, n=400, rows=rows)
    assert status.where.text == "above 45" and abs(day_of(status.where.since) - 40) <= 4
    more, other = rows(400, 0, 500), copy.deepcopy(good)
    halves = [{name: column[k::2] for name, column in more.items()} for k in range(2)]
    good.update(more, id="day 99")
    other.update(sum(vc.collect(half, grouped) for half in halves), id="day 99")
    assert_same_state(good, other)


def test_missing_labels_and_empty_batches_are_counted_and_said(bins, tmp_path):
    rows = make_rows(1000)
    empty = {name: column[:0] for name, column in rows.items()}
    some = pa.table(
        rows | {"y": [None if k % 10 == 0 else int(y) for k, y in enumerate(rows["y"])]}
    )
    dropping = make_bins(unlabelled="drop")
    monitor, none = vc.Monitor(dropping, arl=100), vc.Monitor(dropping)
    first, second = (monitor.update(batch, id=k) for k, batch in enumerate((some, empty)))
    assert (second.n_batches, second.n_rows, second.n_dropped) == (2, 900, 100)
    assert first.evidence == second.evidence
    assert "100 rows (10.0%) had no label" in " ".join(monitor.notes)
    with pytest.raises(InputError, match="no label"):
        vc.Monitor(bins).update(some, id=1)
    with pytest.raises(InputError, match="batch '1' has 1,000 rows and no outcome"):
        none.update(rows | {"y": np.full(1000, np.nan)}, id=1)
    with pytest.raises(InputError, match="reference has no rows"):
        vc.Monitor(bins, reference=empty)
    none.update(empty, id=1)
    for name in ("page.html", "page.md", "page.json"):
        none.report(tmp_path / name)
    assert "After 1 batch with 0 rows" in (tmp_path / "page.md").read_text(encoding="utf-8")
    none.plot()


def test_many_classes_have_a_claim_each():
    def rows(n, shift, seed):
        rng = np.random.default_rng(seed)
        p, v = rng.dirichlet([2, 2, 2], n), rng.integers(0, 4, n)
        truth = p + np.outer(shift * p[:, 0] * (v == 2), [-1, 1, 0])
        y = (rng.random(n)[:, None] > truth.cumsum(axis=1)[:, :2]).sum(axis=1)
        named = {name: p[:, k] for k, name in enumerate("abc")}
        return named | {"y": np.array(list("abc"))[y], "v": v.astype(str)}

    bins = vc.make_bins("y", ["a", "b", "c"], ["v"], data=rows(2000, 0, 99), monitor=0.02)
    monitor = vc.Monitor(bins)
    assert claims_of(monitor) == {"confidence", "class a", "class b", "class c"}
    assert monitor._cells.part.sum() == pytest.approx(1)
    status = watch(monitor, *[0] * 5, *[0.5] * 15, n=1500, rows=rows)
    assert (status.where.variable, status.where.text) == ("v", "2")
    assert status.where.claim in ("class a", "class b")
    assert claims_of(vc.Monitor(bins, event="correct")) == {"confidence"}


def test_acknowledged_alarms_and_resets(alarmed):
    monitor = copy.deepcopy(alarmed)
    with pytest.raises(InputError, match="note must be a string; got 5"):
        monitor.acknowledge(5)
    assert monitor.status == alarmed.status
    monitor.acknowledge("label pipeline")
    assert monitor.status.alarm and str(monitor.status).startswith("Known alarm: too low")
    monitor.reset("repaired")
    assert not monitor.status.alarm and monitor.status.n_batches == 0
    with pytest.raises(InputError, match="no alarm to acknowledge"):
        monitor.acknowledge()
    with pytest.raises(InputError, match="already counted"):
        monitor.update(make_rows(), id="day 39")
    fresh = vc.Monitor(monitor.bins)
    for one in (monitor, fresh):
        one.update(make_rows(seed=40), id="day 40")
    assert_same_state(monitor, fresh)
    assert [event.what for event in monitor.events] == ["alarm", "acknowledged", "reset"]
    assert monitor.events[1].note == "label pipeline"


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"alpha": 0.05, "arl": 100}, "alpha and arl are both given"),
        ({"alpha": 1.5}, "alpha must lie between 1e-90 and 1; got 1.5"),
        ({"alpha": 1e-99}, "alpha must lie between 1e-90 and 1; got 1e-99"),
        ({"arl": 0.5}, "arl must lie between 1 and 1e+90; got 0.5"),
        ({"limit": -0.1}, "limit must lie between 0 and 0.5; got -0.1"),
        ({"bins": {}}, "bins is a dict"),
        ({"event": "classwise"}, "event is 'classwise', which the bins were not chosen for"),
    ],
)
def test_arguments_are_checked(bins, given, what):
    with pytest.raises(InputError, match=re.escape(what)):
        vc.Monitor(**{"bins": bins} | given)


def test_the_state_does_not_grow_with_the_number_of_batches(bins, tmp_path):
    monitor, sizes, state = vc.Monitor(bins), [], tmp_path / "state.json"
    batches = [vc.collect(make_rows(200, seed=k), bins) for k in range(20)]
    for day in range(2010):
        monitor.update(batches[day % 20], id=day)
        if day % 1000 == 999:
            monitor.save(state)
            sizes.append(state.stat().st_size)
    assert sizes[1] < 1.1 * sizes[0]
    # Every batch is in the history, and ids are known for as long as evidence began at them.
    total = sum(block.sums for block in monitor._blocks)
    np.testing.assert_allclose(total, monitor._running.sums, rtol=1e-9)
    assert monitor.to_frame("polars")["since"].null_count() == 0
    monitor.reset()
    monitor.update(batches[0], id=2010)
    assert monitor._blocks[-1].batches == 1  # not joined with those before the reset


def test_a_history_of_very_many_resets_can_be_saved(bins, tmp_path):
    # The number of batches per block was doubled at each reset, until no file could hold it.
    monitor, batch = vc.Monitor(bins), vc.collect(make_rows(50), bins)
    for day in range(200):
        monitor.reset()
        monitor.update(batch, id=day)
    monitor.save(tmp_path / "state.json")
    vc.load(tmp_path / "state.json").report(tmp_path / "page.html")


def test_ids_are_dates_of_any_library_in_any_spelling(bins):
    monitor = vc.Monitor(bins)
    assert monitor.update(make_rows(50), id=dt.date(2026, 8, 31)).id == "2026-08-31"
    monitor.update(make_rows(50), id=np.datetime64("2026-09-01"))
    with pytest.raises(InputError, match="id is '2026-9-1', which is already counted"):
        monitor.update(make_rows(50), id="2026-9-1")
    monitor.update(make_rows(50), id="2026-10-1")
