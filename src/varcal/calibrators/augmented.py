"""Augmented calibration: a logistic curve of the score with terms of V added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from varcal._arrays import Floats
from varcal._options import check_choice, check_eps, check_flag, check_not_negative, one_of, whole
from varcal._threads import one_blas_thread
from varcal.calibrators.augmented_terms import UNSEEN, terms_of
from varcal.calibrators.beta import beta_features, beta_steps
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.logistic import fit_logistic, logistic_steps, two_columns
from varcal.calibrators.one_vs_rest import normalized, normalized_steps
from varcal.calibrators.platt import platt_features, platt_step
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.schema import Schema
from varcal.calibrators.steps import Step, constant

#: Higher powers of a variable differ by less than the rounding of a fit can tell apart.
MOST_DEGREE = 20


@dataclass(frozen=True, eq=False)
class LinearMap:
    """logit q = coefficients · features + intercept."""

    coef: Floats
    intercept: float

    def log_odds(self, features: Floats) -> Floats:
        """Return logit q."""
        return np.asarray(self.coef @ features + self.intercept)


class AugmentedCalibrator(Calibrator):
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
        Scores are moved at least this far from 0 and 1 before taking logarithms; from 1 by
        2.2e-16 at least.
        It is smaller than elsewhere: together with V, the size of a tiny score can matter.
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

    _state = ("maps_", "terms_", "schema_")
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
        self.terms_ = terms_of(
            self.schema_,
            columns,
            rows.weight,
            degree=self.degree,
            standardize=self.standardize,
            clip=self.clip,
        )
        added = self._added(columns)
        if rows.p.ndim == 1:
            self.maps_ = [self._map(rows.p, added, rows.y == 1, rows.weight)]
        else:
            self.maps_ = [
                self._map(rows.p[:, k], added, rows.y == k, rows.weight)
                for k in range(rows.n_classes)
            ]

    def _added(self, columns: list[Any]) -> list[Floats]:
        return [
            row
            for terms, values in zip(self.terms_, columns, strict=True)
            for row in terms.rows(values)
        ]

    def _features(self, score: Floats, added: list[Floats]) -> Floats:
        if self.score == "beta":
            return np.vstack([beta_features(score, self.eps, self.clip_score), *added])
        return np.vstack([platt_features(score, "logit", self.eps), *added])

    def _map(
        self, score: Floats, added: list[Floats], hit: Any, weight: Floats | None
    ) -> LinearMap:
        features = self._features(score, added)
        is_score = np.arange(len(features)) < len(features) - len(added)
        if hit.all() or not hit.any():
            # Coefficients of 1 on the score alone leave the class unchanged.
            return LinearMap(is_score.astype(np.float64), 0.0)
        fit = fit_logistic(
            features,
            hit.astype(np.float64),
            weight,
            l2=np.where(is_score, self.l2_score, self.l2),
            nonnegative=is_score & self.nonnegative,
        )
        self.separated_ = self.separated_ or fit.separated
        return LinearMap(fit.coef, fit.intercept)

    @one_blas_thread()
    def _answer(self, rows: CalibrationRows) -> Floats:
        added = self._added(self.schema_.align(rows.variables, unseen=UNSEEN))
        if rows.p.ndim == 1:
            return _columns(self.maps_[0], self._features(rows.p, added))
        cells = [
            _columns(each, self._features(rows.p[:, k], added))[:, 1]
            for k, each in enumerate(self.maps_)
        ]
        return normalized(np.column_stack(cells), rows.p)

    def _steps(self, scores: tuple[Step, ...], *, exact: bool = True) -> tuple[Step, ...]:
        if len(self.maps_) == 1:
            return logistic_steps(self._log_odds_step(self.maps_[0], scores[1]))
        cells = [
            logistic_steps(self._log_odds_step(each, score))[1]
            for each, score in zip(self.maps_, scores, strict=True)
        ]
        return normalized_steps(cells, scores)

    def _log_odds_step(self, each: LinearMap, score: Step) -> Step:
        own = (
            beta_steps(score, self.eps, self.clip_score)
            if self.score == "beta"
            else (platt_step(score, "logit", self.eps),)
        )
        eta: Step = constant(each.intercept)
        for step, coefficient in zip(own, each.coef, strict=False):
            eta = eta + step * float(coefficient)
        begin = len(own)
        for k, terms in enumerate(self.terms_):
            end = begin + len(terms.names())
            if self.schema_.kinds[k] == "missing":
                eta = eta + float(each.coef[end - 1])
            else:
                eta = eta + terms.effect_step(k, each.coef[begin:end])
            begin = end
        return eta

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        names = ["ln p", "-ln(1-p)"] if self.score == "beta" else ["logit p"]
        names += [name for terms in self.terms_ for name in terms.names()]
        labels = self.classes_[1:] if len(self.maps_) == 1 else self.classes_
        table = [
            {"class": str(label), "term": name, "coefficient": float(value)}
            for label, each in zip(labels, self.maps_, strict=True)
            for name, value in zip([*names, "intercept"], [*each.coef, each.intercept], strict=True)
        ]
        kind = "standardized terms" if self.standardize else "terms"
        return f"logit(q) is linear in the score and in {kind} of V.", table


def _columns(each: LinearMap, features: Floats) -> Floats:
    eta = each.log_odds(features)
    return two_columns(eta, lambda block: block)
