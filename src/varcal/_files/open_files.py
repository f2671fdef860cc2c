"""Files of every format, opened with PyArrow; text is decompressed and in UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from varcal._files.json_guard import line_blocks
from varcal._files.source import Source

if TYPE_CHECKING:
    import pyarrow as pa


#: Bytes of JSON lines that are parsed at a time, so that memory does not grow with the file.
JSON_BLOCK_BYTES = 1 << 20
#: Bytes of CSV in a batch, unless the caller asks for another size.
CSV_BLOCK_BYTES = 1 << 22


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
        parse_options=csv_parsing(source),
        convert_options=csv_conversion(source, **convert),
    )


def csv_parsing(source: Source) -> Any:
    """Return how the fields of a CSV file are separated."""
    from pyarrow import csv  # noqa: PLC0415

    return csv.ParseOptions(delimiter=source.dialect.separator, newlines_in_values=True)


def csv_conversion(source: Source, **options: Any) -> Any:
    """Return how the values of a CSV file are read, with options of `csv.ConvertOptions`."""
    from pyarrow import csv  # noqa: PLC0415

    usual = {"strings_can_be_null": True, "decimal_point": source.dialect.decimal}
    return csv.ConvertOptions(**usual | options)


def refuse_bytes(schema: pa.Schema) -> None:
    """Refuse columns of a text file that PyArrow reads as bytes: they are not valid UTF-8."""
    import pyarrow as pa  # noqa: PLC0415

    for column in schema:
        if pa.types.is_binary(column.type):
            raise pa.ArrowInvalid(f"column {column.name!r} has invalid UTF8 data")


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
