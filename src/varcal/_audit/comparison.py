"""Comparison: what recalibration fixed, left as it was and made worse, on held-out rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from os import PathLike
from typing import Any

from varcal._audit.metric_text import metric_text
from varcal._audit.verdicts import CHANGED, COMPARED
from varcal._input.frames import frame_of
from varcal._measures.curve_result import Curve
from varcal._options import check_choice, check_text, checked
from varcal._saved.conform import restored
from varcal._text.html_tables import html_table
from varcal._text.tables import text_table
from varcal.exceptions import InputError

#: Figures that are better when larger.
HIGHER_IS_BETTER = ("accuracy", "AUC")
#: The least size of a change that counts as better or worse. Sizes that nobody would act on: a
#: tenth of a point of accuracy and AUC, a fifth of a point of calibration error; a log-loss of
#: 0.001 is what a change of all probabilities by about two points costs.
LEAST_CHANGE = {
    "accuracy": 0.001,
    "log-loss": 0.001,
    "Brier": 0.0005,
    "AUC": 0.001,
    "ECE": 0.002,
    "VECE": 0.002,
}
#: The numbers of a row, any of which may be NaN.
_NUMBERS = (
    "value",
    "low",
    "high",
    "noise_floor",
    "difference",
    "difference_low",
    "difference_high",
    "p_value",
    "p_holm",
)


@dataclass(frozen=True)
class ComparisonRow:
    """One figure of one set of probabilities.

    Attributes
    ----------
    method, metric, variable : str
        The set of probabilities, the figure, and for VECE the variable.
    value, low, high : float
        The figure (debiased for ECE and VECE) with its interval.
    noise_floor : float
        For ECE and VECE, the 95 % quantile of the plug-in value of a perfect model.
    difference, difference_low, difference_high : float
        The difference from the first set on the same rows, with its interval.
    verdict : str
        "baseline" for the first set; "fixed" (better, and now within noise), "better",
        "unchanged" (no change of a size that matters can be shown) or "made worse".
    claim : str
        For ECE and VECE, what the probabilities claim: "risk", "confidence" or "class <label>".
    p_value, p_holm : float
        The p-value of no difference, and the same adjusted for the number of comparisons, from
        which the verdict follows; NaN for the first set.
    within_noise : bool
        For ECE and VECE, whether a perfect model could have this value by chance.
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
    claim: str = ""
    p_value: float = math.nan
    p_holm: float = math.nan
    within_noise: bool = False


@dataclass(frozen=True, eq=False)
class Comparison:
    """Sets of probabilities for the same rows, compared with the first of them.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        One per method and figure.
    methods : tuple of str
        The sets, the baseline first.
    event, hits : str
        What the probabilities are about, and whose predictions count as correct or wrong. With
        "both", `claim` of a row says which claim it is about.
    level : float
        The level of all intervals.
    n_rows, n_dropped : int
        The rows compared, and the rows dropped because their outcome is missing.
    curves : dict of dict of Curve
        By variable, then by method. A variable that is missing at every row has none.
    n_bins, binning
        How variables were binned.
    grouped : bool
        Whether dependence within groups was allowed for.
    """

    rows: tuple[ComparisonRow, ...]
    methods: tuple[str, ...]
    event: str
    hits: str
    level: float
    n_rows: int
    backend: str | None = None
    curves: dict[str, dict[str, Curve]] = field(default_factory=dict)
    n_dropped: int = 0
    n_bins: int = 10
    binning: str = "quantile"
    grouped: bool = False

    @checked(method=check_text, metric=check_text, variable=check_text)
    def row(self, method: str, metric: str, variable: str = "") -> ComparisonRow:
        """Return one figure."""
        for row in self.rows:
            if (row.method, row.metric, row.variable) == (method, metric, variable):
                return row
        check_choice("method", method, self.methods)
        check_choice("metric", metric, list(dict.fromkeys(name for name, _ in self.figures)))
        check_choice("variable", variable, [one for name, one in self.figures if name == metric])
        raise InputError("there is no such figure", "to_frame() lists all of them")

    @property
    def figures(self) -> tuple[tuple[str, str], ...]:
        """The figures as (metric, variable), in order."""
        return tuple(dict.fromkeys((row.metric, row.variable) for row in self.rows))

    @property
    def figure_names(self) -> list[str]:
        """The figures as text; where both claims are judged, with the claim of each."""
        base = [self.row(self.methods[0], *figure) for figure in self.figures]
        named = self.event == "both"
        return [
            f"{row.metric} {row.variable}".strip()
            + (f" ({row.claim})" if named and row.claim else "")
            for row in base
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON (NaN as None)."""
        names = ["event", "hits", "level", "n_rows", "n_dropped", "n_bins", "binning", "grouped"]
        return {
            "methods": list(self.methods),
            **{name: getattr(self, name) for name in names},
            "rows": [
                {name: None if value != value else value for name, value in vars(row).items()}
                for row in self.rows
            ],
            "curves": {
                variable: {method: curve.to_dict() for method, curve in curves.items()}
                for variable, curves in self.curves.items()
            },
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Comparison:
        """Return the comparison that `to_dict` described."""
        return restored(lambda: cls._of(data), cls, "a comparison")

    def _check_saved(self) -> None:
        """Raise ValueError unless every figure has a row for every method."""
        if not self.methods or not 0 < self.level < 1 or self.n_rows < 0:
            raise ValueError("there are no methods, or the level is not a share")
        figures = {(row.metric, row.variable) for row in self.rows}
        found = [(row.metric, row.variable, row.method) for row in self.rows]
        if len(set(found)) < len(found) or len(found) != len(figures) * len(self.methods):
            raise ValueError("a figure is given twice, or not for every method")
        if not {row.method for row in self.rows} <= set(self.methods):
            raise ValueError("a row has an unknown method")
        if any(row.verdict not in COMPARED or row.metric not in LEAST_CHANGE for row in self.rows):
            raise ValueError("a row has an unknown verdict or metric")
        if any(set(curves) != set(self.methods) for curves in self.curves.values()):
            raise ValueError("a variable does not have a curve for every method")

    @classmethod
    def _of(cls, data: dict[str, Any]) -> Comparison:
        plain = {one.name: data[one.name] for one in fields(cls) if one.name in data}
        plain["methods"] = tuple(data["methods"])
        plain["rows"] = tuple(
            ComparisonRow(
                **row
                | {
                    name: math.nan if row.get(name) is None else float(row[name])
                    for name in _NUMBERS
                }
            )
            for row in data["rows"]
        )
        plain["curves"] = {
            variable: {method: Curve.from_dict(curve) for method, curve in curves.items()}
            for variable, curves in data.get("curves", {}).items()
        }
        return cls(**plain)

    def to_frame(self) -> Any:
        """Return the long table as a frame of the input's library."""
        names = [one.name for one in fields(ComparisonRow)]
        return frame_of(
            {name: [getattr(row, name) for row in self.rows] for name in names}, self.backend
        )

    @checked()
    def plot(self, ax: Any = None, *, metric: str = "VECE", top: int = 8) -> Any:
        """Draw one figure of every set: dots with intervals, grouped by variable.

        The dot of the baseline is hollow. Beside each other set stand its verdict and its
        difference from the baseline. Grey bars show how large the value of a perfect model could
        be by chance.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        metric : {"VECE", "ECE", "accuracy", "log-loss", "Brier", "AUC"}
            The figure to draw.
        top : int
            The largest number of variables to draw, those with the largest VECE of the baseline
            first.

        Returns
        -------
        matplotlib Axes
        """
        from varcal._plotting.ranking import draw_comparison  # noqa: PLC0415

        return draw_comparison(self, ax, metric, top)

    @checked()
    def report(self, path: str | PathLike[str], *, title: str = "Before and after") -> None:
        """Write a report: a self-contained HTML page, Markdown, or JSON.

        Parameters
        ----------
        path : path
            The file; its extension sets the format: ``.html``, ``.md`` or ``.json``.
        title : str
            The heading.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import varcal as vc
        >>> sim = vc.datasets.make_gap(500)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "compare.md"
        >>> found = vc.compare(sim.y, {"raw": sim.p, "truth": sim.rate}, {"v": sim.v})
        >>> found.report(path)
        >>> path.read_text(encoding="utf-8")[:18]
        '# Before and after'
        """
        from varcal._report import write_comparison  # noqa: PLC0415  loads when first used

        write_comparison(self, path, title=title)

    def _shown(self) -> dict[str, list[str]]:
        """Return the columns of the printed table: the figures, then one column per method."""
        columns = {"figure": self.figure_names}
        for method in self.methods:
            found = [self.row(method, *figure) for figure in self.figures]
            columns[f"{method} " if method == "figure" else method] = [
                metric_text(row.metric, row.value)
                + (f" {row.verdict}" if row.verdict in CHANGED else "")
                for row in found
            ]
        return columns

    @property
    def _head(self) -> str:
        rows = f"{self.n_rows:,} held-out rows"
        return f"{rows}, compared with {self.methods[0]}; ECE and VECE in points"

    def __repr__(self) -> str:
        return f"{self._head}\n{text_table(self._shown())}"

    def _repr_html_(self) -> str:
        return html_table(self._shown(), self._head)
