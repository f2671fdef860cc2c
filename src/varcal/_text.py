"""How numbers, p-values, edges, gaps, sentences and tables are written for people."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from textwrap import fill
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

import numpy as np

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


def points(value: float, digits: int = 1) -> str:
    """Write a difference of probabilities in points.

    >>> points(0.0683), points(-0.2), points(-0.0001), points(0.0044, 2)
    ('6.8', '−20.0', '0.0', '0.44')
    """
    return decimals(100 * value, digits)


def signed(value: float, digits: int = 1) -> str:
    """Write a difference of probabilities in points, with its sign.

    >>> signed(0.0683), signed(-0.00001)
    ('+6.8', '0.0')
    """
    return with_sign(points(value, digits))


def difference(says: float, happens: float, digits: int = 1) -> float:
    """Return says − happens as readers see it: the difference of the rounded percentages.

    >>> round(difference(0.41649, 0.26551), 4)
    0.15
    """
    return round(round(100 * says, digits) - round(100 * happens, digits), digits) / 100


def interval(low: float, high: float, digits: int = 1) -> str:
    """Write an interval in points.

    >>> interval(-0.012, 0.03)
    '−1.2 to 3.0'
    """
    return f"{points(low, digits)} to {points(high, digits)}"


def points_with_interval(value: float, low: float, high: float) -> str:
    """Write points with their interval, as short as a title needs it.

    >>> points_with_interval(0.206, 0.2, 0.213)
    '20.6 points (20.0–21.3)'
    """
    return f"{points(value)} points ({points(low)}–{points(high)})"


def percent(value: float, digits: int = 1) -> str:
    """Write a rate or a share; rates below 10% need two digits.

    >>> percent(0.153), percent(-0.00001), percent(float("nan")), percent(0.0045, 2)
    ('15.3%', '0.0%', '–', '0.45%')
    """
    text = decimals(100 * value, digits)
    return text if text == UNKNOWN else f"{text}%"


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


def limit_text(value: float) -> str:
    """Write a limit in points, with as many decimals as it needs, at most two digits.

    >>> limit_text(0.02), limit_text(0.0025), limit_text(0.00178)
    ('2', '0.25', '0.18')
    """
    return f"{100 * value:.2g}" if value < 0.1 else f"{100 * value:.4g}"


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
    from varcal._text import show_number  # noqa: PLC0415  numpy loads when first needed

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
    from varcal._text import show_number  # noqa: PLC0415  numpy loads when first needed

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
    """A line that can be run in Python, and the command that does the same, if there is one.

    >>> Code("vc.audit(y, p)", command="varcal audit").command
    'varcal audit'
    """

    __slots__ = ("command",)
    command: str

    def __new__(cls, text: str, *, command: str = "") -> Code:
        code = super().__new__(cls, text)
        code.command = command or text
        return code


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


# Edges of bins as text: numbers, instants and durations, as short as tells neighbours apart.
# Significant digits to try.
_NUMBER_DIGITS = range(6, 18)
_DURATION_DIGITS = range(3, 18)
#: Units of instants in seconds, the coarsest first. Years and months have no fixed length.
_INSTANT_UNITS = {"D": 86_400.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
#: Units of durations in seconds, the largest first, and their names.
_DURATION_UNITS = {"days": 86_400.0, "h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6}
#: Durations are shown in one unit if the longest is at most this many times the shortest.
_ONE_UNIT = 1000
#: An edge may be shown to the day, minute, … if neighbours are at least this many of them apart:
#: the part of a bin that looks as if it were in the next one is then small.
_APART = 10


def edge_texts(
    edges: Sequence[float], *, datetime: bool = False, duration: bool = False, zone: str = ""
) -> list[str]:
    """Write edges with just enough digits to tell each from its neighbours.

    Parameters
    ----------
    edges : sequence of float
        Numbers in ascending order; seconds since 1970 for instants, seconds for durations.
    datetime, duration : bool
        Whether they are instants or durations.
    zone : str
        The time zone in which instants are shown. It is not part of the texts (`zone_text`).

    Examples
    --------
    >>> edge_texts([1 / 6, 1 / 3, 0.3333334, 1.0])
    ['0.166667', '0.3333333', '0.3333334', '1']
    >>> edge_texts([1709251200.0, 1711929600.0], datetime=True)
    ['2024-03', '2024-04']
    >>> edge_texts([5400.0, 18_000.0], duration=True)
    ['1.5 h', '5 h']
    """
    if datetime:
        return _instant_texts(edges, zone)
    if duration:
        return _duration_texts(edges)
    digits = _digits_each(edges, _NUMBER_DIGITS)
    return [show_number(edge, count) for edge, count in zip(edges, digits, strict=True)]


def range_text(
    low: float, high: float, *, datetime: bool = False, duration: bool = False, zone: str = ""
) -> str:
    """Write a range of values, with its unit or time zone once.

    >>> range_text(36.0, 60.0), range_text(259_200.0, 604_800.0, duration=True)
    ('36–60', '3–7 days')
    >>> range_text(1709251200.0, 1711972800.0, datetime=True, zone="Europe/Berlin")
    '2024-03-01 to 2024-04-01 (Europe/Berlin)'
    >>> range_text(-5.0, -2.0)
    '−5 to −2'
    """
    a, b = edge_texts([low, high], datetime=datetime, duration=duration, zone=zone)
    if datetime:
        return (a if a == b else f"{a} to {b}") + zone_text(zone)
    unit = ""
    if duration and a.split(" ")[-1] == b.split(" ")[-1]:
        a, unit = a.split(" ")[0], f" {a.split(' ')[1]}"
        b = b.split(" ")[0]
    a, b = a.replace("-", MINUS), b.replace("-", MINUS)
    if a == b:
        return a + unit
    return (f"{a} to {b}" if low < 0 else f"{a}–{b}") + unit


def zone_text(zone: str) -> str:
    """Return what is written after an instant or a range of them to name its time zone.

    >>> zone_text("Europe/Berlin"), zone_text("")
    (' (Europe/Berlin)', '')
    """
    return f" ({zone})" if zone else ""


def zone_offset(zone: str) -> float:
    """Return the offset of a zone such as "+01:00" in seconds; 0 for a zone that is named.

    >>> zone_offset("-03:30"), zone_offset("UTC"), zone_offset("")
    (-12600.0, 0.0, 0.0)
    """
    if not zone or zone[0] not in "+-":
        return 0.0
    size = 3600 * int(zone[1:3]) + 60 * int(zone[4:6] or 0)
    return float(-size if zone[0] == "-" else size)


def show_number(value: float, digits: int = 6) -> str:
    """Write a whole number in full, and any other with the given significant digits.

    >>> show_number(48842.0), show_number(1 / 3)
    ('48842', '0.333333')
    """
    value = float(value) + 0.0  # −0 is 0
    if not np.isfinite(value):
        return str(value)
    return f"{value:.0f}" if _is_whole(value) else f"{value:.{digits}g}"


def show_instant(value: float, zone: str = "") -> str:
    """Write seconds since 1970 as a date, with the time unless it is midnight.

    >>> show_instant(86400.0), show_instant(86460.0), show_instant(86400.0, zone="+01:00")
    ('1970-01-02', '1970-01-02 00:01', '1970-01-02 01:00 (+01:00)')
    """
    if not np.isfinite(value):
        return str(value)
    local = on_clock(value, zone)
    unit = next((u for u, size in _INSTANT_UNITS.items() if _falls_on(local, size)), "us")
    return _stamp(local, unit) + zone_text(zone)


def show_duration(value: float) -> str:
    """Write seconds as a duration in a suitable unit.

    >>> show_duration(259_200.0), show_duration(5400.0), show_duration(0.25), show_duration(86_400)
    ('3 days', '1.5 h', '250 ms', '24 h')
    """
    (text,) = edge_texts([float(value)], duration=True)
    return text


def _digits_each(edges: Sequence[float], tries: range) -> list[int]:
    """Return the digits of each edge that tell it from its neighbours."""
    digits = [tries[0]] * len(edges)
    for k, (a, b) in enumerate(pairwise(edges)):
        need = _digits_apart(a, b, tries)
        digits[k], digits[k + 1] = max(digits[k], need), need
    return digits


def _instant_texts(edges: Sequence[float], zone: str) -> list[str]:
    local = [on_clock(edge, zone) for edge in edges]
    finite = [value for value in local if np.isfinite(value)]
    for calendar in ("Y", "M"):
        if finite and all(_starts(value, calendar) for value in finite):
            return [_stamp(value, calendar) for value in local]
    gaps = [b - a for a, b in pairwise(finite) if b > a]
    narrowest = min(gaps, default=0.0)
    for unit, size in _INSTANT_UNITS.items():
        exact = all(_falls_on(value, size) for value in finite)
        if exact or narrowest >= _APART * size:
            return [_stamp(value, unit) for value in local]
    return [_stamp(value, "us") for value in local]


def on_clock(value: float, zone: str) -> float:
    """Return an instant as seconds on the clock of a time zone.

    A zone that this computer does not know is shown as UTC.

    >>> on_clock(0.0, "+01:00"), on_clock(0.0, "Asia/Kolkata")
    (3600.0, 19800.0)
    """
    if not zone or not np.isfinite(value):
        return float(value)
    if zone[0] in "+-":
        return float(value) + zone_offset(zone)
    try:
        at = dt.datetime.fromtimestamp(np.floor(value), ZoneInfo(zone))
    except (KeyError, ValueError, OverflowError, OSError):
        return float(value)
    offset = at.utcoffset()
    return float(value) + (offset.total_seconds() if offset is not None else 0.0)


def _stamp(value: float, unit: str) -> str:
    if not np.isfinite(value):
        return str(value)
    ticks = np.array(_microseconds(value), dtype="M8[us]").astype(f"M8[{unit}]")
    return str(ticks).replace("T", " ").removesuffix(".000000").removesuffix(".000")


def _microseconds(value: float) -> int:
    """Return an instant in microseconds; instants have no more digits than that."""
    return round(value * 1e6)


def _starts(value: float, calendar: str) -> bool:
    """Tell whether an instant is the start of a year or month."""
    stamp = np.array(_microseconds(value), dtype="M8[us]")
    return bool(stamp.astype(f"M8[{calendar}]") == stamp)


def _falls_on(value: float, size: float) -> bool:
    return _microseconds(value) % round(size * 1e6) == 0


def _duration_texts(edges: Sequence[float]) -> list[str]:
    """Write durations in one unit, or where they differ a thousandfold, each in its own."""
    sizes = sorted(abs(edge) for edge in edges if edge and np.isfinite(edge)) or [1.0]
    common = _duration_unit(sizes[len(sizes) // 2])
    if sizes[-1] <= _ONE_UNIT * sizes[0]:
        units = [common] * len(edges)
    else:
        units = [_duration_unit(abs(edge)) if np.isfinite(edge) else common for edge in edges]
    digits = _digits_each(edges, _DURATION_DIGITS)
    return [
        _with_unit(show_number(edge / _DURATION_UNITS[unit], count), unit)
        for edge, unit, count in zip(edges, units, digits, strict=True)
    ]


def _duration_unit(size: float) -> str:
    """Return the largest unit that a duration holds; days only from two days on."""
    if not size:
        return "s"
    for unit, length in _DURATION_UNITS.items():
        if size >= length * (2 if unit == "days" else 1):
            return unit
    return "µs"


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {'day' if (text, unit) == ('1', 'days') else unit}"


def _is_whole(value: float) -> bool:
    return abs(value) < 1e15 and value == round(value)


def _digits_apart(a: float, b: float, tries: range) -> int:
    """Return the smallest number of digits with which two edges look different."""
    if a == b or not (np.isfinite(a) and np.isfinite(b)):
        return tries[0]
    for digits in tries:
        if float(show_number(a, digits)) != float(show_number(b, digits)):
            return digits
    return tries[-1]


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
