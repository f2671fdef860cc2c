"""Rows that PyArrow reads: datasets of files in any format that it knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from varcal.engines._lazy import BATCH_ROWS, T, Work, map_batches


@dataclass(frozen=True, eq=False)
class ArrowRows:
    """The rows of a PyArrow dataset.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns.
    dataset : pyarrow.dataset.Dataset
        The rows.
    """

    columns: tuple[str, ...]
    dataset: Any

    engine: ClassVar[str] = "pyarrow"
    backend: ClassVar[str | None] = "pyarrow"
    counted: ClassVar[bool] = True

    @classmethod
    def of(cls, dataset: Any) -> ArrowRows:
        """Wrap a dataset."""
        return cls(tuple(dataset.schema.names), dataset)

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.dataset.count_rows())

    def read(self, columns: Sequence[str]) -> Any:
        """Return some columns of all rows as an Arrow table."""
        return self.dataset.to_table(columns=list(columns))

    def map(self, columns: Sequence[str], work: Work[T]) -> Iterator[T]:
        """Yield what a work returns for each batch of rows, in their order."""
        return map_batches(self._batches(columns), work)

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415
        from pyarrow import dataset as ds  # noqa: PLC0415

        # Reading far ahead would fill memory, up to whole files, without being faster.
        how: dict[str, Any] = {"batch_readahead": 4, "fragment_readahead": 1}
        if isinstance(getattr(self.dataset, "format", None), ds.ParquetFileFormat):
            how["fragment_scan_options"] = ds.ParquetFragmentScanOptions(pre_buffer=False)
        scanner = self.dataset.scanner(columns=list(columns), batch_size=BATCH_ROWS, **how)
        for batch in scanner.to_batches():
            yield pa.Table.from_batches([batch])
