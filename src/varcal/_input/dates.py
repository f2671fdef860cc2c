"""Dates: which texts are dates, and the hour of day, weekday and month as variables of their own.

A column of text becomes dates only where every value is one and there is only one way to read all
of them: "03/04/2024" alone may be in March or in April, next to "25/04/2024" it is in April.

An error that comes back every morning is spread evenly over the bins of a date; along the hour of
day it shows.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from varcal._arrays import Floats
from varcal._edge_texts import on_clock, zone_offset
from varcal._input.variables import Variable, present_levels

#: Values that are looked at before the whole column is, and for a note.
_FIRST, _LOOKED_AT = 20, 1000
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip

#: The ways of writing dates, by name; `_numbered` has written months as in m03. The names are
#: saved with calibrators and collected sums.
_DATES = {
    "year-month-day": r"(?P<year>\d{4})([-/])(?P<month>\d\d)\2(?P<day>\d\d)",
    "day.month.year": r"(?P<day>\d\d)\.(?P<month>\d\d)\.(?P<year>\d{4})",
    "day/month/year": r"(?P<day>\d\d)([-/])(?P<month>\d\d)\2(?P<year>\d{4})",
    "month/day/year": r"(?P<month>\d\d)([-/])(?P<day>\d\d)\2(?P<year>\d{4})",
    "day month year": r"(?P<day>\d\d)[- ]m(?P<month>\d\d)[- ](?P<year>\d{4})",
    "month day year": r"m(?P<month>\d\d) (?P<day>\d\d),? (?P<year>\d{4})",
}
FORMATS = tuple(_DATES)
_TIME = (
    r"(?:(?P<gap>[T ])(?P<time>\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)"
    r"(?: ?(?P<zone>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?)?"
)
LINES = {name: re.compile(rf"(?mia)^{date}{_TIME}$") for name, date in _DATES.items()}
_ISO = "\\g<year>-\\g<month>-\\g<day>\\g<gap>\\g<time>\t\\g<zone>"
NAME_OF_MONTH = re.compile(rf"(?i)({'|'.join(name[:3] for name in MONTHS)})[a-z]{{0,6}}\.?")
#: A digit that stands alone, except in minutes, seconds and their fractions.
SINGLE_DIGIT = re.compile(r"(?a)(?<![\d:])(?<!:\d\d[.,])\d(?!\d)")


class Instants(NamedTuple):
    """Texts that have been read as dates.

    Attributes
    ----------
    seconds : ndarray
        Seconds since 1970, in UTC where the texts have a time zone.
    zone : str
        The time zone: "" for none, "UTC", or an offset such as "+01:00". Where the texts have
        several offsets, as in summer and winter, it is "UTC".
    """

    seconds: Floats
    zone: str


def formats_of(texts: Sequence[str]) -> dict[str, Instants]:
    """Return the ways in which all texts can be read as dates, with the instants.

    >>> list(formats_of(["25/03/2024", "03/04/2024"])), list(formats_of(["03/04/2024"]))
    (['day/month/year'], ['day/month/year', 'month/day/year'])
    >>> list(formats_of(["2024-03-01", "unknown"]))
    []
    """
    likely = [form for form in FORMATS if texts and read_as(texts[:_FIRST], form) is not None]
    found = {form: read_as(texts, form) for form in likely}
    return {form: instants for form, instants in found.items() if instants is not None}


def read_as(texts: Sequence[str], form: str) -> Instants | None:
    """Return texts read as dates in the given way, or None where one of them cannot be.

    >>> read_as(["2024-03-01T12:00:00+01:00"], "year-month-day")
    Instants(seconds=array([1.7092908e+09]), zone='+01:00')
    """
    written = "\n".join(texts)
    lines, n_dates = LINES[form].subn(_ISO, written)
    if n_dates < len(texts):
        lines, n_dates = LINES[form].subn(_ISO, _numbered(written))
    found = [line.partition("\t") for line in lines.replace(",", ".").upper().split("\n")]
    if not n_dates == len(found) == len(texts):
        return None
    offsets = {text: _zone(text) for text in {zone for _, _, zone in found}}
    zones = set(offsets.values())
    if "" in zones and len(zones) > 1:  # some without a time zone
        return None
    try:
        local = np.array([date for date, _, _ in found], dtype="M8[us]")
    except ValueError:  # such as the 30th of February
        return None
    seconds = (local - np.datetime64(0, "us")) / np.timedelta64(1, "s")
    if zones - {"", "UTC"}:
        seconds -= np.array([zone_offset(offsets[zone]) for _, _, zone in found])
    return Instants(seconds, zones.pop() if len(zones) == 1 else "UTC")


def _numbered(lines: str) -> str:
    """Write months as numbers, and numbers of one digit with two.

    >>> _numbered("5 March 2024 9:30"), _numbered("2024-03-05 09:30:00.5")
    ('05 m03 2024 09:30', '2024-03-05 09:30:00.5')
    """
    names = [name[:3].lower() for name in MONTHS]
    lines = NAME_OF_MONTH.sub(lambda found: f"m{names.index(found[1].lower()) + 1:02d}", lines)
    return SINGLE_DIGIT.sub(r"0\g<0>", lines)


def _zone(text: str) -> str:
    """Return a time zone as "", "UTC" or an offset of the form "+01:00"."""
    if not text or text[0] not in "+-":
        return text and "UTC"
    digits = text[1:].replace(":", "").ljust(4, "0")
    return "UTC" if digits == "0000" else f"{text[0]}{digits[:2]}:{digits[2:]}"


def with_dates(variable: Variable) -> Variable:
    """Return text as dates where it can be read as dates in one way only; others as they are.

    The text stays with the variable (`Variable.text`), for a calibrator that was fitted on it.

    >>> day = with_dates(Variable.of(["2024-03-01", None, "2024-03-02"], "day"))
    >>> day.kind, day.values
    ('datetime', array([1.7092512e+09,           nan, 1.7093376e+09]))
    """
    texts = [level for level in variable.levels if isinstance(level, str)]
    found = formats_of(texts) if len(texts) == len(variable.levels) else {}
    if len(found) != 1:
        return variable
    ((form, instants),) = found.items()
    return _dated(variable, form, instants)


def as_dates(variable: Variable, form: str) -> Variable | None:
    """Return a column of text as dates that are written in the given way, None if it cannot be."""
    text = as_text(variable)
    instants = read_as([str(level) for level in text.levels], form)
    return None if instants is None else _dated(text, form, instants)


def as_text(variable: Variable) -> Variable:
    """Return dates that were read from text as that text, and anything else as it is."""
    return variable.text or variable


def _dated(text: Variable, form: str, instants: Instants) -> Variable:
    values = np.append(instants.seconds, np.nan)[text.values]
    return Variable(text.name, "datetime", values, (), instants.zone, form, text, text.source)


def date_note(name: str, texts: Sequence[Hashable], form: str = "") -> str:
    """Return a note on text that was read as dates, or looks like dates and was not; or "".

    Parameters
    ----------
    name : str
        The column.
    texts : sequence
        Its text.
    form : str
        How its dates are written, if it was read as dates.

    Examples
    --------
    >>> date_note("day", ["03/04/2024", "05/06/2024"])
    "'day' is read as text: in '03/04/2024' day and month cannot be told apart."
    >>> date_note("day", ["25.06.2024"], "day.month.year")
    "'day' is read as dates, written as day.month.year."
    """
    if form:
        return "" if form == FORMATS[0] else f"{name!r} is read as dates, written as {form}."
    some = [text for text in texts[:_LOOKED_AT] if isinstance(text, str)]
    if len(formats_of(some)) > 1:
        return f"{name!r} is read as text: in {some[0]!r} day and month cannot be told apart."
    for written in FORMATS:
        if all(read_as([text], written) is None for text in some[:_FIRST]):
            continue
        is_date = [read_as([text], written) is not None for text in some]
        if 0.9 * len(some) <= sum(is_date) < len(some):
            other, date = some[is_date.index(False)], some[is_date.index(True)]
            return f"{name!r} is read as text: {other!r} is not a date like {date!r}."
    return ""


_DAY, _QUARTER = 86_400.0, 900.0
#: The parts of dates, and the seconds after which each comes back.
CYCLES = {"hour": _DAY, "weekday": 7 * _DAY, "month": 365.25 * _DAY}
#: A part is a variable of its own if the dates cover this many cycles; in fewer, it is the date.
LEAST_CYCLES = 2
_LEVELS: dict[str, tuple[str, ...]] = {"weekday": _WEEKDAYS, "month": MONTHS}
#: A column, one of its parts, and the time zone of its clock.
CalendarPart = tuple[str, str, str]


def part_name(part: CalendarPart) -> str:
    """Return the name of the variable, such as "when (hour)"."""
    return f"{part[0]} ({part[1]})"


def calendar_parts(
    dates: Variable, ends: tuple[float, float] | None = None, taken: Iterable[str] = ()
) -> list[CalendarPart]:
    """Return the parts of dates that come back and vary.

    Parameters
    ----------
    dates : Variable
        Instants, of all rows or of a sample; a variable of another kind has no parts.
    ends : tuple of float, optional
        The first and the last instant of all rows, by default of these.
    taken : iterable of str
        Names of other columns; a part that is called like one of them is left out.

    Examples
    --------
    >>> hours = Variable("when", "datetime", np.arange(0, 50 * 3600.0, 3600.0))
    >>> calendar_parts(hours)
    [('when', 'hour', '')]
    """
    known = dates.values[np.isfinite(dates.values)] if dates.kind == "datetime" else np.zeros(0)
    if not len(known):
        return []
    first, last = ends or (known.min(), known.max())
    found = []
    for kind, cycle in CYCLES.items():
        part = (dates.name, kind, dates.zone)
        if last - first >= LEAST_CYCLES * cycle and part_name(part) not in set(taken):
            values = part_values(known, part)
            found += [part] if (values != values[0]).any() else []
    return found


def part_values(seconds: Floats, part: CalendarPart) -> Floats:
    """Return the hour (0 to 23), weekday (0 is Monday) or month (0 is January), NaN if missing."""
    _, kind, zone = part
    known = np.isfinite(seconds)
    local = np.where(known, seconds, 0.0)
    if zone:
        quarters, of_row = np.unique(np.floor(local / _QUARTER), return_inverse=True)
        local = local + np.array([_offset(zone, one) for one in quarters.tolist()])[of_row.ravel()]
    day = np.floor(local / _DAY)
    if kind == "hour":
        found = np.floor((local - day * _DAY) / 3600)
    elif kind == "weekday":
        found = (day + 3) % 7  # 1970 began on a Thursday
    else:
        found = day.astype("M8[D]").astype("M8[M]").astype(np.int64) % 12.0
    return np.where(known, found, np.nan)


@lru_cache(maxsize=1 << 16)
def _offset(zone: str, quarter: float) -> float:
    """Return the seconds by which a clock differs from UTC; clocks change at quarters of an hour.

    >>> _offset("America/St_Johns", 0.0) / 3600
    -3.5
    """
    return on_clock(_QUARTER * quarter, zone) - _QUARTER * quarter


def part_variable(dates: Variable, part: CalendarPart) -> Variable:
    """Return a part of dates as a variable: the hour as a number, weekday and month as levels."""
    values = part_values(dates.values, part)
    name = part_name(part)
    if part[1] not in _LEVELS:
        return Variable(name, "numeric", values, source=dates.name)
    codes = np.where(np.isnan(values), -1, values).astype(np.intp)
    return Variable(name, "levels", codes, _LEVELS[part[1]], source=dates.name)


def read_parts(
    variables: Sequence[Variable], parts: Sequence[CalendarPart]
) -> tuple[Variable, ...]:
    """Return variables and the given parts of some of them."""
    dates = {variable.name: variable for variable in variables}
    return (*variables, *(part_variable(dates[part[0]], part) for part in parts))


def parts_of(variables: Sequence[Variable]) -> list[CalendarPart]:
    """Return the parts that vary of those variables that are dates."""
    names = [one.name for one in variables]
    return [part for one in variables for part in calendar_parts(one, taken=names)]


def with_calendar(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    """Return variables and the parts of those that are dates, with the levels that occur.

    Examples
    --------
    >>> when = Variable("when", "datetime", np.arange(0, 20 * 86_400.0, 86_400.0), zone="UTC")
    >>> [one.name for one in with_calendar([when])]
    ['when', 'when (weekday)']
    """
    found = list(read_parts(variables, parts_of(variables)))
    for k, variable in enumerate(found[len(variables) :], len(variables)):
        if variable.levels:
            codes, levels = present_levels(variable.values, variable.levels)
            found[k] = replace(variable, values=codes, levels=tuple(levels))
    return tuple(found)
