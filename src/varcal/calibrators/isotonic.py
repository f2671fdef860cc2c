"""Isotonic regression: the best non-decreasing curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._arrays import Floats
from varcal.calibrators.one_vs_rest import OneVsRestCalibrator
from varcal.calibrators.steps import Step, curve


@dataclass(frozen=True, eq=False)
class IsotonicMap:
    """Straight lines between knots, constant beyond the first and the last."""

    knots: Floats
    heights: Floats


class IsotonicCalibrator(OneVsRestCalibrator):
    r"""Isotonic regression, by scikit-learn's pool-adjacent-violators.

    .. math:: \min_{q\ \text{non-decreasing in}\ p} \sum_i w_i (y_i - q(p_i))^2

    Straight lines join the levels. Predictions are often exactly 0 or 1, in which case one wrong
    row makes the log-loss infinite; `describe` says so. With more than two classes, each is
    calibrated against the rest and rows are normalized.

    References
    ----------
    B. Zadrozny, C. Elkan (2002), Transforming classifier scores into accurate multiclass
    probability estimates, KDD.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.05, 0.2, 0.4, 0.6, 0.8, 0.95])
    >>> y = np.array([0, 0, 1, 0, 1, 1])
    >>> IsotonicCalibrator().fit(p, y).predict_proba(p)[:, 1]
    array([0. , 0. , 0.5, 0.5, 1. , 1. ])
    """

    maps_: list[IsotonicMap | None]

    def _map(self, score: Floats, hit: Floats, weight: Floats | None) -> IsotonicMap:
        from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415  only a fit needs it

        fit = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        fit.fit(score, hit, sample_weight=weight)
        return IsotonicMap(
            np.asarray(fit.X_thresholds_, dtype=np.float64),
            np.asarray(fit.y_thresholds_, dtype=np.float64),
        )

    def _map_steps(self, fitted: IsotonicMap, score: Step) -> tuple[Step, Step]:
        q = curve(score, fitted.knots, fitted.heights)
        return 1.0 - q, q

    def _table_row(self, fitted: IsotonicMap) -> dict[str, Any]:
        heights = fitted.heights
        return {
            "knots": fitted.knots.size,
            "lowest": float(heights[0]),
            "highest": float(heights[-1]),
        }

    def _sentence(self) -> str:
        ends = {float(each.heights[k]) for each in self.maps_ if each is not None for k in (0, -1)}
        words = "A non-decreasing curve of straight lines between knots."
        if ends & {0.0, 1.0}:
            words += (
                " It gives probabilities of exactly 0 or 1: one row that contradicts them makes "
                "the log-loss infinite."
            )
        return words
