"""Exported queries in a PostgreSQL server of our own."""

import numpy as np
import pytest

from cases import postgres
from cases.exports import BY_VARIABLE, awkward, drawn, small

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
# One worker of pytest-xdist runs them all: there is one server.
pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.fixture(scope="module")
def database():
    if postgres.program("initdb") is None:
        pytest.skip("PostgreSQL is not installed")
    with (
        postgres.server() as arguments,
        psycopg.connect(**arguments, autocommit=True) as connection,
    ):
        yield connection


def load(database, p, v):
    from psycopg import sql

    types = {"f": "double precision", "O": "text", "b": "boolean", "M": "timestamp"}
    scores = {"p": p} if p.ndim == 1 else {f"p_{k}": p[:, k] for k in range(p.shape[1])}
    columns = {"id": np.arange(len(p)), **scores, **v}
    names = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(types.get(c.dtype.kind, "integer")))
        for name, c in columns.items()
    )
    with database.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS scores")
        cursor.execute(sql.SQL("CREATE TABLE scores ({})").format(names))
        with cursor.copy("COPY scores FROM STDIN") as copy:
            for row in zip(*(column.tolist() for column in columns.values()), strict=True):
                copy.write_row(row)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", BY_VARIABLE)
def test_hostile_rows(name, n_classes, database):
    model = awkward(name, n_classes=n_classes)
    p, v = drawn(1_000, 7, hostile=True, n_classes=n_classes)
    load(database, p, v)
    database.execute("DROP TABLE IF EXISTS precious; CREATE TABLE precious AS SELECT 1 AS kept")
    exported = model.to_sql("postgres")
    found = exported.run(database, key="id")
    assert np.abs(found - model.predict_proba(p, v)).max() <= 1e-8
    assert exported.check(database).n_rows == 200
    assert database.execute("SELECT kept FROM precious").fetchall() == [(1,)]


def test_bad_scores_give_null(database):
    model = awkward("TreeCalibrator")
    _, v = drawn(4, 9, hostile=False)
    load(database, np.array([np.nan, -0.1, 1.1, 0.5]), v)
    found = model.to_sql("postgres").run(database, key="id")
    assert np.isnan(found[:3]).all() and np.isfinite(found[3]).all()


def test_an_empty_table_gives_no_rows(database):
    p, v = drawn(4, 9, hostile=False)
    load(database, p, v)
    database.execute("DELETE FROM scores")
    assert awkward("TreeCalibrator").to_sql("postgres").run(database).shape == (0, 2)


def test_settings_of_the_user_are_kept(database):
    database.execute("SET jit = off")
    small().to_sql("postgres").check(database)
    assert database.execute("SHOW jit").fetchone() == ("off",)


@pytest.mark.parametrize("autocommit", [True, False])
def test_the_first_error_is_reported(autocommit, database):
    exported = small().to_sql("postgres", table="nowhere")
    database.autocommit = autocommit
    try:
        with pytest.raises(psycopg.errors.UndefinedTable, match="nowhere"):
            exported.run(database)
        database.rollback()
        assert exported.check(database).n_rows == 200
    finally:
        database.rollback()
        database.autocommit = True
