"""The schema of saved results: the annotations of the classes that they are made of.

What is read from a file has the types that its dataclasses declare, down to the last number, or it
is refused. A class with further conditions has a method `_check_saved` that raises ValueError.
"""

from __future__ import annotations

import datetime as dt
import types
import typing
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast

import numpy as np

from varcal._files.document import ERRORS, BrokenError
from varcal.exceptions import InputError

R = TypeVar("R")

#: The largest whole number in a file: counts of rows fit into 63 bits.
LARGEST = 2**63
_KINDS = {np.float64: "f", np.int64: "i", np.intp: "i", np.bool_: "b", np.float32: "f"}
_SCALARS = (str, bool, int, float, type(None), dt.date, dt.timedelta)


def conform(value: object, hint: Any, where: str = "it") -> None:
    """Refuse a value that does not have the type that an annotation declares.

    Parameters
    ----------
    value : object
        What was read.
    hint : type or annotation
        Its type. Dataclasses are checked field by field.
    where : str
        What the value is, in errors.

    Examples
    --------
    >>> conform((1.0, 2), tuple[float, ...])
    >>> conform((1.0, "2"), tuple[float, ...])
    Traceback (most recent call last):
    varcal._files.document.BrokenError: it[1] is not a float
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any or hint is object:
        return
    if origin in (Union, types.UnionType):
        _conform_union(value, arguments, where)
    elif origin is Literal:
        _demand(isinstance(value, str | int) and value in arguments, where, "one of its choices")
    elif origin is np.ndarray or hint is np.ndarray:
        _conform_array(value, arguments, where)
    elif origin in (tuple, list, frozenset, Sequence):
        _conform_sequence(value, origin, arguments, where)
    elif origin in (dict, Mapping):
        _demand(isinstance(value, dict), where, "a mapping")
        for name, each in cast("dict[Any, Any]", value).items():
            conform(name, arguments[0], f"a key of {where}")
            conform(each, arguments[1], f"{where}[{name!r:.40}]")
    elif origin is Callable or hint is Callable:
        _demand(False, where, "a value")
    elif hint is Hashable:
        _demand(isinstance(value, _SCALARS), where, "a label")
    elif hint is float:
        _demand(_is_float(value), where, "a float")
    elif hint is int:
        _demand(_is_int(value), where, "an int")
    elif isinstance(hint, type):
        # A bool is an int in Python, but not in a file.
        fine = isinstance(value, hint) and (hint is bool or type(value) is not bool)
        _demand(fine, where, f"a {hint.__name__}")
        if is_dataclass(hint):
            conform_fields(value, where)
    elif hint is None or hint is type(None):
        _demand(value is None, where, "empty")


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
    raise InputError(
        f"data is not {what}: {problem}", "give what to_dict() returned", argument="data"
    )


def conform_fields(value: Any, where: str) -> None:
    """Refuse a dataclass whose fields do not have their types, or do not fit together."""
    hints = hints_of(cast(Hashable, type(value)))
    for field in fields(value):
        conform(getattr(value, field.name), hints[field.name], f"{where}.{field.name}")
    check = getattr(value, "_check_saved", None)
    if check is not None:
        try:
            check()
        except ValueError as error:
            raise BrokenError(f"{where}: {error}") from None


@cache
def hints_of(cls: Hashable) -> dict[str, Any]:
    """Return the types of the fields of a dataclass."""
    return typing.get_type_hints(cls)


def _conform_union(value: object, options: tuple[Any, ...], where: str) -> None:
    last: BrokenError | None = None
    for option in options:
        try:
            conform(value, option, where)
        except BrokenError as error:
            # Of several classes, the one that the value is an instance of has the better message.
            last = error if last is None or isinstance(value, _class_of(option)) else last
            continue
        return
    assert last is not None
    raise last


def _class_of(option: Any) -> type:
    return option if isinstance(option, type) else types.NoneType


def _conform_array(value: object, arguments: tuple[Any, ...], where: str) -> None:
    if not isinstance(value, np.ndarray):
        raise BrokenError(f"{where} is not an array")
    wanted = typing.get_args(arguments[1])[0] if len(arguments) > 1 else Any
    kind = _KINDS.get(wanted)
    if kind is not None and value.dtype.kind != kind:
        raise BrokenError(f"{where} is an array of {value.dtype}")
    if value.dtype.kind not in "fiubUO":
        raise BrokenError(f"{where} is an array of {value.dtype}")
    if value.dtype.kind == "O":
        for each in value.ravel().tolist():
            conform(each, Hashable, where)


def _conform_sequence(value: object, origin: Any, arguments: tuple[Any, ...], where: str) -> None:
    wanted = (list, tuple) if origin is Sequence else origin
    if not isinstance(value, wanted):
        raise BrokenError(f"{where} is not a {origin.__name__}")
    if origin is tuple and arguments and arguments[-1] is not Ellipsis:
        _demand(len(value) == len(arguments), where, f"of {len(arguments)} values")
        for k, (each, hint) in enumerate(zip(value, arguments, strict=True)):
            conform(each, hint, f"{where}[{k}]")
        return
    for k, each in enumerate(value):
        conform(each, arguments[0], f"{where}[{k}]")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST


def _is_float(value: object) -> bool:
    return isinstance(value, float) or _is_int(value)


def _demand(fine: bool, where: str, what: str) -> None:
    if not fine:
        raise BrokenError(f"{where} is not {what}")
