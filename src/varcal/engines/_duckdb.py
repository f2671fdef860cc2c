"""Rows that DuckDB reads: files, globs, hive-partitioned folders, and relations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from varcal._sources import Source, column_names, sources_of
from varcal.engines._lazy import BATCH_ROWS, T, Work, map_batches
from varcal.exceptions import InputError, MissingDependencyError

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

_READERS = {"parquet": "read_parquet", "csv": "read_csv", "tsv": "read_csv"}


@dataclass(frozen=True, eq=False)
class DuckRows:
    """The rows of a DuckDB relation.

    DuckDB takes names that differ by case only for the same, and renames one of them; columns
    are therefore found by position.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns, as the user knows them.
    relation : DuckDBPyRelation
        The rows.
    """

    columns: tuple[str, ...]
    relation: Any

    engine: ClassVar[str] = "duckdb"
    backend: ClassVar[str | None] = "pyarrow"
    counted: ClassVar[bool] = True

    @classmethod
    def of_relation(cls, relation: Any) -> DuckRows:
        """Wrap a relation."""
        return cls(tuple(relation.columns), relation)

    @classmethod
    def of_files(cls, given: Paths) -> DuckRows:
        """Open a file, a glob, or a folder of Parquet files."""
        try:
            import duckdb  # noqa: PLC0415  loads when first used
        except ModuleNotFoundError:
            raise MissingDependencyError(
                f"reading {str(given)!r} in place needs duckdb",
                "pip install 'varcal[duckdb]', or give data=pyarrow.dataset.dataset(path)",
            ) from None
        files, hive = _files(given)
        kinds = {source.format for source in files}
        reader = _READERS.get(files[0].format)
        if len(kinds) > 1 or reader is None:
            raise InputError(
                f"data is {', '.join(sorted(kinds))} files: {str(given)!r}",
                "give Parquet, CSV or TSV files, all of one format",
            )
        paths = [str(source.path) for source in files]
        options = f"hive_partitioning={str(hive).lower()}"
        if reader == "read_parquet":
            # Statistics in Parquet leave NaN out, and DuckDB would believe that there is none.
            options += ", can_have_nan=true"
        else:
            options += ", header=true, sample_size=-1, null_padding=false, nullstr=?"
        query = f"FROM {reader}(?, {options})"
        values = [paths] if reader == "read_parquet" else [paths, _null_texts()]
        connection = duckdb.connect()
        try:
            relation = connection.sql(query, params=values)
            own = relation.columns
        except duckdb.Error as error:
            raise InputError(
                f"cannot read {str(given)!r}: {str(error).splitlines()[0]}",
                "check that the files are whole and have the same columns",
            ) from None
        names = column_names(files[0])
        # Partitions of the folder come after the columns of the files.
        return cls((*names, *own[len(names) :]), relation)

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.relation.aggregate("count(*)").fetchall()[0][0])

    def read(self, columns: Sequence[str]) -> Any:
        """Return some columns of all rows as an Arrow table."""
        return self._selected(columns).to_arrow_table().rename_columns(list(columns))

    def map(self, columns: Sequence[str], work: Work[T]) -> Iterator[T]:
        """Yield what a work returns for each batch of rows, in their order."""
        return map_batches(self._batches(columns), work)

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415

        for batch in self._selected(columns).to_arrow_reader(BATCH_ROWS):
            yield pa.Table.from_batches([batch]).rename_columns(list(columns))

    def _selected(self, columns: Sequence[str]) -> Any:
        own = self.relation.columns
        names = [own[self.columns.index(name)] for name in columns]
        quoted = [f'"{name.replace(chr(34), 2 * chr(34))}"' for name in names]
        # Names in the answer differ by more than case, whatever those of the columns do.
        return self.relation.project(", ".join(f"{name} AS c{k}" for k, name in enumerate(quoted)))


def _files(given: Paths) -> tuple[tuple[Source, ...], bool]:
    """List the files that are meant, and tell whether folders give more columns (day=3)."""
    if isinstance(given, str | PathLike) and Path(given).is_dir():
        paths = sorted(str(path) for path in Path(given).rglob("*.parquet"))
        if not paths:
            raise InputError(
                f"the folder {str(given)!r} has no Parquet file", "give a glob of other files"
            )
        found = sources_of(paths)
    else:
        if isinstance(given, str) and given.lstrip().lower().startswith(("select ", "from ")):
            raise InputError(
                f"data is a query without its connection: {given!r}", "give connection.sql(query)"
            )
        found = sources_of(given)
    return found, all("=" in source.path.parent.name for source in found)


def _null_texts() -> list[str]:
    """Return the texts that stand for a missing value in CSV, as everywhere in varcal."""
    from pyarrow import csv  # noqa: PLC0415

    return list(csv.ConvertOptions().null_values)
