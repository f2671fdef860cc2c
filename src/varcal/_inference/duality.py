"""Duality: an interval of an error excludes 0 exactly where its p-value is small."""

from __future__ import annotations

import math
from dataclasses import replace

from scipy.special import ndtri

from varcal._inference.measured import Measured

#: Where a test rejects, the debiased value is at least this part of the plug-in value, so that an
#: interval above 0 contains it. The plug-in value is then mostly noise, and the test found a trend
#: that is smaller than the bins can show.
LEAST_PART = 1e-3


def with_p(measured: Measured, p_value: float, level: float) -> Measured:
    r"""Return a measured error with its p-value, and an interval that agrees with it.

    The lower limit is 0 if the p-value is at least :math:`\alpha = 1 - \text{level}`. If the
    p-value is smaller and the lower limit was 0, it becomes
    :math:`\hat\theta (1 - z_\alpha / z_p)` with :math:`z_q = \Phi^{-1}(1 - q/2)`: that of a normal
    estimate whose p-value is p. Therefore ``low > 0`` if and only if ``p_value < 1 - level``. The
    only exception is a plug-in value of exactly 0, whose interval starts at 0 in any case. If the
    p-value is NaN (not tested), the interval stays as it is.

    Examples
    --------
    >>> found = Measured(0.03, 0.02, 0.0, 0.05, math.nan, 0.01, 0.02)
    >>> with_p(found, 0.2, 0.95).low, round(with_p(found, 0.001, 0.95).low, 4)
    (0.0, 0.0081)
    """
    alpha = 1 - level
    if math.isnan(p_value):
        return replace(measured, p_value=p_value)
    if p_value >= alpha:
        return replace(measured, p_value=p_value, low=0.0)
    middle = max(measured.debiased, LEAST_PART * measured.value)
    low = measured.low
    if low <= 0:
        low = middle * float(1 - ndtri(alpha / 2) / ndtri(p_value / 2))
    return replace(
        measured, p_value=p_value, debiased=middle, low=low, high=max(measured.high, middle)
    )
