"""Edges of bins as text, with few digits but enough to tell neighbours apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

# Digits to try: significant digits of numbers, decimals of the second of instants.
_NUMBER_DIGITS = range(6, 18)
_INSTANT_UNITS = {0: "M8[s]", 3: "M8[ms]", 6: "M8[us]"}
_INSTANT_DIGITS = tuple(_INSTANT_UNITS)


def edge_texts(edges: Sequence[float], *, datetime: bool = False) -> list[str]:
    """Write edges with just enough digits to tell each from its neighbours.

    >>> edge_texts([1 / 6, 1 / 3, 0.3333334, 1.0])
    ['0.166667', '0.3333333', '0.3333334', '1']
    """
    digits = [_INSTANT_DIGITS[0] if datetime else _NUMBER_DIGITS[0]] * len(edges)
    for k, (a, b) in enumerate(pairwise(edges)):
        need = _digits_apart(a, b, datetime)
        digits[k], digits[k + 1] = max(digits[k], need), need
    show = show_instant if datetime else show_number
    return [show(edge, count) for edge, count in zip(edges, digits, strict=True)]


def show_number(value: float, digits: int = 6) -> str:
    """Write a whole number in full, and any other with the given significant digits.

    >>> show_number(48842.0), show_number(1 / 3)
    ('48842', '0.333333')
    """
    value = float(value) + 0.0  # −0 is 0
    if not np.isfinite(value):
        return str(value)
    return f"{value:.0f}" if _is_whole(value) else f"{value:.{digits}g}"


def show_instant(value: float, digits: int = 0) -> str:
    """Write seconds since 1970 as a date, with the time unless it is midnight.

    >>> show_instant(86400.0), show_instant(0.25, digits=3)
    ('1970-01-02', '1970-01-01T00:00:00.250')
    """
    if not np.isfinite(value):
        return str(value)
    ticks = np.array(round(value * 10**digits), dtype=_INSTANT_UNITS[digits])
    return str(ticks).removesuffix("." + "0" * digits).removesuffix("T00:00:00")


def _is_whole(value: float) -> bool:
    return abs(value) < 1e15 and value == round(value)


def _digits_apart(a: float, b: float, datetime: bool) -> int:
    """Return the smallest number of digits with which two edges look different."""
    tries = _INSTANT_DIGITS if datetime else _NUMBER_DIGITS
    if a == b or not (np.isfinite(a) and np.isfinite(b)):
        return tries[0]
    for digits in tries:
        if datetime:
            apart = show_instant(a, digits) != show_instant(b, digits)
        else:
            apart = float(show_number(a, digits)) != float(show_number(b, digits))
        if apart:
            return digits
    return tries[-1]
