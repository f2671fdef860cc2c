"""Beta calibration: a logistic curve of ln p and ln(1 − p)."""

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
from varcal.calibrators.steps import Step, clipped, equal, log, where


@dataclass(frozen=True)
class BetaMap:
    """logit q = a · ln p − b · ln(1 − p) + c."""

    a: float
    b: float
    c: float
    eps: float
    clip: str

    def log_odds(self, score: Floats) -> Floats:
        """Return logit q."""
        inside = interior(score, self.eps, self.clip)
        eta = np.log(inside)
        eta *= self.a
        np.subtract(1.0, inside, out=inside)
        np.log(inside, out=inside)
        inside *= self.b
        eta -= inside
        eta += self.c
        return eta

    def columns(self, score: Floats) -> Floats:
        """Return the probabilities of "no" and "yes"."""
        return two_columns(score, self.log_odds)

    def table_row(self) -> dict[str, Any]:
        """Return the three parameters."""
        return {"a": self.a, "b": self.b, "c": self.c}

    def as_steps(self, score: Step) -> tuple[Step, Step]:
        """Return the steps to the probabilities of "no" and "yes"."""
        low, high = beta_steps(score, self.eps, self.clip)
        return logistic_steps(low * self.a + high * self.b + self.c)


class BetaCalibrator(OneVsRestCalibrator):
    r"""Beta calibration: the curve between two beta distributions.

    .. math:: \mathrm{logit}\, q = a \ln p - b \ln(1 - p) + c, \qquad a, b \ge 0

    With a = b = 1 and c = 0 probabilities stay unchanged. With more than two classes, each is
    calibrated against the rest and rows are normalized.

    Parameters
    ----------
    parameters : {"abm", "am", "ab"}
        All three; a = b; or c = (b − a) · ln ½, which keeps a score of ½ at ½.
    nonnegative : bool
        Whether a, b ≥ 0, so that a higher score never gets a lower probability.
    l2 : float
        λ of the penalty ½λ(a² + b²), scikit-learn's ``1 / C``.
    eps : float
        Scores are moved at least this far from 0 and 1 before taking logarithms; from 1 by
        2.2e-16 at least.
    clip : {"all", "exact"}
        Whether all scores within `eps` of 0 or 1 are moved, or only those equal to 0 or 1.

    References
    ----------
    M. Kull, T. Silva Filho, P. Flach (2017), Beta calibration, AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
    >>> y = np.array([0, 0, 1, 0, 1, 1])
    >>> BetaCalibrator(parameters="am").fit(p, y).predict_proba(p[:2]).round(3)
    array([[0.979, 0.021],
           [0.86 , 0.14 ]])
    """

    _parameters: ClassVar = {
        "parameters": one_of("abm", "am", "ab"),
        "nonnegative": check_flag,
        "l2": check_not_negative,
        "eps": check_eps,
        "clip": one_of("all", "exact"),
    }

    def __init__(
        self,
        *,
        parameters: Literal["abm", "am", "ab"] = "abm",
        nonnegative: bool = True,
        l2: float = 0.0,
        eps: float = EPS,
        clip: Literal["all", "exact"] = "all",
    ) -> None:
        self.parameters = parameters
        self.nonnegative = nonnegative
        self.l2 = l2
        self.eps = eps
        self.clip = clip

    @classmethod
    def paper(cls) -> Self:
        """Return the settings of Kelly & Smyth: C = 1, a and b of any sign, clip="exact"."""
        return cls(nonnegative=False, l2=1.0, eps=1e-4, clip="exact")

    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> BetaMap:
        features = beta_features(score, self.eps, self.clip)
        centre = 0.0
        if self.parameters == "am":
            features = features.sum(axis=0, keepdims=True)
        elif self.parameters == "ab":
            centre = np.log(2.0)
            features[0] += centre
            features[1] -= centre
        fit = fit_logistic(
            features,
            hit,
            weight,
            l2=self.l2 * (2.0 if self.parameters == "am" else 1.0),
            nonnegative=np.full(len(features), self.nonnegative),
            intercept=self.parameters != "ab",
        )
        self.separated_ = self.separated_ or fit.separated
        a, b = (float(fit.coef[0]), float(fit.coef[-1]))
        return BetaMap(a, b, fit.intercept + (a - b) * centre, self.eps, self.clip)

    def _sentence(self) -> str:
        return "logit(q) = a · ln(p) − b · ln(1 − p) + c."


def interior(score: Floats, eps: float, clip: str) -> Floats:
    """Return a copy of the scores, moved off 0 and 1."""
    if clip == "exact":
        return np.where(score == 0, eps, np.where(score == 1, 1.0 - eps, score))
    return np.minimum(np.maximum(score, eps), 1.0 - max(eps, EPS))


def beta_steps(score: Step, eps: float, clip: str) -> tuple[Step, Step]:
    """Return the steps to ln p and −ln(1 − p)."""
    if clip == "exact":
        below = where(equal(score, 1.0), 1.0 - eps, score)
        inside = where(equal(score, 0.0), eps, below)
    else:
        inside = clipped(score, eps, 1.0 - max(eps, EPS))
    inside = inside.named("inside")
    return log(inside).named("ln_p"), (-log(1.0 - inside)).named("minus_ln_rest")


def beta_features(score: Floats, eps: float, clip: str) -> Floats:
    """Return ln p and −ln(1 − p) as two rows."""
    features = np.empty((2, score.size))
    for rows in blocks_of_rows(score.size):
        low, high = features[:, rows]
        inside = interior(score[rows], eps, clip)
        np.log(inside, out=low)
        np.subtract(1.0, inside, out=inside)
        np.log(inside, out=high)
        np.negative(high, out=high)
    return features
