"""Reading the rows of files in chunks, with bounded memory and the same types in every chunk.

CSV and JSON files do not declare types, and a chunk shows only those of its own values. A first
pass over such files therefore finds types that fit all values; a second pass yields the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from varcal._files.column_names import column_names, same_columns
from varcal._files.open_files import (
    json_blocks,
    open_arrow,
    open_csv,
    read_json,
    refuse_bytes,
    validated,
)
from varcal._files.source import DELIMITERS, Source, reading
from varcal.exceptions import InputError

#: Rows per chunk of Parquet and Arrow files. A chunk of ten numeric columns takes 5 MB.
CHUNK_ROWS = 1 << 16
#: Bytes per chunk of text files.
BLOCK_BYTES = 1 << 20
#: The types that are tried for a CSV column, in this order, until all values can be parsed.
_CSV_TYPES = [
    pa.null(),
    pa.int64(),
    pa.float64(),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("s"),
    pa.timestamp("ns"),
    pa.string(),
]


@dataclass(frozen=True)
class Chunk:
    """Some consecutive rows of a file.

    Attributes
    ----------
    kept : pyarrow.RecordBatch
        All columns, as they are written to the output.
    used : pyarrow.RecordBatch
        The columns that are needed for computing, with their types.
    source : Source
        The file.
    first_row : int
        The position of the first row within the file.
    """

    kept: pa.RecordBatch
    used: pa.RecordBatch
    source: Source
    first_row: int


@dataclass(frozen=True)
class RowStream:
    """The rows of several files with the same columns.

    Attributes
    ----------
    sources : tuple of Source
        The files.
    used : tuple of str
        The columns that are needed for computing.
    as_text : bool
        Whether the values of CSV files are kept exactly as they are written in the file.
    texts : frozenset of str
        Columns of CSV files that are text, even if their values look like numbers.
    instants : frozenset of str
        Columns of JSON files whose text is to be read as dates.
    schema : pyarrow.Schema
        The columns of `Chunk.kept`.
    """

    sources: tuple[Source, ...]
    used: tuple[str, ...]
    as_text: bool = False
    texts: frozenset[str] = frozenset()
    instants: frozenset[str] = frozenset()
    schema: pa.Schema = field(init=False)
    _types: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        first = same_columns(self.sources, self.used)
        if self._all_text:
            types = self._common_types(self.used)
            schema = pa.schema([(name, pa.string()) for name in first])
        else:
            types = schema = self._common_types(first)
        object.__setattr__(self, "_types", types)
        object.__setattr__(self, "schema", schema)

    @property
    def _all_text(self) -> bool:
        return self.as_text and all(source.format in DELIMITERS for source in self.sources)

    def __iter__(self) -> Iterator[Chunk]:
        for source in self.sources:
            row = 0
            with reading(source):
                for kept, used in self._pairs(source):
                    if kept.num_rows:
                        yield Chunk(kept, used, source, row)
                    row += kept.num_rows

    def _pairs(self, source: Source) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        if self._all_text:
            # Blocks are cut by the number of bytes, so both readers return the same rows per block.
            as_written = open_csv(
                source,
                BLOCK_BYTES,
                column_types=dict.fromkeys(self.schema.names, pa.string()),
                strings_can_be_null=False,
                include_columns=self.schema.names,
            )
            typed = open_csv(
                source,
                BLOCK_BYTES,
                column_types={name: self._types.field(name).type for name in self.used},
                include_columns=list(self.used),
            )
            yield from zip(as_written, typed, strict=True)
            return
        for batch in _batches(source, self.schema):
            whole = _as_schema(batch, self.schema)
            yield whole, whole.select(list(self.used))

    def _common_types(self, names: Sequence[str]) -> pa.Schema:
        return common_types(self.sources, names, self.texts, self.instants)


def common_types(
    sources: Sequence[Source],
    names: Sequence[str],
    texts: frozenset[str] = frozenset(),
    instants: frozenset[str] = frozenset(),
) -> pa.Schema:
    """Return types that fit all values of some columns in all files.

    Parameters
    ----------
    sources : sequence of Source
        The files.
    names : sequence of str
        The columns.
    texts, instants : frozenset of str
        As in `RowStream`.

    Returns
    -------
    pyarrow.Schema
        One field per column.
    """
    common: pa.Schema | None = None
    for source in sources:
        with reading(source):
            own = _types_of(source, names, texts, instants)
        common = own if common is None else _unified(common, own, source)
    return common


def batches_of(sources: Sequence[Source], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files, with the columns and types of a schema."""
    for source in sources:
        with reading(source):
            for batch in _batches(source, schema):
                yield _as_schema(batch, schema)


def _types_of(
    source: Source, names: Sequence[str], texts: frozenset[str], instants: frozenset[str]
) -> pa.Schema:
    if source.format == "parquet":
        from pyarrow import parquet  # noqa: PLC0415  slow to load

        return _selected(parquet.read_schema(source.path), names)
    if source.format == "arrow":
        return _selected(open_arrow(source).schema, names)
    if source.format == "jsonl":
        return _json_types(source, names, instants)
    return _csv_types(source, names, dict.fromkeys(texts & set(names), pa.string()))


def _selected(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names], metadata=schema.metadata)


def _unified(before: pa.Schema, own: pa.Schema, source: Source) -> pa.Schema:
    """Return types that fit both the files before and this one."""
    fields = []
    for known in before:
        new = own.field(known.name)
        if known.type != new.type:
            known, new = _decoded(known), _decoded(new)
        try:
            both = pa.unify_schemas(
                [pa.schema([known]), pa.schema([new])], promote_options="permissive"
            )
            fields.append(both.field(0))
        except pa.ArrowException:
            raise InputError(
                f"column {known.name!r} has type {new.type} in {source.shown}, but {known.type} in "
                "the files before it",
                "convert the files to the same types, or pass one file at a time",
                argument="column",
            ) from None
    return pa.schema(fields, metadata=before.metadata)


def _decoded(column: pa.Field) -> pa.Field:
    """Return a dictionary column as one of plain values."""
    kind = column.type
    return column.with_type(kind.value_type) if pa.types.is_dictionary(kind) else column


def _csv_types(source: Source, names: Sequence[str], types: dict[str, pa.DataType]) -> pa.Schema:
    """Read a CSV file until its columns have types that fit all values."""
    while True:
        try:
            reader = open_csv(source, BLOCK_BYTES, column_types=types, include_columns=list(names))
            refuse_bytes(reader.schema)
            types = {column.name: column.type for column in reader.schema}
            for _ in reader:
                pass
        except pa.ArrowInvalid as error:
            failed = re.match(r"In CSV column #(\d+): .*CSV conversion error", str(error))
            name = "" if failed is None else column_names(source)[int(failed[1])]
            if types.get(name, pa.string()) == pa.string():
                raise
            types[name] = _next_type(types[name])
            continue
        return pa.schema(list(types.items()))


def _next_type(failed: pa.DataType) -> pa.DataType:
    return _CSV_TYPES[_CSV_TYPES.index(failed) + 1] if failed in _CSV_TYPES else pa.string()


def _json_types(source: Source, names: Sequence[str], instants: frozenset[str]) -> pa.Schema:
    found: dict[str, pa.DataType] = {}
    for block in json_blocks(source, BLOCK_BYTES):
        for column in read_json(block).schema:
            before = found.get(column.name, pa.null())
            try:
                both = pa.unify_schemas(
                    [pa.schema({"x": before}), pa.schema({"x": column.type})],
                    promote_options="permissive",
                )
                found[column.name] = both.field(0).type
            except pa.ArrowException:
                # Timestamps are text that looks like dates; with other text, the column is text.
                found[column.name] = pa.string()
    return pa.schema(
        {
            name: pa.string() if pa.types.is_timestamp(kind) and name not in instants else kind
            for name, kind in ((name, found.get(name, pa.null())) for name in names)
        }
    )


def _batches(source: Source, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if source.format == "parquet":
        from pyarrow import parquet  # noqa: PLC0415  slow to load

        with parquet.ParquetFile(source.path) as file:
            yield from map(validated, file.iter_batches(CHUNK_ROWS, columns=schema.names))
    elif source.format == "arrow":
        yield from _arrow_batches(open_arrow(source))
    elif source.format == "jsonl":
        for block in json_blocks(source, BLOCK_BYTES):
            yield from read_json(block, schema).combine_chunks().to_batches()
    else:
        types = {column.name: column.type for column in schema}
        yield from open_csv(source, BLOCK_BYTES, column_types=types, include_columns=schema.names)


def _arrow_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    count = getattr(reader, "num_record_batches", None)
    batches = reader if count is None else (reader.get_batch(k) for k in range(count))
    for batch in map(validated, batches):
        for start in range(0, batch.num_rows, CHUNK_ROWS):
            yield batch.slice(start, CHUNK_ROWS)


def _as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch.replace_schema_metadata(schema.metadata)
    columns = [batch.column(column.name).cast(column.type) for column in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
