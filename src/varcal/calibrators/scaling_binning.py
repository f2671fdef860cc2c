"""Scaling-binning: Platt scaling, then one value per bin of the scaled score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from varcal._arrays import Floats
from varcal._options import MOST_BINS, check_eps, check_flag, check_not_negative, whole
from varcal.calibrators.histogram_binning import StepMap, bin_means, chunk_edges
from varcal.calibrators.last_below import last_below
from varcal.calibrators.logistic import fit_logistic
from varcal.calibrators.one_vs_rest import OneVsRestCalibrator, stacked
from varcal.calibrators.platt import PlattMap, platt_features
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.steps import Step, find, take


@dataclass(frozen=True)
class ScalingBinningMap:
    """The steps that replace a Platt curve."""

    curve: PlattMap
    steps: StepMap

    def columns(self, score: Floats) -> Floats:
        """Return the probabilities of "no" and "yes"."""
        return stacked(self.steps(self.curve.columns(score)[:, 1]))

    def table_row(self) -> dict[str, Any]:
        """Return the parameters of the curve and the range of the steps."""
        return self.curve.table_row() | self.steps.table_row()

    def as_steps(self, score: Step) -> tuple[Step, Step]:
        """Return the steps to the probabilities of "no" and "yes".

        Bins of the curve are found by bins of the score, because the curve itself is computed a
        little differently elsewhere, and a score at an edge might change its bin.
        """
        cuts = last_below(lambda score: self.curve.columns(score)[:, 1], self.steps.edges[:-1])
        values = self.steps.values
        if self.curve.slope < 0:
            cuts, values = cuts[::-1], values[::-1]
        q = take(find(score, cuts), values)
        return 1.0 - q, q


class ScalingBinningCalibrator(OneVsRestCalibrator):
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
    eps : float
        Scores are kept this far from 0 and 1 before the logit.

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
        "eps": check_eps,
    }

    def __init__(
        self,
        *,
        n_bins: int = 10,
        normalize: bool = True,
        l2: float = 1e-10,
        eps: float = 1e-12,
    ) -> None:
        self.n_bins = n_bins
        self.normalize = normalize
        self.l2 = l2
        self.eps = eps

    @classmethod
    def paper(cls) -> Self:
        """Return the settings of Kelly & Smyth: 10 bins, each column by itself, not normalized."""
        return cls(normalize=False)

    def _learn(self, rows: CalibrationRows) -> None:
        super()._learn(rows)
        if not self.normalize and rows.p.ndim == 1:
            self.maps_ = [self._fit_map(1.0 - rows.p, rows.y == 0, rows.weight), *self.maps_]

    @property
    def _normalized(self) -> bool:
        return bool(self.normalize)

    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> ScalingBinningMap:
        features = platt_features(score, "logit", self.eps)
        fit = fit_logistic(features, hit, weight, l2=self.l2)
        self.separated_ = self.separated_ or fit.separated
        curve = PlattMap(float(fit.coef[0]), fit.intercept, "logit", self.eps)
        scaled = curve.columns(score)[:, 1]
        edges = chunk_edges(scaled, weight, self.n_bins)
        return ScalingBinningMap(curve, StepMap(edges, bin_means(edges, scaled, scaled, weight)))

    def _answer(self, rows: CalibrationRows) -> Floats:
        if self.normalize:
            return super()._answer(rows)
        cells = rows.columns()
        return np.column_stack(
            [
                each.columns(np.ascontiguousarray(cells[:, k]))[:, 1]
                for k, each in enumerate(self.maps_)
            ]
        )

    def _steps(self, scores: tuple[Step, ...], *, exact: bool = True) -> tuple[Step, ...]:
        if self.normalize:
            return super()._steps(scores, exact=exact)
        return tuple(
            each.as_steps(score)[1] for each, score in zip(self.maps_, scores, strict=True)
        )

    def _sentence(self) -> str:
        return "Steps on the curve logit(g) = slope · logit(p) + intercept: the mean g of each bin."
