"""Small seeded versions of the worlds of benchmarks/simulate_slices.py."""

import importlib.util
import sys
from pathlib import Path

import pytest

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
