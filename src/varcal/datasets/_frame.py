"""One frame of any library, made from named columns."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import Any, Literal, cast, get_args

import numpy as np

from varcal.exceptions import InputError, MissingDependencyError

Backend = Literal["pandas", "polars", "pyarrow", "modin", "cudf"]
BACKENDS = get_args(Backend)


def to_frame(columns: Mapping[str, np.ndarray], backend: str) -> Any:
    """Build a native frame; ``None`` in an object column becomes a null.

    Parameters
    ----------
    columns : mapping of str to array
        The columns, all of one length.
    backend : {"pandas", "polars", "pyarrow", "modin", "cudf"}
        The library whose frame is wanted.

    Returns
    -------
    frame
        A frame (or table) of that library.

    Examples
    --------
    >>> to_frame({"y": np.array([0, 1])}, "pandas").shape
    (2, 1)
    """
    if backend not in BACKENDS:
        raise InputError.choice("backend", backend, BACKENDS)
    if importlib.util.find_spec(backend) is None:
        raise MissingDependencyError.of(backend, f"to_frame(backend={backend!r})")
    import narwhals as nw  # noqa: PLC0415

    # polars keeps an object array as opaque Python objects; a list becomes strings and nulls.
    data = {
        name: column.tolist() if column.dtype == object else column
        for name, column in columns.items()
    }
    return nw.from_dict(data, backend=cast(Backend, backend)).to_native()
