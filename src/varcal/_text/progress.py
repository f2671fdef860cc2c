"""Progress of long work on stderr, shown only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


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
