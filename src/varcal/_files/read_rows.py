"""Reading the rows of files with PyArrow, in chunks with the same types in every chunk.

CSV and JSON files do not declare types, and a chunk shows only those of its own values. A first
pass over such files therefore finds types that fit all values; a second pass yields the rows.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import csv, json

from varcal._files.dialect import shortened
from varcal._files.formats import DELIMITERS, Source, reading, same_columns
from varcal._files.saved import nesting
from varcal.exceptions import InputError

#: Rows per chunk of Parquet and Arrow files. A chunk of ten numeric columns takes 5 MB.
CHUNK_ROWS = 1 << 16
#: Bytes per chunk of text files.
BLOCK_BYTES = 1 << 20
#: The types that are tried for a CSV column, in this order, until all values can be parsed.
_CSV_TYPES = [
    *(pa.null(), pa.int64(), pa.float64(), pa.bool_(), pa.date32()),
    *(pa.timestamp("s"), pa.timestamp("ns"), pa.string()),
]


def declared_schema(source: Source) -> pa.Schema:
    """Return the columns of a file; types in text files are those of some values."""
    if source.format == "parquet":
        from pyarrow import parquet  # noqa: PLC0415  slow to load

        return parquet.read_schema(source.path)
    if source.format == "arrow":
        schema = _open_arrow(source).schema
        schema.names  # noqa: B018  names that are not UTF-8 raise here, where errors name the file
        return schema
    if source.format in DELIMITERS:
        return _csv(source).schema
    fields: dict[str, pa.Field] = {}
    for table in _json_tables(source):
        for column in table.schema:
            try:
                fields[column.name] = _common_field(fields.get(column.name, column), column)
            except pa.ArrowException:
                # Timestamps are text that looks like dates; with other text, the column is text.
                fields[column.name] = column.with_type(pa.string())
    if not fields:
        raise InputError(f"{source.shown} has no rows", "at least one row is needed")
    return pa.schema(list(fields.values()))


def read_table(sources: Sequence[Source], columns: Sequence[str] | None = None) -> pa.Table:
    """Read files into one table.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    columns : sequence of str, optional
        The columns to read, all by default.

    Returns
    -------
    pyarrow.Table
        The rows of all files, in order, with types that fit all of them.

    Raises
    ------
    InputError
        If a file cannot be read, or if the columns or their types differ.
    """
    known = same_columns(sources, columns or ())
    names = known if columns is None else list(dict.fromkeys(columns))
    schema = common_types(sources, names, instants=names)
    return pa.Table.from_batches(batches_of(sources, schema), schema)


def common_types(
    sources: Sequence[Source],
    names: Sequence[str],
    texts: Collection[str] = (),
    instants: Collection[str] = (),
) -> pa.Schema:
    """Return types that fit all values of some columns in all files.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    names : sequence of str
        The columns.
    texts : collection of str
        Columns of CSV files that are text, even if their values look like numbers.
    instants : collection of str
        Columns of JSON files whose text is to be read as dates.

    Returns
    -------
    pyarrow.Schema
        One field per column.
    """
    own = (_types_of(source, names, texts, instants) for source in sources)
    return _common_schema(sources, own)


def _types_of(
    source: Source, names: Sequence[str], texts: Collection[str], instants: Collection[str]
) -> pa.Schema:
    if source.format in DELIMITERS:
        with reading(source):
            return _csv_types(source, names, {n: pa.string() for n in names if n in texts})
    schema = pa.schema([source.schema.field(name) for name in names], source.schema.metadata)
    for k, one in enumerate(schema if source.format == "jsonl" else ()):
        if pa.types.is_timestamp(one.type) and one.name not in instants:
            schema = schema.set(k, one.with_type(pa.string()))
    return schema


def _csv_types(source: Source, names: Sequence[str], types: dict[str, pa.DataType]) -> pa.Schema:
    """Read a CSV file until its columns have types that fit all values."""
    while True:
        try:
            reader = _csv(source, names, column_types=types)
            types = {column.name: column.type for column in reader.schema}
            for name, kind in types.items():
                if pa.types.is_binary(kind):  # how PyArrow reads text that is not valid UTF-8
                    raise pa.ArrowInvalid(f"column {name!r} has invalid UTF8 data")
            for _ in reader:
                pass
        except pa.ArrowInvalid as error:
            failed = re.match(r"In CSV column #(\d+): .*CSV conversion error", str(error))
            name = source.schema.names[int(failed[1])] if failed else ""
            if types.get(name, pa.string()) == pa.string():
                raise
            known = types[name] in _CSV_TYPES
            types[name] = _CSV_TYPES[_CSV_TYPES.index(types[name]) + 1] if known else pa.string()
            continue
        return pa.schema(list(types.items()))


def _common_schema(sources: Sequence[Source], schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Return types that fit all files; each schema has the same columns in the same order."""
    common: pa.Schema | None = None
    for source, own in zip(sources, schemas, strict=True):
        fields = []
        for before, new in zip(common or own, own, strict=True):
            try:
                fields.append(_common_field(before, new))
            except pa.ArrowException:
                kinds = [_decoded(one.type) for one in (new, before)]
                problem = f"column {new.name!r} has type {kinds[0]} in {source.shown}, but "
                hint = "convert the files to the same types, or pass one file at a time"
                problem += f"{kinds[1]} in the files before it"
                raise InputError(problem, hint, "column") from None
        common = pa.schema(fields, metadata=(common or own).metadata)
    return common


def _common_field(one: pa.Field, other: pa.Field) -> pa.Field:
    """Return a column that can have the values of both."""
    if one.type != other.type:
        one, other = (each.with_type(_decoded(each.type)) for each in (one, other))
    schemas = [pa.schema([one]), pa.schema([other])]
    return pa.unify_schemas(schemas, promote_options="permissive").field(0)


def _decoded(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values of a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def chunks_of(
    sources: Sequence[Source], kept: pa.Schema, used: pa.Schema, *, as_written: bool
) -> Iterator[tuple[Source, int, pa.RecordBatch, pa.RecordBatch]]:
    """Yield the rows of files in chunks, each with two sets of columns.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    kept, used : pyarrow.Schema
        All columns, and those that are needed for computing, with types that fit all values.
    as_written : bool
        Whether the kept values are the texts of CSV files, exactly as they are written.

    Yields
    ------
    tuple
        The file, the position of the first row within it, and the columns kept and used.
    """
    for source in sources:
        row = 0
        pairs: Iterable[tuple[pa.RecordBatch, pa.RecordBatch]]
        with reading(source):
            if as_written:
                # Blocks are cut by the number of bytes, so both have the same rows per block.
                texts = _batches(source, kept, strings_can_be_null=False)
                pairs = zip(texts, _batches(source, used), strict=True)
            else:
                pairs = ((batch, batch.select(used.names)) for batch in _batches(source, kept))
            for batch, needed in pairs:
                if batch.num_rows:
                    yield source, row, batch, needed
                row += batch.num_rows


def batches_of(sources: Sequence[Source], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files, with the columns and types of a schema."""
    for source in sources:
        with reading(source):
            yield from _batches(source, schema)


def _batches(source: Source, schema: pa.Schema, **convert: Any) -> Iterator[pa.RecordBatch]:
    for batch in _raw_batches(source, schema, convert):
        if batch.schema.equals(schema):
            yield batch.replace_schema_metadata(schema.metadata)
        else:
            columns = [batch.column(column.name).cast(column.type) for column in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _raw_batches(
    source: Source, schema: pa.Schema, convert: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    if source.format == "parquet":
        from pyarrow import parquet  # noqa: PLC0415  slow to load

        with parquet.ParquetFile(source.path) as file:
            for batch in file.iter_batches(CHUNK_ROWS, columns=schema.names):
                # In a damaged or forged file, offsets and codes may point outside of their
                # buffers, and reading such a value ends the process.
                batch.validate(full=True)
                yield batch
    elif source.format == "arrow":
        reader = _open_arrow(source)
        count = getattr(reader, "num_record_batches", None)  # a stream does not know it
        for batch in iter(reader) if count is None else map(reader.get_batch, range(count)):
            batch.validate(full=True)
            yield from (
                batch.slice(start, CHUNK_ROWS) for start in range(0, batch.num_rows, CHUNK_ROWS)
            )
    elif source.format == "jsonl":
        for table in _json_tables(source, schema):
            yield from table.combine_chunks().to_batches()
    else:
        types = {column.name: column.type for column in schema}
        yield from _csv(source, schema.names, column_types=types, **convert)


def _open_arrow(source: Source) -> Any:
    """Open an Arrow file, in the file format or the stream format."""
    mapped = pa.memory_map(str(source.path))
    try:
        return pa.ipc.open_file(mapped)
    except pa.ArrowInvalid:
        mapped.seek(0)
        return pa.ipc.open_stream(mapped)


def _open_text(source: Source) -> Any:
    """Open a text file as a stream of decompressed bytes in UTF-8."""
    stream = pa.input_stream(str(source.path), compression="gzip" if source.gzipped else None)
    encoding = source.dialect.encoding
    if encoding == "utf-8-sig":
        stream.read(len(codecs.BOM_UTF8))
    elif encoding != "utf-8":
        return pa.transcoding_input_stream(stream, encoding, "utf-8")
    return stream


def _csv(source: Source, names: Sequence[str] | None = None, **convert: Any) -> Any:
    """Open a CSV file as a stream of batches: its columns, or some of them."""
    dialect = source.dialect
    convert = {"strings_can_be_null": True, "decimal_point": dialect.decimal} | convert
    return csv.open_csv(
        _open_text(source),
        read_options=csv.ReadOptions(block_size=BLOCK_BYTES),
        parse_options=csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
        convert_options=csv.ConvertOptions(include_columns=names, **convert),
    )


#: How deeply objects and lists of a JSON line may be nested. PyArrow crashes from some 10,000
#: levels on; columns of real data have a handful, and this leaves a wide margin on both sides.
MAX_DEPTH = 100
#: The most bytes of one JSON line. A row of 10,000 numbers takes some 300 kB.
MAX_LINE_BYTES = 1 << 26


def _json_tables(source: Source, schema: pa.Schema | None = None) -> Iterator[pa.Table]:
    """Yield the rows of JSON lines; without a schema, each table has the types of its values."""
    options = json.ParseOptions(
        explicit_schema=schema, unexpected_field_behavior="infer" if schema is None else "ignore"
    )
    with _open_text(source) as stream:
        file, first_line = io.BufferedReader(stream, BLOCK_BYTES), 1
        while block := file.read(BLOCK_BYTES):
            if not block.endswith(b"\n"):
                block += file.readline(MAX_LINE_BYTES)
            numbers = checked_lines(block, first_line, source.shown)
            first_line += block.count(b"\n")
            whole = json.ReadOptions(block_size=len(block) + 1)
            try:
                yield json.read_json(pa.BufferReader(block), whole, options)
            except pa.ArrowInvalid as error:  # its rows are those of the block
                found = re.search(r"(.*) in row (\d+)", str(error))
                if found is None or int(found[2]) >= len(numbers):
                    raise
                raise pa.ArrowInvalid(f"{found[1]} in line {numbers[int(found[2])]:,}") from None


def checked_lines(block: bytes, first_line: int, shown: str) -> list[int]:
    r"""Return the numbers of lines that are not empty; refuse what could end the process.

    PyArrow crashes if a first row is ``null`` or if a value is nested very deeply. All other faults
    of a line are left to it, and it reports them.

    Parameters
    ----------
    block : bytes
        Complete lines in UTF-8.
    first_line : int
        The number of the first line within the file, counted from 1.
    shown : str
        The name of the file in messages.

    >>> checked_lines(b'{"p": 0.5, "tags": ["a", "]"]}\n\n{}', 1, "'rows.jsonl'")
    [1, 3]
    >>> checked_lines(b'{"p": 0.5}\nnull\n', 1, "'rows.jsonl'")
    Traceback (most recent call last):
    varcal.exceptions.InputError: line 2 of 'rows.jsonl' is not a JSON object: 'null'
    hint: JSON lines have one object per line, such as {"y": 1, "p": 0.83}
    """
    numbers = []
    for number, line in enumerate(block.split(b"\n"), first_line):
        if not (line := line.strip()):
            continue
        numbers.append(number)
        if not line.startswith(b"{"):
            fault = "is not a JSON object"
        elif len(line) > MAX_LINE_BYTES:
            fault = f"is longer than {MAX_LINE_BYTES >> 20} MB"
        elif line.count(b"{") + line.count(b"[") > MAX_DEPTH and nesting(line)[0] > MAX_DEPTH:
            fault = f"is nested more than {MAX_DEPTH} levels deep"
        else:
            continue
        excerpt = shortened(line[:200].decode("utf-8", "replace"), 40)
        hint = 'JSON lines have one object per line, such as {"y": 1, "p": 0.83}'
        raise InputError(f"line {number:,} of {shown} {fault}: {excerpt!r}", hint)
    return numbers
