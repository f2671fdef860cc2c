"""Choice of bins: edges of numeric variables, and levels with a bin of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal._input.dates import with_dates
from varcal._input.variables import Variable, warn_if_merged
from varcal._options import check_choice, check_n_bins
from varcal._sums.bins import Bins, JointBins, LevelBins, NumericBins
from varcal._sums.summary import ArraySummary, Ends, SampledSummary, summary_of
from varcal.exceptions import InputError

#: The most variables that are binned jointly.
MOST_JOINT = 16
#: A level with less than 1/RARE_LEVEL of the rows of an average bin is pooled with others: gaps
#: of so few rows say little, and a variable may have thousands of such levels.
RARE_LEVEL = 10
#: Beside frequent values with bins of their own, the other values get at least this many bins if
#: n_bins allows: with fewer, a change of the gap among them would not be seen.
LEAST_OTHER_BINS = 4

SCHEMES = ("quantile", "uniform", "atoms")
EDGES = ("exact", "sampled")


class Named(Protocol):
    """Anything with a name, such as a variable."""

    @property
    def name(self) -> str:
        """The name."""


class NumberSummary(Protocol):
    """What must be known about a numeric column to choose its bins."""

    n_missing: int

    def quantiles(self, levels: Floats) -> Floats:
        """Return linearly interpolated quantiles of the finite values."""

    def count(self, value: float) -> int:
        """Return how many rows hold exactly this value."""

    def count_each(self, values: Floats) -> Ints:
        """Return how many rows hold exactly each of some values."""

    def below(self, value: float) -> int:
        """Return how many rows hold a smaller value."""

    def above(self, value: float) -> int:
        """Return how many rows hold a larger value."""

    def above_each(self, values: Floats) -> Ints:
        """Return how many rows hold a larger value than each of the given finite values."""


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
    summary: ArraySummary | None = None,
    fine_summary: ArraySummary | None = None,
    counts: tuple[Ints, int] | None = None,
) -> tuple[NumericBins | LevelBins, NumericBins | LevelBins]:
    """Choose the bins of a variable, and finer ones (for curves) that keep all their cuts.

    For rows that are not in memory, `summary` stands for their numbers (`fine_summary` for the
    finer bins, which need not be exact), or `counts` has the rows of each level and those missing.
    """
    check_binning(n_bins, binning, edges)
    warn_if_merged(variable)
    cuts = cut_points(bins, variable.name)
    if variable.kind != "levels":
        by_rows = cuts is None and binning != "uniform"
        if summary is None and not by_rows and not n_fine:
            summary = _ends_only(variable.values)
        elif summary is None:
            summary = summary_of(variable.values, sampled=edges == "sampled")
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


def check_binning(n_bins: object, scheme: object, edges: object = None) -> None:
    """Refuse options that are invalid for every kind of variable."""
    check_n_bins(n_bins)
    check_choice("binning", scheme, SCHEMES)
    if edges is not None:
        check_choice("edges", edges, EDGES)


def check_cut_names(bins: object, variables: Sequence[Named]) -> None:
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


def _ends_only(values: AnyArray) -> ArraySummary:
    """Summarize numbers by their ends: all that given cuts and bins of equal width depend on."""
    ends = Ends.of(values)
    if not ends.n_finite:
        return ArraySummary(values)
    return SampledSummary(np.array([ends.low, ends.high]), ends)


def numeric_bins(
    variable: Variable,
    summary: NumberSummary,
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
    summary : NumberSummary
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
        far = np.inf if summary.above(-np.inf) or summary.count(-np.inf) else -np.inf
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


def refine(bins: NumericBins, summary: NumberSummary, n_bins: int) -> NumericBins:
    """Split bins into about n_bins bins of equal support, keeping every cut.

    A quantile is skipped if there would be no row between it and an existing cut.
    """
    wanted = summary.quantiles(np.linspace(0, 1, n_bins + 1))[1:-1]
    wanted = np.unique(wanted[np.isfinite(wanted) & (wanted < bins.high)])
    old = np.array(bins.cuts)
    left = summary.above_each(wanted)
    new = wanted[(left > 0) & ~np.isin(left, summary.above_each(old))]
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
    summary: NumberSummary, n_bins: int, low: float, high: float
) -> tuple[tuple[float, ...], list[float]]:
    # A value with 1/n_bins of the rows covers at least one of these levels.
    grid = summary.quantiles(np.linspace(0, 1, 2 * n_bins + 1))
    total = summary.below(np.inf) + summary.count(np.inf)
    values = np.unique(grid)
    share = dict(zip(values.tolist(), (summary.count_each(values) / total).tolist(), strict=True))
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
    summary: NumberSummary, atoms: list[float], n_bins: int, total: int
) -> list[float]:
    """Return the inner quantiles of the rows that hold none of the given values."""
    spans = sorted((summary.below(atom) / total, summary.count(atom) / total) for atom in atoms)
    rest = 1 - sum(part for _, part in spans)
    levels = []
    for level in np.linspace(0, 1, n_bins + 1)[1:-1] * rest if n_bins else ():
        for start, part in spans:
            level += part if level > start else 0.0
        levels.append(level)
    return [float(edge) for edge in summary.quantiles(np.array(levels))] if levels else []


def _given_cuts(
    variable: Variable, summary: NumberSummary, cuts: Sequence[Any]
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
