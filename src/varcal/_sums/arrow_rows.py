"""Rows read by PyArrow: datasets of files in any format that it supports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from varcal._sums.parquet_files import ParquetFiles
from varcal._sums.protocol import BATCH_ROWS, T, Work, map_batches, reading_rows

#: Batches and files that PyArrow reads in advance. Its defaults (16 and 4) can hold whole files in
#: memory without being faster.
_BATCH_READAHEAD = 4
_FRAGMENT_READAHEAD = 1


@dataclass(frozen=True, eq=False)
class ArrowRows:
    """The rows of a PyArrow dataset.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns.
    dataset : pyarrow.dataset.Dataset
        The rows.
    shown : str
        The name of the dataset in messages.
    """

    columns: tuple[str, ...]
    dataset: Any
    shown: str = "the PyArrow dataset"

    engine: ClassVar[str] = "pyarrow"
    backend: ClassVar[str | None] = "pyarrow"
    row_numbers_known: ClassVar[bool] = True

    @classmethod
    def of(cls, dataset: Any) -> ArrowRows:
        """Wrap a dataset."""
        return cls(tuple(dataset.schema.names), dataset)

    @classmethod
    def of_files(cls, files: ParquetFiles) -> ArrowRows:
        """Open Parquet files; columns are cast to types that fit all values."""
        from pyarrow import dataset  # noqa: PLC0415

        options: dict[str, Any] = {"format": "parquet"}
        if files.keys:
            options |= {"partitioning": "hive", "partition_base_dir": files.base or None}
        with reading_rows(files.shown):
            inferred = dataset.dataset(files.paths, **options).schema
            schema = files.schema
            for key in files.keys:
                schema = schema.append(inferred.field(key))
            opened = dataset.dataset(files.paths, schema=schema, **options)
        return cls(files.columns, opened, files.shown)

    def count(self) -> int:
        """Return the number of rows."""
        with reading_rows(self.shown):
            return int(self.dataset.count_rows())

    def read(self, columns: Sequence[str]) -> Any:
        """Return some columns of all rows as an Arrow table."""
        with reading_rows(self.shown):
            return self.dataset.to_table(columns=list(columns))

    def select(self, columns: Sequence[str]) -> ArrowRows:
        """Return the same rows with some of their columns."""
        return replace(self, columns=tuple(columns))

    def map(self, columns: Sequence[str], work: Work[T]) -> Iterator[T]:
        """Yield the result of a work for each batch of rows, in order."""
        return map_batches(self._batches(columns), work)

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import dataset as ds  # noqa: PLC0415

        options: dict[str, Any] = {
            "batch_readahead": _BATCH_READAHEAD,
            "fragment_readahead": _FRAGMENT_READAHEAD,
        }
        if isinstance(getattr(self.dataset, "format", None), ds.ParquetFileFormat):
            options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(pre_buffer=False)
        with reading_rows(self.shown):
            scanner = self.dataset.scanner(columns=list(columns), batch_size=BATCH_ROWS, **options)
            for batch in scanner.to_batches():
                yield pa.Table.from_batches([batch])
