"""CutGrid: the bin of each value by a look-up in an even grid, exact and without a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import Floats, Ints

# Up to this many cuts, comparing with each in turn beats a look-up.
_FEW_CUTS = 24
# Cells a cut: first a grid that stays in cache, then finer ones where cuts crowd together.
_CELLS_A_CUT = (4, 16, 64)
_MOST_CELLS = 1_000_000
# The most comparisons after a look-up; beyond, a binary search is faster.
_MOST_STEPS = 6


@dataclass(frozen=True, eq=False)
class CutGrid:
    """Increasing cuts, and an even grid over them that tells where to begin comparing.

    The cell of a value is ⌊(v − cut₀)·scale⌋, kept within the grid. Rounding keeps the order of
    values, so that a cut in an earlier cell is below v, and one in a later cell is not: only the
    cuts in the cell of v itself need to be compared with it.

    Attributes
    ----------
    cuts : ndarray of float
        The cuts, and infinity after the last.
    start : ndarray of uint32
        The number of cuts in the cells before each.
    scale : float
        Cells a unit of the variable.
    steps : int
        The most cuts that a cell holds, or 0 where a search is better.
    """

    cuts: Floats
    start: NDArray[np.uint32]
    scale: float
    steps: int

    @classmethod
    def of(cls, cuts: Sequence[float]) -> CutGrid:
        """Lay a grid over cuts.

        Examples
        --------
        >>> CutGrid.of([1.0, 2.0, 4.0]).find(np.array([0.5, 2.0, 3.0, np.inf]))
        array([0, 1, 2, 3])
        """
        ends = np.array([*cuts, np.inf])
        grid = cls(ends, np.zeros(1, np.uint32), 0.0, len(cuts))
        for cells in (min(many * len(ends), _MOST_CELLS) for many in _CELLS_A_CUT):
            if grid.steps <= 1:
                break
            with np.errstate(over="ignore", divide="ignore"):
                scale = float((cells - 1) / (ends[-2] - ends[0]))
            if not 0 < scale < np.inf:  # the span of the cuts is beyond what floats can hold
                break
            held = np.bincount(((ends[:-1] - ends[0]) * scale).astype(np.intp), minlength=cells)
            start = (np.cumsum(held) - held).astype(np.uint32)
            grid = cls(ends, start, scale, int(held.max()))
        if grid.steps <= _MOST_STEPS:
            return grid
        return cls(ends, grid.start, grid.scale, 0)

    def find(self, values: Floats) -> Ints:
        """Return the number of cuts below each value (NaN: any)."""
        if len(self.cuts) - 1 <= _FEW_CUTS:
            found = np.zeros(len(values), dtype=np.uint8)
            for cut in self.cuts[:-1]:
                found += values > cut
            return found.astype(np.intp)
        if not self.steps:
            return np.searchsorted(self.cuts[:-1], values, side="left")
        with np.errstate(invalid="ignore", over="ignore"):
            place = values - self.cuts[0]
            place *= self.scale
        np.fmax(place, 0.0, out=place)  # also where it is NaN
        np.minimum(place, len(self.start) - 1, out=place)
        cell = place.astype(np.intp)
        index = self.start[cell].astype(np.intp)
        for _ in range(self.steps):
            index += values > self.cuts[index]
        return index
