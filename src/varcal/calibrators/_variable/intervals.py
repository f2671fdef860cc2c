"""Intervals of calibrated probabilities, from the posterior of a fitted model."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit

from varcal._arrays import Floats

#: Points of an interval of η at which probabilities are evaluated.
INTERVAL_POINTS = 9


def interval_of_predictor(
    answer: Floats, eta: Floats, reach: Floats, probabilities: Callable[[Floats], Floats]
) -> tuple[Floats, Floats]:
    """Return the least and the largest probabilities while η is within its interval.

    Parameters
    ----------
    answer : ndarray of shape (n, K)
        The predictions, which lie between them.
    eta, reach : ndarray of shape (n,)
        The linear predictor, and how far its interval reaches.
    probabilities : callable
        Turns a linear predictor into probabilities.
    """
    low, high = answer.copy(), answer.copy()
    # The probability of a middle class may have its extreme inside the interval.
    for share in np.linspace(-1.0, 1.0, INTERVAL_POINTS):
        other = probabilities(eta + share * reach)
        np.minimum(low, other, out=low)
        np.maximum(high, other, out=high)
    return low, high


def widened(answer: Floats, end: Floats, reach: Floats) -> Floats:
    """Return the ends of intervals, widened by an independent error of the logit."""
    middle = logit(answer)
    with np.errstate(invalid="ignore"):
        apart = np.hypot(logit(end) - middle, reach)
        moved = expit(middle + np.sign(reach) * apart)
    # The logit of 0 and 1 is infinite.
    return np.asarray(np.where(np.isfinite(middle) & (reach != 0), moved, end))
