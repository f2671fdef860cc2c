r"""Boosted trees: what several variables do together, and jumps, which curves pass smoothly.

Every variable, and the score, is cut into cells; trees are grown level by level from sums of
gradients in cells. A node splits at the cell that lowers the loss most, to second order:

.. math:: \frac{G_l^2}{H_l + \lambda} + \frac{G_r^2}{H_r + \lambda} - \frac{G^2}{H + \lambda}.

G and H are rounded to whole numbers and packed into one double-precision number for each row, H in
the upper bits. Sums of whole numbers are exact: a weight of 2 equals two rows. Trees of all folds
(and classes) grow at the same time, as nodes of one large tree, so that few rows take few calls;
rows that are held out from a fold have no weight in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal.calibrators import steps
from varcal.calibrators.steps import Forest, Step
from varcal.calibrators.variable.columns import distinct, frequent
from varcal.calibrators.variable.losses import log_losses, means, outcomes
from varcal.calibrators.variable.shrinkage import NOTHING, Judge, Stage

# Tuned constants, chosen on worlds with jumps, a checkerboard, three-way spikes, and two tables.

#: Cells of a variable at most.
MOST_CELLS = 64
#: λ, and the least H of a leaf.
LEAF_PENALTY, LEAF_LEAST = 10.0, 1.0
#: Rows for each leaf of the deepest trees.
LEAF_ROWS = 150.0
#: What each tree adds is multiplied by this.
RATE = 0.1

#: Depths of trees.
LEAST_DEPTH, MOST_DEPTH = 3, 7
#: Trees at most, and how many without a smaller held-out loss end the search.
MOST_TREES, PATIENCE = 120, 8
#: Variables at most, those whose cells leave the largest residuals.
MOST_VARIABLES = 40
#: Rows from which trees, and surfaces of pairs, are tried.
LEAST_ROWS = 200.0
#: Bits of a double-precision number that hold whole numbers, and the largest total weight of rows.
_BITS, _LARGEST = 53, 20


@dataclass(frozen=True, eq=False)
class TreeCells:
    """The cells of a variable: 0 holds missing values.

    Attributes
    ----------
    variable : int
        Its position; −1 − k for the score of class k.
    cuts : ndarray
        A number is in cell 1 + #{cut < value}; empty for a category.
    of_level : ndarray of int
        The cell of each level, of unseen levels and of missing values; empty for a number.
    """

    variable: int
    cuts: Floats
    of_level: Ints

    def codes(self, values: AnyArray) -> NDArray[np.uint8]:
        """Return the cell of each value."""
        if len(self.of_level):
            return self.of_level[np.asarray(values, dtype=np.intp)].astype(np.uint8)
        found = np.searchsorted(self.cuts, values) + 1
        found[np.isnan(values)] = 0
        return found.astype(np.uint8)

    def step(self, place: Ints, scores: Sequence[Step]) -> Step:
        """Return the step to the position of a value's cell, given that of each cell."""
        order, cuts = place.astype(np.float64), self.cuts
        if len(self.of_level):
            return steps.take(steps.code(self.variable), order[self.of_level]).named("tree_cell")
        # Beyond the cuts a value only has to be finite.
        room = 1.0 + float(np.abs(cuts).max())
        x = scores[-1 - self.variable] if self.variable < 0 else steps.number(self.variable)
        inside = steps.clipped(x, float(cuts[0]) - room, float(cuts[-1]) + room)
        ordered = order[1 : len(cuts) + 2]
        if self.variable < 0:
            return steps.take(steps.find(inside, cuts), ordered).named("tree_cell")
        inside = steps.where(steps.missing(x), float(cuts[0]), inside)
        at = steps.where(steps.missing(x), len(cuts) + 1, steps.find(inside, cuts))
        return steps.take(at, np.append(ordered, order[0])).named("tree_cell")


def cells_of(k: int, values: AnyArray, n_levels: int, weight: Floats) -> TreeCells | None:
    """Return the cells of a variable; None where nothing varies.

    >>> cells_of(0, np.array([1.0, 2.0, 4.0, np.nan]), 0, np.ones(4)).cuts
    array([1.5, 3. ])
    """
    if n_levels:
        held = values >= 0
        counts = np.bincount(values[held], weight[held], minlength=n_levels).astype(np.float64)
        own = frequent(counts, MOST_CELLS - 2)
        if not len(own) or np.count_nonzero(counts) + (not held.all()) < 2:
            return None
        cell = np.ones(n_levels + 2, dtype=np.intp)
        cell[own] = np.arange(2, len(own) + 2)
        cell[-1] = 0
        return TreeCells(k, np.empty(0), cell)
    known = ~np.isnan(values)
    found, counts = distinct(values[known], weight[known])
    if len(found) < 2:
        return None
    last = np.arange(len(found) - 1)
    if len(found) >= MOST_CELLS:
        reached, parts = np.cumsum(counts), MOST_CELLS - 1
        at = np.searchsorted(reached, np.arange(1, parts) / parts * reached[-1] * (1 - 1e-12))
        last = np.unique(at[at < len(found) - 1])
    # Midway between values: at a value, the rounding of a logarithm would decide on the cell.
    # Halved first: the sum of two values may overflow.
    return TreeCells(k, found[last] / 2 + found[last + 1] / 2, np.empty(0, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees, one ensemble for each output.

    Attributes
    ----------
    cells : tuple of TreeCells
        The cells of the score and of variables.
    place : ndarray of shape (outputs, d, n_cells)
        The position of each cell in the order that splits use; categories by their outcomes.
    variable, cut : ndarray of shape (outputs, n_trees, 2**depth − 1)
        A row goes right where the position of the variable's cell is above the cut; node j has
        the children 2j + 1 and 2j + 2. Missing values go left.
    value : ndarray of shape (outputs, n_trees, 2**depth)
        What the leaves add.
    used : ndarray of shape (d,)
        The share of each variable in what the splits gain.
    """

    cells: tuple[TreeCells, ...]
    place: Ints
    variable: Ints
    cut: Ints
    value: Floats
    used: Floats

    def _check_saved(self) -> None:
        """Raise ValueError unless trees are complete and split by variables that exist."""
        d, leaves = len(self.cells), self.value.shape[-1]
        inner = (*self.value.shape[:-1], leaves - 1)
        if self.place.ndim != 3 or self.place.shape[:2] != (len(self.value), d):
            raise ValueError("the cells of trees do not match their variables")
        if leaves < 2 or leaves & leaves - 1 or self.cut.shape != inner:
            raise ValueError("trees are not complete")
        if self.variable.shape != inner or ((self.variable < 0) | (self.variable >= d)).any():
            raise ValueError("trees split by unknown variables")
        if not np.isfinite(self.value).all() or self.used.shape != (d,):
            raise ValueError("trees do not add numbers")

    def steps(self, scores: Sequence[Step]) -> tuple[Step, ...]:
        """Return the step to what each output's trees add, given those to the scores."""
        found = []
        for place, variable, cut, value in zip(
            self.place, self.variable, self.cut, self.value, strict=True
        ):
            pairs = zip(self.cells, place, strict=True)
            numbers = [cells.step(order, scores) for cells, order in pairs]
            forest = Forest(variable, cut.astype(np.float64), value)
            found.append(steps.trees(numbers, forest).named("trees"))
        return tuple(found)


@dataclass(frozen=True, eq=False)
class TreeRows:
    """The rows from which trees are learned.

    Attributes
    ----------
    cells : tuple of TreeCells
        The cells of the score and of variables.
    codes : ndarray of shape (d, n)
        The cell of each row.
    y : ndarray of int, shape (n,)
        Outcomes.
    mass : ndarray of shape (n,)
        The number of rows that each row stands for.
    """

    cells: tuple[TreeCells, ...]
    codes: NDArray[np.uint8]
    y: Ints
    mass: Floats

    @classmethod
    def of(
        cls,
        scores: Sequence[Floats],
        columns: list[AnyArray],
        n_levels: list[int],
        y: Ints,
        mass: Floats,
        base: Floats,
    ) -> TreeRows | None:
        """Cut variables; of many, those with the largest residuals of `base` in their cells."""
        values = {-1 - k: each for k, each in enumerate(scores)} | dict(enumerate(columns))
        sizes = {k: n_levels[k] if k >= 0 else 0 for k in values}
        found = [cells_of(k, each, sizes[k], mass) for k, each in values.items()]
        kept = [each for each in found if each is not None]
        if not any(each.variable >= 0 for each in kept) and len(scores) == 1:
            return None
        codes = {each.variable: each.codes(values[each.variable]) for each in kept}
        if len(kept) > MOST_VARIABLES:
            residual = mass * _slopes(base, y)[0]

            def gain(cells: TreeCells) -> float:
                own = codes[cells.variable]
                size = np.bincount(own, mass) + LEAF_PENALTY
                return sum(float((np.bincount(own, each) ** 2 / size).sum()) for each in residual)

            ranked = sorted(kept, key=lambda each: (each.variable >= 0, -gain(each), each.variable))
            kept = sorted(ranked[:MOST_VARIABLES], key=lambda each: each.variable)
        return cls(tuple(kept), np.array([codes[each.variable] for each in kept]), y, mass)

    def held_out(
        self, base: Floats, splits: list[tuple[Bools, Bools]], depth: int
    ) -> tuple[int, Floats]:
        """Return the number of trees with the least held-out loss, and the predictor by them.

        Rows that are never held out keep `base`, of shape (outputs, n).
        """
        held = np.array([out for _, out in splits])
        growing = _Growing(self, base, np.array([fit * self.mass for fit, _ in splits]), depth)
        rows, fold = np.flatnonzero(held.any(axis=0)), held.argmax(axis=0)
        y, mass = self.y[rows], self.mass[rows]
        best, found = 0, base[:, rows]
        least = float(mass @ log_losses(found, y))
        for n in range(1, MOST_TREES + 1):
            growing.step()
            eta = growing.eta[fold[rows], :, rows].T
            loss = float(mass @ log_losses(eta, y))
            if loss < least:
                best, least, found = n, loss, eta
            elif n >= best + PATIENCE:
                break
        eta = base.copy()
        eta[:, rows] = found
        return best, eta

    def grown(self, base: Floats, n_trees: int, depth: int) -> Trees:
        """Return trees of all rows."""
        growing = _Growing(self, base, self.mass[None], depth)
        found = [growing.step() for _ in range(n_trees)]
        variable, cut, value, gain = (np.stack(each, axis=1) for each in zip(*found, strict=True))
        gains = np.bincount(variable.ravel(), gain.ravel(), minlength=len(self.cells))
        used = np.asarray(gains / max(float(gains.sum()), 1e-300), dtype=np.float64)
        return Trees(self.cells, growing.place, variable, cut, value, used)


def _slopes(eta: Floats, y: Ints) -> tuple[Floats, Floats]:
    """Return gradients and curvatures of the loss by predictors of shape (…, outputs, n)."""
    q = means(eta)
    return q - outcomes(y, eta.shape[-2]), q * (1.0 - q)


class _Growing:
    """Trees of several folds and outputs that grow at the same time.

    `mass` of shape (folds, n) is 0 where rows are held out. One entry for each fold, output and
    row; a machine is one fold and output.
    """

    def __init__(self, rows: TreeRows, base: Floats, mass: Floats, depth: int) -> None:
        self.rows, self.depth = rows, depth
        self.eta = np.repeat(base[None], len(mass), axis=0)
        self.total = float(rows.mass.sum())
        self.n_machines = len(mass) * len(base)
        self.machine = np.repeat(np.arange(self.n_machines), base.shape[1])
        self.mass = np.repeat(mass, len(base), axis=0).ravel()
        self.live = np.flatnonzero(self.mass)
        self.n_cells = 1 + int(rows.codes.max(initial=1))
        self.place = self._places()
        own = self.machine.reshape(self.n_machines, -1)
        self.codes = np.array(
            [self.place[own, k, each].ravel() for k, each in enumerate(rows.codes)], dtype=np.uint8
        )

    def _places(self) -> Ints:
        """Return the order of cells: their own, or for categories that of their residuals."""
        shape = (self.n_machines, len(self.rows.cells), self.n_cells)
        place = np.broadcast_to(np.arange(self.n_cells), shape).copy()
        slopes = None
        for k, each in enumerate(self.rows.cells):
            if not len(each.of_level):
                continue
            slopes = slopes or _slopes(self.eta, self.rows.y)
            at = self.machine * self.n_cells + np.tile(self.rows.codes[k], self.n_machines)
            sums, size = (
                np.bincount(at, self.mass * slope.ravel(), self.n_machines * self.n_cells)
                for slope in slopes
            )
            mean = (sums / (size + LEAF_PENALTY)).round(9).reshape(self.n_machines, -1)
            order = np.argsort(mean, axis=1, kind="stable")
            np.put_along_axis(place[:, k], order, np.arange(self.n_cells)[None], axis=1)
        return place

    def step(self) -> tuple[Ints, Ints, Floats, Floats]:
        """Grow one tree per machine: variables, cuts, leaves and gains."""
        gradient, curvature = (each.ravel() for each in _slopes(self.eta, self.rows.y))
        packed, units = _packed(gradient, curvature, self.mass, self.total)
        node, codes = self.machine, self.codes
        sums = self._histograms(self.live, node, packed, self.n_machines)
        found = []
        for level in range(self.depth):
            if level:
                sums = self._children(sums, packed, node)
            variable, cut, gain = _best_splits(*_unpacked(np.cumsum(sums, axis=2), units))
            found.append([each.reshape(self.n_machines, -1) for each in (variable, cut, gain)])
            at = variable[node] * codes.shape[1]
            at += np.arange(codes.shape[1])
            node = 2 * node + (codes.ravel()[at] > cut[node])
        leaves = np.bincount(node, packed, self.n_machines * 2**self.depth)
        G, H = _unpacked(leaves.astype(np.float64), units)
        value = -RATE * G / (H + LEAF_PENALTY)
        self.eta += value[node].reshape(self.eta.shape)
        variable, cut, gain = (np.concatenate(each, axis=1) for each in zip(*found, strict=True))
        return variable, cut, value.reshape(self.n_machines, -1), gain

    def _histograms(self, some: Ints, node: Ints, value: Floats, n_nodes: int) -> Floats:
        """Return the sums of each node, variable and cell over some entries."""
        begin, value, size = node[some] * self.n_cells, value[some], n_nodes * self.n_cells
        found = np.empty((n_nodes, len(self.codes), self.n_cells))
        for k, each in enumerate(self.codes):
            found[:, k] = np.bincount(begin + each[some], value, size).reshape(n_nodes, -1)
        return found

    def _children(self, sums: Floats, value: Floats, node: Ints) -> Floats:
        """Return the sums of the children of nodes: of the smaller by its entries, and the rest."""
        n_parents = len(sums)
        own = node[self.live]
        counts = np.bincount(own, minlength=2 * n_parents).reshape(-1, 2)
        small = (counts[:, 1] < counts[:, 0]).astype(np.intp)
        some = self.live[(own & 1) == small[own >> 1]]
        smaller = self._histograms(some, node >> 1, value, n_parents)
        both = np.empty((n_parents, 2, *sums.shape[1:]))
        both[np.arange(n_parents), small] = smaller
        both[np.arange(n_parents), 1 - small] = sums - smaller
        return both.reshape(2 * n_parents, *sums.shape[1:])


Units = tuple[float, float, float]


def _packed(
    gradient: Floats, curvature: Floats, mass: Floats, total: float
) -> tuple[Floats, Units]:
    """Return gradients and curvatures of rows as whole numbers in one number each.

    Also returns the units of both, and what curvatures are multiplied by.
    """
    exponent = int(np.ceil(np.log2(max(total, 2.0))))
    scale = 2.0 ** max(exponent - _LARGEST, 0)
    exponent = min(exponent, _LARGEST)
    spare = _BITS + 1 - 2 * exponent
    low = min((spare + 2) // 2, 16)
    high = min(spare - low, 16)
    shift = 2.0 ** (exponent + low + 1)
    whole = np.rint(mass / scale * np.rint(gradient * 2.0**low))
    whole += shift * np.rint(mass / scale * np.rint(curvature * 2.0**high))
    return whole, (scale / 2.0**low, scale / 2.0**high, shift)


def _unpacked(sums: Floats, units: Units) -> tuple[Floats, Floats]:
    """Return sums of gradients and curvatures from sums of packed numbers."""
    upper = np.rint(sums / units[2])
    return (sums - upper * units[2]) * units[0], upper * units[1]


def _best_splits(G: Floats, H: Floats) -> tuple[Ints, Ints, Floats]:
    """Return variable, cell and gain of the best split of each node, by cumulative sums.

    A node that must not be split sends all rows to the left.
    """
    n_nodes, _, n_cells = G.shape
    all_G, all_H = G[:, :1, -1:], H[:, :1, -1:]
    rest_G, rest_H = all_G - G, all_H - H
    score = G * G / (H + LEAF_PENALTY) + rest_G * rest_G / (rest_H + LEAF_PENALTY)
    score[(H < LEAF_LEAST) | (rest_H < LEAF_LEAST)] = -np.inf
    flat = score.reshape(n_nodes, -1)
    best = flat.argmax(axis=1)
    whole = (all_G * all_G / (all_H + LEAF_PENALTY)).ravel()
    variable, cut = np.divmod(best, n_cells)
    gain = flat[np.arange(n_nodes), best] - whole
    stays = ~(gain > 0)
    variable[stays], cut[stays], gain[stays] = 0, n_cells - 1, 0.0
    return variable, cut, gain


def depth_of(n_rows: float) -> int:
    """Return the depth of trees: the largest that rows allow.

    >>> depth_of(1_000), depth_of(10_000), depth_of(1e6)
    (3, 6, 7)
    """
    return int(np.clip(np.log2(n_rows / LEAF_ROWS), LEAST_DEPTH, MOST_DEPTH))


def fit_trees(
    rows: TreeRows | None, base: Floats, before: Floats, start: Floats, judge: Judge
) -> tuple[Trees | None, Stage]:
    """Return trees, and how much of them held-out rows support.

    Parameters
    ----------
    rows : TreeRows or None
        The rows.
    base : ndarray of shape (outputs, n)
        Predictors of held-out rows from which trees start.
    before : ndarray of shape (n,) or (n, K)
        Predictors that those with trees are compared with.
    start : ndarray of shape (outputs, n)
        Fitted predictors from which the trees of all rows start.
    judge : Judge
        The held-out rows.
    """
    total, splits = float(judge.mass.sum()), judge.folds.splits()
    if rows is None or not splits or total < LEAST_ROWS:
        return None, NOTHING
    depth = depth_of(total)
    n_trees, eta = rows.held_out(base, splits, depth)
    after = eta[0] if before.ndim == 1 else eta.T
    stage = judge.share("trees", before, after) if n_trees else NOTHING
    if not stage.share:
        return None, NOTHING
    fitted = float(np.mean([judge.mass[train].sum() for train, _ in splits]))
    trees = rows.grown(start, int(np.ceil(n_trees * total / fitted)), depth)
    return trees, stage
