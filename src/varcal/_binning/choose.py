"""Where the edges and levels of bins are chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from varcal._arrays import Floats, Ints
from varcal._binning.bins import Bins, JointBins, LevelBins, NumericBins
from varcal._binning.ends_summary import EndsSummary
from varcal._binning.summary import ArraySummary, Ends, summary_of
from varcal._input.variables import Variable
from varcal._options import check_choice, check_n_bins
from varcal.exceptions import InputError

SCHEMES = ("quantile", "uniform", "atoms")


class Named(Protocol):
    """What has a name, as a variable has."""

    @property
    def name(self) -> str:
        """The name."""


class NumberSummary(Protocol):
    """What an engine must be able to say of a numeric column, so that bins can be chosen."""

    n_missing: int

    def quantiles(self, levels: Floats) -> Floats:
        """Return linearly interpolated quantiles of the finite values."""

    def count(self, value: float) -> int:
        """Return how many rows hold exactly this value."""

    def below(self, value: float) -> int:
        """Return how many rows hold a smaller value."""

    def above(self, value: float) -> int:
        """Return how many rows hold a larger value."""

    def above_each(self, values: Floats) -> Ints:
        """Return how many rows hold a larger value, for each of some finite values."""


def make_bins(
    variables: Sequence[Variable],
    *,
    n_bins: int = 10,
    binning: str = "quantile",
    bins: object = None,
) -> Bins:
    """Choose bins for one variable, or joint bins for several.

    Parameters
    ----------
    variables : sequence of Variable
        At least one.
    n_bins : int
        Bins of each numeric variable. Levels with less than 1/(10 n_bins) of the rows are pooled.
    binning : {"quantile", "uniform", "atoms"}
        How numeric variables are cut.
    bins : sequence or dict of sequences, optional
        Cut points, for the one variable or by name.
    """
    check_cut_names(bins, variables)
    parts = tuple(fine_bins(variable, n_bins, binning, bins)[0] for variable in variables)
    return parts[0] if len(parts) == 1 else JointBins(parts)


def fine_bins(
    variable: Variable,
    n_bins: int = 10,
    binning: str = "quantile",
    bins: object = None,
    *,
    n_fine: int = 0,
    summary: ArraySummary | None = None,
    counts: tuple[Ints, int] | None = None,
) -> tuple[NumericBins | LevelBins, NumericBins | LevelBins]:
    """Choose the bins of a variable, and finer ones (for curves) that keep all their cuts.

    Rows that are not at hand are spoken for by the summary of their numbers, or by how often
    each level comes and how many are missing.
    """
    check_binning(n_bins, binning)
    cuts = cut_points(bins, variable.name)
    if variable.kind != "levels":
        if summary is None and not n_fine and (cuts is not None or binning == "uniform"):
            ends = EndsSummary(Ends.of(variable.values))
            even = numeric_bins(variable, ends, n_bins=n_bins, scheme=binning, cuts=cuts)
            return even, even
        summary = summary_of(variable.values) if summary is None else summary
        coarse = numeric_bins(variable, summary, n_bins=n_bins, scheme=binning, cuts=cuts)
        # Given cuts and even ones between the ends owe nothing to a sample.
        by_rows = cuts is None and binning != "uniform"
        coarse = replace(coarse, sampled=summary.sampled and by_rows)
        if not n_fine:
            return coarse, coarse
        return coarse, replace(refine(coarse, summary, n_fine), sampled=summary.sampled)
    if cuts is not None:
        raise InputError(
            f"bins gives cut points for {variable.name!r}, which has levels",
            "cut points are for numeric and datetime variables",
            argument="bins",
        )
    if counts is None:
        present = variable.values[variable.values >= 0]
        held = np.bincount(present, minlength=len(variable.levels))
        counts = held, len(variable) - len(present)
    levels = level_bins(variable, *counts, rare=1 / (10 * n_bins))
    return levels, levels


def check_binning(n_bins: object, scheme: object) -> None:
    """Refuse options that no kind of variable can be binned with."""
    check_n_bins(n_bins)
    check_choice("binning", scheme, SCHEMES)


def check_cut_names(bins: object, variables: Sequence[Named]) -> None:
    """Refuse cut points for a variable that is not there, and one list for several variables."""
    known = [variable.name for variable in variables]
    if isinstance(bins, Mapping):
        for name in bins:
            if name not in known:
                raise InputError.no_column(str(name), known, "bins")
    elif bins is not None and len(known) > 1:
        raise InputError(
            f"bins is one list of cut points for {len(known)} variables",
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
            f"bins gives no cut points for {name!r}: {bins!r}",
            "give a list such as bins=[18, 30, 65], or a dict of such lists by variable; "
            "their number alone is n_bins=",
            argument="bins",
        )
    return bins  # type: ignore[return-value]


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


def support_levels(n_bins: int) -> Floats:
    """Return the levels 0, 1/n_bins, …, 1 of equal support, to the bit as pandas has them.

    pandas moves those up to the next float for which n_bins · level is no whole number.
    """
    levels = np.linspace(0, 1, n_bins + 1)
    off = n_bins * levels != np.arange(n_bins + 1)
    return np.where(off, np.nextafter(levels, 1), levels)


def refine(bins: NumericBins, summary: NumberSummary, n_bins: int) -> NumericBins:
    """Cut bins finer, into about n_bins of equal support; every old cut stays.

    Cells that would hold no row, between an old cut and a quantile beside it, are not made.
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
