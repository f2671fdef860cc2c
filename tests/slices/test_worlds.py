"""Small seeded versions of the worlds of benchmarks/simulate_slices.py."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import varcal as vc

pytest.importorskip("numba", reason="without the compiled kernels this takes minutes")
FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def simulation():
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("simulate", FOLDER / "simulate_slices.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module


def test_calibrated_models_are_rarely_rejected(simulation, monkeypatch):
    monkeypatch.setitem(simulation.NULLS, "rare", (1000, 8))
    found = simulation.null_design("rare", seed=1, n_outcomes=20, draws=39)
    # 20 tests at 5 % that share their simulated outcomes: 6 or more would be a fault.
    assert (found <= 0.05).sum() < 6
    assert found.mean() > 0.25


@pytest.mark.parametrize("name", ["average", "single", "groups"])
def test_known_gaps_and_groups_are_not_slices(name, simulation, monkeypatch):
    monkeypatch.setitem(simulation.NULLS, name, (1000, 8))
    found = simulation.null_design(name, seed=1, n_outcomes=5, draws=39)
    assert (found <= 0.05).sum() < 3


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_planted_slices_are_found_and_covered(depth, simulation):
    rng = np.random.default_rng([depth, 5])
    world = simulation.design(rng, 4000)
    # 20 % of the rows, by one, two or three conditions.
    limits = {1: (0.84,), 2: (0.0, 0.25), 3: (-0.3, 0.2, 0.2)}[depth]
    inside = np.ones(len(world), dtype=bool)
    for name, limit, sign in zip(("x7", "x8", "x0"), limits, (1, -1, 1), strict=False):
        inside &= sign * world.X[name] > sign * limit
    rate = simulation.rates(world.s, inside, simulation.signed_gap(rng, world.s, inside, 0.2))
    y = rng.random(len(world)) < rate
    one = vc.slices(y, world.s, world.X, draws=39)[0]
    shown = one.mask(world.X)
    assert (shown & inside).sum() / (shown | inside).sum() > 0.6
    assert one.depth <= depth
    assert one.low <= (world.s - rate)[shown].mean() <= one.high


def test_a_calibrator_repairs_a_planted_slice(simulation):
    """On rows that neither the search nor the calibrator has seen."""
    rng = np.random.default_rng(3)
    world = simulation.design(rng, 12_000)
    world = replace(world, X={name: world.X[name] for name in ("x0", "x1", "x7", "kind1")})
    inside = (world.X["x7"] > 0.3) & (world.X["x1"] < 0)
    y = (rng.random(len(world)) < simulation.rates(world.s, inside, -0.2)).astype(int)
    first, last = slice(0, 8000), slice(8000, None)
    X = {name: column[first] for name, column in world.X.items()}
    new = {name: column[last] for name, column in world.X.items()}
    one = vc.slices(y[first], world.s[first], X, draws=39)[0]
    names = [condition.variable for condition in one.conditions]
    assert set(names) == {"x1", "x7"}
    calibrator = vc.VariableCalibrator().fit(
        world.s[first], y[first], {name: X[name] for name in names}
    )
    repaired = calibrator.predict_proba(world.s[last], {name: new[name] for name in names})[:, 1]
    mask = one.mask(new)
    before = world.s[last][mask].mean() - y[last][mask].mean()
    after = repaired[mask].mean() - y[last][mask].mean()
    assert before < -0.12
    assert abs(after) < 0.04
    compared = vc.compare(
        y[last], {"before": world.s[last], "repaired": repaired}, {"slice": mask}
    )
    assert "fixed" in repr(compared)
