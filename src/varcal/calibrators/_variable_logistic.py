"""The two-class model of the variable calibrator: logit q is additive in the score and V."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from varcal.calibrators._additive_model import AdditiveModel, Fitted, Sample, fit_additive, refit
from varcal.calibrators._design import Design
from varcal.calibrators._gam import LogisticLoss
from varcal.calibrators._row_folds import row_folds, row_hashes
from varcal.calibrators._score_basis import log_odds
from varcal.calibrators._trust import held_out_predictor, paired_gain, share_of

__all__ = ["LogisticModel", "fit_logistic_model", "moderated"]

Floats = NDArray[np.float64]

#: Rows beyond which penalties, pairs and shares are learned on a sample of this size.
MOST_ROWS = 40_000
#: Log marginal likelihood beyond a smaller model, above which held-out rows are not asked.
_SURE = 15.0
_FOLDS = 5
#: Twice the usual π/8: the penalties are uncertain, too.
_MODERATION = np.pi / 4


def moderated(eta: Floats, variance: Floats) -> Floats:
    """Return the logit of the mean probability where the logit is normal around η."""
    return np.asarray(eta / np.sqrt(1.0 + _MODERATION * variance))


@dataclass(frozen=True, eq=False)
class LogisticModel:
    r"""A blend of three logits: the score's own, one of the score alone, one of score and V.

    .. math:: \eta = z + a (\eta_s - z) + b (\eta_v - z - a (\eta_s - z)) + c

    Attributes
    ----------
    score, full : AdditiveModel
        :math:`\eta_s` and :math:`\eta_v`.
    score_share, full_share : float
        a and b, between 0 and 1; both are 0 where there is no evidence against the scores.
    shift : float
        c, which keeps the mean on the calibration rows.
    """

    score: AdditiveModel
    full: AdditiveModel
    score_share: float
    full_share: float
    shift: float

    def log_odds(self, p: Floats, columns: list[NDArray[Any]]) -> tuple[Floats, Floats]:
        """Return the calibrated logit and its standard error."""
        z = log_odds(p)
        eta, variance = z, np.zeros(len(z))
        if self.score_share > 0 and self.full_share < 1:
            own, spread = self.score.predictor(z, columns)
            eta = eta + self.score_share * (moderated(own, spread) - eta)
            variance = self.score_share**2 * spread
        if self.full_share > 0:
            own, spread = self.full.predictor(z, columns)
            eta = eta + self.full_share * (moderated(own, spread) - eta)
            variance = np.maximum(variance, self.full_share**2 * spread)
        return eta + self.shift, np.sqrt(variance)


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """The model with what was seen while it was made."""

    model: LogisticModel
    score: Fitted
    full: Fitted


def fit_logistic_model(
    p: Floats,
    y: Floats,
    columns: list[NDArray[Any]],
    n_levels: list[int],
    weight: Floats | None = None,
    *,
    groups: NDArray[Any] | None = None,
    interactions: bool = True,
) -> LogisticFit:
    """Fit the model.

    Parameters
    ----------
    p, y : ndarray of shape (n,)
        Probabilities and outcomes, 0 or 1.
    columns : list of ndarray
        The variables: numbers with NaN, or codes with −1 where they are missing.
    n_levels : list of int
        How many levels each variable has, 0 for numbers.
    weight : ndarray, optional
        Weights.
    groups : ndarray of int, optional
        Rows of one group share a fold.
    interactions : bool
        Whether to look for pairs.
    """
    z, mass = log_odds(p), np.ones(len(p)) if weight is None else weight
    folds = row_folds(_FOLDS, groups) if groups is not None else row_folds(_FOLDS, z, *columns)
    design = Design.of(z, columns, n_levels, weight)
    rows = Sample(z, columns, LogisticLoss(y, mass, np.zeros(len(y))), folds)
    some = rows
    if len(rows) > MOST_ROWS:
        some = rows.take(np.argsort(row_hashes(z, *columns), kind="stable")[:MOST_ROWS])
    score = fit_additive(design.score_only(), some, pairs=False)
    full = fit_additive(design, some, pairs=interactions)
    full_share = 1.0
    small = None
    if full.evidence - score.evidence < _SURE:
        small = held_out_predictor(
            some, lambda part: fit_additive(design.score_only(), part, pairs=False), moderated
        )
        score_share = share_of(paired_gain(some, some.z, small))
        small = some.z + score_share * (small - some.z)
        large = held_out_predictor(
            some, lambda part: fit_additive(design, part, pairs=interactions), moderated
        )
        full_share = share_of(paired_gain(some, small, large))
    else:
        score_share = 1.0
    if len(some) < len(rows):
        score, full = refit(score, rows), refit(full, rows)
    model = LogisticModel(score.model, full.model, score_share, full_share, 0.0)
    eta, _ = model.log_odds(p, columns)
    shift = max(score_share, full_share) * mean_shift(eta, y, mass)
    return LogisticFit(
        LogisticModel(score.model, full.model, score_share, full_share, shift), score, full
    )


def mean_shift(eta: Floats, y: Floats, mass: Floats) -> float:
    """Return what must be added to logits so that the mean probability is the mean outcome."""
    goal, total = float(mass @ y), 0.0
    for _ in range(100):
        mean = expit(eta + total)
        missing = goal - float(mass @ mean)
        step = missing / max(float(mass @ (mean * (1.0 - mean))), 1e-12)
        total += float(np.clip(step, -2.0, 2.0))
        if abs(step) < 1e-12:
            break
    return total
