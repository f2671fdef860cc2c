"""Files that hold rows: which they are, in which format, and their rows as one table."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from varcal._options import check_choice
from varcal.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa

#: Each format and the endings that tell it.
FORMATS = {
    "csv": (".csv",),
    "tsv": (".tsv",),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "jsonl": (".jsonl", ".ndjson", ".json"),
}
#: The formats that are text, which may be gzipped.
TEXT_FORMATS = ("csv", "tsv", "jsonl")
DELIMITERS = {"csv": ",", "tsv": "\t"}


@dataclass(frozen=True)
class Source:
    """One file of rows.

    Attributes
    ----------
    path : Path
        Where it is.
    format : str
        One of `FORMATS`.
    gzipped : bool
        Whether it is compressed as a whole.
    shown : str
        How messages call it.
    """

    path: Path
    format: str
    gzipped: bool
    shown: str


def format_of(path: str | PathLike[str], format: str | None = None) -> tuple[str, bool]:
    """Tell the format of a file by its name, and whether it is gzipped.

    >>> format_of("rows.csv.gz"), format_of("rows.feather"), format_of("rows", "csv")
    (('csv', True), ('arrow', False), ('csv', False))
    """
    name = Path(path).name.lower()
    gzipped = name.endswith(".gz")
    if format is not None:
        check_choice("format", format, tuple(FORMATS))
        return format, gzipped
    stem = name.removesuffix(".gz")
    for known, endings in FORMATS.items():
        if stem.endswith(endings) and (known in TEXT_FORMATS or not gzipped):
            return known, gzipped
    endings_shown = ", ".join(ending for endings in FORMATS.values() for ending in endings)
    raise InputError(
        f"unknown file extension: {str(path)!r}",
        f"use one of {endings_shown}; those of text files also with .gz",
    )


def sources_of(
    source: str | PathLike[str] | Sequence[str | PathLike[str]], format: str | None = None
) -> tuple[Source, ...]:
    """List the files that paths and globs stand for, in sorted order within a glob.

    >>> sources_of("no/such.csv")
    Traceback (most recent call last):
    varcal.exceptions.InputError: no file 'no/such.csv'
    hint: check the path; globs such as 'rows/*.parquet' work too
    """
    given = [source] if isinstance(source, str | PathLike) else list(source)
    if not given:
        raise InputError("no file is given", "give a path, a glob, or a list of them")
    found = []
    for one in given:
        if not str(one):
            raise InputError("the path is empty", "give a path, a glob, or a list of them")
        # A file may have a name that looks like a glob.
        paths = glob.glob(glob.escape(str(one))) or sorted(glob.glob(str(one), recursive=True))
        if not paths:
            raise InputError(
                f"no file {str(one)!r}", "check the path; globs such as 'rows/*.parquet' work too"
            )
        for path in paths:
            if Path(path).is_dir():
                raise InputError(f"{path!r} is a folder", f"give its files: '{path}/*.parquet'")
            found.append(Source(Path(path), *format_of(path, format), shown=repr(path)))
    return tuple(found)


def sources_in(folder: str | PathLike[str]) -> tuple[Source, ...]:
    """List the Parquet files below a folder, without those that are hidden or being written."""
    found = [
        path
        for path in sorted(Path(folder).rglob("*"))
        if path.name.lower().endswith(FORMATS["parquet"])
        and path.is_file()
        and not any(_is_aside(part) for part in path.relative_to(folder).parts)
    ]
    if not found:
        raise InputError(
            f"the folder {str(folder)!r} has no Parquet file", "give a glob of other files"
        )
    return tuple(Source(path, "parquet", False, repr(str(path))) for path in found)


def _is_aside(part: str) -> bool:
    return part.startswith(".") or (part.startswith("_") and "=" not in part)


@contextmanager
def reading(source: Source) -> Iterator[None]:
    """Turn what a reader raises into a message that names the file."""
    import pyarrow as pa  # noqa: PLC0415  pyarrow loads when a file is read

    try:
        yield
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        said = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise InputError(
            f"cannot read {source.shown} as {source.format}: {said}", _way_out(source, said)
        ) from None


def _way_out(source: Source, said: str) -> str:
    if "UTF8" in said or "utf-8" in said:
        return "text must be in UTF-8: convert it first"
    if "Empty" in said:
        return "the file has no rows"
    if source.format in ("parquet", "arrow"):
        return "the file is cut short or of another format: write it again"
    if source.format == "jsonl":
        return "JSON lines hold one object a line"
    return "check that the file is whole, and its format (--format)"


def read_table(sources: Sequence[Source], columns: Sequence[str] | None = None) -> pa.Table:
    """Read files into one table; columns of the same name must be of like types.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    columns : sequence of str, optional
        The columns to read, all by default.
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
            f"the files differ in the types of their columns: {str(error).splitlines()[0]}",
            "bring them to the same types, or give them one at a time",
        ) from None


def same_columns(sources: Sequence[Source], wanted: Sequence[str] = ()) -> list[str]:
    """Return the names of the columns of files, which must all have the same, each once.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    wanted : sequence of str
        Columns that are asked for, which are looked for first.
    """
    first: list[str] = []
    for source in sources:
        names = column_names(source)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(
                f"{source.shown} has two columns of the same name: {twice[0]!r}",
                "rename one of them",
            )
        check_columns(source, names, wanted)
        first = first or names
        check_columns(source, names, first)
        check_columns(sources[0], first, names)
    return first


def check_columns(source: Source, known: Sequence[str], wanted: Sequence[str]) -> None:
    """Refuse a file that lacks a column, with the nearest name that it has."""
    for name in wanted:
        if name not in known:
            raise InputError.no_column(name, known, where=source.shown)


def column_names(source: Source) -> list[str]:
    """Return the names of a file's columns; only JSON has to be read for them, in blocks."""
    with reading(source):
        if source.format == "parquet":
            from pyarrow import parquet  # noqa: PLC0415

            return list(parquet.read_schema(source.path).names)
        if source.format in DELIMITERS:
            return list(open_csv(source).schema.names)
        if source.format == "arrow":
            return list(open_arrow(source).schema.names)
        blocks = (read_json(block).column_names for block in line_blocks(source))
        names = list(dict.fromkeys(name for each in blocks for name in each))
    if not names:
        raise InputError(f"{source.shown} has no rows", "at least one row is needed")
    return names


def line_blocks(source: Source, block_bytes: int = 1 << 20) -> Iterator[bytes]:
    """Cut a text file into blocks of whole lines."""
    with open_bytes(source) as stream:
        rest = b""
        while more := stream.read(block_bytes):
            head, newline, tail = more.rpartition(b"\n")
            if newline:
                yield rest + head + newline
                rest = tail
            else:
                rest += more
        if rest.strip():
            yield rest


def read_json(block: bytes, schema: pa.Schema | None = None) -> pa.Table:
    """Read lines of JSON, of which a schema may say the types."""
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
    """Open a file as a stream of its bytes, decompressed."""
    import pyarrow as pa  # noqa: PLC0415

    return pa.input_stream(str(source.path), compression="gzip" if source.gzipped else None)


def open_csv(source: Source, block_size: int = 1 << 22, **convert: Any) -> Any:
    """Open a CSV file as a stream of batches."""
    from pyarrow import csv  # noqa: PLC0415

    return csv.open_csv(
        open_bytes(source),
        read_options=csv.ReadOptions(block_size=block_size),
        parse_options=_dialect(source),
        convert_options=csv.ConvertOptions(**{"strings_can_be_null": True} | convert),
    )


def open_arrow(source: Source) -> Any:
    """Open an Arrow file, or a stream that was saved as one."""
    import pyarrow as pa  # noqa: PLC0415

    mapped = pa.memory_map(str(source.path))
    try:
        return pa.ipc.open_file(mapped)
    except pa.ArrowInvalid:
        mapped.seek(0)
        return pa.ipc.open_stream(mapped)


def _dialect(source: Source) -> Any:
    from pyarrow import csv  # noqa: PLC0415

    return csv.ParseOptions(delimiter=DELIMITERS[source.format], newlines_in_values=True)


def _read_one(source: Source, columns: Sequence[str] | None) -> pa.Table:
    wanted = None if columns is None else list(dict.fromkeys(columns))
    if source.format == "parquet":
        from pyarrow import parquet  # noqa: PLC0415

        with parquet.ParquetFile(source.path) as file:
            return file.read(columns=wanted)
    if source.format in DELIMITERS:
        from pyarrow import csv  # noqa: PLC0415

        return csv.read_csv(
            open_bytes(source),
            parse_options=_dialect(source),
            convert_options=csv.ConvertOptions(include_columns=wanted, strings_can_be_null=True),
        )
    if source.format == "arrow":
        table = open_arrow(source).read_all()
    else:
        from pyarrow import json  # noqa: PLC0415

        table = json.read_json(open_bytes(source))
    return table if wanted is None else table.select(wanted)
