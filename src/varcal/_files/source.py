"""One file of rows: where it is, its format, and how it is read."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from pathlib import Path

from varcal._files.atomic import refuse_input
from varcal._files.dialect import PLAIN, Dialect
from varcal._options import check_choice
from varcal.exceptions import InputError, VarcalWarning, import_library

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
    stem = name.removesuffix(".gz")
    for known, extensions in FORMATS.items():
        if stem.endswith(extensions) and (known in TEXT_FORMATS or not gzipped):
            return known, gzipped
    all_extensions = ", ".join(chain.from_iterable(FORMATS.values()))
    raise InputError(
        f"unknown file extension: {str(path)!r}",
        f"use one of {all_extensions} (also with .gz if it is text), or name the format with "
        "{format}",
        settings={"format": ...},
    )


@dataclass(frozen=True)
class Source:
    """One file of rows.

    Attributes
    ----------
    path : Path
        The path of the file.
    format : str
        One of the keys of `FORMATS`.
    gzipped : bool
        Whether the whole file is compressed.
    shown : str
        The name of the file in messages.
    dialect : Dialect
        How a text file is written.
    remarks : tuple of str
        What a user should know about the file.
    """

    path: Path
    format: str
    gzipped: bool
    shown: str
    dialect: Dialect = PLAIN
    remarks: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether a text file is written in the usual way of its format."""
        usual = self.dialect.separator == DELIMITERS.get(self.format, self.dialect.separator)
        utf8 = self.dialect.encoding.startswith("utf-8")
        return usual and utf8 and self.dialect.decimal == "."


def how_read(sources: Sequence[Source]) -> list[str]:
    """Say how text files are read if that is not the usual way of their format.

    Returns
    -------
    list of str
        One line per dialect, and one per remark.
    """
    by_dialect: dict[str, list[Source]] = {}
    for source in sources:
        if not source.plain:
            what = source.dialect.describe()
            if source.format not in DELIMITERS:
                what = source.dialect.encoding
            by_dialect.setdefault(what, []).append(source)
    lines = []
    for what, alike in by_dialect.items():
        more = f" and {len(alike) - 1:,} more" if len(alike) > 1 else ""
        lines.append(f"{alike[0].shown}{more} read as {what}")
    remarks = dict.fromkeys(
        f"{remark} ({source.shown})" for source in sources for remark in source.remarks
    )
    return [*lines, *remarks]


def warn_how_read(sources: Sequence[Source]) -> None:
    """Warn a user of Python about text files that are not written in the usual way."""
    for line in how_read(sources):
        warnings.warn(line, VarcalWarning, stacklevel=3)


def check_not_input(out: str | PathLike[str], sources: Sequence[Source]) -> None:
    """Refuse an output that would replace one of the files that are read."""
    refuse_input(out, "an input file", *(source.path for source in sources))


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
