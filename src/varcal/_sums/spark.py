"""Rows of Spark data frames, classic and Spark Connect, processed on Spark's workers."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from itertools import groupby
from operator import add, itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from varcal._sums.sources import BATCH_ROWS, LazyRows, T, Work
from varcal._sums.stats import MOST_FIELDS
from varcal._sums.stream import on_checked
from varcal.exceptions import (
    InputError,
    MissingDependencyError,
    import_library,
    rows_numbered_from,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from varcal._sums.plan import BinPlan, Collected

#: Pickled results are sent in rows of at most this size: Spark limits the size of messages.
_PIECE_BYTES = 1 << 22
#: Cells of sums per Arrow batch that a worker sends.
_SENT_ROWS = 1 << 15
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
        worker = Worker(tuple(columns), partial(_added, work=work), _pieces)
        schema = "part long, piece long, content binary, fault string"
        sent = self._selected(columns).mapInArrow(worker, schema)
        with _explain_missing_varcal():
            found = sent.toArrow().sort_by([("part", "ascending"), ("piece", "ascending")])
        _raise_faults(found.column("fault"))
        pieces = zip(found.column("part").to_pylist(), found.column("content"), strict=True)
        for _, group in groupby(pieces, key=itemgetter(0)):
            yield pickle.loads(b"".join(piece.as_py() for _, piece in group))

    def summed(self, plan: BinPlan, *, moments: bool) -> Collected:
        """Let Spark add up the sums of all partitions, cell by cell."""
        names = [f"f{k}" for k in range(MOST_FIELDS)]
        schema = f"place long, {', '.join(f'{name} double' for name in names)}, fault string"
        worker = Worker(plan.roles.columns, partial(_summed, plan=plan, moments=moments), _cells)
        sent = self._selected(worker.columns).mapInArrow(worker, schema)
        with _explain_missing_varcal():
            found = (
                sent.groupBy("place").agg({"fault": "min"} | dict.fromkeys(names, "sum")).toArrow()
            )
        _raise_faults(found.column("min(fault)"))
        values = [found.column(f"sum({name})").to_numpy() for name in names]
        return plan.of_cells(found.column("place").to_numpy(), np.column_stack(values))

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
    """The function that a worker of Spark runs on a partition.

    Attributes
    ----------
    columns : tuple of str
        The names of the columns, as the user sees them.
    result : callable
        From batches, with their numbers, to the result of the partition.
    sent : callable
        From the result, or None, and the number of the partition to the columns that are sent,
        without the last: an error is sent as JSON.
    """

    columns: tuple[str, ...]
    result: Callable[[Iterator[tuple[Any, int]]], Any]
    sent: Callable[[Any, int], Iterator[dict[str, pa.Array]]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Process the rows of one partition."""
        import pyarrow as pa  # noqa: PLC0415

        part, result, fault = _partition(), None, None
        try:
            with rows_numbered_from(None):
                result = self.result(self._numbered(batches, part * _PARTITION_ROWS))
        except InputError as error:
            # Spark would wrap an error raised here into a long trace of Java and Python.
            fault = json.dumps([error.message, error.hint, error.argument])
        if result is not None or fault is not None:
            for sent in self.sent(result, part):
                n = len(next(iter(sent.values())))
                yield pa.record_batch(sent | {"fault": pa.array([fault] * n, pa.string())})

    def _numbered(
        self, batches: Iterable[pa.RecordBatch], start: int
    ) -> Iterator[tuple[pa.Table, int]]:
        for table in merge_batches(batches):
            yield table.rename_columns(list(self.columns)), start
            start += len(table)


def _added(batches: Iterator[tuple[Any, int]], *, work: Work[Any]) -> Any:
    """Return the sum of the results of a work, None without batches."""
    results = [work(frame, start) for frame, start in batches]
    return reduce(add, results) if results else None


def _pieces(result: Any, part: int) -> Iterator[dict[str, pa.Array]]:
    """Send a result as pieces of its pickle."""
    import pyarrow as pa  # noqa: PLC0415

    content = b"" if result is None else pickle.dumps(result)
    for k in range(0, max(len(content), 1), _PIECE_BYTES):
        piece = pa.array([content[k : k + _PIECE_BYTES]], pa.binary())
        yield {"part": pa.array([part]), "piece": pa.array([k]), "content": piece}


def _summed(
    batches: Iterator[tuple[Any, int]], *, plan: BinPlan, moments: bool
) -> Collected | None:
    """Return the filled tables of a plan, None without batches."""
    total = None
    for frame, start in batches:
        rows = on_checked(frame, start, roles=plan.roles, part=plan.part, work=plan.checked)
        total = (total or plan.empty()).with_rows(rows, moments=moments)
    return total


def _cells(result: Collected | None, part: int) -> Iterator[dict[str, pa.Array]]:
    """Send the cells of tables, which Spark can add up."""
    import pyarrow as pa  # noqa: PLC0415

    none = np.array([-1]), np.zeros((1, MOST_FIELDS))
    place, values = none if result is None else result.cells()
    for start in range(0, len(place), _SENT_ROWS):
        rows = slice(start, start + _SENT_ROWS)
        cells = {f"f{k}": pa.array(column) for k, column in enumerate(values[rows].T)}
        yield {"place": pa.array(place[rows])} | cells


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


@contextmanager
def _explain_missing_varcal() -> Iterator[None]:
    """Turn a failed import of varcal on a worker into an error that says what to install."""
    try:
        yield
    except Exception as error:
        if "No module named 'varcal" not in str(error):
            raise
        raise MissingDependencyError(
            "varcal is not installed in the Python of Spark's workers",
            "install it on every node, for the Python that PYSPARK_PYTHON names",
        ) from error
