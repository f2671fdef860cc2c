"""How databases write names, texts, numbers and the few functions that they name differently.

Everything else is common to all: nested queries, CASE, LEFT JOIN, LN, EXP, SQRT, ABS, FLOOR, LEAST
and GREATEST of numbers that are not NULL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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
    double, whole, text_type, timestamp, truth : str
        The types of numbers in double precision, of whole numbers, texts, instants and truth
        values.
    quote : str
        The character around names.
    is_nan, seconds : str
        A condition, and the seconds of an instant since 1970, with ``{}`` for the column.
    row_number : str
        The number of a row in the table.
    special : str
        A number that is not finite, with ``{}`` for its name.
    literal_suffix : str
        What makes a literal a number in double precision.
    backslash : bool
        Whether a backslash in a text begins an escape.
    materialized : str
        What keeps the database from computing the columns of a common table expression again
        wherever they are used.
    inner_product : str
        The inner product of two lists, with ``{}`` for each; empty where there is none that is
        fast.
    list_of : str
        A list, with ``{}`` for its elements.
    exp_fails : bool
        Whether an exponential that is too large or too small is an error.
    digits : int
        Digits of numbers; 17 tell all numbers apart.
    """

    name: str
    title: str
    double: str
    whole: str
    text_type: str
    timestamp: str
    truth: str
    quote: str
    is_nan: str
    seconds: str
    row_number: str
    special: str
    literal_suffix: str = "e0"
    backslash: bool = False
    materialized: str = ""
    inner_product: str = ""
    list_of: str = "[{}]"
    exp_fails: bool = True
    digits: int = 17

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
        if self.name == "bigquery":
            if not set(name).isdisjoint("`\\\n\r"):
                raise InputError(f"BigQuery has no such name: {name!r}", "rename the column")
            return f"`{name}`"
        return self.quote + name.replace(self.quote, self.quote * 2) + self.quote

    def text(self, value: str) -> str:
        """Write a text."""
        if self.backslash:
            escaped = "".join(_ESCAPES.get(character, character) for character in value)
            return f"'{escaped}'"
        quoted = "'" + value.replace("'", "''") + "'"
        return quoted.replace("\0", "' || CHR(0) || '")

    def number(self, value: float) -> str:
        """Write a number in double precision; it must be finite."""
        shown = repr(float(value)) if self.digits == 17 else f"{value:.{self.digits}g}"
        shown = shown.removesuffix(".0")
        if self.literal_suffix == "e0":
            return shown if "e" in shown else f"{shown}e0"
        return shown + self.literal_suffix

    def cut(self, value: float) -> str:
        """Write a number that others are compared with, with all its digits."""
        return replace(self, digits=17).number(value)

    def any_number(self, value: float | None) -> str:
        """Write a number that may be missing, infinite or not a number."""
        if value is None:
            return "NULL"
        if math.isfinite(value):
            return self.number(value)
        names = {math.inf: "Infinity", -math.inf: "-Infinity"}
        return self.special.format(names.get(value, "NaN"))

    def number_of_row(self, key: str | None) -> str:
        """Write the number of a row, by the order of a key if there is one."""
        if key is None:
            return self.row_number
        return f"ROW_NUMBER() OVER (ORDER BY t.{self.identifier(key)})"

    def truth_value(self, value: bool) -> str:
        """Write a truth value."""
        return "TRUE" if value else "FALSE"


#: Characters of texts that databases with backslashes must not read as they are. Spark also
#: replaces ${…}, wherever it is.
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\u0000", "$": "\\u0024"}

DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            "duckdb",
            "DuckDB",
            double="DOUBLE",
            whole="INTEGER",
            text_type="VARCHAR",
            timestamp="TIMESTAMP",
            truth="BOOLEAN",
            quote='"',
            is_nan="isnan({})",
            seconds="EPOCH({})",
            row_number="ROW_NUMBER() OVER ()",
            special="CAST('{}' AS DOUBLE)",
            inner_product="list_dot_product({}, {})",
            exp_fails=False,
        ),
        Dialect(
            "postgres",
            "PostgreSQL",
            double="DOUBLE PRECISION",
            whole="INTEGER",
            text_type="TEXT",
            timestamp="TIMESTAMP",
            truth="BOOLEAN",
            quote='"',
            is_nan="{} = 'NaN'",
            seconds="CAST(EXTRACT(EPOCH FROM {}) AS DOUBLE PRECISION)",
            row_number="ROW_NUMBER() OVER ()",
            special="CAST('{}' AS DOUBLE PRECISION)",
            literal_suffix="::float8",
            materialized="MATERIALIZED ",
        ),
        Dialect(
            "spark",
            "Spark",
            double="DOUBLE",
            whole="INT",
            text_type="STRING",
            timestamp="TIMESTAMP",
            truth="BOOLEAN",
            quote="`",
            is_nan="isnan({})",
            seconds="unix_micros(CAST({} AS TIMESTAMP)) / 1000000e0",
            row_number="monotonically_increasing_id()",
            special="CAST('{}' AS DOUBLE)",
            backslash=True,
            inner_product="aggregate(zip_with({}, {}, (a, b) -> a * b), 0e0, (s, x) -> s + x)",
            list_of="array({})",
            exp_fails=False,
        ),
        Dialect(
            "bigquery",
            "BigQuery",
            double="FLOAT64",
            whole="INT64",
            text_type="STRING",
            timestamp="TIMESTAMP",
            truth="BOOL",
            quote="`",
            is_nan="IS_NAN({})",
            seconds="UNIX_MICROS(CAST({} AS TIMESTAMP)) / 1000000e0",
            row_number="ROW_NUMBER() OVER ()",
            special="CAST('{}' AS FLOAT64)",
            backslash=True,
        ),
        Dialect(
            "snowflake",
            "Snowflake",
            double="DOUBLE",
            whole="INTEGER",
            text_type="VARCHAR",
            timestamp="TIMESTAMP_NTZ",
            truth="BOOLEAN",
            quote='"',
            is_nan="{} = 'NaN'",
            seconds="DATE_PART(EPOCH_MICROSECOND, {}) / 1000000e0",
            row_number="ROW_NUMBER() OVER (ORDER BY NULL)",
            special="CAST('{}' AS DOUBLE)",
            backslash=True,
        ),
    )
}
