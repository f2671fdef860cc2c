"""The rows of files, read into one table."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from varcal._files.column_names import same_columns
from varcal._files.json_guard import CheckedLines, line_blocks
from varcal._files.open_files import (
    JSON_BLOCK_BYTES,
    csv_conversion,
    csv_parsing,
    open_arrow,
    open_bytes,
    refuse_bytes,
    validated,
)
from varcal._files.source import DELIMITERS, Source, reading
from varcal.exceptions import InputError

if TYPE_CHECKING:
    import pyarrow as pa


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
            parse_options=csv_parsing(source),
            convert_options=csv_conversion(source, include_columns=wanted),
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
