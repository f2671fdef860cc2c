"""Exact order statistics and counts of a numeric array, without sorting it."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import AnyArray, Bools, Floats, Ints

#: Up to this many numbers are simply sorted.
FEW = 30_000
#: Cells of the grid: as many as 16 bits can name.
CELLS = 1 << 16
#: Numbers by which the grid is placed, and the share of them that lies outside it at each end.
#: A grid placed badly costs time, never exactness.
PLACING, OUTSIDE = 4_096, 0.002
#: Numbers whose cells are found together: their temporaries stay in the processor's cache.
CHUNK = 1 << 16
#: A cell with more than this share of the numbers is cut up by a grid of its own.
CROWDED = 1 / 64
#: Unless it has more than this share: sorting it is then cheaper than grids within grids.
MOST_CROWDED = 1 / 2
#: In tied numbers, a cell with more than this share is looked at for being a single number.
SINGLE = 1 / 4096
#: A number with more than this share of those that place the grid is counted by itself.
ATOM = 1 / 8
#: With fewer distinct numbers than this share of those that place the grid, many numbers are
#: equal, and cells that hold one number only are told apart from the others.
TIED = 0.5


class OrderStatistics:
    r"""Numbers of an array by their rank, and ranks by number.

    Each number x falls into the cell :math:`\lfloor (x - a) \cdot scale \rfloor` of an even
    grid, kept within it. Rounding keeps the order of numbers, so that all numbers of a cell are
    at most those of the next: counts of the cells tell in which one a rank lies, and only the
    cells that are asked about are sorted. The answers are those of a sorted copy, to the bit.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Finite numbers of any type that a float64 can stand for, at least one.
    low, high : float
        The smallest and the largest of them.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=100_000)
    >>> found = OrderStatistics(x, x.min(), x.max())
    >>> bool((found.at(np.array([0, 50_000])) == np.sort(x)[[0, 50_000]]).all())
    True
    >>> bool(found.below(np.array([0.5]))[0] == (x < 0.5).sum())
    True
    """

    def __init__(self, values: AnyArray, low: float, high: float) -> None:
        self.n = len(values)
        if values.dtype.kind == "f" and values.dtype.itemsize > 8:
            values = values.astype(np.float64)
        self._values = values
        self._low, self._high = low, high
        #: Numbers of the cells that have been sorted, one cell after the other.
        self._sorted = np.zeros(0)
        self._atom: float | None = None
        if low == high:
            return
        sample = None if self.n <= FEW else _sample(values)
        if sample is not None and self._set_apart(_atom_of(sample)):
            return
        self._begin, self._scale, tied = (0.0, 0.0, False) if sample is None else _grid_over(sample)
        self._codes, counts = self._count_cells()
        self._until = np.concatenate([[0], np.cumsum(counts)])
        #: Where each cell begins in `_sorted`; −1 if it has not been sorted yet.
        self._start = np.full(len(counts), -1)
        self._crowded: dict[int, OrderStatistics] = {}
        if tied and self._codes is not None:
            self._keep_single_numbers(counts)

    def at(self, ranks: Ints) -> Floats:
        """Return the numbers of these ranks, 0 for the smallest."""
        if self._low == self._high:
            return np.full(len(ranks), self._low)
        if self._atom is not None:
            begin = int(self._rest.below(np.array([self._atom]))[0])
            after = ranks >= begin + self._n_atom
            # Ranks of the atom itself are looked up, too, and thrown away.
            within = np.minimum(ranks, self._rest.n - 1)
            found = self._rest.at(np.where(after, ranks - self._n_atom, within))
            return np.where(after | (ranks < begin), found, self._atom)
        cell = np.searchsorted(self._until, ranks, side="right") - 1
        inner = (ranks > 0) & (ranks < self.n - 1)
        self._sort_cells(cell[inner])
        found = np.where(ranks <= 0, self._low, self._high)
        known = inner & (self._start[cell] >= 0)
        own = cell[known]
        found[known] = self._sorted[self._start[own] + ranks[known] - self._until[own]]
        for number, part in self._crowded.items():
            here = inner & (cell == number)
            found[here] = part.at(ranks[here] - self._until[number])
        return found

    def below(self, values: Floats, *, equal: bool = False) -> Ints:
        """Return how many numbers are smaller than each value, or at most as large."""
        if self._low == self._high:
            return self.n * ((values > self._low) | (equal & (values == self._low)))
        if self._atom is not None:
            past = (values > self._atom) | (equal & (values == self._atom))
            return self._rest.below(values, equal=equal) + self._n_atom * past
        cell = self._cells_of(values).astype(np.intp)
        inside = (values >= self._low) & (values <= self._high)
        self._sort_cells(cell[inside])
        found = np.where(values > self._high, self.n, 0)
        side: Literal["left", "right"] = "right" if equal else "left"
        for number in np.unique(cell[inside]).tolist():
            here = inside & (cell == number)
            begin = self._until[number]
            if number in self._crowded:
                found[here] = begin + self._crowded[number].below(values[here], equal=equal)
            else:
                start = self._start[number]
                held = self._sorted[start : start + self._until[number + 1] - begin]
                found[here] = begin + np.searchsorted(held, values[here], side=side)
        return found

    def _set_apart(self, atom: float | None) -> bool:
        """Count a frequent number by itself; the others have order statistics of their own."""
        if atom is None:
            return False
        rest = self._values[self._values != atom]
        if len(rest) > (1 - ATOM / 2) * self.n:  # frequent in the sample only
            return False
        self._atom, self._n_atom = atom, self.n - len(rest)
        self._rest = OrderStatistics(rest, float(rest.min()), float(rest.max()))
        self._values = rest[:0]
        return True

    def _count_cells(self) -> tuple[NDArray[np.uint16] | None, Ints]:
        """Return the cell of each number, if there is a grid, and how many each cell has."""
        if not self._scale:
            return None, np.array([self.n])
        kernel = _kernel(self._values)
        if kernel is None:
            codes = self._cells_of(self._values)
            return codes, _count(codes)
        codes, counts = np.empty(self.n, np.uint16), np.zeros(CELLS, np.int64)
        kernel.place_in_cells(self._values, self._begin, self._scale, codes, counts)
        return codes, counts

    def _cells_of(self, values: AnyArray) -> NDArray[np.uint16]:
        """Return the cell of each number; those outside the grid belong to the end cells."""
        codes = np.empty(len(values), np.uint16)
        if not self._scale:
            codes[:] = 0
            return codes
        for start in range(0, len(values), CHUNK):
            rows = slice(start, start + CHUNK)
            with np.errstate(over="ignore"):
                place = np.subtract(values[rows], self._begin, dtype=np.float64)
                place *= self._scale
            np.maximum(place, 0.0, out=place)
            np.minimum(place, CELLS - 1, out=place)
            codes[rows] = place
        return codes

    def _keep_single_numbers(self, counts: Ints) -> None:
        """Note which cells hold one number only: they need no sorting."""
        assert self._codes is not None
        number = np.zeros(len(counts), self._values.dtype)
        mixed = counts == 0
        for start in range(0, self.n, CHUNK):
            number[self._codes[start : start + CHUNK]] = self._values[start : start + CHUNK]
        for start in range(0, self.n, CHUNK):
            codes = self._codes[start : start + CHUNK]
            mixed[codes[self._values[start : start + CHUNK] != number[codes]]] = True
        for cell in np.flatnonzero(~mixed & (counts > SINGLE * self.n)).tolist():
            only = number[cell : cell + 1]
            self._crowded[cell] = OrderStatistics(only, float(only[0]), float(only[0]))
            self._crowded[cell].n = int(counts[cell])

    def _sort_cells(self, cells: Ints) -> None:
        """Sort the numbers of these cells, unless they are sorted already."""
        wanted = np.zeros(len(self._start), dtype=bool)
        wanted[cells] = True
        wanted &= self._start < 0
        wanted[list(self._crowded)] = False
        size = np.diff(self._until)
        if self._codes is not None:
            crowded = (size > CROWDED * self.n) & (size < MOST_CROWDED * self.n)
            for number in np.flatnonzero(wanted & crowded).tolist():
                held = self._values[self._codes == number]
                self._crowded[number] = OrderStatistics(held, float(held.min()), float(held.max()))
                wanted[number] = False
        if not wanted.any():
            return
        held = self._values_of(wanted, int(size[wanted].sum()))
        before = len(self._sorted)
        self._sorted = np.concatenate([self._sorted, np.sort(held.astype(np.float64, copy=False))])
        self._start[wanted] = before + np.cumsum(size[wanted]) - size[wanted]

    def _values_of(self, wanted: Bools, many: int) -> AnyArray:
        """Return the numbers of some cells, in their order in the array."""
        if self._codes is None:
            return self._values
        kernel = _kernel(self._values)
        if kernel is None:
            marked: AnyArray = self._values[wanted[self._codes]]
            return marked
        held = np.empty(many)
        kernel.take_marked(self._values, self._codes, wanted, held)
        return held


def _kernel(values: AnyArray) -> Any:
    """Return the compiled kernels if they are wanted and take such an array, or None."""
    if values.dtype != np.float64 or not values.flags.c_contiguous:
        return None
    from varcal._engines.kernel_choice import engine_for  # noqa: PLC0415

    if engine_for(len(values)) != "fast":
        return None
    from varcal._engines import kernel_numba  # noqa: PLC0415

    return kernel_numba


def _sample(values: AnyArray) -> Floats:
    """Return numbers at even distances, sorted."""
    return np.sort(values[:: len(values) // PLACING].astype(np.float64, copy=False))


def _atom_of(sample: Floats) -> float | None:
    """Return the most frequent number of a sample if it is frequent enough."""
    ends = np.flatnonzero(np.append(sample[1:] != sample[:-1], True))
    runs = np.diff(ends, prepend=-1)
    longest = int(np.argmax(runs))
    return float(sample[ends[longest]]) if runs[longest] > ATOM * len(sample) else None


def _grid_over(sample: Floats) -> tuple[float, float, bool]:
    """Return where an even grid begins, its cells per unit (0: none), and if there are ties."""
    skip = int(OUTSIDE * len(sample))
    begin, end = sample[skip], sample[-1 - skip]
    with np.errstate(over="ignore", divide="ignore"):
        scale = float(CELLS / (end - begin))
    tied = bool(np.count_nonzero(np.diff(sample)) < TIED * len(sample))
    return float(begin), scale if 0 < scale < np.inf else 0.0, tied


def _count(codes: NDArray[np.uint16]) -> Ints:
    counts = np.zeros(CELLS, np.intp)
    for start in range(0, len(codes), 1 << 20):
        counts += np.bincount(codes[start : start + (1 << 20)], minlength=CELLS)
    return counts
