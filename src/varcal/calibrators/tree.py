"""The tree calibrator: a score-based calibrator in each leaf of a tree over V."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal, Self

import numpy as np

from varcal._options import check_choice, check_not_negative, number, whole
from varcal.calibrators.beta import BetaCalibrator
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.evaluate import evaluate
from varcal.calibrators.log_linear import DirichletCalibrator
from varcal.calibrators.partition import Node, grow, leaf_step, leaves
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.schema import Schema
from varcal.calibrators.steps import Step, choose, items, join
from varcal.exceptions import InputError, VarcalWarning

#: Deeper trees have more leaves than any table has rows.
MOST_DEPTH = 64

#: Levels of a category that a description names.
_SHOWN_LEVELS = 6


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

    _state = ("tree_", "leaves_", "schema_")
    tree_: Node
    leaves_: list[Calibrator]
    schema_: Schema
    _parameters: ClassVar = {
        "max_depth": whole(0, MOST_DEPTH),
        "min_leaf": number(0, 0.5, ends="[]", hint="try 0.05"),
        "borrow": check_not_negative,
    }
    _uses_variables = True
    _needs_variables = True

    def __init__(
        self,
        calibrator: Calibrator | None = None,
        *,
        max_depth: int = 3,
        min_leaf: float = 0.1,
        borrow: float = 20.0,
    ) -> None:
        self.calibrator = calibrator
        self.max_depth = max_depth
        self.min_leaf = min_leaf
        self.borrow = borrow

    @classmethod
    def paper(cls, dataset: Literal["adult", "bank", "cifar", "yelp"] = "adult") -> Self:
        """Return the settings of Kelly & Smyth for one of their data sets.

        Depth 3 and at least a tenth of the rows in a leaf; for bank, depth 2 and a twentieth.
        Dirichlet in the leaves for cifar, beta for the others, and `borrow=0`.
        """
        check_choice("dataset", dataset, ["adult", "bank", "cifar", "yelp"])
        inner = DirichletCalibrator.paper() if dataset == "cifar" else BetaCalibrator.paper()
        if dataset == "bank":
            return cls(inner, max_depth=2, min_leaf=0.05, borrow=0.0)
        return cls(inner, max_depth=3, min_leaf=0.1, borrow=0.0)

    def _learn(self, rows: CalibrationRows) -> None:
        self.schema_ = Schema.of(rows.variables, type(self).__name__)
        columns = self.schema_.align(rows.variables)
        self.tree_ = grow(
            columns,
            rows.y,
            rows.weight,
            rows.n_classes,
            max_depth=self.max_depth,
            min_weight=self.min_leaf * rows.total(),
        )
        n_levels = [*map(len, self.schema_.levels)]
        found = evaluate([leaf_step(self.tree_)], rows.p, columns, n_levels)[:, 0]
        plain = rows.plain()
        self.leaves_ = [self._fit_leaf(plain, found == k) for k, _ in enumerate(leaves(self.tree_))]
        self.separated_ = any(each.separated_ for each in self.leaves_)

    @property
    def _normalized(self) -> bool:
        return all(leaf._normalized for leaf in self.leaves_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.calibrator is not None and not isinstance(self.calibrator, Calibrator):
            raise InputError(
                f"calibrator must be a calibrator of varcal; got {self.calibrator!r}",
                "try BetaCalibrator()",
            )
        if self.calibrator is not None and self.calibrator._uses_variables:
            raise InputError(
                f"calibrator must use the score alone; {self.calibrator!r} uses variables",
                "try BetaCalibrator()",
            )

    def _fit_leaf(self, rows: CalibrationRows, inside: Any) -> Calibrator:
        inner: Calibrator
        if self.calibrator is not None:
            from sklearn.base import clone  # noqa: PLC0415  only a fit needs it

            inner = clone(self.calibrator)
        else:
            inner = BetaCalibrator() if rows.n_classes == 2 else DirichletCalibrator()
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

    def _steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        leaf = leaf_step(self.tree_).named("leaf")
        return items(choose(leaf, [join(inner._steps(scores)) for inner in self.leaves_]))

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        walked = list(leaves(self.tree_))
        total = sum(leaf.weight for leaf, _ in walked)
        table = [
            {
                "leaf": number,
                "where": " and ".join(self._conditions(path)) or "everywhere",
                "n": leaf.n,
                "share": leaf.weight / total,
                "calibrator": _one_line(inner),
            }
            for number, ((leaf, path), inner) in enumerate(zip(walked, self.leaves_, strict=True))
        ]
        names = ", ".join(self.schema_.names)
        leaf_word = "leaf" if len(table) == 1 else "leaves"
        return f"A tree on {names} with {len(table)} {leaf_word}.", table

    def _conditions(self, path: Any) -> list[str]:
        """Describe where a leaf lies, with one phrase per variable."""
        phrases: dict[tuple[int, str], str] = {}
        bounds: dict[int, list[float]] = {}
        for split, side in path:
            name = self.schema_.names[split.variable]
            known = self.schema_.levels[split.variable]
            if side == "other":
                phrases[split.variable, "levels"] = f"{name} missing or unseen"
            elif split.left_levels:
                chosen = split.left_levels if side == "left" else split.right_levels
                shown = ", ".join(str(known[k]) for k in chosen[:_SHOWN_LEVELS])
                more = (
                    f" and {len(chosen) - _SHOWN_LEVELS} more"
                    if len(chosen) > _SHOWN_LEVELS
                    else ""
                )
                phrases[split.variable, "levels"] = f"{name} in {{{shown}{more}}}"
            else:
                interval = bounds.setdefault(split.variable, [-np.inf, np.inf])
                interval[1 if side == "left" else 0] = split.threshold
        for variable, (low, high) in bounds.items():
            name = self.schema_.names[variable]
            if low == -np.inf:
                phrases[variable, "range"] = f"{name} < {high:g}"
            elif high == np.inf:
                phrases[variable, "range"] = f"{name} ≥ {low:g}"
            else:
                phrases[variable, "range"] = f"{low:g} ≤ {name} < {high:g}"
        return list(phrases.values())


def _one_line(inner: Calibrator) -> str:
    _, table = inner._describe()
    name = type(inner).__name__.removesuffix("Calibrator").lower()
    if len(table) != 1:
        return f"{name}, {len(table)} classes"
    shown = (
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in table[0].items()
        if key != "class"
    )
    return f"{name} {' '.join(shown)}"
