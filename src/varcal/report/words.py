"""Words and numbers of the report: how sizes are written, and what is said of them."""

from __future__ import annotations

from dataclasses import dataclass

from varcal._input.events import gap_side
from varcal._measures.regions import Region

MINUS = "\N{MINUS SIGN}"
#: Longer names are cut in sentences and tables; the full one is in the JSON.
NAME_LENGTH = 60


class Named(str):
    """Text that came from the data (a column, a level, a label): isolated and escaped."""

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
    """Cut a long name and say how long it is; quote one that could not be seen.

    >>> cut("a" * 100, 5), cut(" ")
    ('aaaaa… (100 characters)', "' '")
    """
    if not text.strip():
        return repr(text)
    return text if len(text) <= length + 20 else f"{text[:length]}… ({len(text):,} characters)"


def percent(value: float) -> str:
    """Write a share.

    >>> percent(0.153), percent(-0.00001), percent(float("nan"))
    ('15.3%', '0.0%', '–')
    """
    return "–" if value != value else f"{_fixed(value)}%"


def points(value: float) -> str:
    """Write a gap or an error in points, without a sign of its own.

    >>> points(0.0683), points(-0.2)
    ('6.8', '−20.0')
    """
    return "–" if value != value else _fixed(value)


def signed(value: float) -> str:
    """Write a gap in points with its sign.

    >>> signed(0.0683), signed(-0.00001)
    ('+6.8', '0.0')
    """
    text = points(value)
    return text if text in ("0.0", "–") or text.startswith(MINUS) else f"+{text}"


def p_text(p: float) -> str:
    """Write a p-value.

    >>> p_text(1e-9), p_text(0.0421)
    ('<0.001', '0.042')
    """
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def count(n: int, noun: str = "") -> str:
    """Write a number of things.

    >>> count(16281, "row"), count(1, "row")
    ('16,281 rows', '1 row')
    """
    return f"{n:,}" if not noun else f"{n:,} {noun}{'' if n == 1 else 's'}"


def interval(low: float, high: float) -> str:
    """Write an interval in points.

    >>> interval(-0.012, 0.03)
    '−1.2 to 3.0'
    """
    return f"{points(low)} to {points(high)}"


def _fixed(value: float) -> str:
    text = f"{100 * value:.1f}"
    if text == "-0.0":
        return "0.0"
    return text.replace("-", MINUS)


@dataclass(frozen=True)
class Wording:
    """What the figures of an event are called.

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
        Whether charts show the hit rate rather than its complement.
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
    """Say where the gap is and by how much.

    >>> region = Region(60, 72, "60 to 72", "over", 0.061, 0.094, 0.1, 1204)
    >>> str(region_words(region, CORRECT))
    '▲ overconfident by 6.1 to 9.4 points for 60 to 72 (1,204 rows)'
    """
    if region.gap_low < 0 < region.gap_high:
        size = f"gap of {signed(region.gap_low)} to {signed(region.gap_high)} points"
        mark = "▲" if region.direction == "over" else "▼"
    else:
        small, large = sorted((abs(region.gap_low), abs(region.gap_high)))
        ends = [points(small), points(large)]
        mark = "▲" if region.gap_high > 0 else "▼"
        range_ = ends[0] if ends[0] == ends[1] else " to ".join(ends)
        size = f"{words.side(region.gap_high)} by {range_} points"
    rows = count(region.n, "row")
    return Sentence.of(f"{mark} {size} for ", Named(cut(region.label)), f" ({rows})")
