"""The search: ranges of one variable, rectangles of two, extensions to three, refined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import combinations
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import Floats, Ints, Singles
from varcal._search import scan
from varcal._search.blocks import CLASSES, PRIOR_LOG_N, Sizes
from varcal._search.cells import Grid
from varcal._search.scan import ranges_of

#: Rectangles of each column that are extended to a third variable, and rules of depths 2 and 3 that
#: are refined. Twice as many of either find no more on the planted slices of the benchmark.
EXTENDED, REFINED = 16, 4
#: How often the range of each variable is chosen again.
SWEEPS = 2
#: With fewer rows × pairs of variables than this, loading numba takes longer than it saves.
LEAST_WORK = 2_000
#: Stands for a variable that a rule does not have.
NOBODY = -1


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
    t: float
    size: int

    @property
    def depth(self) -> int:
        """The number of variables."""
        return len(self.axes)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to search: their cells, variances and weights, which all columns share.

    Attributes
    ----------
    grid : Grid
        The cells.
    weights : ndarray of shape (rows, 2)
        The variance and the weight of each row, as multiples of a power of two.
    min_depth, max_depth : int
        The numbers of variables of a rule.
    extended, refined : int
        Rectangles that are extended to a third variable, and rules of a depth that are refined.
    """

    grid: Grid
    weights: Floats
    min_depth: int
    max_depth: int
    extended: int = EXTENDED
    refined: int = REFINED

    @cached_property
    def sizes(self) -> Sizes:
        """The limits of blocks."""
        return Sizes.of(float(self.weights[:, 1].sum()))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of variables."""
        return list(combinations(range(len(self.grid.axes)), 2)) if self.max_depth > 1 else []

    @property
    def engine(self) -> ModuleType:
        """The module with the kernels: compiled if numba is installed and there is much work."""
        work = self.grid.fine.shape[1] * max(1, len(self.pairs))
        if work < LEAST_WORK or find_spec("numba") is None:
            return scan
        from varcal._search import scan_numba  # noqa: PLC0415  loads numba

        return scan_numba

    def inside(self, rule: Rule) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which rows a rule means."""
        found = np.ones(self.grid.fine.shape[1], dtype=bool)
        for axis, (low, high) in zip(rule.axes, rule.ends, strict=True):
            found &= (self.grid.fine[axis] >= low) & (self.grid.fine[axis] < high)
        return found


@dataclass(frozen=True, eq=False)
class Searched:
    """What a search has found.

    Attributes
    ----------
    top : ndarray of shape (depths, sizes, columns)
        The largest |t| of each block.
    rules : tuple of tuple of Rule
        The best rules of the first columns.
    """

    top: Floats
    rules: tuple[tuple[Rule, ...], ...]


def search(rows: Rows, E: Singles, *, kept: int = 1) -> Searched:
    """Search every column of residuals in the same way.

    Parameters
    ----------
    rows : Rows
        The rows.
    E : ndarray of shape (rows, columns)
        Residuals, as multiples of a power of two.
    kept : int
        The columns whose rules are returned, from the first. Of one column all refined rules are
        returned, of several the best one of each depth.
    """
    engine = rows.engine
    columns = E.shape[1]
    top = np.full((3, len(CLASSES), columns), -np.inf)
    rules: list[list[Rule]] = [[] for _ in range(kept)]
    if rows.min_depth == 1:
        for j in range(len(rows.grid.axes)):
            _one_variable(engine, rows, j, E, top[0], rules)
    if rows.max_depth == 1 or len(rows.grid.axes) < 2:
        return Searched(top, tuple(tuple(found) for found in rules))
    pairs = rows.pairs
    best = np.empty((len(pairs), 2, columns), dtype=np.float32)
    where = np.empty((len(pairs), 2, columns), dtype=np.int32)
    for k, pair in enumerate(pairs):
        best[k], where[k] = _two_variables(engine, rows, pair, E, top[1])
    Et = np.ascontiguousarray(E.T)
    wide = _leading(rows, pairs, best, where)
    _refined(engine, rows, Et, wide[:, : rows.refined], 2, top[1], rules)
    if rows.max_depth > 2 and len(rows.grid.axes) > 2:
        deep = _extended(engine, rows, Et, wide, top[2])
        _refined(engine, rows, Et, deep, 3, top[2], rules)
    return Searched(top, tuple(tuple(found) for found in rules))


def _penalty(depth: int) -> Floats:
    return 2.0 * PRIOR_LOG_N[depth - 1]


def _one_variable(
    engine: ModuleType, rows: Rows, j: int, E: Singles, top: Floats, rules: list[list[Rule]]
) -> None:
    """Scan all ranges of fine cells of a variable."""
    a, b = rows.grid.fine[j], np.zeros_like(rows.grid.fine[j])
    shape = rows.grid.axes[j].n_cells, 1
    inverse, block = engine.limits(a, b, shape, rows.weights, rows.sizes, 1)
    if not inverse.any():
        return
    best, where = engine.rectangles(a, b, shape, E, inverse, block, _penalty(1), top)
    low, high = ranges_of(shape[0])
    for c, found in enumerate(rules):
        for sign in (0, 1):
            place = where[sign, c]
            size = int(block[place, 0])
            t = np.sqrt(best[sign, c] + _penalty(1)[size])
            if t > 0:
                ends = (int(low[place]), int(high[place]))
                found.append(Rule((j,), (ends,), sign, float(t), size))


def _two_variables(
    engine: ModuleType, rows: Rows, pair: tuple[int, int], E: Singles, top: Floats
) -> tuple[Floats, Ints]:
    """Scan all rectangles of coarse cells of two variables."""
    j, k = pair
    a, b = rows.grid.coarse[j], rows.grid.coarse[k]
    shape = len(rows.grid.axes[j].coarse) - 1, len(rows.grid.axes[k].coarse) - 1
    inverse, block = engine.limits(a, b, shape, rows.weights, rows.sizes, 2)
    found: tuple[Floats, Ints] = engine.rectangles(a, b, shape, E, inverse, block, _penalty(2), top)
    return found


def _leading(
    rows: Rows, pairs: list[tuple[int, int]], best: Singles, where: NDArray[np.int32]
) -> Ints:
    """Return the rectangles with the largest u of each column, the best first.

    The shape is (columns, rectangles, 7): two variables, the ends of their ranges, and the sign;
    the first variable is −1 where there is no such rectangle.
    """
    columns, most = best.shape[2], rows.extended
    flat, place = best.reshape(-1, columns), where.reshape(-1, columns)
    order = np.argsort(-flat, axis=0, kind="stable")[:most]
    found = np.full((columns, most, 7), NOBODY, dtype=np.intp)
    for rank, line in enumerate(order):
        for c, chosen in enumerate(line):
            if not np.isfinite(flat[chosen, c]):
                continue
            j, k = pairs[chosen // 2]
            a_low, a_high = ranges_of(len(rows.grid.axes[j].coarse) - 1)
            b_low, b_high = ranges_of(len(rows.grid.axes[k].coarse) - 1)
            a, b = divmod(int(place[chosen, c]), len(b_low))
            found[c, rank] = j, k, a_low[a], a_high[a], b_low[b], b_high[b], chosen % 2
    return found


def _extended(engine: ModuleType, rows: Rows, Et: Singles, wide: Ints, top: Floats) -> Ints:
    """Extend rectangles to a third variable; return the best rules of each column."""
    n_cells = np.array([len(axis.coarse) - 1 for axis in rows.grid.axes], dtype=np.intp)
    best, where = engine.extend(
        rows.grid, n_cells, Et, rows.weights, wide, rows.sizes, _penalty(3), top
    )
    columns = len(best)
    found = np.full((columns, rows.refined, 10), NOBODY, dtype=np.intp)
    for c in range(columns):
        seen: set[tuple[int, ...]] = set()
        for q in np.argsort(-best[c], kind="stable"):
            if len(seen) == rows.refined or not np.isfinite(best[c, q]):
                break
            j, k, *ends, sign = wide[c, q].tolist()
            m, low, high = where[c, q].tolist()
            # The same three variables with the same sign end in the same rule.
            kind = (*sorted((j, k, m)), sign)
            if kind not in seen:
                found[c, len(seen)] = j, k, m, *ends, low, high, sign
                seen.add(kind)
    return found


def _refined(
    engine: ModuleType,
    rows: Rows,
    Et: Singles,
    candidates: Ints,
    depth: int,
    top: Floats,
    rules: list[list[Rule]],
) -> None:
    """Refine rules of coarse cells on middle cells, and keep those of the first columns."""
    axes = rows.grid.axes
    columns, n_candidates = candidates.shape[:2]
    middle = np.full((columns, n_candidates, 10), NOBODY, dtype=np.intp)
    place = [_middle_of(axis.coarse, axis.middle) for axis in axes]
    for c, q in np.ndindex(columns, n_candidates):
        line = candidates[c, q].tolist()
        if line[0] < 0:
            continue
        for a in range(depth):
            low, high = line[depth + 2 * a], line[depth + 2 * a + 1]
            middle[c, q, a] = line[a]
            middle[c, q, 3 + 2 * a] = place[line[a]][low]
            middle[c, q, 4 + 2 * a] = place[line[a]][high]
        middle[c, q, 9] = line[-1]
    n_cells = np.array([len(axis.middle) - 1 for axis in axes], dtype=np.intp)
    penalty = _penalty(depth)
    best = engine.refine(
        rows.grid, n_cells, Et, rows.weights, middle, SWEEPS, rows.sizes, penalty, top
    )
    for c, found in enumerate(rules):
        for q in range(n_candidates) if len(rules) == 1 else [best[c].argmax()]:
            if np.isfinite(best[c, q]):
                found.append(_rule(rows, middle[c, q], float(best[c, q]), penalty))


def _middle_of(coarse: Ints, middle: Ints) -> Ints:
    """Return the middle cell in which each coarse cell begins."""
    return np.searchsorted(middle, coarse)


def _rule(rows: Rows, line: Ints, u: float, penalty: Floats) -> Rule:
    axes = [int(m) for m in line[:3] if m >= 0]
    ends = []
    for a, m in enumerate(axes):
        middle = rows.grid.axes[m].middle
        ends.append((int(middle[line[3 + 2 * a]]), int(middle[line[4 + 2 * a]])))
    rule = Rule(tuple(axes), tuple(ends), int(line[9]), 0.0, 0)
    weight = rows.weights[rows.inside(rule), 1].sum()
    size = int(rows.sizes.block_of(np.array([weight]))[0])
    return Rule(rule.axes, rule.ends, rule.sign, float(np.sqrt(u + penalty[size])), size)


def batches(n_rows: int, columns: int, most_bytes: int) -> Iterator[slice]:
    """Yield slices of columns whose residuals fit into so much memory."""
    step = max(1, most_bytes // (4 * max(n_rows, 1)))
    for first in range(0, columns, step):
        yield slice(first, min(first + step, columns))
