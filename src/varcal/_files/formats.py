"""The files of rows that paths, globs and folders refer to, and how each is read."""

from __future__ import annotations

import glob
import gzip
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from varcal._files.dialect import (
    HEAD_BYTES,
    PLAIN,
    SETTINGS,
    UNSTATED,
    Dialect,
    Stated,
    detect,
    detect_encoding,
    shortened,
)
from varcal._options import check_choice
from varcal.exceptions import InputError, VarcalWarning, import_library

if TYPE_CHECKING:
    import pyarrow as pa

#: Each format and its file extensions.
FORMATS = {
    "csv": (".csv", ".txt"),
    "tsv": (".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "jsonl": (".jsonl", ".ndjson", ".json"),
}
#: The text formats, which may be gzipped.
TEXT_FORMATS = ("csv", "tsv", "jsonl")
#: The usual separator of each format with columns separated by a character.
DELIMITERS = {"csv": ",", "tsv": "\t"}
#: The most files of one glob; each of them is opened to see how it is written.
MOST_FILES = 100_000


@dataclass(frozen=True)
class Source:
    """One file of rows.

    Attributes
    ----------
    path : Path
        The path of the file.
    format : str
        One of the keys of `FORMATS`.
    shown : str
        The name of the file in messages.
    gzipped : bool
        Whether the whole file is compressed.
    dialect : Dialect
        How a text file is written.
    remarks : tuple of str
        What a user should know about the file.
    """

    path: Path
    format: str
    shown: str
    gzipped: bool = False
    dialect: Dialect = PLAIN
    remarks: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether a text file is written in the usual way of its format."""
        usual = self.dialect.separator == DELIMITERS.get(self.format, self.dialect.separator)
        utf8 = self.dialect.encoding.startswith("utf-8")
        return usual and utf8 and self.dialect.decimal == "."

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns that the file declares; those of JSON lines need a pass over all rows."""
        with reading(self):
            from varcal._files.read_rows import declared_schema  # noqa: PLC0415  loads pyarrow

            return declared_schema(self)


def format_of(path: str | PathLike[str], format: str | None = None) -> tuple[str, bool]:
    """Return the format of a file, by its extension, and whether it is gzipped.

    Parameters
    ----------
    path : path
        The file.
    format : str, optional
        The format, if it is known; the extension is then ignored.

    Raises
    ------
    InputError
        If the extension is unknown.

    Examples
    --------
    >>> format_of("rows.csv.gz"), format_of("rows.feather"), format_of("rows", "csv")
    (('csv', True), ('arrow', False), ('csv', False))
    """
    name = Path(path).name.lower()
    gzipped = name.endswith(".gz")
    if format is not None:
        check_choice("format", format, tuple(FORMATS))
        return format, gzipped
    for known, extensions in FORMATS.items():
        if name.removesuffix(".gz").endswith(extensions) and (known in TEXT_FORMATS or not gzipped):
            return known, gzipped
    raise InputError(
        f"unknown file extension: {str(path)!r}",
        f"use one of {', '.join(chain(*FORMATS.values()))} (also with .gz if it is text), or name "
        "the format with {format}",
        settings=SETTINGS,
    )


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
    return tuple(
        source_of(Path(path), format_of(path, format)[0], repr(path), stated)
        for pattern in given
        for path in _paths(str(pattern))
    )


def _paths(pattern: str) -> list[str]:
    """Return the sorted files of a path or a glob; the name of a file may look like a glob."""
    if not pattern:
        raise InputError("the path is empty", "give a path, a glob, or a list of them")
    if "\0" in pattern:
        raise InputError(f"{pattern!r} cannot be a path: it has a zero character", "check the path")
    matches = glob.iglob(pattern, recursive=True)
    found = glob.glob(glob.escape(pattern)) or sorted(islice(matches, MOST_FILES + 1))
    if not found:
        hint = "check the path; a glob such as 'rows/*.parquet' works as well"
        raise InputError(f"no file {pattern!r}", hint)
    if len(found) > MOST_FILES:  # perhaps all files of a disk
        hint = "give a narrower glob, or several of them in turn"
        raise InputError(f"the glob {pattern!r} matches more than {MOST_FILES:,} files", hint)
    for path in found:
        if Path(path).is_dir():
            raise InputError(f"{path!r} is a folder", f"give its files: '{path}/*.parquet'")
    return found


def source_of(path: Path, format: str, shown: str, stated: Stated) -> Source:
    """Return a file of a known format, after detecting how it is written."""
    plain = Source(path, format, shown)
    if format not in TEXT_FORMATS:
        return plain
    with reading(plain), opened(path) as (file, gzipped):
        blocks = iter(lambda: file.read(HEAD_BYTES), b"")
        if format in DELIMITERS:
            dialect, remarks = detect(blocks, stated, shown, DELIMITERS[format])
            return Source(path, format, shown, gzipped, dialect, tuple(remarks))
        encoding = detect_encoding(blocks, stated, shown)
        return Source(path, format, shown, gzipped, Dialect(encoding=encoding))


@contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes], bool]]:
    """Open a file, decompressed if its first bytes are those of gzip; tell whether they are."""
    with path.open("rb") as file:
        gzipped = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        yield (cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if gzipped else file), gzipped


def sources_in(folder: str | PathLike[str]) -> tuple[Source, ...]:
    """Return the Parquet files below a folder, except hidden and temporary ones."""
    found = [
        path
        for path in sorted(Path(folder).rglob("*"))
        if path.name.lower().endswith(FORMATS["parquet"])
        and path.is_file()
        # Hidden or, as Spark's "_temporary", not part of the data; "_day=1" is.
        and not any(re.match(r"\.|_[^=]*$", part) for part in path.relative_to(folder).parts)
    ]
    if not found:
        hint = "pass a glob for files of another format"
        raise InputError(f"the folder {str(folder)!r} has no Parquet file", hint)
    return tuple(Source(path, "parquet", repr(str(path))) for path in found)


def how_read(sources: Sequence[Source]) -> list[str]:
    """Say how text files are read if that is not the usual way of their format.

    Returns
    -------
    list of str
        One line per dialect, and one per remark.
    """
    by_dialect: dict[str, list[str]] = {}
    for source in sources:
        if not source.plain:
            jsonl = source.format not in DELIMITERS
            what = source.dialect.encoding if jsonl else source.dialect.describe()
            by_dialect.setdefault(what, []).append(source.shown)
    lines = [
        f"{alike[0]}{f' and {len(alike) - 1:,} more' if len(alike) > 1 else ''} read as {what}"
        for what, alike in by_dialect.items()
    ]
    remarks = (f"{remark} ({source.shown})" for source in sources for remark in source.remarks)
    return [*lines, *dict.fromkeys(remarks)]


def warn_how_read(sources: Sequence[Source]) -> None:
    """Warn a user of Python about text files that are not written in the usual way."""
    for line in how_read(sources):
        warnings.warn(line, VarcalWarning, stacklevel=3)


#: What to do about an error of a reader, by a pattern of the format and the reason.
_HINTS = {
    "UTF8|codec": "the file is not in this encoding throughout: convert it, or name another with "
    "{encoding}",
    "Empty": "the file has no rows",
    "columns, got": "fields that contain the separator must be in quotes, also numbers with a "
    "decimal comma; another separator is chosen with {sep}",
    "^parquet|^arrow": "the file is truncated or has another format: write it again",
    "^jsonl": "JSON lines have one object per line",
    "": "check that the file is complete, and that its format is right ({format})",
}


@contextmanager
def reading(source: Source) -> Iterator[None]:
    """Turn the errors of a reader into an `InputError` that names the file."""
    pa = import_library("pyarrow", f"reading {source.shown}")
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        problem = f"{source.format}: {reason}"
        hint = next(hint for pattern, hint in _HINTS.items() if re.search(pattern, problem))
        problem = f"cannot read {source.shown} as {problem}"
        raise InputError(problem, hint, settings=SETTINGS) from None


def same_columns(sources: Sequence[Source], wanted: Sequence[str] = ()) -> list[str]:
    """Return the column names of files, which must be unique and the same in all of them.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    wanted : sequence of str
        Columns that the user asked for. They are checked first, so that the message is about them.
    """
    first = dict.fromkeys(sources[0].schema.names)
    for source in sources:
        names = Counter(source.schema.names)
        twice = next((name for name, count in names.items() if count > 1), None)
        if twice is not None:
            problem = f"{source.shown} has two columns of the same name: {twice!r}"
            raise InputError(problem, "rename one of them")
        for name in (*wanted, *first):
            if name not in names:
                raise no_column(name, source)
        for name in names:
            if name not in first:
                raise no_column(name, sources[0])
    return list(first)


def no_column(name: str, source: Source) -> InputError:
    """Return the error that a file lacks a column; the hint has the most similar name."""
    known = source.schema.names
    error = InputError.no_column(name, known, where=source.shown)
    if len(known) != 1 or source.format not in DELIMITERS:
        return error
    hint = f"all of the header is one column, {shortened(known[0])!r}; name the separator with "
    return InputError(error.message, hint + "{sep}", settings=SETTINGS)
