"""GapLaw: how the gaps of bins vary, for independent rows, predicted sides and groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import factorial, inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag
from scipy.special import betaincinv, ndtr

from varcal._arrays import Floats, Ints, ratio_or_zero
from varcal._inference.error_sums import (
    ErrorSums,
    constant_gap_variance,
    error_sums,
    error_sums_by_bucket,
    merged_cells,
    plug_in,
)
from varcal._inference.multiplicity import two_sided_quantile
from varcal._sums.bins import NumericBins
from varcal._sums.stats import PRIOR_ROWS, BinnedStats
from varcal.exceptions import InputError

#: A gap this many standard errors from 0 practically never has the other sign by chance.
NEVER_FOLDS = 8.0
#: Terms of Mehler's expansion of the covariance of two absolute values.
MEHLER_TERMS = 5
#: With fewer events or non-events than this, the interval of a gap is at least the exact one.
FEW_EVENTS = 20
#: Effective rows that exceed a whole number by less than this are that number.
SAME_ROWS = 1e-9
#: Bins up to which the skewness that they share is computed; it takes products of matrices.
MOST_TOGETHER = 100
#: In a bin's variance, the variance that is pooled over bins counts like this many groups.
PRIOR_GROUPS = 4
#: With fewer degrees of freedom than this, the variance between groups is not taken from the
#: differences within bins alone, but also from those between bins, which count like
#: `PRIOR_DEGREES` degrees of freedom.
FEW_DEGREES, PRIOR_DEGREES = 20, 5
#: The least degrees of freedom of Student's t.
LEAST_DEGREES = 2


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
        Whether the overall gap (of each side) was subtracted.
    df : float
        Degrees of freedom of the covariance; finite with clusters.
    dependence : float
        Factor of the variance of the plug-in error, for bins that depend on each other in ways
        that `cov` does not have.
    sides : int
        Cells may be bins within predicted sides: all bins of the first side, then of the next.
    ordered : bool
        Whether bins next to each other are neighbours along the variable.
    """

    gap: Floats
    share: Floats
    cov: Floats
    null_cov: Floats
    share_cov: Floats
    centered: bool = False
    df: float = inf
    dependence: float = 1.0
    sides: int = 1
    ordered: bool = False

    @classmethod
    def from_cells(cls, cells: ErrorSums, null: Floats | None = None) -> GapLaw:
        r"""Compute the law from sums over independent rows.

        The variance of a bin's gap is the sandwich variance, shrunk towards that of the null with
        the weight of five rows,
        :math:`[n_b \sum_b w^2 (e - \bar e_b)^2 + 5 V_b] / ((n_b + 4) W_b^2)`. Shares vary as those
        of a multinomial distribution with the effective number of rows. Another hypothesis than
        calibration has other variances `null` of the cells' sums.
        """
        null = cells.null2 if null is None else null
        spread = (cells.n * cells.scatter() + PRIOR_ROWS * null) / (cells.n + PRIOR_ROWS - 1)
        share = cells.share
        share_cov = _diagonal(share) - share[..., :, None] * share[..., None, :]
        return cls(
            gap=cells.gap,
            share=share,
            cov=_diagonal(ratio_or_zero(spread, cells.weight**2)),
            null_cov=_diagonal(ratio_or_zero(null, cells.weight**2)),
            share_cov=ratio_or_zero(share_cov, cells.effective_n[..., None, None]),
        )

    @classmethod
    def stack(cls, laws: Sequence[GapLaw]) -> GapLaw:
        """Put laws over equally many bins along a new first axis."""
        arrays = ("gap", "share", "cov", "null_cov", "share_cov")
        stacked: dict[str, Any] = {
            name: np.stack([getattr(law, name) for law in laws]) for name in arrays
        }
        return replace(laws[0], **stacked)

    @classmethod
    def of_classes(cls, laws: Sequence[GapLaw], *, same_bins: bool) -> GapLaw:
        r"""Return the law of the mean error over classes from the law of each class.

        Sums of rows do not have the covariances between classes, but bound them: the errors of a
        row add up to 0 over classes, so that the covariances of a class with all others add up to
        minus its variance. Hence the variance of the mean of the plug-in errors is at most twice
        that of independent classes. With two classes, whose gaps are equal up to their sign, it
        is exactly twice. If the classes have the same bins, so are their shares; else shares
        count as if those of all classes varied together.
        """
        k = len(laws)
        shares = block_diag(*(law.share_cov for law in laws)) / k
        if same_bins:
            shares = np.kron(np.ones((k, k)), laws[0].share_cov) / k**2
        return cls(
            gap=np.concatenate([law.gap for law in laws]),
            share=np.concatenate([law.share for law in laws]) / k,
            cov=block_diag(*(law.cov for law in laws)),
            null_cov=block_diag(*(law.null_cov for law in laws)),
            share_cov=shares,
            df=min(law.df for law in laws),
            dependence=2.0,
        )

    def center(self, sides: int = 1) -> GapLaw:
        """Subtract the overall gap, or that of each predicted side."""
        size = self.gap.shape[-1]
        same_side = np.kron(np.eye(sides), np.ones((size // sides, size // sides)))
        part = ratio_or_zero(self.share, self.share @ same_side)
        remove = np.eye(size) - same_side * part[..., None, :]
        turn = np.swapaxes(remove, -1, -2)
        return replace(
            self,
            gap=self.gap - (part * self.gap) @ same_side,
            cov=remove @ self.cov @ turn,
            null_cov=remove @ self.null_cov @ turn,
            centered=True,
            sides=sides,
        )

    def nested(self) -> list[Floats]:
        """Return matrices that average gaps over ever smaller parts, the last over cells.

        Parts are thirds of an ordered variable or the levels of another, first over both sides,
        then within each.
        """
        size = self.gap.shape[-1] // self.sides
        place, side = np.tile(np.arange(size), self.sides), np.repeat(np.arange(self.sides), size)
        part = place * 3 // size if self.ordered else place
        found: list[Floats] = []
        known = 0
        for label in (part, part + size * side, place + size * side):
            if len(np.unique(label)) > known:
                known = len(np.unique(label))
                same = (label[:, None] == label) * 1.0
                found.append(same * ratio_or_zero(self.share, self.share @ same)[..., None, :])
        return found

    def turned(self, matrix: Floats) -> GapLaw:
        """Return the law of the gaps multiplied by a matrix."""
        cov = matrix @ self.cov @ np.swapaxes(matrix, -1, -2)
        return replace(self, gap=(matrix @ self.gap[..., None])[..., 0], cov=cov)

    def by_side(self, values: Floats) -> Floats:
        """Return values of cells with an axis of sides before that of bins."""
        return values.reshape(*values.shape[:-1], self.sides, -1)

    @cached_property
    def value(self) -> Floats:
        """Plug-in error."""
        return plug_in(self.gap, self.share)

    @cached_property
    def standard_error(self) -> Floats:
        """Standard error of each bin's gap."""
        return root_diagonal(self.cov)

    @property
    def in_groups(self) -> bool:
        """Whether rows are in groups, so that bins may vary together."""
        return bool(np.isfinite(self.df))

    @cached_property
    def correlation(self) -> Floats:
        """Correlation of the bins' gaps, with 0 on the diagonal."""
        se = self.standard_error
        rho = ratio_or_zero(self.cov, se[..., :, None] * se[..., None, :])
        return np.asarray(np.clip(rho * (1 - np.eye(rho.shape[-1])), -1, 1))

    @cached_property
    def correlation_powers(self) -> tuple[Floats, ...]:
        """Powers of the correlation, from the first; none where all correlations are 0."""
        rho = self.correlation
        return tuple(rho**k for k in range(1, MEHLER_TERMS + 2)) if rho.any() else ()

    def quantile(self, level: float) -> float:
        """How many standard errors an interval of this level reaches to either side."""
        return two_sided_quantile(level, self.df)


def gap_interval(
    gap: ArrayLike, reach: ArrayLike, n: ArrayLike, observed: ArrayLike, level: float
) -> tuple[Floats, Floats]:
    """Return intervals of gaps that also hold with few events.

    They are gap ± reach. With fewer than 20 events or non-events among n rows they are widened to
    the exact interval of the rate (Clopper and Pearson). The rate of a single row may be anything.

    >>> low, high = gap_interval([-0.999, 0.002], [0.1, 0.0001], [1, 1000], [1.0, 0.0], 0.95)
    >>> low.round(4).tolist(), high.round(4).tolist()
    ([-1.0, -0.0017], [0.001, 0.0021])
    """
    gap, reach, n, observed = (np.asarray(x, float) for x in (gap, reach, n, observed))
    low, high = gap - reach, gap + reach
    events = n * np.clip(observed, 0.0, 1.0)
    tail = (1 - level) / 2
    with np.errstate(invalid="ignore"):
        few = (np.minimum(events, n - events) < FEW_EVENTS) & (n > 0)
        known = n > 1 + SAME_ROWS
    first = known & (events > 0)
    last = known & (events < n)
    least = np.where(first, betaincinv(np.where(first, events, 1), n - events + 1, tail), 0.0)
    most = np.where(last, betaincinv(events + 1, np.where(last, n - events, 1), 1 - tail), 1.0)
    low = np.where(few, np.minimum(low, gap + observed - most), low)
    high = np.where(few, np.maximum(high, gap + observed - least), high)
    return np.maximum(low, -1.0), np.minimum(high, 1.0)


def gap_ends(stats: BinnedStats, reach: Floats, level: float) -> tuple[Floats, Floats]:
    """Return `gap_interval` for the bins of a table, counted by their effective rows."""
    rows = ratio_or_zero(stats.total("weight") ** 2, stats.total("weight2"))
    return gap_interval(stats.gap, reach, rows, stats.accuracy, level)


def plug_in_moments(
    law: GapLaw, shape: Floats, theta: Floats, *, shared: bool = True
) -> tuple[Floats, Floats, Floats]:
    r"""Return mean, standard deviation and skewness of T if the gaps are theta * shape.

    ``theta`` has one more axis than the law. Covariances of :math:`|X_b|, |X_c|` follow from
    Mehler's expansion, :math:`\sum_k \rho^k f^{(k)}(x_b) f^{(k)}(x_c) / k!` with
    :math:`f(x) = \mathrm{E}|x + Z|`. With groups, bins that vary together make T skewed; `shared`
    says whether that counts.
    """
    x, tilt, bell, folded, size = _folded(law, shape, theta)
    se = law.standard_error[..., None, :]
    scale = law.share[..., None, :] * se
    spread = np.maximum(x * x + 1 - folded**2, 0.0)
    third = (x**3 + 3 * x) * tilt + 2 * (x**2 + 2) * bell - 3 * folded * (x * x + 1) + 2 * folded**3
    variance = (scale**2 * spread).sum(-1)

    if law.correlation_powers:
        hermite = [np.ones_like(x), x]
        for k in range(2, MEHLER_TERMS):
            hermite.append(x * hermite[-1] - (k - 1) * hermite[-2])
        slopes = [tilt] + [2 * (-1) ** k * h * bell for k, h in enumerate(hermite)]
        terms = zip(slopes, law.correlation_powers, strict=True)
        for k, (slope, power) in enumerate(terms, start=1):
            part = scale * slope
            variance = variance + ((part @ power) * part).sum(-1) / factorial(k)

    size_of = np.abs(shape)
    if law.centered:
        share, signs = law.by_side(law.share), law.by_side(np.sign(shape))
        balance = ratio_or_zero((share * signs).sum(-1), share.sum(-1))[..., None]
        size_of = size_of - (balance * law.by_side(shape)).reshape(shape.shape)
    of_shares = np.einsum("...b,...bc,...c->...", size_of, law.share_cov, size_of)
    variance = (
        law.dependence * np.maximum(variance, 0.0)
        + theta**2 * np.maximum(of_shares, 0.0)[..., None]
    )
    sd = np.sqrt(variance)
    cumulant = (scale**3 * third).sum(-1)
    few = x.shape[-1] <= MOST_TOGETHER
    if shared and few and law.in_groups and law.correlation_powers:
        cumulant = cumulant + _shared_skewness(law.correlation, scale * tilt, scale * bell)
    skew = ratio_or_zero(law.dependence**2 * cumulant, sd**3)
    return (law.share[..., None, :] * size).sum(-1), sd, skew


def _shared_skewness(rho: Floats, slope: Floats, bend: Floats) -> Floats:
    r"""Return what correlated bins add to the third cumulant of the plug-in error.

    To second order a bin's absolute gap is :math:`a_b Z_b + c_b (Z_b^2 - 1)`, and the sum has the
    third cumulant :math:`6 a^\top R C R a + 8 \operatorname{tr}(CR)^3` with C = diag(c).
    """
    whole = rho + np.eye(rho.shape[-1])
    turned = slope @ whole
    bent = bend[..., :, None] * whole[..., None, :, :]
    linear = (turned**2 * bend).sum(-1) - (slope**2 * bend).sum(-1)
    curved = np.einsum("...bc,...cb->...", bent @ bent, bent) - (bend**3).sum(-1)
    return np.asarray(6 * linear + 8 * curved)


def plug_in_mean(law: GapLaw, shape: Floats, theta: Floats) -> Floats:
    """Return the mean that `plug_in_moments` gives, without the other moments."""
    size = _folded(law, shape, theta)[-1]
    return np.asarray((law.share[..., None, :] * size).sum(-1))


def _folded(law: GapLaw, shape: Floats, theta: Floats) -> tuple[Floats, ...]:
    """Return x = mean / se, 2Φ(x) − 1, φ(x), E|x + Z|, and the mean absolute gap of each bin."""
    se = law.standard_error[..., None, :]
    mean = theta[..., None] * shape[..., None, :]
    # Beyond that, differences of large powers would lose digits.
    x = np.clip(ratio_or_zero(mean, se), -NEVER_FOLDS, NEVER_FOLDS)
    tilt, bell = 2 * ndtr(x) - 1, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)
    folded = np.where(se > 0, x * tilt + 2 * bell, 0.0)
    size = np.where((se > 0) & (np.abs(x) < NEVER_FOLDS), se * folded, np.abs(mean))
    return x, tilt, bell, folded, size


def _diagonal(values: Floats) -> Floats:
    return np.asarray(values[..., None] * np.eye(values.shape[-1]))


def root_diagonal(matrix: Floats) -> Floats:
    """Return the roots of the diagonal of covariance matrices: standard errors."""
    return np.asarray(np.sqrt(np.maximum(np.diagonal(matrix, axis1=-2, axis2=-1), 0.0)))


def cell_law(tables: Sequence[BinnedStats], *, center: bool = False) -> GapLaw:
    r"""Return the law of the gaps of cells, all bins of the first side, then those of the next.

    With `center` the average gap of each side is taken off,

    .. math:: d_{bs} = g_{bs} - \bar g_s, \qquad \text{uneven} = \sum_{bs} \pi_{bs} |d_{bs}|,

    which makes the gaps of a side depend on each other. The variance of a cell is that of
    `GapLaw.from_cells`, shrunk towards the variance of a gap that is constant within the side.
    With groups it is the variance between groups (`cluster_law`).

    Parameters
    ----------
    tables : sequence of BinnedStats
        The table of each side, over the same bins.
    """
    sums = error_sums_by_bucket if tables[0].sums.shape[1] > 1 else error_sums
    ordered = isinstance(tables[0].bins, NumericBins)
    return law_of_sides([sums(stats) for stats in tables], center=center, ordered=ordered)


def law_of_sides(
    parts: Sequence[ErrorSums], *, center: bool = False, ordered: bool = False
) -> GapLaw:
    """Return the law from the sums of each side, of shape (bins,) or (groups, bins)."""
    sides = len(parts)
    if parts[0].n.ndim > 1:
        about = [_about_mean(part) for part in parts] if center else parts
        law = cluster_law(_joined(about), center=center, sides=sides)
        return replace(law, ordered=ordered)
    cells = _joined(parts)
    if not center:
        return GapLaw.from_cells(cells)
    null = np.concatenate([constant_gap_variance(part) for part in parts])
    return replace(GapLaw.from_cells(cells, null), ordered=ordered).center(sides)


def finer_law(fine: Sequence[BinnedStats], cells: Ints, *, center: bool = False) -> GapLaw:
    """Return the law of the gaps of finer cells, from tables of fine ones and their numbers."""
    parts = [merged_cells(error_sums(stats), cells) for stats in fine]
    return law_of_sides(parts, center=center, ordered=True)


def _joined(parts: Sequence[ErrorSums]) -> ErrorSums:
    """Put the bins of all sides side by side."""
    names = ErrorSums.__dataclass_fields__
    return ErrorSums(
        **{name: np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in names}
    )


def _about_mean(cells: ErrorSums) -> ErrorSums:
    """Take the mean error of a side off, for sums by bucket of groups."""
    mean = float(ratio_or_zero(cells.error.sum(), np.asarray(cells.weight.sum())))
    return ErrorSums(
        **vars(cells)
        | {
            "error": cells.error - mean * cells.weight,
            "error2": cells.error2 - mean * cells.weight2,
            "square2": cells.square2 - 2 * mean * cells.error2 + mean**2 * cells.weight2,
        }
    )


def part_of(law: GapLaw, cells: Floats) -> tuple[float, float, float]:
    """Return share, gap and standard error of some cells together; `cells` has 1 for each."""
    weight = law.share * cells
    share = float(weight.sum())
    weight = weight / share
    variance = float(weight @ law.cov @ weight)
    return share, float(weight @ law.gap), max(variance, 0.0) ** 0.5


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


def gap_law(stats: BinnedStats) -> GapLaw:
    """Return the law of the gaps of bins.

    With groups, variances come from the sums of buckets of groups (`cluster_law`).
    """
    if stats.sums.shape[1] == 1:
        return GapLaw.from_cells(error_sums(stats))
    return cluster_law(error_sums_by_bucket(stats))
