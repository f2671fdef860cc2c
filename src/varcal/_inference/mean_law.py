"""Predicted means: the test, the error and the intervals of amounts, counts and soft labels.

The variance of such an outcome does not follow from its prediction, and few rows may carry most of
it. Therefore the variance of a bin is that of a model V(μ), scaled to all rows and moved towards
the bin's own scatter as far as that is known, and limits allow for the skewness of outcomes.

Notation: r = w(y − μ), and the base m is wμ (gap "relative": −gap is A/E − 1) or w (gap
"difference"). A relative gap is that of the weight wμ, the outcome y/μ and the score 1, so that
`ErrorSums` and `GapLaw` serve both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import comb, exp, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from varcal._arrays import Floats, ratio_or_zero
from varcal._inference.debiased import LawErrors, Measured, with_p
from varcal._inference.error_sums import ErrorSums
from varcal._inference.gap_law import LEAST_DEGREES, GapLaw, _covariance, checked_groups
from varcal._inference.multiplicity import cauchy, two_sided_quantile
from varcal._inference.quadratic_forms import LEAST_P, chi_square_tail, orthonormal_span, trends
from varcal._sums.mean_stats import (
    MEAN_FIELDS,
    MOMENTS,
    MeanStats,
    mean_sums,
    mean_terms,
    variance_power,
)

# Chosen on the worlds of benchmarks/simulate_means.py.

#: The model of the variance counts like this many effective errors of a bin, and like this many
#: more where the bin's scatter is below it.
MODEL_ERRORS, CAUTION = 50.0, 1.0
#: The variance of the self-normalized form is at least this part of that of a chi-square. With 0 it
#: rejected 8 to 10 % where dispersion varies 16-fold, with 1 it found little more than chi-square.
LEAST_FORM = 0.6
#: Skewness counts at most as this: a sum so skewed is not known to this order.
MOST_SKEW = 2.0

#: Gaps are divided by this many times the plug-in error, since limits are sought in [0, 1].
SCALE = 50.0
#: With fewer effective errors the upper limit rests on the few largest amounts: "The upper limit
#: assumes that no larger amounts exist than those seen." Of samples from laws without a variance
#: or with claims of cv 10, 77 to 100 % have fewer; of counts and soft labels at most 6 % do.
FEW_ERRORS = 10.0
#: Below this many groups the null distribution comes from random signs of the groups.
FEW_GROUPS, DRAWS = 100, 999
TINY = 1e-300
ALL_BINS = slice(None)
#: The largest logarithm of a factor.
MOST_LOG = 50.0


@dataclass(frozen=True)
class MeanSums:
    """Sums of bins and moments of all rows, from which everything about a mean is computed.

    Attributes
    ----------
    cells : ErrorSums
        Sums with the base m as weight and r as error; `null2` is the model of the variance.
    third, fourth : ndarray of shape (4,) and (5,)
        Σ r³, Σ r²m, Σ rm², Σ m³ over all rows, and the same of fourth powers.
    power : float
        The power of the model.
    relative : bool
        Whether the base is wμ.
    expected : ndarray of shape (B,)
        Σwμ / Σm of each bin, what is predicted per unit of the base; 1 if relative.
    group_error, group_base : ndarray of shape (G, B), optional
        Σr and Σm by bucket of groups.
    """

    cells: ErrorSums
    third: Floats
    fourth: Floats
    power: float
    relative: bool
    expected: Floats
    group_error: Floats | None = None
    group_base: Floats | None = None

    @classmethod
    def of(cls, stats: MeanStats, placed: slice = ALL_BINS) -> MeanSums:
        """Return the sums of a table, or of some of its bins."""
        return cls.from_sums(stats.sums[..., placed], stats.power, relative=stats.relative)

    @classmethod
    def from_rows(
        cls,
        index: ArrayLike,
        y: ArrayLike,
        mu: ArrayLike,
        *,
        n_bins: int,
        bucket: ArrayLike | None = None,
        relative: bool = True,
        power: float | None = None,
        **row: ArrayLike | None,
    ) -> MeanSums:
        """Sum rows; `row` may have their exposure and weight (`mean_terms`)."""
        power = variance_power(y, mu, row.get("exposure")) if power is None else power
        terms = mean_terms(y, mu, relative=relative, power=power, **row)
        return cls.from_sums(mean_sums(terms, index, n_bins, bucket), power, relative=relative)

    @classmethod
    def from_sums(cls, sums: Floats, power: float, *, relative: bool) -> MeanSums:
        """Return the sums of an array of `mean_sums`."""
        total: dict[str, Any] = dict(zip(MEAN_FIELDS, sums.sum(axis=1), strict=True))
        error, base, none = total["hit"] - total["score"], total["base"], 0 * total["n"]
        kept = {name: total[name] for name in ("n", "error2", "square2", "null2")}
        cells = ErrorSums(
            **kept, weight=base, weight2=total["base2"], error=error, score2=none, fourth=none
        )
        moments = np.array([total[name].sum() for name in MOMENTS])
        by_group: list[Any] = []
        if sums.shape[1] > 1:
            field = dict(zip(MEAN_FIELDS, sums, strict=True))
            by_group = [field["hit"] - field["score"], field["base"]]
        expected = ratio_or_zero(total["score"], base)
        return cls(cells, moments[:4], moments[4:], power, relative, expected, *by_group)

    @property
    def overall(self) -> float:
        """Σr / Σm: A/E − 1, or the mean of y − μ."""
        return -float(self.cells.overall)

    @property
    def few_errors(self) -> bool:
        """Whether a few rows carry the variance, so that limits may be too narrow."""
        return self.effective < FEW_ERRORS

    def scatter(self, gap: Floats | float) -> Floats:
        """Return Σ(r − gap·m)² of each bin."""
        cells = self.cells
        squares = cells.square2 - 2 * gap * cells.error2 + gap**2 * cells.weight2
        return np.asarray(np.maximum(squares, 0.0))

    def powers(self, gap: float) -> tuple[float, float]:
        """Return Σ(r − gap·m)³ and Σ(r − gap·m)⁴ over all rows."""
        third, fourth = (
            sum(comb(k, j) * (-gap) ** j * float(moments[j]) for j in range(k + 1))
            for k, moments in ((3, self.third), (4, self.fourth))
        )
        return third, max(fourth, 0.0)

    @cached_property
    def effective(self) -> float:
        """Effective errors, (Σu²)² / Σu⁴ about the overall gap.

        A third of the rows if errors are normal; few if few rows carry the variance.
        """
        square = float(self.scatter(self.overall).sum())
        return min(square**2 / max(self.powers(self.overall)[1], TINY), float(self.cells.n.sum()))


@dataclass(frozen=True)
class Spread:
    """How the sums of bins vary.

    Attributes
    ----------
    variance, third : ndarray of shape (B,)
        Variance and third cumulant of Σr of each bin; third cumulants are pooled over bins.
    errors : ndarray of shape (B,)
        Effective errors of each bin.
    """

    variance: Floats
    third: Floats
    errors: Floats


def spread_of(sums: MeanSums, gap: Floats | float) -> Spread:
    r"""Return the variances of bins about a gap of all bins, or of each (A/E − 1 or y − μ).

    With the scatter :math:`O_b` about the gap and the model :math:`M_b` scaled to the same total,
    :math:`V_b = M_b [1 + k_b (O_b / M_b - 1)]` with

    .. math:: k_b = \max\left(\frac{\tau^2}{\tau^2 + 1/m_b - 1/n_b},
                              \frac{m_b}{m_b + 50}\right),

    :math:`m_b` the effective errors of the bin, and :math:`\tau^2` the variance of
    :math:`O_b / M_b` beyond chance. The model of gaps of each bin is that of the observed means.
    """
    cells, own = sums.cells, sums.scatter(gap)
    total = max(float(own.sum()), TINY)
    model = _model(sums, gap, total)
    share = model / total
    errors = sums.effective * share
    one = np.ones(())
    chance = np.maximum(ratio_or_zero(one, errors) - ratio_or_zero(one, cells.n), 0.0)
    ratio = ratio_or_zero(own, model)
    known = ratio_or_zero(one, chance)
    between = float((known * ((ratio - 1) ** 2 - chance)).sum()) / max(float(known.sum()), TINY)
    part = ratio_or_zero(np.full_like(chance, max(between, 0.0)), max(between, 0.0) + chance)
    part = np.maximum(part, errors / (errors + MODEL_ERRORS))
    part = np.where(ratio < 1, part * ratio_or_zero(errors, errors + CAUTION), part)
    third = sums.powers(sums.overall)[0]
    return Spread(model * (1 + part * (ratio - 1)), third * share, errors)


def _model(sums: MeanSums, gap: Floats | float, total: float) -> Floats:
    """Return the model of the variance of each bin, scaled to the total scatter.

    Counts that vary more than Poisson ones have the variance μ + κμ² of factors that differ from
    row to row. With V = μ alone, 7.4 % of constant gaps of negative binomial counts were rejected.
    """
    cells, power = sums.cells, sums.power
    own = bool(np.ndim(gap)) and power > 0
    change = (
        np.maximum(1 + ratio_or_zero(np.asarray(gap), sums.expected), 0.0) if own else np.ones(())
    )
    model = cells.null2 * change ** max(power, 0.0)
    if power == 1 and sums.relative:
        more = cells.weight2 * change**2
        excess = max(total - float(model.sum()), 0.0)
        model = model + more * (excess / max(float(more.sum()), TINY))
    return np.asarray(model * (total / max(float(model.sum()), TINY)))


def mean_test(
    bins: MeanSums, fine: MeanSums | None = None, *, constant: bool = True, seed: int = 0
) -> float:
    r"""Return the p-value of "the gap is constant", or of "there is no gap".

    The forms of `calibration_test`: a chi-square over bins, and Legendre polynomials of the rank
    over fine cells, if the variable has an order. Each is judged twice. First with the variances
    of `spread_of`. Then against its own moments if the signs of errors u are random,

    .. math:: \sum_b O_b |l_b|^2, \qquad
              2 \Bigl(\bigl\|\sum_b O_b l_b l_b^\top\bigr\|^2 - \sum_b |l_b|^4 \sum_b u^4\Bigr):

    a form that one row dominates then says nothing. With groups their sums take the place of rows.
    """
    gap = bins.overall if constant else 0.0
    tables = [(bins, np.eye(len(bins.cells.n)))]
    if fine is not None:
        bends = trends(fine.cells.weight, fine.cells.weight > 0)[0]
        tables.append((fine, bends[:, int(constant) :]))
    if not constant:
        tables.append((bins, np.ones((len(bins.cells.n), 1))))
    if bins.group_error is not None:
        return _group_test(tables, gap, constant, seed)
    return float(cauchy([p for one in tables for p in _judged(*one, gap, constant)]))


def _centred(functions: Floats, cells: ErrorSums, constant: bool) -> Floats:
    return np.asarray(functions - cells.share @ functions if constant else functions)


def _judged(sums: MeanSums, functions: Floats, gap: float, constant: bool) -> tuple[float, float]:
    cells, variance, own = sums.cells, spread_of(sums, gap).variance, sums.scatter(gap)
    if not own.any():
        return 1.0, 1.0
    loading = orthonormal_span(_centred(functions, cells, constant), variance)
    terms = (cells.error - gap * cells.weight) @ loading
    value, many = float(terms @ terms), loading.shape[1]
    reach = (loading**2).sum(1)
    fourth = sums.powers(gap)[1] * ratio_or_zero(cells.null2, cells.null2.sum())
    gram = (loading * own[:, None]).T @ loading
    spread = 2 * float((gram**2).sum() - np.minimum(fourth, own**2) @ reach**2)
    least = 2 * LEAST_FORM * many * (1 - 1 / max(sums.effective, 1.0))
    signs = float(_tail(value, float(own @ reach), max(spread, least)))
    return chi_square_tail(value, many, 2.0 * many), signs


def _tail(value: Floats | float, mean: float, variance: float) -> Floats:
    """Return the tail of the scaled chi-square with this mean and variance at values."""
    if not (mean > 0 and variance > 0):
        return np.ones(np.shape(value))
    tail = chdtrc(2 * mean**2 / variance, 2 * mean * np.asarray(value) / variance)
    return np.maximum(tail, LEAST_P)


def _group_test(
    tables: list[tuple[MeanSums, Floats]], gap: float, constant: bool, seed: int
) -> float:
    """Return the p-value from random signs of groups, or from the moments that they have."""
    parts = []
    for sums, functions in tables:
        residual = _residuals(sums, gap)
        cov = _model_covariance(sums, gap, residual)
        columns = _centred(functions, sums.cells, constant)
        columns = columns @ _root(columns.T @ cov @ columns)
        parts.append(residual @ columns)
    signs = np.ones((1, len(parts[0])))
    if len(parts[0]) < FEW_GROUPS:
        drawn = np.random.default_rng(seed).choice([-1.0, 1.0], size=(DRAWS, len(parts[0])))
        signs = np.vstack([signs, drawn])
    found = np.array([_signed(part, signs) for part in parts])
    joined = cauchy(list(found))
    if len(joined) == 1:
        return float(joined[0])
    return float((joined <= joined[0] * (1 + 1e-9)).sum() / len(joined))


def _signed(part: Floats, signs: Floats) -> Floats:
    """Return p-values of a form for signs of groups, by the moments over all signs.

    The first signs are those of the data; residuals about an estimated gap are a little too small.
    """
    lift = len(part) / max(len(part) - 1.0, 1.0)
    size, gram = (part**2).sum(1), part.T @ part
    mean, variance = float(size.sum()), 2 * float((gram**2).sum() - (size**2).sum())
    values = ((signs @ part) ** 2).sum(1)
    values[0] /= lift
    return _tail(values, mean, variance)


def _residuals(sums: MeanSums, gap: Floats | float) -> Floats:
    assert sums.group_error is not None and sums.group_base is not None
    held = sums.group_base.sum(1) > 0
    return np.asarray(sums.group_error - gap * sums.group_base)[held]


def _between_groups(sums: MeanSums, variance: Floats, residual: Floats) -> float:
    """Return the variance of the gaps of groups beyond that of independent rows."""
    assert sums.group_base is not None
    excess = float((residual.sum(1) ** 2).sum() - variance.sum())
    return max(excess, 0.0) / max(float((sums.group_base.sum(1) ** 2).sum()), TINY)


def _model_covariance(sums: MeanSums, gap: float, residual: Floats) -> Floats:
    """Return the covariance of the sums of bins if groups have gaps of their own."""
    assert sums.group_base is not None
    variance = spread_of(sums, gap).variance
    base = sums.group_base
    return np.diag(variance) + _between_groups(sums, variance, residual) * base.T @ base


def _root(matrix: Floats) -> Floats:
    """Return R with R Rᵀ the pseudo-inverse of a matrix."""
    values, vectors = np.linalg.eigh(matrix)
    kept = values > 1e-9 * max(float(values[-1]), TINY)
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]))


def mean_law(bins: MeanSums, *, center: bool = True) -> GapLaw:
    """Return the law of the gaps of bins; with groups, that of their sums (`cluster_law`)."""
    cells, weight = bins.cells, bins.cells.weight
    at = bins.overall if center else 0.0
    own, null = (
        np.diag(ratio_or_zero(spread_of(bins, gap).variance, weight**2)) for gap in (-cells.gap, at)
    )
    share = cells.share
    share_cov = ratio_or_zero(np.diag(share) - np.outer(share, share), cells.effective_n)
    law = GapLaw(cells.gap, share, own, null, share_cov)
    if bins.group_base is not None:
        law = _with_groups(law, bins, at)
    return law.center() if center else law


def _with_groups(law: GapLaw, bins: MeanSums, at: float) -> GapLaw:
    cells, base = bins.cells, bins.group_base
    assert base is not None
    base = base[base.sum(1) > 0]
    groups, part = checked_groups(base.sum(1)), ratio_or_zero(base, cells.weight)
    concentration = (part**2).sum(0)
    many = ratio_or_zero(np.ones(()), concentration)
    null = _residuals(bins, bins.overall)
    between = _between_groups(bins, np.diagonal(law.null_cov) * cells.weight**2, null)
    pooled = between * concentration
    by_group = base / base.sum()
    spread = by_group - law.share * by_group.sum(-1, keepdims=True)
    residual = _residuals(bins, -cells.gap)
    degrees = float((many - 1)[many > 0].sum())
    return replace(
        law,
        cov=_covariance(residual, 1 - part, cells, np.maximum(many - 1, 0), pooled, law.cov),
        null_cov=_covariance(_residuals(bins, at), np.ones(()), cells, many, pooled, law.null_cov),
        share_cov=groups / (groups - 1) * spread.T @ spread,
        df=max(min(degrees, groups - 1.0), LEAST_DEGREES),
    )


def mean_error(
    bins: MeanSums, p_value: float, *, level: float = 0.95, center: bool = True
) -> Measured:
    r"""Return the (uneven) error, with an interval that agrees with the p-value.

    Debiased value and interval are those of the law of the gaps. Both limits are then stretched as
    Student's t, since the variance is estimated from few effective errors, and the upper one is
    moved by :math:`\gamma_+ (2z^2 + 1) / 6` standard errors (Johnson, 1978): of skewed
    outcomes, the rows that would make the error larger are those that were not drawn.
    """
    law = mean_law(bins, center=center)
    noise = float((law.share * law.standard_error).sum())
    unit = SCALE * max(float(law.value), noise) or 1.0
    small = replace(law, gap=law.gap / unit, cov=law.cov / unit**2, null_cov=law.null_cov / unit**2)
    (found,) = LawErrors.of([small]).measured(level)
    z = two_sided_quantile(level)
    sign = -np.tanh(ratio_or_zero(law.gap, law.standard_error))
    se, skew, degrees = _along(bins, sign - law.share @ sign if center else sign)
    stretch = 1.0 if law.in_groups else two_sided_quantile(level, degrees) / z
    middle = found.debiased
    high = middle + (found.high - middle) * stretch
    low = max(middle - (middle - found.low) * stretch, 0.0)
    figures = ("value", "debiased", "noise_floor", "noise_high")
    back = {name: getattr(found, name) * unit for name in figures}
    high = high * unit + max(skew, 0.0) * (2 * z * z + 1) / 6 * se
    high = max(min(high, _most(bins, level, center=center)), found.debiased * unit)
    return with_p(replace(found, **back, low=low * unit, high=high), p_value, level)


def _most(bins: MeanSums, level: float, *, center: bool) -> float:
    """Return the largest error that the intervals of all bins together allow.

    With few effective errors that of the law may be far above it, and above what is possible.
    """
    held, at = bins.cells.weight > 0, bins.overall if center else 0.0
    ends = gap_limits(bins, level=1 - (1 - level) / max(int(held.sum()), 1))
    reach = np.abs(np.array(ends)[:, held] - at).max(axis=0)
    far = max(abs(end - at) for end in overall_limits(bins, level=level)) if center else 0.0
    return float(bins.cells.share[held] @ reach) + far


def _along(bins: MeanSums, sign: Floats) -> tuple[float, float, float]:
    """Return standard error, skewness and degrees of freedom of Σ sign·r / Σm."""
    weight, rows = float(bins.cells.weight.sum()), float(bins.cells.n.sum())
    if bins.group_error is not None:
        each = _residuals(bins, -bins.cells.gap) @ sign
        square, third, fourth = (float((each**k).sum()) for k in (2, 3, 4))
        effective, rows = square**2 / max(fourth, TINY), float(len(each))
    else:
        spread = spread_of(bins, -bins.cells.gap)
        square, third = float(sign**2 @ spread.variance), float(sign**3 @ spread.third)
        effective = bins.effective
    skew = float(np.clip(third / max(square**1.5, TINY), -MOST_SKEW, MOST_SKEW))
    degrees = 2 / max(1 / max(effective, 1.0) - 1 / rows, 1e-12)
    return sqrt(square) / weight, skew, max(degrees, LEAST_DEGREES)


def gap_limits(bins: MeanSums, *, level: float = 0.95) -> tuple[Floats, Floats]:
    """Return limits of −gap of each bin: of A/E − 1, or of the mean of y − μ.

    Standard errors are those of the observed mean, at least half of those of the predicted one: a
    bin without an event is not certain. Limits are those of Student's t, moved by skewness. With
    groups, standard errors are at least those of the groups' sums.
    """
    cells, gap = bins.cells, -bins.cells.gap
    own, null = spread_of(bins, gap), spread_of(bins, bins.overall)
    variance, errors = np.maximum(own.variance, null.variance / 2), own.errors
    rows = float(cells.n.sum())
    if bins.group_base is not None:
        part = ratio_or_zero(bins.group_base, cells.weight)
        many = ratio_or_zero(np.ones(()), (part**2).sum(0))
        lift = ratio_or_zero(many, np.maximum(many - 1, 0.0))
        variance = np.maximum(variance, lift * (_residuals(bins, gap) ** 2).sum(0))
        errors = np.minimum(errors, np.maximum(many - 1, 0.0) / 2)
    limits = [
        _limits(g, sqrt(v), w, third, e, rows, level)
        for g, v, w, third, e in zip(gap, variance, cells.weight, null.third, errors, strict=True)
    ]
    low, high = np.array(limits).T
    return (np.maximum(low, -1.0) if bins.relative and bins.power else low), high


def overall_limits(bins: MeanSums, *, level: float = 0.95) -> tuple[float, float]:
    """Return limits of A/E − 1, or of the mean of y − μ, over all rows.

    The upper limit of A/E is at least that of log A/E: with few large amounts, a small sum also
    has a small standard error.
    """
    se, skew, degrees = _along(bins, np.ones(len(bins.cells.n)))
    if bins.group_error is not None:
        degrees = min(degrees, len(bins.group_error) - 1.0)
    weight, gap = float(bins.cells.weight.sum()), bins.overall
    t = two_sided_quantile(level, degrees)
    low, high = _ends(gap, se * weight, weight, skew * (se * weight) ** 3, t, level)
    if bins.relative and bins.power and 1 + gap > 0:
        reach = t + max(skew, 0.0) * (2 * two_sided_quantile(level) ** 2 + 1) / 6
        high = max(high, (1 + gap) * exp(min(se * reach / (1 + gap), MOST_LOG)) - 1)
        low = max(low, -1.0)
    return low, high


def _limits(
    gap: float, se: float, weight: float, third: float, errors: float, rows: float, level: float
) -> tuple[float, float]:
    degrees = 2 / max(1 / max(errors, 1.0) - 1 / rows, 1e-12)
    t = two_sided_quantile(level, max(degrees, LEAST_DEGREES))
    return _ends(gap, se, weight, third, t, level)


def _ends(
    gap: float, se: float, weight: float, third: float, t: float, level: float
) -> tuple[float, float]:
    if not weight > 0:
        return -np.inf, np.inf
    skew = float(np.clip(third / max(se**3, TINY), -MOST_SKEW, MOST_SKEW))
    move = skew * (2 * two_sided_quantile(level) ** 2 + 1) / 6
    step = se / weight
    return gap - step * max(t - max(move, 0.0), t / 2), gap + step * (t + max(move, 0.0))
