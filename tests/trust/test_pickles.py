"""Every result can be pickled, and the copy says the same."""

import pickle

import numpy as np
import pytest

import varcal as vc


def results():
    sim = vc.datasets.make_gap(600, "tilt", vece=0.1, random_state=0)
    X = {"v": sim.v, "kind": np.where(np.arange(600) % 3, "a", "b")}
    frame = {"y": sim.y, "p": sim.p, **X}
    bins = vc.make_bins("y", "p", data=frame, monitor=0.02)
    monitor = vc.Monitor(bins)
    monitor.update(frame, id=1)
    found = vc.audit(sim.y, sim.p, X, slices=True)
    fitted = vc.VariableCalibrator().fit(sim.p, sim.y, X)
    yield from (found, found.since(found), found.ladder, found.intersections, *found.rows)
    yield vc.compare(sim.y, {"one": sim.p, "other": 1 - sim.p}, X)
    yield from (vc.curve(sim.y, sim.p, sim.v), vc.reliability(sim.y, sim.p))
    yield from (vc.estimate(sim.y, sim.p, sim.v), vc.bin_table(sim.y, sim.p, sim.v))
    yield from (vc.slices(sim.y, sim.p, X, draws=19), vc.surface(sim.y, sim.p, *X.values()))
    yield from (vc.collect(frame, bins), bins, monitor, monitor.status, sim)
    yield from (fitted.effects(), fitted.describe(), fitted.to_python(), fitted.to_sql("duckdb"))
    yield vc.ece_scorer


def by_pickle(value):
    return pickle.loads(pickle.dumps(value))


def content(value):
    """Return what a result says, in a form that can be compared."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return value if isinstance(value, str) else repr(value)


@pytest.mark.filterwarnings("ignore")
def test_results_survive():
    for value in results():
        again = by_pickle(value)
        assert type(again) is type(value)
        np.testing.assert_equal(content(again), content(value))


def test_a_ladder_that_was_not_judged_is_not_pickled():
    """It refers to all rows; one that was judged is part of the pickle."""
    sim = vc.datasets.make_gap(20_000, random_state=0)
    found = vc.audit(sim.y, sim.p, {"v": sim.v})
    again = by_pickle(found)
    assert again.ladder is None and "rows are not kept" in again.ladder_obstacle
    assert len(pickle.dumps(found)) < 20_000 * 8
    few = vc.audit(sim.y[:500], sim.p[:500], {"v": sim.v[:500]})
    assert few.ladder.to_dict() == by_pickle(few).ladder.to_dict()
