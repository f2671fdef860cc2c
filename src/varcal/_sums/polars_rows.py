"""Rows read by polars: lazy frames, with its streaming engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from varcal._sums.protocol import BATCH_ROWS, T, Work, map_batches, reading_rows
from varcal.exceptions import MissingDependencyError

#: The name of the rows in messages.
_SHOWN = "the polars LazyFrame"


@dataclass(frozen=True, eq=False)
class PolarsRows:
    """The rows of a polars LazyFrame.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns.
    frame : polars.LazyFrame
        The rows.
    """

    columns: tuple[str, ...]
    frame: Any

    engine: ClassVar[str] = "polars"
    backend: ClassVar[str | None] = "polars"
    row_numbers_known: ClassVar[bool] = True

    @classmethod
    def of(cls, frame: Any) -> PolarsRows:
        """Wrap a lazy frame."""
        if not hasattr(frame, "collect_batches"):
            raise MissingDependencyError(
                "reading a lazy frame in batches needs a newer version of polars",
                "pip install -U polars",
            )
        with reading_rows(_SHOWN):
            return cls(tuple(frame.collect_schema().names()), frame)

    def count(self) -> int:
        """Return the number of rows."""
        import polars as pl  # noqa: PLC0415

        with reading_rows(_SHOWN):
            return int(self.frame.select(pl.len()).collect(engine="streaming").item())

    def read(self, columns: Sequence[str]) -> Any:
        """Return some columns of all rows as an eager frame."""
        with reading_rows(_SHOWN):
            return self._selected(columns).collect(engine="streaming")

    def map(self, columns: Sequence[str], work: Work[T]) -> Iterator[T]:
        """Yield the result of a work for each batch of rows, in order."""
        return map_batches(self._batches(columns), work)

    def _batches(self, columns: Sequence[str]) -> Iterator[Any]:
        with reading_rows(_SHOWN):
            yield from self._selected(columns).collect_batches(chunk_size=BATCH_ROWS)

    def _selected(self, columns: Sequence[str]) -> Any:
        from polars import selectors  # noqa: PLC0415

        # select() would read a name such as "*" or "^a$" as a pattern.
        return self.frame.select(selectors.by_name(*columns))
