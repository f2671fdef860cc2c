"""Options that many functions share, each checked in one place."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Integral, Real

from varcal.exceptions import InputError


def check_choice(argument: str, value: object, allowed: Sequence[object]) -> None:
    """Refuse a value that is not among the allowed ones.

    >>> check_choice("side", "over", ["both", "over", "under"])
    """
    if not isinstance(value, Hashable) or value not in allowed:
        raise InputError.choice(argument, value, allowed)


def check_level(level: object) -> None:
    """Refuse a level of confidence outside (0, 1).

    >>> check_level(0.95)
    """
    if not isinstance(level, Real) or not 0 < float(level) < 1:
        raise InputError(
            f"level must lie between 0 and 1; got {level!r}", "try 0.95", argument="level"
        )


def check_n_bins(n_bins: object) -> None:
    """Refuse a number of bins that is none.

    >>> check_n_bins(10)
    """
    if isinstance(n_bins, bool) or not isinstance(n_bins, Integral) or int(n_bins) < 1:
        raise InputError(
            f"n_bins must be a whole number of at least 1; got {n_bins!r}",
            "try 10",
            argument="n_bins",
        )
