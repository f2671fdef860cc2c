"""Writers for streamed rows, one per file format."""

from __future__ import annotations

import csv
import gzip
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Self, cast

import pyarrow as pa

from varcal._files.dialect import Dialect, encoding_name
from varcal._files.source import DELIMITERS, Source
from varcal.exceptions import InputError


class Sink(ABC):
    """A writer for batches of one schema, used as a context manager."""

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""

    @abstractmethod
    def close(self) -> None:
        """Finish the file."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
    first = sources[0]
    for source in sources:
        if source.dialect.decimal != first.dialect.decimal:
            raise InputError(
                f"{first.shown} is {first.dialect.describe()}, but {source.shown} is "
                f"{source.dialect.describe()}",
                "pass files with the same decimal mark, or write Parquet, which has none",
            )
    own = first.dialect
    if any(source.dialect.encoding != own.encoding for source in sources):
        own = replace(own, encoding="utf-8")
    if format == first.format:
        return own
    usual = DELIMITERS[format]
    return replace(own, separator=";" if usual == own.decimal else usual)


def open_sink(
    path: Path, format: str, gzipped: bool, schema: pa.Schema, dialect: Dialect | None = None
) -> Sink:
    """Open a file for writing rows of a schema.

    Parameters
    ----------
    path : Path
        The file.
    format : str
        One of the keys of `varcal._files.source.FORMATS`.
    gzipped : bool
        Whether to compress a text format.
    schema : pyarrow.Schema
        The names and types of the columns.
    dialect : Dialect, optional
        How columns between separators are written; by default in the usual way of the format.
    """
    if format == "parquet":
        return _ParquetSink(path, schema)
    if format == "arrow":
        return _ArrowSink(path, schema)
    own = Dialect(DELIMITERS[format]) if dialect is None and format in DELIMITERS else dialect
    encoding = "utf-8" if own is None or format not in DELIMITERS else own.encoding
    _check_names(schema.names, encoding)
    text = cast(
        "IO[str]",
        gzip.open(path, "wt", encoding=encoding, newline="")  # noqa: SIM115  closed by the sink
        if gzipped
        else path.open("w", encoding=encoding, newline=""),
    )
    return _JsonSink(text) if own is None or format == "jsonl" else _CsvSink(text, schema, own)


def _check_names(names: Sequence[str], encoding: str) -> None:
    """Refuse names of new columns that the encoding of the input does not have."""
    for name in names:
        try:
            name.encode(encoding)
        except UnicodeEncodeError:
            raise InputError(
                f"the column name {name!r} cannot be written in {encoding_name(encoding)}, the "
                "encoding of the input",
                "write Parquet, or convert the input to UTF-8",
                argument="column",
            ) from None


class _ParquetSink(Sink):
    """Writer for Parquet files."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        from pyarrow import parquet  # noqa: PLC0415  slow to load

        self._writer = parquet.ParquetWriter(path, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        self._writer.close()


class _ArrowSink(Sink):
    """Writer for Arrow files.

    A column of an Arrow file has a single dictionary, which later batches may only extend.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
        self._writer = pa.ipc.new_file(str(path), schema, options=options)
        self._levels: dict[str, Any] = {}

    def write(self, batch: pa.RecordBatch) -> None:
        columns = [
            self._with_shared_levels(name, column)
            if pa.types.is_dictionary(column.type)
            else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=batch.schema))

    def _with_shared_levels(self, name: str, column: Any) -> Any:
        """Recode a dictionary column so that its levels extend those of earlier batches."""
        known = self._levels.get(name)
        if known is None or known.equals(column.dictionary):
            self._levels[name] = column.dictionary
            return column
        levels = pa.concat_arrays([known, column.dictionary]).unique()
        self._levels[name] = levels
        codes = pa.compute.index_in(column.dictionary_decode(), levels)
        return pa.DictionaryArray.from_arrays(
            codes.cast(column.type.index_type), levels, ordered=column.type.ordered
        )

    def close(self) -> None:
        self._writer.close()


class _CsvSink(Sink):
    """Writer for CSV and TSV files."""

    def __init__(self, file: IO[str], schema: pa.Schema, dialect: Dialect) -> None:
        self._file = file
        self._decimal = dialect.decimal
        self._writer = csv.writer(file, delimiter=dialect.separator, lineterminator=dialect.newline)
        self._writer.writerow(schema.names)

    def write(self, batch: pa.RecordBatch) -> None:
        columns = [
            _as_text(name, column, self._decimal)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        self._writer.writerows(zip(*columns, strict=True))

    def close(self) -> None:
        self._file.close()


class _JsonSink(Sink):
    """Writer for JSON lines."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, batch: pa.RecordBatch) -> None:
        try:
            rows = batch.to_pylist()
        except (OverflowError, ValueError) as error:  # such as a date after the year 9999
            raise InputError(
                f"a value cannot be written as JSON: {error}", "write Parquet or Arrow instead"
            ) from None
        for row in rows:
            text = json.dumps(_json_value(row), ensure_ascii=False, default=str)
            self._file.write(text + "\n")

    def close(self) -> None:
        self._file.close()


def _as_text(name: str, column: Any, decimal: str) -> list[str | None]:
    number = pa.types.is_floating(column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        texts: list[str | None] = column.cast(pa.string()).to_pylist()
    except pa.ArrowException:
        raise InputError(
            f"column {name!r} of type {column.type} cannot be written as text",
            "write Parquet or Arrow instead, or drop the column",
            argument="column",
        ) from None
    if number and decimal != ".":
        return [None if text is None else text.replace(".", decimal) for text in texts]
    return texts


def _json_value(value: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have, by null."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, Mapping):
        return {key: _json_value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_json_value(each) for each in value]
    return value
