"""What a user is told if a file cannot be read."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from varcal._files.source import Source
from varcal.exceptions import InputError, import_library


@contextmanager
def reading(source: Source) -> Iterator[None]:
    """Turn the errors of a reader into an `InputError` that names the file."""
    pa = import_library("pyarrow", f"reading {source.shown}")
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise InputError(
            f"cannot read {source.shown} as {source.format}: {reason}",
            _hint(source, reason),
            settings={"encoding": ..., "sep": ..., "format": ...},
        ) from None


def _hint(source: Source, reason: str) -> str:
    """Say what to do about an error of a reader."""
    if "UTF8" in reason or "codec" in reason:
        return "the file is not in one encoding throughout: convert it, or pass {encoding}"
    if "Empty" in reason:
        return "the file has no rows"
    if "columns, got" in reason:
        return (
            "fields that contain the separator must be in quotes, also numbers with a decimal "
            "comma; another separator is chosen with {sep}"
        )
    if source.format in ("parquet", "arrow"):
        return "the file is truncated or has another format: write it again"
    if source.format == "jsonl":
        return "JSON lines have one object per line"
    return "check that the file is complete, and that its format is right ({format})"
