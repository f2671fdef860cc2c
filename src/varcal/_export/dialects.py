"""How databases write names, texts, numbers and the few functions that they name differently.

Everything else is common to all: nested queries, CASE, LEFT JOIN, LN, EXP, SQRT, ABS, LEAST and
GREATEST of numbers that are not NULL.
"""

from __future__ import annotations

import math
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
    row_number : str
        The number of a row in the table.
    literal_suffix : str
        What makes a literal a number in double precision.
    backslash : bool
        Whether a backslash in a text begins an escape.
    exp_fails : bool
        Whether an exponential that is too large or too small is an error.
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
    row_number: str = "ROW_NUMBER() OVER ()"
    literal_suffix: str = "e0"
    backslash: bool = False
    exp_fails: bool = True
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

    def truth_value(self, value: bool) -> str:
        """Write a truth value."""
        return "TRUE" if value else "FALSE"


#: Characters of texts that databases with backslashes must not read as they are. Spark also
#: replaces ${…}, wherever it is.
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\0": "\\u0000", "$": "\\u0024"}

DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("duckdb", "DuckDB", seconds="EPOCH({})", exp_fails=False),
        Dialect(
            "postgres",
            "PostgreSQL",
            double="DOUBLE PRECISION",
            text_type="TEXT",
            is_nan="{} = 'NaN'",
            seconds="CAST(EXTRACT(EPOCH FROM {}) AS DOUBLE PRECISION)",
            literal_suffix="::float8",
        ),
        Dialect(
            "spark",
            "Spark",
            text_type="STRING",
            quote="`",
            row_number="monotonically_increasing_id()",
            backslash=True,
            exp_fails=False,
        ),
        Dialect(
            "bigquery",
            "BigQuery",
            double="FLOAT64",
            text_type="STRING",
            quote="`",
            is_nan="IS_NAN({})",
            backslash=True,
            most_characters=1e6,
        ),
        Dialect(
            "snowflake",
            "Snowflake",
            is_nan="{} = 'NaN'",
            seconds="DATE_PART(EPOCH_MICROSECOND, {}) / 1000000e0",
            row_number="ROW_NUMBER() OVER (ORDER BY NULL)",
            backslash=True,
            most_characters=1e6,
        ),
    )
}
