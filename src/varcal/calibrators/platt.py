"""Platt scaling: a logistic curve of the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from varcal._arrays import Floats
from varcal._options import check_eps, check_flag, check_not_negative, one_of, or_none
from varcal.calibrators.logistic import fit_logistic
from varcal.calibrators.one_vs_rest import OneVsRestCalibrator, inside_of
from varcal.calibrators.steps import Step, log, logistic


@dataclass(frozen=True)
class PlattMap:
    """logit q = slope · s + intercept, where s is p or its logit."""

    slope: float
    intercept: float


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
    eps : float, optional
        How far scores are kept from 0 and 1 before the logit; None means the floor of all
        calibrators by score, min(½ · smallest positive p, 1 / 2n).

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

    maps_: list[PlattMap | None]
    _parameters: ClassVar = {
        "on": one_of("logit", "probability"),
        "smooth_targets": check_flag,
        "l2": check_not_negative,
        "eps": or_none(check_eps),
    }

    def __init__(
        self,
        *,
        on: Literal["logit", "probability"] = "logit",
        l2: float = 0.0,
        smooth_targets: bool = True,
        eps: float | None = None,
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
        feature = score if self.on == "probability" else logit_of(score, self.floor_)
        fit = fit_logistic(feature[None, :], target, weight, l2=self.l2)
        self.separated_ = self.separated_ or fit.separated
        return PlattMap(float(fit.coef[0]), fit.intercept)

    def _map_steps(self, fitted: PlattMap, score: Step) -> tuple[Step, Step]:
        feature = score if self.on == "probability" else logit_step(self._inside(score))
        return logistic(feature * fitted.slope + fitted.intercept)

    def _sentence(self) -> str:
        shown = "logit(p)" if self.on == "logit" else "p"
        return f"logit(q) = slope · {shown} + intercept."


def logit_of(score: Floats, floor: float) -> Floats:
    """Return logits of scores that are kept away from 0 and 1."""
    inside = inside_of(score, floor)
    return np.log(inside / (1.0 - inside))


def logit_step(inside: Step) -> Step:
    """Return the step to the logit of a score between 0 and 1."""
    return log(inside / (1.0 - inside)).named("logit")


def smoothed(hit: Floats, weight: Floats | None) -> Floats:
    """Return Platt's targets, which differ from 0 and 1 by more where there are fewer rows."""
    yes = float(hit.sum() if weight is None else hit @ weight)
    no = float(hit.size if weight is None else weight.sum()) - yes
    low, high = 1.0 / (no + 2.0), (yes + 1.0) / (yes + 2.0)
    return low + hit * (high - low)
