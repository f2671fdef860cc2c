"""Cells of variables: small numbers that tables and trees read in place of values.

Cell 0 holds missing values. A number has a cell for each of its values if these are few, otherwise
cells of about equal weight. A category has a cell for each of its frequent levels; cell 1 holds all
others, also those that are not in the calibration rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators._variable._columns.spline_basis import weighted_counts

#: Cells of a variable at most, missing values included. With 128 trees were better on one world of
#: 50,000 rows and worse on four others; two codes of 64 fit into one small table of a prediction.
MOST_CELLS = 64
#: The weight of a level with a cell of its own, and the number of such levels at most. The first
#: stage has fewer pooled levels: it may forget the names of those that it pools.
LEVEL_ROWS = 20.0
OWN_LEVELS = 50
#: Cells of a number in a table of a pair at most; neighbours are merged.
COARSE_CELLS = 32


@dataclass(frozen=True, eq=False)
class NumberCells:
    """The cells of a number.

    Attributes
    ----------
    cuts : ndarray
        Increasing numbers; a value is in cell 1 + #{cut < value}.
    """

    cuts: Floats

    def _check_saved(self) -> None:
        """Raise ValueError unless cuts increase and are as many as codes allow."""
        if self.cuts.ndim != 1 or not 0 < len(self.cuts) <= MOST_CELLS - 2:
            raise ValueError("a number has no cuts or too many")
        if not np.isfinite(self.cuts).all() or not (self.cuts[1:] > self.cuts[:-1]).all():
            raise ValueError("cuts do not increase")

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.cuts) + 2

    def codes(self, values: AnyArray) -> NDArray[np.uint8]:
        """Return the cell of each value.

        >>> NumberCells(np.array([1.0, 2.0])).codes(np.array([np.nan, 1.0, 1.5, 7.0]))
        array([0, 1, 2, 3], dtype=uint8)
        """
        found = np.searchsorted(self.cuts, values) + 1
        found[np.isnan(values)] = 0
        return found.astype(np.uint8)

    def coarse(self) -> Ints:
        """Return the cell in a table of a pair, for each cell."""
        inner = self.size - 1
        merged = np.arange(inner) * min(inner, COARSE_CELLS - 1) // inner
        return np.append(0, merged + 1)


@dataclass(frozen=True, eq=False)
class LevelCells:
    """The cells of a category.

    Attributes
    ----------
    cell : ndarray of shape (n_levels + 2,)
        The cell of each fitted level, then of unseen levels (code −2) and of missing values (−1).
    """

    cell: Ints

    def _check_saved(self) -> None:
        """Raise ValueError unless all levels have a cell."""
        if self.cell.ndim != 1 or len(self.cell) < 2:
            raise ValueError("levels have no cells")
        if self.cell.min() < 0 or self.cell.max() >= MOST_CELLS:
            raise ValueError("a level has an unknown cell")

    @property
    def size(self) -> int:
        """The number of cells."""
        return max(int(self.cell.max(initial=1)) + 1, 2)

    def codes(self, values: AnyArray) -> NDArray[np.uint8]:
        """Return the cell of each code of a level."""
        return self.cell[values].astype(np.uint8)

    def coarse(self) -> Ints:
        """Return the cell in a table of a pair, for each cell."""
        return np.arange(self.size)

    def without(self, rare: Ints) -> LevelCells:
        """Return the cells with one entry, the last of the levels, in place of some equal ones.

        >>> LevelCells(np.array([2, 1, 3, 1, 1, 0])).without(np.array([1, 3])).cell
        array([2, 3, 1, 1, 0])
        """
        kept = np.setdiff1d(np.arange(len(self.cell) - 2), rare)
        return LevelCells(np.concatenate([self.cell[kept], [1], self.cell[-2:]]))


def cells_of(
    values: AnyArray, n_levels: int, mass: Floats | None
) -> NumberCells | LevelCells | None:
    """Return the cells of a variable; None where nothing varies.

    Parameters
    ----------
    values : ndarray
        Numbers, or codes of levels.
    n_levels : int
        The number of levels, 0 for numbers.
    mass : ndarray or None
        The number of rows that each row stands for.

    Examples
    --------
    >>> cells_of(np.array([1.0, 2.0, 4.0, np.nan]), 0, None).cuts
    array([1.5, 3. ])
    >>> cells_of(np.repeat([0, 1, 2], [30, 1, 1]), 3, None).cell
    array([2, 1, 1, 1, 0])
    """
    if n_levels:
        return _level_cells(values, n_levels, mass)
    known = ~np.isnan(values)
    found, counts = weighted_counts(values[known], None if mass is None else mass[known])
    if len(found) < 2:
        return None
    cells = MOST_CELLS - 1
    if len(found) <= cells:
        # Halved first: the sum of two values may overflow.
        return NumberCells(found[:-1] / 2 + found[1:] / 2)
    reached = np.cumsum(counts)
    at = np.searchsorted(reached, np.arange(1, cells) / cells * reached[-1] * (1 - 1e-12))
    return NumberCells(np.unique(found[at[at < len(found) - 1]]))


def _level_cells(codes: AnyArray, n_levels: int, mass: Floats | None) -> LevelCells | None:
    held = codes >= 0
    counts = np.bincount(
        codes[held], None if mass is None else mass[held], minlength=n_levels
    ).astype(np.float64)
    largest = np.argsort(-counts, kind="stable")[:OWN_LEVELS]
    own = np.sort(largest[counts[largest] >= LEVEL_ROWS])
    if not len(own) or np.count_nonzero(counts) + (not held.all()) < 2:
        return None
    cell = np.ones(n_levels + 2, dtype=np.intp)
    cell[own] = np.arange(2, len(own) + 2)
    cell[-1] = 0
    return LevelCells(cell)
