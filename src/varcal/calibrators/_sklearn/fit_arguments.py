"""The arguments of `fit` of a calibrated classifier, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from varcal._arrays import Floats, Ints
from varcal._input.groups import check_units, group_numbers
from varcal._input.variables import Variable
from varcal.calibrators._interface.held_together import instants_of
from varcal.exceptions import InputError, shown

__all__ = ["FitArguments"]


class FitArguments(NamedTuple):
    """The arguments of `fit`, with groups, times and blocks as numbers."""

    X: Any
    y: Any
    v: Any
    sample_weight: Any
    units: Ints | None
    instants: Floats | None
    blocks: Any

    @classmethod
    def of(
        cls, X: Any, y: Any, v: Any, sample_weight: Any, groups: Any, time: Any, blocks: Any
    ) -> FitArguments:
        """Check that variables, groups, times and blocks have one value per row of X."""
        if v is not None:
            _check_length(v, len(y))
        units = None if groups is None else _units(groups, len(y))
        instants = None if time is None else _instants(time, len(y))
        if not isinstance(blocks, str | bool):
            blocks = _units(blocks, len(y), "blocks")
        return cls(X, y, v, sample_weight, units, instants, blocks)


def _check_length(v: Any, n: int) -> None:
    """Refuse variables whose number of rows differs from that of X."""
    columns = v.values() if isinstance(v, Mapping) else [v]
    for column in columns:
        shape = getattr(column, "shape", None)
        single = shape == () or isinstance(column, str | bytes)
        if single or (shape is None and not hasattr(column, "__len__")):
            raise InputError(
                f"variables is {shown(v)}, not columns of values",
                "give an array, a frame or a dict of columns",
                argument="variables",
            )
        held = shape[0] if shape else len(column)
        if held != n:
            raise InputError(
                f"lengths differ: X {n:,}, variables {held:,}", "give one value per row in each"
            )


def _units(groups: Any, n: int, argument: str = "groups") -> Ints:
    """Return groups, or blocks, as numbers."""
    unit = Variable.of(groups, argument, argument)
    if len(unit) != n:
        raise InputError(
            f"lengths differ: X {n:,}, {argument} {len(unit):,}", "give one value per row in each"
        )
    return group_numbers(check_units(unit))


def _instants(time: Any, n: int) -> Floats:
    """Return times as numbers."""
    if isinstance(time, str):
        raise InputError(
            f"time is the string {time!r}", "give one date or number per row", argument="time"
        )
    return instants_of(time, None, n)
