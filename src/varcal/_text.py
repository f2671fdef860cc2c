"""How numbers, p-values, edges, gaps, sentences and tables are written for people."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import escape
from textwrap import fill
from typing import Any, ClassVar, TypeVar

# Numbers and signs as people read them, the same in every terminal, notebook, page and plot.
MINUS = "\N{MINUS SIGN}"
#: Shown for a number that is not known.
UNKNOWN = "–"
#: p-values below this are not written out.
_SMALLEST_P = 0.001


def decimals(value: float, digits: int) -> str:
    """Write a number with a fixed number of decimals and a real minus sign.

    >>> decimals(-0.25, 2), decimals(-0.00001, 4), decimals(float("nan"), 1)
    ('−0.25', '0.0000', '–')
    """
    if value != value:
        return UNKNOWN
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text.replace("-", MINUS)


def with_sign(text: str) -> str:
    """Put a plus sign before a written number that is above zero.

    >>> with_sign("6.8"), with_sign("0.0"), with_sign("−1.0")
    ('+6.8', '0.0', '−1.0')
    """
    return text if text == UNKNOWN or text.startswith(MINUS) or not float(text) else f"+{text}"


@dataclass(frozen=True)
class Unit:
    """How rates and errors are written, in every screen, page, table and picture.

    Attributes
    ----------
    digits : int
        Decimals of rates and errors.
    scale : float
        What both are multiplied by.
    sign, word : str
        What follows a rate, and what errors are counted in.
    """

    digits: int = 1
    scale: float = 100.0
    sign: str = "%"
    word: str = "points"
    #: The heads of what a model says, what happens, and their gap; and how a gap is introduced.
    says: ClassVar[str] = "says"
    happens: ClassVar[str] = "happens"
    gap: ClassVar[str] = "difference"
    off: ClassVar[str] = "off by"
    #: What the sign of a gap means, and the head of a column of gaps.
    signs: ClassVar[str] = "+ too high, − too low"
    head: ClassVar[str] = "Off by, points"
    #: The least and the largest rate.
    least: ClassVar[float] = 0.0
    most: ClassVar[float] = 1.0

    def tick(self, value: float) -> str:
        """Write a rate at an axis.

        >>> Unit().tick(0.25), Amounts().tick(250.0)
        ('25%', '250')
        """
        return f"{number_text(round(100 * value, 6))}%"

    def rate(self, value: float) -> str:
        """Write what a model says or what happens.

        >>> Unit().rate(0.153), Unit().rate(float("nan")), Unit(2).rate(0.0045)
        ('15.3%', '–', '0.45%')
        """
        text = decimals(self.scale * value, self.digits)
        return text if text == UNKNOWN else f"{text}{self.sign}"

    def error(self, value: float) -> str:
        """Write an error, or a difference of rates, without its word.

        >>> Unit().error(0.0683), Unit().error(-0.2), Unit(2).error(0.0044)
        ('6.8', '−20.0', '0.44')
        """
        return decimals(self.scale * value, self.digits)

    def signed(self, value: float) -> str:
        """Write a difference with its sign.

        >>> Unit().signed(0.0683), Unit().signed(-0.00001)
        ('+6.8', '0.0')
        """
        return with_sign(self.error(value))

    def ends(self, low: float, high: float) -> str:
        """Write an interval.

        >>> Unit().ends(-0.012, 0.03)
        '−1.2 to 3.0'
        """
        return f"{self.error(low)} to {self.error(high)}"

    def size(self, value: float) -> str:
        """Write an error with its word.

        >>> Unit().size(0.0683)
        '6.8 points'
        """
        return f"{self.error(value)} {self.word}"

    def difference(self, says: float, happens: float) -> float:
        """Return says − happens as readers see it: the difference of the rounded figures.

        >>> round(Unit().difference(0.41649, 0.26551), 4)
        0.15
        """
        shown = (round(self.scale * one, self.digits) for one in (says, happens))
        return round(next(shown) - next(shown), self.digits) / self.scale

    def limit(self, value: float) -> str:
        """Write a limit with as many decimals as it needs, at most two digits.

        >>> Unit().limit(0.02), Unit().limit(0.0025), Unit().limit(0.00178)
        ('2', '0.25', '0.18')
        """
        return f"{self.scale * value:.2g}" if value < 0.1 else f"{self.scale * value:.4g}"

    def is_zero(self, value: float) -> bool:
        """Whether a value is written as zero."""
        return not round(self.scale * abs(value), self.digits)

    def enough(self, value: float) -> Unit:
        """Return the unit in which a value above zero is not 0.0, with at most two more decimals.

        >>> [Unit().enough(value).digits for value in (0.03, 0.0004, 1e-9)]
        [1, 2, 3]
        """
        units = [replace(self, digits=self.digits + k) for k in range(3)]
        return next((unit for unit in units if not unit.is_zero(value)), units[-1])

    def limit_size(self, value: float) -> str:
        """Write a limit with its word."""
        return f"{self.limit(value)} {self.word}"

    def signed_ends(self, low: float, high: float) -> str:
        """Write the interval of a gap, says − happens, with its sign."""
        return self.ends(low, high)

    def gap_ends(self, gap: float, low: float, high: float) -> str:
        """Write the interval of a gap beside `gap_size`.

        >>> Unit().gap_ends(-0.07, -0.09, -0.05)
        '5.0 to 9.0'
        """
        return self.ends(low, high) if gap > 0 else self.ends(-high, -low)

    def gap_size(self, gap: float, words: tuple[str, str]) -> str:
        """Write a gap without its word; `words` name a gap above and below 0.

        >>> Unit().gap_size(-0.0683, ("too high", "too low"))
        '6.8 too low'
        """
        side = "" if self.is_zero(gap) else f" {words[int(gap <= 0)]}"
        return self.error(abs(gap)) + side

    def happens_at(self, says: Any, gap: Any) -> Any:
        """Return what happens where a gap is so large."""
        return says - gap


@dataclass(frozen=True)
class Amounts(Unit):
    """How predicted means and their gaps are written: in the unit of the outcome.

    >>> Amounts().rate(412.3), Amounts().signed(0.51), Amounts().size(0.0213)
    ('412', '+0.510', '0.0213')
    """

    digits: int = 1
    scale: float = 1.0
    sign: str = ""
    word: str = "units"
    says: ClassVar[str] = "predicts"
    happens: ClassVar[str] = "observed"
    head: ClassVar[str] = "Off by"
    least: ClassVar[float] = -math.inf
    most: ClassVar[float] = math.inf

    def tick(self, value: float) -> str:
        """Write a mean at an axis."""
        return number_text(value)

    def rate(self, value: float) -> str:
        """Write a mean."""
        return amount(value)

    def error(self, value: float) -> str:
        """Write an error."""
        return amount(value)

    def signed(self, value: float) -> str:
        """Write a difference with its sign."""
        return f"+{amount(value)}" if value > 0 else amount(value)

    def size(self, value: float) -> str:
        """Write an error."""
        return amount(value)

    def difference(self, says: float, happens: float) -> float:
        """Return the gap of two means, 0 where they differ by rounding only."""
        return 0.0 if math.isclose(says, happens, rel_tol=1e-9) else says - happens

    def limit(self, value: float) -> str:
        """Write a limit."""
        return f"{value:,.4g}"

    def limit_size(self, value: float) -> str:
        """Write a limit."""
        return self.limit(value)

    def is_zero(self, value: float) -> bool:
        """Whether a value is 0."""
        return value == 0

    def enough(self, value: float) -> Unit:
        """Return the unit itself: three digits are always written."""
        return self


@dataclass(frozen=True)
class Ratios(Amounts):
    """How predicted means are written, and their gaps 1 − A/E: actual over expected.

    >>> Ratios().signed(Ratios().difference(412, 455)), Ratios().signed_ends(-0.15, -0.06)
    ('1.10', '1.06 to 1.15')
    >>> Ratios().size(0.104), Ratios().gap_size(-0.104, ("too high", "too low"))
    ('10.4%', '1.10')
    """

    scale: float = 100.0
    word: str = "percent"
    gap: ClassVar[str] = "A/E"
    off: ClassVar[str] = "A/E"
    signs: ClassVar[str] = "A/E"
    head: ClassVar[str] = "A/E"

    def error(self, value: float) -> str:
        """Write an error in percent of the predicted mean."""
        return decimals(self.scale * value, self.digits)

    def signed(self, value: float) -> str:
        """Write a gap as A/E."""
        return decimals(1 - value, 2)

    def size(self, value: float) -> str:
        """Write an error with its sign."""
        return f"{self.error(value)}%"

    def difference(self, says: float, happens: float) -> float:
        """Return the gap of two means."""
        return 1 - happens / says if says else math.nan

    def limit(self, value: float) -> str:
        """Write a limit in percent."""
        return Unit.limit(self, value)

    def is_zero(self, value: float) -> bool:
        """Whether an error is written as zero."""
        return Unit.is_zero(self, value)

    def limit_size(self, value: float) -> str:
        """Write a limit with its sign."""
        return f"{self.limit(value)}%"

    def signed_ends(self, low: float, high: float) -> str:
        """Write the interval of A/E."""
        return f"{decimals(1 - high, 2)} to {decimals(1 - low, 2)}"

    def gap_ends(self, gap: float, low: float, high: float) -> str:
        """Write the interval of A/E."""
        return self.signed_ends(low, high)

    def gap_size(self, gap: float, words: tuple[str, str]) -> str:
        """Write A/E."""
        return self.signed(gap)

    def happens_at(self, says: Any, gap: Any) -> Any:
        """Return what happens where a gap is so large."""
        return says * (1 - gap)


def unit_of(scale: str, digits: int = 1) -> Unit:
    """Return how the gaps of an audit are written.

    >>> unit_of("points").size(0.02), unit_of("relative").size(0.02), unit_of("difference").word
    ('2.0 points', '2.0%', 'units')
    """
    kind = {"points": Unit, "relative": Ratios, "difference": Amounts}[scale]
    return kind(digits)


def amount(value: float) -> str:
    """Write an amount with three digits, or as a whole number from 100 on.

    >>> amount(3.014), amount(412.3), amount(12345.6), amount(-0.0213)
    ('3.01', '412', '12,346', '−0.0213')
    """
    if value != value or abs(value) == math.inf:
        return UNKNOWN
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")
    return text.replace("-", MINUS)


def points(value: float, digits: int = 1) -> str:
    """Write a difference of probabilities in points."""
    return Unit(digits).error(value)


def signed(value: float, digits: int = 1) -> str:
    """Write a difference of probabilities in points, with its sign."""
    return Unit(digits).signed(value)


def interval(low: float, high: float, digits: int = 1) -> str:
    """Write an interval in points."""
    return Unit(digits).ends(low, high)


def percent(value: float, digits: int = 1) -> str:
    """Write a rate or a share in percent."""
    return Unit(digits).rate(value)


def points_with_interval(value: float, low: float, high: float) -> str:
    """Write points with their interval, as short as a title needs it.

    >>> points_with_interval(0.206, 0.2, 0.213)
    '20.6 points (20.0–21.3)'
    """
    return f"{Unit().size(value)} ({points(low)}–{points(high)})"


def level_text(level: float) -> str:
    """Write the level of intervals and tests.

    >>> level_text(0.95), level_text(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * level:g}%"


def p_text(p: float) -> str:
    """Write a p-value.

    >>> p_text(0.00002), p_text(0.04)
    ('<0.001', '0.040')
    """
    return f"<{_SMALLEST_P}" if p < _SMALLEST_P else f"{p:.3f}"


def p_equation(p: float) -> str:
    """Write a p-value with its name.

    >>> p_equation(0.0002), p_equation(0.25)
    ('p<0.001', 'p=0.250')
    """
    return f"p{p_text(p)}" if p < _SMALLEST_P else f"p={p_text(p)}"


def count(n: int, noun: str = "") -> str:
    """Write a number of things.

    >>> count(16281, "row"), count(1, "row")
    ('16,281 rows', '1 row')
    """
    return f"{n:,}" if not noun else f"{n:,} {noun}{'' if n == 1 else 's'}"


def share_text(value: float) -> str:
    """Write a share of the rows without decimals, unless it is small.

    >>> share_text(0.456), share_text(0.0049), share_text(0.00001)
    ('46%', '0.5%', 'under 0.1%')
    """
    if value < 0.0005:
        return "under 0.1%"
    return f"{100 * value:.0f}%" if value >= 0.0095 else f"{100 * value:.1f}%"


def ratio_text(events: float, expected: float) -> str:
    """Write observed over expected events, so that a small ratio does not look like none.

    >>> ratio_text(133, 82), ratio_text(133, 4297), ratio_text(0, 5), ratio_text(3, 0)
    ('1.6', '0.03', '0.0', '–')
    """
    ratio = events / expected if expected else float("nan")
    return decimals(ratio, 1 if ratio >= 0.1 or not ratio else 2)


def short_number(value: float) -> str:
    """Write a value of a variable with four digits, or as a whole number from 10,000 on.

    >>> short_number(0.123456), short_number(48842.7), short_number(-3.0)
    ('0.1235', '48,843', '−3')
    """
    return number_text(float(f"{value:.4g}") if abs(value) < 1e4 else round(value))


def near_number(value: float, width: float) -> str:
    """Write the end of a bin with four digits, or with as many as its width needs.

    >>> near_number(45.01234, 0.02), near_number(45.01234, 5.0), near_number(12_345.678, 0.5)
    ('45.012', '45.01', '12,345.68')
    """
    from varcal._edge_texts import show_number  # noqa: PLC0415  numpy loads when first needed

    short = float(f"{value:.4g}") if abs(value) < 1e4 else round(value)
    if abs(short - value) <= width / 50:
        return short_number(value)
    digits = next(
        (k for k in range(5, 17) if abs(float(f"{value:.{k}g}") - value) <= width / 50), 16
    )
    text = show_number(value, digits)
    whole, dot, rest = text.partition(".")
    if abs(value) >= 1e4 and whole.lstrip("-").isdigit():
        text = f"{int(whole):,}{dot}{rest}"
    return text.replace("-", MINUS) if value < 0 else text


def number_text(value: float) -> str:
    """Write a value of a variable, with commas from 10,000 on (2008 may be a year).

    >>> number_text(2008.0), number_text(-12_000.0), number_text(0.25), number_text(3e9)
    ('2008', '−12,000', '0.25', '3e+09')
    """
    from varcal._edge_texts import show_number  # noqa: PLC0415  numpy loads when first needed

    if abs(value) >= 1e9:
        text = f"{value:.3g}"
    else:
        text = f"{value:,.0f}" if abs(value) >= 1e4 else show_number(float(f"{value:.6g}"))
    return text.replace("-", MINUS) if value < 0 else text


# Sentences whose parts know what they are: text from the data, stressed words, code.
#: Longer names are cut in sentences and tables; JSON has them in full.
NAME_LENGTH = 60


class Named(str):
    """Text that came from the data (a column, a level, a label), to be escaped."""

    __slots__ = ()


class Strong(str):
    """Words to be stressed."""

    __slots__ = ()


class StrongName(Named, Strong):
    """Text that came from the data, to be escaped and stressed."""

    __slots__ = ()


class Code(str):
    """A line to run."""

    __slots__ = ()


@dataclass(frozen=True)
class Sentence:
    """A sentence whose parts that came from the data are `Named`.

    >>> str(Sentence.of("Most along ", Named("age"), "."))
    'Most along age.'
    """

    parts: tuple[str, ...] = ()

    @classmethod
    def of(cls, *parts: str | Sentence) -> Sentence:
        """Join parts and sentences."""
        flat: list[str] = []
        for part in parts:
            flat += part.parts if isinstance(part, Sentence) else (part,)
        return cls(tuple(flat))

    def __str__(self) -> str:
        return "".join(self.parts)

    def __bool__(self) -> bool:
        return any(self.parts)


def filled(text: str, *parts: str | Sentence) -> Sentence:
    """Put parts into the places {} of a text; parts without a place are left out.

    >>> filled("Most along {}.", Named("age")).parts
    ('Most along ', 'age', '.')
    """
    first, *rest = text.split("{}")
    pairs = zip(parts, rest, strict=False)
    return Sentence.of(first, *(one for pair in pairs for one in pair))


def cut(text: str, length: int = NAME_LENGTH) -> str:
    """Cut a long name and say how long it is; quote a blank one.

    >>> cut("a" * 100, 5), cut(" ")
    ('aaaaa… (100 characters)', "' '")
    """
    if not text.strip():
        return repr(text)
    return text if len(text) <= length + 20 else f"{text[:length]}… ({len(text):,} characters)"


def short(name: str, most: int = 28) -> str:
    """Shorten a name, and put it on one line.

    >>> short("a very long name indeed", 12)
    'a very long…'
    """
    flat = " ".join(name.split()) or "(blank)"
    return flat if len(flat) <= most else f"{flat[: most - 1].rstrip()}…"


def listed(names: list[str], *, strong: bool = False, most: int = 5) -> Sentence:
    """Join names from the data with commas and "and"; of many, only the first ones.

    >>> str(listed(["a", "b", "c"])), str(listed(["a", "b", "c"], most=1))
    ('a, b and c', 'a and 2 more')
    """
    kind = StrongName if strong else Named
    shown = [kind(cut(name)) for name in names[:most]]
    more = len(names) - len(shown)
    parts: list[str] = []
    for k, name in enumerate(shown):
        if k:
            parts.append(" and " if k == len(shown) - 1 and not more else ", ")
        parts.append(name)
    return Sentence.of(*parts, f" and {more} more") if more else Sentence(tuple(parts))


# Gaps in words: which claim is wrong, in which direction, by how much.
RISK, CONFIDENCE = "probability", "confidence"
#: What the name of the claim about one of several classes begins with.
CLASS = "class "
#: The marks of a gap above and below zero.
OVER, UNDER = "▲", "▼"
_SIDES = {RISK: ("too high", "too low"), CONFIDENCE: ("too sure", "not sure enough")}


def claim_of(event: str) -> str:
    """Return the claim that an event of `vece` or `curve` is about.

    >>> claim_of("correct"), claim_of("positive")
    ('confidence', 'probability')
    """
    return CONFIDENCE if event in ("correct", CONFIDENCE) else RISK


def gap_side(gap: float, claim: str) -> str:
    """Name the sign of a gap.

    >>> gap_side(0.1, "probability"), gap_side(-0.1, "confidence"), gap_side(-0.1, "class a")
    ('too high', 'not sure enough', 'too low')
    """
    over, under = _SIDES[CONFIDENCE if claim == CONFIDENCE else RISK]
    return over if gap > 0 else under


def gap_mark(gap: float) -> str:
    """Mark the sign of a gap.

    >>> gap_mark(0.1), gap_mark(-0.1)
    ('▲', '▼')
    """
    return OVER if gap > 0 else UNDER


def marked_side(gap: float, claim: str) -> str:
    """Mark and name the sign of a gap.

    >>> marked_side(-0.1, "probability")
    '▼ too low'
    """
    return f"{gap_mark(gap)} {gap_side(gap, claim)}"


def claim_name(claim: str) -> Sentence:
    """Name a claim; the label of a class comes from the data.

    >>> claim_name("probability").parts, claim_name("class a").parts
    (('probability',), ('class ', 'a'))
    """
    if claim.startswith(CLASS):
        return Sentence.of(CLASS, Named(cut(claim.removeprefix(CLASS))))
    return Sentence.of(claim)


def gap_said(gap: float, claim: str) -> Sentence:
    """Name the sign of a gap, with the class if it is one of several.

    >>> str(gap_said(0.1, "probability")), str(gap_said(0.1, "class a"))
    ('too high', 'class a too high')
    """
    side = gap_side(gap, claim)
    return (
        Sentence.of(claim_name(claim), f" {side}") if claim.startswith(CLASS) else Sentence.of(side)
    )


def off_by(gap: float, claim: str) -> Sentence:
    """Name the claim, the sign and the size of a gap.

    >>> str(off_by(-0.165, "probability")), str(off_by(0.0301, "confidence"))
    ('too low by 16.5 points', 'too sure by 3.0 points')
    """
    return Sentence.of(gap_said(gap, claim), f" by {points(abs(gap))} points")


def range_words(low: float, high: float, claim: str) -> Sentence:
    """Say in which range the gaps of a part of a variable are.

    >>> str(range_words(0.061, 0.094, "probability")), str(range_words(-0.02, 0.01, "confidence"))
    ('too high by 6.1 to 9.4 points', 'gap of −2.0 to +1.0 points')
    """
    if low < 0 < high:
        return Sentence.of(f"gap of {signed(low)} to {signed(high)} points")
    ends = [points(abs(end)) for end in sorted((low, high), key=abs)]
    size = ends[0] if ends[0] == ends[1] else " to ".join(ends)
    return Sentence.of(gap_said(high or low, claim), f" by {size} points")


# Verdicts: every word with which figures, variables and models are judged.
# The verdict of a whole audit.
REPAIR, WATCH, FINE, CANNOT_TELL = "repair", "watch", "fine", "cannot tell"

# Where the interval of a figure lies, and the verdict along a variable.
ABOVE, MAY_BE, BELOW = "above limit", "may be above", "below limit"
NO_EVIDENCE, TOO_FEW_ROWS = "no evidence", "too few rows"
#: The verdicts along a variable, the strongest first.
VERDICTS = (ABOVE, MAY_BE, BELOW, NO_EVIDENCE, TOO_FEW_ROWS)
#: Those with evidence of uneven error.
FINDINGS = (ABOVE, MAY_BE, BELOW)
#: The verdicts at which a gate fails, by the name of the gate.
GATES = {"evidence": FINDINGS, "off": (ABOVE,)}

# One figure of a set of probabilities, compared with that of the first set.
COMPARED = ("baseline", "fixed", "better", "no clear change", "made worse")
BASELINE, FIXED, BETTER, UNCHANGED, MADE_WORSE = COMPARED
#: The verdicts that say that a figure changed.
CHANGED = (FIXED, BETTER, MADE_WORSE)
# One variable from an audit to the next, besides BETTER and UNCHANGED.
WORSE, ALTERED, NEW, GONE = "worse", "changed", "new", "gone"

# Each word with a mark, so that words do not differ by colour alone, and its look in colour.
_LOOKS = (
    (REPAIR, "✕", "bad"),
    (WATCH, "◐", "watch"),
    (FINE, "✓", "ok"),
    (CANNOT_TELL, "?", "watch"),
    (ABOVE, "✕", "bad"),
    (MAY_BE, "◐", "watch"),
    (BELOW, "✓", "ok"),
    (NO_EVIDENCE, "○", ""),
    (TOO_FEW_ROWS, "?", ""),
    (BASELINE, "–", ""),
    (FIXED, "✓", "ok"),
    (BETTER, "↗", "ok"),
    (UNCHANGED, "○", ""),
    (MADE_WORSE, "✗", "bad"),
)
MARKS = {word: mark for word, mark, _ in _LOOKS}
LOOKS = {word: look for word, _, look in _LOOKS if look}
#: The marks of figures in plain text.
PLAIN_MARKS = {ABOVE: "x", MAY_BE: "~", BELOW: "ok", NO_EVIDENCE: "", TOO_FEW_ROWS: "?"}


# Plain-text tables, as results are printed in a terminal or a log.
#: The characters of a line in a terminal.
WIDTH = 100


def wrapped(text: str) -> str:
    """Break the lines of a text that are too long for a terminal."""
    return "\n".join(fill(line, WIDTH) for line in text.split("\n"))


def text_table(columns: Mapping[str, Sequence[Any]]) -> str:
    """Write columns as a table: text aligned to the left, numbers to the right.

    >>> print(text_table({"bin": ["a", "bb"], "n": [10, 2], "gap": [0.5, float("nan")]}))
    bin   n     gap
    a    10  0.5000
    bb    2       –
    """
    blocks = []
    for name, values in columns.items():
        text = any(isinstance(value, str) for value in values)
        cells = [name, *(show_cell(value, name) for value in values)]
        width = max(map(len, cells))
        blocks.append([cell.ljust(width) if text else cell.rjust(width) for cell in cells])
    return "\n".join("  ".join(row).rstrip() for row in zip(*blocks, strict=True))


def show_cell(value: Any, name: str) -> str:
    """Write one value of a column."""
    if isinstance(value, float):
        if value != value:
            return UNKNOWN
        return f"{value:.3f}" if name == "share" else f"{value:.4f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


# Results as tables in notebooks, where all text is escaped, and in terminals.
#: Rows of a table that is shown.
_ROWS = 25


class Shown:
    """Shows a result as a heading, a table and a note, in a terminal and in a notebook.

    A dataclass that inherits from this needs ``repr=False``.
    """

    def _shown(self) -> tuple[str, Mapping[str, Sequence[Any]], str]:
        """Return the heading, the columns of the table, and the note."""
        raise NotImplementedError

    def __repr__(self) -> str:
        heading, columns, note = self._parts()
        rows = text_table(columns).split("\n") if columns else []
        rows = [row if len(row) <= WIDTH else f"{row[: WIDTH - 1]}…" for row in rows]
        return "\n".join([wrapped(heading), *rows, *([wrapped(note)] if note else [])])

    def _repr_html_(self) -> str:
        heading, columns, note = self._parts()
        return html_table(columns, heading, note)

    def _parts(self) -> tuple[str, Mapping[str, Sequence[Any]], str]:
        """Return what is shown: of a long table its first rows."""
        heading, columns, note = self._shown()
        more = max((len(values) for values in columns.values()), default=0) - _ROWS
        if more > 0:
            columns = {name: values[:_ROWS] for name, values in columns.items()}
            note = f"… {more:,} more rows\n{note}".rstrip()
        return heading, columns, note


def html_table(columns: Mapping[str, Sequence[Any]], caption: str, note: str = "") -> str:
    """Write columns as an HTML table.

    >>> html_table({"bin": ["<a>"], "n": [1234]}, "by v")[-53:]
    '<td>&lt;a&gt;</td><td>1,234</td></tr></tbody></table>'
    """
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    rows = []
    for k in range(max((len(values) for values in columns.values()), default=0)):
        cells = (escape(show_cell(values[k], name)) for name, values in columns.items())
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    lines = "<br>".join(escape(line) for line in caption.split("\n"))
    after = f"<p>{'<br>'.join(escape(line) for line in note.split(chr(10)))}</p>" if note else ""
    return (
        f'<table><caption style="text-align:left">{lines}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{after}"
    )


# Progress of long work on stderr, shown only on a terminal.
T = TypeVar("T")


def counted(items: Iterable[T], what: str, rows: Callable[[T], int]) -> Iterator[T]:
    """Yield an unknown number of items, and count their rows if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console  # noqa: PLC0415  rich loads when first needed

    total = 0
    with Console(stderr=True).status(what) as status:
        for item in items:
            yield item
            total += rows(item)
            status.update(f"{what}: {total:,} rows")


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal what is being done and for how long; for work without steps."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415  rich loads when first needed
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        shown.add_task(what, total=None)
        yield
