"""A grid over the cuts of a table, by which a join finds the place of a number.

A number belongs to the interval between two cuts. Joining on `above < x AND x <= up_to` alone would
compare each row with all intervals. So numbers are first given a cell of an even grid, which is
arithmetic, and joined on the cell as well; few intervals share a cell. An interval is listed in
the cells before and after those that it overlaps, too, so that rounding cannot lose it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import Floats, Ints

__all__ = ["CutCells"]

#: Cells for each interval, and intervals in the fullest cell from which another scale is tried.
_CELLS_PER_INTERVAL = (1, 4)
_CROWDED = 24
_FAR = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class CutCells:
    """A grid: cell = ⌊scale · (x − low)⌋, or ⌊scale · ln(1 + bend · (x − low))⌋ with a bend.

    Attributes
    ----------
    low, high : float
        The ends of the grid, to which numbers are moved.
    scale, bend : float
        As in the formula; a bend of 0 means an even grid.
    cell, place : ndarray of int
        For each entry of the table: the cell, and the interval, which is the number of cuts below.
    above, up_to : ndarray of float
        The ends of the interval.
    """

    low: float
    high: float
    scale: float
    bend: float
    cell: Ints
    place: Ints
    above: Floats
    up_to: Floats

    @classmethod
    def of(cls, cuts: Floats) -> CutCells:
        """Make the grid of increasing cuts; an interval between equal cuts is left out."""
        low, high = float(cuts[0]), float(cuts[-1])
        grids = [cls._grid(cuts, low, high, per * len(cuts), 0.0) for per in _CELLS_PER_INTERVAL]
        if min(map(_fullest, grids)) > _CROWDED and high > low:
            # Where most cuts are close together and some are far away.
            gaps = np.quantile(np.diff(np.unique(cuts)), [0.1, 0.5])
            grids += [cls._grid(cuts, low, high, 4 * len(cuts), 1.0 / gap) for gap in gaps]
        small = [grid for grid in grids if _fullest(grid) <= _CROWDED // 2]
        return small[0] if small else min(grids, key=_fullest)

    @classmethod
    def _grid(cls, cuts: Floats, low: float, high: float, cells: int, bend: float) -> CutCells:
        def raw(x: Floats) -> Floats:
            apart = np.minimum(np.maximum(x, low), high) - low
            return np.log(1.0 + bend * apart) if bend else apart

        with np.errstate(over="ignore", divide="ignore"):
            reach = float(raw(np.array([high]))[0])
            scale = float(cells / reach) if 0 < reach < np.inf else 0.0
        if not 0 < scale < np.inf:
            scale = 0.0
        ends = np.floor(raw(cuts) * scale).astype(np.intp)
        first = np.maximum(np.append(0, ends - 1), 0)
        last = np.append(ends + 1, cells + 1)
        above, up_to = np.append(-_FAR, cuts), np.append(cuts, _FAR)
        counts = np.where(above < up_to, last - first + 1, 0)
        place = np.repeat(np.arange(len(counts)), counts)
        before = np.cumsum(counts) - counts
        cell = np.arange(counts.sum()) - before[place] + first[place]
        return cls(low, high, scale, bend, cell, place, above[place], up_to[place])


def _fullest(grid: CutCells) -> int:
    return int(np.bincount(grid.cell).max())
