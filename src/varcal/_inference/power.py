"""Power of the calibration test: the smallest detectable error, and the rows needed."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import chdtri, chndtrinc

from varcal._arrays import Floats
from varcal._inference.gap_law import GapLaw
from varcal._options import checked, number
from varcal.exceptions import InputError

#: If one of the two tests sees nothing, their Cauchy mean rejects when the other is significant
#: at about this part of the level.
PART_OF_LEVEL = 0.5
#: No table has this many rows; a larger answer says that the gap cannot be detected.
MOST_ROWS = 1e18
_SHARE = number(0, 1, hint="try 0.05")


def minimum_detectable(law: GapLaw, *, level: float = 0.05, power: float = 0.8) -> Floats:
    r"""Return the smallest error that the test detects with this power, whatever its shape.

    The chi-square part rejects with that power if :math:`\sum (g_b / se_{0b})^2` is at least
    :math:`\lambda`. Of all gaps with error :math:`\tau`, the hardest to detect,
    :math:`g_b \propto \pi_b se_{0b}^2` with alternating signs, has
    :math:`\lambda = \tau^2 / \sum \pi_b^2 se_{0b}^2`. Smaller gaps are detected if they are
    smooth.

    Examples
    --------
    >>> from varcal._inference.error_sums import ErrorSums
    >>> s = np.full(2000, 0.5)
    >>> h = np.arange(2000) % 2
    >>> cells = ErrorSums.from_rows(np.arange(2000) // 200, s, h, n_bins=10)
    >>> round(float(minimum_detectable(GapLaw.from_cells(cells))), 3)
    0.049
    """
    bins = (law.share > 0).sum(-1) - law.centered
    spread = np.einsum("...b,...bc,...c->...", law.share, np.abs(law.null_cov), law.share)
    return np.asarray(np.sqrt(_noncentrality(bins, level, power) * spread))


@checked(gap=_SHARE, variance=_SHARE, power=_SHARE)
def rows_needed(
    gap: float, *, variance: float = 0.25, n_bins: int = 10, level: float = 0.95, power: float = 0.8
) -> int:
    r"""Return how many rows the test needs to detect an error of this size.

    :math:`n = \lambda \sigma^2 / \text{gap}^2`: the inverse of :func:`minimum_detectable` for
    bins of equal share and a mean variance :math:`\sigma^2` of :math:`s(1 - s)`.

    Parameters
    ----------
    gap : float
        The size of the error, between 0 and 1.
    variance : float
        Mean of s(1 − s): 0.25 is the worst case, 0.05 is typical of scores near 0.95.
    n_bins : int
        Number of bins of the variable.
    level, power : float
        1 − the type-I error, and the probability of detecting the error.

    Examples
    --------
    >>> rows_needed(0.05)
    1890
    """
    need = float(_noncentrality(np.asarray(n_bins), 1 - level, power))
    rows = need * variance / gap / gap if gap > 1e-150 else math.inf
    if not rows < MOST_ROWS:
        raise InputError(
            f"gap is {gap!r}: with these options more than {MOST_ROWS:.0e} rows would be needed",
            "give a larger gap",
            argument="gap",
        )
    return math.ceil(rows)


def _noncentrality(bins: Floats, level: float, power: float) -> Floats:
    """Return the noncentrality that the chi-square part of the test detects with this power."""
    df = np.maximum(bins, 1)
    return np.asarray(chndtrinc(chdtri(df, PART_OF_LEVEL * level), df, 1 - power))
