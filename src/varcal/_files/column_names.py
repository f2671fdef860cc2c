"""The columns of files: their names, the same in all files, and those that are missing."""

from __future__ import annotations

from collections.abc import Sequence

from varcal._files._detection.separator import cut
from varcal._files.open_files import json_blocks, open_arrow, open_csv, read_json
from varcal._files.source import DELIMITERS, Source, reading
from varcal.exceptions import InputError


def column_names(source: Source) -> list[str]:
    """Return the column names of a file; only JSON lines have to be read completely for this."""
    with reading(source):
        if source.format == "parquet":
            from pyarrow import parquet  # noqa: PLC0415

            return list(parquet.read_schema(source.path).names)
        if source.format in DELIMITERS:
            return list(open_csv(source).schema.names)
        if source.format == "arrow":
            return list(open_arrow(source).schema.names)
        blocks = (read_json(block).column_names for block in json_blocks(source))
        names = list(dict.fromkeys(name for each in blocks for name in each))
    if not names:
        raise InputError(f"{source.shown} has no rows", "at least one row is needed")
    return names


def same_columns(sources: Sequence[Source], wanted: Sequence[str] = ()) -> list[str]:
    """Return the column names of files, which must be unique and the same in all of them.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    wanted : sequence of str
        Columns that the user asked for. They are checked first, so that the message is about them.
    """
    first: list[str] = []
    for source in sources:
        names = column_names(source)
        duplicates = sorted({name for name in names if names.count(name) > 1})
        if duplicates:
            raise InputError(
                f"{source.shown} has two columns of the same name: {duplicates[0]!r}",
                "rename one of them",
            )
        check_columns(source, names, wanted)
        first = first or names
        check_columns(source, names, first)
        check_columns(sources[0], first, names)
    return first


def check_columns(source: Source, known: Sequence[str], wanted: Sequence[str]) -> None:
    """Raise an error if a file lacks a column; the message suggests the most similar name."""
    for name in wanted:
        if name not in known:
            raise no_column(name, known, source)


def no_column(name: str, known: Sequence[str], source: Source) -> InputError:
    """Return the error that a file lacks a column."""
    error = InputError.no_column(name, known, where=source.shown)
    if len(known) != 1 or source.format not in DELIMITERS:
        return error
    return InputError(
        error.message,
        f"all of the header is one column, {cut(known[0])!r}; name the separator with {{sep}}",
        settings={"sep": ...},
    )
