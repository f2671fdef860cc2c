"""Rows and cells: the rows of a call, and variables cut into cells for slices and surfaces."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import Bools, Floats, Ints
from varcal._edge_texts import range_text
from varcal._input.predictions import Predictions
from varcal._input.variables import Variable
from varcal._search.slices_result import Condition
from varcal._sums.bins import LevelBins, NumericBins
from varcal._sums.choose_bins import fine_bins, level_bins
from varcal._sums.evidence import refuse_sums, rows_of_call
from varcal._sums.stream import Sample, Stream, sample_rows
from varcal._text import count, short_number

#: Rows that are drawn from a source too large for memory.
SAMPLE_ROWS = 500_000
#: Cells of a variable: for ranges of one variable, for the refinement of rules, and for rectangles.
#: A slice of 1 % of the rows needs steps of about 0.4 %; rectangles of more than 16 cells a side
#: cost more than they find, because rules are refined afterwards.
FINE, MIDDLE, COARSE = 250, 64, 16
#: Cells of a numeric variable, of about equal counts. With 24 × 24 a bump of a width of a tenth
#: of the rows is still resolved, and the smoother's matrix has 576 rows.
CELLS = 24
#: Levels with cells of their own; the rarest share one. More do not fit into a picture.
MOST_LEVELS = 12
#: Codes of cells.
Codes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class SearchRows:
    """Checked rows of a call, and where they came from.

    Attributes
    ----------
    predictions : Predictions
        The rows, possibly a sample.
    engine : str
        Where they were.
    n_all : int
        The rows of the source.
    elsewhere : Stream, optional
        All rows, if they are not in memory.
    """

    predictions: Predictions
    engine: str
    n_all: int
    elsewhere: Stream | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """A remark if these are a sample of the rows."""
        if self.n_all == len(self.predictions) + self.predictions.n_dropped:
            return ()
        drawn = count(len(self.predictions), "row")
        return (f"Figures are of a random sample: {drawn} of {count(self.n_all)}.",)


def read_rows(
    what: str, y: object, p: object, X: object, options: dict[str, Any], most: int | None = None
) -> SearchRows:
    """Read and check the rows of a call.

    Parameters
    ----------
    what : str
        The function that needs rows, for errors.
    y, p, X
        Outcomes, probabilities and variables.
    options : dict
        The other arguments of `rows_of_call`.
    most : int, optional
        The number of rows to draw if they are not in memory and will all be passed over again;
        without it some are drawn, and the rest is left alone.
    """
    refuse_sums(y, what)
    found = rows_of_call(y, p, X, **options)
    if isinstance(found, Predictions):
        return SearchRows(found, found.engine, len(found) + found.n_dropped)
    lazy, roles, classes = found.rows, found.roles, options["classes"]
    if most is None:
        drawn = sample_rows(lazy, roles, classes, SAMPLE_ROWS)
        return SearchRows(drawn, lazy.engine, found.n_all)
    sample = Sample.of(found, classes)
    stream = sample.stream
    drawn = sample_rows(lazy, stream.roles, stream.part.classes, most)
    drawn = replace(drawn, odd=dict(sample.odd))
    return SearchRows(drawn, lazy.engine, found.n_all, stream)


@dataclass(frozen=True, eq=False)
class VariableCells:
    """The cells of one variable, in their order.

    Attributes
    ----------
    variable : Variable
        The variable, without rows.
    cuts : ndarray
        Of numbers: a value is in cell #{cut < value}.
    groups : tuple of tuple
        Of levels: the levels of each cell.
    missing : int
        The cell of missing values, −1 if there are none.
    middle, coarse : ndarray
        The first fine cell of each cell of a lower resolution, and at the end the number of cells.
    """

    variable: Variable
    cuts: Floats
    groups: tuple[tuple[Hashable, ...], ...]
    missing: int
    middle: Ints
    coarse: Ints

    @property
    def n_cells(self) -> int:
        """The number of fine cells."""
        return int(self.coarse[-1])

    def condition(self, low: int, high: int) -> Condition:
        """Return the condition that a row is in one of the fine cells low, …, high − 1."""
        one = self.variable
        missing = low <= self.missing < high
        only_missing = missing and high - low == 1
        given: dict[str, Any] = {"missing": missing, "values": not only_missing}
        if one.kind == "levels":
            inside = [level for group in self.groups[low:high] for level in group]
            others = self.groups[:low] + self.groups[high:]
            outside = [level for group in others for level in group]
            # The shorter list is written; no list at all means every level.
            negated = not only_missing and len(outside) < len(inside)
            levels = tuple(sorted(outside if negated else inside, key=one.levels.index))
            return Condition(one.name, one.kind, levels=levels, negated=negated, **given)
        last = self.n_cells - (self.missing >= 0)
        return Condition(
            one.name,
            one.kind,
            low=float(self.cuts[low - 1]) if low and not only_missing else None,
            high=float(self.cuts[high - 1]) if high < last else None,
            zone=one.zone,
            date_format=one.date_format,
            **given,
        )

    def codes(self, variable: Variable) -> Codes:
        """Return the fine cell of each row."""
        if self.variable.kind == "levels":
            place = {level: k for k, group in enumerate(self.groups) for level in group}
            lookup = [place.get(level, 0) for level in variable.levels] + [max(self.missing, 0)]
            return np.array(lookup, dtype=np.uint8)[variable.values]
        found = np.searchsorted(self.cuts, variable.values, side="left")
        if self.missing >= 0:
            found[np.isnan(variable.values)] = self.missing
        return found.astype(np.uint8)


@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of all variables of some rows.

    Attributes
    ----------
    axes : tuple of VariableCells
        The variables.
    fine : ndarray of uint8
        The fine cell of each row, one line per variable.
    """

    axes: tuple[VariableCells, ...]
    fine: Codes

    @cached_property
    def middle(self) -> Codes:
        """The cells at the middle resolution."""
        return self._merged([axis.middle for axis in self.axes])

    @cached_property
    def coarse(self) -> Codes:
        """The cells at the coarse resolution."""
        return self._merged([axis.coarse for axis in self.axes])

    def _merged(self, edges: Sequence[Ints]) -> Codes:
        merged = [
            np.repeat(np.arange(len(ends) - 1, dtype=np.uint8), np.diff(ends))[line]
            for ends, line in zip(edges, self.fine, strict=True)
        ]
        return np.array(merged, dtype=np.uint8).reshape(self.fine.shape)


def grid_of(variables: Sequence[Variable], score: Floats) -> Grid:
    """Cut variables into cells; levels are ordered by their mean score, blind to outcomes.

    Parameters
    ----------
    variables : sequence of Variable
        The variables.
    score : ndarray
        The score of each row.

    Examples
    --------
    >>> sex = Variable.of(["f", "m", "f", None], "sex")
    >>> grid = grid_of([sex], np.array([0.1, 0.9, 0.2, 0.4]))
    >>> grid.fine, grid.axes[0].condition(1, 3).text
    (array([[0, 2, 0, 1]], dtype=uint8), 'sex = m or missing')
    """
    axes = [_levels(one, score) if one.kind == "levels" else _ranges(one) for one in variables]
    lines = [axis.codes(one) for axis, one in zip(axes, variables, strict=True)]
    return Grid(tuple(axes), np.array(lines, dtype=np.uint8).reshape(len(lines), len(score)))


def _ranges(variable: Variable) -> VariableCells:
    gone = variable.missing()
    known = np.sort(variable.values[~gone].astype(np.float64, copy=False))
    n = len(known)
    rank = np.ceil(np.arange(1, FINE) * n / FINE).astype(np.intp) - 1
    ends = np.unique(known[np.maximum(rank, 0)]) if n else np.zeros(0)
    ends = ends[ends < known[-1]] if n else ends
    after = np.searchsorted(known, ends, side="right")
    cuts = np.array([_short(low, known[k]) for low, k in zip(ends, after, strict=True)])
    sizes = np.diff(np.concatenate([[0], after, [n]]))
    middle = _merged(sizes, np.arange(len(sizes) + 1), MIDDLE)
    coarse = _merged(sizes, middle, COARSE)
    missing = -1
    if gone.any():
        missing = len(sizes)
        middle, coarse = (np.append(one, missing + 1) for one in (middle, coarse))
    return VariableCells(_without_rows(variable), cuts, (), missing, middle, coarse)


def _levels(variable: Variable, score: Floats) -> VariableCells:
    size = len(variable.levels) + 1
    codes = np.where(variable.values < 0, size - 1, variable.values)
    rows, total = np.bincount(codes, minlength=size), np.bincount(codes, score, size)
    named: list[list[int]] = [[k] for k in range(size) if rows[k]]
    if len(named) > COARSE:
        named.sort(key=lambda one: -rows[one[0]])
        rare = [k for (k,) in named[COARSE - 1 :] if k < size - 1]
        named = [*named[: COARSE - 1], *(one for one in named[COARSE - 1 :] if size - 1 in one)]
        named.append(rare)
    named.sort(key=lambda one: float(total[one].sum() / rows[one].sum()))
    groups = tuple(tuple(variable.levels[k] for k in one if k < size - 1) for one in named)
    missing = next((k for k, one in enumerate(named) if size - 1 in one), -1)
    edges = np.arange(len(named) + 1)
    return VariableCells(_without_rows(variable), np.zeros(0), groups, missing, edges, edges)


def _merged(sizes: Ints, edges: Ints, most: int) -> Ints:
    """Merge neighbouring cells into at most `most` of about equal counts; return their edges."""
    sums = np.add.reduceat(sizes, edges[:-1])
    if len(sums) <= most:
        return edges
    middle = (np.cumsum(sums) - sums / 2) / sums.sum()
    group = np.minimum((middle * most).astype(np.intp), most - 1)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    return np.append(edges[first], edges[-1])


def _short(low: float, high: float) -> float:
    """Return a number with few digits that is at least low and below high."""
    if low == -np.inf:
        return float(np.nextafter(low, 0))
    for digits in range(1, 17):
        for value in (float(f"{low:.{digits}g}"), float(f"{(low + high) / 2:.{digits}g}")):
            if low <= value < high:
                return value
    return float(low)


def _without_rows(variable: Variable) -> Variable:
    return variable.take(np.zeros(0, dtype=np.intp))


@dataclass(frozen=True, eq=False)
class SurfaceAxis:
    """The cells of one variable.

    Attributes
    ----------
    name, kind : str
        The variable and its kind ("numeric", "datetime", "duration" or "levels").
    labels : tuple of str
        The cells in words; the last is "missing" if values are missing.
    edges : ndarray
        The edges of the cells of numbers and dates (without that of missing values), empty for
        levels.
    position : ndarray
        Middle of each cell's ranks, from 0 to 1: neighbours on this scale are smoothed together.
        NaN for levels and missing values, which stand alone.
    zone : str
        The time zone of dates.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    edges: Floats
    position: Floats
    zone: str = ""

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def alone(self) -> Bools:
        """Which cells are not smoothed together with others."""
        return np.isnan(self.position)

    @property
    def has_missing(self) -> bool:
        """Whether the last cell has the missing values."""
        return self.kind != "levels" and len(self.labels) > max(len(self.edges) - 1, 0)

    def text(self, cell: int) -> str:
        """Return a cell with the name of its variable.

        >>> edges, place = np.array([17.0, 30.0, 90.0]), np.array([0.25, 0.75])
        >>> labels = ("[17, 30]", "(30, 90]")
        >>> axis = SurfaceAxis("age", "numeric", labels, edges, place)
        >>> axis.text(1)
        'age 30–90'
        """
        if np.isnan(self.position[cell]):
            return f"{self.name}: {self.labels[cell]}"
        low, high = self.edges[cell], self.edges[cell + 1]
        if self.kind == "numeric":
            texts = [short_number(end) for end in (low, high)]
            if texts[0] == texts[1]:
                return f"{self.name} {texts[0]}"
            join = " to " if low < 0 else "–"
            return f"{self.name} {texts[0]}{join}{texts[1]}"
        dated = self.kind == "datetime"
        text = range_text(low, high, datetime=dated, duration=not dated, zone=self.zone)
        return f"{self.name} {text}"


def bins_of(variable: Variable) -> NumericBins | LevelBins:
    """Choose the cells of a variable: quantiles of numbers, frequent levels, missing values."""
    if variable.kind != "levels":
        return fine_bins(variable, CELLS, "atoms")[0]
    present = variable.values[variable.values >= 0]
    counts = np.bincount(present, minlength=len(variable.levels))
    rare = 0.0
    if len(counts) > MOST_LEVELS:
        # Above the count of the first level that is left out, so that it is rare as well.
        rare = (float(np.sort(counts)[-MOST_LEVELS]) + 0.5) / len(variable)
    return level_bins(variable, counts, len(variable) - len(present), rare=rare)


def axis_of(variable: Variable, bins: NumericBins | LevelBins, counts: Ints) -> SurfaceAxis:
    """Describe the cells of a variable that hold the given numbers of rows."""
    edges = np.array(bins.edges if isinstance(bins, NumericBins) else (), dtype=np.float64)
    position = np.full(bins.size, np.nan)
    if isinstance(bins, NumericBins):
        ordered = max(len(edges) - 1, 0)
        ends = np.cumsum(counts[:ordered])
        total = max(int(ends[-1]) if ordered else 0, 1)
        position[:ordered] = (ends - counts[:ordered] / 2) / total
    labels = tuple(bins.labels())
    return SurfaceAxis(variable.name, variable.kind, labels, edges, position, variable.zone)


def plain_lists(value: Any) -> Any:
    """Return a value for JSON: fields by name, arrays as lists, None for what is not finite."""
    if is_dataclass(value):
        return {each.name: plain_lists(getattr(value, each.name)) for each in fields(value)}
    value = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(value, list | tuple):
        return [plain_lists(one) for one in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
