"""Parts of the calendar: the hour of day, weekday and month of dates, as variables of their own.

An error that comes back every morning is spread evenly over the bins of a date; along the hour of
day it shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from varcal._arrays import Floats
from varcal._edge_texts import on_clock
from varcal._input.variables import Variable, present_levels

_DAY, _QUARTER = 86_400.0, 900.0
#: The parts, and the seconds after which each comes back.
CYCLES = {"hour": _DAY, "weekday": 7 * _DAY, "month": 365.25 * _DAY}
#: A part is a variable of its own if the dates cover this many cycles; in fewer, it is the date.
LEAST_CYCLES = 2
_LEVELS = {
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": (
        "January", "February", "March", "April", "May", "June",
        "July", "August", "September", "October", "November", "December",
    ),
}  # fmt: skip
#: A column, one of its parts, and the time zone of its clock.
CalendarPart = tuple[str, str, str]


def part_name(part: CalendarPart) -> str:
    """Return the name of the variable, such as "when (hour)"."""
    return f"{part[0]} ({part[1]})"


def calendar_parts(
    dates: Variable, ends: tuple[float, float], taken: Iterable[str] = ()
) -> list[CalendarPart]:
    """Return the parts of dates that come back and vary.

    Parameters
    ----------
    dates : Variable
        Instants, of all rows or of a sample.
    ends : tuple of float
        The first and the last instant of all rows.
    taken : iterable of str
        Names of other columns; a part that is called like one of them is left out.

    Examples
    --------
    >>> hours = Variable("when", "datetime", np.arange(0, 50 * 3600.0, 3600.0))
    >>> calendar_parts(hours, (0.0, 49 * 3600.0))
    [('when', 'hour', '')]
    """
    if dates.kind != "datetime" or not np.isfinite(ends).all():
        return []
    covered = ends[1] - ends[0]
    found = [
        (dates.name, part, dates.zone)
        for part, cycle in CYCLES.items()
        if covered >= LEAST_CYCLES * cycle
    ]
    names = set(taken)
    return [part for part in found if part_name(part) not in names and _varies(dates, part)]


def _varies(dates: Variable, part: CalendarPart) -> bool:
    values = part_values(dates.values, part)
    known = values[np.isfinite(values)]
    return bool(len(known)) and bool((known != known[0]).any())


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


def with_calendar(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    """Return variables and the parts of those that are dates.

    Examples
    --------
    >>> when = Variable("when", "datetime", np.arange(0, 20 * 86_400.0, 86_400.0), zone="UTC")
    >>> [one.name for one in with_calendar([when])]
    ['when', 'when (weekday)']
    """
    names = [one.name for one in variables]
    more = []
    for dates in variables:
        if dates.kind != "datetime" or not np.isfinite(dates.values).any():
            continue
        known = dates.values[np.isfinite(dates.values)]
        for part in calendar_parts(dates, (known.min(), known.max()), names):
            found = part_variable(dates, part)
            if found.levels:
                codes, levels = present_levels(found.values, found.levels)
                found = replace(found, values=codes, levels=tuple(levels))
            more.append(found)
    return (*variables, *more)
