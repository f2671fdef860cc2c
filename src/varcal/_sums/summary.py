"""Summaries of a numeric column, from which bins are chosen: of all rows, or of a sample.

Exact quantiles of a column that is not in memory take one more pass over its rows. The sample says
about where each quantile lies; the pass counts the rows between brackets around these places and
keeps the distinct values inside them (`Ranks`), so that the ranks of all values in brackets are
known.
"""

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

    def _at(self, ranks: Ints) -> Floats:
        return self._sample[ranks]

    def _below(self, values: Floats, equal: bool) -> Ints:
        ends = self._ends
        found = np.searchsorted(self._sample, values, side="right" if equal else "left")
        found = np.maximum(ends.n_finite * found // len(self._sample), values > ends.low)
        return np.minimum(found, ends.n_finite - (values < ends.high))


class RecordedSummary(SampledSummary):
    """A sample that notes which quantiles and counts it is asked for."""

    def __init__(self, other: SampledSummary) -> None:
        self.__dict__.update(other.__dict__)
        self._levels: list[float] = [0.0, 1.0]

    def quantiles(self, levels: Floats) -> Floats:
        """Return quantiles, and note their levels."""
        self._levels += levels.tolist()
        return super().quantiles(levels)

    def _below(self, values: Floats, equal: bool) -> Ints:
        found = super()._below(values, equal)
        self._levels += (found / self._ends.n_finite).tolist()
        return found

    def brackets(self, reach: float) -> Floats:
        """Return the ends of disjoint brackets around what was asked for.

        Half of a bracket is `reach` standard errors of the sample's rank wide.
        """
        many = len(self._sample) - 2
        if not many:
            return np.array([self._ends.low, self._ends.high])
        level = np.unique(np.clip(self._levels, 0.0, 1.0))
        half = reach * np.sqrt(level * (1 - level) / many) + reach / many
        low = super().quantiles(np.maximum(level - half, 0.0))
        high = super().quantiles(np.minimum(level + half, 1.0))
        first = np.append(True, low[1:] > np.maximum.accumulate(high)[:-1])
        last = np.append(np.flatnonzero(first)[1:] - 1, len(high) - 1)
        return np.column_stack([low[first], np.maximum.accumulate(high)[last]]).ravel()


@dataclass(frozen=True, eq=False)
class Ranks:
    """Rows before, between and after brackets, and the values inside; `a + b` joins two batches.

    `held` has one pair of arrays per batch: distinct values inside brackets, and their rows.
    """

    outside: Ints
    held: tuple[tuple[Floats, Ints], ...]

    @classmethod
    def of(cls, values: AnyArray, brackets: Floats) -> Ranks:
        """Count the values of a batch outside of brackets, and keep those inside."""
        values = values[np.isfinite(values)].astype(np.float64, copy=False)
        bracket = np.searchsorted(brackets[1::2], values)
        inside = values >= np.append(brackets[::2], np.inf)[bracket]
        outside = np.bincount(bracket[~inside], minlength=len(brackets) // 2 + 1)
        return cls(outside, (np.unique(values[inside], return_counts=True),))

    def __add__(self, other: Ranks) -> Ranks:
        return Ranks(self.outside + other.outside, self.held + other.held)


class MissedError(Exception):
    """A rank lies outside all brackets."""


class RankedSummary(ArraySummary):
    """Exact quantiles and counts of a column at the places that brackets cover.

    Parameters
    ----------
    ranks : Ranks
        What the pass found.
    brackets : ndarray of shape (2k,)
        The ends of the brackets, in increasing order.
    ends : Ends
        What is known of all rows.
    """

    def __init__(self, ranks: Ranks, brackets: Floats, ends: Ends) -> None:
        self._ends, self.n_missing, self._n_ordered = ends, ends.n_missing, ends.n_finite
        self._low, self._high = brackets[::2], brackets[1::2]
        parts = [np.concatenate(each) for each in zip(*ranks.held, strict=True)]
        self._values, place = np.unique(parts[0], return_inverse=True)
        many = np.bincount(place.ravel(), parts[1], len(self._values)).astype(np.intp)
        self._outside = np.cumsum(ranks.outside)
        self._inside = np.concatenate([[0], np.cumsum(many)])
        before = self._outside[np.searchsorted(self._high, self._values)]
        self._first, self._until = before + self._inside[:-1], before + self._inside[1:]

    @property
    def n_rows(self) -> int:
        """The number of rows with a finite value that the pass has seen."""
        return int(self._outside[-1] + self._inside[-1])

    def _at(self, ranks: Ints) -> Floats:
        place = np.searchsorted(self._until, ranks, side="right")
        place = np.minimum(place, len(self._values) - 1)
        if ((ranks < self._first[place]) | (ranks >= self._until[place])).any():
            raise MissedError
        return self._values[place]

    def _below(self, values: Floats, equal: bool) -> Ints:
        bracket = np.searchsorted(self._high, values)
        low = np.append(self._low, np.inf)
        beyond = (values < self._ends.low) | (values > self._ends.high)
        if (~beyond & (values < low[bracket])).any():
            raise MissedError
        place = np.searchsorted(self._values, values, side="right" if equal else "left")
        return self._outside[bracket] + self._inside[place]


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
