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
class LinearMap:
    """logit q = coefficients · features + intercept."""

    coef: Floats
    intercept: float


@dataclass(frozen=True, eq=False)
class VariableTerms:
    """Powers of a standardized number, or one indicator per category; one of missing values.

    Attributes
    ----------
    name : str
        The variable.
    levels : tuple of str
        The categories as text; one that was not in the fit has no indicator.
    low, high : float
        The range that numbers are clipped to; infinite without clipping.
    centre, scale : ndarray of shape (degree + 1,)
        Mean and standard deviation of the number, then of each power of the standardized number;
        0 and 1 without standardization.
    missing : bool
        Whether missing values, which the fit had, have an indicator.
    """

    name: str
    levels: tuple[str, ...]
    low: float
    high: float
    centre: Floats
    scale: Floats
    missing: bool

    def steps(self, k: int) -> list[Step]:
        """Return the steps to the powers of variable k, a number."""
        # Larger numbers would overflow as powers, and are far beyond any range.
        inside = steps.clipped(steps.number(k), max(self.low, -LARGEST), min(self.high, LARGEST))
        first, *others = zip(self.centre.tolist(), self.scale.tolist(), strict=True)
        unit = ((inside - first[0]) / first[1]).named("unit")
        power, found = unit, []
        for centre, scale in others:
            found.append((power - centre) / scale)
            power = power * unit
        return found

    def features(self, k: int, columns: list[AnyArray]) -> list[Floats]:
        """Return the terms of variable k; those of a number are 0 where it is missing."""
        values = columns[k]
        if self.levels:
            gone = values == -1
            found = [(values == level).astype(np.float64) for level in range(len(self.levels))]
        else:
            gone = np.isnan(values)
            powers = evaluate(self.steps(k), np.empty((len(gone), 1)), columns).T
            found = [np.where(gone, 0.0, power) for power in powers]
        return [*found, gone.astype(np.float64)] if self.missing else found

    def effect(self, k: int, coefficients: Floats) -> Step:
        """Return the step to the sum of the terms of variable k times their coefficients."""
        gone = float(coefficients[-1]) if self.missing else 0.0
        if self.levels:
            table = np.append(coefficients[: len(self.levels)], [0.0, gone])
            return steps.take(steps.code(k), table).named("effect")
        effect = steps.constant(0.0)
        for step, coefficient in zip(self.steps(k), coefficients.tolist(), strict=False):
            effect = effect + step * coefficient
        return steps.where(steps.missing(steps.number(k)), gone, effect).named("effect")

    def names(self) -> list[str]:
        """Return the names of the terms."""
        powers = [self.name, *(f"{self.name}^{k}" for k in range(2, len(self.scale)))]
        shown = [f"{self.name}={level}" for level in self.levels] if self.levels else powers
        return [*shown, f"{self.name} missing"] if self.missing else shown


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
    terms_ : list
        How V becomes columns.
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
    terms_: list[VariableTerms] = field(init=False)
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
        self.terms_ = [self._terms(k, column, rows.weight) for k, column in enumerate(columns)]
        self._added = [
            row for k, terms in enumerate(self.terms_) for row in terms.features(k, columns)
        ]
        super()._learn(rows)
        del self._added

    def _terms(self, k: int, values: AnyArray, weight: Floats | None) -> VariableTerms:
        """Learn the range and the moments of variable k from the calibration rows."""
        name, levels = self.schema_.names[k], tuple(map(str, self.schema_.levels[k]))
        if levels:
            nothing = np.empty(0)
            missing = bool((values < 0).any())
            return VariableTerms(name, levels, -np.inf, np.inf, nothing, nothing, missing)
        known, missing = np.isfinite(values), bool(np.isnan(values).any())
        inside, mass = values[known], None if weight is None else weight[known]
        low, high = (float(inside.min()), float(inside.max())) if inside.size else (0.0, 0.0)
        _check_powers(name, max(-low, high), self.degree if self.raw else 1)
        if self.raw:
            plain = np.zeros(self.degree + 1), np.ones(self.degree + 1)
            return VariableTerms(name, (), -np.inf, np.inf, *plain, missing)
        first = _moments(inside, mass)
        unit = (inside - first[0]) / first[1]
        moments = [first, *(_moments(unit**power, mass) for power in range(1, self.degree + 1))]
        centre, scale = np.array(moments).T
        return VariableTerms(name, (), low, high, centre, scale, missing)

    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> LinearMap:
        fit = self._by_score()._fit_curve(score, hit, weight, self._added, self.l2)
        self.separated_ = self.separated_ or fit.separated
        return LinearMap(fit.coef, fit.intercept)

    def _map_steps(self, fitted: LinearMap, score: Step) -> tuple[Step, Step]:
        eta, own = steps.constant(fitted.intercept), self._by_score()._features(score)
        for step, coefficient in zip(own, fitted.coef.tolist(), strict=False):
            eta = eta + step * coefficient
        begin = len(own)
        for k, terms in enumerate(self.terms_):
            end = begin + len(terms.names())
            if self.schema_.kinds[k] == "missing":
                eta = eta + float(fitted.coef[end - 1])
            else:
                eta = eta + terms.effect(k, fitted.coef[begin:end])
            begin = end
        return steps.logistic(eta)

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        names = [*self._by_score()._terms, *(n for terms in self.terms_ for n in terms.names())]
        table = [
            {"class": str(label), "term": name, "coefficient": float(value)}
            for label, each in zip(self._mapped_classes(), self.maps_, strict=True)
            if each is not None
            for name, value in zip([*names, "intercept"], [*each.coef, each.intercept], strict=True)
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
