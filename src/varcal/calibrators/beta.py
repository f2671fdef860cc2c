"""Beta calibration: a logistic curve of ln p and ln(1 − p)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from varcal._arrays import Floats
from varcal._options import check_eps, check_flag, check_not_negative, one_of, or_none
from varcal.calibrators.logistic import fit_logistic
from varcal.calibrators.one_vs_rest import OneVsRestCalibrator, inside_of
from varcal.calibrators.steps import Step, equal, log, logistic, where


@dataclass(frozen=True)
class BetaMap:
    """logit q = a · ln p − b · ln(1 − p) + c."""

    a: float
    b: float
    c: float


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
    eps : float, optional
        How far scores are kept from 0 and 1 before the logarithms; None means the floor of all
        calibrators by score, min(½ · smallest positive p, 1 / 2n). betacal has 2.2e-16.
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

    maps_: list[BetaMap | None]
    _parameters: ClassVar = {
        "parameters": one_of("abm", "am", "ab"),
        "nonnegative": check_flag,
        "l2": check_not_negative,
        "eps": or_none(check_eps),
        "clip": one_of("all", "exact"),
    }

    def __init__(
        self,
        *,
        parameters: Literal["abm", "am", "ab"] = "abm",
        nonnegative: bool = True,
        l2: float = 0.0,
        eps: float | None = None,
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
        features = beta_features(score, self.floor_, self.clip)
        centre = 0.0
        if self.parameters == "am":
            features = features.sum(axis=0, keepdims=True)
        elif self.parameters == "ab":
            centre = np.log(2.0)
            features += [[centre], [-centre]]
        fit = fit_logistic(
            features,
            hit,
            weight,
            l2=self.l2 * (2.0 if self.parameters == "am" else 1.0),
            nonnegative=np.full(len(features), self.nonnegative),
            intercept=self.parameters != "ab",
        )
        self.separated_ = self.separated_ or fit.separated
        a, b = float(fit.coef[0]), float(fit.coef[-1])
        return BetaMap(a, b, float(fit.intercept + (a - b) * centre))

    def _map_steps(self, fitted: BetaMap, score: Step) -> tuple[Step, Step]:
        inside = exact_inside(score, self.floor_) if self.clip == "exact" else self._inside(score)
        low, high = beta_steps(inside)
        return logistic(low * fitted.a + high * fitted.b + fitted.c)

    def _sentence(self) -> str:
        return "logit(q) = a · ln(p) − b · ln(1 − p) + c."


def beta_features(score: Floats, floor: float, clip: str) -> Floats:
    """Return ln p and −ln(1 − p) as two rows."""
    if clip == "exact":
        inside = np.where(score == 0, floor, np.where(score == 1, 1.0 - floor, score))
    else:
        inside = inside_of(score, floor)
    return np.stack([np.log(inside), -np.log(1.0 - inside)])


def exact_inside(score: Step, floor: float) -> Step:
    """Return the step that moves only scores of exactly 0 or 1."""
    below = where(equal(score, 1.0), 1.0 - floor, score)
    return where(equal(score, 0.0), floor, below).named("inside")


def beta_steps(inside: Step) -> tuple[Step, Step]:
    """Return the steps to ln p and −ln(1 − p)."""
    return log(inside).named("ln_p"), (-log(1.0 - inside)).named("minus_ln_rest")
