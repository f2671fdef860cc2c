"""Boosted trees from the score: how many, judged on held-out rows, and how they predict."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from varcal._arrays import Floats, Ints
from varcal.calibrators._variable._growth.cells import MOST_CELLS
from varcal.calibrators._variable._growth.grow_tree import Codes, Tree, grow_tree, leaves_of
from varcal.calibrators._variable.folds import Folds

# Tuned constants; ../README.md tells how they were chosen.

#: Levels of the deepest trees: a leaf has about so many rows, within these limits. Spikes of three
#: variables in 50,000 rows: .5143 at depth 6 and a rate of 0.3, .5090 as it is. Trees alone of
#: depth 10 gained nothing there and .001 on flights.
LEAF_ROWS = 150.0
LEAST_DEPTH, MOST_DEPTH = 2, 8
#: What a tree adds is multiplied by this; where rows are few, time is not short.
RATE = 0.2
RATE_OF_FEW, FEW_ROWS = 0.1, 5_000.0
#: Trees at most, and how many trees without a smaller held-out loss end the search.
MOST_TREES = 120
PATIENCE = 8
#: The shrinkage of a category's cell towards 0 when its cells are put in order.
ORDER_PENALTY = 10.0


@dataclass(frozen=True, eq=False)
class Trees:
    """Boosted trees.

    Attributes
    ----------
    place : ndarray of shape (d, n_cells)
        The position of each cell in the order that splits use: that of categories depends on
        their outcomes.
    variable, cut : ndarray of shape (n_trees, 2**depth − 1)
        Splits: a row goes right where the position of the variable's cell is above the cut.
    value : ndarray of shape (n_trees, 2**depth)
        What leaves add.
    used : ndarray of shape (d,)
        The share of each variable in what the splits gain.
    """

    place: Ints
    variable: Ints
    cut: Ints
    value: Floats
    used: Floats

    def _check_saved(self) -> None:
        """Raise ValueError unless trees are complete and split by variables that exist."""
        if self.place.ndim != 2 or self.used.shape != self.place.shape[:1]:
            raise ValueError("the cells of trees do not match their variables")
        n_trees, leaves = self.value.shape
        inner = (n_trees, leaves - 1)
        if leaves < 2 or leaves & leaves - 1 or self.cut.shape != inner:
            raise ValueError("trees are not complete")
        if self.variable.shape != inner or _outside(self.variable, len(self.place)):
            raise ValueError("trees split by unknown variables")
        if _outside(self.place, MOST_CELLS) or _outside(self.cut, MOST_CELLS):
            raise ValueError("trees have unknown cells")
        if not np.isfinite(self.value).all() or not np.isfinite(self.used).all():
            raise ValueError("trees do not add numbers")

    def added(self, codes: Codes) -> Floats:
        """Return what the trees add to the predictor of rows, by their cells."""
        positions = placed(self.place, codes)
        total = np.zeros(codes.shape[1])
        for variable, cut, value in zip(self.variable, self.cut, self.value, strict=True):
            total += value[leaves_of(variable, cut, positions)]
        return total


@dataclass(frozen=True, eq=False)
class Boosting:
    """The rows from which trees are learned.

    Attributes
    ----------
    codes : ndarray of shape (d, n)
        The cells of the score and of the variables.
    ordered : ndarray of shape (d,)
        Whether the cells of a variable have an order of their own, as those of numbers.
    n_cells : int
        The number of cells of a variable at most.
    base : ndarray of shape (n,)
        The predictor from which trees start.
    y, mass : ndarray of shape (n,)
        Outcomes, and the number of rows that each row stands for.
    depth : int
        Levels of each tree.
    rate : float
        What a tree adds is multiplied by this.
    """

    codes: Codes
    ordered: Ints
    n_cells: int
    base: Floats
    y: Floats
    mass: Floats
    depth: int
    rate: float

    def take(self, rows: Ints) -> Boosting:
        """Return some of the rows."""
        return replace(
            self,
            codes=np.ascontiguousarray(self.codes[:, rows]),
            base=self.base[rows],
            y=self.y[rows],
            mass=self.mass[rows],
        )

    def places(self) -> Ints:
        """Return the order of cells: their own, or for categories that of their residuals."""
        place = np.tile(np.arange(self.n_cells), (len(self.codes), 1))
        mean = expit(self.base)
        residual, weight = self.mass * (self.y - mean), self.mass * mean * (1.0 - mean)
        for k in np.flatnonzero(~self.ordered):
            sums = np.bincount(self.codes[k], residual, minlength=self.n_cells)
            size = np.bincount(self.codes[k], weight, minlength=self.n_cells)
            order = np.argsort((sums / (size + ORDER_PENALTY)).round(9), kind="stable")
            place[k, order] = np.arange(self.n_cells)
        return place


class _Machine:
    """Trees that grow one after another on some rows."""

    def __init__(self, rows: Boosting) -> None:
        self.rows, self.eta = rows, rows.base.copy()
        self.place = rows.places()
        self.codes = placed(self.place, rows.codes)
        self.trees: list[Tree] = []

    def step(self) -> Tree:
        """Grow one more tree."""
        rows, mean = self.rows, expit(self.eta)
        tree, leaf = grow_tree(
            self.codes, mean - rows.y, mean * (1.0 - mean), rows.mass, rows.n_cells, rows.depth
        )
        tree = replace(tree, value=rows.rate * tree.value)
        self.eta += tree.value[leaf]
        self.trees.append(tree)
        return tree

    def grown(self, number: int) -> Trees:
        """Return the first trees."""
        inner = 2**self.rows.depth - 1
        kept = self.trees[:number]
        variable = np.array([tree.variable for tree in kept], dtype=np.intp).reshape(-1, inner)
        gain = np.array([tree.gain for tree in kept])
        used = np.bincount(variable.ravel(), gain.ravel(), minlength=len(self.codes))
        return Trees(
            self.place,
            variable,
            np.array([tree.cut for tree in kept], dtype=np.intp).reshape(-1, inner),
            np.array([tree.value for tree in kept]).reshape(-1, inner + 1),
            used / max(float(used.sum()), 1e-300),
        )


@dataclass(frozen=True, eq=False)
class HeldOutTrees:
    """Trees without each fold.

    Attributes
    ----------
    number : int
        How many trees are best.
    eta : ndarray of shape (n,)
        The predictor of each row by trees that have not seen its fold; rows that are never held
        out keep the predictor from which trees start.
    folds : tuple of Trees
        The trees without each fold.
    kept : float
        The weight of the rows of which trees are made, over that of the rows held out.
    """

    number: int
    eta: Floats
    folds: tuple[Trees, ...]
    kept: float

    def variance(self, whole: Trees, codes: Codes) -> float:
        """Return the mean variance of what trees of all rows add, by the delete-d jackknife."""
        added = whole.added(codes)
        apart = [float(((trees.added(codes) - added) ** 2).mean()) for trees in self.folds]
        return self.kept * float(np.mean(apart))


def depths_of(n_rows: float) -> tuple[int, ...]:
    """Return the depths of trees to try: the deepest that rows allow, and half of it.

    Jumps along single variables want shallow trees, and what many variables do together deep ones.

    >>> depths_of(1_000), depths_of(10_000), depths_of(1e6)
    ((2,), (6, 3), (8, 4))
    """
    deep = int(np.clip(np.log2(n_rows / LEAF_ROWS), LEAST_DEPTH, MOST_DEPTH))
    return tuple(dict.fromkeys((deep, max(deep // 2, LEAST_DEPTH))))


def rate_of(n_rows: float) -> float:
    """Return the factor of what each tree adds."""
    return RATE_OF_FEW if n_rows < FEW_ROWS else RATE


def held_out_trees(rows: Boosting, folds: Folds) -> HeldOutTrees:
    """Grow trees without each fold, as many as are best for held-out rows."""
    machines: list[tuple[_Machine, Codes, Ints]] = []
    shares = []
    for train, held in folds.splits():
        shares.append(float(rows.mass[train].sum() / rows.mass[held].sum()))
        machine, out = _Machine(rows.take(np.flatnonzero(train))), np.flatnonzero(held)
        machines.append((machine, placed(machine.place, rows.codes[:, out]), out))
    rest = np.flatnonzero(folds.judged())
    eta = rows.base.copy()
    best, best_loss, best_eta = 0, _loss(rows, eta, rest), eta.copy()
    for number in range(1, MOST_TREES + 1):
        for machine, codes, out in machines:
            tree = machine.step()
            eta[out] += tree.value[leaves_of(tree.variable, tree.cut, codes)]
        loss = _loss(rows, eta, rest)
        if loss < best_loss:
            best, best_loss, best_eta = number, loss, eta.copy()
        elif number >= best + PATIENCE:
            break
    grown = tuple(machine.grown(best) for machine, _, _ in machines)
    return HeldOutTrees(best, best_eta, grown, float(np.mean(shares)))


def fit_trees(rows: Boosting, number: int) -> Trees:
    """Return so many trees, grown on all rows."""
    machine = _Machine(rows)
    for _ in range(number):
        machine.step()
    return machine.grown(number)


def placed(place: Ints, codes: Codes) -> Codes:
    """Return the position of each cell in the order that splits use."""
    return np.array(
        [order.astype(np.uint8)[each] for order, each in zip(place, codes, strict=True)]
    )


def _outside(numbers: Ints, size: int) -> bool:
    """Tell whether a number is not one of 0, …, size − 1."""
    return bool((numbers < 0).any() or (numbers >= size).any())


def _loss(rows: Boosting, eta: Floats, some: Ints) -> float:
    here, mass = eta[some], rows.mass[some]
    return float(mass @ (np.logaddexp(0.0, here) - rows.y[some] * here) / mass.sum())
