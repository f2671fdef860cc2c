"""Measured: the debiased error with its interval, from the sampling law of the plug-in value."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from varcal._arrays import Bools, Floats, ratio_or_zero
from varcal._inference.gap_law import GapLaw, plug_in_mean, plug_in_moments
from varcal._inference.multiplicity import cauchy, student_quantile

#: How many standard errors are added to the absolute gaps to get the shape of the debiased value,
#: and over how many standard deviations above the null mean it is faded in.
SHAPE_SHIFT, FADE = -0.5, 1.2
#: Without the overall gap the value fades in from so many standard deviations above the null mean
#: to one more; what smaller parts add, from the second number on.
CENTERED_FROM, SMALLER_FROM = 1.2, 1.7
#: Standard errors by which absolute gaps are shrunk in the sparse shape of the lower limit.
SPARSE_SHIFT = 2.0
#: The least absolute gap, in standard errors, in the dense shape of the upper limit.
DENSE_FLOOR = 0.5
#: With groups, the sign of a gap below this many standard errors is not taken from the data.
UNCLEAR = 1.0
#: How often all unclear signs are chosen anew, given the others.
ROUNDS = 3
#: Points of each nested grid that solves an equation, and the number of grids.
GRID_POINTS, GRIDS = 17, 4
#: For the upper limit, T is at least this many standard deviations below its mean without a gap.
LUCK = 1.0
T = TypeVar("T")
#: Bins of all classes together for which one law is computed; its matrices have their square.
MOST_CELLS = 2_000
#: Where a test rejects although the plug-in value is mostly noise, the test found a trend that is
#: smaller than the bins can show: an error above 0 and no more. The debiased value is then at least
#: this part of the plug-in value, and the lower limit this part of the debiased value. A limit
#: from the p-value, as that of a normal estimate, was tried: it covered 87 to 92 % at a fault of
#: 10 points in the last tenth of the rows.
LEAST_PART = 1e-3


def debiased(law: GapLaw) -> Floats:
    r"""Return the error without its bias, which is upward because noise adds to absolute values.

    Along a shape :math:`r_b \propto (|g_b| - \tfrac12 se_b)_+`, :math:`\sum \pi r = 1`, solve
    :math:`T = \sum_b \pi_b\, \mathrm{E}|\theta r_b + se_b Z|` for :math:`\theta`. The result
    is 0 if the plug-in T is at most its mean :math:`m_0` without a gap, and is faded in above it,
    :math:`\theta \min(1, (T - m_0) / 1.2 s_0)`.

    Once the average is taken off, the truth is often near 0, and most of T is noise. Noise is
    smaller where gaps are averaged over larger parts (`GapLaw.nested`), and the error over parts is
    at most that over cells. So :math:`\theta` of the largest parts comes first, with
    :math:`r_b \propto |g_b|`, and what smaller ones add is faded in by how far their differences
    from the larger ones exceed noise.

    Examples
    --------
    >>> from varcal._inference.error_sums import ErrorSums
    >>> rng = np.random.default_rng(1)
    >>> s = rng.uniform(0.2, 0.8, 2000)
    >>> h = rng.random(2000) < s
    >>> law = GapLaw.from_cells(ErrorSums.from_rows(np.arange(2000) % 10, s, h, n_bins=10))
    >>> bool(law.value > 0.015), bool(debiased(law) < 0.01)
    (True, True)
    """
    if law.centered:
        return _nested(law)
    theta = _size(law, SHAPE_SHIFT)
    excess, noisy = _excess(law)
    return np.asarray(np.where(noisy, theta * np.clip(excess / FADE, 0.0, 1.0), law.value))


def _nested(law: GapLaw) -> Floats:
    """Return the debiased error over ever smaller parts, each faded in by its own evidence."""
    value, before = np.zeros_like(law.value), np.zeros_like(law.cov)
    noisy = np.zeros(law.value.shape, dtype=bool)
    for step, means in enumerate(law.nested()):
        excess, varies = _excess(law.turned(means - before))
        faded = np.clip(excess - (SMALLER_FROM if step else CENTERED_FROM), 0.0, 1.0)
        value = value + np.maximum(_size(law.turned(means)) - value, 0.0) * faded
        noisy, before = noisy | varies, means
    return np.asarray(np.where(noisy, value, law.value))


def _size(law: GapLaw, shift: float = 0.0) -> Floats:
    """Return the error whose plug-in value is T on average, along the shape of the gaps."""
    shape = _shape(law, np.maximum(np.abs(law.gap) + shift * law.standard_error, 0.0))
    return _solve(lambda theta: plug_in_mean(law, shape, theta), law.value)


def _excess(law: GapLaw) -> tuple[Floats, Bools]:
    """Return by how many standard deviations T exceeds its mean without a gap, if it varies."""
    flat = np.zeros((*law.value.shape, 1))
    mean, sd, _ = plug_in_moments(law, np.zeros_like(law.gap), flat)
    return ratio_or_zero(law.value - mean[..., 0], sd[..., 0]), sd[..., 0] > 0


def interval(
    law: GapLaw, level: float = 0.95, middle: Floats | None = None
) -> tuple[Floats, Floats]:
    r"""Return a confidence interval for the error over these bins.

    The sampling law of the plug-in T has the mean :math:`\mu(\theta, r)`, the standard deviation
    :math:`\sigma(\theta, r)` (including that of the shares of the bins) and a skewness. It is
    inverted along a sparse shape, :math:`r \propto (|g| - 2se)_+`, for the lower limit, and along
    a dense one, :math:`r \propto \max(|g|, \tfrac12 se)`, for the upper limit. The lower limit is
    0 unless T exceeds the same quantile of its law without a gap. For the upper limit, T is
    replaced by its mean without a gap minus one standard deviation if it is below that, so that
    the interval is not too short when T happens to be small.

    With groups, bins vary together, and how much T varies depends on the signs of their gaps. The
    dense shape has signs for which T varies most (`_dense_shape`), and for the lower limit T
    varies at least as much as along that shape.

    Examples
    --------
    >>> from varcal._inference.error_sums import ErrorSums
    >>> rng = np.random.default_rng(1)
    >>> s = rng.uniform(0.2, 0.8, 2000)
    >>> h = rng.random(2000) < s - 0.1
    >>> law = GapLaw.from_cells(ErrorSums.from_rows(np.arange(2000) % 10, s, h, n_bins=10))
    >>> low, high = interval(law)
    >>> bool(low < 0.1 < high)
    True
    """
    middle = debiased(law) if middle is None else middle
    return lower_limit(law, level, middle), upper_limit(law, level, middle)


def lower_limit(law: GapLaw, level: float, middle: Floats) -> Floats:
    """Return the lower end of `interval`; `middle` is the debiased value."""
    sparse = np.maximum(np.abs(law.gap) - SPARSE_SHIFT * law.standard_error, 0.0)
    shapes = [_shape(law, sparse), *([_dense_shape(law)] if law.in_groups else [])]
    low = _limit(law, level, shapes, 1.0, law.value)
    low = np.where(law.value <= noise_floor(law, level=(1 + level) / 2)[1], 0.0, low)
    return np.asarray(np.minimum(low, middle))


def upper_limit(law: GapLaw, level: float, middle: Floats) -> Floats:
    """Return the upper end of `interval`; `middle` is the debiased value."""
    flat = np.zeros_like(law.gap)
    mean, sd, _ = plug_in_moments(law, flat, np.zeros((*law.value.shape, 1)))
    least = np.maximum(law.value, (mean - LUCK * sd)[..., 0])
    high = _limit(law, level, [_dense_shape(law)], -1.0, least)
    if law.centered:
        # Gaps lie in [−1, 1], and what is left of that of a bin with nearly all rows is balanced
        # by the few others.
        share = law.by_side(law.share)
        high = np.minimum(high, 4 * (share.sum(-1) - share.max(-1)).sum(-1))
    return np.asarray(np.maximum(high, middle))


def _limit(
    law: GapLaw, level: float, shapes: Sequence[Floats], side: float, value: Floats
) -> Floats:
    """Return the size along a shape of which `value` is a quantile.

    T varies as along that of the shapes for which it varies most. Only the lower limit counts that
    bins that vary together make T skewed, because a lower quantile of T so skewed is not known.
    """
    z = law.quantile(level)

    def quantile(theta: Floats) -> Floats:
        mean, sd, skew = plug_in_moments(law, shapes[0], theta, shared=side > 0)
        for other in shapes[1:]:
            _, more, its_skew = plug_in_moments(law, other, theta, shared=side > 0)
            sd, skew = np.maximum(sd, more), np.where(more > sd, its_skew, skew)
        return mean + (side * z + (z * z - 1) * skew / 6) * sd

    return _solve(quantile, value)


def _dense_shape(law: GapLaw) -> Floats:
    r"""Return the shape with no bin below half a standard error.

    If bins vary together (groups), signs of unclear gaps that noise has chosen do not fit the
    correlations, and T would seem to vary too little. They are chosen one after the other such
    that :math:`\operatorname{Var} \sum_b \pi_b \sigma_b g_b` is largest.
    """
    shape = _shape(law, np.maximum(np.abs(law.gap), DENSE_FLOOR * law.standard_error))
    if not law.in_groups:
        return shape
    own = np.where(shape < 0, -1.0, 1.0)
    z = ratio_or_zero(np.abs(law.gap), law.standard_error)
    clear = (z >= UNCLEAR) | (z >= z.max(-1, keepdims=True))
    weight = law.share * law.standard_error
    pull = weight[..., :, None] * law.correlation * weight[..., None, :]
    sign = np.where(clear, own, 0.0)
    for _ in range(ROUNDS):
        for b in range(sign.shape[-1]):
            total = (pull[..., b, :] * sign).sum(-1)
            chosen = np.where(total == 0, own[..., b], np.sign(total))
            sign[..., b] = np.where(clear[..., b], own[..., b], chosen)
    return np.asarray(np.abs(shape) * sign)


def _shape(law: GapLaw, size: Floats) -> Floats:
    """Scale sizes of gaps to mean 1 and add signs; use only the clearest bin if all are 0."""
    z = ratio_or_zero(np.abs(law.gap), law.standard_error)
    alone = (law.share > 0) * (z >= z.max(-1, keepdims=True)) * 1.0
    size = np.where((law.share * size).sum(-1, keepdims=True) > 0, size, alone)
    size = ratio_or_zero(size, (law.share * size).sum(-1, keepdims=True))
    return np.asarray(np.where(law.gap < 0, -size, size))


def _solve(function: Callable[[Floats], Floats], target: Floats) -> Floats:
    """Find where an increasing function on [0, 1] first reaches its target, by nested grids."""
    low, width = np.zeros((*target.shape, 1)), np.ones((*target.shape, 1))
    unit = np.linspace(0, 1, GRID_POINTS)
    for _ in range(GRIDS):
        grid = low + width * unit
        value = function(grid)
        reached = value >= target[..., None]
        index = np.where(reached.any(-1), reached.argmax(-1), GRID_POINTS - 1)[..., None]
        before = np.maximum(index - 1, 0)
        low, width = np.take_along_axis(grid, before, -1), width / (GRID_POINTS - 1)
    start, stop = (np.take_along_axis(value, i, -1) for i in (before, index))
    share = np.clip(ratio_or_zero(target[..., None] - start, stop - start), 0.0, 1.0)
    return np.asarray((low + width * share)[..., 0])


def noise_floor(law: GapLaw, *, level: float = 0.95) -> tuple[Floats, Floats]:
    r"""Return mean and quantile of the plug-in error if there were no gap at all.

    The mean is :math:`\sqrt{2/\pi} \sum_b \pi_b\, se_{0b}`, the quantile a Cornish–Fisher one.

    Parameters
    ----------
    law : GapLaw
        Gaps and their covariance under the null.
    level : float
        Level of the quantile.

    Examples
    --------
    >>> from varcal._inference.error_sums import ErrorSums
    >>> s = np.full(2000, 0.5)
    >>> cells = ErrorSums.from_rows(np.arange(2000) // 200, s, np.arange(2000) % 2, n_bins=10)
    >>> mean, high = noise_floor(GapLaw.from_cells(cells))
    >>> round(float(mean), 4), round(float(high), 4)
    (0.0282, 0.0399)
    """
    blank = replace(law, gap=0 * law.gap, cov=law.null_cov, centered=False)
    moments = plug_in_moments(blank, np.zeros_like(law.gap), np.zeros((*law.value.shape, 1)))
    mean, sd, skew = (moment[..., 0] for moment in moments)
    z = student_quantile(level, law.df)
    return mean, mean + (z + (z * z - 1) * skew / 6) * sd


@dataclass(frozen=True)
class Measured:
    """A mean absolute gap with its uncertainty.

    Attributes
    ----------
    value : float
        The plug-in value, which is biased upwards.
    debiased : float
        The true value for which the plug-in would have this value on average.
    low, high : float
        The interval.
    p_value : float
        The p-value of the hypothesis that the true value is 0.
    noise_floor, noise_high : float
        Mean and 95 % quantile of the plug-in value of a perfect model with the same number of
        rows.
    within : bool
        Whether the gap also changes within bins: debiased value and interval are then over finer
        cells, the plug-in value and the noise floor over the bins.
    """

    value: float
    debiased: float
    low: float
    high: float
    p_value: float
    noise_floor: float
    noise_high: float
    within: bool = False


@dataclass(frozen=True, eq=False)
class LawErrors:
    """The errors of several laws; those of one kind with equally many bins share one computation.

    Attributes
    ----------
    places : tuple of list of int
        Which laws are alike.
    laws : tuple of GapLaw
        Those laws as one.
    """

    places: tuple[list[int], ...]
    laws: tuple[GapLaw, ...]

    @classmethod
    def of(cls, laws: Sequence[GapLaw]) -> LawErrors:
        """Put laws together."""
        alike: dict[tuple[object, ...], list[int]] = {}
        for place, law in enumerate(laws):
            key = (law.gap.shape[-1], law.df, law.dependence, law.centered, law.sides, law.ordered)
            alike.setdefault(key, []).append(place)
        stacked = (GapLaw.stack([laws[place] for place in places]) for places in alike.values())
        return cls(tuple(alike.values()), tuple(stacked))

    @cached_property
    def _middles(self) -> list[Floats]:
        return [debiased(law) for law in self.laws]

    def measured(self, level: float) -> list[Measured]:
        """Measure each error."""
        pairs = zip(self.laws, self._middles, strict=True)
        return self._in_order([_measured(law, level, middle) for law, middle in pairs])

    def low(self, level: float) -> list[float]:
        """Return the lower limit of each error."""
        pairs = zip(self.laws, self._middles, strict=True)
        return self._in_order([lower_limit(law, level, middle).tolist() for law, middle in pairs])

    def high(self, level: float) -> list[float]:
        """Return the upper limit of each error."""
        pairs = zip(self.laws, self._middles, strict=True)
        return self._in_order(
            [np.minimum(upper_limit(law, level, middle), 1.0).tolist() for law, middle in pairs]
        )

    def _in_order(self, found: Sequence[Sequence[T]]) -> list[T]:
        places = [place for each in self.places for place in each]
        values = [value for each in found for value in each]
        by_place = dict(zip(places, values, strict=True))
        return [by_place[place] for place in range(len(places))]


def measure_classes(laws: Sequence[GapLaw], level: float, *, same_bins: bool) -> Measured:
    """Measure the mean over classes of the mean absolute gap, from one law per class.

    With very many classes the ends of the interval are means over classes, which is conservative.
    """
    errors = LawErrors.of(laws)
    if len(laws) > 1 and sum(law.gap.shape[-1] for law in laws) > MOST_CELLS:
        parts = np.array([list(vars(one).values()) for one in errors.measured(level)])
        return Measured(*parts.mean(axis=0).tolist()[:-1])
    if len(laws) > 1:
        errors = LawErrors.of([GapLaw.of_classes(laws, same_bins=same_bins)])
    return errors.measured(level)[0]


def over_bins(finer: Measured, bins: Measured, *, changes: bool = True) -> Measured:
    """Return an error over finer cells with the plug-in value and noise floor of the bins.

    The error over bins is at most that over finer cells: its lower limit holds, too. Where the gap
    only may change within bins, the upper limit alone is that over finer cells.
    """
    if not changes:
        return replace(bins, high=max(finer.high, bins.high))
    low, middle = (max(getattr(finer, x), getattr(bins, x)) for x in ("low", "debiased"))
    return replace(bins, debiased=middle, low=low, high=max(finer.high, middle), within=True)


def _measured(law: GapLaw, level: float, middle: Floats) -> list[Measured]:
    low, high = interval(law, level, middle)
    columns = [law.value, middle, low, np.minimum(high, 1.0), *noise_floor(law)]
    return [
        Measured(value, best, start, end, math.nan, floor, floor_high)
        for value, best, start, end, floor, floor_high in np.stack(columns, axis=-1).tolist()
    ]


def with_p(measured: Measured, p_value: float, level: float) -> Measured:
    r"""Return a measured error with its p-value, and an interval that agrees with it.

    The lower limit is 0 if the p-value is at least :math:`\alpha = 1 - \text{level}`. If the
    p-value is smaller and the lower limit was 0, it becomes a thousandth of the debiased value: the
    error is above 0, and nothing is known about how far. Therefore ``low > 0`` if and only if
    ``p_value < 1 - level``. The only exception is a plug-in value of exactly 0, whose interval
    starts at 0 in any case. If the p-value is NaN (not tested), the interval stays as it is.

    Examples
    --------
    >>> found = Measured(0.03, 0.02, 0.0, 0.05, math.nan, 0.01, 0.02)
    >>> with_p(found, 0.2, 0.95).low, with_p(found, 0.001, 0.95).low
    (0.0, 2e-05)
    """
    alpha = 1 - level
    if math.isnan(p_value):
        return replace(measured, p_value=p_value)
    if p_value >= alpha:
        return replace(measured, p_value=p_value, low=0.0)
    middle = max(measured.debiased, LEAST_PART * measured.value)
    low = measured.low if measured.low > 0 else LEAST_PART * middle
    return replace(
        measured, p_value=p_value, debiased=middle, low=low, high=max(measured.high, middle)
    )


def with_p_of_classes(
    mean: Measured, classes: Sequence[Measured], p_values: Sequence[float], level: float
) -> Measured:
    r"""Return the mean error over classes with a combined p-value, and an interval that agrees.

    One class that is far off makes the combined p-value small, although the mean over classes is
    mostly noise. The mean is at least the error of any of the K classes divided by K, so that the
    lower limit is at least the largest lower limit of a class, at the level
    :math:`1 - \alpha / K`, divided by K. If that is 0 too and the combined p-value is below
    :math:`\alpha`, the limit is `LEAST_PART` of the debiased value.

    Parameters
    ----------
    mean : Measured
        The mean error over classes.
    classes : sequence of Measured
        The error of each class, at the level :math:`1 - \alpha / K`.
    p_values : sequence of float
        The p-value of each class.
    level : float
        The level of the interval.
    """
    many = len(classes)
    if many == 1:
        return with_p(mean, p_values[0], level)
    p_value = float(cauchy([np.array(p) for p in p_values]))
    strict = 1 - (1 - level) / many
    lows = [with_p(one, p, strict).low for one, p in zip(classes, p_values, strict=True)]
    low = max(mean.low, max(lows) / many, LEAST_PART * max(mean.debiased, LEAST_PART * mean.value))
    middle = max(mean.debiased, low)
    return with_p(
        replace(mean, low=low, debiased=middle, high=max(mean.high, middle)), p_value, level
    )
