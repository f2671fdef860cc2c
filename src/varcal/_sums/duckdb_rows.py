"""Rows read by DuckDB: Parquet files, hive-partitioned folders of them, and relations."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from varcal._sums.parquet_files import ParquetFiles
from varcal._sums.protocol import BATCH_ROWS, T, Work, map_batches, reading_rows
from varcal.exceptions import InputError, MissingDependencyError, import_library


@dataclass(frozen=True, eq=False)
class DuckRows:
    """The rows of a DuckDB relation.

    DuckDB treats names that differ only by case as equal and renames one of them. Columns are
    therefore found by position.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns, as the user sees them.
    relation : DuckDBPyRelation
        The rows.
    shown : str
        The name of the relation or of the files in messages.
    """

    columns: tuple[str, ...]
    relation: Any
    shown: str = "the DuckDB relation"

    engine: ClassVar[str] = "duckdb"
    backend: ClassVar[str | None] = "pyarrow"
    row_numbers_known: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not hasattr(self.relation, "to_arrow_reader"):
            raise MissingDependencyError(
                "reading a relation in batches needs a newer version of duckdb",
                "pip install -U duckdb",
            )

    @classmethod
    def of_relation(cls, relation: Any) -> DuckRows:
        """Wrap a relation."""
        import_library("pyarrow", "reading a DuckDB relation")
        with reading_rows(cls.shown):
            rows = cls(tuple(relation.columns), relation)
        counts = Counter(name.casefold() for name in rows.columns)
        for name in rows.columns:
            if counts[name.casefold()] > 1:
                raise InputError(
                    f"the DuckDB relation has two columns of the same name: {name!r}",
                    "give each column its own name: SELECT … AS …",
                )
        return rows

    @classmethod
    def of_files(cls, files: ParquetFiles) -> DuckRows:
        """Open Parquet files of the same types: DuckDB casts all to the types of the first."""
        duckdb = import_library("duckdb", f"reading {files.shown} with DuckDB")
        # The statistics in Parquet files ignore NaN; DuckDB would infer that there is none.
        query = f"FROM read_parquet(?, hive_partitioning={bool(files.keys)}, can_have_nan=true)"
        with reading_rows(files.shown):
            connection = duckdb.connect()
            connection.execute("SET enable_progress_bar = false")  # keep standard output clean
            connection.execute("SET TimeZone = 'UTC'")  # not that of this computer
            # Prefetching holds whole groups of rows in memory, and costs more time than it saves.
            connection.execute("SET disable_parquet_prefetching = true")
            # The other half of the processors is left for summing the rows.
            connection.execute(f"SET threads = {max(1, (os.cpu_count() or 1) // 2)}")
            relation = connection.sql(query, params=[files.paths])
            # The columns of partitions come last, including those of folders above the one given.
            own = [*relation.columns[: len(files.schema.names)], *files.keys]
            return cls(files.columns, relation.project(", ".join(map(_quoted, own))), files.shown)

    def count(self) -> int:
        """Return the number of rows."""
        with reading_rows(self.shown):
            return int(self.relation.aggregate("count(*)").fetchall()[0][0])

    def read(self, columns: Sequence[str]) -> Any:
        """Return some columns of all rows as an Arrow table."""
        with reading_rows(self.shown):
            return self._selected(columns).to_arrow_table().rename_columns(list(columns))

    def map(self, columns: Sequence[str], work: Work[T]) -> Iterator[T]:
        """Yield the result of a work for each batch of rows, in order."""
        return map_batches(self._batches(columns), work)

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415

        with reading_rows(self.shown):
            for batch in self._selected(columns).to_arrow_reader(BATCH_ROWS):
                yield pa.Table.from_batches([batch]).rename_columns(list(columns))

    def _selected(self, columns: Sequence[str]) -> Any:
        own = self.relation.columns
        quoted = [_quoted(own[self.columns.index(name)]) for name in columns]
        # c0, c1, … are different names for DuckDB even if those of the columns are not.
        return self.relation.project(", ".join(f"{name} AS c{k}" for k, name in enumerate(quoted)))


def _quoted(name: str) -> str:
    return f'"{name.replace(chr(34), 2 * chr(34))}"'
