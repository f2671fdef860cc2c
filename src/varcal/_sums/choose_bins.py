"""Choice of bins: edges of numeric variables, and levels with a bin of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
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
    sampled: bool = False,
) -> tuple[NumericBins | LevelBins, NumericBins | LevelBins]:
    """Choose the bins of a variable, and finer ones (for curves) that keep all their cuts.

    `sampled` says that the rows of the variable are a sample.
    """
    check_n_bins(n_bins)
    check_choice("binning", binning, SCHEMES)
    if edges is not None:
        check_choice("edges", edges, EDGES)
    warn_if_merged(variable)
    cuts = cut_points(bins, variable.name)
    if variable.kind == "levels":
        if cuts is not None:
            raise InputError(
                f"bins gives cut points for {variable.name!r}, which has levels",
                "cut points are for numeric and datetime variables",
                argument="bins",
            )
        present = variable.values[variable.values >= 0]
        counts = np.bincount(present, minlength=len(variable.levels))
        rare = 0.0 if variable.name in whole else 1 / (RARE_LEVEL * n_bins)
        levels = level_bins(variable, counts, len(variable) - len(present), rare=rare)
        return levels, levels
    # Given cuts, and even ones between the ends, depend on the ends alone.
    by_rows = cuts is None and binning != "uniform"
    values = variable.values if by_rows or n_fine else extreme_values(variable.values)
    if edges == "sampled" and not sampled and len(values) > SAMPLE:
        drawn = values.take(_sample_rows(len(values)))
        values, sampled = np.concatenate([drawn, extreme_values(values)]), True
    summary = Summary(values)
    coarse = numeric_bins(variable, summary, n_bins=n_bins, scheme=binning, cuts=cuts)
    coarse = replace(coarse, sampled=sampled and by_rows)
    if not n_fine:
        return coarse, coarse
    return coarse, replace(refine(coarse, summary, n_fine), sampled=sampled)


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
        Quantiles and counts of its values, or of a sample of them.
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


def extreme_values(values: AnyArray) -> AnyArray:
    """Return the smallest and the largest number, finite or not, and NaN if one is missing.

    >>> extreme_values(np.array([3.0, 1.0, 2.0])), extreme_values(np.array([1.0, -np.inf, np.nan]))
    (array([1., 3.]), array([-inf,   1.,  nan]))
    """
    if not len(values):
        return values
    ends = np.array(extremes(values), dtype=values.dtype)
    if np.isfinite(ends).all():  # NaN would be in both
        return ends
    finite = np.isfinite(values)
    held = values[finite]
    return np.unique([*([held.min(), held.max()] if len(held) else []), *values[~finite]])


class Summary:
    """Quantiles and counts of numbers, of which some may be infinite or missing."""

    def __init__(self, values: AnyArray) -> None:
        self.n_missing = self._n_low = self._n_high = 0
        if len(values) and not np.isfinite(extremes(values)).all():
            finite = np.isfinite(values)
            self.n_missing = int(np.isnan(values).sum())
            self._n_low, self._n_high = (
                int((values == -np.inf).sum()),
                int((values == np.inf).sum()),
            )
            values = values[finite]
        self._ordered = np.sort(values).astype(np.float64, copy=False)

    def quantiles(self, levels: Floats) -> Floats:
        """Return linearly interpolated quantiles of the finite values, NaN if there are none.

        As `numpy.quantile` does it, to the bit.
        """
        if not len(self._ordered):
            return np.full(len(levels), np.nan)
        last = len(self._ordered) - 1
        position = levels * last
        before = np.floor(position).astype(np.intp)
        a, b = self._ordered[before], self._ordered[np.minimum(before + 1, last)]
        t = position - before
        with np.errstate(over="ignore", invalid="ignore"):
            width = b - a
            near = np.where(t >= 0.5, b - width * (1 - t), a + width * t)
            half = b / 2 - a / 2  # the whole width may be beyond what floats can hold
            far = np.where(t >= 0.5, b - half * (2 * (1 - t)), a + half * (2 * t))
        return np.where(np.isfinite(width), near, far)

    def below(self, values: Floats, *, equal: bool = False) -> Ints:
        """Return how many rows hold a smaller value than each of some, or at most this one."""
        found = np.searchsorted(self._ordered, values, side="right" if equal else "left")
        found += self._n_low * ((values > -np.inf) | equal)
        return found + self._n_high * ((values == np.inf) & equal)

    def above(self, values: Floats) -> Ints:
        """Return how many rows hold a larger value than each of some."""
        n = self._n_low + len(self._ordered) + self._n_high
        return n - self.below(values, equal=True)

    def count(self, values: Floats) -> Ints:
        """Return how many rows hold exactly each of some values."""
        return self.below(values, equal=True) - self.below(values)


@lru_cache(maxsize=1)
def _sample_rows(n: int) -> Ints:
    """Return one random row out of each of `SAMPLE` even stretches of n rows, always the same."""
    place = np.random.default_rng(0).random(SAMPLE)
    place += np.arange(SAMPLE)
    place *= n / SAMPLE
    rows = place.astype(np.intp)
    return np.minimum(rows, n - 1, out=rows)
