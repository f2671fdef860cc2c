"""Cells: every variable cut into ordered cells at three resolutions, and back into conditions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import Floats, Ints
from varcal._input.variables import Variable
from varcal._search.condition import Condition

#: Cells of a variable: for ranges of one variable, for the refinement of rules, and for rectangles.
#: A slice of 1 % of the rows needs steps of about 0.4 %; rectangles of more than 16 cells a side
#: cost more than they find, because rules are refined afterwards.
FINE, MIDDLE, COARSE = 250, 64, 16
#: Codes of cells.
Codes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Axis:
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
    is_score : bool
        Whether it is the model's own probability.
    """

    variable: Variable
    cuts: Floats
    groups: tuple[tuple[Hashable, ...], ...]
    missing: int
    middle: Ints
    coarse: Ints
    is_score: bool = False

    @property
    def n_cells(self) -> int:
        """The number of fine cells."""
        return int(self.coarse[-1])

    def condition(self, low: int, high: int) -> Condition:
        """Return the condition that a row is in one of the fine cells low, …, high − 1."""
        one = self.variable
        missing = low <= self.missing < high
        only_missing = missing and high - low == 1
        if one.kind == "levels":
            inside = [level for group in self.groups[low:high] for level in group]
            others = self.groups[:low] + self.groups[high:]
            outside = [level for group in others for level in group]
            # The shorter list is written; no list at all means every level.
            negated = not only_missing and len(outside) < len(inside)
            return Condition(
                one.name,
                one.kind,
                levels=tuple(sorted(outside if negated else inside, key=one.levels.index)),
                negated=negated,
                missing=missing,
                values=not only_missing,
            )
        last = self.n_cells - (self.missing >= 0)
        return Condition(
            one.name,
            one.kind,
            low=float(self.cuts[low - 1]) if low and not only_missing else None,
            high=float(self.cuts[high - 1]) if high < last else None,
            missing=missing,
            values=not only_missing,
            is_score=self.is_score,
            zone=one.zone,
            date_format=one.date_format,
        )

    def codes(self, variable: Variable) -> Codes:
        """Return the fine cell of each row."""
        if self.variable.kind == "levels":
            place = {level: k for k, group in enumerate(self.groups) for level in group}
            lookup = [place.get(level, 0) for level in variable.levels] + [max(self.missing, 0)]
            return np.array(lookup, dtype=np.uint8)[variable.values]
        values = variable.values
        found = np.searchsorted(self.cuts, values, side="left")
        if self.missing >= 0:
            found[np.isnan(values)] = self.missing
        return found.astype(np.uint8)


@dataclass(frozen=True, eq=False)
class Grid:
    """The cells of all variables of some rows.

    Attributes
    ----------
    axes : tuple of Axis
        The variables.
    fine : ndarray of uint8
        The fine cell of each row, one line per variable.
    """

    axes: tuple[Axis, ...]
    fine: Codes

    def at(self, resolution: str) -> Codes:
        """Return the cells at a lower resolution, one line per variable."""
        lines = [
            _lookup(getattr(axis, resolution), axis.n_cells)[line]
            for axis, line in zip(self.axes, self.fine, strict=True)
        ]
        return np.array(lines, dtype=np.uint8).reshape(self.fine.shape)

    @cached_property
    def middle(self) -> Codes:
        """The cells at the middle resolution."""
        return self.at("middle")

    @cached_property
    def coarse(self) -> Codes:
        """The cells at the coarse resolution."""
        return self.at("coarse")


def grid_of(variables: Sequence[Variable], score: Floats, is_score: Sequence[bool]) -> Grid:
    """Cut variables into cells; levels are ordered by their mean score, blind to outcomes.

    Examples
    --------
    >>> sex = Variable.of(["f", "m", "f", None], "sex")
    >>> grid = grid_of([sex], np.array([0.1, 0.9, 0.2, 0.4]), [False])
    >>> grid.fine, grid.axes[0].condition(1, 3).text
    (array([[0, 2, 0, 1]], dtype=uint8), 'sex = m or missing')
    """
    axes, lines = [], []
    for variable, own in zip(variables, is_score, strict=True):
        axis = _levels(variable, score) if variable.kind == "levels" else _ranges(variable, own)
        axes.append(axis)
        lines.append(axis.codes(variable))
    return Grid(tuple(axes), np.array(lines, dtype=np.uint8).reshape(len(lines), len(score)))


def _ranges(variable: Variable, is_score: bool) -> Axis:
    gone = variable.missing()
    known = np.sort(variable.values[~gone].astype(np.float64, copy=False))
    n = len(known)
    rank = np.ceil(np.arange(1, FINE) * n / FINE).astype(np.intp) - 1
    ends = np.unique(known[np.maximum(rank, 0)]) if n else np.zeros(0)
    ends = ends[ends < known[-1]] if n else ends
    after = np.searchsorted(known, ends, side="right")
    cuts = np.array([_short(low, known[k]) for low, k in zip(ends, after, strict=True)])
    count = np.diff(np.concatenate([[0], after, [n]]))
    missing = bool(gone.any())
    middle = _merged(count, np.arange(len(count) + 1), MIDDLE)
    coarse = _merged(count, middle, COARSE)
    if missing:
        middle, coarse = (np.append(one, len(count) + 1) for one in (middle, coarse))
    empty = _without_rows(variable)
    return Axis(empty, cuts, (), len(count) if missing else -1, middle, coarse, is_score)


def _levels(variable: Variable, score: Floats) -> Axis:
    codes = np.where(variable.values < 0, len(variable.levels), variable.values)
    size = len(variable.levels) + 1
    count = np.bincount(codes, minlength=size)
    total = np.bincount(codes, score, size)
    named: list[list[int]] = [[k] for k in range(size) if count[k]]
    if len(named) > COARSE:
        by_count = sorted(named, key=lambda one: -count[one[0]])
        keep = by_count[: COARSE - 1]
        rare = [one[0] for one in by_count[COARSE - 1 :] if one[0] < size - 1]
        keep += [one for one in by_count[COARSE - 1 :] if one[0] == size - 1]
        named = [*keep, rare]
    named.sort(key=lambda one: float(total[one].sum() / count[one].sum()))
    groups = tuple(tuple(variable.levels[k] for k in one if k < size - 1) for one in named)
    missing = next((k for k, one in enumerate(named) if size - 1 in one), -1)
    edges = np.arange(len(named) + 1)
    return Axis(_without_rows(variable), np.zeros(0), groups, missing, edges, edges)


def _merged(count: Ints, edges: Ints, most: int) -> Ints:
    """Merge neighbouring cells into at most `most` of about equal counts; return their edges."""
    sums = np.add.reduceat(count, edges[:-1])
    if len(sums) <= most:
        return edges
    middle = (np.cumsum(sums) - sums / 2) / sums.sum()
    group = np.minimum((middle * most).astype(np.intp), most - 1)
    first = np.flatnonzero(np.diff(group, prepend=-1))
    return np.append(edges[first], edges[-1])


def _lookup(edges: Ints, n_cells: int) -> Codes:
    """Return the cell of a lower resolution by fine cell."""
    return np.repeat(np.arange(len(edges) - 1, dtype=np.uint8), np.diff(edges))[:n_cells]


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
