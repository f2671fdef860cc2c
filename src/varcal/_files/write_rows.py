"""Writing rows to files in batches, in every format that can be read."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute

from varcal._files.dialect import Dialect, encoding_name
from varcal._files.formats import DELIMITERS, Source
from varcal.exceptions import InputError


def output_dialect(sources: Sequence[Source], format: str) -> Dialect:
    """Return the dialect in which rows of text files are written to another one.

    Values are kept as they are written, so the decimal mark stays, and with it encoding and line
    ends. The separator stays if the format does; otherwise it is the usual one of the format.

    Raises
    ------
    InputError
        If the files have different decimal marks.
    """
    if format not in DELIMITERS or any(source.format not in DELIMITERS for source in sources):
        return Dialect(DELIMITERS.get(format, ","))
    first, own = sources[0], sources[0].dialect
    for source in sources:
        if source.dialect.decimal != own.decimal:
            written = f"{source.shown} is {source.dialect.describe()}"
            hint = "pass files with the same decimal mark, or write Parquet, which has none"
            raise InputError(f"{first.shown} is {own.describe()}, but {written}", hint)
    if any(source.dialect.encoding != own.encoding for source in sources):
        own = replace(own, encoding="utf-8")
    if format == first.format:
        return own
    usual = DELIMITERS[format]
    return replace(own, separator=";" if usual == own.decimal else usual)


@contextmanager
def open_sink(
    path: Path, format: str, gzipped: bool, schema: pa.Schema, dialect: Dialect | None = None
) -> Iterator[Callable[[pa.RecordBatch], Any]]:
    """Open a file for writing rows of a schema.

    Parameters
    ----------
    path : Path
        The file.
    format : str
        One of the keys of `varcal._files.formats.FORMATS`.
    gzipped : bool
        Whether to compress a text format.
    schema : pyarrow.Schema
        The names and types of the columns.
    dialect : Dialect, optional
        How columns between separators are written; by default in the usual way of the format.

    Yields
    ------
    callable
        Writes a batch of rows.
    """
    if format == "parquet":
        from pyarrow import parquet  # noqa: PLC0415  slow to load

        with _written(parquet.ParquetWriter, path, schema) as parquet_file:
            yield lambda batch: _written(parquet_file.write_batch, batch)
    elif format == "arrow":
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        # Given a path, PyArrow would leave the file open, which Windows does not replace then.
        with (
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_file(file, schema, options=options) as arrow_file,
        ):
            levels: dict[str, Any] = {}
            yield lambda batch: arrow_file.write_batch(_with_shared_levels(batch, levels))
    else:
        own = dialect if dialect and format in DELIMITERS else Dialect(DELIMITERS.get(format, ","))
        _check_names(schema.names, own.encoding)
        opener: Any = gzip.open if gzipped else open
        with opener(path, "wt", encoding=own.encoding, newline="") as file:
            if format == "jsonl":
                yield lambda batch: file.writelines(_json_lines(batch))
            else:
                rows = csv.writer(file, delimiter=own.separator, lineterminator=own.newline)
                rows.writerow(schema.names)
                yield lambda batch: rows.writerows(_text_rows(batch, own.decimal))


def _written(write: Callable[..., Any], *given: Any) -> Any:
    """Call what writes Parquet; say that a column has a type or values that it cannot hold."""
    try:
        return write(*given)
    except pa.ArrowException as error:
        problem = f"the rows cannot be written as Parquet: {error}"
        raise InputError(problem, "drop the column, or write Arrow", argument="out") from None


def _check_names(names: Sequence[str], encoding: str) -> None:
    """Refuse names of new columns that the encoding of the input does not have."""
    for name in names:
        if name.encode(encoding, "replace").decode(encoding) != name:
            known = f"{encoding_name(encoding)}, the encoding of the input"
            hint = "write Parquet, or convert the input to UTF-8"
            problem = f"the column name {name!r} cannot be written in {known}"
            raise InputError(problem, hint, "column")


def _with_shared_levels(batch: pa.RecordBatch, known: dict[str, Any]) -> pa.RecordBatch:
    """Recode dictionaries: an Arrow file has one per column, which later batches only extend."""
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            before = known.get(name, column.dictionary)
            known[name] = levels = pa.concat_arrays([before, column.dictionary]).unique()
            codes = compute.index_in(column.dictionary_decode(), levels)
            codes = codes.cast(column.type.index_type)
            column = pa.DictionaryArray.from_arrays(codes, levels, ordered=column.type.ordered)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _text_rows(batch: pa.RecordBatch, decimal: str) -> Iterator[tuple[str | None, ...]]:
    """Return the rows of a batch as texts; a missing value is None."""
    columns = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        number = pa.types.is_floating(column.type)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        try:
            texts = column.cast(pa.string())
        except pa.ArrowException:
            problem = f"column {name!r} of type {column.type} cannot be written as text"
            hint = "write Parquet or Arrow instead, or drop the column"
            raise InputError(problem, hint, "column") from None
        if number and decimal != ".":
            texts = compute.replace_substring(texts, ".", decimal)
        columns.append(texts.to_pylist())
    return zip(*columns, strict=True)


def _json_lines(batch: pa.RecordBatch) -> Iterator[str]:
    try:
        rows = batch.to_pylist()
    except (OverflowError, ValueError) as error:  # such as a date after the year 9999
        problem = f"a value cannot be written as JSON: {error}"
        raise InputError(problem, "write Parquet or Arrow instead") from None
    for row in rows:
        yield json.dumps(_json_value(row), ensure_ascii=False, default=str) + "\n"


def _json_value(value: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have, by null."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {key: _json_value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_json_value(each) for each in value]
    return value
