"""What pictures and pages of a surface show, the same for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal._edge_texts import edge_texts
from varcal._search.axis import Axis
from varcal._search.surface_result import Surface
from varcal._text import count, gap_side, level_text, off_by, short, signed

#: How much of a cell's colour is left where the gap may be zero.
PALE = 0.35
#: From this part of the scale of colours on, text in a cell is white.
DARK = 0.7
#: Ends of the scale of colours, in points, from which the smallest that holds all gaps is taken.
_SCALES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)
#: Ticks along numbers or dates.
_TICKS = 6

Segment = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True, eq=False)
class SurfaceView:
    """A surface as it is drawn: the first variable to the right, the second upwards.

    Attributes
    ----------
    kind : {"map", "strips", "table"}
        Two numeric variables; numbers by level; levels by level.
    across, up : Axis
        The variables; of strips, `up` has the levels.
    gap, low, high : ndarray of shape (len(up), len(across))
        The figures.
    n : ndarray of int
        Rows.
    sure : ndarray of int
        The mask.
    judged : ndarray of bool
        Whether there are enough rows.
    most : float
        The end of the scale of colours.
    title, legend, scale : str
        Texts.
    claim : str
        The claim.
    """

    kind: str
    across: Axis
    up: Axis
    gap: Floats
    low: Floats
    high: Floats
    n: Ints
    sure: Ints
    judged: Bools
    most: float
    title: str
    legend: str
    scale: str
    claim: str

    @classmethod
    def of(cls, found: Surface) -> SurfaceView:
        """Arrange a surface for drawing."""
        levels = [axis.kind == "levels" for axis in (found.first, found.second)]
        turned = levels == [True, False]
        across, up = (found.second, found.first) if turned else (found.first, found.second)
        kind = "table" if all(levels) else "strips" if any(levels) else "map"

        def lay(values: Any) -> Any:
            return values if turned else values.T

        seen = np.abs(found.gap[found.judged])
        largest = float(seen.max()) if seen.size else 0.0
        over, under = (gap_side(sign, found.claim) for sign in (1.0, -1.0))
        return cls(
            kind=kind,
            across=across,
            up=up,
            gap=lay(found.gap),
            low=lay(found.low),
            high=lay(found.high),
            n=lay(found.n),
            sure=lay(found.sure),
            judged=lay(found.judged),
            most=next((end for end in _SCALES if end >= largest), 1.0),
            title=_title(found),
            legend=(
                f"strong colours: surely off, {level_text(found.level)} for all cells at once; "
                f"grey: too few rows. {count(found.n_rows, 'row')}"
            ),
            scale=f"gap in points: below 0 {under}, above 0 {over}",
            claim=found.claim,
        )

    @property
    def strength(self) -> Floats:
        """How strongly each cell is coloured, from −1 to 1; NaN where it is not judged."""
        pale = np.where(self.sure != 0, 1.0, PALE)
        shown = np.clip(self.gap / self.most, -1.0, 1.0) * pale
        return np.where(self.judged, shown, np.nan)

    @property
    def outline(self) -> list[Segment]:
        """The lines between cells that are surely off and others."""
        return outline(self.sure)

    def cell_lines(self, row: int, column: int) -> list[str]:
        """Return what is written into a cell of a table: its gap and its rows."""
        rows = f"{self.n[row, column]:,}"
        return [signed(float(self.gap[row, column])), rows] if self.judged[row, column] else [rows]

    def is_dark(self, row: int, column: int) -> bool:
        """Tell whether a cell needs white text."""
        strong = abs(self.gap[row, column]) > DARK * self.most
        return bool(self.sure[row, column] and strong)


def outline(mask: Ints) -> list[Segment]:
    """Return the segments around cells with the same sign other than 0.

    >>> len(outline(np.array([[0, 1], [0, 1]])))
    6
    """
    padded = np.pad(mask, 1)
    found: list[Segment] = []
    for row, column in zip(*np.nonzero(padded[:, 1:] != padded[:, :-1]), strict=True):
        x, y = float(column), float(row) - 1
        found.append(((x, y), (x, y + 1)))
    for row, column in zip(*np.nonzero(padded[1:] != padded[:-1]), strict=True):
        x, y = float(column) - 1, float(row)
        found.append(((x, y), (x + 1, y)))
    return found


def ticks(axis: Axis, most: int = _TICKS) -> tuple[list[float], list[str]]:
    """Return positions along the cells of a variable (0, 1, … at their edges) and their texts."""
    if axis.kind == "levels":
        return [k + 0.5 for k in range(len(axis))], [short(label, 22) for label in axis.labels]
    cells = max(len(axis.edges) - 1, 1)
    chosen = np.unique(np.linspace(0, cells, min(most, cells + 1)).round().astype(int))
    dated = axis.kind == "datetime"
    edges = [axis.edges[k] if dated else float(f"{axis.edges[k]:.4g}") for k in chosen]
    if not dated and len(edges) > 1 and abs(edges[0]) < 0.01 * (edges[1] - edges[0]):
        edges[0] = 0.0  # as readers expect it
    texts = edge_texts(
        edges,
        datetime=dated,
        duration=axis.kind == "duration",
        zone=axis.zone,
    )
    at = [float(k) for k in chosen]
    if axis.has_missing:
        at.append(cells + 0.5)
        texts = [*texts, "missing"]
    return at, texts


def _title(found: Surface) -> str:
    names = f"{short(found.first.name, 24)} and {short(found.second.name, 24)}"
    if not found.sure.any():
        return f"Gap over {names}: nowhere surely off"
    row, column = found.worst
    size = off_by(float(found.gap[row, column]), found.claim)
    place = f"{short(found.first.text(row), 30)}, {short(found.second.text(column), 30)}"
    return f"Gap over {names}\nmost surely {size} ({place})"
