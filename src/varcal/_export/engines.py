"""Rows of a query as numbers, from the databases that varcal can be connected to."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from varcal._arrays import Floats
from varcal._export.dialects import Dialect
from varcal.exceptions import InputError


def rows_of(connection: Any, dialect: Dialect, query: str) -> Floats:
    """Run a query and return its rows, NaN for NULL."""
    if dialect.name not in _ENGINES:
        raise InputError(f"varcal cannot run queries in {dialect.title}", "run .query there")
    return _ENGINES[dialect.name](connection, query)


def _duckdb(connection: Any, query: str) -> Floats:
    found = connection.execute(query).fetchnumpy()
    return np.column_stack([np.ma.filled(c.astype(np.float64), np.nan) for c in found.values()])


def _postgres(connection: Any, query: str) -> Floats:
    with connection.cursor() as cursor:
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


def _spark(connection: Any, query: str) -> Floats:
    table = connection.sql(query).toArrow()
    return np.column_stack([column.to_numpy().astype(np.float64) for column in table.columns])


_ENGINES = {"duckdb": _duckdb, "postgres": _postgres, "spark": _spark}
