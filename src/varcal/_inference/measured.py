"""Measured: a mean absolute gap over bins with its bias, interval and noise floor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from varcal._arrays import Floats
from varcal._inference.cluster_law import cluster_law
from varcal._inference.debias import debiased, interval, lower_limit, noise_floor, upper_limit
from varcal._inference.error_sums import ErrorSums
from varcal._inference.gap_law import GapLaw
from varcal._inference.multiplicity import cauchy
from varcal._sums.stats import FIELDS, BinnedStats

T = TypeVar("T")

#: Bins of all classes together for which one law is computed; its matrices have their square.
MOST_CELLS = 2_000


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

    def _check_saved(self) -> None:
        """Raise ValueError unless the figures are shares, or missing."""
        if any(abs(figure) > 1e3 for figure in vars(self).values()):
            raise ValueError("a figure is too large for an error")


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


def over_bins(finer: Measured, bins: Measured) -> Measured:
    """Return an error over finer cells with the plug-in value and noise floor of the bins.

    The error over bins is at most that over finer cells: its lower limit holds, too.
    """
    low, middle = (max(getattr(finer, x), getattr(bins, x)) for x in ("low", "debiased"))
    return replace(bins, debiased=middle, low=low, high=max(finer.high, middle), within=True)


def _measured(law: GapLaw, level: float, middle: Floats) -> list[Measured]:
    low, high = interval(law, level, middle)
    columns = [law.value, middle, low, np.minimum(high, 1.0), *noise_floor(law)]
    return [
        Measured(value, best, start, end, math.nan, floor, floor_high)
        for value, best, start, end, floor, floor_high in np.stack(columns, axis=-1).tolist()
    ]


def gap_law(stats: BinnedStats) -> GapLaw:
    """Return the law of the gaps of bins.

    With groups, variances come from the sums of buckets of groups (`cluster_law`).
    """
    if stats.sums.shape[1] == 1:
        return GapLaw.from_cells(error_sums(stats))
    return cluster_law(error_sums_by_bucket(stats))


def error_sums(stats: BinnedStats) -> ErrorSums:
    """Return the sums of a table over all buckets, in the form that tests need."""
    return _sums(stats.sums.sum(axis=1))


def error_sums_by_bucket(stats: BinnedStats) -> ErrorSums:
    """Return the sums of a table with a first axis for buckets of groups."""
    return _sums(stats.sums)


def error_sums_of(tables: Sequence[BinnedStats]) -> ErrorSums:
    """Return the sums of several tables over the same bins, with a first axis for the tables."""
    return _sums(np.stack([stats.sums.sum(axis=1) for stats in tables], axis=1))


def _sums(sums: Floats) -> ErrorSums:
    field = dict(zip(FIELDS, sums, strict=True))
    field["error"] = field["hit"] - field["score"]
    field["error2"] = field["hit2"] - field["score2"]
    return ErrorSums(**{name: field[name] for name in ErrorSums.__dataclass_fields__})


#: Where a test rejects although the plug-in value is mostly noise, the test found a trend that is
#: smaller than the bins can show: an error above 0 and no more. The debiased value is then at least
#: this part of the plug-in value, and the lower limit this part of the debiased value. A limit
#: from the p-value, as that of a normal estimate, was tried: it covered 87 to 92 % at a fault of
#: 10 points in the last tenth of the rows.
LEAST_PART = 1e-3


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
