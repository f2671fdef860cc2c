"""Augmented calibration: a logistic curve of the score with terms of V added."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np

from varcal import _options as options
from varcal._arrays import AnyArray, Floats
from varcal.calibrators import steps
from varcal.calibrators.calibrator import Calibrator, parameter
from varcal.calibrators.evaluate import evaluate
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.schema import Schema
from varcal.calibrators.score_maps import (
    BetaCalibrator,
    LinearMap,
    OneVsRestCalibrator,
    PlattCalibrator,
)
from varcal.calibrators.steps import Step
from varcal.exceptions import InputError

#: Higher powers of a variable differ by less than the rounding of a fit can tell apart.
MOST_DEGREE = 20
#: How far scores are kept from 0 by default.
LEAST_SCORE = 1e-300
#: The largest number that terms of a variable without a range are computed from; squares of all
#: terms stay below this. A standard deviation below this share of the mean is rounding.
LARGEST, MOST_SQUARE, _ROUNDING = 1e60, 1e300, 1e-13


@dataclass(frozen=True, eq=False)
class Terms:
    """How a variable becomes terms: powers of a standardized number, or one per category.

    Attributes
    ----------
    low, high : float
        The range that numbers are clipped to; infinite without clipping.
    centre, scale : ndarray of shape (degree + 1,)
        Mean and standard deviation of the number, then of each power of the standardized number;
        0 and 1 without standardization. Empty for categories.
    missing : bool
        Whether missing values, which the fit had, have a term.
    """

    low: float
    high: float
    centre: Floats
    scale: Floats
    missing: bool


@dataclass(eq=False, repr=False)
class AugmentedCalibrator(OneVsRestCalibrator):
    r"""Augmented calibration: Platt or beta calibration with polynomial terms of V.

    .. math:: \mathrm{logit}\, q = a \ln p - b \ln(1 - p) + c
              + \sum_j \sum_{d=1}^{D} \gamma_{jd}\, v_j^d

    with the penalty ½λΣγ² on the terms of V. These are standardized, so that the penalty does
    not depend on their unit, and values beyond the fitted range are clipped to it, because
    polynomials do not extrapolate. As λ → ∞ the score-based calibrator remains. Categories and
    missing values have indicators; an unseen category has none, so it adds nothing. With more than
    two classes, each is calibrated against the rest and rows are normalized.

    Parameters
    ----------
    calibrator : BetaCalibrator or PlattCalibrator, optional
        How the score enters, with its penalty, its bounds and its distance from 0 and 1. None
        means ``BetaCalibrator(eps=1e-300)``: together with V, the size of a tiny score can matter.
    degree : int
        D.
    l2 : float
        λ, scikit-learn's ``1 / C``.
    raw : bool
        Whether V enters as it is, as in the paper: neither standardized nor clipped.

    Attributes
    ----------
    maps_ : list of LinearMap
        The coefficients: one map for two classes, K for more.
    terms_ : list of Terms
        How each variable becomes terms.
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
    >>> y = rng.random(2000) < p ** (age / 50)
    >>> fit = AugmentedCalibrator().fit(p, y, age)
    >>> fit.predict_proba([0.5, 0.5], [30, 70])[:, 1].round(2)
    array([0.68, 0.37])
    """

    calibrator: Calibrator | None = None
    degree: int = parameter(2, options.whole(1, MOST_DEGREE), kw_only=True)
    l2: float = parameter(1.0, options.check_not_negative, kw_only=True)
    raw: bool = parameter(False, options.check_flag, kw_only=True)
    maps_: list[LinearMap | None] = field(init=False)
    terms_: list[Terms] = field(init=False)
    schema_: Schema = field(init=False)
    _uses_variables = True
    _needs_variables = True

    @classmethod
    def paper(cls, dataset: Literal["adult", "bank", "cardio", "yelp"] = "adult") -> Self:
        """Return the settings of Kelly & Smyth for one of their data sets.

        Raw V and V² (for yelp V alone), C = 1 on every coefficient, a and b of any sign.
        """
        options.check_choice("dataset", dataset, ["adult", "bank", "cardio", "yelp"])
        return cls(BetaCalibrator.paper(), degree=1 if dataset == "yelp" else 2, raw=True)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not isinstance(self.calibrator, BetaCalibrator | PlattCalibrator | None):
            raise InputError(
                f"calibrator must be BetaCalibrator or PlattCalibrator; got {self.calibrator!r}",
                "try BetaCalibrator()",
            )
        if self.calibrator is not None:
            self.calibrator._check_parameters()

    @property
    def eps(self) -> float | None:
        """How far scores are kept from 0 and 1."""
        return LEAST_SCORE if self.calibrator is None else self._by_score().eps

    def _by_score(self) -> BetaCalibrator | PlattCalibrator:
        """Return the calibrator of the score, with the floor of this fit."""
        found: Any = BetaCalibrator() if self.calibrator is None else self.calibrator._unfitted()
        found.floor_, found.separated_ = getattr(self, "floor_", 0.0), False
        return found

    def _learn(self, rows: CalibrationRows) -> None:
        self.schema_ = Schema.of(rows.variables, type(self).__name__)
        columns = self.schema_.align(rows.variables)
        self.terms_ = [self._terms_of(k, column, rows.weight) for k, column in enumerate(columns)]
        every = [step for vector in self._vectors() for step in steps.items(vector)]
        n_levels = [*map(len, self.schema_.levels)]
        self._added = [*evaluate(every, rows.p, columns, n_levels).T] if every else []
        super()._learn(rows)
        del self._added

    def _terms_of(self, k: int, values: AnyArray, weight: Floats | None) -> Terms:
        """Learn the range and the moments of variable k from the calibration rows."""
        if self.schema_.kinds[k] == "levels":
            nothing = np.empty(0)
            return Terms(-np.inf, np.inf, nothing, nothing, bool((values < 0).any()))
        known, missing = np.isfinite(values), bool(np.isnan(values).any())
        inside, mass = values[known], None if weight is None else weight[known]
        low, high = (float(inside.min()), float(inside.max())) if inside.size else (0.0, 0.0)
        _check_powers(self.schema_.names[k], max(-low, high), self.degree if self.raw else 1)
        if self.raw:
            plain = np.zeros(self.degree + 1), np.ones(self.degree + 1)
            return Terms(-np.inf, np.inf, *plain, missing)
        first = _moments(inside, mass)
        unit = (inside - first[0]) / first[1]
        moments = [first, *(_moments(unit**power, mass) for power in range(1, self.degree + 1))]
        centre, scale = np.array(moments).T
        return Terms(low, high, centre, scale, missing)

    def _vectors(self) -> list[Step]:
        """Return the step to the terms of each variable; one without any value has none."""
        kinds = enumerate(self.schema_.kinds)
        return [
            self._indicators(k) if kind == "levels" else self._powers(k)
            for k, kind in kinds
            if kind != "missing"
        ]

    def _indicators(self, k: int) -> Step:
        n = len(self.schema_.levels[k])
        # The code of an unseen category, which has no term, is n; that of a missing one is n + 1.
        positions = [*range(n), n + 1][: n + self.terms_[k].missing]
        return steps.take(steps.code(k), np.eye(n + 2)[:, positions])

    def _powers(self, k: int) -> Step:
        """Return powers of a number; where it is missing, they are 0."""
        own, number = self.terms_[k], steps.number(k)
        gone = steps.missing(number)
        # Larger numbers would overflow as powers, and are far beyond any range.
        inside = steps.clipped(number, max(own.low, -LARGEST), min(own.high, LARGEST))
        first, *others = zip(own.centre.tolist(), own.scale.tolist(), strict=True)
        unit = ((inside - first[0]) / first[1]).named("unit")
        power, found = unit, []
        for centre, scale in others:
            found.append(steps.where(gone, 0.0, (power - centre) / scale))
            power = power * unit
        return steps.join([*found, steps.where(gone, 1.0, 0.0)] if own.missing else found)

    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> LinearMap:
        inner = self._by_score()
        fit = inner._fit_curve(score, hit, weight, self._added, self.l2)
        self.separated_ = self.separated_ or inner.separated_
        return fit

    def _map_steps(self, fitted: Any, score: Step) -> tuple[Step, Step]:
        eta, begin = self._by_score()._linear(fitted, score), len(self._by_score()._terms)
        for vector in self._vectors():
            own = fitted.coef[begin : begin + vector.width]
            if vector.op == "take":
                effect = steps.take(vector.args[0], vector.data @ own)
            else:
                effect = steps.total(vector * steps.constant(own))
            eta, begin = eta + effect.named("effect"), begin + vector.width
        return steps.logistic(eta)

    def _names(self) -> list[str]:
        """Return the names of the terms."""
        found = [*self._by_score()._terms]
        for k, (name, kind) in enumerate(zip(self.schema_.names, self.schema_.kinds, strict=True)):
            if kind == "levels":
                found += [f"{name}={level}" for level in self.schema_.levels[k]]
            elif kind != "missing":
                found += [name, *(f"{name}^{power}" for power in range(2, self.degree + 1))]
            if self.terms_[k].missing and kind != "missing":
                found.append(f"{name} missing")
        return [*found, "intercept"]

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        table = [
            {"class": str(label), "term": name, "coefficient": float(value)}
            for label, each in zip(self._mapped_classes(), self.maps_, strict=True)
            if each is not None
            for name, value in zip(self._names(), [*each.coef, each.intercept], strict=True)
        ]
        return self._sentence(), table

    def _sentence(self) -> str:
        kind = "terms" if self.raw else "standardized terms"
        return f"logit(q) is linear in the score and in {kind} of V."


def _check_powers(name: str, far: float, degree: int) -> None:
    """Refuse values whose powers, or the squares of these, overflow."""
    most = MOST_SQUARE ** (0.5 / degree)
    if far > most:
        raise InputError(
            f"variable {name!r} holds values up to {far:g}: those beyond {most:.2g} overflow in a "
            f"polynomial of degree {degree}",
            "divide the column by a constant, or use raw=False",
            argument="X",
        )


def _moments(values: Floats, weight: Floats | None) -> tuple[float, float]:
    """Return mean and standard deviation; a constant has scale 1."""
    if not values.size:
        return 0.0, 1.0
    mean = float(np.average(values, weights=weight))
    spread = float(np.sqrt(np.average((values - mean) ** 2, weights=weight)))
    return mean, spread if spread > _ROUNDING * abs(mean) else 1.0
