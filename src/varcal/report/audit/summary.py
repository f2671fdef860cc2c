"""The content of the report of an audit, whatever its format."""

from __future__ import annotations

from dataclasses import dataclass

from varcal._inference.measured import Measured
from varcal._measures.histogram import Histogram
from varcal._measures.regions import Region
from varcal.report.words import Sentence

Numbers = tuple[float, ...]


@dataclass(frozen=True)
class Bin:
    """One bin of a variable or of the score.

    Attributes
    ----------
    label : str
        The bin as text.
    n, share
        Its rows and its share of the weight.
    actual, predicted : float
        As charts show them: error rates, or rates for event "positive"; NaN without rows.
    gap, gap_low, gap_high : float
        Mean score − hit rate with its interval.
    """

    label: str
    n: int
    share: float
    actual: float
    predicted: float
    gap: float
    gap_low: float
    gap_high: float


@dataclass(frozen=True)
class Line:
    """A curve as it is drawn: fewer points, within the range of the chart.

    Attributes
    ----------
    kind : {"numeric", "datetime", "levels"}
        What x is: numbers, seconds since 1970, or 0, 1, … for levels.
    x, labels
        The values, and the same as text.
    actual, actual_low, actual_high, predicted : tuple of float
        What happened with its pointwise band, and what was predicted.
    n : tuple of int
        Rows of each level; none for numbers and dates.
    left_out : int
        Levels beyond those drawn.
    """

    kind: str
    x: Numbers
    labels: tuple[str, ...]
    actual: Numbers
    actual_low: Numbers
    actual_high: Numbers
    predicted: Numbers
    n: tuple[int, ...] = ()
    left_out: int = 0


@dataclass(frozen=True)
class VariableSummary:
    """The content of the report for one variable.

    Attributes
    ----------
    rank, rank_low, rank_high : int
        Its rank, and the range of ranks that its interval allows.
    finding, where, worst : Sentence
        Whether the gap changes, where it differs most from the overall gap, and the same with
        what happened at v*.
    vece, beyond : Measured
        VECE, and what of it lies beyond the overall gap.
    other_vece : float or None
        VECE of the other claim of a binary model.
    regions : tuple of Region
        Where the simultaneous band excludes the prediction.
    """

    rank: int
    rank_low: int
    rank_high: int
    name: str
    kind: str
    verdict: str
    direction: str
    finding: Sentence
    where: Sentence
    worst: Sentence
    vece: Measured
    beyond: Measured
    p_holm: float
    other_vece: float | None
    line: Line
    at_worst: int
    regions: tuple[Region, ...]
    histogram: Histogram | None
    bins: tuple[Bin, ...]
    notes: tuple[Sentence, ...]


@dataclass(frozen=True)
class ReliabilitySummary:
    """The reliability diagram: hit rate along the score.

    Attributes
    ----------
    line : Line
        Its `actual` is the hit rate, its `predicted` the score.
    bins : tuple of Bin
        With hit rates as `actual` and mean scores as `predicted`.
    consistency : tuple of float
        How far the bins of a calibrated model can be from the diagonal by chance.
    """

    finding: Sentence
    ece: Measured
    line: Line
    bins: tuple[Bin, ...]
    consistency: Numbers
    histogram: Histogram | None


@dataclass(frozen=True)
class Overall:
    """The figures of all rows together."""

    gap: float
    gap_low: float
    gap_high: float
    actual: float
    predicted: float
    other_event: str | None
    other_gap: float | None


@dataclass(frozen=True)
class Summary:
    """The content of a report.

    Attributes
    ----------
    headline, worst, checked : Sentence
        The finding, where the gap is largest, and what was checked.
    verdicts : tuple of (str, int)
        The number of variables with each verdict.
    """

    title: str
    created: str
    event: str
    headline: Sentence
    worst: Sentence
    checked: Sentence
    overall: Overall
    verdicts: tuple[tuple[str, int], ...]
    n_rows: int
    n_dropped: int
    level: float
    threshold: float
    variables: tuple[VariableSummary, ...]
    reliability: ReliabilitySummary
    notes: tuple[Sentence, ...]
    method: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]
    citation: tuple[str, ...]
