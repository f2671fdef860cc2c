"""The schema of saved results: the types that dataclasses declare for their fields.

A file holds the fields of dataclasses as plain JSON; it names no class and holds no code. What is
read has the declared types, down to the last number, or it is refused. A class with further
conditions has a method `_check_saved` that raises ValueError.
"""

from __future__ import annotations

import base64
import datetime as dt
import math
import types
import typing
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast

import numpy as np

from varcal._arrays import AnyArray
from varcal.exceptions import InputError

R = TypeVar("R")

#: Arrays of numbers with more entries than this are written as bytes; smaller ones are readable.
LARGE = 64
#: No saved array has more dimensions than this.
MOST_DIMENSIONS = 4
#: The largest whole number in a file: counts of rows fit into 63 bits.
LARGEST = 2**63
#: The byte order in files, by type.
_BYTES = {"float64": "<f8", "int64": "<i8"}
_DTYPES = {"f": "float64", "i": "int64", "u": "int64", "b": "bool", "U": "str", "O": "object"}
#: The kinds of the values of arrays, by their declared types.
_ARRAY_KINDS = {np.float64: "f", np.int64: "i", np.intp: "i", np.bool_: "b", np.float32: "f"}
#: Values that JSON does not have are objects with one entry; how the entry is read.
_SCALARS: dict[str, Callable[[str], Any]] = {
    "date": dt.date.fromisoformat,
    "datetime": dt.datetime.fromisoformat,
    "float": {repr(value): value for value in (math.nan, math.inf, -math.inf)}.__getitem__,
}
_LABELS = (str, bool, int, float, type(None), dt.date, dt.timedelta)
#: What restoring a result from the wrong entries may raise.
ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
#: A class that is not a dataclass, and how it is written or built, at a place that errors name.
Special = tuple[type, Callable[..., Any]]


class BrokenError(Exception):
    """What is wrong with the contents of a file whose name is not known here."""


class NotRestoredError(InputError):
    """Entries that `from_dict` cannot use; `problem` is what is wrong with them."""

    problem = ""


def restored(build: Callable[[], R], cls: type[R], what: str) -> R:
    """Return what a function builds from the entries of a dict, after checking it.

    Parameters
    ----------
    build : callable
        It builds the result, and may raise any error if the entries are not what it expects.
    cls : type
        The class of the result.
    what : str
        What it is called in errors, such as "an audit".
    """
    try:
        found = build()
        conform(found, cls, what.split(" ", 1)[-1])
    except BrokenError as error:
        problem = str(error)
    except InputError:
        raise
    except ERRORS as error:
        problem = f"its entries do not fit together ({type(error).__name__})"
    else:
        return found
    refusal = NotRestoredError(
        f"data is not {what}: {problem}", "give what to_dict() returned", "data"
    )
    refusal.problem = problem
    raise refusal


def plain(value: Any, special: Special | None = None) -> Any:
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
    hint = "labels, categories and parameters must be numbers, strings, booleans or dates"
    raise InputError(f"a {type(value).__name__} cannot be saved: {value!r}", hint)


def built(data: Any, hint: Any, special: Special | None = None, where: str = "it") -> Any:
    """Return the value of a declared type that JSON describes, or raise a `BrokenError`.

    Parameters
    ----------
    data : object
        Parsed JSON, as `plain` returned it.
    hint : type or annotation
        The type. Dataclasses are built from their fields.
    special : tuple, optional
        A class that is not a dataclass, and a function that builds it from JSON and its place.
    where : str
        What the value is, in errors.

    Examples
    --------
    >>> built([1, {"float": "inf"}], tuple[float, ...])
    (1, inf)
    """
    return _read(data, hint, where, special, json=True)


def built_from(data: Mapping[str, Any], cls: type[R]) -> R:
    """Return the dataclass whose fields are among the entries of a mapping."""
    found: R = built({each.name: data[each.name] for each in fields(cast(Any, cls))}, cls)
    return found


def conform(value: object, hint: Any, where: str = "it") -> None:
    """Refuse a value that does not have the type that an annotation declares.

    Dataclasses are checked field by field.

    Examples
    --------
    >>> conform((1.0, 2), tuple[float, ...])
    >>> conform((1.0, "2"), tuple[float, ...])
    Traceback (most recent call last):
    varcal._files.schema.BrokenError: it[1] is not a float
    """
    _read(value, hint, where, None, json=False)


def _is_int(value: object) -> bool:
    # A bool is an int in Python, but not in a file.
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST


#: What a value of a plain type must satisfy, and what it is otherwise said not to be.
_PLAIN: dict[Any, tuple[Callable[[object], bool], str]] = {
    float: (lambda value: isinstance(value, float) or _is_int(value), "a float"),
    int: (_is_int, "an int"),
    Hashable: (lambda value: isinstance(value, _LABELS), "a label"),
    type(None): (lambda value: value is None, "empty"),
    Callable: (lambda value: False, "a value"),
    Any: (lambda value: True, ""),
    object: (lambda value: True, ""),
}


def _read(value: Any, hint: Any, where: str, special: Special | None, *, json: bool) -> Any:
    """Return a value of a declared type: the value itself, or what JSON describes."""

    def inner(each: Any, one: Any, place: str) -> Any:
        return _read(each, one, where + place, special, json=json)

    kind, options = typing.get_origin(hint) or hint, typing.get_args(hint)
    if json and special is not None and kind is special[0]:
        return special[1](value, where)
    if kind in (Union, types.UnionType):
        return _read_union(value, options, where, inner)
    if kind is np.ndarray:
        return _checked_array(array_of(value) if json else value, options, where)
    if kind in (tuple, list, frozenset, Sequence):
        wanted = (list, tuple) if json or kind is Sequence else kind
        _demand(isinstance(value, wanted), where, f"a {kind.__name__}")
        if kind is tuple and options[-1] is not Ellipsis:
            _demand(len(value) == len(options), where, f"of {len(options)} values")
        else:
            options = (options[0],) * len(value)
        pairs = enumerate(zip(value, options, strict=True))
        cells = [inner(each, one, f"[{k}]") for k, (each, one) in pairs]
        return kind(cells) if kind in (tuple, frozenset) else cells
    if kind in (dict, Mapping):
        _demand(isinstance(value, dict), where, "a mapping")
        for name in value:
            inner(name, options[0], ", a key of it,")
        return {name: inner(each, options[1], f"[{name!r:.40}]") for name, each in value.items()}
    if is_dataclass(kind):
        return _read_fields(value, cast(type, kind), where, inner, json=json)
    value = _scalar(value, where) if json else value
    if kind is Literal:
        _demand(isinstance(value, str | int) and value in options, where, "one of its choices")
    elif kind in _PLAIN:
        is_fine, what = _PLAIN[kind]
        _demand(is_fine(value), where, what)
    else:
        fine = isinstance(value, kind) and (kind is bool or type(value) is not bool)
        _demand(fine, where, f"a {kind.__name__}")
    return value


def _scalar(value: Any, where: str) -> Any:
    """Return the value that JSON describes: a number, a text, a date, or a list of them."""
    if isinstance(value, list):
        return [_scalar(each, where) for each in value]
    if not isinstance(value, dict):
        return value
    (kind, text), *more = value.items() or [("", "")]
    if more or kind not in _SCALARS:
        raise BrokenError(f"{where} holds unknown entries, {sorted(value)!r:.60}")
    return _SCALARS[kind](text)


def _read_union(value: Any, options: tuple[Any, ...], where: str, inner: Any) -> Any:
    found: list[BrokenError] = []
    for option in options:
        try:
            return inner(value, option, "")
        except BrokenError as error:
            found.append(error)
    # An error further inside is about the type that was meant.
    raise next((one for one in found if not str(one).startswith(f"{where} is not")), found[0])


def _read_fields(value: Any, kind: type, where: str, inner: Any, *, json: bool) -> Any:
    """Check the fields of a dataclass, and whether they fit together."""
    hints = hints_of(kind)
    names = [each.name for each in fields(kind)]
    if json:
        same = isinstance(value, dict) and set(value) == set(names)
        _demand(same, where, f"made of {', '.join(names)}")
        value = kind(**{name: inner(value[name], hints[name], f".{name}") for name in names})
    else:
        _demand(isinstance(value, kind), where, f"a {kind.__name__}")
        for name in names:
            inner(getattr(value, name), hints[name], f".{name}")
    try:
        getattr(value, "_check_saved", lambda: None)()
    except ValueError as error:
        raise BrokenError(f"{where}: {error}") from None
    return value


@cache
def hints_of(cls: Hashable) -> dict[str, Any]:
    """Return the types of the fields of a dataclass."""
    return typing.get_type_hints(cls)


def _demand(fine: bool, where: str, what: str) -> None:
    if not fine:
        raise BrokenError(f"{where} is not {what}")


def _checked_array(value: Any, options: tuple[Any, ...], where: str) -> AnyArray:
    if not isinstance(value, np.ndarray):
        raise BrokenError(f"{where} is not an array")
    wanted = typing.get_args(options[1])[0] if len(options) > 1 else Any
    if value.dtype.kind not in _ARRAY_KINDS.get(wanted, "fiubUO"):
        raise BrokenError(f"{where} is an array of {value.dtype}")
    if value.dtype.kind == "O":
        for each in value.ravel().tolist():
            conform(each, Hashable, where)
    return value


def array_entry(array: AnyArray, special: Special | None = None) -> dict[str, Any]:
    """Return an array as JSON: the bytes of large ones, the values of others."""
    dtype = _DTYPES[array.dtype.kind]
    entry = {"dtype": dtype, "shape": list(array.shape)}
    if array.size <= LARGE or dtype not in _BYTES:
        return entry | {"values": plain(array.ravel().tolist(), special)}
    data = np.ascontiguousarray(array, dtype=_BYTES[dtype]).tobytes()
    return entry | {"base64": base64.b64encode(data).decode("ascii")}


def array_of(entry: Any) -> AnyArray:
    """Return the array of an entry; what is allocated is bounded by the size of the entry."""
    match entry:
        case {"dtype": str(dtype), "shape": list(shape), "base64": str(text)} if dtype in _BYTES:
            data = base64.b64decode(text, validate=True)
            array = np.frombuffer(data, dtype=_BYTES[dtype]).astype(dtype)
        case {"dtype": str(dtype), "shape": list(shape), "values": list(cells)} if (
            dtype in _DTYPES.values() and not any(isinstance(each, list) for each in cells)
        ):
            values = _scalar(cells, "an array")
            array = np.empty(len(values), dtype=object)
            array[:] = values
            array = array if dtype == "object" else np.array(values, dtype=dtype)
        case _:
            raise BrokenError("an array is missing, or has unknown entries")
    sizes = all(type(size) is int and size >= 0 for size in shape)
    if len(entry) > 3 or not sizes or len(shape) > MOST_DIMENSIONS:
        raise BrokenError("an array has an impossible shape")
    if array.size != math.prod(shape):
        raise BrokenError(f"{array.size} values for an array of {shape}")
    return array.reshape(shape)
