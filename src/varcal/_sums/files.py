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
from typing import TYPE_CHECKING, Any, cast

from varcal._files.dialect import UncertainDialectError
from varcal._files.formats import Source, same_columns, sources_in, sources_of, warn_how_read
from varcal._sums.sources import ArrowRows, DuckRows, LazyRows
from varcal.exceptions import InputError, MissingDependencyError

if TYPE_CHECKING:
    import pyarrow as pa

#: The beginning of a query. A string that matches is a path only if there is such a file.
_QUERY = re.compile(r"\s*(select|from|with)\s", re.IGNORECASE)

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


@dataclass(frozen=True, eq=False)
class FileRows(LazyRows):
    """The rows of CSV, TSV, JSON lines and Arrow files, with types that fit all of them.

    Text files do not declare types, and those of a sample may be wrong for other rows. The types
    are therefore determined from all rows before any row is used.
    """

    columns: tuple[str, ...]
    sources: tuple[Source, ...]

    @cached_property
    def schema(self) -> Any:
        """The columns, with types that fit all their values."""
        from varcal._files.read_rows import common_types  # noqa: PLC0415  loads pyarrow

        return common_types(self.sources, self.columns)

    def count(self) -> int:
        """Return the number of rows."""
        return sum(len(batch) for batch in self.batches(self.columns[:1]))

    def read(self, columns: Sequence[str]) -> Any:
        """Return some columns of all rows as an Arrow table."""
        import pyarrow as pa  # noqa: PLC0415  loaded when first used

        return pa.concat_tables([*self.batches(columns)] or [self.schema.empty_table()])

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield some columns of all rows, batch by batch and in order."""
        import pyarrow as pa  # noqa: PLC0415

        from varcal._files.read_rows import batches_of  # noqa: PLC0415

        schema = pa.schema([self.schema.field(name) for name in columns])
        return (pa.Table.from_batches([batch]) for batch in batches_of(self.sources, schema))


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files that are read as one, with the columns that partitioned folders add.

    Attributes
    ----------
    sources : tuple of Source
        The files.
    schema : pyarrow.Schema
        Their columns, with types that fit all values.
    alike : bool
        Whether all files have the same columns in the same order and of the same types.
    keys : tuple of str
        The columns that folders such as ``day=3`` add.
    base : str
        Only folders below this one add columns; empty if all folders of the path do.
    """

    sources: tuple[Source, ...]
    schema: pa.Schema
    alike: bool
    keys: tuple[str, ...]
    base: str = ""

    @classmethod
    def of(
        cls, sources: Sequence[Source], base: str = "", *, partitioned: bool = True
    ) -> ParquetFiles:
        """Check that files have the same columns and compatible types.

        Without `partitioned`, folders such as ``day=3`` add no columns.
        """
        names = same_columns(sources)

        from varcal._files.read_rows import common_types  # noqa: PLC0415  loads pyarrow

        first, *others = (source.schema for source in sources)
        alike = all(one.names == first.names and one.types == first.types for one in others)
        schema = common_types(sources, names).remove_metadata()
        keys = _keys(sources, base, names) if partitioned else ()
        return cls(tuple(sources), schema, alike, keys, base)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return (*self.schema.names, *self.keys)

    @property
    def paths(self) -> list[str]:
        """The paths of the files."""
        return [str(source.path) for source in self.sources]

    @property
    def shown(self) -> str:
        """The name of the files in messages."""
        more = len(self.sources) - 1
        return self.sources[0].shown + (f" and {more:,} more" if more else "")

    def open(self) -> DuckRows | ArrowRows:
        """Use DuckDB if all files have the same types: it casts them to those of the first.

        It also forgets the time zones of columns.
        """
        zones = {one.tz for one in self.schema.types if getattr(one, "tz", None)}
        if self.alike and not zones - {"UTC"}:
            try:
                return DuckRows.of_files(self)
            except MissingDependencyError:
                pass
        return ArrowRows.of_files(self)


def open_files(given: Paths) -> LazyRows:
    """Open a file, a glob, a list of them, or a folder of Parquet files."""
    if isinstance(given, str) and _QUERY.match(given) and not glob.glob(given):
        raise InputError(
            f"data is a query without a connection: {given!r}",
            "pass connection.sql(query)",
            argument="data",
        )
    if is_folder(given):
        return folder_files(cast(Any, given)).open()
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
        return ParquetFiles.of(sources).open()
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


def _keys(sources: Sequence[Source], base: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that folders add, which must be the same for all files."""
    first = _keys_of(sources[0], base)
    for source in sources:
        own = _keys_of(source, base)
        if sorted(own) != sorted(first):
            added = [", ".join(map(repr, each)) or "no column" for each in (own, first)]
            raise InputError(
                f"the folders of {source.shown} add {added[0]}, those of {sources[0].shown} "
                f"{added[1]}",
                "pass files with the same partitions, or the files of one folder at a time",
            )
    # DuckDB treats names that differ only by case as equal.
    taken = {name.casefold(): name for name in names}
    for key in first:
        if key.casefold() in taken:
            raise InputError(
                f"a folder of {sources[0].shown} adds a column {key!r}, but there already is a "
                f"column {taken[key.casefold()]!r}",
                "rename the folders or the column, or pass pyarrow.dataset.dataset(path), which "
                "ignores the names of folders",
            )
        taken[key.casefold()] = key
    return first


def _keys_of(source: Source, base: str) -> tuple[str, ...]:
    below = source.path.parent.relative_to(base) if base else source.path.parent
    pairs = (part.partition("=") for part in Path(below).parts)
    return tuple(key for key, equals, _ in pairs if key and equals)
