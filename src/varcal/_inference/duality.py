"""Duality: an interval of an error excludes 0 exactly where its p-value is small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from varcal._inference.measured import Measured
from varcal._inference.multiplicity import cauchy

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


def with_p_of_classes(
    mean: Measured, classes: Sequence[Measured], p_values: Sequence[float], level: float
) -> Measured:
    r"""Return the mean error over classes with a combined p-value, and an interval that agrees.

    One class that is far off makes the combined p-value small, although the mean over classes is
    mostly noise. The mean is at least the error of any of the K classes divided by K, so that the
    lower limit is at least the largest lower limit of a class, at the level
    :math:`1 - \alpha / K`, divided by K. If that is 0 too and the combined p-value is below
    :math:`\alpha`, the limit is `LEAST_PART` of the debiased value.

    Parameters
    ----------
    mean : Measured
        The mean error over classes.
    classes : sequence of Measured
        The error of each class, at the level :math:`1 - \alpha / K`.
    p_values : sequence of float
        The p-value of each class.
    level : float
        The level of the interval.
    """
    many = len(classes)
    if many == 1:
        return with_p(mean, p_values[0], level)
    p_value = float(cauchy([np.array(p) for p in p_values]))
    strict = 1 - (1 - level) / many
    lows = [with_p(one, p, strict).low for one, p in zip(classes, p_values, strict=True)]
    low = max(mean.low, max(lows) / many, LEAST_PART * max(mean.debiased, LEAST_PART * mean.value))
    middle = max(mean.debiased, low)
    return with_p(
        replace(mean, low=low, debiased=middle, high=max(mean.high, middle)), p_value, level
    )
