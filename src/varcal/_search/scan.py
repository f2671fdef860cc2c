"""The search: ranges of one variable, rectangles of two, extensions to three, refined.

Columns of residuals are the data (column 0) and simulated outcomes; all are searched alike. The t
of a slice is its sum of residuals over the standard deviation of that sum. Slices compete by
u = t² − penalty; the penalty depends on the depth and the size of a slice (its block).

There are two kernels, `_scan` over rectangles and `_ranges` over ranges of one variable, both
with numpy and as loops that numba compiles if it is installed. All sums are exact, because
residuals and variances are whole multiples of a power of two (`outcomes.py`), so that both give the
same result to the bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations
from typing import Any

import numpy as np

from varcal._arrays import Bools, Floats, Ints, Singles
from varcal._search.cells import Grid
from varcal._search.slices_result import Condition

#: Rectangles of each column that are extended to a third variable, and rules of depths 2 and 3 that
#: are refined. Twice as many of either find no more on the planted slices of the benchmark.
EXTENDED, REFINED = 16, 4
#: How often the range of each variable is chosen again.
SWEEPS = 2
#: Lower ends of the classes of size, as shares of the weight.
CLASSES = (0.25, 0.1, 0.04, 0.015, 0.0)
#: A slice has at least so many rows (with weights, as many effective ones), this share of the
#: weight, and this variance, with which a sum of residuals is nearly normal.
LEAST_ROWS, LEAST_SHARE, LEAST_VARIANCE = 50.0, 0.005, 5.0
#: log N by depth and size that rules compete with during the search, before N is known; from
#: simulations with 20 variables. They decide which rules are followed up, not what is significant.
PRIOR_LOG_N = np.array(
    [[7.5, 8.0, 8.5, 9.0, 9.5], [10.5, 12.0, 13.0, 14.0, 15.0], [12.0, 14.0, 16.5, 18.5, 20.5]]
)
#: What is subtracted from t², by depth and size.
PENALTY = 2.0 * PRIOR_LOG_N
#: Numbers that numpy works on at once.
_MOST_NUMBERS = 1 << 22


@dataclass(frozen=True)
class Rule:
    """Ranges of cells of up to three variables, and how clear their gap is.

    Attributes
    ----------
    axes : tuple of int
        The variables.
    ends : tuple of (int, int)
        The first and the last + 1 fine cell of each.
    sign : int
        0 if there are fewer hits than the score says, 1 if there are more.
    t : float
        The sum of residuals over its standard deviation, without its sign.
    size : int
        The class of size.
    """

    axes: tuple[int, ...]
    ends: tuple[tuple[int, int], ...]
    sign: int
    t: float = 0.0
    size: int = 0

    @property
    def depth(self) -> int:
        """The number of variables."""
        return len(self.axes)


@dataclass(frozen=True, eq=False)
class Space:
    """What is searched: the cells of rows, with variances and weights that all columns share.

    Attributes
    ----------
    grid : Grid
        The cells.
    weights : ndarray of shape (rows, 2)
        The variance and the weight of each row, as multiples of a power of two.
    max_depth : int
        The largest number of variables of a rule.
    extended, refined : int
        Rectangles that are extended to a third variable, and rules of a depth that are refined.
    """

    grid: Grid
    weights: Floats
    max_depth: int
    extended: int = EXTENDED
    refined: int = REFINED

    @cached_property
    def limits(self) -> Floats:
        """The least variance and weight of a slice."""
        return np.array([LEAST_VARIANCE, max(LEAST_ROWS, LEAST_SHARE * self.weights[:, 1].sum())])

    @cached_property
    def ends(self) -> Floats:
        """Lower ends of the classes of size in weights, descending, without the last."""
        found: Floats = np.array(CLASSES[:-1]) * self.weights[:, 1].sum()
        return found

    def inside(self, rule: Rule) -> Bools:
        """Return which rows a rule means."""
        found = np.ones(self.grid.fine.shape[1], dtype=bool)
        for axis, (low, high) in zip(rule.axes, rule.ends, strict=True):
            found &= (self.grid.fine[axis] >= low) & (self.grid.fine[axis] < high)
        return found

    def conditions(self, rule: Rule) -> tuple[Condition, ...]:
        """Return the conditions of a rule, in the order of the variables."""
        pairs = sorted(zip(rule.axes, rule.ends, strict=True))
        return tuple(self.grid.axes[axis].condition(*ends) for axis, ends in pairs)

    def measured(self, rule: Rule, e: Singles) -> Rule:
        """Return a rule with its t and its size for one column of residuals."""
        inside = self.inside(rule)
        variance, weight = self.weights[inside].sum(axis=0)
        total = float(e[inside].sum(dtype=np.float64))
        t = (total if rule.sign else -total) / np.sqrt(variance)
        return replace(rule, t=max(float(t), 0.0), size=int(_block_of(weight, self.ends)))


#: A rule on the way: its sign, and for each condition a variable and the ends of its cells.
Candidate = tuple[int, tuple[tuple[int, int, int], ...]]


def search(space: Space, E: Singles, *, kept: int = 1) -> tuple[Floats, list[list[Rule]]]:
    """Search every column of residuals in the same way.

    Returns the largest |t| of each block, of shape (depths, sizes, columns), and the best rules of
    the first columns.

    Parameters
    ----------
    space : Space
        What is searched.
    E : ndarray of shape (rows, columns)
        Residuals, as multiples of a power of two.
    kept : int
        The columns whose rules are returned, from the first. Of one column all refined rules are
        returned, of several the best one of each depth.
    """
    most = space.max_depth
    axes = range(len(space.grid.axes))
    top = np.full((3, len(CLASSES), E.shape[1]), -np.inf)
    rules: list[list[Rule]] = [[] for _ in range(kept)]
    for j in axes:
        _one_variable(space, j, E, top[0], rules)
    found = _rectangles(space, E, top[1]) if most > 1 and len(axes) > 1 else []
    for c, rectangles in enumerate(found):
        e, own = np.ascontiguousarray(E[:, c]), rules[c] if c < kept else []
        first = rectangles[: space.refined]
        own += _refined(space, e, first, top[1, :, c], every=kept == 1)
        if most > 2 and len(axes) > 2:
            extended = _extended(space, e, rectangles, top[2, :, c])
            own += _refined(space, e, extended, top[2, :, c], every=kept == 1)
    return top, rules


def _one_variable(space: Space, j: int, E: Singles, top: Floats, rules: list[list[Rule]]) -> None:
    """Scan all ranges of fine cells of a variable."""
    cells, shape = space.grid.fine[j].astype(np.intp), (space.grid.axes[j].n_cells, 1)
    best, where, block = _scanned(space, cells, shape, E, 1, top)
    low, high = ranges_of(shape[0])
    for c, found in enumerate(rules):
        for sign in (0, 1):
            place = where[sign, c]
            size = int(block[place, 0])
            t = np.sqrt(max(best[sign, c] + PENALTY[0][size], 0.0))
            if t > 0:
                ends = (int(low[place]), int(high[place]))
                found.append(Rule((j,), (ends,), sign, float(t), size))


def _rectangles(space: Space, E: Singles, top: Floats) -> list[list[Candidate]]:
    """Scan all rectangles of coarse cells of two variables; return the best of each column."""
    axes, coarse = space.grid.axes, space.grid.coarse
    pairs = list(combinations(range(len(axes)), 2))
    shapes = [(len(axes[j].coarse) - 1, len(axes[k].coarse) - 1) for j, k in pairs]
    columns = E.shape[1]
    best = np.empty((len(pairs), 2, columns), dtype=np.float32)
    where = np.empty((len(pairs), 2, columns), dtype=np.int32)
    for n, ((j, k), shape) in enumerate(zip(pairs, shapes, strict=True)):
        cells = coarse[j].astype(np.intp) * shape[1] + coarse[k]
        best[n], where[n], _ = _scanned(space, cells, shape, E, 2, top)
    found: list[list[Candidate]] = []
    for c in range(columns):
        order = np.argsort(-best[:, :, c], axis=None, kind="stable")[: space.extended]
        found.append([])
        for n, sign in zip(*np.divmod(order, 2), strict=True):
            if np.isfinite(best[n, sign, c]):
                ranges = [ranges_of(size) for size in shapes[n]]
                at = divmod(int(where[n, sign, c]), len(ranges[1][0]))
                both = zip(pairs[n], at, ranges, strict=True)
                conditions = [(j, int(low[i]), int(high[i])) for j, i, (low, high) in both]
                found[-1].append((int(sign), tuple(conditions)))
    return found


def _scanned(
    space: Space, cells: Ints, shape: tuple[int, int], E: Singles, depth: int, top: Floats
) -> tuple[Floats, Ints, Ints]:
    """Return the largest u of each sign and column, their rectangles, and the blocks of all."""
    H = np.zeros((2, shape[0] + 1, shape[1] + 1))
    for k in (0, 1):
        sums = np.bincount(cells, space.weights[:, k], shape[0] * shape[1])
        H[k, 1:, 1:] = sums.reshape(shape)
    H = H.cumsum(axis=1).cumsum(axis=2)
    (a_low, a_high), (b_low, b_high) = ranges_of(shape[0]), ranges_of(shape[1])
    D = H[:, a_high] - H[:, a_low]
    V, W = D[:, :, b_high] - D[:, :, b_low]
    searched = (space.limits[0] <= V) & (space.limits[1] <= W)
    # No rectangle has all cells of a variable.
    searched[a_high - a_low == shape[0]] = False
    if depth > 1:
        searched[:, b_high - b_low == shape[1]] = False
    inverse = np.where(searched, 1.0 / np.sqrt(np.where(searched, V, 1.0)), 0.0)
    block = _block_of(W, space.ends)
    best = np.full((2, E.shape[1]), -np.inf)
    where = np.zeros((2, E.shape[1]), dtype=np.int64)
    if searched.any():
        kernel, _ = _kernels()
        kernel(cells, shape, E, inverse, block, PENALTY[depth - 1], top, best, where)
    return best, where, block


def _extended(
    space: Space, e: Singles, rectangles: list[Candidate], top: Floats
) -> list[Candidate]:
    """Extend rectangles by the best range of a third variable; return the best rules."""
    every = np.arange(len(space.grid.axes))
    found, largest = [], np.full(len(CLASSES), -np.inf)
    for n, (sign, conditions) in enumerate(rectangles):
        tried = np.setdiff1d(every, [m for m, _, _ in conditions])
        u, *third, _ = _best_range(space, "coarse", e, conditions, tried, sign, PENALTY[2], largest)
        if np.isfinite(u):
            found.append((-u, n, (sign, (*conditions, tuple(third)))))
    np.maximum(top, largest, out=top)
    best: dict[tuple[int, ...], Candidate] = {}
    for _, _, (sign, conditions) in sorted(found):
        # The same three variables with the same sign end in the same rule.
        best.setdefault((sign, *sorted(m for m, _, _ in conditions)), (sign, conditions))
    return list(best.values())[: space.refined]


def _refined(
    space: Space, e: Singles, candidates: list[Candidate], top: Floats, *, every: bool
) -> list[Rule]:
    """Refine rules of coarse cells on middle cells; return all, or the best one."""
    found = []
    for sign, conditions in candidates:
        places = []
        for m, *ends in conditions:
            axis = space.grid.axes[m]
            places.append((m, *np.searchsorted(axis.middle, axis.coarse[ends])))
        found.append(refine(space, e, (sign, tuple(places)), PENALTY[len(places) - 1], SWEEPS, top))
    rules = [one for one in found if one is not None]
    if every or not rules:
        return rules
    return [max(rules, key=lambda one: one.t**2 - PENALTY[one.depth - 1][one.size])]


def refine(
    space: Space, e: Singles, candidate: Candidate, penalty: Floats, sweeps: int, top: Floats
) -> Rule | None:
    """Choose the range of one variable again at a time, on middle cells.

    Parameters
    ----------
    space, e
        What is searched, and one column of residuals.
    candidate : tuple
        The rule in middle cells.
    penalty : ndarray
        The penalty of each class of size.
    sweeps : int
        How often each range is chosen at most.
    top : ndarray
        The largest t of each class of size so far, updated with those of chosen rules.
    """
    sign, rule = candidate[0], list(candidate[1])
    best, size, unused = -np.inf, 0, np.zeros(len(CLASSES))
    for _ in range(sweeps):
        before = list(rule)
        for a, (m, _, _) in enumerate(before):
            others = rule[:a] + rule[a + 1 :]
            u, *found, block = _best_range(
                space, "middle", e, others, np.array([m]), sign, penalty, unused
            )
            if u > best:
                best, size, rule[a] = u, block, tuple(found)
                top[size] = max(top[size], np.sqrt(max(u + penalty[size], 0.0)))
        if rule == before:
            break
    if not np.isfinite(best):
        return None
    middles = [space.grid.axes[m].middle for m, _, _ in rule]
    ends = tuple(
        (int(middle[low]), int(middle[high]))
        for middle, (_, low, high) in zip(middles, rule, strict=True)
    )
    t = float(np.sqrt(max(best + penalty[size], 0.0)))
    return Rule(tuple(m for m, _, _ in rule), ends, sign, t, size)


def _best_range(
    space: Space,
    resolution: str,
    e: Singles,
    conditions: Sequence[tuple[int, ...]],
    tried: Ints,
    sign: int,
    penalty: Floats,
    top: Floats,
) -> tuple[Any, ...]:
    """Find the best range of one more variable among the rows that meet some conditions.

    Parameters
    ----------
    space, e
        What is searched, and one column of residuals.
    resolution : {"middle", "coarse"}
        The cells.
    conditions : sequence of tuple
        Variables and the ends of their ranges.
    tried : ndarray of int
        The variables to try. A range has never all cells of its variable.
    sign, penalty, top
        The sign of the rule, the penalty of each class of size, and its largest |t|, updated.

    Returns
    -------
    tuple
        The largest u, the variable, the ends of its range, and its class of size.
    """
    lines = getattr(space.grid, resolution)
    n_cells = np.array([len(getattr(axis, resolution)) - 1 for axis in space.grid.axes])
    inside = np.ones(lines.shape[1], dtype=bool)
    for axis, low, high in conditions:
        inside &= (lines[axis] >= low) & (lines[axis] < high)
    rows = np.flatnonzero(inside)
    kernel = _kernels()[1]
    found: tuple[Any, ...] = kernel(
        lines, n_cells, rows, e, space.weights, space.limits, space.ends, tried, sign, penalty, top
    )
    return found


@cache
def ranges_of(n_cells: int) -> tuple[Ints, Ints]:
    """Return the first and the last + 1 cell of every range of neighbouring cells.

    >>> low, high = ranges_of(2)
    >>> low.tolist(), high.tolist()
    ([0, 0, 1], [1, 2, 2])
    """
    low, high = np.triu_indices(n_cells)
    return low, high + 1


def _block_of(weight: Any, ends: Floats) -> Any:
    """Return the class of size of slices by their weight.

    >>> _block_of(np.array([30.0, 12.0, 1.0]), np.array([25.0, 10.0, 4.0, 1.5]))
    array([0, 1, 4])
    """
    return len(ends) - np.searchsorted(ends[::-1], weight, side="right")


def _scan(cells, shape, E, inverse, block, penalty, top, best, where):  # type: ignore[no-untyped-def]
    """Scan all rectangles of cells of two variables.

    Parameters
    ----------
    cells, shape
        The cell of each row (that of the first variable times the cells of the second, plus that
        of the second), and the number of cells of both.
    E : ndarray of shape (rows, columns)
        Residuals.
    inverse, block : ndarray of shape (ranges of the first, ranges of the second)
        The inverse standard deviation of each rectangle, 0 where it is not searched; its block.
    penalty : ndarray
        The penalty of each block.
    top : ndarray of shape (blocks, columns)
        The largest |t| of each block so far, updated.
    best, where : ndarray of shape (2, columns)
        The largest u among rectangles with too few and with too many hits, and their positions.
    """
    n, columns = E.shape
    from scipy.sparse import csr_array  # noqa: PLC0415  only a search needs it

    one_hot = csr_array((np.ones(n), cells, np.arange(n + 1)), shape=(n, shape[0] * shape[1]))
    H = np.zeros((shape[0] + 1, shape[1] + 1, columns))
    H[1:, 1:] = (one_hot.T @ E.astype(np.float64)).reshape(*shape, columns)
    H = H.cumsum(axis=0).cumsum(axis=1)
    (a_low, a_high), (b_low, b_high) = ranges_of(shape[0]), ranges_of(shape[1])
    step = max(1, _MOST_NUMBERS // (len(b_low) * columns))
    for first in range(0, len(a_low), step):
        some = slice(first, first + step)
        D = H[a_high[some]] - H[a_low[some]]
        T = ((D[:, b_high] - D[:, b_low]) * inverse[some][:, :, None]).reshape(-1, columns)
        searched = np.flatnonzero(inverse[some])
        T, blocks = T[searched], block[some].ravel()[searched]
        for one in np.unique(blocks):
            np.maximum(top[one], np.abs(T[blocks == one]).max(axis=0), out=top[one])
        for k, side in enumerate((-T, T) if len(T) else ()):
            u = np.maximum(side, 0.0) ** 2 - penalty[blocks][:, None]
            place = u.argmax(axis=0)
            value = u[place, np.arange(columns)]
            better = value > best[k]
            best[k][better] = value[better]
            where[k][better] = searched[place[better]] + first * len(b_low)


def _scan_loops(cells, shape, E, inverse, block, penalty, top, best, where):  # type: ignore[no-untyped-def]
    """Scan rectangles as `_scan` does, in loops to be compiled."""
    ka, kb = shape
    n, columns = E.shape
    H = np.zeros((ka + 1, kb + 1, columns))
    for r in range(n):
        a, b = divmod(cells[r], kb)
        line, e = H[a + 1, b + 1], E[r]
        for c in range(columns):
            line[c] += e[c]
    for a in range(1, ka + 1):
        for b in range(1, kb + 1):
            line, left, up, both = H[a, b], H[a, b - 1], H[a - 1, b], H[a - 1, b - 1]
            for c in range(columns):
                line[c] += left[c] + up[c] - both[c]
    D = np.zeros((kb + 1, columns))
    under, over, under_where, over_where = best[0], best[1], where[0], where[1]
    ia = 0
    for a_low in range(ka):
        for a_high in range(a_low + 1, ka + 1):
            for b in range(1, kb + 1):
                line, to, frm = D[b], H[a_high, b], H[a_low, b]
                for c in range(columns):
                    line[c] = to[c] - frm[c]
            ib = 0
            for b_low in range(kb):
                for b_high in range(b_low + 1, kb + 1):
                    factor = inverse[ia, ib]
                    if factor > 0.0:
                        cost, place = penalty[block[ia, ib]], ia * inverse.shape[1] + ib
                        most, to, frm = top[block[ia, ib]], D[b_high], D[b_low]
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


def _ranges(lines, n_cells, rows, e, weights, limits, ends, tried, sign, penalty, top):  # type: ignore[no-untyped-def]
    """Find the best range of one variable; the arguments are those of `_best_range`."""
    terms = e[rows].astype(np.float64), weights[rows, 0], weights[rows, 1]
    best = (-np.inf, 0, 0, 0, 0)
    for m in tried:
        k, cells = int(n_cells[m]), lines[m][rows]
        total = np.zeros((3, k + 1))
        total[:, 1:] = np.cumsum([np.bincount(cells, term, k) for term in terms], axis=1)
        low, high = ranges_of(k)
        S, V, W = total[:, high] - total[:, low]
        searched = np.flatnonzero((limits[0] <= V) & (limits[1] <= W) & (high - low < k))
        if not len(searched):
            continue
        t = S[searched] * (1.0 / np.sqrt(V[searched]))
        block = _block_of(W[searched], ends)
        np.maximum.at(top, block, np.abs(t))
        u = np.maximum(t if sign else -t, 0.0) ** 2 - penalty[block]
        at = int(u.argmax())
        if u[at] > best[0]:
            place = searched[at]
            best = (float(u[at]), int(m), int(low[place]), int(high[place]), int(block[at]))
    return best


def _ranges_loops(lines, n_cells, rows, e, weights, limits, ends, tried, sign, penalty, top):  # type: ignore[no-untyped-def]
    """Find the best range as `_ranges` does, in loops to be compiled."""
    terms = np.empty((len(rows), 3))
    for i in range(len(rows)):
        r = rows[i]
        terms[i, 0], terms[i, 1], terms[i, 2] = e[r], weights[r, 0], weights[r, 1]
    best = (-np.inf, 0, 0, 0, 0)
    for m in tried:
        k, line = n_cells[m], lines[m]
        h = np.zeros((k, 3))
        for i in range(len(rows)):
            cell = h[line[rows[i]]]
            cell[0] += terms[i, 0]
            cell[1] += terms[i, 1]
            cell[2] += terms[i, 2]
        for low in range(k):
            S = V = W = 0.0
            for high in range(low + 1, k + 1):
                S += h[high - 1, 0]
                V += h[high - 1, 1]
                W += h[high - 1, 2]
                if high - low == k or limits[1] > W or limits[0] > V:
                    continue
                t = S * (1.0 / np.sqrt(V))
                block = 0
                for end in ends:
                    block += end > W
                top[block] = max(top[block], abs(t))
                size = max(t if sign else -t, 0.0)
                u = size * size - penalty[block]
                if u > best[0]:
                    best = (u, int(m), low, high, block)
    return best


def _kernels() -> Sequence[Callable[..., Any]]:
    """Return both kernels: compiled if numba is installed."""
    try:
        return _compiled(_scan_loops), _compiled(_ranges_loops)
    except ModuleNotFoundError:
        return _scan, _ranges


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function; the machine code is cached for the next process if a folder allows it."""
    import numba  # noqa: PLC0415  takes a second

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(**options)(function)
