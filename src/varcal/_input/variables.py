"""Variable: one column of data, from any library."""

from __future__ import annotations

import datetime as dt
import decimal
import numbers
import warnings
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, cast

import narwhals as nw
import numpy as np

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal.exceptions import InputError, VarcalWarning, row_text

Kind = Literal["numeric", "datetime", "duration", "levels"]

_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}
_NAMES_OF_UTC = ("UTC", "Etc/UTC", "Etc/GMT", "Etc/UCT", "Etc/Zulu", "GMT", "UCT", "Zulu", "+00:00")
# Hints for arguments that have several columns instead of one.
_ONE_COLUMN = {
    "v": "several variables go in a frame, a dict of columns or a two-dimensional array",
    "y": "give one label per row: one column of the table, or y.argmax(axis=1) of one-hot rows",
}


#: Asking the frame libraries about an object takes longer than calibrating one row. Subclasses
#: are not plain: a frame library may define one.
PLAIN_TYPES = frozenset({np.ndarray, list, tuple, dict, str, int, float, type(None)})


@dataclass(frozen=True, eq=False)
class Variable:
    """A named column: numbers, instants, durations or levels, with missing values.

    Attributes
    ----------
    name : str
        The name of the column.
    kind : {"numeric", "datetime", "duration", "levels"}
        Numbers; instants (seconds since 1970 in UTC); durations in seconds; or categories, strings
        and booleans.
    values : ndarray
        Numbers: one per row, NaN if it is missing. Levels: the position
        in `levels`, −1 if it is missing.
    levels : tuple
        The levels in their order, empty for other kinds.
    zone : str
        The time zone of instants, in which they are shown: "" for none, "UTC", an offset such as
        "+01:00", or a name such as "Europe/Berlin".
    date_format : str
        How instants were written, if they were read from text (`dates`).
    text : Variable or None
        That text.
    source : str
        The column of dates that it is a part of (`dates`).
    """

    name: str
    kind: Kind
    values: AnyArray
    levels: tuple[Hashable, ...] = ()
    zone: str = ""
    date_format: str = ""
    text: Variable | None = None
    source: str = ""

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: AnyArray | slice) -> Self:
        """Return the variable on the given rows."""
        text = None if self.text is None else self.text.take(rows)
        return replace(self, values=self.values[rows], text=text)

    def missing(self) -> Bools:
        """Return a mask of the rows with a missing value."""
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
            Numbers, booleans, strings, categories or instants; missing values are allowed.
        name : str
            The name of the variable.
        argument : str
            The name of the argument in error messages.

        Examples
        --------
        >>> grade = Variable.of(["b", "a", None, "b"], "grade")
        >>> grade.kind, grade.values, grade.levels
        ('levels', array([ 1,  0, -1,  1]), ('a', 'b'))
        """
        kind = "variable" if argument in ("v", "X") else argument
        called = argument if argument == name else f"{kind} {name!r}"
        series = as_series(column)
        if series is not None:
            return _from_series(series, name, called)
        values = plain_array(column, called)
        if values.ndim != 1:
            hint = _ONE_COLUMN.get(argument, "give one value per row")
            shape = f"has shape {values.shape}; a column has one value per row"
            raise _refused(called, shape, hint)
        return _from_array(values, name, called)


def read_columns(
    columns: Mapping[str, object], must_read: Collection[str] | None
) -> tuple[tuple[Variable, ...], dict[str, str]]:
    """Read columns; also return those that cannot be variables, with the reason.

    Parameters
    ----------
    columns : mapping
        The columns by name.
    must_read : collection of str or None
        Columns that raise an error if they cannot be read; None for all.

    Examples
    --------
    >>> found, odd = read_columns({"age": [31, 54], "both": ["a", 1]}, ())
    >>> [one.name for one in found], odd
    (['age'], {'both': 'cannot be a variable: it is an object array that holds int, str'})
    """
    found, odd = [], {}
    for name, column in columns.items():
        try:
            found.append(Variable.of(column, name))
        except InputError as error:
            if must_read is None or name in must_read:
                raise
            what = error.message.removeprefix(f"variable {name!r} ")
            odd[name] = f"cannot be a variable: it {what}"
    return tuple(found), odd


#: Beyond this, a double cannot represent every whole number.
LARGEST_EXACT = 2**53


def warn_if_merged(variable: Variable) -> None:
    """Warn if different whole numbers become the same double, so that they cannot be told apart."""
    values = variable.values
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or not len(values):
        return
    low, high = (int(end) for end in extremes(values))
    if variable.kind != "numeric" or max(-low, high) <= LARGEST_EXACT:
        return
    exact = np.unique(values)
    kept = len(np.unique(exact.astype(np.float64)))
    if kept < len(exact):
        warnings.warn(
            f"variable {variable.name!r} holds whole numbers beyond 2**53, of which {len(exact):,} "
            f"distinct ones become {kept:,} in double precision; subtract a constant before, or "
            "pass them as strings if they are names",
            VarcalWarning,
            stacklevel=2,
        )


def refuse_rows(
    bad: Bools,
    values: AnyArray | None,
    argument: str,
    problem: str,
    hint: str,
    settings: Mapping[str, object] | None = None,
) -> None:
    """Raise an error about the first row that is bad, if there is any.

    Parameters
    ----------
    bad : ndarray of bool
        One value per row, or per row and column.
    values : ndarray or None
        What the rows hold; None if it is nothing.
    argument, problem, hint, settings
        As in `InputError.at_row`.
    """
    if not bad.any():
        return
    row, *place = map(int, np.unravel_index(bad.argmax(), bad.shape))
    value = None if values is None else values[(row, *place)]
    value = value.item() if isinstance(value, np.generic) else value
    n, column = int(bad.any(axis=tuple(range(1, bad.ndim))).sum()), next(iter(place), None)
    raise InputError.at_row(
        argument, problem, value, row, n, hint, column=column, settings=settings
    )


def _refused(called: str, problem: str, hint: str) -> InputError:
    """Return the error about a column that cannot be read, such as "variable 'age'"."""
    argument = called.split(" ")[0]
    argument = "v" if argument == "variable" else argument
    return InputError(f"{called} {problem}", hint, argument)


def is_plain(value: object) -> bool:
    """Tell whether a value is an array, a list, a dict or a scalar of Python itself.

    >>> is_plain([0.2, 0.9]), is_plain(np.ones(2)), is_plain(np.ma.ones(2))
    (True, True, False)
    """
    return type(value) in PLAIN_TYPES


def as_series(column: object) -> nw.Series[Any] | None:
    """Wrap a series of a frame library; return None for anything else."""
    if is_plain(column):
        return None
    arrow, pandas = nw.dependencies.get_pyarrow(), nw.dependencies.get_pandas()
    if arrow is not None and isinstance(column, arrow.Array):
        column = arrow.chunked_array([column])
    if pandas is not None and isinstance(
        column, pandas.api.extensions.ExtensionArray | pandas.Index
    ):
        column = pandas.Series(column) if getattr(column, "nlevels", 1) == 1 else column
    wrapped = nw.from_native(column, series_only=True, pass_through=True)
    return wrapped if isinstance(wrapped, nw.Series) else None


def plain_array(values: object, argument: str) -> AnyArray:
    """Convert to a numpy array, but keep numbers in a list that also holds strings."""
    if isinstance(values, np.ma.MaskedArray):
        if np.ma.getmaskarray(values).any():
            return np.array(values.tolist(), dtype=object)  # masked entries become None
        return np.asarray(values.data)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "US" and isinstance(values, list | tuple):
            array = np.array(values, dtype=object)
    except Exception as error:  # whatever an object's own conversion raises
        hint = "give a list, a numpy array, or a series of pandas, polars or pyarrow"
        raise _refused(argument, f"cannot be read as an array: {error}", hint) from None
    if array.ndim == 0:
        what = "None" if values is None else f"a single {type(values).__name__}"
        sparse = hasattr(values, "toarray")
        hint = "call .toarray() on it first" if sparse else "give a list or array"
        raise _refused(argument, f"is {what}, not a column of values", hint)
    return array


def is_missing(value: object) -> bool:
    """Tell whether a Python value is missing: None, NaN, NaT or pandas.NA."""
    if type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, float | np.floating) and bool(value != value)


def extremes(values: AnyArray) -> tuple[Any, Any]:
    """Return the smallest and the largest number of a column, NaN if it holds a NaN."""
    return values.min(), values.max()


def factorize(values: Iterable[Hashable]) -> tuple[Ints, list[Hashable]]:
    """Number the distinct values in sorted order; missing ones are −1."""
    seen: dict[Hashable, int] = {}
    codes = np.fromiter(
        (-1 if is_missing(value) else seen.setdefault(value, len(seen)) for value in values),
        dtype=np.intp,
    )
    return sort_levels(codes, list(seen))


def sort_levels(codes: Ints, levels: Sequence[Hashable]) -> tuple[Ints, list[Hashable]]:
    """Sort levels and renumber the codes accordingly; −1 stays."""
    if len(levels) < 2:
        return codes, list(levels)
    order = _sorted_positions(levels)
    position = np.empty(len(levels) + 1, dtype=np.intp)
    position[order] = np.arange(len(levels))
    position[-1] = -1
    return position[codes], [levels[k] for k in order]


def present_levels(codes: Ints, levels: Sequence[Hashable]) -> tuple[Ints, list[Hashable]]:
    """Drop the levels without rows and renumber the codes accordingly; −1 stays."""
    present = np.bincount(codes[codes >= 0], minlength=len(levels)) > 0
    position = np.append(np.where(present, np.cumsum(present) - 1, -1), -1)
    return position[codes], [level for level, kept in zip(levels, present, strict=True) if kept]


def _sorted_positions(levels: Sequence[Any]) -> list[int]:
    """Return the order of levels, by type first if they cannot be compared."""
    for key in (levels.__getitem__, lambda k: (type(levels[k]).__name__, levels[k])):
        with suppress(TypeError):
            return sorted(range(len(levels)), key=key)
    return sorted(range(len(levels)), key=lambda k: (type(levels[k]).__name__, str(levels[k])))


def _from_series(series: nw.Series[Any], name: str, called: str) -> Variable:
    dtype, zone = series.dtype, ""
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return _from_categories(series, name)
    if dtype == nw.Boolean and series.null_count():
        codes = series.cast(nw.Int8).fill_null(-1).to_numpy().astype(np.intp)
        return Variable(name, "levels", codes, (False, True))
    wide = dtype.is_decimal() or dtype in (nw.Int128, nw.UInt128)
    if wide or (dtype.is_numeric() and series.null_count()):
        series = series.cast(nw.Float64)
    elif dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    elif isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        zone = _known_zone(dtype.time_zone)
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if dtype == nw.Unknown:
        values, zone = _unknown_array(series, called)
    elif dtype == nw.Object:
        values = np.fromiter(series.to_list(), dtype=object, count=len(series))
    elif dtype.is_numeric() and series.implementation.is_pyarrow():
        values = arrow_numbers(series.to_native())
    elif dtype.is_numeric() or dtype in (nw.Boolean, nw.Date, nw.Datetime, nw.Duration):
        values = series.to_numpy()
    else:
        hint = "give numbers, booleans, strings, categories or dates"
        raise _refused(called, f"is of type {dtype}", hint)
    found = _from_array(values, name, called)
    return replace(found, zone=zone) if zone else found


def arrow_numbers(column: Any, fill: float = np.nan) -> AnyArray:
    """Return the numbers of a pyarrow column, with another number in place of null.

    pyarrow's own conversions load pandas where it is installed, and so does its `fill_null`; this
    takes longer than the work on a small file. DLPack does not.

    Examples
    --------
    >>> import pyarrow as pa
    >>> arrow_numbers(pa.chunked_array([[0.5, None], [2.0]]))
    array([0.5, nan, 2. ])
    """
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if not array.null_count:
        return np.from_dlpack(array)
    held = [None, array.buffers()[1]]
    whole = array.from_buffers(array.type, len(array), held, offset=array.offset)
    valid = np.from_dlpack(array.is_valid().cast("uint8"))
    return np.where(valid, np.from_dlpack(whole), fill)


def _unknown_array(series: nw.Series[Any], called: str) -> tuple[AnyArray, str]:
    """Read a type that narwhals does not know: nulls only, sparse, some time zones."""
    if series.null_count() == len(series):
        return np.full(len(series), None, dtype=object), ""
    native = series.to_native()
    zone = getattr(getattr(native, "dt", None), "tz", None)
    if zone is not None:
        native = native.dt.tz_convert(None)  # instants in UTC
    return plain_array(native, called), _known_zone(zone and str(zone))


def _from_categories(series: nw.Series[Any], name: str) -> Variable:
    """Number texts and categories; their declared order (pandas, Enum) stays, others are sorted."""
    native = series.to_native()
    if hasattr(getattr(native, "cat", None), "codes"):  # pandas: categories may be of any type
        codes, levels = native.cat.codes, native.cat.categories.tolist()
    elif hasattr(native, "factorize"):  # pandas and similar libraries
        codes, found = native.factorize()
        codes, levels = sort_levels(np.asarray(codes, dtype=np.intp), found.tolist())
    elif hasattr(native, "dictionary_encode"):  # pyarrow: a dictionary may hold numbers
        if hasattr(native.type, "value_type"):
            native = native.cast(native.type.value_type)
        encoded = native.dictionary_encode().combine_chunks()
        codes = arrow_numbers(nw.dependencies.get_pyarrow().chunked_array([encoded.indices]), -1)
        codes, levels = sort_levels(codes.astype(np.intp), encoded.dictionary.to_pylist())
    else:
        polars: Any = nw.dependencies.get_polars()
        if not isinstance(series.dtype, nw.Enum):
            texts = native.cast(polars.String)
            native = texts.cast(polars.Enum(texts.drop_nulls().unique().sort()))
        codes = native.to_physical().cast(polars.Int64).fill_null(-1).to_numpy()
        levels = native.dtype.categories.to_list()
    codes, levels = present_levels(np.asarray(codes, dtype=np.intp), levels)
    return Variable(name, "levels", codes, tuple(levels))


def _from_array(values: AnyArray, name: str, called: str) -> Variable:
    match values.dtype.kind:
        case "i" | "u" | "f":
            if values.dtype.itemsize > 8:
                values = _double(values, called)
            return Variable(name, "numeric", values)
        case "b":
            return Variable(name, "levels", values.astype(np.intp), (False, True))
        case "U" | "S":
            labels, codes = np.unique(values, return_inverse=True)
            return Variable(name, "levels", codes.astype(np.intp), tuple(labels.tolist()))
        case "M":
            return Variable(name, "datetime", _near(_seconds(values, called), called))
        case "m":
            return Variable(name, "duration", _seconds(values, called))
        case "O":
            return _from_objects(values, name, called)
    hint = "give real numbers, booleans, strings, categories or dates"
    raise _refused(called, f"has dtype {values.dtype}", hint)


def _double(values: AnyArray, called: str) -> Floats:
    """Return numbers of extended precision as doubles; refuse what is out of range."""
    with np.errstate(over="ignore"):
        found: Floats = values.astype(np.float64)
    lost = np.isinf(found) & np.isfinite(values)
    problem = "is too large for double precision"
    refuse_rows(lost, values.astype(str), called, problem, "numbers lie within ±1.8e308")
    return found


#: Instants are at most this many seconds from 1970, three million years; an axis has a tick for
#: every few of them.
FARTHEST = 1e14
#: Seconds in a unit of time, as a divisor where it is shorter than a second.
_FACTORS = {"W": 604_800.0, "D": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0}
_DIVISORS = {"ms": 1e3, "us": 1e6, "ns": 1e9, "ps": 1e12, "fs": 1e15, "as": 1e18}


def _seconds(values: AnyArray, called: str) -> Floats:
    """Return instants or durations of any unit as seconds, NaN where they are missing."""
    unit, count = np.datetime_data(values.dtype)
    missing = np.isnat(values)
    if missing.all():
        return np.full(len(values), np.nan)
    if unit in ("Y", "M") and values.dtype.kind == "M":
        days = values.astype("M8[D]")
        if (days.astype(values.dtype) != values)[~missing].any():  # beyond 64 bits
            return np.where(missing, np.nan, np.inf)
        values, unit, count = days, "D", 1
    if unit not in _FACTORS and unit not in _DIVISORS:
        what = f"holds durations in {'units of no length' if unit == 'generic' else unit}"
        hint = "a month or a year has no fixed length: give days or seconds"
        raise _refused(called, what, hint)
    ticks = values.view(np.int64).astype(np.float64) * count
    seconds: Floats = ticks * _FACTORS[unit] if unit in _FACTORS else ticks / _DIVISORS[unit]
    return np.where(missing, np.nan, seconds)


def _near(seconds: Floats, called: str) -> Floats:
    """Refuse instants that no calendar has."""
    far = np.abs(seconds) > FARTHEST
    if far.any():
        what = f"holds a date further than three million years away,{row_text(int(far.argmax()))}"
        raise _refused(called, what, "correct it, or leave it missing")
    return seconds


def _from_objects(values: AnyArray, name: str, called: str) -> Variable:
    types = {type(value) for value in values if not is_missing(value)}

    def only(*kinds: type) -> bool:
        return all(issubclass(one, kinds) for one in types)

    if only(str):
        codes, levels = factorize(values.tolist())
        return Variable(name, "levels", codes, tuple(levels))
    if only(bool, np.bool_):
        flags = [-1 if is_missing(value) else int(value) for value in values]
        return Variable(name, "levels", np.array(flags, dtype=np.intp), (False, True))
    if only(numbers.Real, decimal.Decimal) and bool not in types:
        try:
            floats = [np.nan if is_missing(value) else float(value) for value in values]
        except (OverflowError, ValueError) as error:
            what = f"holds a number too large for a float: {error}"
            raise _refused(called, what, "numbers lie within ±1.8e308") from None
        return Variable(name, "numeric", np.array(floats, dtype=np.float64))
    if only(dt.date, np.datetime64):
        zones = {_zone(value) for value in values if not is_missing(value)}
        if "" in zones and len(zones) > 1:
            hint = "give all of them a time zone, or none"
            raise _refused(called, "holds dates with and without a time zone", hint)
        found = _from_array(np.array([_instant(value) for value in values]), name, called)
        return replace(found, zone=zones.pop() if len(zones) == 1 else "UTC")
    if only(dt.timedelta, np.timedelta64):
        gaps = [np.timedelta64("NaT") if is_missing(value) else value for value in values]
        return _from_array(np.array(gaps, dtype="timedelta64[us]"), name, called)
    held = ", ".join(sorted(t.__name__ for t in types))
    hint = "convert it to one type: numbers, booleans, strings, categories or dates"
    raise _refused(called, f"is an object array that holds {held}", hint)


def _zone(value: Any) -> str:
    """Return the time zone of a Python date: its name, or its offset such as "+01:00"."""
    zone = getattr(value, "tzinfo", None)
    return "" if zone is None else _known_zone(str(zone))


def _known_zone(name: str | None) -> str:
    """Return the name of a time zone, or its offset; UTC has several names.

    >>> _known_zone("Etc/UTC"), _known_zone("UTC+01:00"), _known_zone("Europe/Berlin")
    ('UTC', '+01:00', 'Europe/Berlin')
    """
    if not name or name in _NAMES_OF_UTC:
        return "UTC" if name else ""
    return name.removeprefix("UTC")


def _instant(value: Any) -> np.datetime64:
    if is_missing(value):
        return np.datetime64("NaT", "us")
    offset = value.utcoffset() if isinstance(value, dt.datetime) else None
    if offset is None:
        return np.datetime64(value, "us")
    # Not astimezone(), which fails at the ends of the calendar.
    instant: Any = np.datetime64(value.replace(tzinfo=None), "us")
    return cast(np.datetime64, instant - np.timedelta64(offset, "us"))
