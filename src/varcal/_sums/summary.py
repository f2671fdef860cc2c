"""Summaries of a numeric array, from which bins are chosen: of all rows, or of a sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import add

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal._input.variables import extremes

#: Finite values in a sample: the share of rows below a quantile is within 0.002 of its level
#: with probability 0.995.
SAMPLE = 500_000
# Rows looked at together where some are not finite.
_CHUNK = 65_536


@dataclass(frozen=True)
class Ends:
    """The finite ends of a numeric column, and how many rows are missing or infinite."""

    low: float = np.inf
    high: float = -np.inf
    n_finite: int = 0
    n_missing: int = 0
    n_low: int = 0
    n_high: int = 0

    @classmethod
    def of(cls, values: AnyArray) -> Ends:
        """Look at numbers."""
        if not len(values):
            return cls()
        low, high = (float(end) for end in extremes(values))
        if np.isfinite(low) and np.isfinite(high):  # NaN would be in both
            return cls(low, high, len(values))
        if len(values) > _CHUNK:
            starts = range(0, len(values), _CHUNK)
            return reduce(add, (cls.of(values[start : start + _CHUNK]) for start in starts))
        held = values[np.isfinite(values)]
        return cls(
            float(held.min(initial=np.inf)),
            float(held.max(initial=-np.inf)),
            len(held),
            int(np.isnan(values).sum()),
            int((values == -np.inf).sum()),
            int((values == np.inf).sum()),
        )

    def __add__(self, other: Ends) -> Ends:
        return Ends(
            min(self.low, other.low),
            max(self.high, other.high),
            self.n_finite + other.n_finite,
            self.n_missing + other.n_missing,
            self.n_low + other.n_low,
            self.n_high + other.n_high,
        )


class ArraySummary:
    """Exact quantiles and counts of a numeric array.

    Parameters
    ----------
    values : ndarray
        The numbers; missing ones are NaN.
    """

    #: Whether quantiles and counts are those of a sample.
    sampled = False

    def __init__(self, values: AnyArray) -> None:
        self._ends = ends = Ends.of(values)
        self.n_missing = ends.n_missing
        self._n_ordered = ends.n_finite
        finite = values if ends.n_finite == len(values) else values[np.isfinite(values)]
        if ends.n_finite:
            self._ordered = np.sort(finite).astype(np.float64, copy=False)

    def quantiles(self, levels: Floats) -> Floats:
        """Return linearly interpolated quantiles of the finite values, NaN if there are none.

        As `numpy.quantile` does it, to the bit.
        """
        if not self._n_ordered:
            return np.full(len(levels), np.nan)
        last = self._n_ordered - 1
        position = levels * last
        before = np.floor(position).astype(np.intp)
        found = self._at(np.concatenate([before, np.minimum(before + 1, last)]))
        a, b = found[: len(levels)], found[len(levels) :]
        t = position - before
        with np.errstate(over="ignore", invalid="ignore"):
            width = b - a
            near = np.where(t >= 0.5, b - width * (1 - t), a + width * t)
            half = b / 2 - a / 2  # the whole width may be beyond what floats can hold
            far = np.where(t >= 0.5, b - half * (2 * (1 - t)), a + half * (2 * t))
        return np.where(np.isfinite(width), near, far)

    def below(self, value: float) -> int:
        """Return how many rows hold a smaller value."""
        return int(self._up_to(np.array([value]), equal=False)[0])

    def above(self, value: float) -> int:
        """Return how many rows hold a larger value."""
        return int(self.above_each(np.array([value]))[0])

    def above_each(self, values: Floats) -> Ints:
        """Return how many rows hold a larger value, for each of some values."""
        ends = self._ends
        return ends.n_low + ends.n_finite + ends.n_high - self._up_to(values, equal=True)

    def count(self, value: float) -> int:
        """Return how many rows hold exactly this value."""
        return int(self.count_each(np.array([value]))[0])

    def count_each(self, values: Floats) -> Ints:
        """Return how many rows hold exactly each of some values."""
        return self._up_to(values, equal=True) - self._up_to(values, equal=False)

    def _up_to(self, values: Floats, *, equal: bool) -> Ints:
        """Return how many rows hold a smaller value, or at most this one."""
        ends = self._ends
        found = np.zeros(len(values), np.intp)
        if ends.n_finite:
            found += self._below(values, equal)
        found += ends.n_low * ((values > -np.inf) | equal)
        return found + ends.n_high * ((values == np.inf) & equal)

    def _at(self, ranks: Ints) -> Floats:
        return self._ordered[ranks]

    def _below(self, values: Floats, equal: bool) -> Ints:
        return np.searchsorted(self._ordered, values, side="right" if equal else "left")


class SampledSummary(ArraySummary):
    """Quantiles and counts of a long numeric column, from a random sample of its rows.

    The smallest and the largest finite value and the numbers of missing and of infinite values
    are those of all rows; a count is 0 only where there is no such row beyond these ends.

    Parameters
    ----------
    sample : ndarray
        Finite values of the sampled rows.
    ends : Ends
        What is known of all rows.
    """

    sampled = True

    def __init__(self, sample: Floats, ends: Ends) -> None:
        self._ends = ends
        self.n_missing = ends.n_missing
        self._sample = np.concatenate([[ends.low], np.sort(sample), [ends.high]])
        self._n_ordered = len(self._sample)

    @property
    def ends(self) -> Ends:
        """What is known of all rows."""
        return self._ends

    @property
    def n_sampled(self) -> int:
        """Rows of the sample."""
        return len(self._sample) - 2

    def _at(self, ranks: Ints) -> Floats:
        return self._sample[ranks]

    def _below(self, values: Floats, equal: bool) -> Ints:
        ends = self._ends
        found = np.searchsorted(self._sample, values, side="right" if equal else "left")
        found = np.maximum(ends.n_finite * found // len(self._sample), values > ends.low)
        return np.minimum(found, ends.n_finite - (values < ends.high))


def summary_of(values: AnyArray, *, sampled: bool = False) -> ArraySummary:
    """Summarize an array: exactly, or if asked and it is long by a sample of its rows.

    Examples
    --------
    >>> summary_of(np.array([3.0, 1.0, 2.0])).sampled
    False
    """
    if not sampled or len(values) <= SAMPLE:
        return ArraySummary(values)
    ends = Ends.of(values)
    if ends.n_finite <= SAMPLE:
        return ArraySummary(values)
    wanted = min(-(-SAMPLE * len(values) // ends.n_finite), len(values))
    taken = values.take(_sample_rows(len(values), wanted)).astype(np.float64, copy=False)
    if ends.n_finite < len(values):
        taken = taken[np.isfinite(taken)]
    return SampledSummary(taken, ends)


@lru_cache(maxsize=1)
def _sample_rows(n: int, many: int) -> Ints:
    """Return one random row out of each of `many` even stretches of n rows, always the same."""
    place = np.random.default_rng(0).random(many)
    place += np.arange(many)
    place *= n / many
    rows = place.astype(np.intp)
    return np.minimum(rows, n - 1, out=rows)
