"""Rows that DuckDB reads: Parquet files, hive-partitioned folders of them, and relations."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from varcal._sources import Source, column_names
from varcal.engines._lazy import BATCH_ROWS, T, Work, map_batches
from varcal.exceptions import InputError, MissingDependencyError


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

    def __post_init__(self) -> None:
        if not hasattr(self.relation, "to_arrow_reader"):
            raise MissingDependencyError(
                "reading a relation in batches needs a newer duckdb", "pip install -U duckdb"
            )

    @classmethod
    def of_relation(cls, relation: Any) -> DuckRows:
        """Wrap a relation."""
        return cls(tuple(relation.columns), relation)

    @classmethod
    def of_files(cls, files: Sequence[Source]) -> DuckRows:
        """Open Parquet files."""
        shown = files[0].shown
        try:
            import duckdb  # noqa: PLC0415  loads when first used
        except ModuleNotFoundError:
            raise MissingDependencyError(
                f"reading {shown} in place needs duckdb",
                "pip install 'varcal[duckdb]', or give data=pyarrow.dataset.dataset(path)",
            ) from None
        paths = [str(source.path) for source in files]
        # Folders such as day=3 give more columns.
        hive = all("=" in source.path.parent.name for source in files)
        # Statistics in Parquet leave NaN out, and DuckDB would believe that there is none.
        query = f"FROM read_parquet(?, hive_partitioning={hive}, can_have_nan=true)"
        try:
            connection = duckdb.connect()
            connection.execute("SET enable_progress_bar = false")  # standard output is the user's
            # The other half of the processors sums up what is read.
            connection.execute(f"SET threads = {max(1, (os.cpu_count() or 1) // 2)}")
            relation = connection.sql(query, params=[paths])
            own = relation.columns
        except duckdb.Error as error:
            raise InputError(
                f"cannot read {shown}: {str(error).splitlines()[0]}",
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
