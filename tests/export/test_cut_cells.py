"""Every number is found in exactly one interval, also where cuts are crowded."""

import numpy as np
import pytest

from varcal._export._sql._query.joins import CutCells

CASES = {
    "even": np.arange(100.0),
    "one": np.array([3.0]),
    "equal": np.array([1.0, 1.0, 2.0, 2.0, 2.0]),
    "crowded": np.append(np.linspace(0, 1e-3, 500), 10.0 ** np.arange(1, 12)),
    "adjacent": np.sort(np.nextafter(np.repeat([1.0, 5.0], 3), [-9, 1, 9, -9, 5, 9])),
    "large": np.array([-1e300, 0.0, 1e300]),
}


@pytest.mark.parametrize("name", CASES)
def test_places_are_those_of_a_search(name):
    cuts = CASES[name]
    grid = CutCells.of(cuts)
    rng = np.random.default_rng(0)
    near = np.nextafter(np.repeat(cuts, 2), np.tile([-np.inf, np.inf], len(cuts)))
    x = np.concatenate([cuts, near, rng.choice(cuts, 200) * rng.uniform(0.5, 1.5, 200)])
    x = np.clip(x, -1e307, 1e307)
    apart = np.clip(x, grid.low, grid.high) - grid.low
    bent = np.log(1 + apart * grid.bend) if grid.bend else apart
    # One cell more or less, as another logarithm might round, changes nothing.
    for moved in (0, -1, 1):
        cell = np.maximum(np.floor(bent * grid.scale) + moved, 0)
        held = (grid.cell == cell[:, None]) & (x[:, None] > grid.above) & (x[:, None] <= grid.up_to)
        assert (held.sum(axis=1) == 1).all()
        assert (grid.place[held.argmax(axis=1)] == np.searchsorted(cuts, x)).all()


def test_crowded_cuts_have_a_bent_grid_with_few_intervals_in_a_cell():
    assert CutCells.of(CASES["crowded"]).bend > 0
    assert np.bincount(CutCells.of(CASES["crowded"]).cell).max() < 100
    assert CutCells.of(CASES["even"]).bend == 0
