"""The content of the report of a comparison, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass

from varcal._audit.comparison import ComparisonRow
from varcal._measures.histogram import Histogram
from varcal._measures.regions import Region
from varcal._report.lines import Line
from varcal._text.sentences import Sentence

#: Which direction is better, in words.
BETTER_WHEN = "Larger is better for accuracy and AUC, smaller for all others."


@dataclass(frozen=True)
class FigureSummary:
    """One figure of every method, the baseline first.

    Attributes
    ----------
    metric, variable : str
        The figure, and for VECE the variable.
    unit : str
        The unit in which its values are shown: "points", "%" or none.
    rows : tuple of ComparisonRow
        One per method.
    """

    metric: str
    variable: str
    unit: str
    rows: tuple[ComparisonRow, ...]


@dataclass(frozen=True)
class Panel:
    """The curve of one method along a variable.

    Attributes
    ----------
    worst : Sentence
        Where its gap is largest.
    """

    method: str
    line: Line
    regions: tuple[Region, ...]
    histogram: Histogram | None
    worst: Sentence


@dataclass(frozen=True)
class VariableChange:
    """How VECE along one variable changed.

    Attributes
    ----------
    finding : Sentence
        VECE before, and with each of the methods.
    panels : tuple of Panel
        One curve per method; none if the variable is missing at every row.
    """

    name: str
    finding: Sentence
    vece: FigureSummary
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class ComparisonSummary:
    """The content of the report of a comparison.

    Attributes
    ----------
    headlines : tuple of Sentence
        What each method but the first fixes, leaves as it is and makes worse.
    figures : tuple of FigureSummary
        The table.
    variables : tuple of VariableChange
        Those that a method made worse come first, then by VECE of the baseline.
    """

    title: str
    created: str
    event: str
    hits: str
    headlines: tuple[Sentence, ...]
    checked: Sentence
    methods: tuple[str, ...]
    n_rows: int
    n_dropped: int
    level: float
    figures: tuple[FigureSummary, ...]
    variables: tuple[VariableChange, ...]
    notes: tuple[Sentence, ...]
    method: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]
    citation: tuple[str, ...]
