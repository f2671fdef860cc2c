"""Rows that Spark holds: data frames, classic and of Spark Connect, worked on where they are."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from varcal._engines.protocol import BATCH_ROWS, AddedWork, T, Work
from varcal.exceptions import InputError, MissingDependencyError

if TYPE_CHECKING:
    import pyarrow as pa

# Longer rows are a burden for Spark, and more than its messages take.
_PIECE_BYTES = 1 << 22
# Rows of sums that are sent at a time.
_SENT_ROWS = 1 << 15
# Batches are numbered by part and row, so that each has its own number.
_PART_ROWS = 1 << 40


@dataclass(frozen=True, eq=False)
class SparkRows:
    """The rows of a Spark data frame.

    Works travel to the workers of Spark, which therefore need varcal. Spark takes names that
    differ by case only for the same, and reads dots and backticks in names as its own signs;
    columns are therefore found by position. Only methods of the frame are used: the functions of
    ``pyspark.sql`` ask the process, not the frame, whether it is of Spark Connect.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns.
    frame : pyspark.sql.DataFrame
        The rows.
    """

    columns: tuple[str, ...]
    frame: Any

    engine: ClassVar[str] = "spark"
    backend: ClassVar[str | None] = "pyarrow"
    counted: ClassVar[bool] = False

    @classmethod
    def of(cls, frame: Any) -> SparkRows:
        """Wrap a data frame."""
        return cls(tuple(frame.columns), frame)

    def count(self) -> int:
        """Return the number of rows."""
        return int(self.frame.count())

    def read(self, columns: Sequence[str]) -> Any:
        """Return some columns of all rows as an Arrow table."""
        return self._selected(columns).toArrow().rename_columns(list(columns))

    def map(self, columns: Sequence[str], work: Work[T]) -> Iterator[T]:
        """Yield what a work returns for each part of the rows, or for all of them together."""
        if isinstance(work, AddedWork):
            yield self._added(columns, work)
        else:
            yield from self._parts(columns, work)

    def renamed(self) -> Any:
        """Return the frame with plain names: c0, c1, …."""
        return self.frame.toDF(*(f"c{k}" for k in range(len(self.columns))))

    def _added(self, columns: Sequence[str], work: AddedWork[T]) -> T:
        """Have Spark add up the sums of all parts."""
        names = [f"f{k}" for k in range(work.width)]
        schema = f"place long, {', '.join(f'{name} double' for name in names)}, fault string"
        sent = self._selected(columns).mapInArrow(SumWorker(tuple(columns), work), schema)
        with _on_workers():
            found = (
                sent.groupBy("place").agg({"fault": "min"} | dict.fromkeys(names, "sum")).toArrow()
            )
        _raise_faults(found.column("min(fault)"))
        values = [found.column(f"sum({name})").to_numpy() for name in names]
        return work.of_cells(found.column("place").to_numpy(), np.column_stack(values))

    def _parts(self, columns: Sequence[str], work: Work[T]) -> Iterator[T]:
        """Bring the answers of all parts here, in their order."""
        schema = "part long, piece long, content binary, fault string"
        sent = self._selected(columns).mapInArrow(PartWorker(tuple(columns), work), schema)
        with _on_workers():
            found = sent.toArrow().sort_by([("part", "ascending"), ("piece", "ascending")])
        _raise_faults(found.column("fault"))
        pieces = zip(found.column("part").to_pylist(), found.column("content"), strict=True)
        for _, held in groupby(pieces, key=itemgetter(0)):
            yield pickle.loads(b"".join(piece.as_py() for _, piece in held))

    def check_single(self, columns: Sequence[str]) -> None:
        """Refuse names that two columns have, as they may after a join."""
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
class PartWorker:
    """What a worker of Spark does with its part of the rows: one answer, in pieces.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns, as the user knows them.
    work : callable
        The work; answers are added up.
    """

    columns: tuple[str, ...]
    work: Any

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work on the rows of one part."""
        import pyarrow as pa  # noqa: PLC0415

        part = _part()
        answer, fault = _answer(self, batches, part)
        content = b"" if answer is None else pickle.dumps(answer)
        names = ["part", "piece", "content", "fault"]
        pieces = [content[k : k + _PIECE_BYTES] for k in range(0, len(content), _PIECE_BYTES)]
        rows: list[tuple[Any, ...]] = [(part, k, each, None) for k, each in enumerate(pieces)]
        rows += [] if fault is None else [(part, 0, b"", fault)]
        types = (pa.int64(), pa.int64(), pa.binary(), pa.string())
        for row in rows:
            columns = [pa.array([each], kind) for each, kind in zip(row, types, strict=True)]
            yield pa.record_batch(columns, names)


@dataclass(frozen=True)
class SumWorker:
    """What a worker of Spark does with its part of the rows: sums that Spark can add up.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns, as the user knows them.
    work : AddedWork
        The work.
    """

    columns: tuple[str, ...]
    work: AddedWork[Any]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work on the rows of one part."""
        import pyarrow as pa  # noqa: PLC0415

        answer, fault = _answer(self, batches, _part())
        names = ["place", *(f"f{k}" for k in range(self.work.width)), "fault"]
        if fault is not None:
            nothing = [pa.nulls(1, pa.float64())] * self.work.width
            yield pa.record_batch([pa.array([-1]), *nothing, pa.array([fault])], names)
        elif answer is not None:
            place, values = self.work.cells(answer)
            for start in range(0, len(place), _SENT_ROWS):
                rows = slice(start, start + _SENT_ROWS)
                cells = [pa.array(column) for column in values[rows].T]
                fault_free = pa.nulls(len(place[rows]), pa.string())
                yield pa.record_batch([pa.array(place[rows]), *cells, fault_free], names)


def _answer(
    worker: PartWorker | SumWorker, batches: Iterable[pa.RecordBatch], part: int
) -> tuple[Any, str | None]:
    """Return the sum of the answers for all rows of a part, and what is wrong with them."""
    start, total = part * _PART_ROWS, None
    try:
        for table in joined(batches):
            answer = worker.work(table.rename_columns(list(worker.columns)), start)
            total = answer if total is None else total + answer
            start += len(table)
    except InputError as error:
        # An error that is raised here would come out as a trace of Java and Python.
        return None, json.dumps([error.message, error.hint, error.argument])
    return total, None


def joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join small batches into tables of about `BATCH_ROWS` rows.

    >>> import pyarrow as pa
    >>> batch = pa.record_batch({"x": [1, 2]})
    >>> [len(table) for table in joined([batch, batch.slice(2), batch])]
    [4]
    """
    import pyarrow as pa  # noqa: PLC0415

    held: list[pa.RecordBatch] = []
    for batch in batches:
        held += [batch] if len(batch) else []
        if sum(map(len, held)) >= BATCH_ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _part() -> int:
    from pyspark import TaskContext  # noqa: PLC0415

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _raise_faults(column: Any) -> None:
    """Raise what workers found wrong; where several did, the first in the order of texts."""
    faults = column.drop_null().to_pylist()
    if faults:
        raise InputError(*json.loads(min(faults)))


@contextmanager
def _on_workers() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        if "No module named 'varcal" not in str(error):
            raise
        raise MissingDependencyError(
            "the Python of Spark's workers has no varcal",
            "install it on every node for the Python that PYSPARK_PYTHON names",
        ) from error
