"""Platt scaling: a logistic curve of the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from varcal._arrays import Floats
from varcal._options import EPS, check_eps, check_flag, check_not_negative, one_of
from varcal.calibrators.logistic import (
    blocks_of_rows,
    fit_logistic,
    logistic_steps,
    two_columns,
)
from varcal.calibrators.one_vs_rest import OneVsRestCalibrator
from varcal.calibrators.steps import Step, clipped, log


@dataclass(frozen=True)
class PlattMap:
    """logit q = slope · s + intercept, where s is p or its logit."""

    slope: float
    intercept: float
    on: str
    eps: float

    def log_odds(self, score: Floats) -> Floats:
        """Return logit q."""
        return self.slope * platt_feature(score, self.on, self.eps) + self.intercept

    def columns(self, score: Floats) -> Floats:
        """Return the probabilities of "no" and "yes"."""
        return two_columns(score, self.log_odds)

    def table_row(self) -> dict[str, Any]:
        """Return the two parameters."""
        return {"slope": self.slope, "intercept": self.intercept}

    def as_steps(self, score: Step) -> tuple[Step, Step]:
        """Return the steps to the probabilities of "no" and "yes"."""
        eta = platt_step(score, self.on, self.eps) * self.slope + self.intercept
        return logistic_steps(eta)


class PlattCalibrator(OneVsRestCalibrator):
    r"""Platt scaling: a logistic curve of the score.

    .. math:: \mathrm{logit}\, q = \alpha s + \beta, \qquad
              s = \mathrm{logit}\, p \ \text{or}\ s = p

    With more than two classes, each is calibrated against the rest and rows are normalized.

    Parameters
    ----------
    on : {"logit", "probability"}
        What s is. With the logit, a slope of 1 and an intercept of 0 leave probabilities
        unchanged; the paper uses the probability.
    l2 : float
        λ of the penalty ½λα², scikit-learn's ``1 / C``.
    smooth_targets : bool
        Whether to use Platt's targets, (N₊ + 1) / (N₊ + 2) and 1 / (N₋ + 2), in place of 1 and 0;
        they keep the curve finite where the classes are perfectly separated.
    eps : float
        Scores are moved at least this far from 0 and 1 before taking the logit; from 1 by 2.2e-16
        at least.

    References
    ----------
    J. Platt (1999), Probabilistic outputs for support vector machines.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
    >>> y = np.array([0, 0, 1, 0, 1, 1])
    >>> PlattCalibrator().fit(p, y).predict_proba(p[:2]).round(3)
    array([[0.814, 0.186],
           [0.667, 0.333]])
    """

    _parameters: ClassVar = {
        "on": one_of("logit", "probability"),
        "smooth_targets": check_flag,
        "l2": check_not_negative,
        "eps": check_eps,
    }

    def __init__(
        self,
        *,
        on: Literal["logit", "probability"] = "logit",
        l2: float = 0.0,
        smooth_targets: bool = True,
        eps: float = EPS,
    ) -> None:
        self.on = on
        self.l2 = l2
        self.smooth_targets = smooth_targets
        self.eps = eps

    @classmethod
    def paper(cls) -> Self:
        """Return the settings of Kelly & Smyth: p itself, C = 1, targets of 0 and 1."""
        return cls(on="probability", l2=1.0, smooth_targets=False)

    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> PlattMap:
        target = smoothed(hit, weight) if self.smooth_targets else hit
        features = platt_features(score, self.on, self.eps)
        fit = fit_logistic(features, target, weight, l2=self.l2)
        self.separated_ = self.separated_ or fit.separated
        return PlattMap(float(fit.coef[0]), fit.intercept, self.on, self.eps)

    def _sentence(self) -> str:
        shown = "logit(p)" if self.on == "logit" else "p"
        return f"logit(q) = slope · {shown} + intercept."


def platt_feature(score: Floats, on: str, eps: float) -> Floats:
    """Return the score, or its logit."""
    if on == "probability":
        return score
    inside = np.minimum(np.maximum(score, eps), 1.0 - max(eps, EPS))
    inside /= 1.0 - inside
    return np.log(inside, out=inside)


def platt_step(score: Step, on: str, eps: float) -> Step:
    """Return the step of `platt_feature`."""
    if on == "probability":
        return score
    inside = clipped(score, eps, 1.0 - max(eps, EPS)).named("inside")
    return log(inside / (1.0 - inside)).named("logit")


def platt_features(score: Floats, on: str, eps: float) -> Floats:
    """Return the score, or its logit, as a new array of one row."""
    features = np.empty((1, score.size))
    for rows in blocks_of_rows(score.size):
        features[0, rows] = platt_feature(score[rows], on, eps)
    return features


def smoothed(hit: Floats, weight: Floats | None) -> Floats:
    """Return Platt's targets, which differ from 0 and 1 by more where there are fewer rows."""
    yes = float(hit.sum() if weight is None else hit @ weight)
    no = float(hit.size if weight is None else weight.sum()) - yes
    low, high = 1.0 / (no + 2.0), (yes + 1.0) / (yes + 2.0)
    target = hit * (high - low)
    target += low
    return target
