"""Sentences of the report, and the words that depend on the event."""

from __future__ import annotations

from dataclasses import dataclass

from varcal._measures.regions import Region
from varcal._text.numbers import OVER, UNDER, count, gap_side, percent, points, signed

#: Longer names are cut in sentences and tables; the JSON report has them in full.
NAME_LENGTH = 60


class Named(str):
    """Text that came from the data (a column, a level, a label), to be escaped."""

    __slots__ = ()


@dataclass(frozen=True)
class Sentence:
    """A sentence whose parts that came from the data are `Named`.

    >>> str(Sentence.of("Most along ", Named("age"), "."))
    'Most along age.'
    """

    parts: tuple[str, ...]

    @classmethod
    def of(cls, *parts: str | Sentence) -> Sentence:
        """Join parts and sentences."""
        flat: list[str] = []
        for part in parts:
            flat += part.parts if isinstance(part, Sentence) else (part,)
        return cls(tuple(flat))

    def __str__(self) -> str:
        return "".join(self.parts)


def cut(text: str, length: int = NAME_LENGTH) -> str:
    """Cut a long name and say how long it is; quote a blank one.

    >>> cut("a" * 100, 5), cut(" ")
    ('aaaaa… (100 characters)', "' '")
    """
    if not text.strip():
        return repr(text)
    return text if len(text) <= length + 20 else f"{text[:length]}… ({len(text):,} characters)"


@dataclass(frozen=True)
class Wording:
    """The names of the figures of an event.

    Attributes
    ----------
    actual, predicted : str
        The two lines of a chart.
    happened, expected : str
        As in "wrong 15.3% of the time, expected 35.1%".
    over, under : str
        The two signs of a gap.
    score, hit : str
        The axes of the reliability diagram.
    risk : bool
        Whether charts show the hit rate, not its complement.
    """

    actual: str
    predicted: str
    happened: str
    expected: str
    over: str
    under: str
    score: str
    hit: str
    risk: bool

    def shown(self, rate: float) -> float:
        """Turn a hit rate or a mean score into what charts show."""
        return rate if self.risk else 1 - rate

    def side(self, gap: float) -> str:
        """Name the sign of a gap."""
        return self.over if gap > 0 else self.under

    def at(self, actual: float, predicted: float) -> str:
        """Say what happened and what was expected."""
        return (
            f"{self.happened} {percent(actual)} of the time, {self.expected} {percent(predicted)}"
        )


CORRECT = Wording(
    actual="actual error",
    predicted="predicted error",
    happened="wrong",
    expected="expected",
    over=gap_side(1, "correct"),
    under=gap_side(-1, "correct"),
    score="confidence",
    hit="accuracy",
    risk=False,
)
POSITIVE = Wording(
    actual="actual rate",
    predicted="predicted rate",
    happened="happened",
    expected="predicted",
    over=gap_side(1, "positive"),
    under=gap_side(-1, "positive"),
    score="predicted probability",
    hit="actual rate",
    risk=True,
)


def wording(event: str) -> Wording:
    """Return the words of an event."""
    return POSITIVE if event == "positive" else CORRECT


def region_words(region: Region, words: Wording) -> Sentence:
    """Say where the gap is and how large.

    >>> region = Region(60, 72, "60 to 72", "over", 0.061, 0.094, 0.1, 1204)
    >>> str(region_words(region, CORRECT))
    '▲ overconfident by 6.1 to 9.4 points for 60 to 72 (1,204 rows)'
    """
    if region.gap_low < 0 < region.gap_high:
        size = f"gap of {signed(region.gap_low)} to {signed(region.gap_high)} points"
        mark = OVER if region.direction == "over" else UNDER
    else:
        small, large = sorted((abs(region.gap_low), abs(region.gap_high)))
        ends = [points(small), points(large)]
        mark = OVER if region.gap_high > 0 else UNDER
        range_ = ends[0] if ends[0] == ends[1] else " to ".join(ends)
        size = f"{words.side(region.gap_high)} by {range_} points"
    rows = count(region.n, "row")
    return Sentence.of(f"{mark} {size} for ", Named(cut(region.label)), f" ({rows})")
