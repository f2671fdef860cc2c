"""Kernels compiled by numba that sum rows into bins, bit for bit equal to the numpy kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from typing import Any

import numba
import numpy as np
from numba import boolean, float64, int64, uint8, uint16, uint32
from numba.core.types import Array
from numpy.typing import NDArray

from varcal._binning.bins import Bins, NumericBins, joint_index
from varcal._binning.stats import FIELDS
from varcal._input.events import Derived, SlicedColumn
from varcal._input.variables import Variable

#: Blocks of rows per task of a thread, so that starting a task costs little beside its work.
_BLOCKS_PER_TASK = 4
#: Upper limit of threads: more of them wait for each other.
_MOST_THREADS = 8


def _readonly(number: Any) -> Any:
    """Return the type of a contiguous array that may be read-only."""
    return Array(number, 1, "C", readonly=True)


_floats, _places, _flags = _readonly(float64), _readonly(uint32), _readonly(uint8)
_output, _sums = uint32[::1], float64[:, ::1]


def compiled(*types: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile a function for arguments of these types when it is first called.

    The machine code is cached for the next process if there is a writable folder for it.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @cache
        def kernel() -> Callable[..., Any]:
            options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
            try:
                return numba.njit(types, cache=True, **options)(function)
            except (RuntimeError, OSError):
                return numba.njit(types, **options)(function)

        return wraps(function)(lambda *values: kernel()(*values))

    return decorate


@compiled(_floats, _floats, _places, float64, int64, uint32, _output)
def _look_up(values, cuts, start, scale, steps, missing, out):  # type: ignore[no-untyped-def]
    """Write the number of cuts below each value (`missing` for NaN); return the number of NaN."""
    top = float(start.size - 1)
    low = cuts[0]
    absent = 0
    for i in range(values.size):
        v = values[i]
        place = (v - low) * scale
        place = place if place > 0.0 else 0.0  # also if it is NaN
        place = place if place < top else top
        k = start[np.uint32(np.int32(place))]
        out[i] = k + np.uint32(v > cuts[k])
        absent += v != v
    for _ in range(steps - 1):
        for i in range(values.size):
            out[i] += np.uint32(values[i] > cuts[out[i]])
    if absent:
        for i in range(values.size):
            if values[i] != values[i]:
                out[i] = missing
    return absent


@compiled(_floats, _floats, uint32, _output)
def _search(values, cuts, missing, out):  # type: ignore[no-untyped-def]
    """Do the same as `_look_up` by bisection, for cuts too close together for an even grid."""
    absent = 0
    for i in range(values.size):
        v = values[i]
        base = np.uint32(0)
        left = np.uint32(cuts.size)
        while left > 1:
            half = left >> np.uint32(1)
            base += half * np.uint32(cuts[base + half - np.uint32(1)] < v)
            left -= half
        out[i] = base + np.uint32(cuts[base] < v)
        if v != v:
            out[i] = missing
            absent += 1
    return absent


@compiled(_floats, _readonly(int64), float64[::1], uint8[::1])
def _claim(p, y, score, hit):  # type: ignore[no-untyped-def]
    """Write the larger of p and 1 − p, and whether its class is that of y."""
    for i in range(p.size):
        positive, negative = p[i], 1.0 - p[i]
        score[i] = positive if positive > negative else negative
        hit[i] = (positive > 0.5) == (y[i] == 1)


@compiled(_places, _floats, _flags, _sums)
def _add_plain(cell, score, hit, sums):  # type: ignore[no-untyped-def]
    """Add n, hit and score."""
    counts = np.zeros(2 * len(sums), np.uint32)
    scores = np.zeros(len(sums))
    for i in range(cell.size):
        k = cell[i]
        counts[np.uint32(2) * k + np.uint32(hit[i])] += np.uint32(1)
        scores[k] += score[i]
    for k in range(len(sums)):
        sums[k, 0] = float(counts[2 * k] + counts[2 * k + 1])
        sums[k, 1] = float(counts[2 * k + 1])
        sums[k, 2] = scores[k]


@compiled(_floats, _floats, _places, float64, int64, uint32, _floats, _flags, _sums)
def _find_and_add_plain(values, cuts, start, scale, steps, missing, score, hit, sums):  # type: ignore[no-untyped-def]
    """Do the same as `_look_up` and `_add_plain` in one loop, which keeps no cells."""
    counts = np.zeros(2 * len(sums), np.uint32)
    scores = np.zeros(len(sums))
    top = float(start.size - 1)
    low = cuts[0]
    absent = 0
    for i in range(values.size):
        v = values[i]
        place = (v - low) * scale
        place = place if place > 0.0 else 0.0  # also if it is NaN
        place = place if place < top else top
        k = start[np.uint32(np.int32(place))]
        for _ in range(steps):
            k += np.uint32(v > cuts[k])
        if v != v:
            k = missing
            absent += 1
        counts[np.uint32(2) * k + np.uint32(hit[i])] += np.uint32(1)
        scores[k] += score[i]
    for k in range(len(sums)):
        sums[k, 0] = float(counts[2 * k] + counts[2 * k + 1])
        sums[k, 1] = float(counts[2 * k + 1])
        sums[k, 2] = scores[k]
    return absent


@compiled(_places, _floats, _flags, _floats, _sums)
def _add_plain_weighted(cell, score, hit, weight, sums):  # type: ignore[no-untyped-def]
    """Add n, weight, hit and score."""
    for i in range(cell.size):
        k, w = cell[i], weight[i]
        sums[k, 0] += 1.0
        sums[k, 1] += w
        sums[k, 2] += w * float(hit[i])
        sums[k, 3] += w * score[i]


@compiled(_places, _floats, _floats, _flags, _sums)
def _add_moments(cell, x, score, hit, sums):  # type: ignore[no-untyped-def]
    """Add n, hit, score, square, null, fourth and x."""
    for i in range(cell.size):
        k, s, h = cell[i], score[i], float(hit[i])
        e, u, at = h - s, s * (1.0 - s), x[i]
        sums[k, 0] += 1.0
        sums[k, 1] += h
        sums[k, 2] += s
        sums[k, 3] += e * e
        sums[k, 4] += u
        sums[k, 5] += u * (1.0 - 6.0 * u)
        sums[k, 6] += at if abs(at) < np.inf else 0.0


@compiled(_places, _floats, _floats, _flags, _floats, _sums)
def _add_moments_weighted(cell, x, score, hit, weight, sums):  # type: ignore[no-untyped-def]
    """Add all fields, in their order."""
    for i in range(cell.size):
        k, s, h, w = cell[i], score[i], float(hit[i]), weight[i]
        e, u, w2, at = h - s, s * (1.0 - s), w * w, x[i]
        e2 = e * e
        sums[k, 0] += 1.0
        sums[k, 1] += w
        sums[k, 2] += w2
        sums[k, 3] += w * h
        sums[k, 4] += w * s
        sums[k, 5] += w2 * h
        sums[k, 6] += w2 * s
        sums[k, 7] += w * e2
        sums[k, 8] += w2 * e2
        sums[k, 9] += w * u
        sums[k, 10] += w2 * u
        sums[k, 11] += w2 * w2 * (u * (1.0 - 6.0 * u))
        sums[k, 12] += w * at if abs(at) < np.inf else 0.0


@compiled(_readonly(int64), Array(float64, 2, "C", readonly=True), _sums)
def _add_rows(cell, values, sums):  # type: ignore[no-untyped-def]
    """Add rows of values to the rows of `sums` that `cell` names."""
    for i in range(cell.size):
        for k in range(values.shape[1]):
            sums[cell[i], k] += values[i, k]


def add_rows(
    cell: NDArray[np.intp], values: NDArray[np.float64], total: NDArray[np.float64]
) -> None:
    """Do the same as `bet_sums.add_rows`."""
    sums = np.zeros_like(total)
    _add_rows(np.ascontiguousarray(cell, np.int64), np.ascontiguousarray(values), sums)
    total += sums


def sum_rows(
    bins: Bins,
    variables: Sequence[Variable],
    score: SlicedColumn,
    hit: SlicedColumn,
    weight: NDArray[np.float64] | None,
    bucket: NDArray[np.intp] | None,
    size: int,
    *,
    moments: bool,
    step: int,
) -> NDArray[np.float64]:
    """Do the same as `kernel_numpy.sum_rows`: sum blocks of `step` rows, and add them in order."""
    add, names = _ADDING[moments, weight is not None]
    with_grid = _with_grid(bins)

    def block(start: int) -> NDArray[np.float64]:
        rows = slice(start, start + step)
        s, h = _claims_of(score, hit, rows)
        sums = np.zeros((size, len(names)))
        if with_grid is not None and add is _add_plain and bucket is None:
            values = _numbers(variables[0], rows)
            absent = _find_and_add_plain(values, *_look_up_in(with_grid), s, h, sums)
            _check_missing(absent, with_grid, variables[0], rows)
            return sums
        cell = _cells_of(bins, variables, rows)
        if bucket is not None:
            cell += bucket[rows].astype(np.uint32) * np.uint32(bins.size)
        w = () if weight is None else (np.ascontiguousarray(weight[rows]),)
        if moments:
            x = _numbers(variables[0], rows) if isinstance(bins, NumericBins) else np.zeros(len(s))
            add(cell, x, s, h, *w, sums)
        else:
            add(cell, s, h, *w, sums)
        return sums

    total = np.zeros((size, len(names)))
    for sums in _in_order(block, range(0, len(score), step)):
        total += sums
    table = np.zeros((len(FIELDS), size))
    table[[FIELDS.index(name) for name in names]] = total.T
    return table


#: The kernels by whether all moments are needed and weights are given, and the fields they sum.
_ADDING = {
    (False, False): (_add_plain, ("n", "hit", "score")),
    (False, True): (_add_plain_weighted, ("n", "weight", "hit", "score")),
    (True, False): (_add_moments, ("n", "hit", "score", "square", "null", "fourth", "x")),
    (True, True): (_add_moments_weighted, FIELDS),
}


def _in_order(
    block: Callable[[int], NDArray[np.float64]], starts: Sequence[int]
) -> Iterator[NDArray[np.float64]]:
    """Yield the sums of blocks in order, computed by as many threads as numba may use."""
    # numba.get_num_threads() would start threads of numba, which do not survive a fork.
    allowed = vars(numba.config)["NUMBA_NUM_THREADS"]
    threads = min(allowed, _MOST_THREADS, -(-len(starts) // _BLOCKS_PER_TASK))
    if threads < 2:
        yield from map(block, starts)
        return
    tasks = [starts[k : k + _BLOCKS_PER_TASK] for k in range(0, len(starts), _BLOCKS_PER_TASK)]
    with ThreadPoolExecutor(threads) as pool:
        for several in pool.map(lambda task: [block(start) for start in task], tasks):
            yield from several


def _claims_of(
    score: SlicedColumn, hit: SlicedColumn, rows: slice
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the scores and hits of rows, contiguous."""
    if (
        isinstance(score, Derived)
        and isinstance(hit, Derived)
        and score.source
        and hit.source is score.source
    ):
        p, y = (column[rows] for column in score.source)
        if y.dtype == np.int64:
            s, h = np.empty(len(p)), np.empty(len(p), np.uint8)
            _claim(np.ascontiguousarray(p), np.ascontiguousarray(y), s, h)
            return s, h
    return np.ascontiguousarray(score[rows]), np.ascontiguousarray(hit[rows]).view(np.uint8)


def _cells_of(bins: Bins, variables: Sequence[Variable], rows: slice) -> NDArray[np.uint32]:
    """Return the bin of each row."""
    if not isinstance(bins, NumericBins) or bins.low > bins.high:
        return joint_index(bins, variables, rows).astype(np.uint32)
    values = _numbers(variables[0], rows)
    found = np.empty(len(values), np.uint32)
    if bins.grid.steps:
        absent = _look_up(values, *_look_up_in(bins), found)
    else:
        absent = _search(values, bins.grid.cuts, bins.size - 1, found)
    _check_missing(absent, bins, variables[0], rows)
    return found


def _with_grid(bins: Bins) -> NumericBins | None:
    """Return bins whose values can be looked up in a grid, and None for others."""
    if isinstance(bins, NumericBins) and bins.low <= bins.high and bins.grid.steps:
        return bins
    return None


def _look_up_in(bins: NumericBins) -> tuple[Any, ...]:
    """Return the arguments of a look-up: the grid, and the bin of missing values."""
    grid = bins.grid
    return grid.cuts, grid.start, grid.scale, grid.steps, bins.size - 1


def _check_missing(absent: int, bins: NumericBins, variable: Variable, rows: slice) -> None:
    if absent and not bins.missing:
        bins.index(variable, rows)  # raises the error for missing values


def _numbers(variable: Variable, rows: slice) -> NDArray[np.float64]:
    return np.ascontiguousarray(variable.values[rows], dtype=np.float64)


_codes, _marks, _counts = uint16[::1], _readonly(boolean), int64[::1]


@compiled(_floats, float64, float64, _codes, _counts)
def place_in_cells(values, begin, scale, codes, counts):  # type: ignore[no-untyped-def]
    """Write the cell of each number of an even grid, and add up how many each cell has."""
    top = float(counts.size - 1)
    for i in range(values.size):
        place = (values[i] - begin) * scale
        cell = 0 if place <= 0.0 else int(min(place, top))
        codes[i] = cell
        counts[cell] += 1


@compiled(_floats, Array(uint16, 1, "C", readonly=True), _marks, float64[::1])
def take_marked(values, codes, wanted, out):  # type: ignore[no-untyped-def]
    """Write the numbers whose cells are wanted, in their order."""
    k = 0
    for i in range(values.size):
        if wanted[codes[i]]:
            out[k] = values[i]
            k += 1
