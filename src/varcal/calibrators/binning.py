"""Binning: one probability per bin of the score, by histogram binning or scaling-binning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy.special import expit

from varcal._arrays import Floats
from varcal._options import (
    EPS,
    MOST_BINS,
    check_eps,
    check_flag,
    check_not_negative,
    one_of,
    or_none,
    whole,
)
from varcal.calibrators.logistic import fit_logistic
from varcal.calibrators.one_vs_rest import OneVsRestCalibrator
from varcal.calibrators.platt import logit_of
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.steps import Step, find, take


@dataclass(frozen=True, eq=False)
class BinMap:
    """One value per bin of the score; a score at a cut belongs to the bin below."""

    cuts: Floats
    values: Floats


class _BinningCalibrator(OneVsRestCalibrator):
    maps_: list[BinMap | None]

    def _map_steps(self, fitted: BinMap, score: Step) -> tuple[Step, Step]:
        q = take(find(score, fitted.cuts), fitted.values)
        return 1.0 - q, q

    def _table_row(self, fitted: BinMap) -> dict[str, Any]:
        lowest, highest = float(fitted.values.min()), float(fitted.values.max())
        return {"bins": fitted.values.size, "lowest": lowest, "highest": highest}


class HistogramCalibrator(_BinningCalibrator):
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

    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> BinMap:
        if self.binning == "uniform":
            edges = np.arange(1, self.n_bins + 1) / self.n_bins
        else:
            edges = chunk_edges(score, weight, self.n_bins)
        return BinMap(edges[:-1], bin_means(edges, score, hit, weight))

    def _sentence(self) -> str:
        return "Steps: the hit rate of each bin of the score."


class ScalingBinningCalibrator(_BinningCalibrator):
    r"""Scaling-binning: the mean of a Platt curve g over the bin that g falls in.

    .. math:: \mathrm{logit}\, g(p) = \alpha\, \mathrm{logit}\, p + \beta, \qquad
              q(p) = \operatorname{mean}\{g(p_i) : g(p_i) \in B(g(p))\}

    Bins hold nearly equal numbers of calibration rows; the value of an empty one is its midpoint.
    With more than two classes, each is calibrated against the rest and rows are normalized.

    Parameters
    ----------
    n_bins : int
        The number of bins; with ties there may be fewer.
    normalize : bool
        Whether rows are made to sum to 1. Otherwise each column is calibrated by itself, also
        with two classes, and the sum of a row is arbitrary.
    l2 : float
        λ of the penalty ½λα², scikit-learn's ``1 / C``.
    eps : float, optional
        How far scores are kept from 0 and 1 before the logit; None means the floor of all
        calibrators by score, min(½ · smallest positive p, 1 / 2n).

    References
    ----------
    A. Kumar, P. Liang, T. Ma (2019), Verified uncertainty calibration, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
    >>> y = np.array([0, 0, 1, 0, 1, 1])
    >>> ScalingBinningCalibrator(n_bins=2).fit(p, y).predict_proba(p)[:, 1].round(3)
    array([0.177, 0.177, 0.177, 0.823, 0.823, 0.823])
    """

    _parameters: ClassVar = {
        "n_bins": whole(1, MOST_BINS),
        "normalize": check_flag,
        "l2": check_not_negative,
        "eps": or_none(check_eps),
    }

    def __init__(
        self,
        *,
        n_bins: int = 10,
        normalize: bool = True,
        l2: float = 1e-10,
        eps: float | None = None,
    ) -> None:
        self.n_bins = n_bins
        self.normalize = normalize
        self.l2 = l2
        self.eps = eps

    @classmethod
    def paper(cls) -> Self:
        """Return the settings of Kelly & Smyth: 10 bins, each column by itself, not normalized."""
        return cls(normalize=False, eps=1e-12)

    def _learn(self, rows: CalibrationRows) -> None:
        super()._learn(rows)
        if not self.normalize and rows.p.ndim == 1:
            self.maps_ = [self._fit_map(1.0 - rows.p, rows.y == 0, rows.weight), *self.maps_]

    @property
    def _normalized(self) -> bool:
        return bool(self.normalize)

    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> BinMap:
        logit = logit_of(score, self.floor_)
        fit = fit_logistic(logit[None, :], hit, weight, l2=self.l2)
        self.separated_ = self.separated_ or fit.separated
        slope, intercept = float(fit.coef[0]), fit.intercept
        scaled = expit(slope * logit + intercept)
        edges = chunk_edges(scaled, weight, self.n_bins)
        values = bin_means(edges, scaled, scaled, weight)
        # Edges of the curve as cuts of the score.
        inner = np.clip(edges[:-1], np.finfo(np.float64).tiny, 1.0 - EPS)
        cuts = expit((np.log(inner) - np.log1p(-inner) - intercept) / slope) if slope else inner
        return BinMap(cuts, values) if slope >= 0 else BinMap(cuts[::-1], values[::-1])

    def _steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        if self.normalize:
            return super()._steps(scores)
        pairs = zip(self.maps_, scores, strict=True)
        return tuple(self._mapped(fitted, score)[1] for fitted, score in pairs)

    def _sentence(self) -> str:
        return "Steps on a Platt curve: its mean in each bin."


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
    last = ordered[
        np.searchsorted(reached, bounds[bounds > 0], side="left").clip(0, len(score) - 1)
    ]
    first = np.searchsorted(ordered, last, side="right")
    kept = first < score.size
    return np.unique(np.append(0.5 * (last[kept] + ordered[first[kept]]), 1.0))


def bin_means(edges: Floats, score: Floats, value: Floats, weight: Floats | None) -> Floats:
    """Return the weighted mean of a value in each bin; of an empty bin, its midpoint."""
    index = np.searchsorted(edges, score, side="left")
    mass = np.bincount(index, weight, minlength=edges.size)
    moved = value if weight is None else value * weight
    sums = np.bincount(index, moved, minlength=edges.size)
    middle = 0.5 * (np.append(0.0, edges[:-1]) + edges)
    return np.asarray(np.where(mass > 0, sums / np.where(mass > 0, mass, 1.0), middle))
