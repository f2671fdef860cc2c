"""Bins: the only place where an edge or a level is chosen."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from varcal._binning.cut_grid import CutGrid
from varcal._input.variables import Variable
from varcal._options import check_choice, check_n_bins
from varcal._text.edges import edge_texts
from varcal._text.edges import show_instant as show_instant
from varcal._text.edges import show_number as show_number
from varcal.exceptions import InputError

SCHEMES = ("quantile", "uniform", "atoms")
#: The most cells that joint bins may have.
MAX_CELLS = 1_000_000


class NumberSummary(Protocol):
    """What an engine must be able to say of a numeric column, so that bins can be chosen."""

    n_missing: int

    def quantiles(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return linearly interpolated quantiles of the finite values."""

    def count(self, value: float) -> int:
        """Return how many rows hold exactly this value."""

    def below(self, value: float) -> int:
        """Return how many rows hold a smaller value."""

    def above(self, value: float) -> int:
        """Return how many rows hold a larger value."""


@dataclass(frozen=True)
class NumericBins:
    """Intervals (a, b] of a numeric or datetime variable; the lowest includes its minimum.

    A bin that starts with a value, as [18, 30] or one value alone, has its lower cut at the
    floating-point number just below that value; `starts` remembers such values.

    Attributes
    ----------
    name : str
        The variable.
    cuts : tuple of float
        The inner edges: row v falls in bin #{cut < v}.
    low, high : float
        The outer edges, as shown; values beyond them go to the end bins. Infinite where only
        infinities lie beyond a cut; low > high where every value is missing, which leaves no
        bin for values.
    starts : frozenset of float
        Values with a cut just below them.
    missing : bool
        Whether there is a last bin for missing values.
    datetime : bool
        Whether values are seconds since 1970.
    sampled : bool
        Whether the cuts are quantiles of a random sample of the rows instead of all. It plays
        no part in whether two bins are equal.
    """

    name: str
    cuts: tuple[float, ...]
    low: float
    high: float
    starts: frozenset[float] = frozenset()
    missing: bool = False
    datetime: bool = False
    sampled: bool = field(default=False, compare=False)

    @property
    def size(self) -> int:
        """The number of bins."""
        return (len(self.cuts) + 1) * self._has_values + self.missing

    @property
    def _has_values(self) -> bool:
        return self.low <= self.high

    @property
    def edges(self) -> tuple[float, ...]:
        """All edges as shown, the outer ones included."""
        if not self._has_values:
            return ()
        return (self.low, *(edge for edge, _ in self._shown()), self.high)

    def _shown(self) -> list[tuple[float, bool]]:
        """Return each cut as shown, and whether the value itself belongs above it."""
        above = [float(np.nextafter(cut, np.inf)) for cut in self.cuts]
        return [
            (value, True) if value in self.starts else (cut, False)
            for cut, value in zip(self.cuts, above, strict=True)
        ]

    def index(self, variable: Variable, rows: slice = slice(None)) -> NDArray[np.intp]:
        """Return the bin of each row."""
        values = variable.values[rows].astype(np.float64, copy=False)
        index = self.grid.find(values)
        # One NaN makes the minimum NaN, which is found faster than by looking at each.
        if len(values) and np.isnan(values.min()):
            absent = np.isnan(values)
            _need_missing(self.missing, self.name, absent)
            index[absent] = self.size - 1
        if not self._has_values and not np.isnan(values).all():
            raise InputError(
                f"variable {self.name!r} has values, and its bins are for missing ones only",
                "make the bins on data that hold values",
            )
        return index

    @cached_property
    def grid(self) -> CutGrid:
        """The cuts, ready for finding the bins of values."""
        return CutGrid.of(self.cuts)

    def labels(self) -> list[str]:
        """Name the bins for people."""
        missing = ["missing"] if self.missing else []
        if not self._has_values:
            return missing
        if self.low == -np.inf and self.high == np.inf and not self.cuts:
            return ["not finite", *missing]
        shown = edge_texts(self.edges, datetime=self.datetime)
        holds_a = [True, *(above for _, above in self._shown())]
        starts_b = [*holds_a[1:], False]
        texts = []
        for k, (a, b) in enumerate(pairwise(shown)):
            if self.edges[k] == self.edges[k + 1]:
                texts.append(a)
            else:
                texts.append(f"{'[' if holds_a[k] else '('}{a}, {b}{')' if starts_b[k] else ']'}")
        return texts + missing


@dataclass(frozen=True)
class LevelBins:
    """One bin a level; rare levels share one; missing values have their own.

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
        Whether levels that are not known yet share the bin "other", too.
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
        """Whether there is a bin that levels share."""
        return self.open or bool(self.pooled)

    def index(self, variable: Variable, rows: slice = slice(None)) -> NDArray[np.intp]:
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
        index: NDArray[np.intp] = lookup[codes]
        if (index == -2).any():
            unseen = variable.levels[codes[(index == -2).argmax()]]
            raise InputError(
                f"variable {self.name!r} has a level that its bins do not know: {unseen!r}",
                "make the bins on data that hold every level",
            )
        if not self.missing:
            _need_missing(False, self.name, codes < 0)
        return index

    def labels(self) -> list[str]:
        """Name the bins for people."""
        texts = [str(level) for level in self.levels]
        if len(set(texts)) < len(texts):  # such as 1 and "1"
            texts = [repr(level) for level in self.levels]
        if self.has_other:
            known = f"other ({len(self.pooled)} levels)"
            texts.append(_beside(texts, "other" if self.open else known))
        return texts + ([_beside(texts, "missing")] if self.missing else [])


@dataclass(frozen=True)
class JointBins:
    """Every combination of the bins of two or more variables."""

    parts: tuple[NumericBins | LevelBins, ...]

    def __post_init__(self) -> None:
        if self.size > MAX_CELLS:
            raise InputError(
                f"{len(self.parts)} variables make {self.size:,} joint bins",
                f"at most {MAX_CELLS:,} are made: use fewer variables or a smaller n_bins",
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
        size = 1
        for part in self.parts:
            size *= part.size
        return size

    def labels(self) -> list[str]:
        """Name the bins for people."""
        texts = [""]
        for part in self.parts:
            texts = [f"{a} × {b}" if a else b for a in texts for b in part.labels()]
        return texts


Bins = NumericBins | LevelBins | JointBins


def joint_index(
    bins: Bins, variables: Sequence[Variable], rows: slice = slice(None)
) -> NDArray[np.intp]:
    """Return the bin of each row, for one variable or several."""
    if not isinstance(bins, JointBins):
        return bins.index(variables[0], rows)
    index = bins.parts[0].index(variables[0], rows)
    for part, variable in zip(bins.parts[1:], variables[1:], strict=True):
        index = index * part.size + part.index(variable, rows)
    return index


def check_binning(n_bins: object, scheme: object) -> None:
    """Refuse options that no kind of variable can be binned with."""
    check_n_bins(n_bins)
    check_choice("binning", scheme, SCHEMES)


def numeric_bins(
    variable: Variable,
    summary: NumberSummary,
    *,
    n_bins: int,
    scheme: str = "quantile",
    cuts: Sequence[Any] | None = None,
) -> NumericBins:
    """Choose the edges of a numeric or datetime variable.

    Parameters
    ----------
    variable : Variable
        Gives the name and the kind.
    summary : NumberSummary
        Quantiles and counts of the column, from whichever engine holds it.
    n_bins : int
        How many bins; ties may leave fewer.
    scheme : {"quantile", "uniform", "atoms"}
        Equal support, with edges as `pandas.qcut(duplicates="drop")` places them; equal width;
        or values that hold at least 1/n_bins of the rows alone, the rest by quantiles.
    cuts : sequence, optional
        Edges to use instead. The lowest is included in its bin; end bins are added only where
        rows lie outside.
    """
    missing, datetime = summary.n_missing > 0, variable.kind == "datetime"
    if cuts is not None:
        inner, low, high, starts = _given_cuts(variable, summary, cuts)
        return NumericBins(variable.name, inner, low, high, starts, missing, datetime)
    levels = support_levels(n_bins) if scheme == "quantile" else np.array([0.0, 1.0])
    quantiles = summary.quantiles(levels)
    if np.isnan(quantiles).any():  # no finite value: infinities, or none at all
        far = np.inf if summary.above(-np.inf) or summary.count(-np.inf) else -np.inf
        return NumericBins(variable.name, (), -far, far, frozenset(), missing, datetime)
    low, high = float(quantiles[0]), float(quantiles[-1])
    atoms: list[float] = []
    if scheme == "atoms":
        inner, atoms = _atom_cuts(summary, n_bins, low, high)
    else:
        # Halves, so that the width of the widest range is still a float.
        edges = (
            quantiles if scheme == "quantile" else 2 * np.linspace(low / 2, high / 2, n_bins + 1)
        )
        edges = np.unique(edges)
        inner = tuple(float(edge) for edge in edges[1:-1])
    return NumericBins(variable.name, inner, low, high, frozenset(atoms), missing, datetime)


def refine(bins: NumericBins, summary: NumberSummary, n_bins: int) -> NumericBins:
    """Cut bins finer, into about n_bins of equal support; every old cut stays.

    Cells that would hold no row, between an old cut and a quantile beside it, are not made.
    """
    wanted = summary.quantiles(np.linspace(0, 1, n_bins + 1))[1:-1]
    wanted = np.unique(wanted[np.isfinite(wanted) & (wanted < bins.high)])
    old = np.array(bins.cuts)
    after = {summary.above(cut) for cut in old.tolist()}
    new = [cut for cut in wanted.tolist() if (left := summary.above(cut)) and left not in after]
    return replace(bins, cuts=tuple(sorted({*bins.cuts, *new})))


def coarse_index(fine: Bins, coarse: Bins) -> NDArray[np.intp]:
    """Return the coarse bin that each fine bin lies in."""
    if fine == coarse:
        return np.arange(coarse.size)
    assert isinstance(fine, NumericBins) and isinstance(coarse, NumericBins)
    index = np.searchsorted(np.array(coarse.cuts), np.array(fine.cuts), side="right")
    return np.concatenate([[0], index, [coarse.size - 1] * fine.missing]).astype(np.intp)


def level_bins(
    variable: Variable, counts: NDArray[np.intp], n_missing: int, *, rare: float = 0.0
) -> LevelBins:
    """Give each level a bin, and pool the rare ones.

    Parameters
    ----------
    variable : Variable
        Gives the name and the levels.
    counts : ndarray
        Rows a level.
    n_missing : int
        Rows without a level.
    rare : float
        Levels with less than this share of all rows share one bin, if there are two or more.
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


def support_levels(n_bins: int) -> NDArray[np.float64]:
    """Return the levels 0, 1/n_bins, …, 1 of equal support, to the bit as pandas has them.

    pandas moves those up to the next float for which n_bins · level is no whole number.
    """
    levels = np.linspace(0, 1, n_bins + 1)
    off = n_bins * levels != np.arange(n_bins + 1)
    return np.where(off, np.nextafter(levels, 1), levels)


def cut_points(bins: object, name: str) -> Sequence[Any] | None:
    """Return the cut points that the option `bins` gives for a variable, if any."""
    if isinstance(bins, Mapping):
        bins = bins.get(name)
    if bins is None:
        return None
    if isinstance(bins, str | int | float) or not hasattr(bins, "__len__"):
        raise InputError(
            f"bins gives no cut points for {name!r}: {bins!r}",
            "give a list such as bins=[18, 30, 65], or a dict of such lists by variable; "
            "their number alone is n_bins=",
            argument="bins",
        )
    return bins  # type: ignore[return-value]


def _atom_cuts(
    summary: NumberSummary, n_bins: int, low: float, high: float
) -> tuple[tuple[float, ...], list[float]]:
    # A value that holds 1/n_bins of the rows covers at least one of these levels.
    grid = summary.quantiles(np.linspace(0, 1, 2 * n_bins + 1))
    total = summary.below(np.inf) + summary.count(np.inf)
    share = {float(value): summary.count(float(value)) / total for value in np.unique(grid)}
    atoms = [value for value, part in share.items() if part >= 1 / n_bins and part < 1]
    if not atoms:
        edges = np.unique(summary.quantiles(support_levels(n_bins)))
        return tuple(float(edge) for edge in edges[1:-1]), atoms
    rest = 1 - sum(share[value] for value in atoms)
    wanted = max(round(rest * n_bins), min(4, n_bins - len(atoms)), 1) if rest > 0 else 0
    cuts = {float(np.nextafter(atom, -np.inf)) for atom in atoms} | set(atoms)
    cuts |= set(_quantiles_without(summary, atoms, wanted, total))
    return tuple(sorted(cut for cut in cuts if low <= cut < high)), atoms


def _quantiles_without(
    summary: NumberSummary, atoms: list[float], n_bins: int, total: int
) -> list[float]:
    """Return the inner quantiles of the rows that hold none of the given values."""
    spans = sorted((summary.below(atom) / total, summary.count(atom) / total) for atom in atoms)
    rest = 1 - sum(part for _, part in spans)
    found = []
    for level in np.linspace(0, 1, n_bins + 1)[1:-1] * rest if n_bins else ():
        for start, part in spans:
            level += part if level > start else 0.0
        found.append(level)
    return [float(edge) for edge in summary.quantiles(np.array(found))] if found else []


def _given_cuts(
    variable: Variable, summary: NumberSummary, cuts: Sequence[Any]
) -> tuple[tuple[float, ...], float, float, frozenset[float]]:
    given = Variable.of(cuts, variable.name, "bins")
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
            "leave the others out: rows beyond the cuts, and missing ones, get their own bins",
            argument="bins",
        )
    if (np.diff(edges) <= 0).any():
        raise InputError(
            f"bins for {variable.name!r} do not increase: {list(cuts)!r}",
            "sort them, each once",
            argument="bins",
        )
    first, last = float(edges[0]), float(edges[-1])
    low, high = (float(edge) for edge in summary.quantiles(np.array([0.0, 1.0])))
    inner = [float(edge) for edge in edges[1:-1]]
    starts: frozenset[float] = frozenset()
    if summary.below(first):
        inner.insert(0, float(np.nextafter(first, -np.inf)))
        starts = frozenset([first])
        low = low if low < first else -np.inf
    else:
        low = first
    if not summary.above(last):
        high = last
    else:
        high = high if high > last else np.inf
        inner += [last] * (len(edges) > 1)
    return tuple(inner), low, high, starts


def _beside(texts: Sequence[str], text: str) -> str:
    """Return a text that is not among those of the levels."""
    while text in texts:
        text = f"({text})"
    return text


def _need_missing(has_bin: bool, name: str, absent: NDArray[np.bool_]) -> None:
    if not has_bin and absent.any():
        raise InputError(
            f"variable {name!r} has missing values that its bins have no place for",
            "make the bins on data that hold missing values",
        )
