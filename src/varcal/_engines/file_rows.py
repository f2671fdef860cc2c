"""Rows of files: Parquet goes to DuckDB, text and Arrow files are read by PyArrow."""

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

from varcal._engines.arrow_rows import ArrowRows
from varcal._engines.duckdb_rows import DuckRows
from varcal._engines.parquet_files import ParquetFiles
from varcal._engines.protocol import T, Work, map_batches
from varcal._files.sources import Source, same_columns, sources_in, sources_of
from varcal.exceptions import InputError

# How queries begin, after which no path goes on.
_QUERY = re.compile(r"\s*(select|from|with)\s", re.IGNORECASE)

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


@dataclass(frozen=True, eq=False)
class FileRows:
    """The rows of CSV, TSV, JSON lines and Arrow files, with types that hold in all of them.

    Text does not say its types, and a sample of it may mislead: they are settled over all rows,
    as everywhere in varcal, before any is used.

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
    counted: ClassVar[bool] = True

    def count(self) -> int:
        """Return the number of rows."""
        return sum(len(batch) for batch in self._batches(self.columns[:1]))

    def read(self, columns: Sequence[str]) -> Any:
        """Return some columns of all rows as an Arrow table."""
        import pyarrow as pa  # noqa: PLC0415  loads when first used

        return pa.concat_tables([*self._batches(columns)] or [self.schema.empty_table()])

    def map(self, columns: Sequence[str], work: Work[T]) -> Iterator[T]:
        """Yield what a work returns for each batch of rows, in their order."""
        return map_batches(self._batches(columns), work)

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415

        from varcal._files.streams import batches_of  # noqa: PLC0415

        schema = pa.schema([self.schema.field(name) for name in columns])
        for batch in batches_of(self.sources, schema):
            yield pa.Table.from_batches([batch])

    @cached_property
    def schema(self) -> Any:
        """The columns with the types that hold all their values."""
        from varcal._files.streams import settled_types  # noqa: PLC0415

        return settled_types(self.sources, self.columns)


def open_files(given: Paths) -> DuckRows | ArrowRows | FileRows:
    """Open a file, a glob, a list of them, or a folder of Parquet files."""
    if isinstance(given, str) and _QUERY.match(given) and not glob.glob(given):
        raise InputError(
            f"data is a query without its connection: {given!r}",
            "give connection.sql(query)",
            argument="data",
        )
    if is_folder(given):
        return _open_parquet(folder_files(cast(Any, given)))
    sources = sources_of(given)
    if all(source.format == "parquet" for source in sources):
        return _open_parquet(ParquetFiles.of(sources))
    return rows_of_files(sources)


def is_folder(given: object) -> bool:
    """Tell whether a path is that of a folder."""
    return isinstance(given, str | PathLike) and bool(str(given)) and os.path.isdir(given)


def folder_files(folder: str | PathLike[str]) -> ParquetFiles:
    """Return the Parquet files of a folder, partitioned or not."""
    return ParquetFiles.of(sources_in(folder), str(Path(folder)))


def rows_of_files(sources: Sequence[Source]) -> FileRows:
    """Check that files have the same columns, each once."""
    return FileRows(tuple(same_columns(sources)), tuple(sources))


def _open_parquet(files: ParquetFiles) -> DuckRows | ArrowRows:
    """Read with DuckDB what it reads rightly: it casts all files to the types of the first."""
    return DuckRows.of_files(files) if files.alike else ArrowRows.of_files(files)
