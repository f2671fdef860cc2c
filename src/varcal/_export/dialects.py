"""The databases: how they write names, texts, numbers and tables.

What is not here is common to all: common table expressions, CASE, CROSS JOIN, LN, EXP, SQRT, ABS,
LEAST and GREATEST of numbers that are not NULL.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from varcal.exceptions import InputError


@dataclass(frozen=True)
class Dialect:
    """One database.

    Attributes
    ----------
    name : str
        Its name as an argument, and in sqlglot.
    title : str
        Its name in sentences.
    double, text_type : str
        The types of numbers in double precision and of texts.
    quote : str
        The character around names.
    is_nan, seconds : str
        A condition, and the seconds of an instant since 1970, with ``{}`` for the column.
    zoned_type : str
        The type of instants that are written with a time zone.
    clock : str
        The seconds that a clock shows; ``{0}`` are those since 1970, ``{1}`` is the time zone.
    row_number : str
        The number of a row in the table.
    array, at : str
        An array of numbers, with ``{}`` for these, and its element at a position.
    first : int
        The position of the first element of an array.
    literal_suffix : str
        What makes a literal a number in double precision.
    backslash : bool
        Whether a backslash in a text begins an escape.
    range_errors : bool
        Whether a result that is too large or too small is an error.
    most_characters : float
        The longest query that it reads.
    """

    name: str
    title: str
    double: str = "DOUBLE"
    text_type: str = "VARCHAR"
    quote: str = '"'
    is_nan: str = "isnan({})"
    seconds: str = "UNIX_MICROS(CAST({} AS TIMESTAMP)) / 1000000e0"
    zoned_type: str = "TIMESTAMPTZ"
    clock: str = "EPOCH(TIMEZONE({1}, TO_TIMESTAMP({0})))"
    row_number: str = "ROW_NUMBER() OVER ()"
    array: str = "[{}]"
    at: str = "{}[{}]"
    first: int = 0
    literal_suffix: str = "e0"
    backslash: bool = False
    range_errors: bool = True
    most_characters: float = math.inf

    def identifier(self, name: str) -> str:
        """Quote the name of a column or a table."""
        if "\0" in name or not name:
            raise InputError(f"a name in SQL cannot be {name!r}", "rename the column or the table")
        if self.name == "spark" and "${" in name:
            # Spark replaces ${…} everywhere before it reads a query.
            raise InputError(
                f"Spark cannot read the name {name!r}, because it holds '${{'",
                "rename the column or the table",
            )
        if self.name == "bigquery" and not set(name).isdisjoint("`\\\n\r"):
            raise InputError(f"BigQuery has no such name: {name!r}", "rename the column")
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def text(self, value: str) -> str:
        """Write a text."""
        if self.backslash:
            escaped = "".join(_ESCAPES.get(character, character) for character in value)
            return f"'{escaped}'"
        quoted = "'" + value.replace("'", "''") + "'"
        return quoted.replace("\0", "' || CHR(0) || '")

    def cut(self, value: float) -> str:
        """Write a finite number in double precision, with all its digits."""
        shown = repr(float(value)).removesuffix(".0")
        if self.literal_suffix == "e0":
            return shown if "e" in shown else f"{shown}e0"
        return shown + self.literal_suffix

    def numbers(self, values: Iterable[float]) -> str:
        """Write an array of finite numbers."""
        # Those of PostgreSQL are a text, which needs no suffix at every number.
        write = self.cut if self.literal_suffix == "e0" else repr
        return self.array.format(", ".join(map(write, values)))

    def element(self, array: str, position: str, ahead: int = 0) -> str:
        """Write the element of an array at, or after, a position that is counted from 0."""
        shift = self.first + ahead
        return self.at.format(array, f"{position} + {shift}" if shift else position)

    def truth_value(self, value: bool) -> str:
        """Write a truth value."""
        return "TRUE" if value else "FALSE"


#: Characters of texts that databases with backslashes must not read as they are. Spark also
#: replaces ${…}, wherever it is.
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\u0000", "$": "\\u0024"}

#: An instant of Spark and BigQuery.
_MICROS = "TIMESTAMP_MICROS(CAST(ROUND({0} * 1000000e0) AS BIGINT))"

DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("duckdb", "DuckDB", seconds="EPOCH({})", first=1, range_errors=False),
        Dialect(
            "postgres",
            "PostgreSQL",
            double="DOUBLE PRECISION",
            text_type="TEXT",
            is_nan="{} = 'NaN'",
            seconds="CAST(EXTRACT(EPOCH FROM {}) AS DOUBLE PRECISION)",
            clock=(
                "CAST(EXTRACT(EPOCH FROM TO_TIMESTAMP({0}) AT TIME ZONE {1}) AS DOUBLE PRECISION)"
            ),
            array="CAST('{{{}}}' AS DOUBLE PRECISION[])",
            first=1,
            literal_suffix="::float8",
        ),
        Dialect(
            "spark",
            "Spark",
            text_type="STRING",
            zoned_type="TIMESTAMP",
            quote="`",
            clock=f"UNIX_MICROS(FROM_UTC_TIMESTAMP({_MICROS}, {{1}})) / 1000000e0",
            row_number="monotonically_increasing_id()",
            array="ARRAY({})",
            backslash=True,
            range_errors=False,
        ),
        Dialect(
            "bigquery",
            "BigQuery",
            double="FLOAT64",
            text_type="STRING",
            zoned_type="TIMESTAMP",
            quote="`",
            is_nan="IS_NAN({})",
            clock=f"UNIX_MICROS(TIMESTAMP(DATETIME({_MICROS}, {{1}}))) / 1000000e0",
            at="{}[OFFSET({})]",
            backslash=True,
            most_characters=1e6,
        ),
        Dialect(
            "snowflake",
            "Snowflake",
            is_nan="{} = 'NaN'",
            seconds="DATE_PART(EPOCH_MICROSECOND, {}) / 1000000e0",
            clock=(
                "DATE_PART(EPOCH_MICROSECOND, CONVERT_TIMEZONE('UTC', {1}, "
                "TO_TIMESTAMP_NTZ(CAST(ROUND({0} * 1000000e0) AS BIGINT), 6))) / 1000000e0"
            ),
            row_number="ROW_NUMBER() OVER (ORDER BY NULL)",
            array="ARRAY_CONSTRUCT({})",
            at="CAST(GET({}, {}) AS DOUBLE)",
            backslash=True,
            most_characters=1e6,
        ),
    )
}
