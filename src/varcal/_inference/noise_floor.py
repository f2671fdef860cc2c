"""The plug-in error that a perfectly calibrated model would show by chance."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from varcal._arrays import Floats
from varcal._inference.gap_law import GapLaw, plug_in_moments
from varcal._smoothing.critical import student_quantile


def noise_floor(law: GapLaw, *, level: float = 0.95) -> tuple[Floats, Floats]:
    r"""Return mean and quantile of the plug-in error if there were no gap at all.

    The mean is :math:`\sqrt{2/\pi} \sum_b \pi_b\, se_{0b}`, the quantile a Cornish–Fisher one.

    Parameters
    ----------
    law : GapLaw
        Gaps and their covariance under the null.
    level : float
        Level of the quantile.

    Examples
    --------
    >>> from varcal._inference.error_sums import ErrorSums
    >>> s = np.full(2000, 0.5)
    >>> cells = ErrorSums.from_rows(np.arange(2000) // 200, s, np.arange(2000) % 2, n_bins=10)
    >>> mean, high = noise_floor(GapLaw.from_cells(cells))
    >>> round(float(mean), 4), round(float(high), 4)
    (0.0282, 0.0399)
    """
    blank = replace(law, gap=0 * law.gap, cov=law.null_cov, centered=False)
    moments = plug_in_moments(blank, np.zeros_like(law.gap), np.zeros((*law.value.shape, 1)))
    mean, sd, skew = (moment[..., 0] for moment in moments)
    z = student_quantile(level, law.df)
    return mean, mean + (z + (z * z - 1) * skew / 6) * sd
