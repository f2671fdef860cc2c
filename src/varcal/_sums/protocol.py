"""The protocol of lazy engines: rows that are not in memory, processed in batches.

An engine implements `LazyRows`. It names its columns, counts its rows, reads some columns
completely (used only if there are few rows), and maps a *work* over its rows. A work is a callable
``work(frame, start)``. Its first argument is an eager frame with the requested columns, from any
library that narwhals supports. The second is a number that is unique to the batch: that of its
first row if the engine keeps the order of rows (`row_numbers_known`). The result is small.

Works are frozen dataclasses of plain values and arrays, so that they can be pickled and sent to
other processes. Audits use two of them, `Scan` and `Tally` of `varcal._sums`, whose results can
be added with ``+`` in any grouping.

An engine that reads rows in this process passes its batches to `map_batches`, which spreads them
over threads and yields the results in the order of the rows. Spark pickles the work and sends it to
its workers, which may add up their own results. If the results are plain sums (`AddedWork`), Spark
adds them up as well.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Condition
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from narwhals import dependencies as libraries
from numpy.typing import NDArray

from varcal._input.variables import arrow_numbers
from varcal.exceptions import InputError

T = TypeVar("T")
Work = Callable[[Any, int], T]

#: Rows per batch: a megabyte per column of floats.
BATCH_ROWS = 1 << 17
#: Up to this many rows, rows are read into memory.
FEW_ROWS = 1_000_000
#: The same for the number of values in the requested columns (400 MB of floats).
FEW_VALUES = 50_000_000
#: Upper limit of threads: more of them wait for the reader and for each other.
_MOST_THREADS = 4


class LazyRows(Protocol):
    """Rows that an engine holds."""

    @property
    def engine(self) -> str:
        """The name of the engine in results."""

    @property
    def backend(self) -> str | None:
        """The library of the frames that results return."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, as the user sees them."""

    @property
    def row_numbers_known(self) -> bool:
        """Whether `start` is the number of a row, so that messages can name rows."""

    def count(self) -> int:
        """Return the number of rows."""

    def read(self, columns: Sequence[str]) -> Any:
        """Return some columns of all rows as an eager frame."""

    def map(self, columns: Sequence[str], work: Work[T]) -> Iterator[T]:
        """Yield the result of a work for each batch of rows."""


@runtime_checkable
class AddedWork(Protocol[T]):
    """A work whose results are arrays of sums, which can be added outside of it."""

    @property
    def width(self) -> int:
        """The number of sums per cell."""

    def __call__(self, frame: Any, start: int) -> T:
        """Return the result for a batch."""

    def parts(self, frame: Any, start: int) -> Iterator[NDArray[Any]]:
        """Yield the result for a batch part by part; parts missing at the end are 0."""

    def no_parts(self) -> list[NDArray[Any]]:
        """Return the parts of the result for no rows."""

    def of_parts(self, parts: Sequence[NDArray[Any]]) -> T:
        """Return the result that consists of these parts."""

    def cells(self, answer: T) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the positions and the sums, one row per cell, of the cells that are not empty."""

    def of_cells(self, place: NDArray[np.int64], sums: NDArray[np.float64]) -> T:
        """Return the result that consists of these cells."""


def fits_in_memory(n_rows: int, n_columns: int) -> bool:
    """Tell whether there are few enough rows to read them into memory."""
    return n_rows <= FEW_ROWS and n_rows * n_columns <= FEW_VALUES


def map_batches(batches: Iterable[Any], work: Work[T]) -> Iterator[T]:
    """Process batches in threads, a few at a time, and yield the results in order.

    The results of an `AddedWork` are added up, and only their sum is yielded.

    Parameters
    ----------
    batches : iterable of frames
        The rows.
    work : callable
        Called with each batch and the number of its first row.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batches = [pa.table({"x": [1, 2]}), pa.table({"x": [3]})]
    >>> list(map_batches(batches, lambda frame, start: (start, frame.num_rows)))
    [(0, 2), (2, 1)]
    """
    if isinstance(work, AddedWork):
        total = _Total(work)
        for _ in _mapped(batches, total.add):
            pass
        yield work.of_parts(total.parts)
    else:
        yield from _mapped(batches, lambda batch, start, _: work(batch, start))


def _mapped(batches: Iterable[Any], work: Callable[[Any, int, int], T]) -> Iterator[T]:
    """Call ``work(batch, first_row, number_of_batch)`` in threads; yield the results in order."""
    threads = min(os.cpu_count() or 1, _MOST_THREADS)
    start = number = 0
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for batch in batches:
                n_rows = len(batch)
                if not n_rows:
                    continue
                waiting.append(pool.submit(work, batch, start, number))
                start, number = start + n_rows, number + 1
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


class _Total:
    """A sum to which threads add the results of batches, part by part.

    No batch has to keep a complete result of its own. For each part, batches are added in their
    order, so that the sums are the same to the bit whichever thread is faster. Threads start
    batches in that order as well, so the batch that others wait for is always being processed.
    """

    def __init__(self, work: AddedWork[Any]) -> None:
        self.work = work
        self.parts = work.no_parts()
        self._added = [0] * len(self.parts)
        self._failed: float = float("inf")
        self._turn = Condition()

    def add(self, batch: Any, start: int, number: int) -> None:
        """Add a batch."""
        try:
            parts = self.work.parts(batch, start)
            for k in range(len(self.parts)):
                part = next(parts, None)
                with self._turn:
                    self._turn.wait_for(lambda k=k: self._is_turn(number, k))  # type: ignore[misc]
                    if self._failed < number:
                        return
                if part is not None:
                    self.parts[k] += part
                with self._turn:
                    self._added[k] += 1
                    self._turn.notify_all()
        except BaseException:
            with self._turn:
                self._failed = min(self._failed, number)
                self._turn.notify_all()
            raise

    def _is_turn(self, number: int, k: int) -> bool:
        return self._added[k] == number or self._failed < number


#: For each library, the base class of the errors that it raises for data, files and queries.
_BASE_ERRORS = {
    "duckdb": "Error",
    "pyarrow": "ArrowException",
    "polars.exceptions": "PolarsError",
}


@contextmanager
def reading_rows(shown: str) -> Iterator[None]:
    """Turn the errors of a reader into an `InputError` that names the rows.

    Parameters
    ----------
    shown : str
        The name of the rows in the message.

    Examples
    --------
    >>> with reading_rows("rows.parquet"):
    ...     raise OSError(5, "Input/output error")
    Traceback (most recent call last):
    varcal.exceptions.InputError: cannot read rows.parquet: Input/output error
    hint: check that the files are complete, and that the query runs on its own
    """
    try:
        yield
    except _base_errors() as error:
        reason = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
        raise InputError(
            f"cannot read {shown}: {reason.splitlines()[0]}",
            "check that the files are complete, and that the query runs on its own",
        ) from error


def _base_errors() -> tuple[type[Exception], ...]:
    """Return the errors of the operating system and of those libraries that are loaded."""
    loaded = [
        getattr(sys.modules[library], name)
        for library, name in _BASE_ERRORS.items()
        if hasattr(sys.modules.get(library), name)
    ]
    return (OSError, *loaded)


def batch_columns(frame: Any) -> Any:
    """Return a PyArrow table or a polars frame as a dict of columns, and anything else as it is.

    Integers and floats without nulls become arrays, without a copy where they are in one chunk;
    other columns stay what they are. Reading arrays costs much less than reading series, which
    matters for thousands of batches.

    Examples
    --------
    >>> import pyarrow as pa
    >>> batch_columns(pa.table({"x": [1.5, 2.5]}))
    {'x': array([1.5, 2.5])}
    """
    if libraries.is_pyarrow_table(frame):
        return dict(zip(frame.column_names, map(_from_arrow, frame.columns), strict=True))
    if libraries.is_polars_dataframe(frame):
        return {column.name: _from_polars(column) for column in frame.get_columns()}
    return frame


def _from_arrow(column: Any) -> Any:
    from pyarrow import types  # noqa: PLC0415

    is_plain = types.is_integer(column.type) or types.is_floating(column.type)
    return arrow_numbers(column) if is_plain and not column.null_count else column


def _from_polars(column: Any) -> Any:
    is_plain = column.dtype.is_integer() or column.dtype.is_float()
    is_wide = str(column.dtype) in ("Int128", "UInt128")
    return column if not is_plain or is_wide or column.null_count() else column.to_numpy()
