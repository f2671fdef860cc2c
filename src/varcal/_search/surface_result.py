"""Surface: the gap over two variables, to read, save and draw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal._files.conform import restored
from varcal._input.frames import frame_of
from varcal._options import check_count
from varcal._search.axis import Axis
from varcal._text import (
    count,
    gap_said,
    gap_side,
    html_table,
    interval,
    level_text,
    off_by,
    p_equation,
    percent,
    share_text,
    signed,
    wrapped,
)

#: The arrays of a surface, one number per cell.
SERIES = ("share", "predicted", "observed", "gap", "low", "high")
#: No figure of a saved surface is larger.
LARGEST = 1e3
#: Rows of the table in a notebook.
MOST_LINES = 5


@dataclass(frozen=True, eq=False)
class Surface:
    """The gap over the cells of two variables, with a mask that holds for all cells at once.

    Arrays have one row per cell of the first variable and one column per cell of the second.

    Attributes
    ----------
    first, second : Axis
        The variables and their cells: ranges of numbers and dates, levels, missing values.
    claim : str
        What is judged: "probability" (that of the positive class), "confidence" (in the
        predicted class), or "class …" with more classes.
    n : ndarray of int
        Rows of each cell.
    share : ndarray
        Each cell's share of the weight.
    predicted, observed : ndarray
        Mean score and hit rate of the rows of a cell, not smoothed; NaN without rows.
    gap : ndarray
        Says minus happens, smoothed over neighbouring cells; NaN without rows.
    low, high : ndarray
        The simultaneous band, which contains the whole true surface in `level` of all samples;
        NaN where too few rows are near.
    p_value : float
        How likely a deviation as clear as the clearest would be if the gap were 0 everywhere,
        over all claims.
    overall : float
        The gap over all rows.
    half_width : float
        The share of the rows to either side that is smoothed together along a variable.
    level : float
        Level of the band; it holds for all claims of the call at once.
    others : tuple of Surface
        The other claims, the one with the clearest gap first.
    n_rows, n_dropped : int
        Rows behind the surface, and rows without an outcome.
    grouped : bool
        Whether the band allows for groups.
    notes : tuple of str
        Remarks, such as that rows are a sample.
    """

    first: Axis
    second: Axis
    claim: str
    n: Ints
    share: Floats
    predicted: Floats
    observed: Floats
    gap: Floats
    low: Floats
    high: Floats
    p_value: float
    overall: float
    half_width: float
    level: float
    n_rows: int
    n_dropped: int = 0
    grouped: bool = False
    others: tuple[Surface, ...] = ()
    notes: tuple[str, ...] = ()
    engine: str = "numpy"
    backend: str | None = None

    @property
    def sure(self) -> Ints:
        """The mask: 1 where the gap is surely above 0, −1 where it is surely below, else 0."""
        with np.errstate(invalid="ignore"):
            return (self.low > 0).astype(np.int64) - (self.high < 0).astype(np.int64)

    @property
    def judged(self) -> Bools:
        """The cells with enough rows near them."""
        return ~np.isnan(self.low)

    @property
    def worst(self) -> tuple[int, int]:
        """The cell whose gap is surely the largest; without a sure one, the nearest to it."""
        surely = np.maximum(self.low, -self.high)
        if np.isnan(surely).all():
            surely = np.where(self.n > 0, np.abs(np.nan_to_num(self.gap)), np.nan)
        row, column = np.unravel_index(int(np.nanargmax(surely)), surely.shape)
        return int(row), int(column)

    @property
    def sentence(self) -> str:
        """The finding in one or two sentences."""
        names = f"{self.first.name} and {self.second.name}"
        sure = self.sure
        if not sure.any():
            return f"Over {names} no place is surely off ({p_equation(self.p_value)})."
        over, under = (float(self.share[sure == sign].sum()) for sign in (1, -1))
        if over > 0 and under > 0:
            parts = [
                f"{gap_said(sign, self.claim)} for {share_text(share)}"
                for sign, share in ((1.0, over), (-1.0, under))
            ]
            sides = ", ".join(parts)
        else:
            sides = str(gap_said(1.0 if over > 0 else -1.0, self.claim))
        head = f"Over {names}, {share_text(over + under)} of rows are surely off: {sides}."
        return f"{head} Most for {self.describe(*self.worst)}."

    def describe(self, row: int, column: int) -> str:
        """Describe a cell in words: where it is, its gap and its rows."""
        row = check_count("row", row, 0, self.n.shape[0] - 1)
        column = check_count("column", column, 0, self.n.shape[1] - 1)
        place = f"{self.first.text(row)} and {self.second.text(column)}"
        size = off_by(float(self.gap[row, column]), self.claim)
        rows = count(int(self.n[row, column]), "row")
        if not self.judged[row, column]:
            return f"{place}: {size}, {rows}"
        low, high = sorted(abs(end) for end in (self.low[row, column], self.high[row, column]))
        if self.low[row, column] < 0 < self.high[row, column]:
            return f"{place}: {size}, could be zero, {rows}"
        return f"{place}: {size} ({interval(low, high)}), {rows}"

    def to_frame(self) -> Any:
        """Return the cells with rows as a frame of the input's library."""
        row, column = np.nonzero(self.n)
        names = [self.first.name, self.second.name]
        taken = {"rows", *SERIES, "sure"}
        if names[0] in taken:
            names[0] = "first"
        if names[1] in taken:
            names[1] = "second"
        columns: dict[str, Any] = {
            names[0]: [self.first.labels[k] for k in row],
            names[1]: [self.second.labels[k] for k in column],
            "rows": self.n[row, column],
        }
        columns |= {name: getattr(self, name)[row, column] for name in SERIES}
        return frame_of(columns | {"sure": self.sure[row, column]}, self.backend)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON (NaN as None)."""
        return {
            "first": self.first.to_dict(),
            "second": self.second.to_dict(),
            "claim": self.claim,
            "sentence": self.sentence,
            "n": self.n.tolist(),
            **{name: _plain(getattr(self, name)) for name in SERIES},
            "p_value": self.p_value,
            "overall": self.overall,
            "half_width": self.half_width,
            "level": self.level,
            "n_rows": self.n_rows,
            "n_dropped": self.n_dropped,
            "grouped": self.grouped,
            "notes": list(self.notes),
            "engine": self.engine,
            "others": [one.to_dict() for one in self.others],
        }

    def _check_saved(self) -> None:
        """Raise ValueError unless every array has a number, not a huge one, for every cell."""
        shape = (len(self.first), len(self.second))
        arrays = [self.n, *(getattr(self, name) for name in SERIES)]
        if any(array.shape != shape for array in arrays) or not (self.n > 0).any():
            raise ValueError("an array has other cells than the variables, or no cell has rows")
        if any((np.abs(array) > LARGEST).any() for array in arrays[1:]) or (self.n < 0).any():
            raise ValueError("a figure of a cell is too large, or its rows are negative")
        if not 0 < self.level < 1:
            raise ValueError("the level is not a share")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Surface:
        """Return the surface that `to_dict` described."""
        return restored(lambda: cls._of(data), cls, "a surface")

    @classmethod
    def _of(cls, data: Mapping[str, Any]) -> Surface:
        plain = ("claim", "p_value", "overall", "half_width", "level", "n_rows", "n_dropped")
        arrays: dict[str, Any] = {
            name: np.array(
                [[np.nan if one is None else one for one in row] for row in data[name]], float
            )
            for name in SERIES
        }
        return cls(
            first=Axis.from_dict(data["first"]),
            second=Axis.from_dict(data["second"]),
            n=np.array(data["n"], dtype=np.int64),
            **arrays,
            **{name: data[name] for name in plain},
            grouped=data["grouped"],
            notes=tuple(data["notes"]),
            engine=data["engine"],
            others=tuple(cls.from_dict(one) for one in data["others"]),
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the gap over both variables.

        Over two numbers or dates this is a heat map with contours, bars that show where the rows
        are, and strong colours where the gap surely differs from 0. With levels it is one curve
        per level with its band, or a table of cells.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        from varcal._report.plot_variables import draw_surface  # noqa: PLC0415

        return draw_surface(self, ax)

    def __repr__(self) -> str:
        over, under = (gap_side(sign, self.claim) for sign in (1.0, -1.0))
        head = f"Surface of {self.first.name!r} and {self.second.name!r}: {self.claim}, "
        legend = (
            f"Gap: what the model says minus what happens (above 0: {over}, below: {under}); "
            f"the band holds for all cells at once, {level_text(self.level)}."
        )
        lines = [head + count(self.n_rows, "row"), self.sentence, *self.notes, legend]
        return wrapped("\n".join(lines))

    def _repr_html_(self) -> str:
        surely = np.where(self.sure != 0, np.maximum(self.low, -self.high), -np.inf)
        order = np.argsort(-surely, axis=None, kind="stable")[:MOST_LINES]
        cells = [np.unravel_index(int(k), surely.shape) for k in order]
        cells = [cell for cell in cells if surely[cell] > 0]
        table: dict[str, list[Any]] = {
            self.first.name: [self.first.labels[int(i)] for i, _ in cells],
            self.second.name: [self.second.labels[int(j)] for _, j in cells],
            "gap, points": [signed(float(self.gap[cell])) for cell in cells],
            "band": [interval(float(self.low[cell]), float(self.high[cell])) for cell in cells],
            "says": [percent(float(self.predicted[cell])) for cell in cells],
            "happens": [percent(float(self.observed[cell])) for cell in cells],
            "rows": [int(self.n[cell]) for cell in cells],
        }
        return html_table(table, self.sentence, " ".join(self.notes))


def _plain(values: Floats) -> list[list[float | None]]:
    return [[None if one != one else one for one in row] for row in values.tolist()]
