"""Evidence of one batch against "the gap is within its limits", by cell, direction and stake."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Floats
from varcal._engines.bets import STAKES
from varcal._monitor.moments import Moments

#: How the evidence of a batch is computed.
BETS, UNITS, SUMS = "bets", "units", "sums"


def log_evidence(moments: Moments, limits: Floats) -> Floats:
    r"""Return log e-values of a batch, shape (…, cells, directions, stakes).

    The mean of an e-value is at most 1 while the mean error is within its limits. The first
    direction is "outcomes more frequent than scores say" (:math:`E[x] \le` limit), the second the
    opposite (:math:`E[-x] \le` limit).

    Parameters
    ----------
    moments : Moments
        The sums of the batch. If they have bets, those are the answer; if they have units, a bet
        is made on each unit. Otherwise the evidence is self-normalized:
        :math:`\lambda A - (-\ln(1 - \lambda) - \lambda) Q` with A the sum of
        :math:`(\pm x - \tau) / (1 + \tau)` and Q that of its squares. It is smaller, as
        :math:`e^{\lambda a - \psi a^2} \le 1 + \lambda a` for :math:`a \ge -1`.
    limits : ndarray of shape (cells, directions)
        The limits.
    """
    if moments.gains is not None:
        return moments.gains
    stakes = np.array(STAKES)
    reach = (1.0 + limits) * moments.top[..., None]
    if moments.units is not None:
        error, size = (values[..., None] for values in moments.units)
        part = (error * _SIGNS - limits * size) / reach
        gains: Floats = np.log1p(part[..., None] * stakes).sum(axis=0)
        return gains
    signed = moments.error[..., None] * _SIGNS
    signed2 = moments.error2[..., None] * _SIGNS
    first = (signed - limits * moments.weight[..., None]) / reach
    second = (
        moments.square2[..., None] - 2 * limits * signed2 + limits**2 * moments.weight2[..., None]
    ) / reach**2
    found: Floats = first[..., None] * stakes - second[..., None] * (-np.log1p(-stakes) - stakes)
    return found


_SIGNS = np.array([1.0, -1.0])
