"""Histogram binning: the hit rate of each bin of the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from varcal._arrays import Floats
from varcal._options import MOST_BINS, one_of, whole
from varcal.calibrators.one_vs_rest import OneVsRestCalibrator, stacked
from varcal.calibrators.steps import Step, find, take


@dataclass(frozen=True, eq=False)
class StepMap:
    """One value per bin; bins are closed on the right and the last edge is 1."""

    edges: Floats
    values: Floats

    def __call__(self, score: Floats) -> Floats:
        """Return the value of each score's bin."""
        return self.values[np.searchsorted(self.edges, score, side="left")]

    def columns(self, score: Floats) -> Floats:
        """Return the probabilities of "no" and "yes"."""
        return stacked(self(score))

    def table_row(self) -> dict[str, Any]:
        """Return the number of bins and the range of the steps."""
        return {
            "bins": self.edges.size,
            "lowest": float(self.values.min()),
            "highest": float(self.values.max()),
        }

    def as_steps(self, score: Step) -> tuple[Step, Step]:
        """Return the steps to the probabilities of "no" and "yes"."""
        q = take(find(score, self.edges[:-1]), self.values)
        return 1.0 - q, q


class HistogramCalibrator(OneVsRestCalibrator):
    r"""Histogram binning: all scores in a bin get the bin's hit rate.

    .. math:: q(p) = \frac{\sum_{i: p_i \in B(p)} w_i y_i}{\sum_{i: p_i \in B(p)} w_i}

    The value of an empty bin is its midpoint. With more than two classes, each is calibrated
    against the rest and rows are normalized.

    Parameters
    ----------
    n_bins : int
        The number of bins; with ties there may be fewer.
    binning : {"quantile", "uniform"}
        Bins of nearly equal weight, with edges midway between neighbouring scores, or bins of
        equal width.

    References
    ----------
    B. Zadrozny, C. Elkan (2001), Obtaining calibrated probability estimates from decision trees
    and naive Bayesian classifiers, ICML.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
    >>> y = np.array([0, 0, 1, 0, 1, 1])
    >>> HistogramCalibrator(n_bins=3).fit(p, y).predict_proba(p)[:, 1]
    array([0. , 0. , 0.5, 0.5, 1. , 1. ])
    """

    _parameters: ClassVar = {
        "n_bins": whole(1, MOST_BINS),
        "binning": one_of("quantile", "uniform"),
    }

    def __init__(
        self, *, n_bins: int = 10, binning: Literal["quantile", "uniform"] = "quantile"
    ) -> None:
        self.n_bins = n_bins
        self.binning = binning

    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> StepMap:
        if self.binning == "uniform":
            edges = np.arange(1, self.n_bins + 1) / self.n_bins
        else:
            edges = chunk_edges(score, weight, self.n_bins)
        return StepMap(edges, bin_means(edges, score, hit, weight))

    def _sentence(self) -> str:
        return "Steps: the hit rate of each bin of the score."


def chunk_edges(score: Floats, weight: Floats | None, n_bins: int) -> Floats:
    """Return the right edges of nearly equal chunks of the sorted scores; the last one is 1.

    An edge lies midway between the last score of a chunk and the first of the next. Chunks are
    those of `numpy.array_split`; a weight counts as that many equal rows.
    """
    order = np.argsort(score, kind="stable")
    ordered = score[order]
    reached = np.arange(1.0, score.size + 1) if weight is None else np.cumsum(weight[order])
    total = float(reached[-1])
    inner = np.arange(1, n_bins)
    whole, rest = divmod(total, n_bins)
    # Fractional weights are not counts of rows: split the total into equal fractions.
    is_count = weight is None or bool((weight == np.floor(weight)).all())
    bounds = inner * whole + np.minimum(inner, rest) if is_count else inner * total / n_bins
    last = np.searchsorted(reached, bounds, side="left")
    first = np.searchsorted(reached, bounds, side="right")
    kept = (first < score.size) & (bounds > 0)
    edges = 0.5 * (ordered[last[kept]] + ordered[first[kept]])
    return np.unique(np.append(edges, 1.0))


def bin_means(edges: Floats, score: Floats, value: Floats, weight: Floats | None) -> Floats:
    """Return the weighted mean of a value in each bin; of an empty bin, its midpoint."""
    index = np.searchsorted(edges, score, side="left")
    mass = np.bincount(index, weight, minlength=edges.size)
    moved = value if weight is None else value * weight
    sums = np.bincount(index, moved, minlength=edges.size)
    middle = 0.5 * (np.append(0.0, edges[:-1]) + edges)
    return np.asarray(np.where(mass > 0, sums / np.where(mass > 0, mass, 1.0), middle))
