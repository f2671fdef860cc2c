"""The search with numpy: sums over rectangles and ranges for many columns of residuals at once.

`scan_numba.py` has the same functions compiled. All sums are exact, because residuals and variances
are whole multiples of a power of two (`outcomes.py`), so that both give the same result to the bit.

Columns of residuals are the data (column 0) and simulated outcomes. For a slice, t = S·V^(−1/2)
with S its sum of residuals and V its variance. Slices compete by u = t² − penalty; the penalty
depends on the depth and the size of the slice (`blocks.py`).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from varcal._arrays import Floats, Ints, Singles
from varcal._search.blocks import Sizes
from varcal._search.cells import Codes, Grid

#: Numbers that are worked on at once.
_MOST_NUMBERS = 1 << 22


@cache
def ranges_of(n_cells: int) -> tuple[Ints, Ints]:
    """Return the first and the last + 1 cell of every range of neighbouring cells.

    >>> low, high = ranges_of(2)
    >>> low.tolist(), high.tolist()
    ([0, 0, 1], [1, 2, 2])
    """
    low, high = np.triu_indices(n_cells)
    return low, high + 1


def limits(
    a: Codes, b: Codes, shape: tuple[int, int], weights: Floats, sizes: Sizes, depth: int
) -> tuple[Floats, Ints]:
    """Return 1/√V of every rectangle, 0 where it is not searched, and its block.

    Parameters
    ----------
    a, b : ndarray
        The cells of each row; of one variable alone, b is 0.
    shape : tuple
        The number of cells of each variable.
    weights : ndarray of shape (rows, 2)
        The variance and the weight of each row.
    sizes : Sizes
        What a slice needs to be searched.
    depth : {1, 2}
        The number of variables; a rectangle has not all cells of any of them.
    """
    index = _index(a, b, shape)
    H = np.zeros((3, shape[0] + 1, shape[1] + 1))
    for k, term in enumerate((weights[:, 0], weights[:, 1], None)):
        H[k, 1:, 1:] = np.bincount(index, term, shape[0] * shape[1]).reshape(shape)
    H = H.cumsum(axis=1).cumsum(axis=2)
    a_low, a_high = ranges_of(shape[0])
    b_low, b_high = ranges_of(shape[1])
    D = H[:, a_high] - H[:, a_low]
    V, W, N = D[:, :, b_high] - D[:, :, b_low]
    searched = (sizes.rows <= N) & (sizes.weight <= W) & (sizes.variance <= V)
    searched[a_high - a_low == shape[0]] = False
    if depth > 1:
        searched[:, b_high - b_low == shape[1]] = False
    inverse = np.where(searched, 1.0 / np.sqrt(np.where(searched, V, 1.0)), 0.0)
    return np.ascontiguousarray(inverse), np.ascontiguousarray(sizes.block_of(W))


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
    """Scan all rectangles of cells of two variables.

    Parameters
    ----------
    a, b, shape
        The cells of each row and their numbers, as in `limits`.
    E : ndarray of shape (rows, columns)
        Residuals.
    inverse, block : ndarray of shape (ranges of a, ranges of b)
        1/√V of each rectangle, 0 where it is not searched, and its block.
    penalty : ndarray
        The penalty of each block.
    top : ndarray of shape (blocks, columns)
        The largest |t| of each block so far; it is updated.

    Returns
    -------
    best, where : ndarray of shape (2, columns)
        The largest u among rectangles with too few and with too many hits, and their positions.
    """
    n, columns = E.shape
    from scipy.sparse import csr_array  # noqa: PLC0415  only a search needs it

    one_hot = csr_array(
        (np.ones(n, np.float64), _index(a, b, shape), np.arange(n + 1)),
        shape=(n, shape[0] * shape[1]),
    )
    sums = one_hot.T @ E.astype(np.float64)
    H = np.zeros((shape[0] + 1, shape[1] + 1, columns))
    H[1:, 1:] = sums.reshape(*shape, columns)
    H = H.cumsum(axis=0).cumsum(axis=1)
    a_low, a_high = ranges_of(shape[0])
    b_low, b_high = ranges_of(shape[1])
    best = np.full((2, columns), -np.inf)
    where = np.zeros((2, columns), dtype=np.intp)
    step = max(1, _MOST_NUMBERS // (len(b_low) * columns))
    for first in range(0, len(a_low), step):
        some = slice(first, first + step)
        D = H[a_high[some]] - H[a_low[some]]
        T = (D[:, b_high] - D[:, b_low]) * inverse[some][:, :, None]
        flat, blocks = T.reshape(-1, columns), block[some].ravel()
        searched = inverse[some].ravel() > 0
        if not searched.any():
            continue
        for one in np.unique(blocks[searched]):
            np.maximum(top[one], np.abs(flat[(blocks == one) & searched]).max(axis=0), out=top[one])
        cost = penalty[blocks][:, None]
        for k, side in enumerate((-flat, flat)):
            u = np.where(searched[:, None], np.maximum(side, 0.0) ** 2 - cost, -np.inf)
            place = u.argmax(axis=0)
            value = u[place, np.arange(columns)]
            better = value > best[k]
            best[k][better] = value[better]
            where[k][better] = place[better] + first * len(b_low)
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
    """Add a range of one more variable to rectangles, in all possible ways.

    Parameters
    ----------
    grid : Grid
        The cells of all rows.
    n_cells : ndarray
        The number of coarse cells of each variable.
    Et : ndarray of shape (columns, rows)
        Residuals.
    weights : ndarray of shape (rows, 2)
        The variance and the weight of each row.
    candidates : ndarray of shape (columns, candidates, 7)
        Two variables, the ends of their ranges, and the sign of the residuals (0 negative).
    sizes, penalty, top
        Limits of blocks, penalties of the blocks of this depth, and their largest |t|.

    Returns
    -------
    best : ndarray of shape (columns, candidates)
        The largest u.
    where : ndarray of shape (columns, candidates, 3)
        The variable, and the ends of its range.
    """
    codes = grid.coarse
    columns, n_candidates = candidates.shape[:2]
    best = np.full((columns, n_candidates), -np.inf)
    where = np.zeros((columns, n_candidates, 3), dtype=np.intp)
    widest = int(n_cells.max())
    offset = np.arange(len(codes))[:, None] * widest
    for c in range(columns):
        for q in range(n_candidates):
            j, k, j_low, j_high, k_low, k_high, sign = candidates[c, q]
            if j < 0:
                continue
            rows = np.flatnonzero(
                (codes[j] >= j_low)
                & (codes[j] < j_high)
                & (codes[k] >= k_low)
                & (codes[k] < k_high)
            )
            place = (codes[:, rows] + offset).ravel()
            h = _sums(place, len(codes), len(codes) * widest, Et[c, rows], weights[rows])
            h = h.reshape(4, len(codes), widest)
            found = _best_range(h, n_cells, sign, sizes, penalty, top[:, c], without=(j, k))
            best[c, q], where[c, q] = found[0], found[1:]
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
    """Choose one variable's range again at a time, on middle cells; rules are changed in place.

    Parameters
    ----------
    candidates : ndarray of shape (columns, candidates, 10)
        Up to three variables (−1 for none), the ends of their ranges, and the sign.
    sweeps : int
        How often each range is chosen.

    The other parameters are those of `extend`. Returns the largest u of each candidate.
    """
    codes = grid.middle
    columns, n_candidates = candidates.shape[:2]
    best = np.full((columns, n_candidates), -np.inf)
    for c in range(columns):
        for q in range(n_candidates):
            rule = candidates[c, q]
            for _ in range(sweeps):
                changed = False
                for a in range(3):
                    if rule[a] < 0:
                        continue
                    inside = np.ones(codes.shape[1], dtype=bool)
                    for b in range(3):
                        if b != a and rule[b] >= 0:
                            line = codes[rule[b]]
                            inside &= (line >= rule[3 + 2 * b]) & (line < rule[4 + 2 * b])
                    rows = np.flatnonzero(inside)
                    m = rule[a]
                    cells = codes[m][rows].astype(np.intp)
                    h = _sums(cells, 1, n_cells[m], Et[c, rows], weights[rows])
                    u, _, low, high = _best_range(
                        h[:, None], n_cells[[m]], rule[9], sizes, penalty, None
                    )
                    if u > best[c, q]:
                        best[c, q] = u
                        changed |= bool(low != rule[3 + 2 * a] or high != rule[4 + 2 * a])
                        rule[3 + 2 * a], rule[4 + 2 * a] = low, high
                        block = _block_of(h, low, high, sizes)
                        t = np.sqrt(u + penalty[block])
                        top[block, c] = max(top[block, c], t)
                if not changed:
                    break
    return best


def _index(a: Codes, b: Codes, shape: tuple[int, int]) -> Ints:
    return a.astype(np.intp) * shape[1] + b


def _sums(place: Ints, repeats: int, size: int, e: Singles, weights: Floats) -> Floats:
    """Sum residuals, variances, weights and rows by cell."""
    terms = (e.astype(np.float64), weights[:, 0], weights[:, 1], np.ones(len(e)))
    return np.array([np.bincount(place, np.tile(term, repeats), size) for term in terms])


def _best_range(
    h: Floats,
    n_cells: Ints,
    sign: int,
    sizes: Sizes,
    penalty: Floats,
    top: Floats | None,
    without: tuple[int, ...] = (),
) -> tuple[float, int, int, int]:
    """Return the largest u among ranges of cells of variables (never all cells), and where it is.

    `h` has sums of residuals, variances, weights and rows by variable and cell.
    """
    total = np.zeros((4, h.shape[1], h.shape[2] + 1))
    total[:, :, 1:] = h.cumsum(axis=2)
    low, high = ranges_of(h.shape[2])
    S, V, W, N = total[:, :, high] - total[:, :, low]
    searched = (sizes.rows <= N) & (sizes.weight <= W) & (sizes.variance <= V)
    searched &= (high <= n_cells[:, None]) & (high - low < n_cells[:, None])
    searched[list(without)] = False
    if not searched.any():
        return -np.inf, 0, 0, 0
    variable, place = np.nonzero(searched)
    t = S[searched] * (1.0 / np.sqrt(V[searched]))
    block = sizes.block_of(W[searched])
    if top is not None:
        np.maximum.at(top, block, np.abs(t))
    u = np.maximum(t if sign else -t, 0.0) ** 2 - penalty[block]
    chosen = int(u.argmax())
    ends = place[chosen]
    return float(u[chosen]), int(variable[chosen]), int(low[ends]), int(high[ends])


def _block_of(h: Floats, low: int, high: int, sizes: Sizes) -> int:
    return int(sizes.block_of(h[2, low:high].sum()[None])[0])
