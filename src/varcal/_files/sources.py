"""Finding files of rows, detecting how they are written, and reading them into one table."""

from __future__ import annotations

import codecs
import glob
import gzip
import io
import warnings
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varcal._files._detection.detect import HEAD_BYTES, Detected, detect
from varcal._files._detection.separator import cut
from varcal._files.atomic import refuse_input
from varcal._files.dialect import PLAIN, UNSTATED, Dialect, Stated
from varcal._files.json_guard import CheckedLines, line_blocks
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

#: Bytes of JSON lines that are parsed at a time, so that memory does not grow with the file.
JSON_BLOCK_BYTES = 1 << 20
#: Bytes of CSV in a batch, unless the caller asks for another size.
CSV_BLOCK_BYTES = 1 << 22
#: The first bytes of a gzipped file.
GZIP_MARK = b"\x1f\x8b"


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
        paths = paths or sorted(glob.glob(str(pattern), recursive=True))
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


def read_table(sources: Sequence[Source], columns: Sequence[str] | None = None) -> pa.Table:
    """Read files into one table.

    Columns of the same name must have compatible types.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    columns : sequence of str, optional
        The columns to read, all by default.

    Returns
    -------
    pyarrow.Table
        The rows of all files, in order.

    Raises
    ------
    InputError
        If a file cannot be read, or if the columns or their types differ.
    """
    import pyarrow as pa  # noqa: PLC0415

    same_columns(sources, columns or ())
    tables: list[pa.Table] = []
    for source in sources:
        with reading(source):
            tables.append(_read_one(source, columns))
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise InputError(
            f"the types of columns differ between files: {str(error).splitlines()[0]}",
            "convert them to the same types, or pass one file at a time",
        ) from None


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


def json_blocks(source: Source, block_bytes: int = JSON_BLOCK_BYTES) -> Iterator[bytes]:
    """Yield a file of JSON lines in blocks of complete lines that are safe to parse."""
    with open_bytes(source) as stream:
        yield from line_blocks(stream, block_bytes, source.shown)


def read_json(block: bytes, schema: pa.Schema | None = None) -> pa.Table:
    """Parse a checked block of JSON lines; without a schema, types are inferred."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import json  # noqa: PLC0415

    unexpected = "infer" if schema is None else "ignore"
    return json.read_json(
        pa.BufferReader(block),
        read_options=json.ReadOptions(block_size=len(block) + 1),
        parse_options=json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior=unexpected
        ),
    )


def open_bytes(source: Source) -> Any:
    """Open a file as a stream of decompressed bytes; those of text files are in UTF-8."""
    import pyarrow as pa  # noqa: PLC0415

    stream = pa.input_stream(str(source.path), compression="gzip" if source.gzipped else None)
    encoding = source.dialect.encoding
    if encoding == "utf-8-sig":
        stream.read(len(codecs.BOM_UTF8))
    elif encoding != "utf-8":
        return pa.transcoding_input_stream(stream, encoding, "utf-8")
    return stream


def open_csv(source: Source, block_size: int = CSV_BLOCK_BYTES, **convert: Any) -> Any:
    """Open a CSV file as a stream of batches."""
    from pyarrow import csv  # noqa: PLC0415

    return csv.open_csv(
        open_bytes(source),
        read_options=csv.ReadOptions(block_size=block_size),
        parse_options=_parsing(source),
        convert_options=_conversion(source, **convert),
    )


def refuse_bytes(schema: pa.Schema) -> None:
    """Refuse columns of a text file that PyArrow reads as bytes: they are not valid UTF-8."""
    import pyarrow as pa  # noqa: PLC0415

    for column in schema:
        if pa.types.is_binary(column.type):
            raise pa.ArrowInvalid(f"column {column.name!r} has invalid UTF8 data")


def open_arrow(source: Source) -> Any:
    """Open an Arrow file, in the file format or the stream format."""
    import pyarrow as pa  # noqa: PLC0415

    mapped = pa.memory_map(str(source.path))
    try:
        return pa.ipc.open_file(mapped)
    except pa.ArrowInvalid:
        mapped.seek(0)
        return pa.ipc.open_stream(mapped)


def validated(rows: Any) -> Any:
    """Return rows of a binary file, after checking what PyArrow takes on trust when it reads them.

    In a damaged or forged file, offsets and codes may point outside of their buffers, and reading
    such a value ends the process. Text may not be UTF-8.
    """
    rows.validate(full=True)
    return rows


def _parsing(source: Source) -> Any:
    from pyarrow import csv  # noqa: PLC0415

    return csv.ParseOptions(delimiter=source.dialect.separator, newlines_in_values=True)


def _conversion(source: Source, **options: Any) -> Any:
    from pyarrow import csv  # noqa: PLC0415

    usual = {"strings_can_be_null": True, "decimal_point": source.dialect.decimal}
    return csv.ConvertOptions(**usual | options)


def _read_one(source: Source, columns: Sequence[str] | None) -> pa.Table:
    wanted = None if columns is None else list(dict.fromkeys(columns))
    if source.format == "parquet":
        from pyarrow import parquet  # noqa: PLC0415

        with parquet.ParquetFile(source.path) as file:
            return validated(file.read(columns=wanted))
    if source.format in DELIMITERS:
        from pyarrow import csv  # noqa: PLC0415

        table = csv.read_csv(
            open_bytes(source),
            parse_options=_parsing(source),
            convert_options=_conversion(source, include_columns=wanted),
        )
        refuse_bytes(table.schema)
        return table
    if source.format == "arrow":
        table = validated(open_arrow(source).read_all())
    else:
        from pyarrow import json  # noqa: PLC0415

        with open_bytes(source) as stream:
            lines = CheckedLines(line_blocks(stream, JSON_BLOCK_BYTES, source.shown))
            table = json.read_json(io.BufferedReader(lines, JSON_BLOCK_BYTES))
    return table if wanted is None else table.select(wanted)
