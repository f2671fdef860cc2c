"""Augmented calibration: a logistic curve of the score with terms of V added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal._options import (
    check_choice,
    check_eps,
    check_flag,
    check_not_negative,
    one_of,
    whole,
)
from varcal.calibrators.beta import beta_features, beta_steps, exact_inside
from varcal.calibrators.evaluate import evaluate
from varcal.calibrators.logistic import fit_logistic
from varcal.calibrators.one_vs_rest import OneVsRestCalibrator
from varcal.calibrators.platt import logit_of, logit_step
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.schema import Schema
from varcal.calibrators.steps import (
    Step,
    clipped,
    code,
    constant,
    logistic,
    missing,
    number,
    take,
    where,
)
from varcal.exceptions import InputError

#: Higher powers of a variable differ by less than the rounding of a fit can tell apart.
MOST_DEGREE = 20
#: The largest number that terms of a variable without a range are computed from; squares of all
#: terms stay below this. A standard deviation below this share of the mean is rounding.
LARGEST, MOST_SQUARE, _ROUNDING = 1e60, 1e300, 1e-13


@dataclass(frozen=True, eq=False)
class LinearMap:
    """logit q = coefficients · features + intercept."""

    coef: Floats
    intercept: float


@dataclass(frozen=True, eq=False)
class NumberTerms:
    """Powers of a standardized number, and an indicator of missing values if there were any.

    Attributes
    ----------
    name : str
        The variable.
    low, high : float
        The range that values are clipped to; infinite without clipping.
    centre, scale : float
        Mean and standard deviation; 0 and 1 without standardization.
    power_centre, power_scale : ndarray of shape (degree,)
        The same for each power.
    missing : bool
        Whether missing values have an indicator.
    """

    name: str
    low: float
    high: float
    centre: float
    scale: float
    power_centre: Floats
    power_scale: Floats
    missing: bool

    @classmethod
    def of(
        cls,
        name: str,
        values: Floats,
        weight: Floats | None,
        *,
        degree: int,
        standardize: bool,
        clip: bool,
    ) -> NumberTerms:
        """Learn the range and the moments from the calibration rows."""
        known = np.isfinite(values)
        inside = values[known]
        mass = None if weight is None else weight[known]
        low, high = (float(inside.min()), float(inside.max())) if inside.size else (0.0, 0.0)
        _check_powers(name, max(-low, high), 1 if standardize else degree)
        centre, scale = _moments(inside, mass) if standardize else (0.0, 1.0)
        z = (inside - centre) / scale
        moments = [
            _moments(z**power, mass) if standardize else (0.0, 1.0)
            for power in range(1, degree + 1)
        ]
        return cls(
            name,
            low if clip else -np.inf,
            high if clip else np.inf,
            centre,
            scale,
            np.array([moment[0] for moment in moments]),
            np.array([moment[1] for moment in moments]),
            bool(np.isnan(values).any()),
        )

    def _steps(self, k: int) -> list[Step]:
        """Return the steps to the terms of variable k, which are 0 where it is missing."""
        values = number(k)
        # Larger numbers would overflow as powers, and are far beyond any range.
        low, high = max(self.low, -LARGEST), min(self.high, LARGEST)
        z = ((clipped(values, low, high) - self.centre) / self.scale).named("unit")
        power, found = z, []
        for centre, scale in zip(
            self.power_centre.tolist(), self.power_scale.tolist(), strict=True
        ):
            found.append((power - centre) / scale)
            power = power * z
        return found

    def features(self, k: int, columns: list[AnyArray]) -> list[Floats]:
        """Return the terms of variable k, and the indicator of missing values."""
        gone = np.isnan(columns[k])
        powers = evaluate(self._steps(k), np.empty((len(gone), 1)), columns).T
        found = [np.where(gone, 0.0, power) for power in powers]
        return [*found, gone.astype(np.float64)] if self.missing else found

    def effect_step(self, k: int, coefficients: Floats) -> Step:
        """Return the step to the sum of the terms of variable k times their coefficients."""
        effect = constant(0.0)
        for step, coefficient in zip(self._steps(k), coefficients.tolist(), strict=False):
            effect = effect + step * coefficient
        gone = float(coefficients[-1]) if self.missing else 0.0
        return where(missing(number(k)), gone, effect).named("effect")

    def names(self) -> list[str]:
        """Return the names of the terms."""
        shown = [self.name, *(f"{self.name}^{k}" for k in range(2, self.power_scale.size + 1))]
        return [*shown, f"{self.name} missing"] if self.missing else shown


@dataclass(frozen=True)
class LevelTerms:
    """One indicator per category; a category that was not in the fit has none.

    Attributes
    ----------
    name : str
        The variable.
    levels : tuple of str
        The categories as text.
    missing : bool
        Whether missing values have an indicator.
    """

    name: str
    levels: tuple[str, ...]
    missing: bool

    def features(self, k: int, columns: list[AnyArray]) -> list[Floats]:
        """Return the indicators of variable k."""
        values = columns[k]
        shown = [(values == k).astype(np.float64) for k in range(len(self.levels))]
        return [*shown, (values == -1).astype(np.float64)] if self.missing else shown

    def effect_step(self, k: int, coefficients: Floats) -> Step:
        """Return the step to the coefficient of the category of variable k."""
        gone = float(coefficients[-1]) if self.missing else 0.0
        return take(code(k), np.append(coefficients[: len(self.levels)], [0.0, gone])).named(
            "effect"
        )

    def names(self) -> list[str]:
        """Return the names of the indicators."""
        shown = [f"{self.name}={level}" for level in self.levels]
        return [*shown, f"{self.name} missing"] if self.missing else shown


class AugmentedCalibrator(OneVsRestCalibrator):
    r"""Augmented calibration: logistic or beta calibration with polynomial terms of V.

    .. math:: \mathrm{logit}\, q = a \ln p - b \ln(1 - p) + c
              + \sum_j \sum_{d=1}^{D} \gamma_{jd}\, v_j^d

    with the penalty ½λΣγ² on the terms of V. These are standardized, so that the penalty does
    not depend on their unit, and values beyond the fitted range are clipped to it, because
    polynomials do not extrapolate. As λ → ∞ the score-based calibrator remains. Categories and
    missing values have indicators; an unseen category has none, so it adds nothing. With more than
    two classes, each is calibrated against the rest and rows are normalized.

    Parameters
    ----------
    score : {"beta", "logistic"}
        Whether the score enters by ln p and −ln(1 − p), or by the logit of p alone.
    degree : int
        D.
    l2 : float
        λ, scikit-learn's ``1 / C``.
    l2_score : float
        The same penalty on the coefficients of the score.
    nonnegative : bool
        Whether the coefficients of the score must not be negative.
    standardize, clip : bool
        Whether the terms of V are standardized, and V is clipped to the fitted range.
    eps : float
        How far scores are kept from 0 and 1 before the logarithms; from 1 by 2.2e-16 at least. It
        is smaller than elsewhere: together with V, the size of a tiny score can matter.
    clip_score : {"all", "exact"}
        Whether all scores within `eps` of 0 or 1 are moved, or only those equal to 0 or 1.

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

    _state = ("maps_", "floor_", "terms_", "schema_")
    maps_: list[LinearMap | None]
    terms_: list[NumberTerms | LevelTerms]
    schema_: Schema
    _parameters: ClassVar = {
        "score": one_of("beta", "logistic"),
        "degree": whole(1, MOST_DEGREE),
        "l2": check_not_negative,
        "l2_score": check_not_negative,
        "nonnegative": check_flag,
        "standardize": check_flag,
        "clip": check_flag,
        "eps": check_eps,
        "clip_score": one_of("all", "exact"),
    }
    _uses_variables = True
    _needs_variables = True

    def __init__(
        self,
        *,
        score: Literal["beta", "logistic"] = "beta",
        degree: int = 2,
        l2: float = 1.0,
        l2_score: float = 0.0,
        nonnegative: bool = True,
        standardize: bool = True,
        clip: bool = True,
        eps: float = 1e-300,
        clip_score: Literal["all", "exact"] = "all",
    ) -> None:
        self.score = score
        self.degree = degree
        self.l2 = l2
        self.l2_score = l2_score
        self.nonnegative = nonnegative
        self.standardize = standardize
        self.clip = clip
        self.eps = eps
        self.clip_score = clip_score

    @classmethod
    def paper(cls, dataset: Literal["adult", "bank", "cardio", "yelp"] = "adult") -> Self:
        """Return the settings of Kelly & Smyth for one of their data sets.

        Raw V and V² (for yelp V alone), C = 1 on every coefficient, a and b of any sign.
        """
        check_choice("dataset", dataset, ["adult", "bank", "cardio", "yelp"])
        return cls(
            degree=1 if dataset == "yelp" else 2,
            l2_score=1.0,
            nonnegative=False,
            standardize=False,
            clip=False,
            eps=1e-4,
            clip_score="exact",
        )

    def _learn(self, rows: CalibrationRows) -> None:
        self.schema_ = Schema.of(rows.variables, type(self).__name__)
        columns = self.schema_.align(rows.variables)
        options = {name: getattr(self, name) for name in ("degree", "standardize", "clip")}
        self.terms_ = [
            LevelTerms(name, tuple(map(str, self.schema_.levels[k])), bool((columns[k] < 0).any()))
            if self.schema_.kinds[k] == "levels"
            else NumberTerms.of(name, columns[k], rows.weight, **options)
            for k, name in enumerate(self.schema_.names)
        ]
        self._added = [
            row for k, terms in enumerate(self.terms_) for row in terms.features(k, columns)
        ]
        super()._learn(rows)
        del self._added

    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> LinearMap:
        own = (
            beta_features(score, self.floor_, self.clip_score)
            if self.score == "beta"
            else logit_of(score, self.floor_)[None, :]
        )
        features = np.vstack([own, *self._added])
        is_score = np.arange(len(features)) < len(own)
        fit = fit_logistic(
            features,
            hit,
            weight,
            l2=np.where(is_score, self.l2_score, self.l2),
            nonnegative=is_score & self.nonnegative,
        )
        self.separated_ = self.separated_ or fit.separated
        return LinearMap(fit.coef, fit.intercept)

    def _map_steps(self, fitted: LinearMap, score: Step) -> tuple[Step, Step]:
        exact = self.score == "beta" and self.clip_score == "exact"
        inside = exact_inside(score, self.floor_) if exact else self._inside(score)
        own = beta_steps(inside) if self.score == "beta" else (logit_step(inside),)
        eta: Step = constant(fitted.intercept)
        for step, coefficient in zip(own, fitted.coef.tolist(), strict=False):
            eta = eta + step * coefficient
        begin = len(own)
        for k, terms in enumerate(self.terms_):
            end = begin + len(terms.names())
            if self.schema_.kinds[k] == "missing":
                eta = eta + float(fitted.coef[end - 1])
            else:
                eta = eta + terms.effect_step(k, fitted.coef[begin:end])
            begin = end
        return logistic(eta)

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        names = ["ln p", "-ln(1-p)"] if self.score == "beta" else ["logit p"]
        names += [name for terms in self.terms_ for name in terms.names()]
        labels = self.classes_[1:] if len(self.maps_) == 1 else self.classes_
        table = [
            {"class": str(label), "term": name, "coefficient": float(value)}
            for label, each in zip(labels, self.maps_, strict=True)
            if each is not None
            for name, value in zip([*names, "intercept"], [*each.coef, each.intercept], strict=True)
        ]
        return self._sentence(), table

    def _sentence(self) -> str:
        kind = "standardized terms" if self.standardize else "terms"
        return f"logit(q) is linear in the score and in {kind} of V."


def _check_powers(name: str, far: float, degree: int) -> None:
    """Refuse values whose powers, or the squares of these, overflow."""
    most = MOST_SQUARE ** (0.5 / degree)
    if far > most:
        raise InputError(
            f"variable {name!r} holds values up to {far:g}: those beyond {most:.2g} overflow in a "
            f"polynomial of degree {degree}",
            "divide the column by a constant, or use standardize=True",
            argument="v",
        )


def _moments(values: Floats, weight: Floats | None) -> tuple[float, float]:
    """Return mean and standard deviation; a constant has scale 1."""
    if not values.size:
        return 0.0, 1.0
    mean = float(np.average(values, weights=weight))
    spread = float(np.sqrt(np.average((values - mean) ** 2, weights=weight)))
    return mean, spread if spread > _ROUNDING * abs(mean) else 1.0
