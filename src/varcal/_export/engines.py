"""Connections to databases: temporary tables, and the rows of a query as numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal._export.dialects import DIALECTS, Dialect
from varcal.exceptions import InputError

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


Columns = Mapping[str, AnyArray]


class Engine(ABC):
    """An open connection."""

    def __init__(self, connection: Any, dialect: Dialect) -> None:
        self.connection, self.dialect = connection, dialect

    @contextmanager
    def temporary_tables(self, tables: Mapping[str, Columns]) -> Iterator[None]:
        """Create tables for a block, and remove them at its end.

        A temporary table that is there already is refused: it is not ours to remove.
        """
        made = []
        try:
            for name, columns in tables.items():
                if self.exists(name):
                    raise InputError(
                        f"there already is a temporary table {name!r}",
                        "remove it, or choose another prefix=",
                        argument="prefix",
                    )
                made.append(name)
                self.create(name, columns)
            yield
        except BaseException:
            for name in made:
                # After an error PostgreSQL refuses all else until the user rolls back, which
                # removes the tables, too. The first error is the one to report.
                with suppress(Exception):
                    self.drop(name)
            raise
        for name in made:
            self.drop(name)

    @abstractmethod
    def exists(self, name: str) -> bool:
        """Tell whether there is a temporary table of this name."""

    @abstractmethod
    def create(self, name: str, columns: Columns) -> None:
        """Create a temporary table."""

    @abstractmethod
    def drop(self, name: str) -> None:
        """Remove a temporary table."""

    @abstractmethod
    def rows(self, query: str) -> Floats:
        """Return the rows of a query, NaN for NULL."""


class _DuckDB(Engine):
    def exists(self, name: str) -> bool:
        # The names of DuckDB's tables and views do not differ by case alone.
        found = self.connection.execute(
            "SELECT 1 FROM information_schema.tables "
            "WHERE table_catalog = 'temp' AND lower(table_name) = lower(?)",
            [name],
        )
        return found.fetchone() is not None

    def create(self, name: str, columns: Columns) -> None:
        import pyarrow as pa  # noqa: PLC0415  a table of pyarrow is copied fastest

        table = pa.table({key: _arrow(column) for key, column in columns.items()})
        self.connection.register("varcal_table", table)
        try:
            quoted = self.dialect.identifier(name)
            self.connection.execute(f"CREATE TEMP TABLE {quoted} AS FROM varcal_table")
        finally:
            self.connection.unregister("varcal_table")

    def drop(self, name: str) -> None:
        self.connection.execute(f"DROP TABLE IF EXISTS temp.{self.dialect.identifier(name)}")

    def rows(self, query: str) -> Floats:
        found = self.connection.execute(query).fetchnumpy()
        return np.column_stack([np.ma.filled(c.astype(np.float64), np.nan) for c in found.values()])


class _Postgres(Engine):
    def exists(self, name: str) -> bool:
        table = f"pg_temp.{self.dialect.identifier(name)}"
        with self.connection.cursor() as cursor:
            cursor.execute(f"SELECT to_regclass({self.dialect.text(table)}) IS NOT NULL")
            return bool(cursor.fetchone()[0])

    def create(self, name: str, columns: Columns) -> None:
        table = f"pg_temp.{self.dialect.identifier(name)}"
        with self.connection.cursor() as cursor:
            for text in create_table(self.dialect, table, columns, quoted=True):
                cursor.execute(text.replace("CREATE TABLE pg_temp.", "CREATE TEMP TABLE ", 1))
            cursor.execute(f"ANALYZE {table}")

    def drop(self, name: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS pg_temp.{self.dialect.identifier(name)}")

    def rows(self, query: str) -> Floats:
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('jit')")
            before = cursor.fetchone()[0]
            # Compiling a long query takes far longer than running it.
            cursor.execute("SET jit = off")
            try:
                cursor.execute(query)
                width, found = len(cursor.description), cursor.fetchall()
            except BaseException:
                with suppress(Exception):
                    cursor.execute(f"SET jit = {before}")
                raise
            cursor.execute(f"SET jit = {before}")
            return np.array(found, dtype=np.float64).reshape(len(found), width)


class _Spark(Engine):
    def exists(self, name: str) -> bool:
        quoted, catalog = self.dialect.identifier(name), self.connection.catalog
        return bool(catalog.tableExists(quoted) and catalog.getTable(quoted).isTemporary)

    def create(self, name: str, columns: Columns) -> None:
        import pyarrow as pa  # noqa: PLC0415  as above

        held = {key: _arrow(column) for key, column in columns.items()}
        # Without a time zone, Spark would read dates as those of its session's.
        held = {
            key: column.cast(pa.timestamp("us", tz="UTC")) if _is_date(column) else column
            for key, column in held.items()
        }
        frame = self.connection.createDataFrame(pa.table(held))
        frame.createOrReplaceTempView(self.dialect.identifier(name))

    def drop(self, name: str) -> None:
        self.connection.catalog.dropTempView(name)

    def rows(self, query: str) -> Floats:
        table = self.connection.sql(query).toArrow()
        cells = [column.to_numpy().astype(np.float64) for column in table.columns]
        return np.column_stack(cells)


def _is_date(column: Any) -> bool:
    return str(column.type).startswith("timestamp")


def _arrow(column: AnyArray) -> Any:
    import pyarrow as pa  # noqa: PLC0415

    if column.dtype.kind == "O":
        return pa.array(column.tolist())
    return pa.array(column)


_ENGINES: dict[str, Callable[[Any, Dialect], Engine]] = {
    "duckdb": _DuckDB,
    "postgres": _Postgres,
    "spark": _Spark,
}


def engine_of(connection: Any, dialect: str) -> Engine:
    """Wrap a connection to the database that a query was written for."""
    if dialect not in _ENGINES:
        raise InputError(
            f"varcal cannot run queries in {DIALECTS[dialect].title}",
            "create the look-up tables with .statements() and run .query there",
        )
    return _ENGINES[dialect](connection, DIALECTS[dialect])
