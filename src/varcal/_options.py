"""Options that many functions and calibrators share, each checked in one place."""

from __future__ import annotations

import math
import sys
from collections.abc import Hashable, Sequence
from numbers import Integral, Real

from varcal.exceptions import InputError

#: The default distance that calibrators keep scores from 0 and 1 before they take a logarithm.
EPS = sys.float_info.epsilon


def check_choice(argument: str, value: object, allowed: Sequence[object]) -> None:
    """Refuse a value that is not among the allowed ones.

    >>> check_choice("side", "over", ["both", "over", "under"])
    """
    if not isinstance(value, Hashable) or value not in allowed:
        raise InputError.choice(argument, value, allowed)


def check_level(level: object) -> None:
    """Refuse a confidence level outside (0, 1).

    >>> check_level(0.95)
    """
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise InputError(
            f"level must lie between 0 and 1; got {level!r}", "try 0.95", argument="level"
        )


def check_n_bins(n_bins: object) -> None:
    """Refuse a number of bins that is not a positive whole number.

    >>> check_n_bins(10)
    """
    if isinstance(n_bins, bool) or not isinstance(n_bins, Integral) or int(n_bins) < 1:
        raise InputError(
            f"n_bins must be a whole number of at least 1; got {n_bins!r}",
            "try 10",
            argument="n_bins",
        )


def check_count(argument: str, value: object, least: int) -> None:
    """Refuse a value that is not a whole number of at least `least`.

    >>> check_count("degree", 2, 1)
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise InputError(
            f"{argument} must be an integer of at least {least}; got {value!r}",
            f"try {least}",
            argument=argument,
        )


def check_not_negative(argument: str, value: object) -> None:
    """Refuse a value that is not a finite number of at least 0.

    >>> check_not_negative("l2", 0.5)
    """
    if not isinstance(value, Real) or not 0 <= float(value) < math.inf:
        raise InputError(
            f"{argument} must be a number of at least 0; got {value!r}", "try 0", argument=argument
        )


def check_share(argument: str, value: object, most: float = 1.0) -> None:
    """Refuse a value that is not a number from 0 to `most`.

    >>> check_share("max_shift", 0.1)
    """
    if not isinstance(value, Real) or not 0 <= float(value) <= most:
        raise InputError(
            f"{argument} must lie between 0 and {most:g}; got {value!r}",
            f"try {most / 10:g}",
            argument=argument,
        )


def check_eps(value: object) -> None:
    """Refuse a distance from 0 and 1 that does not lie between 0 and 0.5.

    >>> check_eps(1e-12)
    """
    if not isinstance(value, Real) or not 0 < float(value) < 0.5:
        raise InputError(
            f"eps must lie between 0 and 0.5; got {value!r}", "try 1e-12", argument="eps"
        )
