"""Comparison: what recalibration fixed, left and made worse, on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from varcal._tables import frame_of
from varcal._text import text_table

#: Figures of which more is better.
HIGHER_IS_BETTER = ("accuracy", "AUC")


@dataclass(frozen=True)
class ComparisonRow:
    """One figure of one set of probabilities.

    Attributes
    ----------
    method, metric, variable : str
        The set, the figure, and for VECE the variable.
    value, low, high : float
        The figure (debiased for ECE and VECE) with its interval.
    noise_floor : float
        For ECE and VECE, the 95 % quantile of the plug-in of a perfect model.
    difference, difference_low, difference_high : float
        From the first set, on the same rows, with its interval.
    verdict : str
        "baseline" for the first set; "fixed" (better, and now within noise), "better",
        "unchanged" (cannot be told) or "made worse".
    """

    method: str
    metric: str
    variable: str
    value: float
    low: float
    high: float
    noise_floor: float
    difference: float
    difference_low: float
    difference_high: float
    verdict: str


@dataclass(frozen=True, eq=False)
class Comparison:
    """Sets of probabilities for the same rows, compared with the first of them.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        One a method and figure.
    methods : tuple of str
        The sets, the baseline first.
    event, hits : str
        What is claimed, and whose argmax says what is correct.
    level : float
        Level of all intervals.
    n_rows : int
        Rows.
    """

    rows: tuple[ComparisonRow, ...]
    methods: tuple[str, ...]
    event: str
    hits: str
    level: float
    n_rows: int
    backend: str | None = None

    def row(self, method: str, metric: str, variable: str = "") -> ComparisonRow:
        """Return one figure."""
        for row in self.rows:
            if (row.method, row.metric, row.variable) == (method, metric, variable):
                return row
        raise KeyError((method, metric, variable))

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON (NaN as None)."""
        return {
            "methods": list(self.methods),
            "event": self.event,
            "hits": self.hits,
            "level": self.level,
            "n_rows": self.n_rows,
            "rows": [
                {name: None if value != value else value for name, value in vars(row).items()}
                for row in self.rows
            ],
        }

    def to_frame(self) -> Any:
        """Return the long table as a frame of the input's library."""
        names = [field.name for field in fields(ComparisonRow)]
        return frame_of(
            {name: [getattr(row, name) for row in self.rows] for name in names}, self.backend
        )

    def __repr__(self) -> str:
        keys = dict.fromkeys((row.metric, row.variable) for row in self.rows)
        columns: dict[str, list[str]] = {
            "figure": [f"{metric} {variable}".strip() for metric, variable in keys]
        }
        for method in self.methods:
            columns[method] = []
            for metric, variable in keys:
                row = self.row(method, metric, variable)
                verdict = "" if row.verdict in ("baseline", "unchanged") else f" {row.verdict}"
                columns[method].append(f"{row.value:.4f}{verdict}")
        head = f"{self.n_rows:,} held-out rows, compared with {self.methods[0]}"
        return f"{head}\n{text_table(columns)}"
