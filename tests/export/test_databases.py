"""Queries in PostgreSQL and Spark, which run them, and in the databases that only parse them."""

import re

import numpy as np
import pandas as pd
import pytest

import varcal as vc
from cases import postgres
from cases.calibrators import ALL, binary, fitted, many
from cases.exports import BY_VARIABLE, PLAIN_SEX, awkward, drawn, small
from varcal.exceptions import InputError

sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
# One worker of pytest-xdist runs them all: there is one server, and one Spark session.
in_postgres = [pytest.mark.postgres, pytest.mark.slow]
in_spark = [pytest.mark.spark, pytest.mark.slow]

#: The functions and words that all databases have, and those of each.
COMMON = {
    "FLOOR", "LN", "EXP", "SQRT", "ABS", "LEAST", "GREATEST", "CAST", "COALESCE",
    "AS", "IN", "AND", "OVER", "WHEN", "THEN", "ELSE", "MATERIALIZED",
}  # fmt: skip
CLOCK = {"TIMESTAMP_MICROS", "ROUND"}
OWN = {
    "postgres": {"EXTRACT", "ROW_NUMBER", "TO_TIMESTAMP"},
    "spark": {"ISNAN", "UNIX_MICROS", "MONOTONICALLY_INCREASING_ID", "ARRAY"}
    | CLOCK
    | {"FROM_UTC_TIMESTAMP"},
    "bigquery": {"IS_NAN", "UNIX_MICROS", "ROW_NUMBER", "OFFSET", "TIMESTAMP", "DATETIME"} | CLOCK,
    "snowflake": {"DATE_PART", "ROW_NUMBER", "ARRAY_CONSTRUCT", "GET", "ROUND"}
    | {"CONVERT_TIMEZONE", "TO_TIMESTAMP_NTZ"},
}


def columns(p, v):
    scores = {"p": p} if p.ndim == 1 else {f"p_{k}": p[:, k] for k in range(p.shape[1])}
    return {"id": np.arange(len(p)), **scores, **v}


def load_postgres(connection, given):
    from psycopg import sql

    types = {"f": "double precision", "O": "text", "b": "boolean", "M": "timestamp"}
    names = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(types.get(c.dtype.kind, "int")))
        for name, c in given.items()
    )
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS scores")
        cursor.execute(sql.SQL("CREATE TABLE scores ({})").format(names))
        with cursor.copy("COPY scores FROM STDIN") as copy:
            for row in zip(*(column.tolist() for column in given.values()), strict=True):
                copy.write_row(row)


def load_spark(session, given):
    arrays = {n: pa.array(c.tolist()) if c.dtype.kind == "O" else c for n, c in given.items()}
    # Instants, not times of day wherever Spark runs.
    day = pa.array(given["day"]).cast(pa.timestamp("us", tz="UTC"))
    session.createDataFrame(pa.table(arrays | {"day": day})).createOrReplaceTempView("scores")


@pytest.fixture(scope="module")
def server():
    psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
    if postgres.program("initdb") is None:
        pytest.skip("PostgreSQL is not installed")
    with (
        postgres.server() as arguments,
        psycopg.connect(**arguments, autocommit=True) as connection,
    ):
        yield connection


@pytest.fixture(
    params=[
        pytest.param(("server", "postgres", load_postgres), marks=in_postgres),
        pytest.param(("spark_session", "spark", load_spark), marks=in_spark),
    ],
    ids=["postgres", "spark"],
)
def database(request):
    fixture, dialect, load = request.param
    return request.getfixturevalue(fixture), dialect, load


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", BY_VARIABLE)
def test_hostile_rows(name, n_classes, database):
    model = awkward(name, sex=PLAIN_SEX, n_classes=n_classes)
    p, v = drawn(1_000, 7, hostile=True, sex=PLAIN_SEX, n_classes=n_classes)
    wanted = model.predict_proba(p, v)
    p[0] = np.nan
    connection, dialect, load = database
    load(connection, columns(p, v))
    exported = model.to_sql(dialect)
    found = exported.run(connection, key="id")
    assert np.isnan(found[0]).all() and np.abs(found[1:] - wanted[1:]).max() <= 1e-8
    assert exported.check(connection).n_rows == 200


@pytest.mark.parametrize("zone", ["", "Europe/Berlin"])
def test_parts_of_dates(zone, database):
    rng = np.random.default_rng(0)
    p, day = rng.uniform(0.05, 0.95, 2_000), drawn(2_000, 3, hostile=True)[1]["day"]
    when = pd.Series(day).dt.tz_localize("UTC").dt.tz_convert(zone or "UTC")
    cycle = np.sin(when.dt.hour / 4) + (when.dt.day_of_week > 4) + (when.dt.month < 3)
    y = rng.random(2_000) < 1 / (1 + np.exp(-np.log(p / (1 - p)) - cycle.fillna(0)))
    given = {"day": when if zone else day}
    model = vc.calibrators.TreeCalibrator(min_leaf=0.02, max_depth=6).fit(p, y, given)
    assert len({split.variable for split in splits(model.tree_)}) >= 3
    connection, dialect, load = database
    load(connection, columns(p, {"day": day}))
    exported = model.to_sql(dialect)
    found = exported.run(connection, key="id")
    assert np.abs(found - model.predict_proba(p, given)).max() <= 1e-8
    assert exported.check(connection).n_rows == 200


def splits(node):
    """Yield the splits of a tree."""
    if hasattr(node, "variable"):
        yield node
        for side in (node.left, node.right):
            yield from splits(side)


@pytest.mark.postgres
@pytest.mark.slow
def test_numbers_that_vanish_are_no_error_in_postgres(server):
    """PostgreSQL refuses to divide where the result is too small."""
    rng = np.random.default_rng(0)
    p, v = rng.uniform(0.05, 0.95, 3_000), np.maximum(rng.normal(size=3_000), 0) * 1e6
    model = vc.VariableCalibrator().fit(p, rng.random(3_000) < np.where(v > 0, p, 1 - p), {"v": v})
    v[:4] = 5e-324, 1e-300, 1e-12, -5e-324
    load_postgres(server, columns(p, {"v": v}))
    found = model.to_sql("postgres").run(server, key="id")
    assert np.abs(found - model.predict_proba(p, {"v": v})).max() <= 1e-8


@pytest.mark.postgres
@pytest.mark.slow
def test_a_connection_of_postgres_is_left_as_it_was(server):
    import psycopg

    p, v = drawn(4, 9, hostile=False)
    load_postgres(server, columns(p, v))
    server.execute("DELETE FROM scores")
    assert awkward("TreeCalibrator").to_sql("postgres").run(server).shape == (0, 2)
    server.execute("SET jit = off")
    small().to_sql("postgres").check(server)
    assert server.execute("SHOW jit").fetchone() == ("off",)
    exported = small().to_sql("postgres", table="nowhere")
    for autocommit in (False, True):
        server.autocommit = autocommit
        with pytest.raises(psycopg.errors.UndefinedTable, match="nowhere"):
            exported.run(server)
        server.rollback()
        assert exported.check(server).n_rows == 200
        server.rollback()


def functions(query):
    """Return the names before a parenthesis, outside of texts, names and comments."""
    bare = re.sub(r"--[^\n]*|'(?:[^'\\]|\\.|'')*'|\"[^\"]*\"|`[^`]*`", " ", query)
    return {name.upper() for name in re.findall(r"([A-Za-z_]\w*)\s*\(", bare)}


@pytest.mark.parametrize("dialect", OWN)
def test_queries_are_parsed(dialect):
    sex = PLAIN_SEX.replace("`", "").replace("\\", "") if dialect == "bigquery" else PLAIN_SEX
    models = [fitted(calibrator, data) for calibrator in ALL for data in (binary, many)]
    p, v = drawn(1_000, 3, hostile=False)
    hours = pd.Series(v["day"]).dt.tz_localize("Europe/Berlin", ambiguous="NaT")
    models.append(
        vc.calibrators.TreeCalibrator().fit(p, (hours.dt.hour > 11).astype(int), {"hours": hours})
    )
    for model in [*models, *(awkward(name, sex=sex) for name in BY_VARIABLE)]:
        query = model.to_sql(dialect).query
        parsed = sqlglot.parse_one(query, dialect=dialect)
        assert functions(query) <= COMMON | OWN[dialect]
        if sex in getattr(getattr(model, "schema_", None), "names", ()):
            assert sex in {each.name for each in parsed.find_all(sqlglot.exp.Column)}


PLATT = vc.calibrators.PlattCalibrator().fit([0.2, 0.4, 0.6, 0.9], [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("dialect", "options", "said"),
    [
        ("oracle", {}, "dialect must be one of"),
        ("duckdb", {"p": ["a", "b"]}, "p names 2 columns, but the calibrator needs 1"),
        ("duckdb", {"X": {"x": "y"}}, "no column 'x'"),
        ("duckdb", {"table": []}, "table has no name"),
        ("duckdb", {"table": ["a", ""]}, "cannot be ''"),
        ("duckdb", {"keep": ["id", "id"]}, "keep names the column 'id' twice"),
        ("duckdb", {"keep": "id", "column": "id"}, "two columns 'id'"),
        ("spark", {"p": "a${b}"}, r"because it holds '\$\{'"),
        ("bigquery", {"p": "a`b"}, "BigQuery has no such name"),
    ],
)
def test_what_cannot_be_written_is_refused(dialect, options, said):
    with pytest.raises(InputError, match=said):
        PLATT.to_sql(dialect, **options)


def test_what_cannot_be_run_is_refused():
    with pytest.raises(InputError, match="varcal cannot run queries in BigQuery"):
        PLATT.to_sql("bigquery").run(None)
    with pytest.raises(InputError, match="p names the column 'a' twice"):
        awkward("TreeCalibrator", n_classes=4).to_sql("duckdb", p=["a", "b", "c", "a"])
    p = np.random.default_rng(0).dirichlet(np.ones(150), 600)
    model = vc.calibrators.DirichletCalibrator().fit(p, np.tile(range(150), 4))
    with pytest.raises(InputError, match="Snowflake reads at most 1,000,000"):
        model.to_sql("snowflake")


def test_levels_that_cannot_be_told_apart_are_refused():
    p, y, _ = binary()
    mixed = pd.Series(pd.Categorical([1, "1"] * 200))
    model = vc.calibrators.TreeCalibrator(min_leaf=0.01, max_depth=4).fit(p, y, mixed)
    with pytest.raises(InputError, match="two levels that are written '1'"):
        model.to_sql("duckdb")
    parts = pd.Series(pd.Categorical(np.where(p > np.median(p), 1.5, 2.5)))
    lift = np.random.default_rng(0).random(len(p)) < np.where(p > np.median(p), 0.9, 0.1)
    model = vc.calibrators.TreeCalibrator(min_leaf=0.01).fit(p, lift, {"x": parts})
    with pytest.raises(InputError, match=r"level 1\.5, which is neither text"):
        model.to_python()


def test_a_comment_cannot_be_left():
    label = "x\n; DROP TABLE a; --"
    labels = ["no", label, "no", label]
    model = vc.calibrators.PlattCalibrator().fit([0.2, 0.4, 0.6, 0.9], labels)
    query = model.to_sql("duckdb").query
    assert len(sqlglot.parse(query, dialect="duckdb")) == 1
    assert not any(line.startswith(";") for line in query.splitlines())
