"""The law of the gaps of bins for rows in groups, such as patients, customers or shops."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Floats, ratio_or_zero
from varcal._inference.error_sums import ErrorSums
from varcal._inference.gap_law import GapLaw, root_diagonal
from varcal._inference.quadratic_forms import constant_gap_variance
from varcal._sums.stats import PRIOR_ROWS
from varcal.exceptions import InputError

#: In a bin's variance, the variance that is pooled over bins counts like this many groups.
PRIOR_GROUPS = 4
#: With fewer degrees of freedom than this, the variance between groups is not taken from the
#: differences within bins alone, but also from those between bins, which count like
#: `PRIOR_DEGREES` degrees of freedom.
FEW_DEGREES, PRIOR_DEGREES = 20, 5
#: The least degrees of freedom of Student's t.
LEAST_DEGREES = 2


def cluster_law(groups: ErrorSums, *, center: bool = False, sides: int = 1) -> GapLaw:
    r"""Return the law of the gaps of bins from the sums of each group in each bin, (G, B).

    In bin b, group g has the share :math:`h` of the weight and the gap :math:`D`, and
    :math:`m_b = 1 / \sum_g h^2` groups count. If the variable is constant within groups, a bin
    has only a few groups, whose scatter about the bin's gap says little about its variance.
    Therefore it is averaged with :math:`\tau^2 \sum_g h^2`, where the variance :math:`\tau^2` of
    D beyond that of independent rows is pooled over all bins:

    .. math::
        \frac{(m_b - 1)\, \mathrm{CR2}_b + 4 (\tau^2 \sum h^2 + \text{row variance})}{m_b + 3},
        \qquad \mathrm{CR2}_b = \frac{1}{W_b^2} \sum_g \frac{W^2 (D - d_b)^2}{1 - h}.

    It is at least the variance of independent rows. Without a gap, deviations are those from the
    overall gap. The degrees of freedom are
    :math:`\nu = \sum_b (m_b - 1)`, at most G − 1.
    """
    n_groups = checked_groups(groups.weight.sum(-1))
    total = ErrorSums(**{name: value.sum(0) for name, value in vars(groups).items()})
    rows = GapLaw.from_cells(total)
    null_of_rows = rows.null_cov
    if center:
        null_of_rows = np.diag(ratio_or_zero(constant_gap_variance(total), total.weight**2))
    weight, part = groups.weight, ratio_or_zero(groups.weight, total.weight)
    concentration = (part**2).sum(0)
    many = ratio_or_zero(np.ones(()), concentration)
    degrees = float((many - 1)[many > 0].sum())
    scatter = groups.n * groups.scatter() + PRIOR_ROWS * groups.null2
    noise = ratio_or_zero(scatter, (groups.n + PRIOR_ROWS - 1) * weight)  # W times the variance

    about_bins = weight * (groups.gap - rows.gap) * (weight > 0)
    # About the overall gap, so that a gap that all groups share is not taken for their luck.
    about_null = weight * (groups.gap - total.overall) * (weight > 0)
    between = _between(about_bins, weight, noise, 1 - part)
    overall = _between(about_null, weight, noise, np.ones(()))
    if degrees < FEW_DEGREES:
        either = max(between, overall)
        between = (degrees * between + PRIOR_DEGREES * either) / (degrees + PRIOR_DEGREES)
    by_group = weight / weight.sum()
    spread = by_group - rows.share * by_group.sum(-1, keepdims=True)
    law = GapLaw(
        gap=rows.gap,
        share=rows.share,
        cov=_covariance(
            about_bins, 1 - part, total, np.maximum(many - 1, 0), between * concentration, rows.cov
        ),
        null_cov=_covariance(
            about_null, np.ones(()), total, many, overall * concentration, null_of_rows
        ),
        share_cov=n_groups / (n_groups - 1) * spread.T @ spread,
        df=max(min(degrees, n_groups - 1.0), LEAST_DEGREES),
    )
    return law.center(sides) if center else law


def _between(residual: Floats, weight: Floats, noise: Floats, left: Floats) -> float:
    """Return the variance of the gaps of groups beyond that of independent rows."""
    observed = ratio_or_zero(residual**2, weight).sum() - (left * noise).sum()
    return max(float(observed), 0.0) / max(float((left * weight).sum()), np.finfo(float).tiny)


def _covariance(
    residual: Floats,
    left: Floats,
    total: ErrorSums,
    degrees: Floats,
    pooled: Floats,
    of_rows: Floats,
) -> Floats:
    """Return the covariance of the gaps of bins from the groups' residuals."""
    own = ratio_or_zero(ratio_or_zero(residual**2, left).sum(0), total.weight**2)
    least = np.diagonal(of_rows)
    variance = (degrees * own + PRIOR_GROUPS * (pooled + least)) / (degrees + PRIOR_GROUPS)
    variance = np.maximum(variance, least)
    scaled = ratio_or_zero(residual, total.weight)
    observed = scaled.T @ scaled
    lift = ratio_or_zero(np.sqrt(variance), root_diagonal(observed))
    covariance = observed * np.outer(lift, lift)
    np.fill_diagonal(covariance, variance)
    return covariance


def checked_groups(weight: Floats) -> int:
    """Return the number of groups with weight; refuse a single one."""
    n_groups = int((weight > 0).sum())
    if n_groups < 2:
        raise InputError(
            "groups has only one group with weight",
            "at least two groups are needed",
            argument="groups",
        )
    return n_groups
