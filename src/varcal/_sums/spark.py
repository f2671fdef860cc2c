"""Rows of Spark data frames, classic and Spark Connect, processed on Spark's workers."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

from varcal._sums.sources import BATCH_ROWS, LazyRows, T, Work
from varcal.exceptions import (
    InputError,
    import_library,
    rows_numbered_from,
)

if TYPE_CHECKING:
    import pyarrow as pa

#: Pickled results are sent in rows of at most this size: Spark limits the size of messages.
_PIECE_BYTES = 1 << 22
#: A number above that of the rows of any partition. The first row of a batch in partition k has the
#: number k · _PARTITION_ROWS + its position, which is unique.
_PARTITION_ROWS = 1 << 40


@dataclass(frozen=True, eq=False)
class SparkRows(LazyRows):
    """The rows of a Spark data frame.

    Works are sent to the workers of Spark, which therefore need varcal. Spark treats names that
    differ only by case as equal, and gives dots and backticks in names a meaning. Columns are
    therefore found by position. Only methods of the frame are used: the functions of
    ``pyspark.sql`` look at the process, not at the frame, to detect Spark Connect.
    """

    columns: tuple[str, ...]
    frame: Any

    engine: ClassVar[str] = "spark"
    row_numbers_known: ClassVar[bool] = False

    @classmethod
    def of(cls, frame: Any) -> SparkRows:
        """Wrap a data frame."""
        import_library("pyarrow", "reading a Spark data frame")
        return cls(tuple(frame.columns), frame)

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.frame.count())

    def read(self, columns: Sequence[str]) -> Any:
        """Return some columns of all rows as an Arrow table."""
        return self._selected(columns).toArrow().rename_columns(list(columns))

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Rows stay where they are: works are sent to them."""
        raise NotImplementedError

    def map(self, columns: Sequence[str], work: Work[T]) -> Iterator[T]:
        """Yield the result of a work for each partition, in order; those of batches are added."""
        worker = Worker(tuple(columns), work)
        schema = "part long, piece long, content binary, fault string"
        sent = self._selected(columns).mapInArrow(worker, schema)
        found = sent.toArrow().sort_by([("part", "ascending"), ("piece", "ascending")])
        _raise_faults(found.column("fault"))
        pieces = zip(found.column("part").to_pylist(), found.column("content"), strict=True)
        for _, group in groupby(pieces, key=itemgetter(0)):
            yield pickle.loads(b"".join(piece.as_py() for _, piece in group))

    def renamed(self) -> Any:
        """Return the frame with its columns renamed to c0, c1, …."""
        return self.frame.toDF(*(f"c{k}" for k in range(len(self.columns))))

    def check_single(self, columns: Sequence[str]) -> None:
        """Raise an error if two columns have the same name, as they may after a join."""
        for name in columns:
            if self.columns.count(name) > 1:
                raise InputError(
                    f"data has two columns of the same name: {name!r}",
                    "rename one of them",
                    argument="data",
                )

    def _selected(self, columns: Sequence[str]) -> Any:
        self.check_single(columns)
        return self.renamed().select([f"c{self.columns.index(name)}" for name in columns])


@dataclass(frozen=True)
class Worker:
    """The function that a worker of Spark runs on a partition: it adds up the results of a work.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns, as the user sees them.
    work : callable
        What is done with each batch.
    """

    columns: tuple[str, ...]
    work: Work[Any]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process the rows of one partition; send the pickled sum, or an error as JSON."""
        import pyarrow as pa  # noqa: PLC0415

        part, total, fault = _partition(), None, None
        start = part * _PARTITION_ROWS
        try:
            with rows_numbered_from(None):
                for table in merge_batches(batches):
                    result = self.work(table.rename_columns(list(self.columns)), start)
                    total = result if total is None else total + result
                    start += len(table)
        except InputError as error:
            # Spark would wrap an error raised here into a long trace of Java and Python.
            fault = json.dumps([error.message, error.hint, error.argument])
        if total is None and fault is None:
            return
        content = pickle.dumps(total)
        for k in range(0, len(content), _PIECE_BYTES):
            piece = {"part": [part], "piece": [k], "content": [content[k : k + _PIECE_BYTES]]}
            yield pa.RecordBatch.from_pydict(piece | {"fault": [fault]}, schema=_sent_schema())


def _sent_schema() -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415

    number, text = pa.int64(), pa.string()
    return pa.schema({"part": number, "piece": number, "content": pa.binary(), "fault": text})


def merge_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Merge small batches into tables of about `BATCH_ROWS` rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"x": [1, 2]})
    >>> [len(table) for table in merge_batches([batch, batch.slice(2), batch])]
    [4]
    """
    import pyarrow as pa  # noqa: PLC0415

    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting += [batch] if len(batch) else []
        if sum(map(len, waiting)) >= BATCH_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _partition() -> int:
    """Return the number of the partition that this worker is processing."""
    from pyspark import TaskContext  # noqa: PLC0415

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _raise_faults(column: Any) -> None:
    """Raise the error that workers reported; of several, the first in alphabetical order."""
    faults = column.drop_null().to_pylist()
    if faults:
        raise InputError(*json.loads(min(faults)))
