"""The search compiled by numba; `scan.py` explains it and has the same results to the bit."""

from __future__ import annotations

import numba
import numpy as np
from numba import float32, float64, int32, int64, uint8

from varcal._arrays import Floats, Ints, Singles
from varcal._engines.kernel_numba import compiled
from varcal._slices.blocks import Sizes
from varcal._slices.cells import Codes, Grid

_floats, _table, _cube = float64[::1], float64[:, ::1], float64[:, :, ::1]
_ints, _places, _rules = int64[::1], int64[:, ::1], int64[:, :, ::1]
_codes, _singles, _order = uint8[:, ::1], float32[:, ::1], int32[:, ::1]


@compiled(_ints, int64, int64, _singles, _table, _places, _floats, _table, _table, _places)
def _rectangles(index, ka, kb, E, inverse, block, penalty, top, best, where):  # type: ignore[no-untyped-def]
    n, columns = E.shape
    H = np.zeros(((ka + 1) * (kb + 1), columns))
    for r in range(n):
        line = H[index[r]]
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


@compiled(
    _order, _codes, _order, _places, _ints, _singles, _table, _rules, _floats, _floats, _floats,
    _table, _table, _rules,
)  # fmt: skip
def _extend(  # type: ignore[no-untyped-def]
    places, lines, order, starts, n_cells, Et, weights, candidates, limits, ends, penalty, top,
    best, where,
):  # fmt: skip
    columns, n_candidates = candidates.shape[:2]
    d, widest = len(lines), n_cells.max()
    h = np.zeros(d * widest * 4)
    table = h.reshape((d, widest, 4))
    out = np.zeros(3)
    for c in range(columns):
        for q in range(n_candidates):
            j, k, j_low, j_high, k_low, k_high, sign = candidates[c, q]
            if j < 0:
                continue
            h[:] = 0.0
            # Rows are visited in the order of the variable that leaves fewer of them.
            i, other, low, high = j, k, k_low, k_high
            first, last = starts[j, j_low], starts[j, j_high]
            if starts[k, k_high] - starts[k, k_low] < last - first:
                i, other, low, high = k, j, j_low, j_high
                first, last = starts[k, k_low], starts[k, k_high]
            for at in range(first, last):
                r = order[i, at]
                if low <= lines[other, r] < high:
                    e, v, w = Et[c, r], weights[r, 0], weights[r, 1]
                    for m in range(d):
                        cell = places[r, m]
                        h[cell] += e
                        h[cell + 1] += v
                        h[cell + 2] += w
                        h[cell + 3] += 1.0
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


@compiled(
    _codes, _order, _places, _ints, _singles, _table, _rules, int64, _floats, _floats, _floats,
    _table, _table,
)  # fmt: skip
def _refine(  # type: ignore[no-untyped-def]
    lines, order, starts, n_cells, Et, weights, candidates, sweeps, limits, ends, penalty, top,
    best,
):  # fmt: skip
    columns, n_candidates = candidates.shape[:2]
    h = np.zeros((n_cells.max(), 4))
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
                    b, o = (a + 1) % 3, (a + 2) % 3
                    if rule[b] < 0:
                        b, o = o, b
                    # Rows are visited in the order of the variable that leaves fewer of them.
                    i, other = rule[b], rule[o]
                    if i < 0:  # there is no other variable
                        i, first, last = m, 0, lines.shape[1]
                    else:
                        first, last = starts[i, rule[3 + 2 * b]], starts[i, rule[4 + 2 * b]]
                    o_low, o_high = rule[3 + 2 * o], rule[4 + 2 * o]
                    if other >= 0 and starts[other, o_high] - starts[other, o_low] < last - first:
                        first, last = starts[other, o_low], starts[other, o_high]
                        i, other = other, i
                        o_low, o_high = rule[3 + 2 * b], rule[4 + 2 * b]
                    h[:] = 0.0
                    for place in range(first, last):
                        r = order[i, place]
                        if other >= 0 and not o_low <= lines[other, r] < o_high:
                            continue
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


def rectangles(
    index: Ints,
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
    a, b = np.divmod(index, shape[1])
    place = (a + 1) * (shape[1] + 1) + b + 1  # with an empty line before the first cells
    _rectangles(place, *shape, E, inverse, block, penalty, top, best, where)
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
    first = np.arange(len(n_cells), dtype=np.int32) * int(n_cells.max())
    places = np.ascontiguousarray(4 * (first + grid.coarse.T.astype(np.int32)))
    starts = _starts(grid.coarse, n_cells)
    _extend(
        places, grid.coarse, grid.order, starts, n_cells, Et, weights, candidates,
        _limits(sizes), sizes.ends, penalty, top, best, where,
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
    starts = _starts(grid.middle, n_cells)
    _refine(
        grid.middle, grid.order, starts, n_cells, Et, weights, candidates, sweeps,
        _limits(sizes), sizes.ends, penalty, top, best,
    )  # fmt: skip
    return best


def _limits(sizes: Sizes) -> Floats:
    return np.array([sizes.rows, sizes.weight, sizes.variance])


def _starts(codes: Codes, n_cells: Ints) -> Ints:
    """Return the number of rows below each cell of each variable."""
    found = np.zeros((len(codes), int(n_cells.max()) + 1), dtype=np.intp)
    for line, cells in zip(found, codes, strict=True):
        line[1:] = np.bincount(cells, minlength=len(line) - 1).cumsum()
    return found
