"""Rows of files: Parquet files are read by DuckDB if it is installed, all others by PyArrow."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, cast

from varcal._files.dialect import UncertainDialectError
from varcal._files.source import Source, same_columns, sources_in, sources_of, warn_how_read
from varcal._sums.arrow_rows import ArrowRows
from varcal._sums.duckdb_rows import DuckRows
from varcal._sums.parquet_files import ParquetFiles
from varcal._sums.protocol import T, Work, map_batches
from varcal.exceptions import InputError, MissingDependencyError

#: The beginning of a query. A string that matches is a path only if there is such a file.
_QUERY = re.compile(r"\s*(select|from|with)\s", re.IGNORECASE)

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


@dataclass(frozen=True, eq=False)
class FileRows:
    """The rows of CSV, TSV, JSON lines and Arrow files, with types that fit all of them.

    Text files do not declare types, and those of a sample may be wrong for other rows. The types
    are therefore determined from all rows before any row is used.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns.
    sources : tuple of Source
        The files.
    """

    columns: tuple[str, ...]
    sources: tuple[Source, ...]

    engine: ClassVar[str] = "pyarrow"
    backend: ClassVar[str | None] = "pyarrow"
    row_numbers_known: ClassVar[bool] = True

    @cached_property
    def schema(self) -> Any:
        """The columns, with types that fit all their values."""
        from varcal._files.read_rows import common_types  # noqa: PLC0415  loads pyarrow

        return common_types(self.sources, self.columns)

    def count(self) -> int:
        """Return the number of rows."""
        return sum(len(batch) for batch in self._batches(self.columns[:1]))

    def read(self, columns: Sequence[str]) -> Any:
        """Return some columns of all rows as an Arrow table."""
        import pyarrow as pa  # noqa: PLC0415  loaded when first used

        return pa.concat_tables([*self._batches(columns)] or [self.schema.empty_table()])

    def select(self, columns: Sequence[str]) -> FileRows:
        """Return the same rows with some of their columns."""
        return FileRows(tuple(columns), self.sources)

    def map(self, columns: Sequence[str], work: Work[T]) -> Iterator[T]:
        """Yield the result of a work for each batch of rows, in order."""
        return map_batches(self._batches(columns), work)

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415

        from varcal._files.read_rows import batches_of  # noqa: PLC0415

        schema = pa.schema([self.schema.field(name) for name in columns])
        return (pa.Table.from_batches([batch]) for batch in batches_of(self.sources, schema))


def open_files(given: Paths) -> DuckRows | ArrowRows | FileRows:
    """Open a file, a glob, a list of them, or a folder of Parquet files."""
    if isinstance(given, str) and _QUERY.match(given) and not glob.glob(given):
        raise InputError(
            f"data is a query without a connection: {given!r}",
            "pass connection.sql(query)",
            argument="data",
        )
    if is_folder(given):
        return _open_parquet(folder_files(cast(Any, given)))
    try:
        sources = sources_of(given)
    except UncertainDialectError as error:
        raise InputError(
            error.message,
            "read it with a library of data frames, as in pandas.read_csv(path, sep=…, "
            "decimal=…, encoding=…), and pass the frame as data",
            argument="data",
        ) from None
    warn_how_read(sources)
    if all(source.format == "parquet" for source in sources):
        return _open_parquet(ParquetFiles.of(sources))
    return rows_of_files(sources)


def is_folder(given: object) -> bool:
    """Tell whether a value is the path of a folder."""
    return isinstance(given, str | PathLike) and bool(str(given)) and os.path.isdir(given)


def folder_files(folder: str | PathLike[str]) -> ParquetFiles:
    """Return the Parquet files of a folder, partitioned or not."""
    return ParquetFiles.of(sources_in(folder), str(Path(folder)))


def rows_of_files(sources: Sequence[Source]) -> ArrowRows | FileRows:
    """Return the rows of files, read by PyArrow; names of folders add no columns."""
    if all(source.format == "parquet" for source in sources):
        return ArrowRows.of_files(ParquetFiles.of(sources, partitioned=False))
    return FileRows(tuple(same_columns(sources)), tuple(sources))


def _open_parquet(files: ParquetFiles) -> DuckRows | ArrowRows:
    """Use DuckDB only if all files have the same types: it casts them to those of the first.

    It also forgets the time zones of columns.
    """
    if not files.alike or files.zones - {"UTC"}:
        return ArrowRows.of_files(files)
    try:
        return DuckRows.of_files(files)
    except MissingDependencyError:
        return ArrowRows.of_files(files)
