"""The calibration curve as an isotonic regression, with a band that needs no smoothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import Floats
from varcal._sums.stats import BinnedStats

#: Groups of cells whose runs bound the curve; with half and twice as many, bands of 12 samples were
#: 1 % narrower to 3 % wider on average.
GROUPS = 64


@dataclass(frozen=True, eq=False)
class IsotonicFit:
    """An isotonic regression of the hit rate on the score, over fine cells.

    Attributes
    ----------
    score : ndarray
        Mean score of each cell.
    rate : ndarray
        The fitted hit rate, which does not decrease.
    low, high : ndarray
        The simultaneous band.
    """

    score: Floats
    rate: Floats
    low: Floats
    high: Floats

    def to_dict(self) -> dict[str, list[float]]:
        """Return the arrays as lists."""
        return {name: array.tolist() for name, array in vars(self).items()}


def isotonic_fit(stats: BinnedStats, level: float) -> IsotonicFit:
    r"""Fit the curve and its band.

    A hit rate F that does not decrease is at least the mean over any run of cells before it, and
    at most that of any run after it. Runs of 1, 2, 4, … groups of cells have exact limits (Clopper
    and Pearson), at a level that allows for their number, so that the band holds for all scores at
    once, whatever the form of F.
    """
    from sklearn.isotonic import isotonic_regression  # noqa: PLC0415

    weight = stats.total("weight")
    keep = weight > 0
    score, rate, mass = stats.confidence[keep], stats.accuracy[keep], weight[keep]
    order = np.argsort(score, kind="stable")
    score, rate, mass = score[order], rate[order], mass[order]
    fitted = isotonic_regression(rate, sample_weight=mass, y_min=0, y_max=1)
    # With weights a cell counts as many rows as have its variance (Kish).
    rows = mass**2 / stats.total("weight2")[keep][order]
    ends = np.searchsorted(np.cumsum(rows), np.linspace(0, rows.sum(), GROUPS + 1)[1:-1])
    group = np.searchsorted(np.unique(ends), np.arange(len(rows)), side="right")
    n, hits = (np.bincount(group, each).astype(np.float64) for each in (rows, rows * rate))
    low, high = _limits(n, hits, 1 - level)
    # A cell lies after all runs of earlier groups, and before all of later ones.
    least, most = np.append(0.0, low)[group], np.append(high, 1.0)[group + 1]
    return IsotonicFit(score, fitted, np.minimum(least, fitted), np.maximum(most, fitted))


def _limits(n: Floats, hits: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return what a rate after each group is at least, and what one from each group on is at most.

    >>> low, high = _limits(np.array([100.0, 100.0]), np.array([20.0, 60.0]), 0.05)
    >>> low.round(2), high.round(2)
    (array([0.11, 0.48]), array([0.31, 0.72]))
    """
    from scipy.special import betaincinv  # noqa: PLC0415

    before_n, before_hits = np.append(0, np.cumsum(n)), np.append(0, np.cumsum(hits))
    size = len(n)
    lengths = [2**k for k in range(size.bit_length()) if 2**k <= size]
    tail = alpha / 2 / sum(size + 1 - length for length in lengths)
    low, high = np.zeros(size), np.ones(size)
    for length in lengths:
        rows = before_n[length:] - before_n[:-length]
        k = before_hits[length:] - before_hits[:-length]
        under = np.where(k > 0, betaincinv(np.maximum(k, 1e-9), rows - k + 1, tail), 0.0)
        over = np.where(k < rows, betaincinv(k + 1, np.maximum(rows - k, 1e-9), 1 - tail), 1.0)
        low[length - 1 :] = np.maximum(low[length - 1 :], under)
        high[: size + 1 - length] = np.minimum(high[: size + 1 - length], over)
    return np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]
