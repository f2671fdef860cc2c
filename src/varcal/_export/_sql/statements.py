"""Statements that create and fill tables."""

from __future__ import annotations

from collections.abc import Mapping

from varcal._arrays import AnyArray
from varcal._export._sql.dialects import Dialect

__all__ = ["create_table"]

#: Rows of a table in one INSERT.
INSERTED = 500


def create_table(
    dialect: Dialect, table: str, columns: Mapping[str, AnyArray], *, quoted: bool = False
) -> list[str]:
    """Return the statements that create and fill a table.

    Names of columns are quoted only if they come from a user: queries do not quote those of look-up
    tables, and in Snowflake a quoted name is another one.
    """
    names = [dialect.identifier(name) if quoted else name for name in columns]
    types = [f"  {n} {_type(dialect, c)}" for n, c in zip(names, columns.values(), strict=True)]
    create = [f"CREATE TABLE {table} (\n" + ",\n".join(types) + "\n)"]
    cells = [_literals(dialect, column) for column in columns.values()]
    rows = [f"  ({', '.join(row)})" for row in zip(*cells, strict=True)]
    return create + [
        f"INSERT INTO {table} VALUES\n" + ",\n".join(rows[begin : begin + INSERTED])
        for begin in range(0, len(rows), INSERTED)
    ]


def _type(dialect: Dialect, column: AnyArray) -> str:
    if column.dtype.kind in "iu":
        return dialect.whole
    if column.dtype.kind == "M":
        return dialect.timestamp
    if {type(value) for value in column.tolist()} - {type(None)} == {bool}:
        return dialect.truth
    return dialect.double if column.dtype.kind == "f" else dialect.text_type


def _literals(dialect: Dialect, column: AnyArray) -> list[str]:
    if column.dtype.kind in "iu":
        return [str(value) for value in column.tolist()]
    if column.dtype.kind == "f":
        return [dialect.any_number(value) for value in column.tolist()]
    if column.dtype.kind == "M":
        return ["NULL" if value is None else f"'{value}'" for value in column.tolist()]
    return [_level(dialect, value) for value in column.tolist()]


def _level(dialect: Dialect, value: object) -> str:
    """Write a level: text, a truth value, or a whole number."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return dialect.truth_value(value)
    return dialect.text(str(value))
