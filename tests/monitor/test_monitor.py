"""Monitors: alarms and their place, batches in any form, order and number of parts, arguments."""

import copy
import datetime as dt
import re

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import varcal as vc
from cases.monitors import BINS, assert_same_state, make_bins, make_rows
from varcal._monitor.detector import MOST
from varcal._monitor.history import MOST_BLOCKS
from varcal._monitor.monitor_file import to_dict
from varcal.exceptions import InputError, VarcalWarning


@pytest.fixture(scope="module")
def bins():
    return make_bins()


@pytest.fixture(scope="module")
def alarmed(bins):
    """A monitor whose rows change at day 20."""
    monitor = vc.Monitor(bins)
    for day in range(40):
        monitor.update(make_rows(shift=0.15 if day >= 20 else 0, seed=day), id=f"day {day}")
    return monitor


def test_a_change_is_found_where_and_when_it_happened(alarmed):
    status = alarmed.status
    assert status.alarm and not status.acknowledged
    assert (status.variable, status.claim, status.direction) == ("age", "probability", "under")
    assert status.where.text == "40 to 50"
    assert 18 <= int(status.since.split()[1]) <= 21
    assert 20 < int(status.raised.split()[1]) < 32
    assert status.where.proven and status.where.also == ()
    assert status.where.low < -0.15 < status.where.high < 0
    assert status.gap == pytest.approx(status.where.predicted - status.where.observed)
    assert re.fullmatch(
        r"Alarm: too low by 1\d\.\d points \(\d\.\d to 1\d\.\d\) where age 40 to 50, "
        r"since day \d+\.",
        str(status),
    )


def test_calm_rows_raise_no_alarm(bins):
    monitor = vc.Monitor(bins)
    for day in range(30):
        monitor.update(make_rows(seed=1000 + day), id=day)
    assert not monitor.status.alarm and monitor.status.where is None
    assert monitor.status.variable is monitor.status.since is monitor.status.gap is None
    assert str(monitor.status).startswith("No alarm after 30 batches (30,000 rows): evidence 0.0")


def test_overconfidence_on_both_sides_is_found_as_confidence(bins):
    # Too extreme: risks below one half are too low, those above too high; on average right.
    monitor = vc.Monitor(bins)
    rng = np.random.default_rng(3)
    for day in range(12):
        rows = make_rows(2000, seed=day)
        extreme = rng.choice([0.05, 0.95], 2000)
        rows |= {"p": extreme, "y": (rng.random(2000) < 0.5 + 0.6 * (extreme - 0.5)).astype(int)}
        status = monitor.update(rows, id=day)
    assert status.alarm and status.claim == "confidence" and status.direction == "over"
    assert status.variable is None and status.where.text == "all rows"
    assert "too sure by" in str(status) and str(status).count("over all rows") == 1


def test_any_form_and_split_of_a_batch_gives_the_same_state(bins, tmp_path):
    rows = make_rows(5000, 0.1, seed=5)
    parquet.write_table(pa.table(rows), tmp_path / "rows.parquet")
    parts = [{name: column[k::3] for name, column in rows.items()} for k in range(3)]
    collected = [vc.collect(part, bins) for part in parts]
    for k, one in enumerate(collected):
        one.save(tmp_path / f"{k}.{'parquet' if k else 'json'}")
    loaded = [vc.load(tmp_path / f"{k}.{'parquet' if k else 'json'}") for k in range(3)]
    order = np.random.default_rng(0).permutation(5000)
    batches = [
        rows,
        {name: column[order] for name, column in rows.items()},
        pl.DataFrame(rows),
        tmp_path / "rows.parquet",
        vc.collect(rows, bins),
        sum(collected),
        collected[2] + collected[0] + collected[1],
        sum(loaded),
    ]
    first = None
    for batch in batches:
        monitor = vc.Monitor(bins)
        monitor.update(make_rows(500, seed=1), id=1)
        monitor.update(batch, id=2)
        first = first or monitor
        assert_same_state(monitor, first)


def test_ids_must_increase_and_repeated_ones_are_refused(bins):
    monitor = vc.Monitor(bins)
    monitor.update(make_rows(100), id="day 9")
    monitor.update(make_rows(100), id="day 10")
    before = to_dict(monitor)
    for id, what in (("day 10", "already counted"), ("day 9", "the latest batch is 'day 10'")):
        with pytest.raises(InputError, match=what) as caught:
            monitor.update(make_rows(100), id=id)
        assert "closed windows" in caught.value.hint and caught.value.argument == "id"
    with pytest.raises(InputError, match="id is ' '"):
        monitor.update(make_rows(100), id=" ")
    assert to_dict(monitor) == before
    monitor = vc.Monitor(bins)
    monitor.update(make_rows(100), id=dt.date(2026, 9, 30))
    assert monitor.update(make_rows(100), id=dt.date(2026, 10, 1)).id == "2026-10-01"


def test_a_batch_that_cannot_be_read_changes_nothing(bins):
    monitor = vc.Monitor(bins)
    monitor.update(make_rows(100), id=1)
    before = to_dict(monitor)
    with pytest.raises(InputError, match="no column 'age'"):
        monitor.update({name: make_rows(9)[name] for name in ("y", "p", "job")}, id=2)
    other = vc.collect(make_rows(100), vc.make_bins("y", "p", data=make_rows(100)))
    with pytest.raises(InputError, match="other bins"):
        monitor.update(other, id=2)
    assert to_dict(monitor) == before


def test_another_tolerance_falls_back_and_says_so(bins):
    with pytest.warns(VarcalWarning, match="for a limit of 0.02.*monitor=0.05"):
        monitor = vc.Monitor(bins, limit=0.05)
    assert monitor.method == "sums" and "self-normalized" in monitor.notes[0]
    plain = vc.make_bins("y", "p", data=make_rows(1000))
    with pytest.warns(VarcalWarning, match="chosen without monitor"):
        monitor = vc.Monitor(plain)
    assert monitor.limit == 0.02
    for day in range(30):
        status = monitor.update(make_rows(shift=0.2, seed=day), id=day)
    assert status.alarm and status.variable == "age"


def test_gaps_within_the_tolerance_raise_no_alarm_and_larger_ones_do():
    bins = make_bins(0.1)
    within, uneven = vc.Monitor(bins), vc.Monitor(bins)
    for day in range(60):
        assert not within.update(make_rows(shift=0.09, seed=day), id=day).alarm
        status = uneven.update(make_rows(shift=0.25, seed=day), id=day)
    assert status.alarm and status.where.text == "40 to 50"


def test_a_reference_with_gaps_of_its_own(bins):
    normal = [make_rows(2000, shift=0.2, seed=k) for k in range(10)]
    reference = sum(vc.collect(rows, bins) for rows in normal)
    monitor = vc.Monitor(bins, reference=reference)
    plain = vc.Monitor(bins)
    for day in range(20):
        as_before = make_rows(shift=0.2, seed=100 + day)
        assert not monitor.update(as_before, id=day).alarm
        plain.update(as_before, id=day)
    assert plain.status.alarm
    for day in range(20, 45):
        status = monitor.update(make_rows(shift=0.45, seed=100 + day), id=day)
    assert status.alarm and status.where.text == "40 to 50" and int(status.since) >= 18
    assert any("reference" in note for note in monitor.notes)
    assert np.allclose(vc.Monitor(bins, reference=normal[0])._limits[:, 0] >= 0.02, True)
    empty = {name: column[:0] for name, column in normal[0].items()}
    with pytest.raises(InputError, match="reference has no rows"):
        vc.Monitor(bins, reference=empty)


def test_weights_need_a_cap_and_are_refused_above_it():
    def weight(rng, n):
        return rng.choice([0.5, 1.0, 4.0], n)

    rows = make_rows(3000, seed=9, w=weight)
    with pytest.raises(InputError, match="weight_cap is not given"):
        vc.make_bins("y", "p", data=rows, sample_weight="w", monitor=0.02)
    with pytest.raises(InputError, match="weight_cap must be positive; got 0"):
        vc.make_bins("y", "p", data=rows, sample_weight="w", monitor=0.02, weight_cap=0)
    with pytest.raises(InputError, match="weight_cap is given without sample_weight"):
        vc.make_bins("y", "p", data=rows, monitor=0.02, weight_cap=4)
    with pytest.raises(InputError, match="weights without a cap"):
        vc.Monitor(vc.make_bins("y", "p", data=rows, sample_weight="w"))
    bins = vc.make_bins(
        "y", "p", ["age", "job"], data=rows, bins=BINS, sample_weight="w", monitor=0.02,
        weight_cap=4,
    )  # fmt: skip
    heavy = rows | {"w": np.where(np.arange(3000) == 7, 5.0, rows["w"])}
    with pytest.raises(InputError, match=r"is above weight_cap, 4: 5.0 at row 7") as caught:
        vc.collect(heavy, bins)
    assert "larger weight_cap" in caught.value.hint
    monitor = vc.Monitor(bins)
    for day in range(40):
        shift = 0.2 if day >= 10 else 0
        status = monitor.update(make_rows(shift=shift, seed=day, w=weight), id=day)
    assert status.alarm and status.where.text == "40 to 50" and 8 <= int(status.since) <= 12
    assert "at most 4" in " ".join(monitor.notes)


def test_groups_are_judged_by_unit():
    # Ten rows of a unit share an outcome: by row this looks like much evidence.
    def rows(seed, shift=0.0, n=400):
        rng = np.random.default_rng(seed)
        unit, age, p = rng.integers(0, 10**9, n), rng.integers(20, 70, n), rng.beta(1, 2, n)
        y = (rng.random(n) < np.clip(p + shift * (age >= 45), 0, 1)).astype(int)
        made = {"y": y, "p": p, "age": age, "unit": unit}
        return {name: np.repeat(column, 10) for name, column in made.items()}

    options = {"data": rows(99), "bins": {"age": [20, 45, 70]}}
    grouped = vc.make_bins("y", "p", ["age"], groups="unit", monitor=0.02, **options)
    by_row = vc.make_bins("y", "p", ["age"], monitor=0.02, **options)
    good, bad = vc.Monitor(grouped), vc.Monitor(by_row)
    for day in range(40):
        good.update(rows(day), id=day)
        bad.update(rows(day), id=day)
    assert bad.status.alarm and not good.status.alarm
    assert good.method == "units" and "units" in good.notes[0]
    for day in range(40, 80):
        status = good.update(rows(day, 0.2), id=day)
    assert status.alarm and status.where.text == "45 and over" and abs(int(status.since) - 40) <= 4
    halves = [{name: column[k::2] for name, column in rows(500).items()} for k in range(2)]
    one, other = copy.deepcopy(good), copy.deepcopy(good)
    one.update(rows(500), id=99)
    other.update(sum(vc.collect(half, grouped) for half in halves), id=99)
    assert_same_state(one, other)


def test_missing_labels_are_counted_and_said():
    rows = make_rows(1000)
    labels = [None if k % 10 == 0 else int(y) for k, y in enumerate(rows["y"])]
    bins = make_bins(unlabelled="drop")
    monitor = vc.Monitor(bins)
    monitor.update(pa.table(rows | {"y": labels}), id=1)
    assert (monitor.status.n_rows, monitor.status.n_dropped) == (900, 100)
    assert "100 rows (10.0%) had no label" in " ".join(monitor.notes)
    strict = vc.Monitor(make_bins())
    with pytest.raises(InputError, match="no label"):
        strict.update(pa.table(rows | {"y": labels}), id=1)


def test_many_classes_have_a_claim_each():
    def rows(n, wrong, seed):
        rng = np.random.default_rng(seed)
        p = rng.dirichlet([2, 2, 2], n)
        v = rng.integers(0, 4, n)
        truth = p.copy()
        moved = 0.5 * wrong * truth[:, 0] * (v == 2)
        truth[:, 0] -= moved
        truth[:, 1] += moved
        y = (rng.random(n)[:, None] > truth.cumsum(axis=1)[:, :2]).sum(axis=1)
        named = {name: p[:, k] for k, name in enumerate("abc")}
        return named | {"y": np.array(list("abc"))[y], "v": v.astype(str)}

    bins = vc.make_bins("y", ["a", "b", "c"], ["v"], data=rows(2000, 0, 1), monitor=0.02)
    monitor = vc.Monitor(bins)
    assert {cell.claim for cell in monitor._cells.cells} == {
        "confidence", "class a", "class b", "class c",
    }  # fmt: skip
    assert monitor._cells.part.sum() == pytest.approx(1)
    for day in range(20):
        status = monitor.update(rows(1500, day >= 5, 10 + day), id=day)
    assert status.alarm and status.variable == "v" and status.where.text == "2"
    assert status.claim in ("class a", "class b")
    one = vc.Monitor(bins, event="correct")
    assert {cell.claim for cell in one._cells.cells} == {"confidence"}


def test_claims_of_two_classes_are_those_collected_separately():
    several = [["both"], ["correct"], ["both", "correct"], ["classwise"]]
    monitors = [vc.Monitor(make_bins(events=events), event="correct") for events in several]
    for monitor in monitors:
        for day in range(3):
            monitor.update(make_rows(seed=day), id=day)
        assert monitor.method == "bets"
        assert_same_state(monitor, monitors[0])
    single = make_bins(events=["correct"])
    assert {cell.claim for cell in vc.Monitor(single)._cells.cells} == {"confidence"}
    with pytest.raises(InputError, match="event is 'both', which the bins were not chosen for"):
        vc.Monitor(single, event="both")


def test_correlated_variables_are_named_beside_the_strongest():
    def rows(seed, shift):
        made = make_rows(1500, shift, seed)
        return made | {"months": 12 * made["age"]}

    bins = vc.make_bins(
        "y", "p", ["age", "months", "job"], data=rows(1, 0), monitor=0.02,
        bins=BINS | {"months": [12 * age for age in BINS["age"]]},
    )  # fmt: skip
    monitor = vc.Monitor(bins)
    for day in range(20):
        status = monitor.update(rows(day, 0.2), id=day)
        if status.raised == str(day):
            assert {status.variable, *status.where.also} == {"age", "months"}
    assert (monitor._detector.flow >= MOST).any()
    assert {status.variable, *status.where.also} == {"age", "months"}


def test_acknowledged_alarms_and_resets(alarmed):
    monitor = copy.deepcopy(alarmed)
    monitor.acknowledge("label pipeline")
    assert monitor.status.alarm and monitor.status.acknowledged
    assert str(monitor.status).startswith("Known alarm: too low")
    monitor.reset("repaired")
    assert not monitor.status.alarm and monitor.status.n_batches == 0
    with pytest.raises(InputError, match="no alarm to acknowledge"):
        monitor.acknowledge()
    with pytest.raises(InputError, match="already counted"):
        monitor.update(make_rows(), id="day 39")
    fresh = vc.Monitor(monitor.bins)
    for day in range(40, 45):
        monitor.update(make_rows(seed=day), id=f"day {day}")
        fresh.update(make_rows(seed=day), id=f"day {day}")
    assert_same_state(monitor, fresh)
    assert [event.what for event in monitor.events] == ["alarm", "acknowledged", "reset"]
    assert monitor.events[1].note == "label pipeline"


def test_the_frame_has_one_row_per_cell(alarmed):
    frame = alarmed.to_frame("polars")
    assert len(frame) == len(alarmed._cells)
    place = frame.filter(claim="probability", variable="age", where="40 to 50").row(0, named=True)
    assert place["n"] == sum(
        int(((rows["age"] > 40) & (rows["age"] <= 50)).sum())
        for rows in (make_rows(seed=day) for day in range(40))
    )
    assert place["low"] < place["gap"] < place["high"] < 0
    assert place["gap"] == pytest.approx(place["predicted"] - place["observed"])
    assert frame["evidence"].arg_max() == frame["gap"].arg_min()
    assert frame["evidence"].sum() + 1 / 41 == pytest.approx(alarmed.status.evidence)


def test_arl_bounds_the_distance_of_false_alarms(bins):
    monitor = vc.Monitor(bins, arl=500)
    assert monitor.alarm_at == 500 and monitor.level == 0.95
    for day in range(20):
        status = monitor.update(make_rows(shift=0.2, seed=day), id=day)
    assert status.alarm and "arl=500" in repr(monitor)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"alpha": 0.05, "arl": 100}, "alpha and arl are both given"),
        ({"alpha": 1.5}, "alpha must lie between 0 and 1; got 1.5"),
        ({"arl": 0.5}, "arl must be a number of batches above 1; got 0.5"),
        ({"limit": -0.1}, "limit must lie between 0 and 0.5; got -0.1"),
    ],
)
def test_arguments_are_checked(bins, given, what):
    with pytest.raises(InputError, match=re.escape(what)):
        vc.Monitor(bins, **given)


def test_bins_are_checked():
    with pytest.raises(InputError, match="bins is a dict"):
        vc.Monitor({})
    with pytest.raises(InputError, match=r"monitor must lie between 0 and 0\.5; got 2"):
        make_bins(2)


def test_identifiers_are_not_watched():
    rows = make_rows(1000) | {"id": np.arange(1000)}
    monitor = vc.Monitor(vc.make_bins("y", "p", data=rows, monitor=0.02))
    assert monitor._cells.variables == ("age", "job")
    assert any(note.startswith("id is not watched: ") for note in monitor.notes)


def test_an_empty_batch_is_a_batch_without_evidence(bins):
    monitor = vc.Monitor(bins)
    monitor.update(make_rows(), id=1)
    before = monitor._detector.flow.copy()
    status = monitor.update({name: column[:0] for name, column in make_rows().items()}, id=2)
    assert (status.n_batches, status.n_rows) == (2, 1000)
    np.testing.assert_array_equal(monitor._detector.flow, before)


def test_memory_stays_the_same_over_many_batches(bins):
    monitor = vc.Monitor(bins)
    batches = [vc.collect(make_rows(200, seed=k), monitor._cells.slim) for k in range(20)]
    sizes = {}
    for day in range(1, 3001):
        monitor.update(batches[day % 20], id=day)
        if day in (1000, 3000):
            sizes[day] = len(str(to_dict(monitor)))
        assert len(monitor._history.blocks) <= MOST_BLOCKS
    assert sizes[3000] < 1.1 * sizes[1000]
    blocks = monitor._history.blocks
    assert sum(block.batches for block in blocks) == 3000
    assert sum(block.rows for block in blocks) == 600_000
    total = sum(block.sums[0] for block in blocks)
    np.testing.assert_allclose(total, monitor._running.n)
    assert len({block.batches for block in blocks[:-1]}) == 1
    # Ids are kept for as long as evidence that began at their batch is followed.
    assert set(np.unique(monitor._detector.start).tolist()) <= set(monitor._ids)
    assert len(monitor._ids) < 1500


def test_the_place_is_named_when_several_cells_exceed_the_evidence_that_is_followed(bins):
    monitor = vc.Monitor(bins)
    status = monitor.update(make_rows(200_000, shift=0.4), id=1)
    saturated = np.flatnonzero((monitor._detector.flow >= MOST).any(axis=1))
    assert len(saturated) > 1 and not monitor._cells.cells[saturated[0]].variable
    assert (status.variable, status.where.text) == ("age", "40 to 50")
    assert status.where.also == ()


@pytest.mark.parametrize("id", [None, True, 1.5, [1], np.datetime64("NaT"), " "])
def test_what_names_no_batch_is_refused(bins, id):
    monitor = vc.Monitor(bins)
    with pytest.raises(InputError, match="id is "):
        monitor.update(make_rows(50), id=id)
    assert monitor.n_batches == 0


def test_an_id_in_another_spelling_is_the_same_batch(bins):
    monitor = vc.Monitor(bins)
    monitor.update(make_rows(50), id=np.datetime64("2026-09-01"))
    with pytest.raises(InputError, match="id is '2026-9-1', which is already counted"):
        monitor.update(make_rows(50), id="2026-9-1")
    monitor.update(make_rows(50), id="2026-10-1")


def test_a_monitor_that_has_seen_no_label_can_be_shown(tmp_path):
    monitor = vc.Monitor(make_bins(unlabelled="drop"))
    rows = make_rows(50)
    with pytest.raises(InputError, match="batch '1' has 50 rows and no outcome"):
        monitor.update(rows | {"y": np.full(50, np.nan)}, id=1)
    monitor.update({name: column[:0] for name, column in rows.items()}, id=1)
    for name in ("page.html", "page.md", "page.json"):
        monitor.report(tmp_path / name)
    assert "After 1 batch with 0 rows" in (tmp_path / "page.md").read_text(encoding="utf-8")
    monitor.plot()


def test_the_closest_place_has_rows(bins):
    monitor = vc.Monitor(bins)
    rows = make_rows(3000, seed=8)
    young = rows["age"] < 30
    # As the mean of the scores is the rate of outcomes, all bets of cells with rows have lost.
    even = {name: column[young] for name, column in rows.items()}
    even["p"] = np.full(young.sum(), even["y"].mean())
    monitor.update(even, id=1)
    filled = monitor._running.n > 0
    assert (monitor._detector.run[filled & (monitor._cells.variable_number == 2)] <= 0).all()
    assert monitor.strongest().n > 0


def test_a_note_is_a_text(alarmed):
    monitor = copy.deepcopy(alarmed)
    for act in (monitor.acknowledge, monitor.reset):
        with pytest.raises(InputError, match="note must be a string; got 5"):
            act(5)
    assert monitor.status == alarmed.status
