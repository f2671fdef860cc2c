"""The protocol of lazy engines: rows that are not in memory, processed in batches.

An engine implements `LazyRows`. It names its columns, counts its rows, reads some columns
completely (used only if there are few rows), and maps a *work* over its rows. A work is a callable
``work(frame, start)``. Its first argument is an eager frame with the requested columns, from any
library that narwhals supports. The second is a number that is unique to the batch: that of its
first row if the engine keeps the order of rows (`row_numbers_known`). The result is small.

Works are frozen dataclasses of plain values and arrays, so that they can be pickled and sent to
other processes. Audits use two of them, `Scan` and `Tally` of `varcal._evidence`, whose results can
be added with ``+`` in any grouping.

An engine that reads rows in this process passes its batches to `map_batches`, which spreads them
over threads and yields the results in the order of the rows. Spark pickles the work and sends it to
its workers, which may add up their own results. If the results are plain sums (`AddedWork`), Spark
adds them up as well.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Condition
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

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
