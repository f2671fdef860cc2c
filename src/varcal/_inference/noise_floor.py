"""The plug-in error that a perfectly calibrated model would show by chance."""

from __future__ import annotations

import numpy as np
from scipy.special import chdtri, gammaln, ndtr, ndtri, stdtrit

from varcal._arrays import Floats, ratio_or_zero
from varcal._inference.error_sums import plug_in
from varcal._inference.gap_law import GapLaw, plug_in_moments, root_diagonal
from varcal._inference.simulated_null import ScoredRows, draw_hits, draws_for, is_sparse

#: Draws of a simulated noise floor; its Monte-Carlo error is then below 2 % of the floor.
FLOOR_DRAWS = 500
#: The grid for the law of the largest gap: its end in standard errors, and its points.
FLOOR_REACH, FLOOR_POINTS = 8, 800


def noise_floor(
    law: GapLaw,
    *,
    norm: float = 1,
    level: float = 0.95,
    rows: ScoredRows | None = None,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    r"""Return mean and quantile of the plug-in error of a perfectly calibrated model.

    For norm 1 they are :math:`\sqrt{2/\pi} \sum \pi\, se_0` and a Cornish–Fisher quantile; for
    norm 2 they come from a gamma distribution of the square; for the maximum from the product of
    the distributions of the bins. If ``rows`` (of one variable) are given, some bin is sparse and
    there are few rows, hits are simulated instead.

    Parameters
    ----------
    law : GapLaw
        Gaps and their null covariance.
    norm : {1, 2, inf}
        As in :func:`varcal._inference.error_sums.plug_in`.
    level : float
        Level of the quantile.
    rows : ScoredRows, optional
        The rows behind the law; ignored if it is centred.
    seed : int
        Seed of the simulated hits.
    """
    if rows is not None and not law.centered:
        draws = draws_for(rows)
        if draws and is_sparse(rows, law.gap.shape[-1]):
            null = _simulated(rows, law.gap.shape[-1], norm, min(draws, FLOOR_DRAWS), seed)
            return np.asarray(null.mean()), np.asarray(np.quantile(null, level))
    se = root_diagonal(law.null_cov)
    if norm == 1:
        blank = GapLaw(0 * law.gap, law.share, law.null_cov, law.null_cov, law.share_cov)
        moments = plug_in_moments(blank, np.zeros_like(law.gap), np.zeros((*law.value.shape, 1)))
        mean, sd, skew = (moment[..., 0] for moment in moments)
        z = float(ndtri(level)) if np.isinf(law.df) else float(stdtrit(law.df, level))
        return mean, mean + (z + (z * z - 1) * skew / 6) * sd
    if norm == 2:
        mean = (law.share * se**2).sum(-1)
        spread = law.share[..., :, None] * law.null_cov**2 * law.share[..., None, :]
        k = np.maximum(ratio_or_zero(mean**2, 2 * spread.sum((-1, -2))), 1e-9)
        root = np.exp(gammaln(k + 0.5) - gammaln(k)) * np.sqrt(ratio_or_zero(mean, k))
        return root, np.sqrt(mean / (2 * k) * chdtri(2 * k, 1 - level))
    grid = (
        np.linspace(0, FLOOR_REACH, FLOOR_POINTS + 1)
        * np.where(law.share > 0, se, 0.0).max(-1)[..., None]
    )
    x = ratio_or_zero(grid[..., None], se[..., None, :])
    inside = np.where((law.share > 0)[..., None, :] & (x > 0), 2 * ndtr(x) - 1, 1.0).prod(-1)
    inside[..., 0] = 0.0
    step = grid[..., 1]
    quantile = np.take_along_axis(
        grid, (inside < level).sum(-1)[..., None].clip(max=FLOOR_POINTS), -1
    )
    return (1 - inside[..., 1:]).sum(-1) * step + step / 2, quantile[..., 0]


def _simulated(rows: ScoredRows, n_bins: int, norm: float, draws: int, seed: int) -> Floats:
    """Return the plug-in errors of hits simulated from the scores."""
    w = np.ones_like(rows.score) if rows.weight is None else rows.weight
    total = np.bincount(rows.coarse, w, n_bins)
    design = np.zeros((len(w), n_bins), np.float32)
    design[np.arange(len(w)), rows.coarse] = w / total[rows.coarse]
    mean = rows.score @ design
    share = total / total.sum()
    return np.concatenate(
        [
            plug_in(mean - hits @ design, share, norm=norm)
            for hits in draw_hits(rows.score, draws, seed)
        ]
    )
