"""Tables of any library: frames and dicts of columns, their columns by name, and their indexes."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import narwhals as nw
import numpy as np

from varcal._arrays import AnyArray
from varcal._input.variables import Variable, as_series, is_plain, plain_array
from varcal._options import check_choice
from varcal.exceptions import InputError, VarcalWarning, called, import_library

#: The frame libraries that results can be converted to.
BACKENDS = ("pandas", "polars", "pyarrow", "modin", "cudf")
#: How the warning about indexes begins.
BY_POSITION = "rows are paired by position"
_NUMBERS_HINT = {
    "p": "give real numbers; labels go in {y}",
    "mu": "give predicted means as real numbers",
    "y": "amounts and counts are real numbers",
    "exposure": "exposures are positive numbers, such as years or shares of them",
    "sample_weight": "weights are real numbers, finite and not negative",
}


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns, read one at a time.

    Attributes
    ----------
    columns : tuple of str
        The names, in order.
    backend : str or None
        The library that the frame belongs to; None for a dict of columns.
    """

    columns: tuple[str, ...]
    backend: str | None
    _source: Any

    @classmethod
    def of(cls, source: object, argument: str) -> Table:
        """Wrap an eager frame or a dict of columns.

        Examples
        --------
        >>> Table.of({"age": [31, 54]}, "data").columns
        ('age',)
        """
        if isinstance(source, Mapping):
            keys = _unique(source, argument)
            return cls(keys, None, dict(zip(keys, source.values(), strict=True)))
        if not is_frame(source):
            hint = "give a frame of pandas, polars or pyarrow, or a dict of columns"
            raise InputError(f"{argument} is a {type(source).__name__}", hint, argument)
        names = getattr(source, "columns", ())
        if hasattr(source, "column_names"):  # pyarrow: its .columns are the arrays
            names = source.column_names
        columns = _unique(names, argument)
        frame = nw.from_native(source, eager_only=True)  # type: ignore[call-overload]
        return cls(columns, str(frame.implementation.value), frame)

    def column(self, name: str, argument: str) -> Any:
        """Return one column in its own library's type."""
        if name not in self.columns:
            raise InputError.no_column(name, self.columns, argument)
        if self.backend is None:
            return self._source[name]
        return self._source[:, self.columns.index(name)].to_native()


def _unique(names: Any, argument: str) -> tuple[str, ...]:
    texts = tuple(map(str, names))
    twice = [repr(name) for name, count in sorted(Counter(texts).items()) if count > 1]
    if twice:
        problem = f"{argument} has two columns of the same name: {', '.join(twice)}"
        raise InputError(problem, "rename one of them", argument)
    return texts


def is_frame(source: object) -> bool:
    """Tell whether an object is an eager frame of a library that narwhals knows."""
    if is_plain(source):
        return False
    try:
        wrapped = nw.from_native(source, pass_through=True)
    except nw.exceptions.DuplicateError:  # it is a frame; `Table.of` reports the duplicate
        return True
    if isinstance(wrapped, nw.LazyFrame):
        library = type(source).__module__.split(".")[0]
        way = ".pl()" if library in ("duckdb", "_duckdb") else ".collect()"
        raise InputError(f"a lazy {library} frame", f"call {way} on it first")
    return isinstance(wrapped, nw.DataFrame)


def library_of(column: object) -> str | None:
    """Return the frame library of a series, None for anything else."""
    series = as_series(column)
    return None if series is None else str(series.implementation.value)


def frame_of(columns: Mapping[str, Any], backend: str | None) -> Any:
    """Build a frame in the given library, pandas if none is given.

    ``None`` in a list or an object array becomes a null.

    Examples
    --------
    >>> frame_of({"n": [3, 4]}, "polars").shape
    (2, 1)
    """
    backend = "pandas" if backend is None else backend
    check_choice("backend", backend, BACKENDS)
    import_library(backend, "to_frame()")
    # polars keeps an object array as opaque Python objects; a list becomes strings and nulls.
    data = {
        name: column.tolist() if getattr(column, "dtype", None) == np.dtype(object) else column
        for name, column in columns.items()
    }
    return nw.from_dict(data, backend=cast(Any, backend)).to_native()


def column_of(value: object, table: Table | None, argument: str) -> object:
    """Return the column with the given name, or the array itself."""
    if table is not None and isinstance(value, str):
        return table.column(value, argument)
    if isinstance(value, str):
        hint = "give an array, or a column name together with data="
        raise InputError(f"{argument} is the string {value!r}", hint, argument)
    if table is not None and isinstance(value, int):
        problem = f"{argument} is the number {value!r}"
        raise InputError(problem, "column names are strings", argument)
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


def numbers_of(values: object, argument: str) -> AnyArray:
    """Return real numbers in their own dtype, without a copy if possible."""
    if is_frame(values):
        raise InputError(f"{argument} is a frame", "give one column of it", argument)
    if as_series(values) is None:
        values = array = plain_array(values, argument)
        if array.ndim > 1 and array.dtype.kind in "iuf":
            return array
        if array.ndim == 2:
            return np.column_stack([numbers_of(column, argument) for column in array.T])
    column = Variable.of(values, argument, argument)
    if column.kind == "levels" and not column.levels:
        return np.full(len(column), np.nan)
    if column.kind != "numeric":
        held = "booleans" if column.levels == (False, True) else column.kind
        problem = f"{argument} holds {'durations' if held == 'duration' else held}, not numbers"
        name = argument.split(" ")[0]
        raise InputError(problem, _NUMBERS_HINT[name], name, {"y": None})
    return column.values


def check_lengths(lengths: dict[str, int], *, by_name: bool) -> None:
    """Refuse columns of different lengths, and empty ones."""
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{called(name)} {count:,}" for name, count in lengths.items())
        names = "; with data=, column names are strings" if by_name else ""
        raise InputError(f"lengths differ: {shown}", f"give one value per row in each{names}")
    name = "p" if "p" in lengths else "mu"
    if not lengths[name]:
        what = f"y and {name} are" if "y" in lengths else f"{name} is"
        raise InputError(f"{what} empty", "at least one row is needed", argument=name)


def check_indexes(given: Mapping[str, object]) -> None:
    """Refuse series and frames of pandas whose rows are in another order; warn of other labels.

    Rows are paired by position, so the labels of their indexes must not say otherwise.

    Parameters
    ----------
    given : mapping
        The arguments by name. A dict of columns counts as its columns.
    """
    pandas = nw.dependencies.get_pandas()
    if pandas is None:
        return
    indexes: dict[str, Any] = {}
    for name, value in given.items():
        columns = value.items() if isinstance(value, Mapping) else [(None, value)]
        for key, column in columns:
            if isinstance(column, pandas.Series | pandas.DataFrame):
                indexes[name if key is None else f"{name} {key!r}"] = column.index
    if len(indexes) < 2:
        return
    (first, labels), *others = indexes.items()
    unlike = [
        name
        for name, index in others
        if len(index) == len(labels) and not (index is labels or index.equals(labels))
    ]
    for name in unlike:
        if _same_labels(pandas, labels, indexes[name]):
            argument = name.split(" ")[0]
            problem = f"{name} has the index labels of {first} in another order"
            hint = f"align it, as in {argument}.loc[{first}.index], or pass .to_numpy() of both"
            raise InputError(problem, f"{hint} to pair rows by position", argument)
    if unlike:
        shown = ", ".join(unlike[:5]) + (" …" if len(unlike) > 5 else "")
        problem = f"{BY_POSITION}: the index labels of {shown} are not those of {first}"
        hint = "align them, or pass .to_numpy() if the order is right"
        warnings.warn(f"{problem}; {hint}", VarcalWarning, stacklevel=4)


def _same_labels(pandas: Any, one: Any, other: Any) -> bool:
    """Tell whether two indexes of equal length have the same labels, each as often."""
    a, b = (pandas.util.hash_pandas_object(index, index=False).to_numpy() for index in (one, other))
    # Sums differ unless the labels are the same, up to chance; sorting is certain, but slow.
    return bool(a.sum() == b.sum()) and np.array_equal(np.sort(a), np.sort(b))
