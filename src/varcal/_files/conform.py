"""The schema of saved results: the annotations of the classes that they are made of.

What is read from a file has the types that its dataclasses declare, down to the last number, or it
is refused. A class with further conditions has a method `_check_saved` that raises ValueError.
"""

from __future__ import annotations

import datetime as dt
import itertools
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
_ARRAY_KINDS = {np.float64: "f", np.int64: "i", np.intp: "i", np.bool_: "b", np.float32: "f"}
_LABELS = (str, bool, int, float, type(None), dt.date, dt.timedelta)


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
    kind, arguments = typing.get_origin(hint) or hint, typing.get_args(hint)
    if kind in _PLAIN:
        is_fine, what = _PLAIN[kind]
        _demand(is_fine(value), where, what)
    elif kind in (Union, types.UnionType):
        _conform_union(value, arguments, where)
    elif kind is Literal:
        _demand(isinstance(value, str | int) and value in arguments, where, "one of its choices")
    elif kind is np.ndarray:
        _conform_array(value, arguments, where)
    elif kind in (tuple, list, frozenset, Sequence):
        _conform_sequence(value, kind, arguments, where)
    elif kind in (dict, Mapping):
        _demand(isinstance(value, dict), where, "a mapping")
        for name, each in cast("dict[Any, Any]", value).items():
            conform(name, arguments[0], f"a key of {where}")
            conform(each, arguments[1], f"{where}[{name!r:.40}]")
    elif isinstance(kind, type):
        fine = isinstance(value, kind) and (kind is bool or type(value) is not bool)
        _demand(fine, where, f"a {kind.__name__}")
        if is_dataclass(kind):
            _conform_fields(value, where)


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


@cache
def hints_of(cls: Hashable) -> dict[str, Any]:
    """Return the types of the fields of a dataclass."""
    return typing.get_type_hints(cls)


def _conform_fields(value: Any, where: str) -> None:
    """Refuse a dataclass whose fields do not have their types, or do not fit together."""
    hints = hints_of(cast(Hashable, type(value)))
    for field in fields(value):
        conform(getattr(value, field.name), hints[field.name], f"{where}.{field.name}")
    try:
        getattr(value, "_check_saved", lambda: None)()
    except ValueError as error:
        raise BrokenError(f"{where}: {error}") from None


def _conform_union(value: object, options: tuple[Any, ...], where: str) -> None:
    found: list[BrokenError] = []
    for option in options:
        try:
            return conform(value, option, where)
        except BrokenError as error:
            # Of several classes, the one that the value is an instance of has the better message.
            better = isinstance(option, type) and isinstance(value, option)
            found.insert(0 if better else len(found), error)
    raise found[0]


def _conform_array(value: object, arguments: tuple[Any, ...], where: str) -> None:
    if not isinstance(value, np.ndarray):
        raise BrokenError(f"{where} is not an array")
    wanted = typing.get_args(arguments[1])[0] if len(arguments) > 1 else Any
    if value.dtype.kind not in _ARRAY_KINDS.get(wanted, "fiubUO"):
        raise BrokenError(f"{where} is an array of {value.dtype}")
    if value.dtype.kind == "O":
        for each in value.ravel().tolist():
            conform(each, Hashable, where)


def _conform_sequence(value: object, kind: Any, hints: tuple[Any, ...], where: str) -> None:
    if not isinstance(value, (list, tuple) if kind is Sequence else kind):
        raise BrokenError(f"{where} is not a {kind.__name__}")
    values = list(cast("Sequence[Any]", value))
    if kind is tuple and hints[-1] is not Ellipsis:
        _demand(len(values) == len(hints), where, f"of {len(hints)} values")
    else:
        hints = (hints[0],) * len(values)
    for k, each, hint in zip(itertools.count(), values, hints, strict=False):
        conform(each, hint, f"{where}[{k}]")


def _demand(fine: bool, where: str, what: str) -> None:
    if not fine:
        raise BrokenError(f"{where} is not {what}")
