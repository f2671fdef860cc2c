"""Tests that need no bins: cumulative differences between hits and scores along a variable."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr

from varcal._arrays import Bools, Floats
from varcal._input.variables import Variable

#: The least p-value.
LEAST = 1e-300

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
    s(1 - s)}` is about a Brownian motion if the scores are right, since its variance is its own
    clock. Kuiper's form is the range of S, Kolmogorov–Smirnov's the largest \|S\|; both look
    only where a run of equal values ends. Missing values come last, as one run.

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
    clock = float((w * w * score * (1 - score)).sum())
    if clock <= 0:
        return 1.0 if np.allclose(walk, 0) else LEAST
    ends = np.append(ordered[1:] != ordered[:-1], True)
    if variable.kind != "levels":
        ends &= ~np.append(np.isnan(ordered[1:]) & np.isnan(ordered[:-1]), False)
    path = np.append(0.0, walk[ends]) / math.sqrt(clock)
    if statistic == "kuiper":
        return range_tail(float(path.max() - path.min()))
    return largest_tail(float(np.abs(path).max()))


def range_tail(x: float) -> float:
    """Return P(range of a Brownian motion on [0, 1] > x).

    >>> round(range_tail(2.497705), 4)  # twice the normal tail's reach, nearly
    0.05
    """
    if x < 0.5:
        return 1.0
    k = np.arange(1, 200)
    return float(np.clip(8 * ((-1.0) ** (k - 1) * k * ndtr(-k * x)).sum(), LEAST, 1.0))


def largest_tail(x: float) -> float:
    """Return P(largest distance of a Brownian motion on [0, 1] from 0 > x).

    >>> round(largest_tail(2.241403), 4)
    0.05
    """
    if x < 0.1:
        return 1.0
    if x > 2:  # the reflections, which keep the digits of a small tail
        k = np.arange(20)
        return float(max(4 * ((-1.0) ** k * ndtr(-(2 * k + 1) * x)).sum(), LEAST))
    k = np.arange(100)
    odd = 2 * k + 1
    below = 4 / math.pi * ((-1.0) ** k / odd * np.exp(-((odd * math.pi / x) ** 2) / 8)).sum()
    return float(np.clip(1 - below, 0.0, 1.0))
