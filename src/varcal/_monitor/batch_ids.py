"""The names of batches: what may be one, and which comes first."""

from __future__ import annotations

import re
from numbers import Integral

import numpy as np

from varcal._options import check_text
from varcal.exceptions import InputError, shown

#: The longest name of a batch.
MOST_CHARACTERS = 500


def checked_id(id: object, last: str) -> str:
    """Return the name of a batch, if it comes after the last one (``""`` if there is none).

    >>> import datetime
    >>> checked_id(datetime.date(2026, 11, 16), "2026-11-15")
    '2026-11-16'
    """
    name = check_text("id", str(id)) if _names_a_batch(id) else ""
    if not name.strip() or len(name) > MOST_CHARACTERS:
        raise InputError(f"id is {shown(id)}", "give the name of the batch, such as its date", "id")
    if last and id_order(name) <= id_order(last):
        same = id_order(name) == id_order(last)
        raise InputError(
            f"id is {name!r}, "
            + ("which is already counted" if same else f"and the latest batch is {last!r}"),
            "batches are closed windows: enter each once, in order, when its labels are in",
            argument="id",
        )
    return name


def id_order(id: str) -> list[tuple[bool, int, str]]:
    """Return what ids are sorted by: numbers in them count as numbers, however they are written.

    >>> id_order("day 9") < id_order("day 10"), id_order("2026-9-1") == id_order("2026-09-01")
    (True, True)
    """
    return [
        (True, int(part), "") if part.isdecimal() else (False, 0, part)
        for part in re.split(r"(\d+)", id)
        if part
    ]


def _names_a_batch(id: object) -> bool:
    """Tell whether an id is a text, a whole number or a date, of any library."""
    if isinstance(id, str) or (isinstance(id, Integral) and not isinstance(id, bool)):
        return True
    dated = isinstance(id, np.datetime64) or hasattr(id, "strftime")
    return dated and str(id) != "NaT"
