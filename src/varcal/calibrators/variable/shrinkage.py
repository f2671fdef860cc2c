r"""How much of a correction is applied: as much as held-out rows support.

A correction moves the predictors of rows by Δ. The share w of it with the least loss of held-out
rows is applied as far as its gain is more than chance: multiplied by a ramp of the gain over its
standard error. Few rows, whose standard error is itself uncertain, need more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from varcal._arrays import Floats, Ints

# Tuned constants.

#: Ramps in standard errors. Score: from 0 the curve cost more than .002 of log-loss in 3 % of draws
#: of 1,000 calibrated scores. Variables: shrunk by their penalties already. Pairs and trees: many
#: are tried; 1.25 to 3 was chosen on worlds with jumps, checkerboards and calibrated scores.
SCORE_RAMP = (0.5, 1.5)
VARIABLES_RAMP = (0.0, 1.0)
TREES_RAMP = (1.25, 3.0)
#: How much later variables are applied where the score's curve is not: without it calibrated scores
#: were harmed in 20 % of draws in place of 2 %.
CALIBRATED_SCORES = 1.0
#: The log-likelihood of held-out rows between which a correction of the score is beyond doubt: a
#: few extremely wrong scores make the standard error of savings as large as the savings.
BEYOND_DOUBT = (10.0, 20.0)
#: Shares above this are not told from 1.
NEARLY_ALL = 0.9
#: Ramps start later by this over the number of independent savings.
FEW_SAVINGS = 50.0


@dataclass(frozen=True)
class Share:
    """How much of a correction is applied.

    Attributes
    ----------
    value : float
        The share, between 0 and 1.
    gain : float
        What it saves of the log-loss of held-out rows, per row.
    error : float
        The standard error of that gain.
    """

    value: float
    gain: float
    error: float


NOTHING = Share(0.0, 0.0, 0.0)
#: Losses of rows at a share of the correction, and slope and curvature along it, row by row.
Along = Callable[[float], tuple[Floats, Floats, Floats]]


def share_of(
    along: Along,
    weight: Floats,
    ramp: tuple[float, float],
    units: Ints | None = None,
    later: float = 0.0,
    doubt: tuple[float, float] | None = None,
) -> Share:
    """Return how much of a correction held-out rows support.

    Parameters
    ----------
    along : callable
        Returns for a share w the loss of each held-out row, minus its slope, and its curvature.
    weight : ndarray
        The number of rows that each row stands for.
    ramp : tuple of (float, float)
        Gains in standard errors between which the share rises from 0 to its full size.
    units : ndarray of int, optional
        Rows of one unit count as one observation.
    later : float
        How much later the ramp starts.
    doubt : tuple of (float, float), optional
        Savings in log-likelihood between which the share rises to its full size in any case.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 400)
    >>> y = x + 0.1 * np.sin(50 * x)
    >>> along = lambda w: ((y - w * x) ** 2 / 2, (y - w * x) * x, x**2)
    >>> share_of(along, np.ones(400), (1, 2)).value > 0.9
    True
    """
    w = 0.5
    for _ in range(30):
        _, slope, curvature = along(w)
        new = float(np.clip(w + slope.sum() / max(float(curvature.sum()), 1e-12), 0.0, 1.0))
        done, w = abs(new - w) < 1e-6, new
        if done:
            break
    w = 1.0 if w > NEARLY_ALL else w
    before, _, curvature = along(0.0)
    saved, total = before - along(w)[0], float(weight.sum())
    gain = float(saved.sum()) / total
    apart = saved - gain * weight
    if units is None:
        error, count = float(np.sqrt((apart**2 / weight).sum())) / total, total
    else:
        _, place = np.unique(units, return_inverse=True)
        sums = np.bincount(place, apart)
        count = float(len(sums))
        error = float(np.sqrt((sums**2).sum() * count / max(count - 1, 1))) / total
    # At least the error that would hold if there were nothing to correct.
    error = max(error, w * float(np.sqrt(curvature.sum())) / total, 1e-300)
    low, high = ramp
    part = (gain / error - FEW_SAVINGS / count - later - low) / (high - low)
    if doubt is not None and units is None:
        part = max(part, (gain * total - doubt[0]) / (doubt[1] - doubt[0]))
    return Share(w * float(np.clip(part, 0.0, 1.0)), gain, error)
