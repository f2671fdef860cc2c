"""Checks of the parameters that several calibrators share, made when `fit` begins."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from varcal.exceptions import InputError

__all__ = ["EPS", "check_choice", "check_count", "check_eps", "check_not_negative"]

#: The default distance that scores keep from 0 and 1 before a logarithm.
EPS = float(np.finfo(np.float64).eps)


def check_choice(name: str, value: object, allowed: Iterable[object]) -> None:
    """Refuse a value that is not among those allowed."""
    allowed = list(allowed)
    if value not in allowed:
        raise InputError.choice(name, value, allowed)


def check_count(name: str, value: object, least: int) -> None:
    """Refuse what is not an integer of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(
            f"{name} must be an integer of at least {least}; got {value!r}", f"{least}, for one"
        )


def check_not_negative(name: str, value: float) -> None:
    """Refuse a number below 0."""
    if not (isinstance(value, int | float | np.number) and np.isfinite(value) and value >= 0):
        raise InputError(f"{name} must be a number of at least 0; got {value!r}", "0, for one")


def check_eps(value: float) -> None:
    """Refuse a distance from 0 and 1 that leaves no room between."""
    if not (isinstance(value, int | float | np.number) and 0 < value < 0.5):
        raise InputError(f"eps must lie between 0 and 0.5; got {value!r}", "1e-12, for one")
