"""Numbers in Arrow's memory as numpy arrays, and back.

pyarrow's own conversions load pandas where it is installed, which takes longer than the work on a
small file.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats, Ints

#: The numpy type of each Arrow type of numbers, by the name of the latter.
_DTYPES: dict[str, type[np.generic]] = {
    "double": np.float64,
    "float": np.float32,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
}


def numpy_of(column: Any) -> AnyArray | None:
    """Return the numbers of an Arrow array, or None where it holds anything else.

    Floats with nulls become doubles with NaN; None is also returned for integers with nulls.

    Examples
    --------
    >>> import pyarrow as pa
    >>> numpy_of(pa.chunked_array([[0.5, None], [2.0]])), numpy_of(pa.array(["a"]))
    (array([0.5, nan, 2. ]), None)
    """
    dtype = _DTYPES.get(str(column.type))
    if dtype is None or (column.null_count and np.dtype(dtype).kind != "f"):
        return None
    chunks = getattr(column, "chunks", [column])
    parts = [_numbers(chunk, dtype) for chunk in chunks]
    if column.null_count:
        parts = [
            np.where(valid_rows(chunk), part.astype(np.float64), np.nan)
            for chunk, part in zip(chunks, parts, strict=True)
        ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts or [np.empty(0, dtype)])


def codes_of(indices: Any) -> Ints:
    """Return whole numbers of an Arrow array as indices, −1 where they are null.

    >>> import pyarrow as pa
    >>> codes_of(pa.array([2, None, 0], pa.int32()))
    array([ 2, -1,  0])
    """
    codes = _numbers(indices, _DTYPES[str(indices.type)])
    return np.where(valid_rows(indices), codes, -1).astype(np.intp)


def valid_rows(array: Any) -> Bools:
    """Return which values of an Arrow array are not null.

    >>> import pyarrow as pa
    >>> valid_rows(pa.array(["a", None, "b"])[1:])
    array([False,  True])
    """
    bits = array.buffers()[0]
    if bits is None:
        return np.ones(len(array), dtype=np.bool_)
    packed = np.frombuffer(bits, dtype=np.uint8)
    held = np.unpackbits(packed, count=array.offset + len(array), bitorder="little")
    return held[array.offset :].astype(np.bool_)


def arrow_of(values: Floats) -> Any:
    """Return doubles as an Arrow array.

    >>> arrow_of(np.array([0.25, 0.5])).to_pylist()
    [0.25, 0.5]
    """
    import pyarrow as pa  # noqa: PLC0415

    held = pa.py_buffer(np.ascontiguousarray(values, dtype=np.float64))
    return pa.Array.from_buffers(pa.float64(), len(values), [None, held])


def _numbers(array: Any, dtype: type[np.generic]) -> AnyArray:
    if not len(array):
        return np.empty(0, dtype)
    size = np.dtype(dtype).itemsize
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * size)
