"""The search compiled by numba; `scan.py` explains it and has the same results to the bit."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import numba
import numpy as np
from numba import float32, float64, int64, uint8, uint32

from varcal._arrays import Floats, Ints, Singles
from varcal._search.blocks import Sizes
from varcal._search.cells import Codes, Grid

_floats, _table = float64[::1], float64[:, ::1]
_ints, _places, _rules = int64[::1], int64[:, ::1], int64[:, :, ::1]
_line, _codes, _cells, _singles = uint8[::1], uint8[:, ::1], uint32[:, ::1], float32[:, ::1]


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


@compiled(_line, _line, int64, int64, int64, _table, _floats, _floats, _table, _places)
def _limits(a, b, ka, kb, depth, weights, limits, ends, inverse, block):  # type: ignore[no-untyped-def]
    H = np.zeros((ka + 1, kb + 1, 3))
    for r in range(a.size):
        cell = H[a[r] + 1, b[r] + 1]
        cell[0] += weights[r, 0]
        cell[1] += weights[r, 1]
        cell[2] += 1.0
    for i in range(1, ka + 1):
        for j in range(1, kb + 1):
            for k in range(3):
                H[i, j, k] += H[i, j - 1, k] + H[i - 1, j, k] - H[i - 1, j - 1, k]
    ia = 0
    for a_low in range(ka):
        for a_high in range(a_low + 1, ka + 1):
            ib = 0
            for b_low in range(kb):
                for b_high in range(b_low + 1, kb + 1):
                    to, frm = H[a_high], H[a_low]
                    V = to[b_high, 0] - to[b_low, 0] - frm[b_high, 0] + frm[b_low, 0]
                    W = to[b_high, 1] - to[b_low, 1] - frm[b_high, 1] + frm[b_low, 1]
                    N = to[b_high, 2] - to[b_low, 2] - frm[b_high, 2] + frm[b_low, 2]
                    whole = a_high - a_low == ka or (depth > 1 and b_high - b_low == kb)
                    if not whole and limits[0] <= N and limits[1] <= W and limits[2] <= V:
                        inverse[ia, ib] = 1.0 / np.sqrt(V)
                    for end in ends:
                        block[ia, ib] += end > W
                    ib += 1
            ia += 1


@compiled(_line, _line, int64, int64, _singles, _table, _places, _floats, _table, _table, _places)
def _rectangles(first, second, ka, kb, E, inverse, block, penalty, top, best, where):  # type: ignore[no-untyped-def]
    n, columns = E.shape
    H = np.zeros(((ka + 1) * (kb + 1), columns))
    for r in range(n):
        line = H[(first[r] + 1) * (kb + 1) + second[r] + 1]
        e = E[r]
        for c in range(columns):
            line[c] += e[c]
    for a in range(1, ka + 1):
        for b in range(1, kb + 1):
            line, before = H[a * (kb + 1) + b], H[a * (kb + 1) + b - 1]
            for c in range(columns):
                line[c] += before[c]
    for a in range(2, ka + 1):
        for b in range(1, kb + 1):
            line, before = H[a * (kb + 1) + b], H[(a - 1) * (kb + 1) + b]
            for c in range(columns):
                line[c] += before[c]
    D = np.zeros((kb + 1, columns))
    under, over = best[0], best[1]
    under_where, over_where = where[0], where[1]
    ia = 0
    for a_low in range(ka):
        for a_high in range(a_low + 1, ka + 1):
            for b in range(1, kb + 1):
                line, to, frm = D[b], H[a_high * (kb + 1) + b], H[a_low * (kb + 1) + b]
                for c in range(columns):
                    line[c] = to[c] - frm[c]
            ib = 0
            for b_low in range(kb):
                for b_high in range(b_low + 1, kb + 1):
                    factor = inverse[ia, ib]
                    if factor > 0.0:
                        here = block[ia, ib]
                        cost = penalty[here]
                        place = ia * inverse.shape[1] + ib
                        most, to, frm = top[here], D[b_high], D[b_low]
                        for c in range(columns):
                            t = (to[c] - frm[c]) * factor
                            most[c] = max(most[c], abs(t))
                            low, high = max(-t, 0.0), max(t, 0.0)
                            u, w = low * low - cost, high * high - cost
                            u_better, w_better = u > under[c], w > over[c]
                            under_where[c] = place if u_better else under_where[c]
                            over_where[c] = place if w_better else over_where[c]
                            under[c] = u if u_better else under[c]
                            over[c] = w if w_better else over[c]
                    ib += 1
            ia += 1


@numba.njit(nogil=True, error_model="numpy")
def _best_range(h, k, sign, limits, ends, penalty, top, column, out):  # type: ignore[no-untyped-def]
    """Write the largest u among ranges of cells (not all of them), and its ends."""
    out[0], out[1], out[2] = -np.inf, 0.0, 0.0
    rows, weight, variance = limits
    for low in range(k):
        S = V = W = N = 0.0
        for high in range(low + 1, k + 1):
            S += h[high - 1, 0]
            V += h[high - 1, 1]
            W += h[high - 1, 2]
            N += h[high - 1, 3]
            if high - low == k or rows > N or weight > W or variance > V:
                continue
            t = S * (1.0 / np.sqrt(V))
            block = 0
            for end in ends:
                if end > W:
                    block += 1
            if column >= 0:
                top[block, column] = max(top[block, column], abs(t))
            size = max(t if sign else -t, 0.0)
            u = size * size - penalty[block]
            if u > out[0]:
                out[0], out[1], out[2] = u, low, high


@numba.njit(nogil=True, error_model="numpy")
def _chosen(lines, rule, without, n_variables, rows):  # type: ignore[no-untyped-def]
    """Write the rows that meet the conditions of a rule except one; return their number.

    Rows are visited one after the other: it takes less time than to jump to those of one condition.
    """
    first = second = -1
    for a in range(n_variables):
        if a != without and rule[a] >= 0:
            first, second = (a, first) if first < 0 else (first, a)
    n, count = lines.shape[1], 0
    if first < 0:
        for r in range(n):
            rows[r] = r
        return n
    if second < 0:
        second = first
    a, b = lines[rule[first]], lines[rule[second]]
    a_low, b_low = rule[n_variables + 2 * first], rule[n_variables + 2 * second]
    a_size = np.uint8(rule[n_variables + 2 * first + 1] - a_low)
    b_size = np.uint8(rule[n_variables + 2 * second + 1] - b_low)
    a_low, b_low = np.uint8(a_low), np.uint8(b_low)
    for r in range(n):
        rows[count] = r
        # Differences below zero become large numbers.
        count += int((np.uint8(a[r] - a_low) < a_size) & (np.uint8(b[r] - b_low) < b_size))
    return count


@compiled(
    _cells, _codes, _ints, _singles, _table, _rules, _floats, _floats, _floats, _table, _table,
    _rules,
)  # fmt: skip
def _extend(  # type: ignore[no-untyped-def]
    cells, lines, n_cells, Et, weights, candidates, limits, ends, penalty, top, best, where
):
    columns, n_candidates = candidates.shape[:2]
    d, widest = len(lines), n_cells.max()
    h = np.zeros((d * widest, 4))
    table = h.reshape((d, widest, 4))
    rows = np.zeros(lines.shape[1] + 1, dtype=np.int32)
    out = np.zeros(3)
    for c in range(columns):
        for q in range(n_candidates):
            rule = candidates[c, q]
            j, k, sign = rule[0], rule[1], rule[6]
            if j < 0:
                continue
            h[:] = 0.0
            for r in rows[: _chosen(lines, rule, -1, 2, rows)]:
                e, v, w = Et[c, r], weights[r, 0], weights[r, 1]
                for m in range(d):
                    cell = h[cells[r, m]]
                    cell[0] += e
                    cell[1] += v
                    cell[2] += w
                    cell[3] += 1.0
            for m in range(d):
                if m in (j, k):
                    continue
                _best_range(
                    table[m], n_cells[m], sign, (limits[0], limits[1], limits[2]), ends, penalty,
                    top, c, out,
                )  # fmt: skip
                if out[0] > best[c, q]:
                    best[c, q] = out[0]
                    where[c, q, 0], where[c, q, 1], where[c, q, 2] = m, int(out[1]), int(out[2])


@compiled(_codes, _ints, _singles, _table, _rules, int64, _floats, _floats, _floats, _table, _table)
def _refine(  # type: ignore[no-untyped-def]
    lines, n_cells, Et, weights, candidates, sweeps, limits, ends, penalty, top, best
):
    columns, n_candidates = candidates.shape[:2]
    h = np.zeros((n_cells.max(), 4))
    rows = np.zeros(lines.shape[1] + 1, dtype=np.int32)
    out = np.zeros(3)
    for c in range(columns):
        for q in range(n_candidates):
            rule = candidates[c, q]
            for _ in range(sweeps):
                changed = False
                for a in range(3):
                    m = rule[a]
                    if m < 0:
                        continue
                    h[:] = 0.0
                    for r in rows[: _chosen(lines, rule, a, 3, rows)]:
                        cell = h[lines[m, r]]
                        cell[0] += Et[c, r]
                        cell[1] += weights[r, 0]
                        cell[2] += weights[r, 1]
                        cell[3] += 1.0
                    _best_range(
                        h, n_cells[m], rule[9], (limits[0], limits[1], limits[2]), ends, penalty,
                        top, -1, out,
                    )  # fmt: skip
                    if out[0] > best[c, q]:
                        low, high = int(out[1]), int(out[2])
                        best[c, q] = out[0]
                        changed = changed or low != rule[3 + 2 * a] or high != rule[4 + 2 * a]
                        rule[3 + 2 * a], rule[4 + 2 * a] = low, high
                        W = 0.0
                        for cell_number in range(low, high):
                            W += h[cell_number, 2]
                        block = 0
                        for end in ends:
                            if end > W:
                                block += 1
                        t = np.sqrt(out[0] + penalty[block])
                        top[block, c] = max(top[block, c], t)
                if not changed:
                    break


def limits(
    a: Codes, b: Codes, shape: tuple[int, int], weights: Floats, sizes: Sizes, depth: int
) -> tuple[Floats, Ints]:
    """Return 1/√V of every rectangle and its block, as in `scan.limits`."""
    size = tuple(k * (k + 1) // 2 for k in shape)
    inverse, block = np.zeros(size), np.zeros(size, dtype=np.intp)
    _limits(a, b, *shape, depth, weights, _least(sizes), sizes.ends, inverse, block)
    return inverse, block


def rectangles(
    a: Codes,
    b: Codes,
    shape: tuple[int, int],
    E: Singles,
    inverse: Floats,
    block: Ints,
    penalty: Floats,
    top: Floats,
) -> tuple[Floats, Ints]:
    """Scan all rectangles of cells of two variables, as in `scan.rectangles`."""
    best = np.full((2, E.shape[1]), -np.inf)
    where = np.zeros((2, E.shape[1]), dtype=np.intp)
    _rectangles(a, b, *shape, E, inverse, block, penalty, top, best, where)
    return best, where


def extend(
    grid: Grid,
    n_cells: Ints,
    Et: Singles,
    weights: Floats,
    candidates: Ints,
    sizes: Sizes,
    penalty: Floats,
    top: Floats,
) -> tuple[Floats, Ints]:
    """Add a range of one more variable to rectangles, as in `scan.extend`."""
    best = np.full(candidates.shape[:2], -np.inf)
    where = np.zeros((*candidates.shape[:2], 3), dtype=np.intp)
    first = np.arange(len(n_cells), dtype=np.uint32) * np.uint32(n_cells.max())
    cells = np.ascontiguousarray(first + grid.coarse.T)
    _extend(
        cells, grid.coarse, n_cells, Et, weights, candidates, _least(sizes), sizes.ends, penalty,
        top, best, where,
    )  # fmt: skip
    return best, where


def refine(
    grid: Grid,
    n_cells: Ints,
    Et: Singles,
    weights: Floats,
    candidates: Ints,
    sweeps: int,
    sizes: Sizes,
    penalty: Floats,
    top: Floats,
) -> Floats:
    """Choose one variable's range again at a time, as in `scan.refine`."""
    best = np.full(candidates.shape[:2], -np.inf)
    _refine(
        grid.middle, n_cells, Et, weights, candidates, sweeps, _least(sizes), sizes.ends, penalty,
        top, best,
    )  # fmt: skip
    return best


def _least(sizes: Sizes) -> Floats:
    return np.array([sizes.rows, sizes.weight, sizes.variance])
