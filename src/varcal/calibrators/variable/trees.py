r"""Boosted trees: what several variables do together, and jumps, which curves pass smoothly.

Every variable, and the score, is cut into cells; trees are grown level by level from sums of
gradients in cells. A node splits at the cell that lowers the loss most, to second order:

.. math:: \frac{G_l^2}{H_l + \lambda} + \frac{G_r^2}{H_r + \lambda} - \frac{G^2}{H + \lambda}.

G and H are rounded to whole numbers and packed into one double-precision number for each row, H in
the upper bits. Sums of whole numbers are exact: they do not depend on the order of rows, and a
weight of 2 equals two rows. Trees of all folds (and classes) grow at the same time, as nodes of one
large tree, so that few rows take few calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal.calibrators import steps
from varcal.calibrators.steps import Forest, Step
from varcal.calibrators.variable.columns import distinct

# Tuned constants, chosen on worlds with jumps, a checkerboard, three-way spikes, and two tables.

#: Cells of a variable at most, for few rows and for many.
FEW_CELLS, MOST_CELLS, MANY_ROWS = 32, 64, 10_000.0
#: Rows of a level with a cell of its own.
LEVEL_ROWS = 20.0
#: λ, and the least H of a leaf.
LEAF_PENALTY, LEAF_LEAST = 10.0, 1.0
#: Rows for each leaf of the deepest trees, and their depth.
LEAF_ROWS, LEAST_DEPTH, MOST_DEPTH = 150.0, 2, 7
#: What each tree adds is multiplied by this: with few and with many rows.
RATE_OF_FEW, RATE, FEW_ROWS = 0.1, 0.2, 5_000.0
#: Trees at most, and how many without a smaller held-out loss end the search.
MOST_TREES, PATIENCE = 120, 8
#: The shrinkage of a category's residuals when its cells are put in order.
ORDER_PENALTY = 10.0
#: Variables at most: those whose cells leave the largest residuals.
MOST_VARIABLES = 40

#: Bits of a double-precision number that hold whole numbers, and the largest total weight of rows.
_BITS, _LARGEST = 53, 20


@dataclass(frozen=True, eq=False)
class Cells:
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


def cells_of(k: int, values: AnyArray, n_levels: int, weight: Floats, most: int) -> Cells | None:
    """Return the cells of a variable; None where nothing varies.

    >>> cells_of(0, np.array([1.0, 2.0, 4.0, np.nan]), 0, np.ones(4), 32).cuts
    array([1.5, 3. ])
    """
    if n_levels:
        held = values >= 0
        counts = np.bincount(values[held], weight[held], minlength=n_levels).astype(np.float64)
        largest = np.argsort(-counts, kind="stable")[: most - 2]
        own = np.sort(largest[counts[largest] >= LEVEL_ROWS])
        if not len(own) or np.count_nonzero(counts) + (not held.all()) < 2:
            return None
        cell = np.ones(n_levels + 2, dtype=np.intp)
        cell[own] = np.arange(2, len(own) + 2)
        cell[-1] = 0
        return Cells(k, np.empty(0), cell)
    known = ~np.isnan(values)
    if not known.any():
        return None
    found, counts = distinct(values[known], weight[known])
    if len(found) < 2:
        return None
    if len(found) < most:
        # Halved first: the sum of two values may overflow.
        return Cells(k, found[:-1] / 2 + found[1:] / 2, np.empty(0, dtype=np.intp))
    reached = np.cumsum(counts)
    at = np.searchsorted(reached, np.arange(1, most - 1) / (most - 1) * reached[-1] * (1 - 1e-12))
    # Midway between values: at a value, the rounding of a logarithm would decide on the cell.
    last = np.unique(at[at < len(found) - 1])
    return Cells(k, found[last] / 2 + found[last + 1] / 2, np.empty(0, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees, one ensemble for each output.

    Attributes
    ----------
    cells : tuple of Cells
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

    cells: tuple[Cells, ...]
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
            numbers = [
                _position_step(cells, order, scores)
                for cells, order in zip(self.cells, place, strict=True)
            ]
            forest = Forest(variable, cut.astype(np.float64), value)
            found.append(steps.trees(numbers, forest).named("trees"))
        return tuple(found)


def _position_step(cells: Cells, place: Ints, scores: Sequence[Step]) -> Step:
    """Return the step to the position of a variable's cell."""
    order = place.astype(np.float64)
    if len(cells.of_level):
        return steps.take(steps.code(cells.variable), order[cells.of_level]).named("tree_cell")
    cuts = cells.cuts
    # Beyond the cuts a value only has to be finite.
    room = 1.0 + float(np.abs(cuts).max())
    x = scores[-1 - cells.variable] if cells.variable < 0 else steps.number(cells.variable)
    inside = steps.clipped(x, float(cuts[0]) - room, float(cuts[-1]) + room)
    ordered = order[1 : len(cuts) + 2]
    if cells.variable < 0:
        return steps.take(steps.find(inside, cuts), ordered).named("tree_cell")
    inside = steps.where(steps.missing(x), float(cuts[0]), inside)
    at = steps.where(steps.missing(x), len(cuts) + 1, steps.find(inside, cuts))
    return steps.take(at, np.append(ordered, order[0])).named("tree_cell")


#: Turns predictors of rows (outputs × rows) into gradients and curvatures of the same shape.
Slopes = Callable[[Floats, Ints], tuple[Floats, Floats]]


@dataclass(frozen=True, eq=False)
class Boosting:
    """The rows from which trees are learned.

    Attributes
    ----------
    cells : tuple of Cells
        The cells of the score and of variables.
    codes : ndarray of shape (d, n)
        The cell of each row.
    mass : ndarray of shape (n,)
        The number of rows that each row stands for.
    slopes : callable
        Returns gradients and curvatures of the loss of rows, by their predictors and positions.
    losses : callable
        Returns the weighted losses of rows, by their predictors and positions.
    depth : int
        Levels of each tree.
    rate : float
        What a tree adds is multiplied by this.
    """

    cells: tuple[Cells, ...]
    codes: NDArray[np.uint8]
    mass: Floats
    slopes: Slopes
    losses: Callable[[Floats, Ints], Floats]
    depth: int
    rate: float

    @property
    def n_cells(self) -> int:
        """The number of cells of a variable at most."""
        return max(
            int(each.of_level.max()) + 1 if len(each.of_level) else len(each.cuts) + 2
            for each in self.cells
        )

    def held_out(self, base: Floats, splits: list[tuple[Bools, Bools]]) -> tuple[int, Floats]:
        """Return the number of trees with the least held-out loss, and the predictor by them.

        Rows that are never held out keep `base`, of shape (outputs, n).
        """
        train = [np.flatnonzero(fit) for fit, _ in splits]
        held = [np.flatnonzero(out) for _, out in splits]
        machine = _Machine(self, base, train)
        where_to = _Traversal(machine, held)
        rows = np.concatenate(held)
        eta = base.copy()
        best, least, best_eta = 0, float(self.losses(eta[:, rows], rows).sum()), eta
        for n in range(1, MOST_TREES + 1):
            tree = machine.step()
            eta = eta.copy()
            eta[:, rows] += where_to.added(tree)
            loss = float(self.losses(eta[:, rows], rows).sum())
            if loss < least:
                best, least, best_eta = n, loss, eta
            elif n >= best + PATIENCE:
                break
        return best, best_eta

    def grown(self, base: Floats, n_trees: int) -> Trees:
        """Return trees of all rows."""
        machine = _Machine(self, base, [np.arange(base.shape[1])])
        found = [machine.step() for _ in range(n_trees)]
        variable, cut, value, gain = (np.stack(each, axis=1) for each in zip(*found, strict=True))
        gains = np.bincount(variable.ravel(), gain.ravel(), minlength=len(self.cells))
        used = np.asarray(gains / max(float(gains.sum()), 1e-300), dtype=np.float64)
        return Trees(self.cells, machine.place, variable, cut, value, used)


class _Machine:
    """Trees of several folds and outputs that grow at the same time."""

    def __init__(self, rows: Boosting, base: Floats, train: list[Ints]) -> None:
        self.rows, outputs = rows, len(base)
        self.parts = train
        # One entry for each row of each fold and output; machines are ordered by fold, output.
        self.entry = np.concatenate([each for part in train for each in [part] * outputs])
        sizes = np.repeat([len(part) for part in train], outputs)
        self.machine = np.repeat(np.arange(len(sizes)), sizes)
        self.eta = [base[:, part].copy() for part in train]
        self.place = self._places()
        self.codes = np.empty((len(rows.codes), len(self.entry)), dtype=np.uint8)
        for k, each in enumerate(rows.codes):
            self.codes[k] = self.place[self.machine, k, each[self.entry]]
        self.mass = rows.mass[self.entry]
        self.total = float(rows.mass.sum())
        self.n_machines = len(sizes)

    def _slopes(self) -> tuple[Floats, Floats]:
        both = [self.rows.slopes(eta, part) for eta, part in zip(self.eta, self.parts, strict=True)]
        gradient, curvature = (np.concatenate([each[i].ravel() for each in both]) for i in (0, 1))
        return gradient, curvature

    def _places(self) -> Ints:
        """Return the order of cells: their own, or for categories that of their residuals."""
        rows, n_cells = self.rows, self.rows.n_cells
        n_machines = int(self.machine.max()) + 1
        place = np.broadcast_to(np.arange(n_cells), (n_machines, len(rows.codes), n_cells)).copy()
        if not any(len(each.of_level) for each in rows.cells):
            return place
        gradient, curvature = self._slopes()
        mass = rows.mass[self.entry]
        for k, each in enumerate(rows.cells):
            if not len(each.of_level):
                continue
            at = self.machine * n_cells + rows.codes[k][self.entry]
            sums = np.bincount(at, mass * gradient, minlength=n_machines * n_cells)
            size = np.bincount(at, mass * curvature, minlength=n_machines * n_cells)
            mean = (sums / (size + ORDER_PENALTY)).round(9).reshape(n_machines, n_cells)
            order = np.argsort(mean, axis=1, kind="stable")
            np.put_along_axis(
                place[:, k], order, np.broadcast_to(np.arange(n_cells), order.shape), axis=1
            )
        return place

    def step(self) -> tuple[Ints, Ints, Floats, Floats]:
        """Grow one tree per machine: variables, cuts, leaves and gains."""
        rows, depth, m = self.rows, self.rows.depth, self.n_machines
        packed = _Packed.of(*self._slopes(), self.mass, self.total)
        n_cells, node = rows.n_cells, self.machine
        sums = _histograms(self.codes, node, packed.value, m, n_cells)
        variables: list[AnyArray] = []
        cuts: list[AnyArray] = []
        gains: list[AnyArray] = []
        for level in range(depth):
            if level:
                sums = _children(sums, self.codes, packed.value, node)
            variable, cut, gain = _best_splits(*packed.sums(np.cumsum(sums, axis=2)))
            for kept, each in zip((variables, cuts, gains), (variable, cut, gain), strict=True):
                kept.append(each.reshape(m, -1))
            n = self.codes.shape[1]
            at = variable[node] * n
            at += np.arange(n)
            node = 2 * node + (self.codes.ravel()[at] > cut[node])
        leaves = m * 2**depth
        G, H = packed.sums(np.bincount(node, packed.value, minlength=leaves).astype(np.float64))
        value = -rows.rate * G / (H + LEAF_PENALTY)
        added, begin = value[node], 0
        for eta in self.eta:
            eta += added[begin : begin + eta.size].reshape(eta.shape)
            begin += eta.size
        found = [np.concatenate(each, axis=1) for each in (variables, cuts, gains)]
        return found[0], found[1], value.reshape(m, -1), found[2]


class _Traversal:
    """Held-out rows on their way through the trees of their folds."""

    def __init__(self, machine: _Machine, held: list[Ints]) -> None:
        rows = machine.rows
        self.outputs = machine.n_machines // len(held)
        sizes = [len(part) for part in held]
        self.own = np.concatenate(
            [
                np.repeat(np.arange(f * self.outputs, (f + 1) * self.outputs), size)
                for f, size in enumerate(sizes)
            ]
        )
        entry = np.concatenate([each for part in held for each in [part] * self.outputs])
        self.sizes = sizes
        self.codes = np.empty((len(rows.codes), len(entry)), dtype=np.uint8)
        for k, each in enumerate(rows.codes):
            self.codes[k] = machine.place[self.own, k, each[entry]]

    def added(self, tree: tuple[Ints, Ints, Floats, Floats]) -> Floats:
        """Return what one more tree adds, of shape (outputs, held rows)."""
        variable, cut, value, _ = tree
        inner, n = variable.shape[1], self.codes.shape[1]
        flat, rows = self.codes.ravel(), np.arange(n)
        begin, cuts = variable.ravel() * n, cut.ravel()
        node = np.zeros(n, dtype=np.intp)
        first = self.own * inner
        for _ in range(int(inner).bit_length()):
            at = first + node
            node = 2 * node + 1 + (flat[begin[at] + rows] > cuts[at])
        found = value.ravel()[self.own * (inner + 1) + node - inner]
        parts, at = [], 0
        for size in self.sizes:
            parts.append(found[at : at + self.outputs * size].reshape(self.outputs, size))
            at += self.outputs * size
        return np.concatenate(parts, axis=1)


@dataclass(frozen=True, eq=False)
class _Packed:
    """Gradients and curvatures of rows as whole numbers in one number each."""

    value: Floats
    gradient_unit: float
    curvature_unit: float
    shift: float

    @classmethod
    def of(cls, gradient: Floats, curvature: Floats, mass: Floats, total: float) -> _Packed:
        exponent = int(np.ceil(np.log2(max(total, 2.0))))
        scale = 2.0 ** max(exponent - _LARGEST, 0)
        exponent = min(exponent, _LARGEST)
        spare = _BITS + 1 - 2 * exponent
        low = min((spare + 2) // 2, 16)
        high = min(spare - low, 16)
        shift = 2.0 ** (exponent + low + 1)
        mass = mass / scale
        whole = np.rint(mass * np.rint(gradient * 2.0**low))
        whole += shift * np.rint(mass * np.rint(curvature * 2.0**high))
        return cls(whole, scale / 2.0**low, scale / 2.0**high, shift)

    def sums(self, packed: Floats) -> tuple[Floats, Floats]:
        """Return sums of gradients and curvatures from sums of packed numbers."""
        upper = np.rint(packed / self.shift)
        return (packed - upper * self.shift) * self.gradient_unit, upper * self.curvature_unit


def _histograms(
    codes: NDArray[np.uint8], node: Ints, value: Floats, n_nodes: int, n_cells: int
) -> Floats:
    """Return the sums of each node, variable and cell."""
    begin = node * n_cells
    size = n_nodes * n_cells
    found = np.empty((n_nodes, len(codes), n_cells))
    for k, each in enumerate(codes):
        found[:, k] = np.bincount(begin + each, value, minlength=size).reshape(n_nodes, n_cells)
    return found


def _children(sums: Floats, codes: NDArray[np.uint8], value: Floats, node: Ints) -> Floats:
    """Return the sums of the children of nodes: of the smaller child by its rows, and the rest."""
    n_parents, d, n_cells = sums.shape
    counts = np.bincount(node, minlength=2 * n_parents).reshape(-1, 2)
    right_smaller = counts[:, 1] < counts[:, 0]
    rows = np.flatnonzero((node & 1) == right_smaller[node >> 1])
    own = _histograms(codes[:, rows], node[rows] >> 1, value[rows], n_parents, n_cells)
    both = np.empty((n_parents, 2, d, n_cells))
    small, parents = right_smaller.astype(np.intp), np.arange(n_parents)
    both[parents, small] = own
    both[parents, 1 - small] = sums - own
    return both.reshape(2 * n_parents, d, n_cells)


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


def depths_of(n_rows: float) -> tuple[int, ...]:
    """Return the depths of trees to try: the deepest that rows allow, and half of it.

    Jumps along single variables want shallow trees, what many variables do together deep ones.

    >>> depths_of(1_000), depths_of(10_000), depths_of(1e6)
    ((2,), (6, 3), (7, 3))
    """
    deep = int(np.clip(np.log2(n_rows / LEAF_ROWS), LEAST_DEPTH, MOST_DEPTH))
    return tuple(dict.fromkeys((deep, max(deep // 2, LEAST_DEPTH))))


def boosting_of(
    scores: Sequence[Floats],
    columns: list[AnyArray],
    n_levels: list[int],
    mass: Floats,
    residual: Floats,
    slopes: Slopes,
    losses: Callable[[Floats, Ints], Floats],
) -> Boosting | None:
    """Return the rows of trees; of many variables those with the largest residuals in cells.

    Parameters
    ----------
    scores : sequence of ndarray
        The scores that trees may split by.
    columns, n_levels : list
        The variables.
    mass : ndarray
        The number of rows that each row stands for.
    residual : ndarray of shape (outputs, n)
        Residuals at the start.
    slopes, losses : callable
        As for `Boosting`.
    """
    total = float(mass.sum())
    most = FEW_CELLS if total < MANY_ROWS else MOST_CELLS
    values = {-1 - k: each for k, each in enumerate(scores)} | dict(enumerate(columns))
    found = [
        cells_of(k, each, 0 if k < 0 else n_levels[k], mass, most) for k, each in values.items()
    ]
    kept = [each for each in found if each is not None]
    if not any(each.variable >= 0 for each in kept) and len(scores) == 1:
        return None
    codes = {each.variable: each.codes(values[each.variable]) for each in kept}

    def gain(cells: Cells) -> float:
        own = codes[cells.variable]
        size = np.bincount(own, mass) + LEAF_PENALTY
        return sum(float((np.bincount(own, mass * each) ** 2 / size).sum()) for each in residual)

    if len(kept) > MOST_VARIABLES:
        ranked = sorted(kept, key=lambda each: (each.variable >= 0, -gain(each), each.variable))
        kept = sorted(ranked[:MOST_VARIABLES], key=lambda each: each.variable)
    every = np.array([codes[each.variable] for each in kept])
    rate = RATE_OF_FEW if total < FEW_ROWS else RATE
    return Boosting(tuple(kept), every, mass, slopes, losses, LEAST_DEPTH, rate)


def with_depth(rows: Boosting, depth: int) -> Boosting:
    """Return the same with trees of another depth."""
    return replace(rows, depth=depth)
