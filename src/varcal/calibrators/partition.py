"""A decision tree over V: how it is grown, and which leaf a row belongs to.

It is not scikit-learn's tree, because it gives missing values a branch of their own, splits
categories as such, compares in double precision (which dates and large numbers need), measures
leaves by weight and uses no random numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal.calibrators.steps import (
    Step,
    among,
    at_most,
    code,
    constant,
    less,
    missing,
    number,
    where,
)

Columns = list[AnyArray]

# Numerical limits: gains of a split, relative to the weight of its rows, that count as none; that
# are rounding; and relative to one another, that count as equal. Decimals to which the order of
# categories is determined.
_LEAST_GAIN, _ROUNDING, _EQUAL_GAIN, _DECIMALS = 1e-10, 1e-12, 1e-9, 12


@dataclass(frozen=True)
class Leaf:
    """A region: the rows and the weight that it was grown from."""

    n: int
    weight: float


@dataclass(frozen=True)
class Split:
    """A cut along one variable.

    Attributes
    ----------
    variable : int
        The position of the variable.
    threshold : float
        Numbers below it go left, the others right; NaN for categories.
    left_levels, right_levels : tuple of int
        The categories of each side; none for numbers.
    left, right : Node
        The two sides.
    other : Node or {"left", "right"}
        Where missing values and categories of neither side go: to a branch of their own if the
        fit had enough of them, otherwise to the heavier side.
    """

    variable: int
    threshold: float
    left_levels: tuple[int, ...]
    right_levels: tuple[int, ...]
    left: Node
    right: Node
    other: Node | str


Node = Leaf | Split


def leaf_step(node: Node) -> Step:
    """Return the step to the number of a row's leaf, in the order of `leaves`."""
    numbers = iter(range(1 << 30))

    def walk(here: Node) -> Step:
        if isinstance(here, Leaf):
            return constant(next(numbers))
        left, right = walk(here.left), walk(here.right)
        other: Any = here.other if isinstance(here.other, str) else walk(here.other)
        if here.left_levels:
            values = code(here.variable)
            on_left, on_right = among(values, here.left_levels), among(values, here.right_levels)
            if other == "left":
                return where(on_right, right, left)
            if other == "right":
                return where(on_left, left, right)
            return where(on_left, left, where(on_right, right, other))
        values = number(here.variable)
        if other == "left":
            return where(at_most(here.threshold, values), right, left)
        known = where(less(values, here.threshold), left, right)
        return known if other == "right" else where(missing(values), other, known)

    return walk(node)


def leaves(node: Node, path: tuple[tuple[Split, str], ...] = ()) -> Iterator[tuple[Leaf, Any]]:
    """Yield the leaves from left to right, each with the splits and sides that lead to it."""
    if isinstance(node, Leaf):
        yield node, path
        return
    yield from leaves(node.left, (*path, (node, "left")))
    yield from leaves(node.right, (*path, (node, "right")))
    if not isinstance(node.other, str):
        yield from leaves(node.other, (*path, (node, "other")))


def grow(
    columns: Columns,
    y: AnyArray,
    weight: Floats | None,
    n_classes: int,
    *,
    max_depth: int,
    min_weight: float,
) -> Node:
    """Grow a tree that lowers the Gini impurity of y most.

    Parameters
    ----------
    columns : list of ndarray
        Numbers with NaN, or integer positions of categories with −1, as `Schema.align` gives.
    y : ndarray of int
        The class of each row.
    weight : ndarray, optional
        Row weights.
    n_classes : int
        K.
    max_depth : int
        Splits above a leaf at most.
    min_weight : float
        The least weight of a side. Of equally good splits, the first variable and the lowest
        threshold are taken.
    """
    mass = np.ones(y.size) if weight is None else weight
    least = min_weight * (1.0 - _ROUNDING)

    def build(rows: Ints, depth: int) -> Node:
        total = float(mass[rows].sum())
        cut = None
        if depth > 0 and total >= 2 * least and np.ptp(y[rows]) > 0:
            cut = _best_cut(columns, y, mass, rows, n_classes, least)
        if cut is None:
            return Leaf(rows.size, total)
        left, right, other = rows[cut.left], rows[cut.right], rows[~(cut.left | cut.right)]
        heavier = "left" if mass[left].sum() >= mass[right].sum() else "right"
        own_branch = other.size > 0 and mass[other].sum() >= least
        if not own_branch and heavier == "left":
            left = rows[~cut.right]
        elif not own_branch:
            right = rows[~cut.left]
        return Split(
            cut.variable,
            cut.threshold,
            cut.left_levels,
            cut.right_levels,
            build(left, depth - 1),
            build(right, depth - 1),
            build(other, depth - 1) if own_branch else heavier,
        )

    return build(np.arange(y.size), max_depth)


@dataclass(frozen=True, eq=False)
class _Cut:
    variable: int
    threshold: float
    left_levels: tuple[int, ...]
    right_levels: tuple[int, ...]
    left: Bools
    right: Bools


def _best_cut(
    columns: Columns,
    y: AnyArray,
    mass: Floats,
    rows: Ints,
    n_classes: int,
    least: float,
) -> _Cut | None:
    labels, weights = y[rows], mass[rows]
    whole = float(weights.sum())
    best, best_gain = None, _LEAST_GAIN * whole
    for variable, column in enumerate(columns):
        values = column[rows]
        is_levels = values.dtype.kind == "i"
        known = values >= 0 if is_levels else ~np.isnan(values)
        if is_levels:
            order_of = _level_order(values[known], labels[known], weights[known], n_classes)
            axis = order_of[values[known]]
        else:
            axis = values[known]
        found = _cut_axis(axis, labels[known], weights[known], n_classes, least)
        if found is None:
            continue
        gain, threshold = found
        apart = ~known
        if apart.any() and weights[apart].sum() >= least:
            gain += _separation(known, labels, weights, n_classes)
        # Rounding must not decide between equally good variables.
        if gain <= best_gain * (1 + _EQUAL_GAIN) + _ROUNDING * whole:
            continue
        best_gain = gain
        left, right = np.zeros(rows.size, bool), np.zeros(rows.size, bool)
        left[known], right[known] = axis < threshold, axis >= threshold
        if is_levels:
            sides = np.unique(values[left]), np.unique(values[right])
            cut = (np.nan, tuple(sides[0].tolist()), tuple(sides[1].tolist()))
        else:
            cut = (threshold, (), ())
        best = _Cut(variable, *cut, left, right)
    return best


def _cut_axis(
    axis: AnyArray, labels: AnyArray, weights: Floats, n_classes: int, least: float
) -> tuple[float, float] | None:
    """Return by how much the best threshold lowers n·Gini, and the threshold."""
    if axis.size < 2:
        return None
    order = np.argsort(axis, kind="stable")
    axis, labels, weights = axis[order], labels[order], weights[order]
    totals = np.bincount(labels, weights, minlength=n_classes).astype(np.float64)
    whole = float(totals.sum())
    before = np.cumsum(weights)[:-1]
    may_cut = (axis[1:] > axis[:-1]) & (before >= least) & (whole - before >= least)
    places = np.flatnonzero(may_cut)
    if not places.size:
        return None
    left_squares, mixed = _running_squares(labels, weights, totals)
    square = float(totals @ totals)
    left = left_squares[places] / before[places]
    right = (square - 2.0 * mixed[places] + left_squares[places]) / (whole - before[places])
    gain = left + right - square / whole
    # The lowest of the thresholds that equal the best up to rounding.
    place = places[np.argmax(gain >= gain.max() - _ROUNDING * whole)]
    low, high = float(axis[place]), float(axis[place + 1])
    with np.errstate(invalid="ignore"):
        middle = low + 0.5 * (high - low)
    return float(gain.max()), middle if low < middle <= high else high


def _running_squares(labels: AnyArray, weights: Floats, totals: Floats) -> tuple[Floats, Floats]:
    """Return Σ_k left_k² and Σ_k total_k·left_k after each row, in time free of K."""
    by_class = np.argsort(labels, kind="stable")
    inclusive = np.cumsum(weights[by_class])
    offsets = np.cumsum(totals) - totals
    so_far = np.empty(labels.size)
    so_far[by_class] = inclusive - offsets[labels[by_class]] - weights[by_class]
    squares = np.cumsum(weights * (2.0 * so_far + weights))
    return squares, np.cumsum(weights * totals[labels])


def _level_order(values: AnyArray, labels: AnyArray, weights: Floats, n_classes: int) -> Ints:
    """Return the rank of every category: by P(second class), or along the first principal axis.

    For two classes the best split of categories is one of this order (Breiman et al. 1984); for
    more the axis is a good approximation (Coppersmith et al. 1999).
    """
    n_levels = int(values.max(initial=-1)) + 1
    table = np.bincount(values * n_classes + labels, weights, minlength=n_levels * n_classes)
    table = table.reshape(n_levels, n_classes)
    mass = table.sum(axis=1)
    shares = table / np.where(mass > 0, mass, 1.0)[:, None]
    if n_classes == 2:
        score = shares[:, 1]
    else:
        centred = (shares - table.sum(axis=0) / max(mass.sum(), 1e-300)) * np.sqrt(mass)[:, None]
        axis = np.linalg.svd(centred, full_matrices=False)[2][0]
        # The sign of a singular vector is arbitrary; fix it, so that the tree is not.
        score = shares @ (axis * np.sign(axis[np.argmax(np.abs(axis))]))
    # Scores that are equal up to rounding are equal, in whatever order they were summed.
    rank = np.empty(n_levels, dtype=np.intp)
    rank[np.argsort(np.round(score, _DECIMALS), kind="stable")] = np.arange(n_levels)
    return rank


def _separation(known: Bools, labels: AnyArray, weights: Floats, n_classes: int) -> float:
    """Return by how much a separate branch for missing values lowers n·Gini."""
    parts = [np.bincount(labels[m], weights[m], minlength=n_classes) for m in (known, ~known)]
    whole = parts[0] + parts[1]
    return float(sum(c @ c / c.sum() for c in parts) - whole @ whole / whole.sum())
