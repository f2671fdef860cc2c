"""The files of rows that paths, globs and folders refer to."""

from __future__ import annotations

import glob
import gzip
from collections.abc import Sequence
from itertools import islice
from os import PathLike
from pathlib import Path

from varcal._files._detection.detect import HEAD_BYTES, Detected, detect
from varcal._files.dialect import UNSTATED, Stated
from varcal._files.source import DELIMITERS, FORMATS, TEXT_FORMATS, Source, format_of, reading
from varcal.exceptions import InputError

#: The first bytes of a gzipped file.
GZIP_MARK = b"\x1f\x8b"
#: The most files of one glob; each of them is opened to see how it is written.
MOST_FILES = 100_000


def sources_of(
    source: str | PathLike[str] | Sequence[str | PathLike[str]],
    format: str | None = None,
    stated: Stated = UNSTATED,
) -> tuple[Source, ...]:
    """Return the files that paths and globs refer to; the files of a glob are sorted.

    Parameters
    ----------
    source : path, glob, or a list of them
        The files.
    format : str, optional
        Their format, if the extension does not tell.
    stated : Stated
        What is known about text files; the rest is detected.

    Raises
    ------
    InputError
        If there is no such file, or if it is not certain how it is written.

    Examples
    --------
    >>> sources_of("no/such.csv")
    Traceback (most recent call last):
    varcal.exceptions.InputError: no file 'no/such.csv'
    hint: check the path; a glob such as 'rows/*.parquet' works as well
    """
    given = [source] if isinstance(source, str | PathLike) else list(source)
    if not given:
        raise InputError("no file is given", "give a path, a glob, or a list of them")
    found = []
    for pattern in given:
        if not str(pattern):
            raise InputError("the path is empty", "give a path, a glob, or a list of them")
        if "\0" in str(pattern):
            raise InputError(
                f"{str(pattern)!r} cannot be a path: it has a zero character", "check the path"
            )
        # The name of a file may look like a glob.
        paths = glob.glob(glob.escape(str(pattern)))
        paths = paths or _matches(str(pattern))
        if not paths:
            raise InputError(
                f"no file {str(pattern)!r}",
                "check the path; a glob such as 'rows/*.parquet' works as well",
            )
        for path in paths:
            if Path(path).is_dir():
                raise InputError(f"{path!r} is a folder", f"give its files: '{path}/*.parquet'")
            found.append(source_of(Path(path), format_of(path, format)[0], repr(path), stated))
    return tuple(found)


def _matches(pattern: str) -> list[str]:
    """Return the sorted files of a glob, and stop early where it names a whole disk."""
    found = list(islice(glob.iglob(pattern, recursive=True), MOST_FILES + 1))
    if len(found) > MOST_FILES:
        raise InputError(
            f"the glob {pattern!r} matches more than {MOST_FILES:,} files",
            "give a narrower glob, or several of them in turn",
        )
    return sorted(found)


def source_of(path: Path, format: str, shown: str, stated: Stated = UNSTATED) -> Source:
    """Return a file of a known format, after detecting how it is written."""
    if format not in TEXT_FORMATS:
        return Source(path, format, False, shown)
    with reading(Source(path, format, False, shown)):
        gzipped = is_gzipped(path)
        with gzip.open(path) if gzipped else path.open("rb") as file:
            blocks = iter(lambda: file.read(HEAD_BYTES), b"")
            found: Detected = detect(
                blocks, stated, shown, DELIMITERS.get(format, ","), rows=format in DELIMITERS
            )
    return Source(path, format, gzipped, shown, found.dialect, found.remarks)


def is_gzipped(path: Path) -> bool:
    """Tell by its first bytes whether a file is gzipped, whatever its name."""
    with path.open("rb") as file:
        return file.read(len(GZIP_MARK)) == GZIP_MARK


def sources_in(folder: str | PathLike[str]) -> tuple[Source, ...]:
    """Return the Parquet files below a folder, except hidden and temporary ones."""
    found = [
        path
        for path in sorted(Path(folder).rglob("*"))
        if path.name.lower().endswith(FORMATS["parquet"])
        and path.is_file()
        and not any(_is_ignored(part) for part in path.relative_to(folder).parts)
    ]
    if not found:
        raise InputError(
            f"the folder {str(folder)!r} has no Parquet file",
            "pass a glob for files of another format",
        )
    return tuple(Source(path, "parquet", False, repr(str(path))) for path in found)


def _is_ignored(part: str) -> bool:
    """Tell whether a name is hidden or, as Spark's ``_temporary``, not part of the data."""
    return part.startswith(".") or (part.startswith("_") and "=" not in part)
