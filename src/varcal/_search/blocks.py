"""Blocks: slices of the same depth and about the same size, and how extreme their maxima are.

The more slices there are in a block, the larger is the largest |t| by chance. In a block it exceeds
t with probability 1 − exp(−2·N·Φ(−t)), as if there were N independent slices. N is fitted to the
maxima of all columns, the data included, so that columns stay exchangeable.

A slice leaves traces in blocks beside its own: ranges of each of its variables, slices that it is
part of. A column is therefore judged by Σ (w/p)^0.7 over all blocks; large p-values hardly count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import log_ndtr, logsumexp

from varcal._arrays import Floats, Ints

#: Lower ends of the classes of size, as shares of the weight.
CLASSES = (0.25, 0.1, 0.04, 0.015, 0.0)
#: A slice has at least so many rows, this share of the weight, and this variance, with which a sum
#: of residuals is nearly normal.
LEAST_ROWS, LEAST_SHARE, LEAST_VARIANCE = 50, 0.005, 5.0
#: log N by depth and size that rules compete with during the search, before N is known; from
#: simulations with 20 variables. They decide which rules are followed up, not what is significant.
PRIOR_LOG_N = np.array(
    [
        [7.5, 8.0, 8.5, 9.0, 9.5],
        [10.5, 12.0, 13.0, 14.0, 15.0],
        [12.0, 14.0, 16.5, 18.5, 20.5],
    ]
)
#: A class of size whose smallest slices have m rows counts with the weight w = m/(m + this): only
#: very large gaps of few rows can be told from chance. Chosen together with the exponent of w/p on
#: planted slices, seeds 100 to 105: with 5,000 rows the power was 59.0 % beside 57.4 % for the
#: smallest p-value of all blocks, with 50,000 rows 76.4 % beside 75.9 %.
HALF_WEIGHT_ROWS, EXPONENT = 250.0, 0.7
#: Quantiles of the maxima to which N is fitted.
_QUANTILES = np.array([0.8, 0.85, 0.9, 0.95])


@dataclass(frozen=True)
class Sizes:
    """What a slice needs to be searched, and the classes of size, in weights.

    Attributes
    ----------
    rows, weight, variance : float
        The least that a slice needs.
    ends : ndarray
        Lower ends of the classes of size, in descending order, without the last.
    """

    rows: float
    weight: float
    variance: float
    ends: Floats

    @classmethod
    def of(cls, total_weight: float) -> Sizes:
        """Return the limits for rows of this total weight."""
        ends = np.array(CLASSES[:-1]) * total_weight
        return cls(float(LEAST_ROWS), LEAST_SHARE * total_weight, LEAST_VARIANCE, ends)

    @property
    def class_weights(self) -> Floats:
        """How much each class of size counts.

        >>> Sizes.of(5000.0).class_weights.round(2)
        array([0.83, 0.67, 0.44, 0.23, 0.17])
        """
        smallest = np.maximum(np.append(self.ends, self.weight), self.rows)
        found: Floats = smallest / (smallest + HALF_WEIGHT_ROWS)
        return found

    def block_of(self, weight: Floats) -> Ints:
        """Return the class of size of slices by their weight.

        >>> Sizes.of(100.0).block_of(np.array([30.0, 12.0, 1.0]))
        array([0, 1, 4])
        """
        return (weight[..., None] < self.ends).sum(axis=-1)


@dataclass(frozen=True, eq=False)
class BlockLaw:
    """The law of the maxima of all blocks.

    Attributes
    ----------
    log_n : ndarray of shape (depths, sizes)
        log N; NaN in blocks without slices.
    weights : ndarray
        How much each class of size counts.
    """

    log_n: Floats
    weights: Floats

    @classmethod
    def of(cls, top: Floats, weights: Floats) -> BlockLaw:
        """Fit N to maxima of |t|, of shape (depths, sizes, columns)."""
        found = np.full(top.shape[:2], np.nan)
        for place in np.ndindex(*top.shape[:2]):
            ends = np.quantile(top[place], _QUANTILES, method="inverted_cdf")
            if np.isfinite(ends).all() and (ends > 0).all():
                found[place] = np.mean(np.log(-np.log(_QUANTILES)) - np.log(2) - log_ndtr(-ends))
        # Deeper and finer blocks have at least as many slices.
        for axis in (0, 1):
            filled = np.where(np.isnan(found), -np.inf, found)
            found = np.where(np.isnan(found), np.nan, np.maximum.accumulate(filled, axis=axis))
        return cls(found, weights)

    def log_p(self, t: Floats, depth: Any, size: Any) -> Floats:
        """Return log(2·N·Φ(−t)), the log of the p-value of a slice within its block."""
        found: Floats = self.log_n[depth, size] + np.log(2) + log_ndtr(-np.asarray(t))
        return found

    def log_rates(self, top: Floats) -> Floats:
        """Return the log p-value of every block of each column; infinite where there is none."""
        depth, size = np.indices((*top.shape[:2], 1))[:2]
        rates = self.log_p(top, depth, size)
        return np.where(np.isnan(rates) | ~np.isfinite(top), np.inf, rates)

    def statistic(self, top: Floats) -> Floats:
        """Return −log Σ (w/p)^EXPONENT of each column over all blocks; the smaller, the clearer."""
        terms = EXPONENT * (np.log(self.weights)[:, None] - self.log_rates(top))
        found: Floats = -logsumexp(terms, axis=(0, 1))
        return found
