"""Choosing the engine that reads rows that are not in memory."""

from __future__ import annotations

from os import PathLike
from typing import Any

from narwhals import dependencies as libraries

from varcal._sums.protocol import LazyRows


def lazy_rows(data: Any) -> LazyRows | None:
    """Return data that is not in memory as lazy rows, and None for data in memory.

    Checking the type of `data` does not import any library.

    Examples
    --------
    >>> lazy_rows({"y": [0, 1]}) is None
    True
    """
    kind = type(data)
    if hasattr(kind, "row_numbers_known") and hasattr(kind, "map"):  # already lazy rows
        rows: LazyRows = data
        return rows
    if _is_path(data) or (isinstance(data, list | tuple) and data and all(map(_is_path, data))):
        from varcal._sums.file_rows import open_files  # noqa: PLC0415

        return open_files(data)
    if libraries.is_duckdb_relation(data):
        from varcal._sums.duckdb_rows import DuckRows  # noqa: PLC0415

        return DuckRows.of_relation(data)
    if libraries.is_polars_lazyframe(data):
        from varcal._sums.polars_rows import PolarsRows  # noqa: PLC0415

        return PolarsRows.of(data)
    if _is_arrow_dataset(data):
        from varcal._sums.arrow_rows import ArrowRows  # noqa: PLC0415

        return ArrowRows.of(data)
    if libraries.is_pyspark_dataframe(data) or libraries.is_pyspark_connect_dataframe(data):
        from varcal._sums.spark_rows import SparkRows  # noqa: PLC0415

        return SparkRows.of(data)
    return None


def _is_path(data: object) -> bool:
    return isinstance(data, str | PathLike)


def _is_arrow_dataset(data: object) -> bool:
    """Tell whether data is a PyArrow dataset, for which narwhals has no test."""
    pyarrow = libraries.get_pyarrow()
    return (
        pyarrow is not None
        and type(data).__module__.startswith("pyarrow")
        and hasattr(data, "scanner")
    )
