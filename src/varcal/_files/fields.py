"""Dataclasses as plain JSON and back: their fields are the format, and its schema their types.

A file names no class and holds no code. What is read is built from the types that the fields
declare; `conform` then checks it.
"""

from __future__ import annotations

import datetime as dt
import math
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Union

import numpy as np

from varcal._arrays import AnyArray
from varcal._files.array_texts import array_of, entry_of
from varcal._files.conform import hints_of
from varcal._files.document import BrokenError
from varcal.exceptions import InputError

#: Arrays of numbers with more entries than this are written as bytes; smaller ones are readable.
LARGE = 64
_DTYPES = {"f": "float64", "i": "int64", "u": "int64", "b": "bool", "U": "str", "O": "object"}
_DATES: dict[str, Callable[[str], Any]] = {
    "date": dt.date.fromisoformat,
    "datetime": dt.datetime.fromisoformat,
}

#: How a class that is not a dataclass is written, or built from what was written.
Special = Callable[[Any], Any]


def plain(value: Any, special: tuple[type, Special] | None = None) -> Any:
    """Return a value as JSON: dataclasses as their fields, tuples as lists.

    Examples
    --------
    >>> plain((1, float("inf"), np.array([0.5, 2.0])))
    [1, {'float': 'inf'}, {'dtype': 'float64', 'shape': [2], 'values': [0.5, 2.0]}]
    """
    if special is not None and isinstance(value, special[0]):
        return special[1](value)
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name), special) for each in fields(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in _DTYPES:
        if value.size > LARGE and value.dtype.kind in "fiu":
            return entry_of(value)
        dtype, shape = _DTYPES[value.dtype.kind], list(value.shape)
        return {"dtype": dtype, "shape": shape, "values": plain(value.ravel().tolist(), special)}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, tuple | list):
        return [plain(each, special) for each in value]
    if isinstance(value, frozenset):
        return sorted(plain(each, special) for each in value)
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return {name: plain(each, special) for name, each in value.items()}
    if isinstance(value, dt.date) and not getattr(value, "nanosecond", 0):
        kind = "datetime" if isinstance(value, dt.datetime) else "date"  # also a Timestamp
        return {kind: value.isoformat()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InputError(
        f"a {type(value).__name__} cannot be saved: {value!r}",
        "labels, categories and parameters must be numbers, strings, booleans or dates",
    )


def built(data: Any, hint: Any, special: tuple[type, Special] | None = None) -> Any:
    """Return the value of a declared type that JSON describes; what is wrong may stay wrong.

    Examples
    --------
    >>> built([1, {"float": "inf"}], tuple[float, ...])
    (1, inf)
    """
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return built(data, _option(data, options, special), special)
    if special is not None and hint is special[0]:
        return special[1](data)
    if hint is np.ndarray or origin is np.ndarray:
        return _array(data)
    if isinstance(hint, type) and is_dataclass(hint):
        hints = hints_of(typing.cast(Hashable, hint))
        if not isinstance(data, dict) or set(data) != {each.name for each in fields(hint)}:
            raise BrokenError(f"it has other entries than {', '.join(hints)}")
        return hint(**{name: built(each, hints[name], special) for name, each in data.items()})
    if isinstance(data, list):
        cells = [built(each, _inner(options, k), special) for k, each in enumerate(data)]
        return {tuple: tuple, frozenset: frozenset}.get(origin, list)(cells)
    if isinstance(data, dict):
        if origin in (dict, Mapping):
            return {name: built(each, options[1], special) for name, each in data.items()}
        if len(data) == 1 and (kind := next(iter(data))) in _DATES:
            return _DATES[kind](data[kind])
        if set(data) != {"float"} or data["float"] not in ("nan", "inf", "-inf"):
            raise BrokenError(f"it holds unknown entries, {sorted(data)!r}")
        return float(data["float"])
    return data


def _inner(options: tuple[Any, ...], k: int) -> Any:
    """Return the type of entry k of a list or a tuple."""
    if not options:
        return Any
    return options[min(k, len(options) - 1)] if options[-1] is not Ellipsis else options[0]


def _option(data: Any, options: tuple[Any, ...], special: tuple[type, Special] | None) -> Any:
    """Return the one of several types whose fields are those of the data."""
    if data is None and type(None) in options:
        return type(None)
    for option in options:
        if option is np.ndarray or typing.get_origin(option) is np.ndarray:
            fits = isinstance(data, dict) and "dtype" in data
        elif special is not None and option is special[0]:
            fits = isinstance(data, dict)
        elif isinstance(option, type) and is_dataclass(option):
            fits = isinstance(data, dict) and set(data) == {each.name for each in fields(option)}
        elif typing.get_origin(option) in (list, tuple):
            fits = isinstance(data, list)
        else:
            fits = option is not type(None) and not isinstance(data, list)
            fits = fits and (not isinstance(data, dict) or set(data) <= {"float", *_DATES})
        if fits:
            return option
    raise BrokenError("it has entries of an unknown kind")


def _array(data: Any) -> AnyArray:
    if not isinstance(data, dict) or "dtype" not in data:
        raise BrokenError("an array is missing")
    if "base64" in data:
        return array_of(data)
    shape, values = data["shape"], built(data["values"], list[Any])
    if set(data) != {"dtype", "shape", "values"} or data["dtype"] not in _DTYPES.values():
        raise BrokenError("an array has an unknown type")
    if any(isinstance(each, list) for each in values) or len(values) > LARGE * LARGE * LARGE:
        raise BrokenError("an array holds something other than values")
    if data["dtype"] == "object":
        array = np.empty(len(values), dtype=object)
        array[:] = values
    else:
        array = np.array(values, dtype=data["dtype"])
    if not isinstance(shape, list) or any(type(size) is not int or size < 0 for size in shape):
        raise BrokenError("an array has an impossible size")
    return array.reshape(shape)
