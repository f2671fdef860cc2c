"""Dataclasses as plain JSON and back: their fields are the format, and its schema their types.

A file names no class and holds no code. What is read is built from the types that the fields
declare; `conform` then checks it.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
import types
import typing
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Union

import numpy as np

from varcal._arrays import AnyArray
from varcal._files.conform import hints_of
from varcal._files.document import BrokenError
from varcal.exceptions import InputError

#: Arrays of numbers with more entries than this are written as bytes; smaller ones are readable.
LARGE = 64
#: No saved array has more dimensions than this.
MOST_DIMENSIONS = 4
#: The byte order in files, by type.
_BYTES = {"float64": "<f8", "int64": "<i8"}
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
        return array_entry(value, special)
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
        for option in options:
            if _fits(data, option, special):
                return built(data, option, special)
        raise BrokenError("it has entries of an unknown kind")
    if special is not None and hint is special[0]:
        return special[1](data)
    if hint is np.ndarray or origin is np.ndarray:
        return array_of(data)
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


def _fits(data: Any, option: Any, special: tuple[type, Special] | None) -> bool:
    """Return whether JSON may describe a value of one of several types."""
    kind = typing.get_origin(option) or option
    if kind is type(None) or data is None:
        return kind is type(None) and data is None
    if kind is np.ndarray:
        return isinstance(data, dict) and "dtype" in data
    if special is not None and kind is special[0]:
        return isinstance(data, dict)
    if is_dataclass(kind):
        return isinstance(data, dict) and set(data) == {each.name for each in fields(kind)}
    if kind in (list, tuple) or isinstance(data, list):
        return kind in (list, tuple) and isinstance(data, list)
    return not isinstance(data, dict) or set(data) <= {"float", *_DATES}


def array_entry(array: AnyArray, special: tuple[type, Special] | None = None) -> dict[str, Any]:
    """Return an array as JSON: the bytes of large ones, the values of others."""
    dtype = _DTYPES[array.dtype.kind]
    entry = {"dtype": dtype, "shape": list(array.shape)}
    if array.size <= LARGE or dtype not in _BYTES:
        return entry | {"values": plain(array.ravel().tolist(), special)}
    data = np.ascontiguousarray(array, dtype=_BYTES[dtype]).tobytes()
    return entry | {"base64": base64.b64encode(data).decode("ascii")}


def array_of(entry: Any) -> AnyArray:
    """Return the array of an entry; what is allocated is bounded by the size of the entry."""
    if not isinstance(entry, dict) or not {"dtype", "shape"} < set(entry):
        raise BrokenError("an array is missing")
    dtype, shape = entry["dtype"], entry["shape"]
    if dtype not in _DTYPES.values() or not isinstance(shape, list) or len(shape) > MOST_DIMENSIONS:
        raise BrokenError("an array has an unknown type or shape")
    if any(type(size) is not int or size < 0 for size in shape):
        raise BrokenError("an array has an impossible size")
    match entry:
        case {"base64": str(text)} if dtype in _BYTES and len(entry) == 3:
            data = base64.b64decode(text, validate=True)
            array = np.frombuffer(data, dtype=_BYTES[dtype]).astype(dtype)
        case {"values": list(cells)} if len(entry) == 3:
            values = built(cells, list[Any])
            if any(isinstance(each, list) for each in values):
                raise BrokenError("an array holds something other than values")
            array = np.empty(len(values), dtype=object)
            array[:] = values
            array = array if dtype == "object" else np.array(values, dtype=dtype)
        case _:
            raise BrokenError("an array has unknown entries")
    if array.size != math.prod(shape):
        raise BrokenError(f"{array.size} values for an array of {shape}")
    return array.reshape(shape)
