"""Progress of long work on stderr, shown only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


def progress(items: Sequence[T], what: str, *, n_rows: int = 0) -> Iterator[T]:
    """Yield items, with a progress bar if stderr is a terminal and the work is long.

    Parameters
    ----------
    items : sequence
        The items to yield.
    what : str
        The text beside the bar.
    n_rows : int
        The number of rows per item; no bar is shown for less than two million rows in all.
    """
    if not sys.stderr.isatty() or n_rows * len(items) < 2_000_000:
        yield from items
        return
    from rich.console import Console  # noqa: PLC0415  rich loads when first needed
    from rich.progress import track  # noqa: PLC0415

    console = Console(stderr=True)
    yield from track(items, description=what, console=console, transient=True)


def counted(items: Iterable[T], what: str, rows: Callable[[T], int]) -> Iterator[T]:
    """Yield an unknown number of items, and count their rows if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console  # noqa: PLC0415  rich loads when first needed

    total = 0
    with Console(stderr=True).status(what) as status:
        for item in items:
            yield item
            total += rows(item)
            status.update(f"{what}: {total:,} rows")


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on a terminal what is being done and for how long; for work without steps."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console  # noqa: PLC0415  rich loads when first needed
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        shown.add_task(what, total=None)
        yield
