"""The formats of files of rows, and the extensions that tell them."""

from __future__ import annotations

from itertools import chain
from os import PathLike
from pathlib import Path

from varcal._options import check_choice
from varcal.exceptions import InputError

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
