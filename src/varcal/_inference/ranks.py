"""Ranks: which places in a ranking of estimates their intervals allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from varcal._arrays import Ints

__all__ = ["rank_range"]


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
