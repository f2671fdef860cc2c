"""Edges of bins as text: numbers, instants and durations, as short as tells neighbours apart."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np

# Significant digits of numbers to try.
_NUMBER_DIGITS = range(6, 18)
#: Units of instants in seconds, the coarsest first; the two above are calendar units.
_INSTANT_UNITS = {"D": 86_400.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}
#: Units of durations in seconds, the largest first, and their names.
_DURATION_UNITS = {"days": 86_400.0, "h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6}
#: An edge may be shown to the day, minute, … if neighbours are at least this many of them apart:
#: the part of a bin that looks as if it were in the next one is then small.
_APART = 30


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
        unit = _duration_unit(edges)
        shown = _number_texts([edge / _DURATION_UNITS[unit] for edge in edges])
        return [_with_unit(text, unit) for text in shown]
    return _number_texts(edges)


def range_text(
    low: float, high: float, *, datetime: bool = False, duration: bool = False, zone: str = ""
) -> str:
    """Write a range of values, with its unit or time zone once.

    >>> range_text(36.0, 60.0), range_text(259_200.0, 604_800.0, duration=True)
    ('36–60', '3–7 days')
    >>> range_text(1709251200.0, 1711972800.0, datetime=True, zone="Europe/Berlin")
    '2024-03-01 01:00 to 2024-04-01 14:00 (Europe/Berlin)'
    >>> range_text(-5.0, -2.0)
    '−5 to −2'
    """
    a, b = edge_texts([low, high], datetime=datetime, duration=duration, zone=zone)
    if datetime:
        return (a if a == b else f"{a} to {b}") + zone_text(zone)
    unit = ""
    if duration and np.isfinite(high):
        (a, _), (b, unit) = a.split(" "), b.split(" ")
        unit = f" {unit}"
    a, b = a.replace("-", "−"), b.replace("-", "−")
    if a == b:
        return a + unit
    return (f"{a} to {b}" if low < 0 else f"{a}–{b}") + unit


def zone_text(zone: str) -> str:
    """Return what is written after an instant or a range of them to name its time zone.

    >>> zone_text("Europe/Berlin"), zone_text("")
    (' (Europe/Berlin)', '')
    """
    return f" ({zone})" if zone else ""


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
    local = _local(value, zone)
    unit = next((u for u, size in _INSTANT_UNITS.items() if _falls_on(local, size)), "us")
    return _stamp(local, unit) + zone_text(zone)


def show_duration(value: float) -> str:
    """Write seconds as a duration in a suitable unit.

    >>> show_duration(259_200.0), show_duration(5400.0), show_duration(0.25), show_duration(86_400)
    ('3 days', '1.5 h', '250 ms', '24 h')
    """
    (text,) = edge_texts([float(value)], duration=True)
    return text


def _number_texts(edges: Sequence[float]) -> list[str]:
    digits = [_NUMBER_DIGITS[0]] * len(edges)
    for k, (a, b) in enumerate(pairwise(edges)):
        need = _digits_apart(a, b)
        digits[k], digits[k + 1] = max(digits[k], need), need
    return [show_number(edge, count) for edge, count in zip(edges, digits, strict=True)]


def _instant_texts(edges: Sequence[float], zone: str) -> list[str]:
    local = [_local(edge, zone) for edge in edges]
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


def _local(value: float, zone: str) -> float:
    """Return an instant as seconds on the clock of a time zone.

    A zone that this computer does not know is shown as UTC.
    """
    if not zone or not np.isfinite(value):
        return float(value)
    if zone[0] in "+-":
        size = 3600 * int(zone[1:3]) + 60 * int(zone[4:6] or 0)
        return float(value) + (-size if zone[0] == "-" else size)
    try:
        at = dt.datetime.fromtimestamp(np.floor(value), ZoneInfo(zone))
    except (KeyError, ValueError, OverflowError, OSError):
        return float(value)
    offset = at.utcoffset()
    return float(value) + (offset.total_seconds() if offset is not None else 0.0)


def _stamp(value: float, unit: str) -> str:
    if not np.isfinite(value):
        return str(value)
    ticks = np.array(_floored(value), dtype="M8[us]").astype(f"M8[{unit}]")
    return str(ticks).replace("T", " ")


def _floored(value: float) -> int:
    """Return microseconds; instants have no more digits than that."""
    return round(value * 1e6)


def _starts(value: float, calendar: str) -> bool:
    """Tell whether an instant is the start of a year or month."""
    stamp = np.array(_floored(value), dtype="M8[us]")
    return bool(stamp.astype(f"M8[{calendar}]") == stamp)


def _falls_on(value: float, size: float) -> bool:
    return _floored(value) % round(size * 1e6) == 0


def _duration_unit(edges: Sequence[float]) -> str:
    """Return the largest unit of which the largest edge holds two or more."""
    largest = max((abs(edge) for edge in edges if np.isfinite(edge)), default=0.0)
    fits: Callable[[str], bool] = lambda unit: largest >= 2 * _DURATION_UNITS[unit]  # noqa: E731
    return next(filter(fits, _DURATION_UNITS), "s")


def _with_unit(text: str, unit: str) -> str:
    return f"{text} {'day' if (text, unit) == ('1', 'days') else unit}"


def _is_whole(value: float) -> bool:
    return abs(value) < 1e15 and value == round(value)


def _digits_apart(a: float, b: float) -> int:
    """Return the smallest number of digits with which two edges look different."""
    if a == b or not (np.isfinite(a) and np.isfinite(b)):
        return _NUMBER_DIGITS[0]
    for digits in _NUMBER_DIGITS:
        if float(show_number(a, digits)) != float(show_number(b, digits)):
            return digits
    return _NUMBER_DIGITS[-1]
