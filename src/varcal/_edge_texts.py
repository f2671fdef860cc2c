"""Edges of bins as text: numbers, instants and durations, as short as tells neighbours apart."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np

from varcal._text import MINUS

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# Significant digits to try.
_NUMBER_DIGITS = range(6, 18)
_DURATION_DIGITS = range(3, 18)
#: Units of instants in seconds, the coarsest first. A date always has its day: "up to 2024-03"
#: reads as if it included March.
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
    ['2024-03-01', '2024-04-01']
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


def show_instant(value: float, zone: str = "", apart: float = 0.0) -> str:
    """Write seconds since 1970 as a date, with the time unless it is midnight.

    Parameters
    ----------
    value : float
        The instant.
    zone : str
        The time zone that it is shown in.
    apart : float
        How far it is from its neighbours, such as the other points of a curve; the text is just
        exact enough to tell them apart. Without any, it is shown to the second.

    Examples
    --------
    >>> show_instant(86400.0), show_instant(86460.0), show_instant(86400.0, zone="+01:00")
    ('1970-01-02', '1970-01-02 00:01', '1970-01-02 01:00 (+01:00)')
    """
    local = on_clock(value, zone)
    return _stamp(local, _instant_unit([local], apart)) + zone_text(zone)


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
    apart = min((b - a for a, b in pairwise(filter(np.isfinite, local)) if b > a), default=0.0)
    unit = _instant_unit(local, apart)
    return [_stamp(value, unit) for value in local]


def _instant_unit(local: Sequence[float], apart: float) -> str:
    """Return the coarsest unit that is exact, or small beside the distance of neighbours."""
    ticks = [_microseconds(value) for value in local if np.isfinite(value)]
    for unit, size in _INSTANT_UNITS.items():
        exact = all(tick % round(size * 1e6) == 0 for tick in ticks)
        if exact or apart >= _APART * size or (unit == "s" and not apart):
            return unit
    return "us"


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
        # fromtimestamp() refuses instants before 1970 on Windows.
        at = (_EPOCH + dt.timedelta(seconds=np.floor(value))).astimezone(ZoneInfo(zone))
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
