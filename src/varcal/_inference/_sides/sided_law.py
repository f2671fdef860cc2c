"""The law of the gaps of bins, once the average gap of each predicted side is taken off."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Floats, ratio_or_zero
from varcal._binning.stats import PRIOR_ROWS
from varcal._inference.error_sums import ErrorSums
from varcal._inference.gap_law import GapLaw
from varcal._inference.quadratic_forms import constant_gap_moments


def sided_law(cells: ErrorSums, signs: Floats) -> GapLaw:
    r"""Return the law of the gaps of a claim without the average gap of each predicted side.

    With :math:`\hat c_s` the mean error of side s and :math:`\sigma_s` its sign in the claim,

    .. math:: d_b = \frac{1}{W_b} \sum_s \sigma_s \sum_{i \in b, s} w_i (e_i - \hat c_s).

    Estimating :math:`\hat c_s` makes the gaps of bins depend on each other: with
    :math:`M_s = \operatorname{diag}(1/W_b) - (W_{bs}/W_b) 1^\top / W_s` their covariance is
    :math:`\sum_s M_s \operatorname{diag}(u_s) M_s^\top`, where :math:`u_{bs}` is the scatter of
    :math:`\sum we` in bin b and side s, shrunk towards that of a constant gap as in `GapLaw`.

    Parameters
    ----------
    cells : ErrorSums
        Sums of shape (sides, bins).
    signs : ndarray of shape (sides,)
        The sign of each side in the claim.
    """
    sign = np.asarray(signs, float)[:, None]
    weight = cells.weight.sum(0)
    side = cells.weight.sum(-1, keepdims=True)
    center = ratio_or_zero(cells.error.sum(-1, keepdims=True), side)
    d = ratio_or_zero((sign * (cells.error - center * cells.weight)).sum(0), weight)
    null = constant_gap_moments(cells)[0]
    mean = center + sign * d
    scatter = cells.square2 - 2 * mean * cells.error2 + mean**2 * cells.weight2
    spread = (cells.n * np.maximum(scatter, 0.0) + PRIOR_ROWS * null) / (cells.n + PRIOR_ROWS - 1)
    share = ratio_or_zero(weight, np.asarray(weight.sum()))
    effective = ratio_or_zero(weight.sum() ** 2, np.asarray(cells.weight2.sum()))
    return GapLaw(
        gap=-d,
        share=share,
        cov=_covariance(spread, cells.weight, weight, side),
        null_cov=_covariance(null, cells.weight, weight, side),
        share_cov=ratio_or_zero(np.diag(share) - np.outer(share, share), effective),
        centered=True,
    )


def _covariance(u: Floats, part: Floats, weight: Floats, side: Floats) -> Floats:
    """Return Σ_s M_s diag(u_s) M_sᵀ for u and the weights `part` of shape (sides, bins)."""
    inverse = ratio_or_zero(np.ones_like(weight), weight)
    ratio = ratio_or_zero(part * inverse, side)  # W_bs / (W_b W_s)
    total = u.sum(-1)[:, None]
    cross = (u * inverse).T @ ratio
    outer = (total * ratio).T @ ratio
    return np.diag((u * inverse**2).sum(0)) - cross - cross.T + outer
