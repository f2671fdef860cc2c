"""Axis: a variable of a surface, cut into cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal._edge_texts import range_text
from varcal._input.variables import Kind, Variable
from varcal._sums.bins import LevelBins, NumericBins
from varcal._sums.choose import fine_bins, level_bins
from varcal._text import short_number

#: Cells of a numeric variable, of about equal counts. With 24 × 24 a bump of a width of a tenth
#: of the rows is still resolved, and the smoother's matrix has 576 rows.
CELLS = 24
#: Instants and durations have 63 bits of microseconds.
MOST_SECONDS = 9e12
#: Levels with cells of their own; the rarest share one. More do not fit into a picture.
MOST_LEVELS = 12


@dataclass(frozen=True, eq=False)
class Axis:
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
    counts : ndarray
        Rows of each cell.
    zone : str
        The time zone of dates.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    edges: Floats
    position: Floats
    counts: Ints
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

        >>> axis = Axis("age", "numeric", ("[17, 30]", "(30, 90]"), np.array([17.0, 30.0, 90.0]),
        ...             np.array([0.25, 0.75]), np.array([5, 5]))
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

    def _check_saved(self) -> None:
        """Raise ValueError unless cells, labels and edges belong together."""
        if not self.labels or not len(self.labels) == len(self.position) == len(self.counts):
            raise ValueError("cells and labels differ in number")
        if self.kind not in get_args(Kind):
            raise ValueError("the kind is unknown")
        if np.flatnonzero(~self.alone).max(initial=-1) + 1 >= max(len(self.edges), 1):
            raise ValueError("cells and edges differ in number")
        if self.kind != "numeric" and (np.abs(self.edges) > MOST_SECONDS).any():
            raise ValueError("an edge is not an instant")

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        return {
            "name": self.name,
            "kind": self.kind,
            "labels": list(self.labels),
            "edges": [_finite(edge) for edge in self.edges.tolist()],
            "position": [_finite(place) for place in self.position.tolist()],
            "counts": self.counts.tolist(),
            "zone": self.zone,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Axis:
        """Return the axis that `to_dict` described."""
        return cls(
            name=data["name"],
            kind=data["kind"],
            labels=tuple(data["labels"]),
            edges=np.array([np.nan if one is None else one for one in data["edges"]], float),
            position=np.array([np.nan if one is None else one for one in data["position"]], float),
            counts=np.array(data["counts"], dtype=np.int64),
            zone=data["zone"],
        )


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


def axis_of(variable: Variable, bins: NumericBins | LevelBins, counts: Ints) -> Axis:
    """Describe the cells of a variable that hold the given numbers of rows."""
    edges = np.array(bins.edges if isinstance(bins, NumericBins) else (), dtype=np.float64)
    position = np.full(bins.size, np.nan)
    if isinstance(bins, NumericBins):
        ordered = max(len(edges) - 1, 0)
        ends = np.cumsum(counts[:ordered])
        total = max(int(ends[-1]) if ordered else 0, 1)
        position[:ordered] = (ends - counts[:ordered] / 2) / total
    return Axis(
        name=variable.name,
        kind=variable.kind,
        labels=tuple(bins.labels()),
        edges=edges,
        position=position,
        counts=counts,
        zone=variable.zone,
    )


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
