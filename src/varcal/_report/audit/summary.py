"""The content of the report of an audit, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from varcal._audit.first_screen import FirstScreen
from varcal._measures.histogram import Histogram
from varcal._measures.regions import Region
from varcal._report.lines import Line
from varcal._surfaces.surface_result import Surface
from varcal._text.sentences import Sentence


@dataclass(frozen=True)
class Bin:
    """One bin of a variable or of the score, with rows.

    Attributes
    ----------
    label : str
        The bin as text.
    n, share
        Its rows and its share of the weight.
    says, happens : float
        The two rates of the claim.
    gap, low, high : float
        Says − happens with its interval.
    """

    label: str
    n: int
    share: float
    says: float
    happens: float
    gap: float
    low: float
    high: float


@dataclass(frozen=True)
class Hidden:
    """The uneven error of one claim along a variable, with its interval."""

    title: str
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Spot:
    """The clearest place of a variable.

    Attributes
    ----------
    text : str
        The place, without the variable.
    claim : str
        The claim that is wrong there.
    says, happens, gap, low, high : float
        The two rates, and their difference with its interval.
    n : int
        Rows.
    better : Sentence
        That the place is better than the rest; empty if it is not.
    """

    text: str
    claim: str
    says: float
    happens: float
    gap: float
    low: float
    high: float
    n: int
    better: Sentence


@dataclass(frozen=True)
class Panel:
    """One claim along a variable as it is drawn.

    Attributes
    ----------
    title, note : Sentence
        What the chart shows, and what to see in it.
    claim : str
        The claim.
    line : Line
        The two rates.
    regions : tuple of Region
        Where the simultaneous band excludes the prediction.
    histogram : Histogram or None
        How often values occur; None for levels.
    worst : int
        The point of the line with the largest gap.
    """

    title: Sentence
    note: Sentence
    claim: str
    line: Line
    regions: tuple[Region, ...]
    histogram: Histogram | None
    worst: int

    @property
    def worst_is_sure(self) -> bool:
        """Whether the largest gap is surely not zero."""
        line, k = self.line, self.worst
        return not line.actual_low[k] <= line.predicted[k] <= line.actual_high[k]


@dataclass(frozen=True)
class VariableSummary:
    """The content of the report for one variable.

    Attributes
    ----------
    rank : int
        Its rank.
    claim : str
        The claim with the larger uneven error.
    wrong : Sentence
        The claims that are wrong.
    hidden, low, high : float
        Uneven error, with an interval that holds for all variables at once.
    claims : tuple of Hidden
        The uneven error of each column of the checks.
    spot : Spot or None
        The clearest place; None without evidence.
    weakest : Spot
        Where least is known.
    after : Hidden or None
        Uneven error after a repair.
    places : tuple of Sentence
        What is wrong where, in words.
    main, other, repaired : Panel or None
        The claim itself, the other one, and the claim after a repair.
    levels : tuple of Spot
        The levels of the variable; none for numbers and dates.
    bins : tuple of Bin
        The bins behind the figures.
    statistics : tuple of Sentence
        VECE, p-values and ranks.
    """

    rank: int
    name: str
    kind: str
    verdict: str
    claim: str
    wrong: Sentence
    hidden: float
    low: float
    high: float
    claims: tuple[Hidden, ...]
    spot: Spot | None
    weakest: Spot
    after: Hidden | None
    places: tuple[Sentence, ...]
    main: Panel
    other: Panel | None
    repaired: Panel | None
    levels: tuple[Spot, ...]
    bins: tuple[Bin, ...]
    notes: tuple[Sentence, ...]
    statistics: tuple[Sentence, ...]


@dataclass(frozen=True)
class ScoreSummary:
    """What happens along the score: the reliability diagram of one claim.

    Attributes
    ----------
    finding : Sentence
        ECE in words.
    line : Line
        Its `actual` is the hit rate, its `predicted` the score.
    consistency : tuple of float
        How far the bins of a calibrated model can be from the diagonal by chance.
    """

    claim: str
    finding: Sentence
    line: Line
    bins: tuple[Bin, ...]
    consistency: tuple[float, ...]
    histogram: Histogram | None


@dataclass(frozen=True)
class SliceSummary:
    """One slice.

    Attributes
    ----------
    rule : str
        Its conditions in words.
    sentence : Sentence
        What is wrong there.
    better : bool
        Whether it only stands out because it is less wrong than the rest.
    claim : str
        The claim that is wrong.
    says, happens, gap, low, high : float
        The two rates, and their difference with its interval.
    n, share
        Rows, and their share of the weight.
    p_adjusted : float
        Its p-value, adjusted for the search.
    """

    rule: str
    sentence: Sentence
    better: bool
    claim: str
    says: float
    happens: float
    gap: float
    low: float
    high: float
    n: int
    share: float
    p_adjusted: float


@dataclass(frozen=True)
class IntersectionSummary:
    """What was found over several variables at once.

    Attributes
    ----------
    number : Sentence
        How much of the gap can be predicted.
    predictable : dict
        The same as figures.
    slices : tuple of SliceSummary
        The slices, the clearest first.
    finding : Sentence
        What the surface shows.
    surface : Surface or None
        The gap over two variables.
    notes : tuple of Sentence
        How it was searched.
    """

    number: Sentence
    predictable: dict[str, Any]
    slices: tuple[SliceSummary, ...]
    finding: Sentence
    surface: Surface | None
    notes: tuple[Sentence, ...]


@dataclass(frozen=True)
class Summary:
    """The content of the report of an audit.

    Attributes
    ----------
    screen : FirstScreen
        What a reader meets first.
    outcome : str
        The class that risks are about.
    variables : tuple of VariableSummary
        In the order of the ranking.
    scores : tuple of ScoreSummary
        One per column of the checks.
    intersections : IntersectionSummary or None
        Slices, a surface and the predictable gap, if they were asked for.
    glossary : tuple of (str, Sentence)
        Words of the page.
    notes : tuple of Sentence
        Remarks on the data.
    """

    title: str
    created: str
    event: str
    screen: FirstScreen
    outcome: str
    n_rows: int
    n_dropped: int
    level: float
    limit: float
    variables: tuple[VariableSummary, ...]
    scores: tuple[ScoreSummary, ...]
    intersections: IntersectionSummary | None
    glossary: tuple[tuple[str, Sentence], ...]
    notes: tuple[Sentence, ...]
    method: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]
    citation: tuple[str, ...]
