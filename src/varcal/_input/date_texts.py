"""Text that is dates: which ways of writing dates fit a whole column, and the instants.

A column of text becomes dates only where every value is one and there is only one way to read all
of them: "03/04/2024" alone may be in March or in April, next to "25/04/2024" it is in April.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from varcal._arrays import Floats
from varcal._edge_texts import zone_offset
from varcal._input.variables import Variable

#: Values that are looked at before the whole column is.
_FIRST = 20
#: Values that are looked at for a note.
_LOOKED_AT = 1000
#: The kind of array that numpy converts to dates. Bytes take a tenth of the time of text, but
#: numpy 1 ends the process where bytes are not a date.
_KIND = "U" if np.__version__.startswith("1.") else "S"

_TIME = (
    r"(?:[T ](?P<time>\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?)"
    r"(?: ?(?P<zone>Z|UTC|GMT|[+-]\d{2}(?::?\d{2})?))?)?"
)
_MONTH = r"(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]


def _pattern(date: str) -> re.Pattern[str]:
    return re.compile(date + _TIME, re.IGNORECASE)


#: The ways of writing dates, by name. Names are saved with calibrators and collected sums.
_PATTERNS = {
    "year-month-day": _pattern(r"(?P<year>\d{4})([-/])(?P<month>\d{2})\2(?P<day>\d{2})"),
    "day.month.year": _pattern(r"(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})"),
    "day/month/year": _pattern(r"(?P<day>\d{1,2})([-/])(?P<month>\d{1,2})\2(?P<year>\d{4})"),
    "month/day/year": _pattern(r"(?P<month>\d{1,2})([-/])(?P<day>\d{1,2})\2(?P<year>\d{4})"),
    "day month year": _pattern(rf"(?P<day>\d{{1,2}})[- ]{_MONTH}[- ](?P<year>\d{{4}})"),
    "month day year": _pattern(rf"{_MONTH} (?P<day>\d{{1,2}}),? (?P<year>\d{{4}})"),
}
FORMATS = tuple(_PATTERNS)


@dataclass(frozen=True, eq=False)
class Instants:
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
    found = {}
    for name in _PATTERNS:
        if texts and read_as(texts[:_FIRST], name) is not None:
            instants = read_as(texts, name)
            if instants is not None:
                found[name] = instants
    return found


def read_as(texts: Sequence[str], form: str) -> Instants | None:
    """Return texts read as dates in the given way, or None where one of them cannot be.

    >>> read_as(["2024-03-01T12:00:00+01:00"], "year-month-day")
    Instants(seconds=array([1.7092908e+09]), zone='+01:00')
    """
    if len(texts) > _FIRST:
        quick = _read_alike(texts, form)
        if quick is not None:
            return quick
    matches = [_PATTERNS[form].fullmatch(text) for text in texts]
    if not all(matches):
        return None
    parts: list[dict[str, str | None]] = [match.groupdict() for match in matches if match]
    zones = {_zone(part["zone"]) for part in parts}
    if "" in zones and len(zones) > 1:  # some without a time zone
        return None
    try:
        local = np.array([_iso(part) for part in parts], dtype="M8[us]")
    except ValueError:  # such as the 30th of February
        return None
    seconds = (local - np.datetime64(0, "us")) / np.timedelta64(1, "s")
    seconds -= np.array([zone_offset(_zone(part["zone"])) for part in parts], dtype=np.float64)
    return Instants(seconds, zones.pop() if len(zones) == 1 else "UTC")


def _read_alike(texts: Sequence[str], form: str) -> Instants | None:
    """Read texts that all have the layout of the first, some twenty times as fast; else None.

    Where the first has digits they have digits, and all other characters are the same.
    """
    first = _PATTERNS[form].fullmatch(texts[0])
    if (
        first is None
        or not str(first["month"]).isdigit()
        or set(map(len, texts)) != {len(texts[0])}
    ):
        return None
    try:
        rows = np.array(texts, dtype=f"S{len(texts[0])}").view(np.uint8).reshape(len(texts), -1)
    except UnicodeEncodeError:
        return None
    end = first.end("time") if first["time"] else first.end()
    wanted = rows[0]
    is_digit = (wanted >= ord("0")) & (wanted <= ord("9"))
    is_digit[end:] = False  # the time zone
    digits = rows[:, is_digit]
    same = (rows[:, ~is_digit] == wanted[~is_digit]).all()
    if not same or digits.min() < ord("0") or digits.max() > ord("9"):
        return None
    pieces = [
        (first.span("year"), 4, ""),
        (first.span("month"), 2, "-"),
        (first.span("day"), 2, "-"),
    ]
    if first["time"]:
        hour = first.start("time"), first.start("time") + str(first["time"]).index(":")
        pieces += [(hour, 2, "T"), ((hour[1], end), end - hour[1], "")]
    columns = []
    for (start, stop), width, before in pieces:
        columns += [np.full((len(rows), len(before)), ord(before or " "), np.uint8)]
        columns += [np.full((len(rows), width - (stop - start)), ord("0"), np.uint8)]
        columns += [rows[:, start:stop]]
    iso = np.ascontiguousarray(np.hstack(columns))
    iso[iso == ord(",")] = ord(".")
    try:
        iso_texts = iso.view(f"S{iso.shape[1]}").ravel()
        local = iso_texts.astype(f"{_KIND}{iso.shape[1]}").astype("M8[us]")
    except ValueError:
        return None
    zone = _zone(first["zone"])
    seconds = (local - np.datetime64(0, "us")) / np.timedelta64(1, "s") - zone_offset(zone)
    return Instants(seconds, zone)


def with_dates(variable: Variable) -> Variable:
    """Return text as dates where it can be read as dates in one way only; others as they are.

    The text stays with the variable (`Variable.text`), for a calibrator that was fitted on it.

    >>> day = with_dates(Variable.of(["2024-03-01", None, "2024-03-02"], "day"))
    >>> day.kind, day.values
    ('datetime', array([1.7092512e+09,           nan, 1.7093376e+09]))
    """
    texts = _texts(variable)
    found = formats_of(texts) if texts else {}
    if len(found) != 1:
        return variable
    ((form, instants),) = found.items()
    return _dated(variable, form, instants)


def as_dates(variable: Variable, form: str) -> Variable | None:
    """Return a column of text as dates that are written in the given way, None if it cannot be."""
    text = variable.text or variable
    instants = read_as([str(level) for level in text.levels], form)
    return None if instants is None else _dated(text, form, instants)


def as_text(variable: Variable) -> Variable:
    """Return dates that were read from text as that text, and anything else as it is."""
    return variable.text or variable


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
    if not some:
        return ""
    shown = f"{name!r} is read as text: "
    if len(formats_of(some)) > 1:
        return f"{shown}in {some[0]!r} day and month cannot be told apart."
    for written in FORMATS:
        is_date = [read_as([text], written) is not None for text in some]
        if 0.9 * len(some) <= sum(is_date) < len(some):
            other, date = some[is_date.index(False)], some[is_date.index(True)]
            return f"{shown}{other!r} is not a date like {date!r}."
    return ""


def _texts(variable: Variable) -> list[Any]:
    """Return the levels of a column of text; nothing where they are not all text."""
    levels = variable.levels
    if not levels or not all(isinstance(level, str) for level in levels[:_FIRST]):
        return []
    return list(levels) if all(isinstance(level, str) for level in levels) else []


def _dated(text: Variable, form: str, instants: Instants) -> Variable:
    values = np.append(instants.seconds, np.nan)[text.values]
    return replace(
        text,
        kind="datetime",
        values=values,
        levels=(),
        zone=instants.zone,
        date_format=form,
        text=text,
    )


def _iso(part: dict[str, str | None]) -> str:
    month = str(part["month"]).lower()
    number = _MONTHS.index(month) + 1 if month in _MONTHS else int(month)
    hours, _, rest = str(part["time"] or "0:00").partition(":")
    rest = rest.replace(",", ".")
    return f"{part['year']}-{number:02d}-{int(str(part['day'])):02d}T{int(hours):02d}:{rest}"


def _zone(text: str | None) -> str:
    """Return a time zone as "", "UTC" or an offset of the form "+01:00"."""
    if not text:
        return ""
    if text[0] not in "+-":
        return "UTC"
    digits = text[1:].replace(":", "").ljust(4, "0")
    return "UTC" if digits == "0000" else f"{text[0]}{digits[:2]}:{digits[2:]}"
