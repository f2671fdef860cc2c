"""Exact quantiles of columns that are not in memory, by one more pass over their rows.

A sample says about where each quantile lies. The pass counts the rows between brackets around
these places and keeps the distinct values inside them, so that the ranks of all values in
brackets are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from varcal._arrays import Floats, Ints
from varcal._input.events import claim_of
from varcal._input.labels import Part
from varcal._sums.protocol import LazyRows, batch_columns
from varcal._sums.roles import Roles, rows_numbered_from
from varcal._sums.summary import ArraySummary, Ends, SampledSummary
from varcal.exceptions import InputError

#: Half-width of a bracket, in standard errors of the sample's rank. A quantile outside its
#: bracket (once in some 10⁶) costs one more pass with wider brackets, never exactness.
REACH = 5.0
#: By how much brackets grow if one has missed its quantile, and the most passes: the brackets of
#: the last hold all rows.
WIDER, MOST_PASSES = 16.0, 8

#: A numeric column: the name of a variable, or the key of a claim for its score.
Column = str | int


@dataclass(frozen=True, eq=False)
class Ranks:
    """Rows between brackets, and the values inside with how often each comes.

    `counts` and `values` run over 2k + 1 stretches of the axis: outside, inside, outside, … of
    the k brackets; `values` are kept inside only, a pair of arrays per batch. `a + b` joins two
    batches.
    """

    counts: tuple[int, ...]
    values: tuple[tuple[tuple[Floats, Ints], ...], ...]

    def __add__(self, other: Ranks) -> Ranks:
        return Ranks(
            tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)),
            tuple(a + b for a, b in zip(self.values, other.values, strict=True)),
        )


@dataclass(frozen=True, eq=False)
class Found:
    """The ranks of several columns; `a + b` joins two batches."""

    columns: dict[Column, Ranks]

    def __add__(self, other: Found) -> Found:
        joined = {name: ranks + other.columns[name] for name, ranks in self.columns.items()}
        return Found(joined or other.columns)


@dataclass(frozen=True)
class RankPass:
    """The work on one batch: count rows between brackets and keep the values inside."""

    roles: Roles
    part: Part
    brackets: dict[Column, Floats]
    row_numbers_known: bool = True

    def __call__(self, frame: Any, start: int) -> Found:
        """Look at the rows of a batch."""
        with rows_numbered_from(start if self.row_numbers_known else None):
            rows = self.roles.read(batch_columns(frame), part=self.part)
        held = {one.name: one.values for one in rows.variables}
        found = {}
        for name, ends in self.brackets.items():
            values = held[name] if isinstance(name, str) else claim_of(rows, name).score
            found[name] = _ranks(values.astype(np.float64, copy=False), ends)
        return Found(found)


class MissedError(Exception):
    """A rank lies outside all brackets."""


class BracketSummary(ArraySummary):
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
        self._brackets = brackets
        before = np.cumsum([0, *ranks.counts])
        self._stretches = []
        for k, parts in enumerate(ranks.values):
            values, many = _joined(parts)
            self._stretches.append((int(before[2 * k + 1]), values, np.cumsum(many)))

    def _at(self, ranks: Ints) -> Floats:
        last = self._ends.n_finite - 1
        return np.array(
            [
                self._ends.low
                if rank <= 0
                else self._ends.high
                if rank >= last
                else self._one(rank)
                for rank in ranks.tolist()
            ]
        )

    def _one(self, rank: int) -> float:
        for before, values, until in self._stretches:
            if len(until) and before <= rank < before + until[-1]:
                return float(values[np.searchsorted(until, rank - before, side="right")])
        raise MissedError

    def _below(self, values: Floats, equal: bool) -> Ints:
        return np.array([self._count(value, equal) for value in values.tolist()], dtype=np.intp)

    def _count(self, value: float, equal: bool) -> int:
        ends = self._ends
        if value > ends.high or (equal and value == ends.high):
            return ends.n_finite
        if value < ends.low or (not equal and value == ends.low):
            return 0
        k = int(np.searchsorted(self._brackets[1::2], value))
        if k == len(self._stretches) or value < self._brackets[2 * k]:
            raise MissedError
        before, held, until = self._stretches[k]
        place = int(np.searchsorted(held, value, side="right" if equal else "left"))
        return before + (int(until[place - 1]) if place else 0)


class _Recorder(SampledSummary):
    """A sample that notes which quantiles and counts it is asked for."""

    def __init__(self, other: SampledSummary) -> None:
        self.__dict__.update(other.__dict__)
        self.levels: list[float] = [0.0, 1.0]

    def quantiles(self, levels: Floats) -> Floats:
        self.levels += levels.tolist()
        return super().quantiles(levels)

    def _below(self, values: Floats, equal: bool) -> Ints:
        found = super()._below(values, equal)
        self.levels += (found / self._ends.n_finite).tolist()
        return found


def exact_summaries(
    rows: LazyRows,
    roles: Roles,
    part: Part,
    samples: dict[Column, SampledSummary],
    choose: Callable[[Column, ArraySummary], object],
) -> dict[Column, ArraySummary]:
    """Return summaries that answer exactly what the choice of bins asks for.

    Parameters
    ----------
    rows, roles, part
        The rows, their columns, and what is known of all of them.
    samples : dict of SampledSummary
        What a sample says of each column.
    choose : callable
        Chooses the bins of a column from its summary; it is tried on the sample first.
    """
    recorded = {}
    for name, sample in samples.items():
        recorder = _Recorder(sample)
        choose(name, recorder)
        recorded[name] = recorder
    reach = REACH
    for _ in range(MOST_PASSES):
        brackets = {name: _brackets(one, reach) for name, one in recorded.items()}
        work = RankPass(roles, part, brackets, rows.row_numbers_known)
        found = reduce(add, rows.map(roles.columns, work), Found({}))
        for name, one in recorded.items():
            if name not in found.columns or sum(found.columns[name].counts) != one.ends.n_finite:
                raise InputError(
                    "data has other rows in each pass over it",
                    "let them be written down before they are read, or omit edges",
                    argument="data",
                )
        exact: dict[Column, ArraySummary] = {
            name: BracketSummary(found.columns[name], brackets[name], one.ends)
            for name, one in recorded.items()
        }
        try:
            for name, summary in exact.items():
                choose(name, summary)
        except MissedError:
            reach *= WIDER
            continue
        return exact
    raise AssertionError("the widest brackets hold every row")


def _brackets(sample: _Recorder, reach: float) -> Floats:
    """Return disjoint brackets around the quantiles of some levels, as their ends."""
    many = sample.n_sampled
    if not many:
        return np.array([sample.ends.low, sample.ends.high])
    level = np.unique(np.clip(sample.levels, 0.0, 1.0))
    half = reach * np.sqrt(level * (1 - level) / many) + reach / many
    low = SampledSummary.quantiles(sample, np.maximum(level - half, 0.0))
    high = SampledSummary.quantiles(sample, np.minimum(level + half, 1.0))
    ends: list[float] = []
    for a, b in zip(low.tolist(), high.tolist(), strict=True):
        if ends and a <= ends[-1]:
            ends[-1] = max(ends[-1], b)
        else:
            ends += [a, b]
    return np.array(ends)


def _ranks(values: Floats, ends: Floats) -> Ranks:
    values = values[np.isfinite(values)]
    # An odd number of ends below or at a value: it lies inside a bracket, its ends included.
    stretch = np.searchsorted(ends, values, side="left")
    stretch += (stretch % 2 == 0) & np.isin(values, ends[::2])
    counts = np.bincount(stretch, minlength=len(ends) + 1)
    inside = [np.unique(values[stretch == k], return_counts=True) for k in range(1, len(ends), 2)]
    return Ranks(tuple(counts.tolist()), tuple((pair,) for pair in inside))


def _joined(parts: Sequence[tuple[Floats, Ints]]) -> tuple[Floats, Ints]:
    """Join the distinct values of all batches, and how often each comes."""
    values, place = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
    many = np.bincount(place, np.concatenate([part[1] for part in parts]), len(values))
    return values, many.astype(np.intp)
