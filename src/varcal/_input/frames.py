"""A frame of any library, or a dict of columns, read by column name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import narwhals as nw
import numpy as np

from varcal._options import check_choice
from varcal.exceptions import InputError, import_library

#: Asking the frame libraries about an object takes longer than calibrating one row. Subclasses
#: are not plain: a frame library may define one.
PLAIN_TYPES = frozenset({np.ndarray, list, tuple, dict, str, int, float, type(None)})


def is_plain(value: object) -> bool:
    """Tell whether a value is an array, a list, a dict or a scalar of Python itself.

    >>> is_plain([0.2, 0.9]), is_plain(np.ones(2)), is_plain(np.ma.ones(2))
    (True, True, False)
    """
    return type(value) in PLAIN_TYPES


#: The frame libraries that results can be converted to.
BACKENDS = ("pandas", "polars", "pyarrow", "modin", "cudf")


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
            keys = _unique(list(source), argument)
            return cls(keys, None, dict(zip(keys, source.values(), strict=True)))
        if not is_frame(source):
            raise InputError(
                f"{argument} is a {type(source).__name__}",
                "give a frame of pandas, polars or pyarrow, or a dict of columns",
                argument,
            )
        names = getattr(source, "columns", None)
        if hasattr(source, "column_names"):  # pyarrow: its .columns are the arrays
            names = source.column_names
        columns = _unique(list(names if names is not None else ()), argument)
        frame = nw.from_native(source, eager_only=True)  # type: ignore[call-overload]
        return cls(columns, str(frame.implementation.value), frame)

    def column(self, name: str, argument: str) -> Any:
        """Return one column in its own library's type."""
        if name not in self.columns:
            raise InputError.no_column(name, self.columns, argument)
        if self.backend is None:
            return self._source[name]
        position = self.columns.index(name)
        return self._source[:, position].to_native()


def is_frame(source: object) -> bool:
    """Tell whether an object is an eager frame of a library that narwhals knows."""
    if is_plain(source):
        return False
    try:
        wrapped = nw.from_native(source, pass_through=True)
    except nw.exceptions.DuplicateError:  # it is a frame; `Table.of` reports the duplicate
        return True
    if isinstance(wrapped, nw.LazyFrame):
        raise InputError(
            f"a lazy {type(source).__module__.split('.')[0]} frame", "call .collect() on it first"
        )
    return isinstance(wrapped, nw.DataFrame)


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
        name: column.tolist()
        if isinstance(column, np.ndarray) and column.dtype.kind == "O"
        else column
        for name, column in columns.items()
    }
    return nw.from_dict(data, backend=cast(Any, backend)).to_native()


def _unique(names: list[Any], argument: str) -> tuple[str, ...]:
    texts = [str(name) for name in names]
    twice = (
        {name for name in texts if texts.count(name) > 1} if len(set(texts)) < len(texts) else ()
    )
    if twice:
        raise InputError(
            f"{argument} has two columns of the same name: {', '.join(map(repr, sorted(twice)))}",
            "rename one of them",
            argument,
        )
    return tuple(texts)
