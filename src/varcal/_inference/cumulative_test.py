"""Tests without bins, from cumulative differences between hits and scores along a variable."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from varcal._arrays import Bools, Floats
from varcal._input.variables import Variable

#: The smallest p-value that is ever returned.
LEAST = 1e-300
#: Below these values of the range and of the largest distance, the tail is within 1e-6 of 1, and
#: its series converges slowly.
SMALL_RANGE, SMALL_DISTANCE = 0.5, 0.1
#: Above this distance the series of reflections is used, which keeps the digits of small tails.
LARGE_DISTANCE = 2
#: Terms of the series of the range, of the reflections and of the eigenfunctions.
RANGE_TERMS, REFLECTIONS, EIGENFUNCTIONS = 200, 20, 100

CUMULATIVE = ("kuiper", "kolmogorov-smirnov")


def cumulative_test(
    variable: Variable,
    score: Floats,
    hit: Bools,
    weight: Floats | None = None,
    *,
    statistic: str = "kuiper",
) -> float:
    r"""Return the p-value of "calibrated with respect to v" from cumulative differences.

    With rows in the order of v, :math:`S_k = \sum_{i \le k} w_i (h_i - s_i) / \sqrt{\sum w^2
    s(1 - s)}` is approximately a Brownian motion if the scores are calibrated, with its variance
    as time. Kuiper's statistic is the range of S, that of Kolmogorov and Smirnov the largest
    \|S\|. Both use S only at the end of each run of equal values. Missing values come last, as
    one run.

    References
    ----------
    Arrieta-Ibarra et al. (2022), Metrics of calibration for probabilistic predictions, JMLR 23.
    Feller (1951), The asymptotic distribution of the range, Annals of Mathematical Statistics.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> v, s = rng.random(2000), np.full(2000, 0.5)
    >>> tilted = rng.random(2000) < 0.3 + 0.4 * v
    >>> cumulative_test(Variable.of(v, "v"), s, tilted) < 0.001
    True
    """
    values = variable.values
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    w = np.ones(len(score)) if weight is None else weight
    walk = np.cumsum((w * (hit - score))[order])
    variance = float((w * w * score * (1 - score)).sum())
    if variance <= 0:
        return 1.0 if np.allclose(walk, 0) else LEAST
    ends = np.append(ordered[1:] != ordered[:-1], True)
    if variable.kind != "levels":
        ends &= ~np.append(np.isnan(ordered[1:]) & np.isnan(ordered[:-1]), False)
    path = np.append(0.0, walk[ends]) / math.sqrt(variance)
    if statistic == "kuiper":
        return range_tail(float(path.max() - path.min()))
    return largest_tail(float(np.abs(path).max()))


def range_tail(x: float) -> float:
    """Return P(range of a Brownian motion on [0, 1] > x).

    >>> round(range_tail(2.497705), 4)
    0.05
    """
    if x < SMALL_RANGE:
        return 1.0
    k = np.arange(1, RANGE_TERMS)
    return float(np.clip(8 * ((-1.0) ** (k - 1) * k * ndtr(-k * x)).sum(), LEAST, 1.0))


def largest_tail(x: float) -> float:
    """Return P(largest distance from 0 of a Brownian motion on [0, 1] > x).

    >>> round(largest_tail(2.241403), 4)
    0.05
    """
    if x < SMALL_DISTANCE:
        return 1.0
    if x > LARGE_DISTANCE:
        k = np.arange(REFLECTIONS)
        return float(max(4 * ((-1.0) ** k * ndtr(-(2 * k + 1) * x)).sum(), LEAST))
    k = np.arange(EIGENFUNCTIONS)
    odd = 2 * k + 1
    below = 4 / math.pi * ((-1.0) ** k / odd * np.exp(-((odd * math.pi / x) ** 2) / 8)).sum()
    return float(np.clip(1 - below, 0.0, 1.0))
