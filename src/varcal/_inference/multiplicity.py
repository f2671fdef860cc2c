"""Several tests at once: adjusted and combined p-values, and p-values of intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from varcal._arrays import Floats, Ints

#: In a combination a p-value counts as at most this: one near 1 would outweigh all others.
MOST_P = 0.99


def holm(p: ArrayLike) -> Floats:
    """Adjust p-values to control the probability of any false finding (Holm, 1979).

    >>> holm([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = p[order] * np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def benjamini_hochberg(p: ArrayLike) -> Floats:
    """Adjust p-values to control the false discovery rate (Benjamini and Hochberg, 1995).

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).round(3).tolist()
    [0.03, 0.04, 0.04]
    """
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(-p, kind="stable")
    steps = p[order] * len(p) / np.arange(len(p), 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.minimum.accumulate(steps), 1.0)
    return adjusted


def cauchy(p_values: Sequence[ArrayLike], weights: Sequence[float] | None = None) -> Floats:
    r"""Combine p-values, which may be dependent, by the mean of :math:`\cot(\pi p)`.

    p-values above 0.99 are replaced by 0.99, because one near 1 would outweigh all others.

    >>> float(np.round(cauchy([0.01, 0.5]), 4))
    0.02
    """
    p = np.stack(np.broadcast_arrays(*p_values))
    mean = np.average(1 / np.tan(np.pi * np.clip(p, 1e-300, MOST_P)), axis=0, weights=weights)
    # The arc cotangent; from 1 / mean if that keeps the digits of small p-values.
    small = np.arctan(1 / np.maximum(mean, 1.0)) / np.pi
    combined = np.where(mean > 1, small, 0.5 - np.arctan(mean) / np.pi)
    return np.asarray(np.where(p.min(0) > MOST_P, p.min(0), combined))


def student_quantile(probability: float, dof: float = math.inf) -> float:
    """Quantile of Student's t; of the normal for infinite degrees of freedom."""
    if math.isinf(dof):
        return float(ndtri(probability))
    return float(stdtrit(dof, probability))


def two_sided_quantile(level: float, df: float = math.inf) -> float:
    """Return how many standard errors an interval of this level reaches to either side.

    The quantile is that of the normal law, or of Student's t with `df` degrees of freedom.

    >>> round(two_sided_quantile(0.95), 4)
    1.96
    """
    return student_quantile((1 + level) / 2, df)


def p_of_interval(low: float, high: float, level: float, df: float = math.inf) -> float:
    """Return the p-value of 0: 1 minus the level at which the interval would end at 0.

    Its half-width is taken as proportional to the quantile of its level, and its middle as fixed.
    So the p-value is below 1 − level if, and only if, the interval excludes 0. An interval without
    width, of two sets of probabilities that are the same, has the p-value 1.

    Parameters
    ----------
    low, high, level : float
        The interval and its level.
    df : float
        Degrees of freedom, infinite for the normal law.

    Examples
    --------
    >>> round(p_of_interval(0.0, 1.0, 0.95), 4), round(p_of_interval(-1.0, 3.0, 0.95), 4)
    (0.05, 0.3271)
    """
    middle, half = (low + high) / 2, (high - low) / 2
    if not half > 0:
        return math.nan if math.isnan(half) else float(middle == 0)
    z = abs(middle) / half * two_sided_quantile(level, df)
    return 2 * float(ndtr(-z) if math.isinf(df) else stdtr(df, -z))


def rank_range(estimate: ArrayLike, low: ArrayLike, high: ArrayLike) -> tuple[Ints, Ints]:
    r"""Return the best and the worst rank of each estimate; rank 1 is the largest.

    One is surely larger than another if

    .. math:: \hat\theta_k - \hat\theta_j >
              \sqrt{(\hat\theta_k - low_k)^2 + (high_j - \hat\theta_j)^2},

    the interval of a difference of independent estimates (Zou and Donner, 2008). This finds more
    than asking for intervals that do not overlap. It is not adjusted for the number of pairs:
    the intervals of `uneven` are cautious enough (`benchmarks/worlds.py`).

    Parameters
    ----------
    estimate, low, high : array-like of shape (k,)
        Estimates and the limits of their intervals.

    References
    ----------
    Zou, G. Y. and Donner, A. (2008). Construction of confidence limits about effect measures: a
    general approach. Statistics in Medicine 27, 1693-1702.

    Examples
    --------
    >>> best, worst = rank_range([0.10, 0.09, 0.01], [0.08, 0.06, 0.00], [0.12, 0.12, 0.03])
    >>> best.tolist(), worst.tolist()
    ([1, 1, 3], [2, 2, 3])
    """
    value, start, end = (np.asarray(one, np.float64) for one in (estimate, low, high))
    apart = value[:, None] - value
    reach = np.hypot((value - start)[:, None], end - value)
    above = apart > reach
    return 1 + above.sum(axis=0), len(value) - above.sum(axis=1)
