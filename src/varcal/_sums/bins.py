"""Bins: which bin each value of a variable falls into, and how bins are named."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import ClassVar

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal._edge_texts import edge_texts, zone_text
from varcal._input.variables import Variable
from varcal.exceptions import InputError

# Cells per cut: a grid that stays in the cache, and one for cuts that are crowded.
_CELLS_PER_CUT = (16, 64)
_MOST_CELLS = 1_000_000
# The largest number of comparisons after a look-up; beyond it, a binary search is faster.
_MOST_STEPS = 6
# Up to this many cuts, comparing all values with each cut is faster still.
_FEW_CUTS = 20


@dataclass(frozen=True, eq=False)
class CutGrid:
    """Increasing cuts, and an even grid over them that gives the first cut to compare with.

    The cell of a value v is ⌊(v − cut₀)·scale⌋, clipped to the grid. Rounding keeps the order of
    values: a cut in an earlier cell is below v, and one in a later cell is not. Only the cuts in
    the cell of v need to be compared with it. With a thousand cuts, `numpy.searchsorted` takes
    five times as long, and an audit of ten million rows 1.4 times as long.

    Attributes
    ----------
    cuts : ndarray of float
        The cuts, and infinity after the last.
    start : ndarray of int
        The number of cuts in the cells before each.
    scale : float
        Cells per unit of the variable.
    steps : int
        The largest number of cuts in a cell, or 0 if a search is faster.
    """

    cuts: Floats
    start: Ints
    scale: float = 0.0
    steps: int = 0

    @classmethod
    def of(cls, cuts: Sequence[float]) -> CutGrid:
        """Make the grid of some cuts.

        Examples
        --------
        >>> CutGrid.of([1.0, 2.0, 4.0]).find(np.array([0.5, 2.0, 3.0, np.inf]))
        array([0, 1, 2, 3])
        """
        ends = np.array([*cuts, np.inf])
        for cells in (min(per_cut * len(ends), _MOST_CELLS) for per_cut in _CELLS_PER_CUT):
            with np.errstate(all="ignore"):
                scale = float((cells - 1) / (ends[-2:][0] - ends[0]))
            if not 0 < scale < np.inf:  # fewer than two cuts, or too large or too small a range
                break
            counts = np.bincount(((ends[:-1] - ends[0]) * scale).astype(np.intp), minlength=cells)
            if counts.max() <= _MOST_STEPS:
                return cls(ends, np.cumsum(counts) - counts, scale, int(counts.max()))
        return cls(ends, np.zeros(1, np.intp))

    def find(self, values: Floats) -> Ints:
        """Return the number of cuts below each value (an arbitrary bin for NaN)."""
        if len(self.cuts) <= _FEW_CUTS:
            below = np.zeros(len(values), np.int8)
            for cut in self.cuts[:-1]:
                below += (values > cut).view(np.int8)
            return below.astype(np.intp)
        if not self.steps:
            return np.searchsorted(self.cuts[:-1], values)
        with np.errstate(invalid="ignore", over="ignore"):
            position = values - self.cuts[0]
            position *= self.scale
            np.minimum(position, len(self.start) - 1, out=position)
            cell = position.astype(np.intp)
        index = self.start.take(cell, mode="clip")  # which is faster than checking
        for _ in range(self.steps):
            index += values > self.cuts.take(index, mode="clip")
        return index


#: The most cells of joint bins, a table of 100 megabytes.
MOST_CELLS = 1_000_000


@dataclass(frozen=True)
class NumericBins:
    """Intervals (a, b] of numbers, instants or durations; the lowest includes its minimum.

    A bin that includes its lower edge, such as [18, 30] or a single value, has its lower cut at
    the floating-point number just below that edge. `starts` holds these edges.

    Attributes
    ----------
    name : str
        The variable.
    cuts : tuple of float
        The inner edges: a value falls into the bin whose number is the number of cuts below it.
    low, high : float
        The outer edges, as shown; values beyond them fall into the end bins. Infinite if only
        infinite values lie beyond a cut; low > high if every value is missing, so that there is
        no bin for values.
    starts : frozenset of float
        Values with a cut just below them.
    missing : bool
        Whether there is a last bin for missing values.
    datetime : bool
        Whether values are seconds since 1970.
    sampled : bool
        Whether the cuts are quantiles of a random sample of the rows. It is ignored when bins
        are compared.
    duration : bool
        Whether values are durations in seconds.
    zone : str
        The time zone in which instants are shown.
    """

    name: str
    cuts: tuple[float, ...]
    low: float
    high: float
    starts: frozenset[float] = frozenset()
    missing: bool = False
    datetime: bool = False
    sampled: bool = field(default=False, compare=False)
    duration: bool = False
    zone: str = ""

    @property
    def size(self) -> int:
        """The number of bins."""
        return (len(self.cuts) + 1) * self._has_values + self.missing

    @property
    def _has_values(self) -> bool:
        return self.low <= self.high

    @cached_property
    def edges(self) -> tuple[float, ...]:
        """All edges as shown, the outer ones included."""
        if not self._has_values:
            return ()
        return (self.low, *(edge for edge, _ in self._shown()), self.high)

    @cached_property
    def edge_array(self) -> Floats:
        """All edges as shown."""
        return np.array(self.edges)

    @cached_property
    def cut_array(self) -> Floats:
        """The cuts."""
        return np.array(self.cuts)

    def _shown(self) -> list[tuple[float, bool]]:
        """Return each cut as shown, and whether the value itself belongs above it."""
        above = np.nextafter(self.cuts, np.inf).tolist()
        return [
            (value, True) if value in self.starts else (cut, False)
            for cut, value in zip(self.cuts, above, strict=True)
        ]

    def index(self, variable: Variable, rows: slice = slice(None)) -> Ints:
        """Return the bin of each row."""
        values = variable.values[rows].astype(np.float64, copy=False)
        index = self.grid.find(values)
        # The minimum is NaN if any value is; computing it is faster than a mask of all values.
        if len(values) and np.isnan(values.min()):
            absent = np.isnan(values)
            _check_missing(self.missing, self.name, absent)
            index[absent] = self.size - 1
        if not self._has_values and not np.isnan(values).all():
            raise InputError(
                f"variable {self.name!r} has values, but its bins are for missing values only",
                "choose the bins from data in which the variable has values",
            )
        return index

    @cached_property
    def grid(self) -> CutGrid:
        """The cuts, prepared for finding the bins of values."""
        return CutGrid.of(self.cuts)

    def labels(self) -> list[str]:
        """Name the bins for people."""
        missing = ["missing"] if self.missing else []
        if not self._has_values:
            return missing
        if self.low == -np.inf and self.high == np.inf and not self.cuts:
            return ["not finite", *missing]
        edges = self.edges
        shown = edge_texts(edges, datetime=self.datetime, duration=self.duration, zone=self.zone)
        holds_a = [True, *(above for _, above in self._shown())]
        starts_b = [*holds_a[1:], False]
        texts = []
        for k, (a, b) in enumerate(pairwise(shown)):
            if edges[k] == edges[k + 1]:
                texts.append(a)
            else:
                texts.append(f"{'[' if holds_a[k] else '('}{a}, {b}{')' if starts_b[k] else ']'}")
        return [text + zone_text(self.zone) for text in texts] + missing


@dataclass(frozen=True)
class LevelBins:
    """One bin per level; rare levels share a bin, and missing values have their own.

    Attributes
    ----------
    name : str
        The variable.
    levels : tuple
        The levels with a bin of their own.
    pooled : tuple
        The levels that share the bin "other".
    missing : bool
        Whether there is a last bin for missing values.
    open : bool
        Whether the bin "other" also takes levels that are not known yet.
    """

    name: str
    levels: tuple[Hashable, ...]
    pooled: tuple[Hashable, ...] = ()
    missing: bool = False
    open: bool = False

    sampled: ClassVar[bool] = False

    @property
    def size(self) -> int:
        """The number of bins."""
        return len(self.levels) + self.has_other + self.missing

    @property
    def has_other(self) -> bool:
        """Whether there is a bin "other"."""
        return self.open or bool(self.pooled)

    def index(self, variable: Variable, rows: slice = slice(None)) -> Ints:
        """Return the bin of each row."""
        position = {level: k for k, level in enumerate(self.levels)}
        position |= dict.fromkeys(self.pooled, len(self.levels))
        other = len(self.levels) if self.has_other else None
        lookup = np.array(
            [position.get(level, -2 if other is None else other) for level in variable.levels]
            + [self.size - 1],
            dtype=np.intp,
        )
        codes = variable.values[rows]
        index: Ints = lookup[codes]
        if (index == -2).any():
            unseen = variable.levels[codes[(index == -2).argmax()]]
            raise InputError(
                f"variable {self.name!r} has a level without a bin: {unseen!r}",
                "choose the bins from data with every level",
            )
        if not self.missing:
            _check_missing(False, self.name, codes < 0)
        return index

    def labels(self) -> list[str]:
        """Name the bins for people."""
        texts = [str(level) for level in self.levels]
        if len(set(texts)) < len(texts):  # such as 1 and "1"
            texts = [repr(level) for level in self.levels]
        if self.has_other:
            known = f"other ({len(self.pooled)} levels)"
            texts.append(_unused(texts, "other" if self.open else known))
        return texts + ([_unused(texts, "missing")] if self.missing else [])


@dataclass(frozen=True)
class JointBins:
    """Every combination of the bins of two or more variables."""

    parts: tuple[NumericBins | LevelBins, ...]

    def __post_init__(self) -> None:
        if self.size > MOST_CELLS:
            raise InputError(
                f"v has {self.size:,} joint bins, more than {MOST_CELLS:,}",
                "give fewer columns, or a smaller n_bins",
                argument="v",
            )

    @property
    def sampled(self) -> bool:
        """Whether the cuts of any part come from a sample of the rows."""
        return any(part.sampled for part in self.parts)

    @property
    def name(self) -> str:
        """The names of the variables."""
        return " × ".join(part.name for part in self.parts)

    @property
    def size(self) -> int:
        """The number of bins."""
        return math.prod(part.size for part in self.parts)

    def labels(self) -> list[str]:
        """Name the bins for people."""
        texts = [""]
        for part in self.parts:
            texts = [f"{a} × {b}" if a else b for a in texts for b in part.labels()]
        return texts


Bins = NumericBins | LevelBins | JointBins


def joint_index(bins: Bins, variables: Sequence[Variable], rows: slice = slice(None)) -> Ints:
    """Return the bin of each row, for one variable or several."""
    if not isinstance(bins, JointBins):
        return bins.index(variables[0], rows)
    index = bins.parts[0].index(variables[0], rows)
    for part, variable in zip(bins.parts[1:], variables[1:], strict=True):
        index = index * part.size + part.index(variable, rows)
    return index


def coarse_index(fine: Bins, coarse: Bins) -> Ints:
    """Return the coarse bin that contains each fine bin."""
    if fine is coarse or fine == coarse:
        return np.arange(coarse.size)
    assert isinstance(fine, NumericBins) and isinstance(coarse, NumericBins)
    index = np.searchsorted(coarse.cut_array, fine.cut_array, side="right")
    return np.concatenate([[0], index, [coarse.size - 1] * fine.missing]).astype(np.intp)


def _unused(texts: Sequence[str], text: str) -> str:
    """Return the text, in parentheses if a level has the same one."""
    while text in texts:
        text = f"({text})"
    return text


def _check_missing(has_bin: bool, name: str, absent: Bools) -> None:
    if not has_bin and absent.any():
        raise InputError(
            f"variable {name!r} has missing values, but its bins have none for them",
            "choose the bins from data with missing values",
        )
