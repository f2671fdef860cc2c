"""Comparison: what recalibration fixed, left as it was and made worse, on the same rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from os import PathLike
from typing import Any

from varcal._audit.decision import CHANGED, COMPARED
from varcal._files.conform import restored
from varcal._input.frames import frame_of
from varcal._options import check_choice, check_text, checked
from varcal._text import (
    decimals,
    html_table,
    interval,
    percent,
    points,
    signed,
    text_table,
    with_sign,
)
from varcal.exceptions import InputError

LOG_LOSS, BRIER, ACCURACY, AUC = "log-loss", "Brier", "accuracy", "AUC"
AVERAGE, BY_SCORE, UNEVEN = "average", "by score", "uneven"
#: Figures that are better when larger.
HIGHER_IS_BETTER = (ACCURACY, AUC)
#: The least size of a change that counts as better or worse. Sizes that nobody would act on: a
#: tenth of a point of accuracy and AUC, a fifth of a point of calibration error or a tenth of its
#: limit; a log-loss of 0.001 is what a change of all probabilities by about two points costs.
LEAST_CHANGE = {
    LOG_LOSS: 0.001,
    BRIER: 0.0005,
    ACCURACY: 0.001,
    AUC: 0.001,
    AVERAGE: 0.002,
    BY_SCORE: 0.002,
    UNEVEN: 0.002,
}
#: Figures whose values are in points; with accuracy, those whose differences are.
POINTS = (AVERAGE, BY_SCORE, UNEVEN)
#: The numbers of a row, any of which may be NaN.
_NUMBERS = (
    *("value", "low", "high", "noise_floor", "p_value", "p_holm"),
    *("difference", "difference_low", "difference_high"),
)


def metric_text(metric: str, value: float, digits: int = 1) -> str:
    """Write the value of a metric: in points, in percent, or with four decimals.

    >>> metric_text("uneven", 0.0904), metric_text("accuracy", 0.7886)
    ('9.0', '78.9%')
    >>> metric_text("log-loss", 0.50291)
    '0.5029'
    """
    if metric in POINTS:
        return points(value, digits)
    return percent(value) if metric == ACCURACY else decimals(value, 4)


def metric_interval(metric: str, low: float, high: float, digits: int = 1) -> str:
    """Write the ends of an interval of a metric or of a difference.

    >>> metric_interval("accuracy", 0.781, 0.796)
    '78.1 to 79.6'
    """
    if metric in (*POINTS, ACCURACY):
        return interval(low, high, digits)
    return f"{decimals(low, 4)} to {decimals(high, 4)}"


def metric_change(metric: str, value: float, digits: int = 1) -> str:
    """Write a difference of two values of a metric, with its sign.

    >>> metric_change("uneven", -0.116), metric_change("log-loss", 0.00123)
    ('−11.6', '+0.0012')
    """
    if metric in (*POINTS, ACCURACY):
        return signed(value, digits)
    return with_sign(decimals(value, 4))


@dataclass(frozen=True)
class ComparisonRow:
    """One figure of one set of probabilities.

    Attributes
    ----------
    method, metric, variable : str
        The set of probabilities, the figure, and for the uneven error the variable.
    value, low, high : float
        The figure with its interval. The average is the absolute difference of mean probability
        and rate; errors by score and along variables are debiased, as in `audit`.
    noise_floor : float
        For errors by score and along variables, the 95 % quantile of the plug-in value of a
        perfect model.
    difference, difference_low, difference_high : float
        The difference from the first set on the same rows, with its interval.
    verdict : str
        "baseline" for the first set; "fixed" (better, and now within noise), "better",
        "no clear change" (none of a size that matters can be shown) or "made worse".
    target : str
        What the probabilities are of, for errors.
    p_value, p_holm : float
        The p-value of no difference, and the same adjusted for the number of comparisons, from
        which the verdict follows; NaN for the first set.
    within_noise : bool
        For errors, whether a perfect model could have this value by chance.
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
    target: str = ""
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
    label : str
        The name of the outcome.
    target : str
        What average and error by score are about: P(label = class), or the top class.
    level : float
        The level of all intervals.
    n_rows, n_dropped : int
        The rows compared, and the rows dropped because their outcome is missing.
    n_bins, binning
        How variables were binned.
    grouped : bool
        Whether dependence within groups was allowed for.
    digits : int
        The decimals of points: two where events are rare.
    """

    rows: tuple[ComparisonRow, ...]
    methods: tuple[str, ...]
    label: str
    target: str
    level: float
    n_rows: int
    backend: str | None = None
    n_dropped: int = 0
    n_bins: int = 10
    binning: str = "quantile"
    grouped: bool = False
    digits: int = 1

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
    def by_figure(self) -> dict[tuple[str, str], list[ComparisonRow]]:
        """The rows of each figure, in the order of the methods."""
        rows = sorted(self.rows, key=lambda row: self.methods.index(row.method))
        return {
            one: [row for row in rows if (row.metric, row.variable) == one] for one in self.figures
        }

    @property
    def figure_names(self) -> list[str]:
        """The figures as text."""
        return [f"uneven along {one}" if one else metric for metric, one in self.figures]

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON (NaN as None)."""
        names = [one.name for one in fields(self) if one.name not in ("rows", "methods", "backend")]
        return {
            "methods": list(self.methods),
            **{name: getattr(self, name) for name in names},
            "rows": [
                {name: None if value != value else value for name, value in vars(row).items()}
                for row in self.rows
            ],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Comparison:
        """Return the comparison that `to_dict` described."""
        return restored(lambda: cls._of(data), cls, "a comparison")

    def _check_saved(self) -> None:
        """Raise ValueError unless every figure has a row for every method."""
        if not self.methods or not 0 < self.level < 1 or self.n_rows < 0:
            raise ValueError("there are no methods, or the level is not a share")
        if self.digits not in (1, 2):
            raise ValueError("the digits are not 1 or 2")
        figures = {(row.metric, row.variable) for row in self.rows}
        found = [(row.metric, row.variable, row.method) for row in self.rows]
        if len(set(found)) < len(found) or len(found) != len(figures) * len(self.methods):
            raise ValueError("a figure is given twice, or not for every method")
        if not {row.method for row in self.rows} <= set(self.methods):
            raise ValueError("a row has an unknown method")
        if any(row.verdict not in COMPARED or row.metric not in LEAST_CHANGE for row in self.rows):
            raise ValueError("a row has an unknown verdict or metric")

    @classmethod
    def _of(cls, data: dict[str, Any]) -> Comparison:
        plain = {one.name: data[one.name] for one in fields(cls) if one.name in data}
        rows = tuple(
            ComparisonRow(
                **row | {name: math.nan if row[name] is None else row[name] for name in _NUMBERS}
            )
            for row in data["rows"]
        )
        return cls(**plain | {"methods": tuple(data["methods"]), "rows": rows})

    def to_frame(self) -> Any:
        """Return the long table as a frame of the input's library."""
        names = [one.name for one in fields(ComparisonRow)]
        return frame_of(
            {name: [getattr(row, name) for row in self.rows] for name in names}, self.backend
        )

    @checked()
    def plot(self, ax: Any = None, *, metric: str = UNEVEN, top: int = 8) -> Any:
        """Draw one figure of every set: dots with intervals, grouped by variable.

        The dot of the baseline is hollow. Beside each other set stand its verdict and its
        difference from the baseline. Grey bars show how large the value of a perfect model could
        be by chance.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        metric : {"uneven", "by score", "average", "accuracy", "log-loss", "Brier", "AUC"}
            The figure to draw.
        top : int
            The largest number of variables to draw, those with the largest uneven error of the
            baseline first.

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
        from varcal._report import report_comparison  # noqa: PLC0415  loads when first used

        report_comparison(self, path, title=title)

    def _shown(self) -> dict[str, list[str]]:
        """Return the columns of the printed table: the figures, then one column per method."""
        columns = {"figure": self.figure_names}
        for method, rows in zip(
            self.methods, zip(*self.by_figure.values(), strict=True), strict=True
        ):
            columns[f"{method} " if method == "figure" else method] = [
                metric_text(row.metric, row.value, self.digits)
                + (f" {row.verdict}" if row.verdict in CHANGED else "")
                for row in rows
            ]
        return columns

    @property
    def _head(self) -> str:
        rows = f"{self.target}: {self.n_rows:,} rows"
        return f"{rows}, compared with {self.methods[0]}; average and errors in points"

    def __repr__(self) -> str:
        return f"{self._head}\n{text_table(self._shown())}"

    def _repr_html_(self) -> str:
        return html_table(self._shown(), self._head)
