"""The record of an audit: what the probabilities are of, and one record per variable.

Every screen, page, table, picture, gate and file reads these fields; nothing else holds a figure.
"""

from __future__ import annotations

import math
import sys
import typing
from collections.abc import Hashable
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import Any

from varcal._audit.verdict import FEW_EVENTS, LIMIT, RARE
from varcal._files.schema import hints_of
from varcal._inference.debiased import Measured
from varcal._measures.bin_table import BinTable
from varcal._text import VERDICTS, Shown, Unit, p_text, unit_of


def saved(value: Any) -> Any:
    """Return a record in plain Python types: NaN, where something was not tested, as None."""
    if isinstance(value, BinTable):
        return value.to_dict()
    if isinstance(value, tuple | list):
        return [saved(one) for one in value]
    if is_dataclass(value):
        return {one.name: saved(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, dict):
        return {name: saved(one) for name, one in value.items()}
    return None if value != value else value


def read(data: Any, hint: Any) -> Any:
    """Return the record of a type that `saved` described; `conform` checks it afterwards."""
    inner = typing.get_args(hint)
    if hint is BinTable:
        return BinTable.from_dict(data)
    if isinstance(hint, type) and is_dataclass(hint):
        hints = hints_of(typing.cast("Hashable", hint))
        return hint(**{name: read(one, hints[name]) for name, one in data.items()})
    if typing.get_origin(hint) is tuple:
        return tuple(read(one, inner[0]) for one in data)
    if typing.get_origin(hint) is dict:
        return {name: read(one, inner[1]) for name, one in data.items()}
    return math.nan if data is None and hint is float else data


def bins_of(table: BinTable) -> list[dict[str, Any]]:
    """Return the rows of a table of bins, each by column."""
    names = list(table.columns)
    return [dict(zip(names, one, strict=True)) for one in zip(*table.columns.values(), strict=True)]


#: How the gaps of a target are measured.
SCALES = ("points", "relative", "difference")
#: The name of the target "the predicted class is right", with more than two classes.
TOP_CLASS = "top class"
#: No figure of a saved audit of probabilities is larger, and none has more decimals.
LARGEST, MOST_DIGITS = 1e3, 6


def largest(scale: str) -> float:
    """Return what no figure of a saved record is above; amounts are only finite."""
    return LARGEST if scale == "points" else sys.float_info.max


@dataclass(frozen=True, eq=False)
class Target:
    """What the probabilities are of, over all rows.

    Attributes
    ----------
    name : str
        "P(churn = Yes)"; with more than two classes "top class" first, then one per class.
    label : str
        The class, empty for the top class.
    sides : tuple of str
        The names of the predicted sides, such as ("No", "Yes"). Empty for the top class, or if
        one side has under 1 % of the rows.
    predicted, observed : float
        The mean of the probabilities, and how often it happens.
    gap, gap_low, gap_high, p_value : float
        Their difference with its interval, and the p-value of no difference.
    by_score : Measured
        The expected calibration error: the mean absolute gap over bins of the probability.
    score : BinTable
        These bins.
    events : int
        Rows of the rarer outcome; with weights, as many as say the same (Kish). Of means, over how
        many rows the variance is spread: few if a few large amounts carry it.
    limit, limit_reason : float, str
        The error that matters, and why.
    scale : {"points", "relative", "difference"}
        How gaps are measured: in probability; of a mean relative to it (1 − A/E), or as predicted −
        observed.
    """

    name: str
    label: str
    sides: tuple[str, ...]
    predicted: float
    observed: float
    gap: float
    gap_low: float
    gap_high: float
    p_value: float
    by_score: Measured
    score: BinTable
    events: int
    limit: float
    limit_reason: str
    scale: str = "points"

    @property
    def few_events(self) -> bool:
        """Whether there are too few events to call anything fine."""
        return self.events < FEW_EVENTS

    @property
    def unit(self) -> Unit:
        """How rates and errors are written: with two decimals where events are rare."""
        if self.scale != "points":
            return unit_of(self.scale)
        rare = min(self.observed, 1 - self.observed) < RARE or self.limit < LIMIT / 2
        return Unit(2 if rare else 1)

    def _check_saved(self) -> None:
        """Raise ValueError unless the figures are shares."""
        figures = (self.predicted, self.observed, self.gap, self.gap_low, self.gap_high, self.limit)
        most = largest(self.scale)
        missing = any(figure != figure for figure in figures) or self.events < 0
        if missing or any(abs(x) > most for x in (*figures, *vars(self.by_score).values())):
            raise ValueError("a figure of a target is missing or too large")
        named = len({"", "all", *self.sides}) - 2  # those two mean both sides together
        if self.limit > 1 and self.scale != "difference":
            raise ValueError("the limit of a target is above 1")
        if self.limit < 0 or self.scale not in SCALES or not named == len(self.sides) in (0, 2):
            raise ValueError("the limit or the sides of a target are not valid")


@dataclass(frozen=True)
class Place:
    """A part of a variable: a level, a range of values, or the missing values.

    Attributes
    ----------
    variable, target : str
        The variable, and what the probabilities are of.
    text, label : str
        The part as text ("36 to 60"), and with the name of the variable ("age 36 to 60").
    side : str
        The predicted side whose rows these are ("Yes"); empty for all rows of the part.
    predicted, observed : float
        Mean probability, and how often it happens.
    gap, low, high : float
        The difference of the two, with an interval that holds for all places of all variables.
    n : int
        The number of rows.
    share : float
        Their share of the weight.
    worse : bool
        Whether the gap is larger than what the average of all rows explains.
    first_bin, last_bin : int
        The bins that it is made of.
    """

    variable: str
    target: str
    text: str
    label: str
    side: str
    predicted: float
    observed: float
    gap: float
    low: float
    high: float
    n: int
    share: float
    worse: bool
    first_bin: int
    last_bin: int

    @property
    def numbers(self) -> tuple[float, ...]:
        """The figures that a saved place must have in their range."""
        return self.predicted, self.observed, self.gap, self.low, self.high, self.share

    @property
    def is_sure(self) -> bool:
        """Whether the gap is surely not zero."""
        return self.low > 0 or self.high < 0

    def _check_saved(self) -> None:
        """Raise ValueError unless the rows and the bins are possible."""
        if self.n < 0:
            raise ValueError("the rows of a place are negative")
        if not 0 <= self.first_bin <= self.last_bin:
            raise ValueError("the bins of a place are not in order")


@dataclass(frozen=True)
class TargetFigures:
    """The errors of one target along a variable.

    Attributes
    ----------
    target : str
        What the probabilities are of.
    error, uneven : Measured
        The mean absolute gap over the cells (bins within each predicted side), and the same once
        the average gap of each side is taken off; each with its own interval.
    low, high : float
        Interval of `uneven` that holds for all variables (and targets) at once.
    """

    target: str
    error: Measured
    uneven: Measured
    low: float
    high: float


@dataclass(frozen=True, repr=False, eq=False)
class AuditRow(Shown):
    """The results for one variable.

    Attributes
    ----------
    variable, kind : str
        The variable and its kind.
    verdict : {"above limit", "may be above", "below limit", "no evidence", "too few rows"}
        With evidence of uneven error: where its interval lies. Otherwise whether there are enough
        rows to say.
    target : str
        What the probabilities are of; with more than two classes the target that is most off.
    error : Measured
        The mean absolute gap over the cells: bins within each predicted side.
    uneven : Measured
        The same once the average gap of each side is taken off. Its p-value is for "the gap is
        the same everywhere within each side" (for all targets).
    low, high : float
        Interval of `uneven` that holds for all variables at once; it excludes 0 where `p_holm`
        is below 1 − level.
    p_holm, p_bh : float
        The p-value, adjusted for the number of variables.
    rank_low, rank_high : int
        The range of ranks that the interval of `uneven` allows.
    table : BinTable
        Rows, says, happens and difference of each bin, over all rows and by predicted side.
    places : tuple of Place
        Where it is most clearly wrong, at most two; empty without evidence.
    missing : float
        The share of rows whose value is missing.
    others : tuple of TargetFigures
        With more than two classes, the other targets.
    scale : {"points", "relative", "difference"}
        How gaps are measured (`Target`).
    """

    variable: str
    kind: str
    verdict: str
    target: str
    error: Measured
    uneven: Measured
    low: float
    high: float
    p_holm: float
    p_bh: float
    rank_low: int
    rank_high: int
    table: BinTable
    places: tuple[Place, ...]
    missing: float
    others: tuple[TargetFigures, ...] = ()
    scale: str = "points"

    @property
    def place(self) -> Place | None:
        """The place that is most clearly wrong; None without evidence."""
        return self.places[0] if self.places else None

    @property
    def figures(self) -> tuple[TargetFigures, ...]:
        """The figures of each target, the one of the row first."""
        own = TargetFigures(self.target, self.error, self.uneven, self.low, self.high)
        return (own, *self.others)

    @property
    def unit(self) -> Unit:
        """How rates and errors of the row by itself are written."""
        return unit_of(self.scale)

    @cached_property
    def bins(self) -> dict[str, list[dict[str, Any]]]:
        """The bins of the table over all rows ("all") and within each predicted side."""
        found: dict[str, list[dict[str, Any]]] = {}
        for one in bins_of(self.table):
            found.setdefault(one["side"], []).append(one)
        return found

    @property
    def n_bins(self) -> int:
        """The number of bins with rows."""
        return sum(one["n"] > 0 for one in self.bins["all"])

    @property
    def weighted(self) -> bool:
        """Whether rows have different weights, so that shares are not those of counts."""
        every = self.bins["all"]
        n = sum(one["n"] for one in every)
        return any(abs(one["n"] / n - one["share"]) > 1e-9 for one in every)

    def plot(self, ax: Any = None) -> Any:
        """Draw what the model says and what happens over the bins.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw the bins of all rows; by default a new figure, with a panel for each
            predicted side as well.
        """
        from varcal._report.plot_variables import draw_variable  # noqa: PLC0415

        return draw_variable(self, ax)

    def _shown(self) -> tuple[str, dict[str, list[str]], str]:
        unit, held = self.unit, [one for bins in self.bins.values() for one in bins if one["n"]]
        rates = [(one["predicted"], one["observed"]) for one in held]
        shown = {"bin": [one["bin"] for one in held]}
        if self.scale == "points":
            shown["predicted as"] = [one["side"] for one in held]
        shown |= {
            "rows": [f"{one['n']:,}" for one in held],
            unit.says: [unit.rate(says) for says, _ in rates],
            unit.happens: [unit.rate(happens) for _, happens in rates],
            unit.gap: [unit.signed(unit.difference(*both)) for both in rates],
        }
        head = (
            f"{self.variable}: {self.verdict}, uneven error of {self.target} "
            f"{unit.size(self.uneven.debiased)} ({unit.ends(self.low, self.high)}), "
            f"p {p_text(self.p_holm)} for all variables"
        )
        return head, shown, ""

    def _check_saved(self) -> None:
        """Raise ValueError unless the figures are shares, or missing."""
        figures = [self.missing]
        for one in self.figures:
            figures += [one.low, one.high, *vars(one.error).values(), *vars(one.uneven).values()]
        if any(abs(figure) > largest(self.scale) for figure in figures):
            raise ValueError("a figure of a variable is too large")
        if self.verdict not in VERDICTS or "side" not in self.table.columns:
            raise ValueError("a row has an unknown verdict, or a table without sides")
        if not 1 <= self.rank_low <= self.rank_high:
            raise ValueError("the ranks of a row are not in order")
