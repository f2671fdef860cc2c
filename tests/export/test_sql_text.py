"""Queries are parsed by sqlglot in all dialects, and use what these have in common."""

import re

import numpy as np
import pytest

import varcal as vc
from cases.calibrators import binary, every, fitted, many
from cases.exports import PLAIN_SEX, awkward
from varcal._export.dialects import DIALECTS
from varcal.exceptions import InputError

sqlglot = pytest.importorskip("sqlglot", reason="sqlglot is not installed")

#: The functions that all five databases have, and those that replace one of them in each.
COMMON = {"LN", "EXP", "SQRT", "ABS", "FLOOR", "LEAST", "GREATEST", "CAST", "COALESCE", "CASE"}
OWN = {
    "postgres": {"EXTRACT", "ROW_NUMBER"},
    "spark": {"ISNAN", "UNIX_MICROS", "MONOTONICALLY_INCREASING_ID", "ELEMENT_AT", "ARRAY"},
    "bigquery": {"IS_NAN", "UNIX_MICROS", "ROW_NUMBER", "UNNEST", "STRUCT"},
    "snowflake": {"DATE_PART", "ROW_NUMBER"},
}  # fmt: skip
WORDS = {"AS", "IN", "AND", "OVER", "WHEN", "THEN", "ELSE", "MATERIALIZED", "VALUES", "OR", "JOIN"}


def functions(query):
    """Return the names before a parenthesis, outside of texts, names and comments."""
    bare = re.sub(r"--[^\n]*|'(?:[^'\\]|\\.|'')*'|\"[^\"]*\"|`[^`]*`", " ", query)
    names = {name.upper() for name in re.findall(r"([A-Za-z_]\w*)\s*\(", bare)}
    return {name for name in names - WORDS if not re.fullmatch(r"T\d+", name)}


@every
@pytest.mark.parametrize("dialect", sorted(DIALECTS.keys() - {"duckdb"}))  # which runs them all
def test_queries_are_parsed(calibrator, dialect):
    for data in (binary, many):
        query = fitted(calibrator, data).to_sql(dialect).query
        assert len(sqlglot.parse(query, dialect=dialect)) == 1
        assert functions(query) <= COMMON | OWN[dialect]


@pytest.mark.parametrize("dialect", ["bigquery", "snowflake"])  # no test can run these
@pytest.mark.parametrize("name", ["TreeCalibrator", "AugmentedCalibrator"])
def test_awkward_names_are_parsed(name, dialect):
    sex = PLAIN_SEX.replace("`", "").replace("\\", "") if dialect == "bigquery" else PLAIN_SEX
    query = awkward(name, sex=sex).to_sql(dialect).query
    parsed = sqlglot.parse_one(query, dialect=dialect)
    assert sex in {each.name for each in parsed.find_all(sqlglot.exp.Column)}
    assert functions(query) <= COMMON | OWN[dialect]


@pytest.mark.parametrize("dialect", ["bigquery", "snowflake"])
def test_tables_are_parsed(dialect):
    p, y, _ = binary(3_000)
    exported = vc.calibrators.IsotonicCalibrator().fit(p, y).to_sql(dialect)
    assert sqlglot.parse_one(exported.query, dialect=dialect).find(sqlglot.exp.Join)


def test_a_query_that_is_too_long_is_refused():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(110), 500)
    y = np.tile(range(110), 5)[:500]
    model = vc.calibrators.DirichletCalibrator().fit(p, y)
    assert len(model.to_sql("postgres").query) > 1e6
    with pytest.raises(InputError, match="BigQuery reads at most 1,000,000"):
        model.to_sql("bigquery")


def test_names_that_a_database_does_not_have_are_refused():
    with pytest.raises(InputError, match=r"because it holds '\$\{'"):
        DIALECTS["spark"].identifier("a${b}")
    with pytest.raises(InputError, match="BigQuery has no such name"):
        DIALECTS["bigquery"].identifier("a`b")
    with pytest.raises(InputError, match="cannot be ''"):
        DIALECTS["duckdb"].identifier("")


def test_levels_that_cannot_be_told_apart_are_refused():
    import pandas as pd

    p, y, _ = binary()
    mixed = pd.Series(pd.Categorical([1, "1"] * 200))
    model = vc.TreeCalibrator(min_leaf=0.01, max_depth=4).fit(p, y, mixed)
    with pytest.raises(InputError, match="two levels that are written '1'"):
        model.to_sql("duckdb")
    parts = pd.Series(pd.Categorical(np.where(p > np.median(p), 1.5, 2.5)))
    lift = (np.random.default_rng(0).random(len(p)) < np.where(p > np.median(p), 0.9, 0.1)) * 1
    model = vc.TreeCalibrator(min_leaf=0.01).fit(p, lift, {"x": parts})
    with pytest.raises(InputError, match=r"level 1\.5, which is neither text"):
        model.to_python()


def test_a_comment_cannot_be_left():
    name = "x\n; DROP TABLE a; --"
    query = (
        vc.calibrators.PlattCalibrator()
        .fit([0.2, 0.4, 0.6, 0.9], ["no", name, "no", name])
        .to_sql("duckdb")
    )
    assert len(sqlglot.parse(query.query, dialect="duckdb")) == 1
    assert not any(line.startswith(";") for line in query.query.splitlines())
