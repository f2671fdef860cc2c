"""The seam of lazy engines: rows that are not in memory, worked on in batches.

A `LazyRows` is all that an engine has to be. It names its columns, counts its rows, reads a few
columns whole (only asked of it where they are few rows), and maps a *work* over its rows:
``work(frame, start)`` is called with an eager frame of the asked columns, of any library that
narwhals knows, under the names that were asked for, and with a number that no other batch has
(that of its first row where the engine keeps the order of rows, `counted`). It returns something
small. Works are frozen dataclasses of plain values and arrays, so that they can be pickled to
other processes; `Scan` and `Tally` of `varcal._evidence` are the two that audits use, and their
answers are summed with ``+`` in any grouping.

An engine that runs where the rows are (Spark) pickles the work to its workers, which may add up
their answers, and yields what they return; where answers are plain sums (`AddedWork`) it adds
them up itself; one that reads here gives its batches to `map_batches`, which spreads them over
threads and yields answers in the order of the rows.
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

#: Rows that are handed over at a time.
BATCH_ROWS = 1 << 17
#: Up to this many rows, and values in the asked columns, rows are read into memory.
FEW_ROWS = 1_000_000
FEW_VALUES = 50_000_000
# More threads than this only wait for each other.
_MOST_THREADS = 4


class LazyRows(Protocol):
    """Rows that an engine holds."""

    @property
    def engine(self) -> str:
        """How results call it."""

    @property
    def backend(self) -> str | None:
        """The frame library that results answer in."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, as the user knows them."""

    @property
    def counted(self) -> bool:
        """Whether `start` is the number of a row, which messages may then tell."""

    def count(self) -> int:
        """Return the number of rows."""

    def read(self, columns: Sequence[str]) -> Any:
        """Return some columns of all rows as an eager frame."""

    def map(self, columns: Sequence[str], work: Work[T]) -> Iterator[T]:
        """Yield what a work returns for each batch of rows."""


@runtime_checkable
class AddedWork(Protocol[T]):
    """A work whose answers are sums of numbers, which anyone can add up."""

    @property
    def width(self) -> int:
        """The number of sums in a cell."""

    def __call__(self, frame: Any, start: int) -> T:
        """Work on a batch."""

    def parts(self, frame: Any, start: int) -> Iterator[NDArray[Any]]:
        """Work on a batch, and yield its answer part by part; those left out at the end are 0."""

    def no_parts(self) -> list[NDArray[Any]]:
        """Return the parts of an answer about no rows."""

    def of_parts(self, parts: Sequence[NDArray[Any]]) -> T:
        """Return the answer that such parts make up."""

    def cells(self, answer: T) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the places of the cells that are not empty, and their sums, a row each."""

    def of_cells(self, place: NDArray[np.int64], sums: NDArray[np.float64]) -> T:
        """Return the answer that such cells are of."""


def is_few(n_rows: int, n_columns: int) -> bool:
    """Tell whether rows are few enough to be read whole."""
    return n_rows <= FEW_ROWS and n_rows * n_columns <= FEW_VALUES


def map_batches(batches: Iterable[Any], work: Work[T]) -> Iterator[T]:
    """Work on batches in threads, a few at a time, and yield answers in their order.

    The answers of an `AddedWork` are added up on the way, and one is yielded.

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
    """Call work(batch, first row, number) in threads."""
    threads = min(os.cpu_count() or 1, _MOST_THREADS)
    start = number = 0
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for batch in batches:
                many = len(batch)
                if not many:
                    continue
                waiting.append(pool.submit(work, batch, start, number))
                start, number = start + many, number + 1
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for one in waiting:
                one.cancel()


class _Total:
    """One answer that threads add to, part by part, so that no batch keeps its own.

    Batches take turns in their order at each part, and the sums are the same to the bit whoever
    is faster. Threads begin batches in that order, so the one that is waited for is at work.
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
            found = self.work.parts(batch, start)
            for k in range(len(self.parts)):
                part = next(found, None)
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
