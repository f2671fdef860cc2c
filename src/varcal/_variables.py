"""One column of data, whatever library it came from, as a `Variable`."""

from __future__ import annotations

import datetime as dt
import decimal
import numbers
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from varcal.exceptions import InputError

Kind = Literal["numeric", "datetime", "levels"]

_EPOCH = np.datetime64("1970-01-01T00:00:00", "us")
_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}


@dataclass(frozen=True, eq=False)
class Variable:
    """A named column: numbers, instants or levels, with missing values.

    Attributes
    ----------
    name : str
        The name of the column.
    kind : {"numeric", "datetime", "levels"}
        Numbers; instants (seconds since 1970 in UTC); or categories, strings and booleans.
    values : ndarray
        Numbers and instants: one number a row, NaN where it is missing. Levels: the position
        in `levels`, −1 where it is missing.
    levels : tuple
        The levels in their order, none for numbers and instants.
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    levels: tuple[Hashable, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: NDArray[Any]) -> Variable:
        """Return the variable on the given rows (positions or a mask)."""
        return Variable(self.name, self.kind, self.values[rows], self.levels)

    def missing(self) -> NDArray[np.bool_]:
        """Return which rows are missing."""
        if self.kind == "levels":
            return self.values < 0
        if self.values.dtype.kind == "f":
            return np.isnan(self.values)
        return np.zeros(len(self.values), dtype=bool)

    @classmethod
    def of(cls, column: object, name: str, argument: str = "v") -> Variable:
        """Read a list, an array or a series of any frame library.

        Parameters
        ----------
        column : array-like or series
            Numbers, booleans, strings, categories or instants; missing values are welcome.
        name : str
            The name that the variable gets.
        argument : str
            How an error calls the input.

        Examples
        --------
        >>> Variable.of(["b", "a", None, "b"], "grade")
        Variable(name='grade', kind='levels', values=array([ 1,  0, -1,  1]), levels=('a', 'b'))
        """
        series = _as_series(column)
        return (
            _from_array(plain_array(column, argument), name, argument)
            if series is None
            else _from_series(series, name, argument)
        )


def plain_array(values: object, argument: str) -> NDArray[Any]:
    """Return a list or an array as numpy sees it, but never mix numbers into strings."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.getmaskarray(values).any():
            return np.array(values.tolist(), dtype=object)  # masked entries become None
        return values.data
    if isinstance(values, np.ndarray):
        return values
    try:
        array = np.asarray(values)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{argument} cannot be read as an array: {error}",
            "give a list, a numpy array, or a series of pandas, polars or pyarrow",
        ) from None
    if array.dtype.kind in "US" and isinstance(values, list | tuple):
        array = np.empty(len(values), dtype=object)
        array[:] = values
    return array


def is_missing(value: object) -> bool:
    """Tell whether one Python value stands for "not known"."""
    if type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def factorize(values: Iterable[Hashable]) -> tuple[NDArray[np.intp], list[Hashable]]:
    """Number the distinct values in sorted order; missing ones are −1."""
    seen: dict[Hashable, int] = {}
    codes = np.fromiter(
        (-1 if is_missing(value) else seen.setdefault(value, len(seen)) for value in values),
        dtype=np.intp,
    )
    found = list(seen)
    try:
        order = sorted(range(len(found)), key=found.__getitem__)  # type: ignore[arg-type]
    except TypeError:
        order = sorted(range(len(found)), key=lambda k: (type(found[k]).__name__, str(found[k])))
    position = np.empty(len(found) + 1, dtype=np.intp)
    position[order] = np.arange(len(found))
    position[-1] = -1
    return position[codes], [found[k] for k in order]


def _as_series(column: object) -> nw.Series[Any] | None:
    wrapped = nw.from_native(column, allow_series=True, pass_through=True)
    return wrapped if isinstance(wrapped, nw.Series) else None


def _from_series(series: nw.Series[Any], name: str, argument: str) -> Variable:
    dtype = series.dtype
    if dtype in (nw.Categorical, nw.Enum):
        return _from_categories(series, name)
    if dtype.is_decimal():
        return Variable(name, "numeric", series.cast(nw.Float64).to_numpy())
    if dtype.is_numeric():
        if series.null_count():
            series = series.cast(nw.Float64)
        values = series.to_numpy()
        return _from_array(values, name, argument)
    if isinstance(dtype, nw.Datetime):
        if dtype.time_zone is not None:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return _from_array(series.to_numpy(), name, argument)
    if dtype == nw.Date:
        return _from_array(series.cast(nw.Datetime("us")).to_numpy(), name, argument)
    if dtype == nw.Duration:
        return _from_array(series.to_numpy(), name, argument)
    if dtype in (nw.Boolean, nw.String, nw.Object):
        values = np.empty(len(series), dtype=object)
        values[:] = series.to_list()
        return _from_array(values, name, argument)
    raise InputError(
        f"{argument}: column {name!r} is of type {dtype}",
        "give numbers, booleans, strings, categories or dates",
    )


def _from_categories(series: nw.Series[Any], name: str) -> Variable:
    """Keep the declared order of categories (pandas, Enum), without those that no row holds."""
    native = nw.to_native(series)
    if hasattr(getattr(native, "cat", None), "codes"):  # pandas: categories may be of any type
        codes = np.asarray(native.cat.codes, dtype=np.intp)
        declared = native.cat.categories.tolist()
    else:
        if hasattr(native, "combine_chunks"):  # pyarrow: a dictionary may hold numbers
            values = native.cast(native.type.value_type).to_pylist()
        else:
            values = series.cast(nw.String).to_list()
        codes, declared = factorize(values)
        if isinstance(series.dtype, nw.Enum):
            position: dict[Hashable, int] = {
                label: k for k, label in enumerate(series.dtype.categories)
            }
            lookup = np.array([position[label] for label in declared] + [-1], dtype=np.intp)
            codes, declared = lookup[codes], list(series.dtype.categories)
    held = np.bincount(codes[codes >= 0], minlength=len(declared)) > 0
    kept = np.append(np.where(held, np.cumsum(held) - 1, -1), -1)
    levels = tuple(label for label, is_held in zip(declared, held, strict=True) if is_held)
    return Variable(name, "levels", kept[codes], levels)


def _from_array(values: NDArray[Any], name: str, argument: str) -> Variable:
    if values.ndim != 1:
        raise InputError(
            f"{argument} {name!r} has shape {values.shape}; one variable is one-dimensional",
            "several variables go in a frame, a dict of columns or a two-dimensional array",
        )
    match values.dtype.kind:
        case "i" | "u" | "f":
            return Variable(name, "numeric", values)
        case "b":
            return Variable(name, "levels", values.astype(np.intp), (False, True))
        case "U" | "S":
            labels, codes = np.unique(values, return_inverse=True)
            return Variable(name, "levels", codes.astype(np.intp), tuple(labels.tolist()))
        case "M":
            return Variable(name, "datetime", _seconds(values - _EPOCH))
        case "m":
            return Variable(name, "numeric", _seconds(values))
        case "O":
            return _from_objects(values, name, argument)
    raise InputError(
        f"{argument} {name!r} has dtype {values.dtype}",
        "give real numbers, booleans, strings, categories or dates",
    )


def _seconds(values: NDArray[Any]) -> NDArray[np.float64]:
    seconds: NDArray[np.float64] = values / np.timedelta64(1, "s")
    return seconds


def _from_objects(values: NDArray[Any], name: str, argument: str) -> Variable:
    types = {type(value) for value in values if not is_missing(value)}
    if all(issubclass(t, str) for t in types) or all(issubclass(t, bool | np.bool_) for t in types):
        codes, levels = factorize(values.tolist())
        if levels and issubclass(next(iter(types)), bool | np.bool_):
            codes = np.where(codes < 0, -1, codes + (levels[0] is True))
            levels = [False, True]
        return Variable(name, "levels", codes, tuple(levels))
    if all(
        issubclass(t, numbers.Real | decimal.Decimal) and not issubclass(t, bool) for t in types
    ):
        floats = [np.nan if is_missing(value) else float(value) for value in values]
        return Variable(name, "numeric", np.array(floats, dtype=np.float64))
    if all(issubclass(t, dt.date | np.datetime64) for t in types):
        return _from_array(np.array([_instant(value) for value in values]), name, argument)
    if all(issubclass(t, dt.timedelta | np.timedelta64) for t in types):
        gaps = [np.timedelta64("NaT") if is_missing(value) else value for value in values]
        return _from_array(np.array(gaps, dtype="timedelta64[us]"), name, argument)
    shown = ", ".join(sorted(t.__name__ for t in types))
    raise InputError(
        f"{argument} {name!r} is an object array that holds {shown}",
        "convert it to one type: numbers, booleans, strings, categories or dates",
    )


def _instant(value: Any) -> np.datetime64:
    if is_missing(value):
        return np.datetime64("NaT", "us")
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        value = value.astimezone(dt.UTC).replace(tzinfo=None)
    return np.datetime64(value, "us")
