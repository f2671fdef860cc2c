"""Summaries of a numeric array, from which bins are chosen: of all rows, or of a sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import add
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal._input.variables import extremes

#: Up to this many finite values quantiles are exact; beyond, those of a sample.
MOST_EXACT = 4_000_000
#: Finite values in a sample: the share of rows below a quantile is within 0.002 of its level
#: with probability 0.995.
SAMPLE = 500_000
# Rows looked at together where some are not finite.
_CHUNK = 65_536


class ArraySummary:
    """Quantiles and counts of a numeric array, from one sorted copy of it."""

    #: Whether quantiles and counts are those of a sample.
    sampled = False

    def __init__(self, values: AnyArray) -> None:
        ordered = np.sort(values.astype(np.float64, copy=False))  # NaN comes last
        self.n_missing = int(len(ordered) - np.searchsorted(ordered, np.nan))
        self._ordered = ordered[: len(ordered) - self.n_missing]
        ends = (
            np.searchsorted(self._ordered, -np.inf, side="right"),
            np.searchsorted(self._ordered, np.inf),
        )
        self._finite = self._ordered[ends[0] : ends[1]]

    def quantiles(self, levels: Floats) -> Floats:
        """Return linearly interpolated quantiles of the finite values, NaN if there are none.

        As `numpy.quantile` does it, to the bit.
        """
        if not len(self._finite):
            return np.full(len(levels), np.nan)
        position = levels * (len(self._finite) - 1)
        before = np.floor(position).astype(np.intp)
        a, b = self._finite[before], self._finite[np.minimum(before + 1, len(self._finite) - 1)]
        t = position - before
        half = b / 2 - a / 2  # the whole width may be beyond what floats can hold
        return np.where(t >= 0.5, b - half * (2 * (1 - t)), a + half * (2 * t))

    def below(self, value: float) -> int:
        """Return how many rows hold a smaller value."""
        return int(np.searchsorted(self._ordered, value))

    def above(self, value: float) -> int:
        """Return how many rows hold a larger value."""
        return len(self._ordered) - int(np.searchsorted(self._ordered, value, side="right"))

    def above_each(self, values: Floats) -> Ints:
        """Return how many rows hold a larger value, for each of some finite values."""
        return len(self._ordered) - np.searchsorted(self._ordered, values, side="right")

    def count(self, value: float) -> int:
        """Return how many rows hold exactly this value."""
        return len(self._ordered) - self.below(value) - self.above(value)


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


class SampledSummary(ArraySummary):
    """Quantiles and counts of a long numeric array, from a random sample of its rows.

    The smallest and the largest finite value and the numbers of missing and of infinite values
    are those of all rows; a count is 0 only where there is no such row beyond these ends.

    Parameters
    ----------
    values : ndarray
        The numbers.
    ends : Ends
        What is known of all rows.
    """

    sampled = True

    def __init__(self, values: AnyArray, ends: Ends) -> None:
        self.n_missing = ends.n_missing
        self._ends = ends
        wanted = min(-(-SAMPLE * len(values) // ends.n_finite), len(values))
        taken = values.take(_sample_rows(len(values), wanted)).astype(np.float64, copy=False)
        if ends.n_finite < len(values):
            taken = taken[np.isfinite(taken)]
        taken.sort()
        self._finite = np.concatenate([[ends.low], taken, [ends.high]])

    def below(self, value: float) -> int:
        """Return about how many rows hold a smaller value."""
        return self._until(value, "left")

    def above(self, value: float) -> int:
        """Return about how many rows hold a larger value."""
        ends = self._ends
        return ends.n_low + ends.n_finite + ends.n_high - self._until(value, "right")

    def above_each(self, values: Floats) -> Ints:
        """Return about how many rows hold a larger value, for each of some finite values."""
        ends, many = self._ends, len(self._finite)
        below = ends.n_finite * np.searchsorted(self._finite, values, side="right") // many
        return ends.n_finite + ends.n_high - below

    def count(self, value: float) -> int:
        """Return about how many rows hold exactly this value."""
        return self._until(value, "right") - self._until(value, "left")

    def _until(self, value: float, side: Any) -> int:
        """Scale the sample's rows up to a value to all rows."""
        ends, many = self._ends, len(self._finite)
        found = ends.n_finite * int(np.searchsorted(self._finite, value, side=side)) // many
        found += ends.n_low * (value > -np.inf or side == "right")
        return found + ends.n_high * (value == np.inf and side == "right")


def summary_of(values: AnyArray) -> ArraySummary:
    """Summarize an array: exactly if it holds few enough finite values, else by a sample.

    Examples
    --------
    >>> summary_of(np.array([3.0, 1.0, 2.0])).sampled
    False
    """
    if len(values) > MOST_EXACT:
        ends = Ends.of(values)
        if ends.n_finite > MOST_EXACT:
            return SampledSummary(values, ends)
    return ArraySummary(values)


@lru_cache(maxsize=1)
def _sample_rows(n: int, many: int) -> Ints:
    """Return one random row out of each of `many` even stretches of n rows, always the same."""
    place = np.random.default_rng(0).random(many)
    place += np.arange(many)
    place *= n / many
    rows = place.astype(np.intp)
    return np.minimum(rows, n - 1, out=rows)
