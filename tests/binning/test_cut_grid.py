import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from varcal._binning.cut_grid import CutGrid

floats = st.floats(allow_nan=False, allow_infinity=False)


def neighbours(values):
    values = np.asarray(values, float)
    with np.errstate(over="ignore"):
        near = [np.nextafter(values, -np.inf), values, np.nextafter(values, np.inf)]
    return np.concatenate([*near, [np.inf, -np.inf, 0.0, -0.0]])


@given(
    st.lists(st.one_of(floats, st.integers(-40, 40).map(float)), min_size=1, max_size=120),
    st.lists(floats, max_size=50),
)
def test_bins_are_those_of_a_search_to_the_last_float(cuts, values):
    cuts = np.unique(cuts)
    values = np.concatenate([neighbours(cuts), values])
    found = CutGrid.of(cuts.tolist()).find(values)
    np.testing.assert_array_equal(found, np.searchsorted(cuts, values))


@pytest.mark.parametrize(
    ("name", "steps"),
    [("normal", 1), ("lognormal", 2), ("cauchy", 6), ("spread", 0), ("tied", 1), ("narrow", 1)],
)
def test_shapes_of_cuts_and_how_they_are_found(name, steps, rng):
    u = np.linspace(0, 1, 1001)[1:-1]
    values = {
        "normal": lambda: np.quantile(rng.normal(size=100_000), u),
        "lognormal": lambda: np.exp(np.quantile(rng.normal(size=100_000), u)),
        "cauchy": lambda: np.tan(np.pi * (u - 0.5)),
        "spread": lambda: np.concatenate([-np.logspace(-300, 300), np.logspace(-300, 300)]),
        "tied": lambda: np.arange(300.0),
        "narrow": lambda: 1 + np.arange(300) * np.finfo(float).eps,
    }[name]()
    cuts = np.unique(values)
    grid = CutGrid.of(cuts.tolist())
    assert grid.steps <= steps if steps else grid.steps == 0
    near = np.concatenate([neighbours(cuts), rng.choice(cuts, 5000) * rng.normal(1, 0.1, 5000)])
    np.testing.assert_array_equal(grid.find(near), np.searchsorted(cuts, near))


def test_many_cuts_need_little_memory(rng):
    cuts = np.unique(rng.normal(size=300_000))
    grid = CutGrid.of(cuts.tolist())
    assert len(grid.start) <= 1_000_000
    near = neighbours(cuts[::50])
    np.testing.assert_array_equal(grid.find(near), np.searchsorted(cuts, near))
