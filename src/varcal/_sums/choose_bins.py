"""Choice of bins: edges of numeric variables, and levels with a bin of their own.

Edges are chosen from a summary of a column: of all rows, or of a sample. Exact quantiles of a
column that is not in memory take one more pass over its rows. The sample says about where each
quantile lies; the pass counts the rows between brackets around these places and keeps the distinct
values inside them (`Ranks`), so that the ranks of all values in brackets are known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from operator import add
from typing import Any, NotRequired, TypedDict

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal._input.dates import with_dates
from varcal._input.variables import Variable, extremes, warn_if_merged
from varcal._options import check_choice, check_n_bins
from varcal._sums.bins import Bins, JointBins, LevelBins, NumericBins
from varcal.exceptions import InputError

#: The most variables that are binned jointly.
MOST_JOINT = 16


class Default:
    """A default, which collected statistics override; a value that a user gives must be theirs."""


class _DefaultInt(Default, int):
    """A default number."""


class _DefaultStr(Default, str):
    """A default string."""

    __slots__ = ()


#: The defaults of options of bins.
N_BINS = _DefaultInt(10)
QUANTILE = _DefaultStr("quantile")
ATOMS = _DefaultStr("atoms")


class BinOptions(TypedDict):
    """How rows are binned."""

    n_bins: int
    binning: str
    bins: object
    edges: str | None
    whole: NotRequired[tuple[str, ...]]


#: A level with less than 1/RARE_LEVEL of the rows of an average bin is pooled with others: gaps
#: of so few rows say little, and a variable may have thousands of such levels.
RARE_LEVEL = 10
#: Beside frequent values with bins of their own, the other values get at least this many bins if
#: n_bins allows: with fewer, a change of the gap among them would not be seen.
LEAST_OTHER_BINS = 4

#: Finite values in a sample: the share of rows below a quantile is within 0.002 of its level
#: with probability 0.995.
SAMPLE = 500_000
# Rows looked at together where some are not finite.
_CHUNK = 65_536

SCHEMES = ("quantile", "uniform", "atoms")
EDGES = ("exact", "sampled")


def choose_bins(
    variables: Sequence[Variable],
    *,
    n_bins: int = 10,
    binning: str = "quantile",
    bins: object = None,
    edges: str | None = None,
    whole: Collection[str] = (),
) -> Bins:
    """Choose bins for one variable, or joint bins for several.

    Parameters
    ----------
    variables : sequence of Variable
        At least one.
    n_bins : int
        The number of bins of each numeric variable. Levels with less than 1/(10 n_bins) of the
        rows are pooled.
    binning : {"quantile", "uniform", "atoms"}
        How numeric variables are cut.
    bins : sequence or dict of sequences, optional
        Cut points: a sequence for a single variable, or a dict by name.
    edges : {"exact", "sampled"}, optional
        Quantiles of all rows, which is the default, or of a random sample of many rows.
    whole : collection of str
        Variables whose rare levels are not pooled.
    """
    check_cut_names(bins, variables)
    if len(variables) > MOST_JOINT:
        raise InputError(
            f"v has {len(variables)} variables, and at most {MOST_JOINT} can be binned jointly",
            "give fewer columns; audit() judges each of many",
            argument="v",
        )
    how = (n_bins, binning, bins, edges, whole)
    parts = tuple(fine_bins(variable, *how)[0] for variable in variables)
    return parts[0] if len(parts) == 1 else JointBins(parts)


def fine_bins(
    variable: Variable,
    n_bins: int = 10,
    binning: str = "quantile",
    bins: object = None,
    edges: str | None = None,
    whole: Collection[str] = (),
    *,
    n_fine: int = 0,
    summary: Summary | None = None,
    fine_summary: Summary | None = None,
    counts: tuple[Ints, int] | None = None,
) -> tuple[NumericBins | LevelBins, NumericBins | LevelBins]:
    """Choose the bins of a variable, and finer ones (for curves) that keep all their cuts.

    For rows that are not in memory, `summary` stands for their numbers (`fine_summary` for the
    finer bins, which need not be exact), or `counts` has the rows of each level and those missing.
    """
    check_n_bins(n_bins)
    check_choice("binning", binning, SCHEMES)
    if edges is not None:
        check_choice("edges", edges, EDGES)
    warn_if_merged(variable)
    cuts = cut_points(bins, variable.name)
    if variable.kind != "levels":
        by_rows = cuts is None and binning != "uniform"
        if summary is None and not by_rows and not n_fine:
            summary = _ends_only(variable.values)
        elif summary is None:
            values = variable.values
            summary = _sampled_summary(values) if edges == "sampled" else Summary.of(values)
        coarse = numeric_bins(variable, summary, n_bins=n_bins, scheme=binning, cuts=cuts)
        # Given cuts, and even ones between the ends, do not depend on a sample.
        coarse = replace(coarse, sampled=summary.sampled and by_rows)
        if not n_fine:
            return coarse, coarse
        if fine_summary is None:
            fine_summary = summary
        fine = refine(coarse, fine_summary, n_fine)
        return coarse, replace(fine, sampled=fine_summary.sampled)
    if cuts is not None:
        raise InputError(
            f"bins gives cut points for {variable.name!r}, which has levels",
            "cut points are for numeric and datetime variables",
            argument="bins",
        )
    if counts is None:
        present = variable.values[variable.values >= 0]
        by_level = np.bincount(present, minlength=len(variable.levels))
        counts = by_level, len(variable) - len(present)
    rare = 0.0 if variable.name in whole else 1 / (RARE_LEVEL * n_bins)
    levels = level_bins(variable, *counts, rare=rare)
    return levels, levels


def check_cut_names(bins: object, variables: Sequence[Any]) -> None:
    """Refuse cut points for an unknown variable, and a single list for several variables."""
    known = [variable.name for variable in variables]
    if isinstance(bins, Mapping):
        for name in bins:
            if name not in known:
                raise InputError.no_column(str(name), known, "bins")
    elif bins is not None and len(known) > 1:
        raise InputError(
            f"bins is a single list of cut points for {len(known)} variables",
            f"give them by name, such as bins={{{known[0]!r}: […]}}",
            argument="bins",
        )


def cut_points(bins: object, name: str) -> Sequence[Any] | None:
    """Return the cut points that the option `bins` gives for a variable, if any."""
    if isinstance(bins, Mapping):
        bins = bins.get(name)
    if bins is None:
        return None
    if isinstance(bins, str | int | float) or not hasattr(bins, "__len__"):
        raise InputError(
            f"bins must be a list of cut points for {name!r}; got {bins!r}",
            "give a list such as bins=[18, 30, 65], or a dict of such lists by variable; "
            "use n_bins= for the number of bins",
            argument="bins",
        )
    return bins  # type: ignore[return-value]


def _ends_only(values: AnyArray) -> Summary:
    """Summarize numbers by their ends: all that given cuts and bins of equal width depend on."""
    ends = Ends.of(values)
    if not ends.n_finite:
        return Summary.of(values)
    return Summary(np.array([ends.low, ends.high]), ends, sampled=True)


def numeric_bins(
    variable: Variable,
    summary: Summary,
    *,
    n_bins: int,
    scheme: str = "quantile",
    cuts: Sequence[Any] | None = None,
) -> NumericBins:
    """Choose the edges of numbers, instants or durations.

    Parameters
    ----------
    variable : Variable
        Only its name, its kind and its time zone are used.
    summary : Summary
        Quantiles and counts of the column.
    n_bins : int
        The number of bins; ties may leave fewer.
    scheme : {"quantile", "uniform", "atoms"}
        Equal support, with the edges of `pandas.qcut(duplicates="drop")`; equal width; or a bin
        of its own for each value with at least 1/n_bins of the rows, and quantiles for the rest.
    cuts : sequence, optional
        Edges to use instead. The lowest belongs to its bin; end bins are added only if rows lie
        outside.
    """
    like = NumericBins(
        variable.name,
        (),
        0.0,
        0.0,
        missing=summary.n_missing > 0,
        datetime=variable.kind == "datetime",
        duration=variable.kind == "duration",
        zone=variable.zone,
    )
    if cuts is not None:
        inner, low, high, starts = _given_cuts(variable, summary, cuts)
        return replace(like, cuts=inner, low=low, high=high, starts=starts)
    levels = support_levels(n_bins) if scheme == "quantile" else np.array([0.0, 1.0])
    quantiles = summary.quantiles(levels)
    if np.isnan(quantiles).any():  # no finite value: infinities, or none at all
        far = np.inf if summary.below(np.array([np.inf]), equal=True)[0] else -np.inf
        return replace(like, low=-far, high=far)
    low, high = float(quantiles[0]), float(quantiles[-1])
    atoms: list[float] = []
    if scheme == "atoms":
        inner, atoms = _atom_cuts(summary, n_bins, low, high)
    else:
        # Halves, because the width of the widest range would overflow.
        edges = (
            quantiles if scheme == "quantile" else 2 * np.linspace(low / 2, high / 2, n_bins + 1)
        )
        edges = np.unique(edges)
        inner = tuple(float(edge) for edge in edges[1:-1])
    return replace(like, cuts=inner, low=low, high=high, starts=frozenset(atoms))


def support_levels(n_bins: int) -> Floats:
    """Return the levels 0, 1/n_bins, …, 1 of equal support, bit for bit as in pandas.

    pandas moves a level to the next float above if n_bins · level is not a whole number.
    """
    levels = np.linspace(0, 1, n_bins + 1)
    off = n_bins * levels != np.arange(n_bins + 1)
    return np.where(off, np.nextafter(levels, 1), levels)


def refine(bins: NumericBins, summary: Summary, n_bins: int) -> NumericBins:
    """Split bins into about n_bins bins of equal support, keeping every cut.

    A quantile is skipped if there would be no row between it and an existing cut.
    """
    wanted = summary.quantiles(np.linspace(0, 1, n_bins + 1))[1:-1]
    wanted = np.unique(wanted[np.isfinite(wanted) & (wanted < bins.high)])
    old = np.array(bins.cuts)
    left = summary.above(wanted)
    new = wanted[(left > 0) & ~np.isin(left, summary.above(old))]
    return replace(bins, cuts=tuple(sorted({*bins.cuts, *new.tolist()})))


def level_bins(variable: Variable, counts: Ints, n_missing: int, *, rare: float = 0.0) -> LevelBins:
    """Give each level a bin, and pool the rare ones.

    Parameters
    ----------
    variable : Variable
        Only its name and its levels are used.
    counts : ndarray
        Rows of each level.
    n_missing : int
        Rows without a level.
    rare : float
        Levels with less than this share of all rows share a bin if there are two or more.
    """
    floor = rare * (int(counts.sum()) + n_missing)
    pooled = tuple(
        level
        for level, count in zip(variable.levels, counts, strict=True)
        if count < floor or count == 0
    )
    if len(pooled) < 2:
        pooled = ()
    rest = set(pooled)
    kept = tuple(level for level in variable.levels if level not in rest)
    return LevelBins(variable.name, kept, pooled, n_missing > 0 or not variable.levels)


def _atom_cuts(
    summary: Summary, n_bins: int, low: float, high: float
) -> tuple[tuple[float, ...], list[float]]:
    # A value with 1/n_bins of the rows covers at least one of these levels.
    grid = summary.quantiles(np.linspace(0, 1, 2 * n_bins + 1))
    total = int(summary.below(np.array([np.inf]), equal=True)[0])
    values = np.unique(grid)
    share = dict(zip(values.tolist(), (summary.count(values) / total).tolist(), strict=True))
    atoms = [value for value, part in share.items() if part >= 1 / n_bins and part < 1]
    if not atoms:
        edges = np.unique(summary.quantiles(support_levels(n_bins)))
        return tuple(float(edge) for edge in edges[1:-1]), atoms
    rest = 1 - sum(share[value] for value in atoms)
    least = min(LEAST_OTHER_BINS, n_bins - len(atoms))
    wanted = max(round(rest * n_bins), least, 1) if rest > 0 else 0
    cuts = {float(np.nextafter(atom, -np.inf)) for atom in atoms} | set(atoms)
    cuts |= set(_quantiles_without(summary, atoms, wanted, total))
    return tuple(sorted(cut for cut in cuts if low <= cut < high)), atoms


def _quantiles_without(
    summary: Summary, atoms: list[float], n_bins: int, total: int
) -> list[float]:
    """Return the inner quantiles of the rows that hold none of the given values."""
    below, counts = (each(np.array(atoms)) / total for each in (summary.below, summary.count))
    spans = sorted(zip(below.tolist(), counts.tolist(), strict=True))
    rest = 1 - sum(part for _, part in spans)
    levels = []
    for level in np.linspace(0, 1, n_bins + 1)[1:-1] * rest if n_bins else ():
        for start, part in spans:
            level += part if level > start else 0.0
        levels.append(level)
    return [float(edge) for edge in summary.quantiles(np.array(levels))] if levels else []


def _given_cuts(
    variable: Variable, summary: Summary, cuts: Sequence[Any]
) -> tuple[tuple[float, ...], float, float, frozenset[float]]:
    given = with_dates(Variable.of(cuts, variable.name, "bins"))
    edges = given.values.astype(np.float64)
    if given.kind != variable.kind or not len(edges):
        raise InputError(
            f"bins for {variable.name!r} must be {variable.kind} cut points; got {cuts!r}",
            "give a list in increasing order",
            argument="bins",
        )
    if not np.isfinite(edges).all():
        raise InputError(
            f"bins for {variable.name!r} must be finite; got {cuts!r}",
            "remove the others: rows beyond the cuts, and missing values, get their own bins",
            argument="bins",
        )
    if (np.diff(edges) <= 0).any():
        raise InputError(
            f"bins for {variable.name!r} must increase; got {list(cuts)!r}",
            "sort them and remove duplicates",
            argument="bins",
        )
    first, last = float(edges[0]), float(edges[-1])
    low, high = (float(edge) for edge in summary.quantiles(np.array([0.0, 1.0])))
    inner = [float(edge) for edge in edges[1:-1]]
    starts: frozenset[float] = frozenset()
    if summary.below(edges[:1])[0]:
        inner.insert(0, float(np.nextafter(first, -np.inf)))
        starts = frozenset([first])
        low = low if low < first else -np.inf
    else:
        low = first
    if not summary.above(edges[-1:])[0]:
        high = last
    else:
        high = high if high > last else np.inf
        inner += [last] * (len(edges) > 1)
    return tuple(inner), low, high, starts


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


class Summary:
    """Quantiles and counts of a numeric column, from all its rows or from a sample of them.

    Of a sample, the smallest and the largest finite value and the numbers of missing and of
    infinite values are those of all rows; a count is 0 only where there is no such row beyond
    these ends. Quantiles and counts that are asked for are noted (`brackets`).

    Parameters
    ----------
    finite : ndarray
        The finite values, in any order.
    ends : Ends
        What is known of all rows.
    sampled : bool
        Whether the values are those of a sample.
    """

    def __init__(self, finite: AnyArray, ends: Ends, *, sampled: bool = False) -> None:
        self._ends, self.sampled, self.n_missing = ends, sampled, ends.n_missing
        self._ordered = np.sort(finite).astype(np.float64, copy=False)
        if sampled:
            self._ordered = np.concatenate([[ends.low], self._ordered, [ends.high]])
        self._n_ordered = len(self._ordered)
        self._asked: list[Floats] = [np.array([0.0, 1.0])]

    @classmethod
    def of(cls, values: AnyArray) -> Summary:
        """Summarize all values of a column; missing ones are NaN."""
        ends = Ends.of(values)
        return cls(values if ends.n_finite == len(values) else values[np.isfinite(values)], ends)

    def quantiles(self, levels: Floats) -> Floats:
        """Return linearly interpolated quantiles of the finite values, NaN if there are none.

        As `numpy.quantile` does it, to the bit.
        """
        if not self._n_ordered:
            return np.full(len(levels), np.nan)
        self._asked.append(levels)
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

    def below(self, values: Floats, *, equal: bool = False) -> Ints:
        """Return how many rows hold a smaller value than each of some, or at most this one."""
        ends = self._ends
        found = np.zeros(len(values), np.intp)
        if ends.n_finite:
            finite = self._below(values, equal)
            self._asked.append(finite / ends.n_finite)
            found += finite
        found += ends.n_low * ((values > -np.inf) | equal)
        return found + ends.n_high * ((values == np.inf) & equal)

    def above(self, values: Floats) -> Ints:
        """Return how many rows hold a larger value than each of some."""
        ends = self._ends
        return ends.n_low + ends.n_finite + ends.n_high - self.below(values, equal=True)

    def count(self, values: Floats) -> Ints:
        """Return how many rows hold exactly each of some values."""
        return self.below(values, equal=True) - self.below(values)

    def _at(self, ranks: Ints) -> Floats:
        return self._ordered[ranks]

    def _below(self, values: Floats, equal: bool) -> Ints:
        ends = self._ends
        found = np.searchsorted(self._ordered, values, side="right" if equal else "left")
        if not self.sampled:
            return found
        found = np.maximum(ends.n_finite * found // self._n_ordered, values > ends.low)
        return np.minimum(found, ends.n_finite - (values < ends.high))

    def brackets(self, reach: float) -> Floats:
        """Return the ends of disjoint brackets around what a sample was asked for.

        Half of a bracket is `reach` standard errors of the sample's rank wide.
        """
        many = self._n_ordered - 2
        if not many:
            return np.array([self._ends.low, self._ends.high])
        level = np.unique(np.clip(np.concatenate(self._asked), 0.0, 1.0))
        half = reach * np.sqrt(level * (1 - level) / many) + reach / many
        low = self.quantiles(np.maximum(level - half, 0.0))
        high = self.quantiles(np.minimum(level + half, 1.0))
        del self._asked[-2:]
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


class RankedSummary(Summary):
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
        super().__init__(np.zeros(0), ends)
        self._n_ordered = ends.n_finite
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


def _sampled_summary(values: AnyArray) -> Summary:
    """Summarize an array by a sample of its rows if it is long."""
    ends = Ends.of(values)
    if ends.n_finite <= SAMPLE:
        return Summary.of(values)
    wanted = min(-(-SAMPLE * len(values) // ends.n_finite), len(values))
    taken = values.take(_sample_rows(len(values), wanted)).astype(np.float64, copy=False)
    return Summary(taken[np.isfinite(taken)], ends, sampled=True)


@lru_cache(maxsize=1)
def _sample_rows(n: int, many: int) -> Ints:
    """Return one random row out of each of `many` even stretches of n rows, always the same."""
    place = np.random.default_rng(0).random(many)
    place += np.arange(many)
    place *= n / many
    rows = place.astype(np.intp)
    return np.minimum(rows, n - 1, out=rows)
