"""The columns of a batch, with plain numbers as numpy arrays that share their memory."""

from __future__ import annotations

from typing import Any

from narwhals import dependencies as libraries

from varcal._input.variables import arrow_numbers


def batch_columns(frame: Any) -> Any:
    """Return a PyArrow table or a polars frame as a dict of columns, and anything else as it is.

    Integers and floats without nulls become arrays, without a copy where they are in one chunk;
    other columns stay what they are. Reading arrays costs much less than reading series, which
    matters for thousands of batches.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch_columns(pa.table({"x": [1.5, 2.5]}))
    {'x': array([1.5, 2.5])}
    """
    if libraries.is_pyarrow_table(frame):
        return dict(zip(frame.column_names, map(_from_arrow, frame.columns), strict=True))
    if libraries.is_polars_dataframe(frame):
        return {column.name: _from_polars(column) for column in frame.get_columns()}
    return frame


def _from_arrow(column: Any) -> Any:
    from pyarrow import types  # noqa: PLC0415

    is_plain = types.is_integer(column.type) or types.is_floating(column.type)
    return arrow_numbers(column) if is_plain and not column.null_count else column


def _from_polars(column: Any) -> Any:
    is_plain = column.dtype.is_integer() or column.dtype.is_float()
    is_wide = str(column.dtype) in ("Int128", "UInt128")
    return column if not is_plain or is_wide or column.null_count() else column.to_numpy()
