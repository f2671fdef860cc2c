"""How sure of a calibration error: debiased value, interval, noise floor, rows needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import factorial, inf

import numpy as np
from scipy.special import chdtri, chndtrinc, gammaln, ndtr, ndtri, stdtrit

from varcal._inference.calibration_test import (
    Rows,
    constant_gap_moments,
    draw_hits,
    draws_for,
    is_sparse,
)
from varcal._inference.error_sums import Array, ErrorSums, _ratio, plug_in
from varcal._options import check_level, check_n_bins
from varcal.exceptions import InputError

__all__ = [
    "GapLaw",
    "debiased",
    "interval",
    "minimum_detectable",
    "noise_floor",
    "rows_needed",
]


@dataclass(frozen=True)
class GapLaw:
    r"""Gaps of bins, and how they vary from sample to sample.

    Parameters
    ----------
    gap, share : array, (..., B)
        Gap and share of the weight of each bin.
    cov : array, (..., B, B)
        Covariance of the gaps.
    null_cov : array, (..., B, B)
        The same if all gaps were zero (or, if ``centered``, equal).
    share_cov : array, (..., B, B)
        Covariance of the shares.
    centered : bool
        Whether the overall gap was taken out: the law of the error beyond it.
    df : float
        Degrees of freedom of the covariance; finite with clusters.
    """

    gap: Array
    share: Array
    cov: Array
    null_cov: Array
    share_cov: Array
    centered: bool = False
    df: float = inf

    @classmethod
    def from_cells(cls, cells: ErrorSums, *, center: bool = False) -> GapLaw:
        r"""Work the law out from sums over independent rows.

        The variance of a bin's gap is the sandwich one shrunk to that of the null as if by
        five rows, :math:`[n_b \sum_b w^2 (e - \bar e_b)^2 + 5 V_b] / ((n_b + 4) W_b^2)`; shares
        vary as those of a multinomial of the effective number of rows.
        """
        null = constant_gap_moments(cells)[0] if center else cells.w2v
        spread = (cells.n * cells.scatter() + 5 * null) / (cells.n + 4)
        share = cells.share
        share_cov = _diagonal(share) - share[..., :, None] * share[..., None, :]
        law = cls(
            gap=cells.gap,
            share=share,
            cov=_diagonal(_ratio(spread, cells.w**2)),
            null_cov=_diagonal(_ratio(null, cells.w**2)),
            share_cov=_ratio(share_cov, cells.effective_n[..., None, None]),
        )
        return law.center() if center else law

    def center(self) -> GapLaw:
        """Take the overall gap out."""
        remove = np.eye(self.gap.shape[-1]) - self.share[..., None, :]
        turn = np.swapaxes(remove, -1, -2)
        return GapLaw(
            gap=self.gap - (self.share * self.gap).sum(-1, keepdims=True),
            share=self.share,
            cov=remove @ self.cov @ turn,
            null_cov=remove @ self.null_cov @ turn,
            share_cov=self.share_cov,
            centered=True,
            df=self.df,
        )

    @property
    def value(self) -> Array:
        """Plug-in error."""
        return plug_in(self.gap, self.share)

    @property
    def standard_error(self) -> Array:
        """Standard error of each bin's gap."""
        return _root_diagonal(self.cov)

    def quantile(self, level: float) -> float:
        """Two-sided quantile of Student's t, or of the normal law if ``df`` is infinite."""
        tail = (1 + level) / 2
        return float(ndtri(tail) if np.isinf(self.df) else stdtrit(self.df, tail))


def debiased(law: GapLaw) -> Array:
    r"""Return the error less its bias, which is upward because noise never cancels in |·|.

    Along a shape :math:`r_b \propto (|g_b| - \tfrac12 se_b)_+`, :math:`\sum \pi r = 1`, solve
    :math:`T = \sum_b \pi_b\, \mathrm{E}|\theta r_b + se_b Z|` for :math:`\theta`. The answer
    is 0 if the plug-in T is at most its mean :math:`m_0` under no gap, and is faded in,
    :math:`\theta \min(1, (T - m_0) / 1.2 s_0)`, above it. Gaps from which the overall one was
    taken out are never sparse: there :math:`r_b \propto |g_b| + \tfrac12 se_b`, faded in over
    :math:`1.25 s_0`.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> s = rng.uniform(0.2, 0.8, 2000)
    >>> h = rng.random(2000) < s
    >>> law = GapLaw.from_cells(ErrorSums.from_rows(np.arange(2000) % 10, s, h, n_bins=10))
    >>> bool(law.value > 0.015), bool(debiased(law) < 0.01)
    (True, True)
    """
    shift, fade = (0.5, 1.25) if law.centered else (-0.5, 1.2)
    shape = _shape(law, np.maximum(np.abs(law.gap) + shift * law.standard_error, 0.0))
    theta = _solve(lambda t: _sum_law(law, shape, t)[0], law.value)
    mean, sd, _ = _sum_law(law, shape, np.zeros((*law.value.shape, 1)))
    faded = np.clip(_ratio(law.value - mean[..., 0], fade * sd[..., 0]), 0.0, 1.0)
    return np.asarray(np.where(sd[..., 0] > 0, theta * faded, law.value))


def interval(law: GapLaw, level: float = 0.95) -> tuple[Array, Array]:
    r"""Return a confidence interval of the error over these bins.

    The sampling law of the plug-in T, with mean :math:`\mu(\theta, r)`, standard deviation
    :math:`\sigma(\theta, r)` (that of the bins' shares included) and skewness, is inverted
    along a sparse shape for the lower limit, :math:`r \propto (|g| - 2se)_+`, and along a
    dense one for the upper, :math:`r \propto \max(|g|, \tfrac12 se)`. The lower limit is 0
    unless T is beyond the same quantile of its law under no gap; for the upper one T counts
    as no less than its mean under no gap less one standard deviation, lest luck look like
    certainty.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> s = rng.uniform(0.2, 0.8, 2000)
    >>> h = rng.random(2000) < s - 0.1
    >>> law = GapLaw.from_cells(ErrorSums.from_rows(np.arange(2000) % 10, s, h, n_bins=10))
    >>> low, high = interval(law)
    >>> bool(low < 0.1 < high)
    True
    """
    z = law.quantile(level)
    size, se = np.abs(law.gap), law.standard_error
    middle = debiased(law)

    def limit(shape: Array, side: float, value: Array) -> Array:
        def quantile(theta: Array) -> Array:
            mean, sd, skew = _sum_law(law, shape, theta)
            return mean + (side * z + (z * z - 1) * skew / 6) * sd

        return _solve(quantile, value)

    low = limit(_shape(law, np.maximum(size - 2 * se, 0.0)), 1.0, law.value)
    low = np.where(law.value <= noise_floor(law, level=(1 + level) / 2)[1], 0.0, low)
    mean, sd, _ = _sum_law(law, np.zeros_like(size), np.zeros((*law.value.shape, 1)))
    least = np.maximum(law.value, (mean - sd)[..., 0])
    high = limit(_shape(law, np.maximum(size, 0.5 * se)), -1.0, least)
    return np.minimum(low, middle), np.maximum(high, middle)


def noise_floor(
    law: GapLaw, *, norm: float = 1, level: float = 0.95, rows: Rows | None = None, seed: int = 0
) -> tuple[Array, Array]:
    r"""Return mean and quantile of the plug-in error if there were no gap at all.

    For norm 1, :math:`\sqrt{2/\pi} \sum \pi\, se_0` and a Cornish–Fisher quantile; for norm 2 a
    gamma law of the square; for the maximum the product of the bins' laws. With ``rows`` (of
    one variable) hits are simulated instead if some bin is sparse and there are few rows.

    Parameters
    ----------
    law : GapLaw
        Gaps and their null covariance.
    norm : {1, 2, inf}
        As in :func:`varcal._inference.error_sums.plug_in`.
    level : float
        Level of the quantile.
    rows : Rows, optional
        The rows behind the law; not used if it is centred.
    seed : int
        For the simulated hits.
    """
    if rows is not None and not law.centered:
        draws = draws_for(rows)
        if draws and is_sparse(rows, law.gap.shape[-1]):
            null = _simulated(rows, law.gap.shape[-1], norm, min(draws, 500), seed)
            return np.asarray(null.mean()), np.asarray(np.quantile(null, level))
    se = _root_diagonal(law.null_cov)
    if norm == 1:
        blank = GapLaw(0 * law.gap, law.share, law.null_cov, law.null_cov, law.share_cov)
        moments = _sum_law(blank, np.zeros_like(law.gap), np.zeros((*law.value.shape, 1)))
        mean, sd, skew = (moment[..., 0] for moment in moments)
        z = float(ndtri(level)) if np.isinf(law.df) else float(stdtrit(law.df, level))
        return mean, mean + (z + (z * z - 1) * skew / 6) * sd
    if norm == 2:
        mean = (law.share * se**2).sum(-1)
        spread = law.share[..., :, None] * law.null_cov**2 * law.share[..., None, :]
        k = np.maximum(_ratio(mean**2, 2 * spread.sum((-1, -2))), 1e-9)
        root = np.exp(gammaln(k + 0.5) - gammaln(k)) * np.sqrt(_ratio(mean, k))
        return root, np.sqrt(mean / (2 * k) * chdtri(2 * k, 1 - level))
    grid = np.linspace(0, 8, 801) * np.where(law.share > 0, se, 0.0).max(-1)[..., None]
    x = _ratio(grid[..., None], se[..., None, :])
    inside = np.where((law.share > 0)[..., None, :] & (x > 0), 2 * ndtr(x) - 1, 1.0).prod(-1)
    inside[..., 0] = 0.0
    step = grid[..., 1]
    quantile = np.take_along_axis(grid, (inside < level).sum(-1)[..., None].clip(max=800), -1)
    return (1 - inside[..., 1:]).sum(-1) * step + step / 2, quantile[..., 0]


def minimum_detectable(law: GapLaw, *, level: float = 0.05, power: float = 0.8) -> Array:
    r"""Return the least error that the test is sure to find: with this power whatever its shape.

    The chi-square part rejects with that power when :math:`\sum (g_b / se_{0b})^2` is at least
    :math:`\lambda`; of all gaps with error :math:`\tau` the hardest to see,
    :math:`g_b \propto \pi_b se_{0b}^2` with signs that alternate, has
    :math:`\lambda = \tau^2 / \sum \pi_b^2 se_{0b}^2`. Smooth gaps are found when smaller.

    Examples
    --------
    >>> s = np.full(2000, 0.5)
    >>> h = np.arange(2000) % 2
    >>> cells = ErrorSums.from_rows(np.arange(2000) // 200, s, h, n_bins=10)
    >>> round(float(minimum_detectable(GapLaw.from_cells(cells))), 3)
    0.049
    """
    bins = (law.share > 0).sum(-1) - law.centered
    spread = np.einsum("...b,...bc,...c->...", law.share, np.abs(law.null_cov), law.share)
    return np.asarray(np.sqrt(_noncentrality(bins, level, power) * spread))


def rows_needed(
    gap: float, *, variance: float = 0.25, n_bins: int = 10, level: float = 0.95, power: float = 0.8
) -> int:
    r"""Return how many rows the test needs to find an error of this size.

    :math:`n = \lambda \sigma^2 / \text{gap}^2`: the inverse of :func:`minimum_detectable` for
    bins of equal share and a mean variance :math:`\sigma^2` of :math:`s(1 - s)`.

    Parameters
    ----------
    gap : float
        The size of error that matters, between 0 and 1.
    variance : float
        Mean of s(1 − s); ¼ is the worst case, 0.05 that of scores near 0.95.
    n_bins : int
        Bins of the variable.
    level, power : float
        1 − the type-I error, and the wanted chance of finding it.

    Examples
    --------
    >>> rows_needed(0.05)
    1890
    """
    for name, value in (("gap", gap), ("power", power), ("variance", variance)):
        if not 0 < value < 1:
            raise InputError(
                f"{name} must lie between 0 and 1; got {value!r}", "for example 0.05", name
            )
    check_level(level)
    check_n_bins(n_bins)
    need = _noncentrality(np.asarray(n_bins), 1 - level, power)
    return int(np.ceil(need * variance / gap**2))


def _noncentrality(bins: Array, level: float, power: float) -> Array:
    """Return the noncentrality that the chi-square part of the test finds with this power."""
    # The Cauchy mean with a second test that sees nothing rejects at about half the level.
    df = np.maximum(bins, 1)
    return np.asarray(chndtrinc(chdtri(df, 0.5 * level), df, 1 - power))


def _shape(law: GapLaw, size: Array) -> Array:
    """Scale sizes of gaps to mean 1 and give them signs; the clearest bin alone if all are 0."""
    z = _ratio(np.abs(law.gap), law.standard_error)
    alone = (law.share > 0) * (z >= z.max(-1, keepdims=True)) * 1.0
    size = np.where((law.share * size).sum(-1, keepdims=True) > 0, size, alone)
    size = _ratio(size, (law.share * size).sum(-1, keepdims=True))
    return np.asarray(np.where(law.gap < 0, -size, size))


def _sum_law(law: GapLaw, shape: Array, theta: Array) -> tuple[Array, Array, Array]:
    r"""Return mean, standard deviation and skewness of T where the gaps are theta * shape.

    ``theta`` has one more axis than the law. Covariances of :math:`|X_b|, |X_c|` follow from
    Mehler's expansion, :math:`\sum_k \rho^k f^{(k)}(x_b) f^{(k)}(x_c) / k!` with
    :math:`f(x) = \mathrm{E}|x + Z|`.
    """
    se = law.standard_error[..., None, :]
    mean = theta[..., None] * shape[..., None, :]
    # Beyond 8 standard errors a gap never folds, and differences of large powers lose digits.
    x = np.clip(_ratio(mean, se), -8.0, 8.0)
    tilt, bell = 2 * ndtr(x) - 1, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    folded = np.where(se > 0, x * tilt + 2 * bell, 0.0)
    size = np.where((se > 0) & (np.abs(x) < 8), se * folded, np.abs(mean))
    scale = law.share[..., None, :] * se
    spread = np.maximum(x * x + 1 - folded**2, 0.0)
    third = (x**3 + 3 * x) * tilt + 2 * (x**2 + 2) * bell - 3 * folded * (x * x + 1) + 2 * folded**3
    variance = (scale**2 * spread).sum(-1)

    flat = law.standard_error
    rho = _ratio(law.cov, flat[..., :, None] * flat[..., None, :])
    rho = np.clip(rho * (1 - np.eye(rho.shape[-1])), -1, 1)
    if rho.any():
        hermite = [np.ones_like(x), x]
        for k in range(2, 5):
            hermite.append(x * hermite[-1] - (k - 1) * hermite[-2])
        slopes = [tilt] + [2 * (-1) ** k * h * bell for k, h in enumerate(hermite)]
        for k, slope in enumerate(slopes, start=1):
            part = scale * slope
            variance = variance + ((part @ rho**k) * part).sum(-1) / factorial(k)

    size_of = np.abs(shape)
    if law.centered:
        balance = (law.share * np.sign(shape)).sum(-1, keepdims=True)
        size_of = size_of - balance * shape
    of_shares = np.einsum("...b,...bc,...c->...", size_of, law.share_cov, size_of)
    variance = np.maximum(variance, 0.0) + theta**2 * np.maximum(of_shares, 0.0)[..., None]
    sd = np.sqrt(variance)
    skew = _ratio((scale**3 * third).sum(-1), sd**3)
    return (law.share[..., None, :] * size).sum(-1), sd, skew


def _solve(function: Callable[[Array], Array], target: Array, points: int = 17) -> Array:
    """Find where a rising function on [0, 1] first reaches its target, by nested grids."""
    low, width = np.zeros((*target.shape, 1)), np.ones((*target.shape, 1))
    unit = np.linspace(0, 1, points)
    for _ in range(4):
        grid = low + width * unit
        value = function(grid)
        reached = value >= target[..., None]
        index = np.where(reached.any(-1), reached.argmax(-1), points - 1)[..., None]
        before = np.maximum(index - 1, 0)
        low, width = np.take_along_axis(grid, before, -1), width / (points - 1)
    start, stop = (np.take_along_axis(value, i, -1) for i in (before, index))
    share = np.clip(_ratio(target[..., None] - start, stop - start), 0.0, 1.0)
    return np.asarray((low + width * share)[..., 0])


def _simulated(rows: Rows, n_bins: int, norm: float, draws: int, seed: int) -> Array:
    """Plug-in errors of hits simulated from the scores."""
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


def _diagonal(values: Array) -> Array:
    return np.asarray(values[..., None] * np.eye(values.shape[-1]))


def _root_diagonal(matrix: Array) -> Array:
    return np.asarray(np.sqrt(np.maximum(np.diagonal(matrix, axis1=-2, axis2=-1), 0.0)))
