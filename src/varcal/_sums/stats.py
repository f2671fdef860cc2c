"""BinnedStats: the small mergeable table that every number is computed from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import Floats, ratio_or_nan
from varcal._sums.bins import Bins, coarse_index
from varcal.exceptions import InputError

#: The sums of a bin, in the order of `BinnedStats.sums`, with weight w, hit h, score s,
#: e = h − s, u = s(1 − s) and variable x.
FIELDS = (
    "n",  # rows
    "weight",  # Σ w
    "weight2",  # Σ w²
    "hit",  # Σ w h
    "score",  # Σ w s
    "hit2",  # Σ w² h
    "score2",  # Σ w² s
    "square",  # Σ w e²
    "square2",  # Σ w² e²
    "null",  # Σ w u
    "null2",  # Σ w² u
    "fourth",  # Σ w⁴ u(1 − 6u): the fourth cumulant of Σ w e under calibration
    "x",  # Σ w x
)

#: The variance of a bin is shrunk towards its value under calibration, which has the weight of
#: this many rows: a bin with few rows would otherwise have a variance near 0 by chance.
PRIOR_ROWS = 5


@dataclass(frozen=True, eq=False)
class BinnedStats:
    """The sums of each bin over a batch of rows; `a + b` merges batches over the same bins.

    Attributes
    ----------
    bins : Bins
        The bins.
    sums : ndarray of shape (len(FIELDS), G, B)
        The sums named in `FIELDS`, by bucket of groups (G = 1 without groups) and bin.
    """

    bins: Bins
    sums: Floats

    def __add__(self, other: BinnedStats) -> BinnedStats:
        if not isinstance(other, BinnedStats):
            return NotImplemented
        if self.bins != other.bins or self.sums.shape != other.sums.shape:
            raise InputError(
                f"two tables over different bins of {self.bins.name!r} cannot be merged",
                "collect both over the same bins and with the same grouping",
            )
        with np.errstate(over="ignore"):  # Σwx of values near 1e308
            return BinnedStats(self.bins, self.sums + other.sums)

    def coarsen(self, bins: Bins) -> BinnedStats:
        """Return the table over coarser bins, whose cuts must be among the cuts of this table."""
        starts = np.searchsorted(coarse_index(self.bins, bins), np.arange(bins.size))
        with np.errstate(over="ignore"):  # Σwx of values near 1e308
            return BinnedStats(bins, np.add.reduceat(self.sums, starts, axis=-1))

    @property
    def edges(self) -> str:
        """Whether bins were chosen from all rows ("exact") or from a sample ("sampled")."""
        return "sampled" if self.bins.sampled else "exact"

    def field(self, name: str) -> Floats:
        """Return one sum by bucket of groups and bin, shape (G, B)."""
        return self.sums[FIELDS.index(name)]

    def total(self, name: str) -> Floats:
        """Return one sum of each bin, over all buckets."""
        summed: Floats = self.field(name).sum(axis=0)
        return summed

    @property
    def n(self) -> NDArray[np.int64]:
        """Rows of each bin."""
        return self.total("n").astype(np.int64)

    @property
    def share(self) -> Floats:
        """Each bin's share of the weight."""
        weight = self.total("weight")
        return weight / weight.sum()

    @property
    def confidence(self) -> Floats:
        """Mean score of each bin, NaN where it is empty."""
        return ratio_or_nan(self.total("score"), self.total("weight"))

    @property
    def accuracy(self) -> Floats:
        """Hit rate of each bin, NaN where it is empty."""
        return ratio_or_nan(self.total("hit"), self.total("weight"))

    @property
    def gap(self) -> Floats:
        """Mean score minus hit rate of each bin: positive is overconfident."""
        return ratio_or_nan(self.total("score") - self.total("hit"), self.total("weight"))

    @property
    def gap_se(self) -> Floats:
        r"""Standard error of each bin's gap.

        The sandwich variance, shrunk towards the variance under calibration with the weight of
        five rows:
        :math:`[n_b \sum_b w^2 (e - d_b)^2 + 5 \sum_b w^2 s(1-s)] / [(n_b + 4) W_b^2]` with
        :math:`d_b` the mean of :math:`e` in bin b.
        """
        d = -self.gap
        n = self.total("n")
        error2 = self.total("hit2") - self.total("score2")
        spread = self.total("square2") - 2 * d * error2 + d**2 * self.total("weight2")
        null = self.total("null2")
        shrunk = (n * np.maximum(spread, 0.0) + PRIOR_ROWS * null) / (n + PRIOR_ROWS - 1)
        return np.sqrt(ratio_or_nan(shrunk, self.total("weight") ** 2))
