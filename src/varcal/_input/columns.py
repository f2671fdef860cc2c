"""Columns that are given as arrays or as names of columns in a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from varcal._arrays import AnyArray
from varcal._input.frames import Table, is_frame
from varcal._input.variables import Variable, as_series, plain_array
from varcal.exceptions import InputError


def column_of(value: object, table: Table | None, argument: str) -> object:
    """Return the column with the given name, or the array itself."""
    if table is not None and isinstance(value, str):
        return table.column(value, argument)
    if isinstance(value, str):
        raise InputError(
            f"{argument} is the string {value!r}",
            "give an array, or a column name together with data=",
            argument,
        )
    if table is not None and isinstance(value, int):
        raise InputError(
            f"{argument} is the number {value!r}", "column names are strings", argument
        )
    return value


def column_names(value: object, table: Table | None) -> list[str] | None:
    """Return the column names in an argument, or None if it holds values."""
    if table is None:
        return None
    if isinstance(value, str):
        return [value]
    is_names = isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)
    return list(value) if is_names and value else None  # type: ignore[call-overload]


def columns_by_name(values: Any, argument: str, letter: str = "v") -> dict[str, Any]:
    """Return the columns of a frame, a dict, a series or an array by name.

    Those without a name are called by a letter, and by their number if there are several.

    >>> list(columns_by_name(np.zeros((2, 3)), "X", "x")), list(columns_by_name([1, 2], "X"))
    (['x0', 'x1', 'x2'], ['v'])
    """
    if is_frame(values) or isinstance(values, Mapping):
        table = Table.of(values, argument)
        return {name: table.column(name, argument) for name in table.columns}
    if as_series(values) is not None:
        name = getattr(values, "name", None)
        return {name if isinstance(name, str) and name else letter: values}
    array = plain_array(values, argument)
    if array.ndim == 1:
        return {letter: array}
    return {f"{letter}{k}": array[:, k] for k in range(array.shape[1])}


_NUMBERS_HINT = {
    "p": "give real numbers; labels go in {y}",
    "sample_weight": "weights are real numbers, finite and not negative",
}


def numbers_of(values: object, argument: str) -> AnyArray:
    """Return real numbers in their own dtype, without a copy if possible."""
    if is_frame(values):
        raise InputError(f"{argument} is a frame", "give one column of it", argument)
    array = plain_array(values, argument) if as_series(values) is None else None
    if array is not None and array.ndim > 1:
        if array.dtype.kind in "iuf":
            return array
        if array.ndim == 2:
            parts = [numbers_of(array[:, k], argument) for k in range(array.shape[1])]
            return np.column_stack(parts)
    column = Variable.of(values if array is None else array, argument, argument)
    if column.kind == "levels" and not column.levels:
        return np.full(len(column), np.nan)
    if column.kind != "numeric":
        shown: str = "durations" if column.kind == "duration" else column.kind
        if column.levels == (False, True):
            shown = "booleans"
        name = argument.split(" ")[0]
        raise InputError(
            f"{argument} holds {shown}, not numbers", _NUMBERS_HINT[name], name, {"y": None}
        )
    return column.values


def check_lengths(lengths: dict[str, int], *, by_name: bool) -> None:
    """Refuse columns of different lengths, and empty ones."""
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {count:,}" for name, count in lengths.items())
        names = "; with data=, column names are strings" if by_name else ""
        raise InputError(f"lengths differ: {shown}", f"give one value per row in each{names}")
    if not lengths["p"]:
        what = "y and p are" if "y" in lengths else "p is"
        raise InputError(f"{what} empty", "at least one row is needed", argument="p")
