"""Errors raised while an engine reads rows, turned into `InputError`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from varcal.exceptions import InputError

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
