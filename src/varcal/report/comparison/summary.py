"""What a report of a comparison says, without how it looks."""

from __future__ import annotations

from dataclasses import dataclass

from varcal._audit.comparison import ComparisonRow
from varcal._measures.histogram import Histogram
from varcal._measures.regions import Region
from varcal.report.audit.summary import Line
from varcal.report.words import Sentence

#: A mark a verdict, so that none is told by its colour alone.
MARKS = {"baseline": "–", "fixed": "✓", "better": "↗", "unchanged": "○", "made worse": "✗"}


@dataclass(frozen=True)
class FigureSummary:
    """One figure of every method, the baseline first.

    Attributes
    ----------
    metric, variable : str
        The figure, and for VECE the variable.
    unit : str
        What its values are shown in: "points", "%" or none.
    rows : tuple of ComparisonRow
        One a method.
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
    """What became of VECE along one variable.

    Attributes
    ----------
    finding : Sentence
        VECE before, and what each method made of it.
    panels : tuple of Panel
        A curve a method; none where the variable is missing at every row.
    """

    name: str
    finding: Sentence
    vece: FigureSummary
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class ComparisonSummary:
    """All that a report of a comparison says.

    Attributes
    ----------
    headlines : tuple of Sentence
        What each method but the first fixes, leaves and makes worse.
    figures : tuple of FigureSummary
        The table.
    variables : tuple of VariableChange
        Those that a method made worse first, then by VECE of the baseline.
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
