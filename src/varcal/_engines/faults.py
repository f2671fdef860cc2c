"""What goes wrong while an engine reads is told as what it is: rows that cannot be had."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from varcal.exceptions import InputError

# By library, the root of the errors that it raises for data, files and queries.
_ROOTS = {
    "duckdb": "Error",
    "pyarrow": "ArrowException",
    "polars.exceptions": "PolarsError",
}


@contextmanager
def reading_rows(shown: str) -> Iterator[None]:
    """Turn what a reader raises into a message that names the rows.

    >>> with reading_rows("rows.parquet"):
    ...     raise OSError(5, "Input/output error")
    Traceback (most recent call last):
    varcal.exceptions.InputError: cannot read rows.parquet: Input/output error
    hint: check that the files are whole, and that the query runs by itself
    """
    try:
        yield
    except _roots() as error:
        said = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
        raise InputError(
            f"cannot read {shown}: {said.splitlines()[0]}",
            "check that the files are whole, and that the query runs by itself",
        ) from error


def _roots() -> tuple[type[Exception], ...]:
    """Return the errors of the system and of the libraries that are loaded."""
    loaded = [
        getattr(sys.modules[library], root)
        for library, root in _ROOTS.items()
        if hasattr(sys.modules.get(library), root)
    ]
    return (OSError, *loaded)
