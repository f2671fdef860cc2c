"""The test of whether the gap is zero, or the same everywhere, along a variable; its power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, chdtri, chndtrinc, fdtrc

from varcal._arrays import Bools, Floats, Ints, ratio_or_zero
from varcal._inference.error_sums import (
    LEAST_MODEL,
    ErrorSums,
    constant_gap_variance,
    error_sums_of,
    finer_cells,
    merged_cells,
)
from varcal._inference.gap_law import GapLaw
from varcal._inference.multiplicity import cauchy
from varcal._inference.quadratic_forms import (
    LEAST_EVENTS,
    Form,
    chi_square_tail,
    form_of,
    normal_sums,
    row_skewness,
    trends,
    unit2_of,
)
from varcal._options import checked, number
from varcal._sums.bins import coarse_index
from varcal._sums.stats import BinnedStats
from varcal._text import count
from varcal.exceptions import InputError

#: The variance of a cell with a constant gap is at least this part of that without one: a gap that
#: few events suggest may be larger than the scores of a cell.
LEAST_VARIANCE = 0.5
#: With few events in all, p-values are discrete: they are raised by this, divided by the events.
DISCRETE = 3.0
#: A bin with a smaller variance, in events, is sparse.
SPARSE_EVENTS = 5.0
#: The level at which the gap changes within bins, so that finer cells measure the error. With 0.02
#: sines of three periods were covered in half a point fewer of the samples; with 0.1, intervals
#: of calibrated models were 3 % wider (16 worlds of 500 and 2,000 rows, 120 samples each).
WITHIN = 0.05
#: The level at which it may change, so that the upper limit is also that over finer cells. The
#: interval of a sine of three periods (500 rows) then covers 96 % where it covered 94; those of
#: calibrated models are 1 % wider (100 samples each; with 0.2, 3 % wider and no better).
MAY_CHANGE = 0.1
#: With a constant gap, the gap of a side counts as if this many rows without a gap were added.
PRIOR_ROWS = 5.0
#: Below this many groups the null distribution is simulated by flipping the signs of groups.
FEW_GROUPS = 100
#: The number of sign flips; the smallest possible p-value is then 0.001.
DRAWS = 999
#: A test with k terms needs at least this many times k groups.
GROUPS_PER_TERM = 2
#: The groups that any test needs: that of smooth trends has three terms.
LEAST_GROUPS = 3 * GROUPS_PER_TERM
#: A term whose part not explained by the others is smaller than this, relative to the largest,
#: is dropped.
DEPENDENT = 1e-6
#: The part of the mean variance that is added to each variance, so that the covariance matrix
#: can be inverted.
RIDGE = 1e-10
#: p-values that differ by less than this, relatively, count as equal: rounding errors depend on
#: the signs.
SAME_P = 1e-9
#: The least scale, to avoid division by 0.
TINY = 1e-300
#: If one of the two tests sees nothing, their Cauchy mean rejects when the other is significant
#: at about this part of the level.
PART_OF_LEVEL = 0.5
#: No table has this many rows; a larger answer says that the gap cannot be detected.
MOST_ROWS = 1e18
_SHARE = number(0, 1, hint="try 0.05")


class Weights(NamedTuple):
    """The weights of the forms of a test; a form without weight is not part of it.

    Bins that have no order, where the forms of trends are missing, have the weight `levels`.
    """

    levels: float
    bins: float
    finer: float
    sparse: float
    bends: float = 0.0
    tilt: float = 0.0
    waves: float = 0.0
    overall: float = 0.0


#: Weights of the tests of "no gap" and of "a constant gap". No gap: the best power against a bias
#: with at most 2 points less in eight other shapes (800 rows, 8,000 samples each). Forms that
#: contain the bias as well, such as polynomials 0 to 2, would find the others less often.
NO_GAP = Weights(0.52, 0.18, 0.03, 0.2, tilt=0.09, waves=0.09, overall=0.64)
CONSTANT_GAP = Weights(2.0, 1.2, 0.8, 0.6, bends=2.0)


@dataclass(frozen=True)
class Tested:
    """The result of a test.

    Attributes
    ----------
    p_value : float
        The p-value in (0, 1].
    finer : array of int or None
        The finer cell of each fine one, if the gap may change within the bins.
    changes : bool
        Whether it does.
    """

    p_value: float
    finer: Ints | None = None
    changes: bool = False


def calibration_test(
    coarse: Sequence[BinnedStats],
    fine: Sequence[BinnedStats],
    placed: Bools | None,
    *,
    constant: bool = False,
    shared: int = 1,
    seed: int = 0,
) -> Tested:
    r"""Test "calibrated with respect to v", or "the gap is constant along v within each side".

    The weighted Cauchy mean combines the p-values of quadratic forms in the sums of w(h − s):

    - a chi-square over the bins, :math:`\sum_b (\sum_b we)^2 / V_b`, against any pattern;
    - the same over finer cells (`finer_cells`), against gaps that cancel inside bins;
    - the same over the bins with few events alone, if there are others;
    - for "no gap" score tests of the overall gap, of the mid-rank and of ten cosines of it, which
      have little in common: what one form sees takes no level from the others;
    - for "a constant gap" a score test on the Legendre polynomials 1 and 2 of the mid-rank.

    Sums of bins count as normal scores (`normal_sums`), those of trends are corrected for their
    skewness, and each form is compared with a scaled chi-square distribution that has its mean and
    variance. So a bin with few rows or events neither rejects too often nor weakens the others.

    A constant gap is that of each predicted side,
    :math:`\mathrm{E}[h - s \mid v, \text{side}] = c_\text{side}`. With :math:`\phi = f -
    \bar f_\text{side}` for functions f of v, the columns :math:`\phi` find errors that both sides
    share, :math:`\pm\phi` with the sign of the side those that are opposite, and both together
    each side by itself. With groups the sums of a group are one observation (`cluster_test`).

    Parameters
    ----------
    coarse, fine : sequences of BinnedStats
        The tables of each side (one, if the gap is not constant) over bins and over fine cells.
    placed : array of bool or None
        Which fine cells are ordered along v; None if v has no order.
    constant : bool
        Whether a gap that is constant within each side is part of the hypothesis.
    shared : int
        How many times the forms of errors that both sides share count among the others.
    seed : int
        Seed of random signs of groups.

    References
    ----------
    Liu and Xie (2020), "Cauchy combination test", JASA 115.
    """
    if coarse[0].sums.shape[1] > 1:
        return Tested(cluster_test(coarse, fine, placed, constant=constant, seed=seed))
    bins, cells = error_sums_of(coarse), error_sums_of(fine)
    gap = np.zeros((len(bins.n), 1))
    if constant:  # a row with most of the weight counts as one row
        counted = bins.effective_rows
        gap[:, 0] = ratio_or_zero((counted * bins.gap).sum(-1), counted.sum(-1) + PRIOR_ROWS)
    normal = _normal(bins, gap, constant)
    weights = CONSTANT_GAP if constant else NO_GAP
    over_bins = _over_cells(bins, normal, constant)
    found = [(over_bins, weights.levels)]
    finer, within = None, 1.0
    if placed is not None:
        found[0] = (over_bins, weights.bins + weights.finer)
        bends, waves = trends(cells.weight.sum(0), placed)
        for functions, weight in (
            (bends, weights.bends),
            (bends[:, 1:2], weights.tilt),
            (waves, weights.waves),
        ):
            if weight:
                found.append((_over_trends(cells, functions, constant), weight))
        merge = coarse_index(fine[0].bins, coarse[0].bins)
        finer = finer_cells(cells, merge, placed, len(fine))
    if placed is not None and finer is not None:
        parts = merged_cells(cells, finer)
        over_finer = _over_cells(parts, _normal(parts, gap, constant), constant)
        found[0] = (over_bins, weights.bins)
        found.append((over_finer, weights.finer))
        within = min(_more(over_bins, over_finer), _within(bins, parts, merge, finer))
        # With two sides more cells measure the error than the test has, which would find less.
        finer = finer_cells(cells, merge, placed) if within < MAY_CHANGE else None
    sparse = (_events(bins) < SPARSE_EVENTS) & (bins.n.sum(0) > 0)
    if sparse.any() and not sparse[bins.n.sum(0) > 0].all():
        found.append((_over_cells(bins, normal, constant, sparse), weights.sparse))
    if weights.overall:
        ones = np.ones((bins.n.shape[-1], 1))
        found.append((_over_trends(bins, ones, constant), weights.overall))
    p_values, shares = [], []
    for (forms, sums), weight in found:
        p_values += [form.p_value(sums) for form in forms]
        shares += [weight * shared, *[weight] * (len(forms) - 1)]
    raised = 1 + DISCRETE / max(float(_events(bins).sum()), LEAST_EVENTS)
    return Tested(min(raised * float(cauchy(p_values, shares)), 1.0), finer, within < WITHIN)


def _events(bins: ErrorSums) -> Floats:
    """Return the variance of each bin over both sides, in events."""
    return ratio_or_zero(bins.null2.sum(0), unit2_of(bins).max(0))


def _variance(cells: ErrorSums, evidence: Floats | None = None) -> Floats:
    """Return the variance of each cell's sum if the gap is constant."""
    return np.maximum(constant_gap_variance(cells, evidence), LEAST_VARIANCE * cells.null2)


def _normal(cells: ErrorSums, gap: Floats, constant: bool) -> tuple[Floats, ...]:
    """Return the sums of cells as normal scores, with their scale, variance and cumulant."""
    v = _variance(cells) if constant else cells.null2
    return tuple(each.ravel() for each in normal_sums(cells, v, gap))


def _over_cells(
    cells: ErrorSums,
    normal: tuple[Floats, ...],
    constant: bool,
    chosen: Bools | slice = slice(None),
) -> tuple[list[Form], Floats]:
    """Return the forms over the indicators of chosen cells, and the sums of all cells."""
    sums, scale, v, fourth = normal
    columns = _columns(np.eye(cells.n.shape[-1])[:, chosen], cells, constant)
    return [form_of(one, scale, v, np.zeros_like(v), fourth) for one in columns], sums


def _over_trends(cells: ErrorSums, functions: Floats, constant: bool) -> tuple[list[Form], Floats]:
    """Return the forms over smooth functions of fine cells, and the sums of errors."""
    v = cells.null2
    if constant:
        v = _variance(cells, cells.effective_rows.sum(-1, keepdims=True))
        functions = functions[:, 1:]
    gap = (cells.share * cells.gap).sum(-1, keepdims=True) if constant else np.zeros(())
    third = row_skewness(cells, gap) * v * np.sqrt(unit2_of(cells))
    v, third = v.ravel(), third.ravel()
    columns = _columns(functions, cells, constant)
    return [form_of(one, v, v, third, np.zeros_like(v)) for one in columns], cells.error.ravel()


def _columns(functions: Floats, cells: ErrorSums, constant: bool) -> list[Floats]:
    """Return functions of cells for errors that sides share, for opposite ones, and for both."""
    sides = len(cells.n)
    phi = np.broadcast_to(functions, (sides, *functions.shape))
    if constant:
        phi = phi - (cells.share @ functions)[:, None, :]
    signs = np.array([[1.0, 1.0], [-1.0, 1.0]]) if sides == 2 else np.ones((1, sides))
    found = [(sign[:, None, None] * phi).reshape(-1, functions.shape[1]) for sign in signs]
    return found + [np.hstack(pair) for pair in combinations(found, 2)]


def _more(bins: tuple[list[Form], Floats], finer: tuple[list[Form], Floats]) -> float:
    """Return the p-value of "calibrated within each bin": how much finer cells add to the form.

    It sees small waves best. Normal scores of sums far from 0 do not add up, which `_within` needs.
    """
    pairs = [(bins[0][k], finer[0][k]) for k in (0, -1)]  # what sides share, and both sides
    return min(
        chi_square_tail(
            fine.value(finer[1]) - rough.value(bins[1]),
            fine.mean - rough.mean,
            fine.variance - rough.variance,
        )
        for rough, fine in pairs
    )


def _within(bins: ErrorSums, parts: ErrorSums, merge: Ints, finer: Ints) -> float:
    """Return the p-value of "the gap is the same everywhere within each bin".

    A chi-square of finer cells about the gap of their bin. Its variances are those of
    Bernoulli(s − gap), scaled to the scatter of the bin, so that wrong scores near 0 or 1 do not
    vary as little as they say.
    """
    bin_of = np.zeros(parts.n.shape[-1], np.intp)
    bin_of[finer] = merge
    gap = bins.gap[:, bin_of]
    model = parts.null2 + gap * (2 * parts.score2 - parts.weight2) - gap**2 * parts.weight2
    model = np.maximum(model, LEAST_MODEL * parts.null2)
    expected = model @ np.eye(bins.n.shape[-1])[bin_of]
    scatter = bins.scatter() * ratio_or_zero(bins.n, bins.n - 1)
    scale = ratio_or_zero(scatter, expected)
    v = model * scale[:, bin_of]
    chi_square = ratio_or_zero((parts.error + gap * parts.weight) ** 2, v).sum()
    terms = np.count_nonzero(v) - np.count_nonzero(scale)
    return float(chdtrc(max(terms, 1), chi_square))


def cluster_test(
    coarse: Sequence[BinnedStats],
    fine: Sequence[BinnedStats],
    placed: Bools | None,
    *,
    constant: bool = False,
    seed: int = 0,
) -> float:
    r"""Return the p-value of the hypothesis of `calibration_test` for rows in groups.

    Hotelling tests on the sums of the groups, over the bins and on the Legendre polynomials
    0, 1, 2 of the rank of v, are combined by the Cauchy mean. The sums of a group are one
    observation, so that the rows of a group may depend on each other in any way. With k terms
    and G groups (or buckets of groups), :math:`T^2 (G - k) / (k (G - 1))` is compared with
    F(k, G − k). With fewer than 100 groups, the null distribution comes from random signs of the
    groups instead.

    Parameters
    ----------
    coarse, fine : sequences of BinnedStats
        Tables of each predicted side, by bucket of groups.
    placed : array of bool or None
        Which fine cells are ordered along v; None if v has no order.
    constant : bool
        Whether a gap that is constant within each side is part of the hypothesis.
    seed : int
        Seed of the random signs.
    """
    parts = []
    for sign in ([1.0, 1.0], [-1.0, 1.0])[: len(coarse)]:
        parts.append(_contributions(coarse, sign, None, constant))
        if placed is not None:
            parts.append(_contributions(fine, sign, placed, constant))
    return hotelling_test(parts, seed)


def hotelling_test(contributions: Sequence[Floats], seed: int = 0) -> float:
    """Test that the sums of groups, shape (G, k) for each set of terms, have mean 0."""
    n_groups = len(contributions[0])
    most = n_groups // GROUPS_PER_TERM
    used = [part for part in contributions if 0 < part.shape[1] <= most]
    if not used:
        # More levels than groups can tell apart: the most frequent ones.
        used = [part[:, :most] for part in contributions if part.shape[1]]
        if not used:
            return 1.0  # a single value: the gap cannot change along it
        if n_groups < LEAST_GROUPS:
            raise InputError(
                f"groups has {count(n_groups, 'group')} with weight",
                f"a test needs at least {LEAST_GROUPS}",
                argument="groups",
            )
    observed = float(cauchy([_hotelling(part[None])[0] for part in used]))
    if n_groups >= FEW_GROUPS:
        return observed
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(DRAWS, n_groups, 1))
    null = cauchy([_hotelling(part * signs) for part in used])
    return float((1 + (null <= observed * (1 + SAME_P)).sum()) / (1 + DRAWS))


def n_groups(stats: BinnedStats) -> int:
    """Return the number of groups (or buckets of groups) with weight."""
    return int((stats.field("weight").sum(axis=1) > 0).sum())


def enough_groups(stats: BinnedStats) -> bool:
    """Tell whether there are enough groups for a test along any variable."""
    return n_groups(stats) >= LEAST_GROUPS


def _contributions(
    tables: Sequence[BinnedStats], signs: Sequence[float], placed: Bools | None, constant: bool
) -> Floats:
    """Return the sums of w(h − s) of each group for the terms of a test, shape (G, k)."""
    total = np.stack([stats.total("weight") for stats in tables])
    everywhere = total.sum(axis=0)
    if placed is None:
        filled = by_weight(everywhere)
        functions = np.eye(len(everywhere))[:, filled[: len(filled) - constant]]
    else:
        functions = trends(everywhere, placed)[0][:, int(constant) :]
    means = ratio_or_zero(total @ functions, total.sum(axis=-1, keepdims=True)) * constant
    keep = independent(np.concatenate([functions - mean for mean in means]), total.ravel())
    sums, by_group = np.zeros(()), np.zeros(())
    for stats, sign, part in zip(tables, signs, np.split(keep, len(tables)), strict=False):
        weight = stats.field("weight")
        error = stats.field("hit") - stats.field("score")
        mean = float(ratio_or_zero(error.sum(), np.asarray(weight.sum()))) * constant
        sums = sums + sign * ((error - weight * mean) @ part)
        by_group = by_group + weight.sum(axis=1)
    return np.asarray(sums)[np.asarray(by_group) > 0]


def by_weight(total: Floats) -> Ints:
    """Return the bins that have weight, the heaviest first."""
    return np.argsort(-total, kind="stable")[: int((total > 0).sum())]


def independent(terms: Floats, total: Floats) -> Floats:
    """Drop terms that depend on others, such as the quadratic of a variable with two values."""
    _, triangle = np.linalg.qr(terms * np.sqrt(total)[:, None])
    size = np.zeros(terms.shape[1])
    size[: len(triangle)] = np.abs(np.diag(triangle))
    return terms[:, size > DEPENDENT * max(size.max(initial=0.0), TINY)]


def _hotelling(sums: Floats) -> Floats:
    """Return p-values of "the mean over groups is 0" for tables of the shape (draws, G, k)."""
    _, n_groups, k = sums.shape
    mean = sums.mean(axis=1)
    centred = sums - mean[:, None]
    spread = np.einsum("dgi,dgj->dij", centred, centred) / (n_groups - 1)
    scale = np.einsum("dii->d", spread)[:, None, None] / k
    spread = spread + RIDGE * np.maximum(scale, TINY) * np.eye(k)
    solved = np.linalg.solve(spread, mean[..., None])[..., 0]
    t2 = n_groups * np.einsum("di,di->d", mean, solved)
    return np.asarray(fdtrc(k, n_groups - k, t2 * (n_groups - k) / (k * (n_groups - 1))))


def minimum_detectable(law: GapLaw, *, level: float = 0.05, power: float = 0.8) -> Floats:
    r"""Return the smallest error that the test detects with this power, whatever its shape.

    The chi-square part rejects with that power if :math:`\sum (g_b / se_{0b})^2` is at least
    :math:`\lambda`. Of all gaps with error :math:`\tau`, the hardest to detect,
    :math:`g_b \propto \pi_b se_{0b}^2` with alternating signs, has
    :math:`\lambda = \tau^2 / \sum \pi_b^2 se_{0b}^2`. Smaller gaps are detected if they are
    smooth.

    Examples
    --------
    >>> from varcal._inference.error_sums import ErrorSums
    >>> s = np.full(2000, 0.5)
    >>> h = np.arange(2000) % 2
    >>> cells = ErrorSums.from_rows(np.arange(2000) // 200, s, h, n_bins=10)
    >>> round(float(minimum_detectable(GapLaw.from_cells(cells))), 3)
    0.049
    """
    bins = (law.share > 0).sum(-1) - law.centered
    spread = np.einsum("...b,...bc,...c->...", law.share, np.abs(law.null_cov), law.share)
    return np.asarray(np.sqrt(_noncentrality(bins, level, power) * spread))


@checked(gap=_SHARE, variance=_SHARE, power=_SHARE)
def rows_needed(
    gap: float, *, variance: float = 0.25, n_bins: int = 10, level: float = 0.95, power: float = 0.8
) -> int:
    r"""Return how many rows the test needs to detect an error of this size.

    :math:`n = \lambda \sigma^2 / \text{gap}^2`: the inverse of :func:`minimum_detectable` for
    bins of equal share and a mean variance :math:`\sigma^2` of :math:`s(1 - s)`.

    Parameters
    ----------
    gap : float
        The size of the error, between 0 and 1.
    variance : float
        Mean of s(1 − s): 0.25 is the worst case, 0.05 is typical of scores near 0.95.
    n_bins : int
        Number of bins of the variable.
    level, power : float
        1 − the type-I error, and the probability of detecting the error.

    Examples
    --------
    >>> rows_needed(0.05)
    1890
    """
    need = float(_noncentrality(np.asarray(n_bins), 1 - level, power))
    rows = need * variance / gap / gap if gap > 1e-150 else math.inf
    if not rows < MOST_ROWS:
        raise InputError(
            f"gap is {gap!r}: with these options more than {MOST_ROWS:.0e} rows would be needed",
            "give a larger gap",
            argument="gap",
        )
    return math.ceil(rows)


def _noncentrality(bins: Floats, level: float, power: float) -> Floats:
    """Return the noncentrality that the chi-square part of the test detects with this power."""
    df = np.maximum(bins, 1)
    return np.asarray(chndtrinc(chdtri(df, PART_OF_LEVEL * level), df, 1 - power))
