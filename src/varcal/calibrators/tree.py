"""The tree calibrator: a score-based calibrator in each leaf of a tree over V.

The tree is not scikit-learn's, because it gives missing values a branch of their own, splits
categories as such, compares in double precision (which dates and large numbers need), measures
leaves by weight and uses no random numbers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from varcal import _options as options
from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal.calibrators import steps
from varcal.calibrators.calibrator import Calibrator, parameter
from varcal.calibrators.evaluate import evaluate
from varcal.calibrators.log_linear import DirichletCalibrator
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.schema import Schema
from varcal.calibrators.score_maps import BetaCalibrator
from varcal.calibrators.steps import Step, where
from varcal.exceptions import InputError, VarcalWarning

#: Deeper trees have more leaves than any table has rows.
MOST_DEPTH = 64
#: Levels of a category that a description names.
_SHOWN_LEVELS = 6
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
Path = tuple[tuple[Split, str], ...]


@dataclass(eq=False, repr=False)
class TreeCalibrator(Calibrator):
    r"""Tree calibration: a decision tree over V with a score-based calibrator in each leaf.

    .. math:: q(p, v) = f_{\ell(v)}(p)

    where ℓ(v) is the leaf of a tree grown on (V, y) by Gini impurity and :math:`f_\ell` a
    score-based calibrator fitted on that leaf. Each leaf is fitted on its own rows and on the
    whole calibration set, which has a total weight of `borrow` rows: a leaf with many rows is
    determined by them, one with few rows or a single class mostly by the whole set. Any number of
    classes that the calibrator in the leaves supports.

    Missing values have a branch of their own where there are enough of them; otherwise they,
    and categories that were not in the fit, go to the heavier side.

    Parameters
    ----------
    calibrator : Calibrator, optional
        The calibrator of each leaf; None means beta for two classes, Dirichlet for more.
    max_depth : int
        Splits above a leaf at most.
    min_leaf : float
        The least share of the total weight in a leaf.
    borrow : float
        The weight, in rows, of the whole calibration set in the fit of each leaf. With 0, a leaf
        with a single class uses the fit of the whole set.

    Attributes
    ----------
    tree_ : Leaf or Split
        The tree.
    leaves_ : list of Calibrator
        The calibrators of the leaves.
    schema_ : Schema
        The variables.

    References
    ----------
    M. Kelly, P. Smyth (2023), Variable-based calibration for machine learning classifiers, AAAI.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> age, p = rng.uniform(20, 80, 2000), rng.uniform(0.05, 0.95, 2000)
    >>> y = rng.random(2000) < np.where(age < 50, p, p**3)
    >>> fit = TreeCalibrator(max_depth=1).fit(p, y, age)
    >>> fit.predict_proba([0.5, 0.5], [30, 70])[:, 1].round(2)
    array([0.5 , 0.13])
    """

    calibrator: Calibrator | None = None
    max_depth: int = parameter(3, options.whole(0, MOST_DEPTH), kw_only=True)
    min_leaf: float = parameter(
        0.1, options.number(0, 0.5, ends="[]", hint="try 0.05"), kw_only=True
    )
    borrow: float = parameter(20.0, options.check_not_negative, kw_only=True)
    tree_: Node = field(init=False)
    leaves_: list[Calibrator] = field(init=False)
    schema_: Schema = field(init=False)
    _uses_variables = True
    _needs_variables = True

    @classmethod
    def paper(cls, dataset: Literal["adult", "bank", "cifar", "yelp"] = "adult") -> Self:
        """Return the settings of Kelly & Smyth for one of their data sets.

        Depth 3 and at least a tenth of the rows in a leaf; for bank, depth 2 and a twentieth.
        Dirichlet in the leaves for cifar, beta for the others, and `borrow=0`.
        """
        options.check_choice("dataset", dataset, ["adult", "bank", "cifar", "yelp"])
        inner = DirichletCalibrator.paper() if dataset == "cifar" else BetaCalibrator.paper()
        depth, least = (2, 0.05) if dataset == "bank" else (3, 0.1)
        return cls(inner, max_depth=depth, min_leaf=least, borrow=0.0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        problem = ""
        if self.calibrator is not None and not isinstance(self.calibrator, Calibrator):
            problem = f"be a calibrator of varcal; got {self.calibrator!r}"
        elif self.calibrator is not None and self.calibrator._uses_variables:
            problem = f"use the score alone; {self.calibrator!r} uses variables"
        if problem:
            raise InputError(f"calibrator must {problem}", "try BetaCalibrator()")

    def _learn(self, rows: CalibrationRows) -> None:
        self.schema_ = Schema.of(rows.variables, type(self).__name__)
        columns = self.schema_.align(rows.variables)
        mass = np.zeros((len(rows), rows.n_classes))
        mass[np.arange(len(rows)), rows.y] = 1.0 if rows.weight is None else rows.weight
        least = self.min_leaf * rows.total()
        self.tree_ = _grow(columns, mass, max_depth=self.max_depth, min_weight=least)
        n_levels = [*map(len, self.schema_.levels)]
        found = evaluate([_leaf_step(self.tree_)], rows.p, columns, n_levels)[:, 0]
        rows = replace(rows, variables=())
        self.leaves_ = [self._fit_leaf(rows, found == k) for k, _ in enumerate(_leaves(self.tree_))]
        self.separated_ = any(each.separated_ for each in self.leaves_)

    def _fit_leaf(self, rows: CalibrationRows, inside: Bools) -> Calibrator:
        default = BetaCalibrator() if rows.n_classes == 2 else DirichletCalibrator()
        inner = default if self.calibrator is None else self.calibrator._unfitted()
        if inside.all():
            return inner._fit_rows(rows)
        if self.borrow > 0:
            weight = np.ones(len(rows)) if rows.weight is None else rows.weight
            lent = weight * (self.borrow / weight.sum())
            return inner._fit_rows(rows.weighted(lent + np.where(inside, weight, 0.0)))
        own = rows.take(inside)
        if own.present().sum() < 2:
            warnings.warn(
                f"a leaf of {len(own):,} rows holds a single class and uses the fit of the "
                "whole set; borrow=20 lets it learn from both",
                VarcalWarning,
                stacklevel=5,
            )
            own = rows
        return inner._fit_rows(own)

    @property
    def _normalized(self) -> bool:
        return all(leaf._normalized for leaf in self.leaves_)

    def _steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        leaf = _leaf_step(self.tree_).named("leaf")
        inner = [steps.join(each._steps(scores)) for each in self.leaves_]
        return steps.items(steps.choose(leaf, inner))

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        walked = list(_leaves(self.tree_))
        total = sum(leaf.weight for leaf, _ in walked)
        table = [
            {
                "leaf": number,
                "where": self._conditions(path) or "everywhere",
                "n": leaf.n,
                "share": leaf.weight / total,
                "calibrator": _one_line(inner),
            }
            for number, ((leaf, path), inner) in enumerate(zip(walked, self.leaves_, strict=True))
        ]
        names = ", ".join(self.schema_.names)
        leaf_word = "leaf" if len(table) == 1 else "leaves"
        return f"A tree on {names} with {len(table)} {leaf_word}.", table

    def _conditions(self, path: Path) -> str:
        """Describe the way to a leaf; of a variable's bounds on one side the last is tightest."""
        last = {
            (split.variable, bool(split.left_levels) or side): (split, side) for split, side in path
        }
        return " and ".join(self._condition(*each) for each in last.values())

    def _condition(self, split: Split, side: str) -> str:
        """Describe one side of a split."""
        name, known = self.schema_.names[split.variable], self.schema_.levels[split.variable]
        if side == "other":
            return f"{name} missing or unseen"
        if not split.left_levels:
            return f"{name} {'<' if side == 'left' else '≥'} {split.threshold:g}"
        chosen = split.left_levels if side == "left" else split.right_levels
        more = f" and {len(chosen) - _SHOWN_LEVELS} more" if len(chosen) > _SHOWN_LEVELS else ""
        return f"{name} in {{{', '.join(str(known[k]) for k in chosen[:_SHOWN_LEVELS])}{more}}}"


def _one_line(inner: Calibrator) -> str:
    _, table = inner._describe()
    name = type(inner).__name__.removesuffix("Calibrator").lower()
    if len(table) != 1:
        return f"{name}, {len(table)} classes"
    shown = (f"{key}={_short(value)}" for key, value in table[0].items() if key != "class")
    return f"{name} {' '.join(shown)}"


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _leaf_step(node: Node) -> Step:
    """Return the step to the number of a row's leaf, in the order of `_leaves`."""
    numbers = count()

    def walk(here: Node) -> Step:
        if isinstance(here, Leaf):
            return steps.constant(next(numbers))
        left, right = walk(here.left), walk(here.right)
        if here.left_levels:
            code = steps.code(here.variable)
            on_left, on_right = (
                steps.among(code, side) for side in (here.left_levels, here.right_levels)
            )
        else:  # neither holds for a missing value
            value = steps.number(here.variable)
            on_left, on_right = (
                steps.less(value, here.threshold),
                steps.at_most(here.threshold, value),
            )
        if here.other == "left":
            return where(on_right, right, left)
        rest = right if isinstance(here.other, str) else where(on_right, right, walk(here.other))
        return where(on_left, left, rest)

    return walk(node)


def _leaves(node: Node, path: Path = ()) -> Iterator[tuple[Leaf, Path]]:
    """Yield the leaves from left to right, each with the splits and sides that lead to it."""
    if isinstance(node, Leaf):
        yield node, path
        return
    for side in ("left", "right", "other"):
        branch = getattr(node, side)
        if not isinstance(branch, str):
            yield from _leaves(branch, (*path, (node, side)))


def _grow(columns: list[AnyArray], mass: Floats, *, max_depth: int, min_weight: float) -> Node:
    """Grow a tree that lowers the Gini impurity of the outcome most.

    Parameters
    ----------
    columns : list of ndarray
        Numbers with NaN, or integer positions of categories with −1, as `Schema.align` gives.
    mass : ndarray of shape (n, K)
        The weight of each row in the column of its class.
    max_depth : int
        Splits above a leaf at most.
    min_weight : float
        The least weight of a side. Of equally good splits, the first variable and the lowest
        threshold are taken.
    """
    weight, least = mass.sum(axis=1), min_weight * (1.0 - _ROUNDING)

    def build(rows: Ints, depth: int) -> Node:
        totals = mass[rows].sum(axis=0)
        cut = None
        if depth > 0 and totals.sum() >= 2 * least and np.count_nonzero(totals) > 1:
            cut = _best_cut([each[rows] for each in columns], mass[rows], least)
        if cut is None:
            return Leaf(rows.size, float(weight[rows].sum()))
        left, right, other = rows[cut.left], rows[cut.right], rows[~(cut.left | cut.right)]
        last: Any = "left" if weight[left].sum() >= weight[right].sum() else "right"
        if other.size > 0 and weight[other].sum() >= least:
            last = build(other, depth - 1)
        elif last == "left":
            left = rows[~cut.right]
        else:
            right = rows[~cut.left]
        branches = build(left, depth - 1), build(right, depth - 1)
        return Split(cut.variable, cut.threshold, *cut.levels, *branches, last)

    return build(np.arange(len(mass)), max_depth)


class _Cut(NamedTuple):
    variable: int
    threshold: float
    levels: tuple[tuple[int, ...], tuple[int, ...]]
    left: Bools
    right: Bools


def _best_cut(columns: list[AnyArray], mass: Floats, least: float) -> _Cut | None:
    whole = float(mass.sum())
    best, best_gain = None, _LEAST_GAIN * whole
    for variable, values in enumerate(columns):
        is_levels = values.dtype.kind == "i"
        known = values >= 0 if is_levels else ~np.isnan(values)
        axis = values[known]
        if is_levels:
            axis = _level_order(axis, mass[known])[axis]
        found = _cut_axis(axis, mass[known], least)
        if found is None:
            continue
        gain, threshold = found
        if mass[~known].sum() >= max(least, _ROUNDING):  # missing values have a branch
            gain += float(_lowered(mass[known].sum(axis=0), mass[~known].sum(axis=0)))
        # Rounding must not decide between equally good variables.
        if gain <= best_gain * (1 + _EQUAL_GAIN) + _ROUNDING * whole:
            continue
        best_gain = gain
        left, right = np.zeros(len(mass), bool), np.zeros(len(mass), bool)
        left[known], right[known] = axis < threshold, axis >= threshold
        sides: list[tuple[int, ...]] = [(), ()]
        if is_levels:
            sides = [tuple(np.unique(values[side]).tolist()) for side in (left, right)]
        best = _Cut(variable, np.nan if is_levels else threshold, (sides[0], sides[1]), left, right)
    return best


def _lowered(left: Floats, right: Floats) -> Floats:
    """Return by how much a split lowers n·Gini, from the weights of the classes on its sides."""
    parts = ((each**2).sum(axis=-1) / each.sum(axis=-1) for each in (left, right, left + right))
    one, other, both = parts
    return np.asarray(one + other - both)


def _cut_axis(axis: AnyArray, mass: Floats, least: float) -> tuple[float, float] | None:
    """Return by how much the best threshold lowers n·Gini, and the threshold."""
    order = np.argsort(axis, kind="stable")
    axis, left = axis[order], np.cumsum(mass[order], axis=0)
    right = mass.sum(axis=0) - left
    fits = (left[:-1].sum(axis=1) >= least) & (right[:-1].sum(axis=1) >= least)
    places = np.flatnonzero((axis[1:] > axis[:-1]) & fits)
    if not places.size:
        return None
    gain = _lowered(left[places], right[places])
    # The lowest of the thresholds that equal the best up to rounding.
    place = places[np.argmax(gain >= gain.max() - _ROUNDING * mass.sum())]
    low, high = float(axis[place]), float(axis[place + 1])
    with np.errstate(invalid="ignore"):
        middle = low + 0.5 * (high - low)
    return float(gain.max()), middle if low < middle <= high else high


def _level_order(values: AnyArray, mass: Floats) -> Ints:
    """Return the rank of every category: by P(second class), or along the first principal axis.

    For two classes the best split of categories is one of this order (Breiman et al. 1984); for
    more the axis is a good approximation (Coppersmith et al. 1999).
    """
    table = np.zeros((int(values.max(initial=-1)) + 1, mass.shape[1]))
    np.add.at(table, values, mass)
    weight = table.sum(axis=1)
    shares = table / np.where(weight > 0, weight, 1.0)[:, None]
    score = shares[:, 1]
    if mass.shape[1] > 2:
        centre = table.sum(axis=0) / max(weight.sum(), 1e-300)
        axis = np.linalg.svd((shares - centre) * np.sqrt(weight)[:, None], full_matrices=False)[2][
            0
        ]
        # The sign of a singular vector is arbitrary; fix it, so that the tree is not.
        score = shares @ (axis * np.sign(axis[np.argmax(np.abs(axis))]))
    # Scores that are equal up to rounding are equal, in whatever order they were summed.
    rank = np.empty(len(table), dtype=np.intp)
    rank[np.argsort(np.round(score, _DECIMALS), kind="stable")] = np.arange(len(table))
    return rank
