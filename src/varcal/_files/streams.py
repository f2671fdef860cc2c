"""Rows of files in chunks: memory does not grow with the files, and types stay what they are.

CSV and JSON do not say their types, and a chunk shows only its own. A first pass over such files
settles them, a second one gives the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from varcal._files.sources import (
    DELIMITERS,
    Source,
    column_names,
    line_blocks,
    open_arrow,
    open_csv,
    read_json,
    reading,
    same_columns,
)
from varcal.exceptions import InputError

#: Rows at a time, of formats that know rows; text comes in blocks of bytes.
CHUNK_ROWS = 1 << 16
BLOCK_BYTES = 1 << 20
# What a CSV column is tried as when its values refuse one type.
_LADDER = [
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
    """Some rows: all columns as they are to be kept, and those that are computed on."""

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
        The columns that are computed on.
    as_text : bool
        Whether columns of CSV are kept letter by letter.
    texts, instants : frozenset of str
        Columns that are texts whatever they look like (CSV), and texts that are dates (JSON).
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
            types = self._settled(self.used)
            schema = pa.schema([(name, pa.string()) for name in first])
        else:
            types = schema = self._settled(first)
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
            # Blocks are cut by bytes alone, so that both readers see the same rows.
            plain = open_csv(
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
            yield from zip(plain, typed, strict=True)
            return
        for batch in _batches(source, self.schema):
            whole = _as_schema(batch, self.schema)
            yield whole, whole.select(list(self.used))

    def _settled(self, names: Sequence[str]) -> pa.Schema:
        return settled_types(self.sources, names, self.texts, self.instants)


def settled_types(
    sources: Sequence[Source],
    names: Sequence[str],
    texts: frozenset[str] = frozenset(),
    instants: frozenset[str] = frozenset(),
) -> pa.Schema:
    """Return types that hold all values of some columns in all files."""
    settled: pa.Schema | None = None
    for source in sources:
        with reading(source):
            own = _types_of(source, names, texts, instants)
        settled = own if settled is None else _united(settled, own, source)
    return settled


def batches_of(sources: Sequence[Source], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of files, their columns as a schema has them."""
    for source in sources:
        with reading(source):
            for batch in _batches(source, schema):
                yield _as_schema(batch, schema)


def _types_of(
    source: Source, names: Sequence[str], texts: frozenset[str], instants: frozenset[str]
) -> pa.Schema:
    if source.format == "parquet":
        return _selected(parquet.read_schema(source.path), names)
    if source.format == "arrow":
        return _selected(open_arrow(source).schema, names)
    if source.format == "jsonl":
        return _json_types(source, names, instants)
    return _csv_types(source, names, dict.fromkeys(texts & set(names), pa.string()))


def _selected(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names], metadata=schema.metadata)


def _united(before: pa.Schema, own: pa.Schema, source: Source) -> pa.Schema:
    fields = []
    for one in before:
        other = own.field(one.name)
        if one.type != other.type:
            one, other = _decoded(one), _decoded(other)
        try:
            both = pa.unify_schemas(
                [pa.schema([one]), pa.schema([other])], promote_options="permissive"
            )
            fields.append(both.field(0))
        except pa.ArrowException:
            raise InputError(
                f"column {one.name!r} is {other.type} in {source.shown}, and {one.type} before it",
                "bring the files to the same types, or give them one at a time",
                argument="column",
            ) from None
    return pa.schema(fields, metadata=before.metadata)


def _decoded(one: pa.Field) -> pa.Field:
    return one.with_type(one.type.value_type) if pa.types.is_dictionary(one.type) else one


def _csv_types(source: Source, names: Sequence[str], types: dict[str, pa.DataType]) -> pa.Schema:
    """Read a CSV file until its columns have types that no value refuses."""
    while True:
        try:
            reader = open_csv(source, BLOCK_BYTES, column_types=types, include_columns=list(names))
            types = {one.name: one.type for one in reader.schema}
            for _ in reader:
                pass
        except pa.ArrowInvalid as error:
            refused = re.match(r"In CSV column #(\d+): .*CSV conversion error", str(error))
            name = "" if refused is None else column_names(source)[int(refused[1])]
            if types.get(name, pa.string()) == pa.string():
                raise
            types[name] = _next_type(types[name])
            continue
        return pa.schema(list(types.items()))


def _next_type(refused: pa.DataType) -> pa.DataType:
    return _LADDER[_LADDER.index(refused) + 1] if refused in _LADDER else pa.string()


def _json_types(source: Source, names: Sequence[str], instants: frozenset[str]) -> pa.Schema:
    found: dict[str, pa.DataType] = {}
    for block in line_blocks(source, BLOCK_BYTES):
        for one in read_json(block).schema:
            before = found.get(one.name, pa.null())
            try:
                both = pa.unify_schemas(
                    [pa.schema({"x": before}), pa.schema({"x": one.type})],
                    promote_options="permissive",
                )
                found[one.name] = both.field(0).type
            except pa.ArrowException:
                # Timestamps are texts that look like dates; beside other texts they are texts.
                found[one.name] = pa.string()
    return pa.schema(
        {
            name: pa.string() if pa.types.is_timestamp(kind) and name not in instants else kind
            for name, kind in ((name, found.get(name, pa.null())) for name in names)
        }
    )


def _batches(source: Source, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if source.format == "parquet":
        with parquet.ParquetFile(source.path) as file:
            yield from file.iter_batches(CHUNK_ROWS, columns=schema.names)
    elif source.format == "arrow":
        yield from _arrow_batches(open_arrow(source))
    elif source.format == "jsonl":
        for block in line_blocks(source, BLOCK_BYTES):
            yield from read_json(block, schema).combine_chunks().to_batches()
    else:
        types = {one.name: one.type for one in schema}
        yield from open_csv(source, BLOCK_BYTES, column_types=types, include_columns=schema.names)


def _arrow_batches(reader: Any) -> Iterator[pa.RecordBatch]:
    count = getattr(reader, "num_record_batches", None)
    whole = reader if count is None else (reader.get_batch(k) for k in range(count))
    for batch in whole:
        for start in range(0, batch.num_rows, CHUNK_ROWS):
            yield batch.slice(start, CHUNK_ROWS)


def _as_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    if batch.schema.equals(schema):
        return batch.replace_schema_metadata(schema.metadata)
    columns: Mapping[str, Any] = {one.name: batch.column(one.name).cast(one.type) for one in schema}
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=schema)
