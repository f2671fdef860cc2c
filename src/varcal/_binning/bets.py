"""Bets: sums by which a monitor weighs the evidence of a batch against its limit."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Bools, Floats
from varcal._binning.stats import FIELDS

#: The stakes: the share of its evidence that each bet risks on a row. They span the gaps that
#: matter: 0.025 is best for a gap of half a point, 0.7 for one of twenty points and more.
STAKES = (0.025, 0.05, 0.1, 0.2, 0.4, 0.7)
#: The sums of a table of bets: rows, then the logarithms of what each stake gained by betting
#: that outcomes are more frequent than the scores say, then the same for less frequent.
BET_FIELDS = (
    "n",
    *(f"more {stake:g}" for stake in STAKES),
    *(f"less {stake:g}" for stake in STAKES),
)
# Engines and files treat all tables alike, so they must have the same number of sums.
assert len(BET_FIELDS) == len(FIELDS)


def log_gains(score: Floats, hit: Bools, size: Floats | None, limit: float) -> Floats:
    r"""Return the logarithm of what each bet gains from each row, shape (rows, 2 × stakes).

    With the error :math:`x = h - s` and the limit :math:`\tau`, a row multiplies a bet by
    :math:`1 + \lambda (\pm x - \tau) / (1 + \tau)`. Its mean is at most 1 while the gap is within
    the limit.

    Parameters
    ----------
    score, hit : ndarray
        The claimed probabilities, and whether the event occurred.
    size : ndarray, optional
        Sampling weights as parts of the largest one that is allowed: a row of weight 0.5 risks
        half of the stake.
    limit : float
        The gap that does not count as a fault.

    Examples
    --------
    >>> gains = log_gains(np.array([0.25]), np.array([True]), None, 0.0)
    >>> bool(np.isclose(gains[0, 0], np.log(1 + 0.025 * 0.75)))
    True
    """
    error = hit - score
    sides = np.stack([error, -error], axis=1)
    part = (sides - limit) / (1.0 + limit)
    if size is not None:
        part *= size[:, None]
    gains: Floats = np.log1p(part[:, :, None] * np.array(STAKES))
    return gains.reshape(len(error), -1)
