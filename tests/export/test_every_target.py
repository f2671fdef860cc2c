"""Scorer, Python, ONNX and DuckDB give what predict_proba gives, for every calibrator."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import varcal as vc
from cases.calibrators import binary, every, fitted, many
from cases.exports import AGE, BY_VARIABLE, PLAIN_SEX, SEX, awkward, drawn, small
from torture.saved_results import grown_rows
from varcal.exceptions import InputError, VarcalError

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

CLOSE = 1e-8


@pytest.fixture
def database():
    with duckdb.connect() as connection:
        yield connection


def as_table(p, v):
    scores = {"p": p} if p.ndim == 1 else {f"p_{k}": p[:, k] for k in range(p.shape[1])}
    types = {"M": (pa.timestamp("us"),)}
    columns = {name: pa.array(c.tolist(), *types.get(c.dtype.kind, ())) for name, c in v.items()}
    return pa.table({"id": np.arange(len(p)), **scores, **columns})


def close(found, wanted):
    return np.abs(np.asarray(found) - wanted).max() <= CLOSE


def one_by_one(function, p, v, n):
    """Return what a function of one row gives for the first rows, with both of two classes."""
    v = {name: c.astype(object) if c.dtype.kind == "M" else c for name, c in v.items()}
    found = [function(p[i].tolist(), {name: c[i] for name, c in v.items()}) for i in range(n)]
    return np.column_stack([1 - np.array(found), found]) if p.ndim == 1 else np.array(found)


def assert_all_targets(model, p, v, database, table="scores", n=100):
    wanted = model.predict_proba(p, v or None)
    exported = model.to_sql("duckdb", table=[table])
    assert close(exported.run(database), wanted) and exported.check(database).largest <= CLOSE
    onnx, plain, names = model.to_onnx(), model.to_python(), {"__name__": "calibrator"}
    assert close(onnx.run(p, v or None), wanted) and onnx.check().n_rows == 200
    assert plain.check().largest <= CLOSE
    exec(plain.text, names)
    for function in (model.scorer(), names["calibrate"]):
        assert close(one_by_one(function, p, v, n), wanted[:n])
    return exported


@every
@pytest.mark.parametrize("data", [binary, many])
def test_every_calibrator_in_every_target(calibrator, data, database):
    model = fitted(calibrator, data)
    p, _, v = data(n=600, seed=5)
    names = model.schema_.names if hasattr(model, "schema_") else ("v0",)
    variables = dict(zip(names, v.T, strict=False))
    database.register("scores", as_table(p, variables))
    assert_all_targets(model, p, variables, database, n=50)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", BY_VARIABLE)
def test_hostile_rows(name, n_classes, database):
    p, v = drawn(1_500, 7, hostile=True, n_classes=n_classes)
    database.execute("CREATE TABLE precious AS SELECT 1 AS kept")
    database.register("arrow_rows", as_table(p, v))
    database.execute('CREATE TABLE "rows\'\\" AS FROM arrow_rows')
    assert_all_targets(awkward(name, n_classes=n_classes), p, v, database, "rows'\\", n=300)
    assert database.execute("SELECT kept FROM precious").fetchall() == [(1,)]


@pytest.mark.parametrize("n_levels", [250, 300])
def test_many_levels_and_pooled_ones(n_levels, database):
    rng = np.random.default_rng(0)
    numbers, p = rng.integers(0, n_levels, 6_000), rng.uniform(0.1, 0.9, 6_000)
    shop = np.array([f"shop {k}" for k in numbers], dtype=object)
    lift = rng.normal(size=n_levels)[numbers] + np.log(p / (1 - p))
    model = vc.VariableCalibrator().fit(p, rng.random(6_000) < 1 / (1 + np.exp(-lift)), {"s": shop})
    assert any(column.pooled for column in model.schema_.variables) == (n_levels == 300)
    shop[:50], shop[50:100] = "new", None
    database.register("scores", as_table(p, {"s": shop}))
    assert_all_targets(model, p, {"s": shop}, database, n=200)


def test_a_long_curve(database):
    rng = np.random.default_rng(0)
    p = rng.random(40_000)
    model = vc.calibrators.IsotonicCalibrator().fit(p, rng.random(40_000) < p)
    knots = model.maps_[0].knots
    p = np.concatenate([[0.0, 1.0], knots, np.nextafter(knots, 1), np.nextafter(knots, 0)])
    database.register("scores", as_table(p, {}))
    assert len(knots) > 64 and "table_1" in assert_all_targets(model, p, {}, database).query


def test_neighbouring_knots(database):
    """Where the slope between two knots overflows, all targets keep the height before."""
    v = {"v": np.random.default_rng(0).random(2_000) * 1e-310}
    p = np.random.default_rng(1).uniform(0.05, 0.95, 2_000)
    y = np.random.default_rng(2).random(2_000) < np.where(v["v"] > 5e-311, 0.9, 0.1)
    database.register("scores", as_table(p, v))
    assert_all_targets(vc.VariableCalibrator().fit(p, y, v), p, v, database, n=2_000)


def test_trees_after_missing_and_unseen_values(database):
    p, y, v = grown_rows()
    model = vc.VariableCalibrator().fit(p, y, v)
    v = {name: v[name].to_numpy().copy() for name in v}
    v["age"][:4], v["job"][:2] = [1e300, -np.inf, 5e-324, np.nan], ["new", None]
    database.register("scores", as_table(p, v))
    exported = assert_all_targets(model, p, v, database, n=500)
    assert "tree_cell" in exported.query and len(exported.query) < 300_000


def test_the_query_is_all_that_is_needed(database):
    p, v = drawn(2_000, 8, hostile=True)
    database.register("scores", as_table(p, v))
    exported = small().to_sql("duckdb", keep=["id", AGE], column="calibrated")
    found = database.execute(exported.query).fetchnumpy()
    assert list(found) == ["id", AGE, "calibrated"]
    order = np.argsort(found["id"])
    assert close(found["calibrated"][order], small().predict_proba(p, v)[:, 1])


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.1, np.inf, None])
def test_scores_that_predict_proba_refuses(bad, database):
    model = vc.calibrators.PlattCalibrator().fit(*binary()[:2])
    p = np.linspace(0.1, 0.9, 5)
    wanted = model.predict_proba(p)
    database.register("scores", pa.table({"p": pa.array([bad, *p[1:].tolist()])}))
    found = model.to_sql("duckdb").run(database)
    p[0] = np.nan if bad is None else bad
    session = onnxruntime.InferenceSession(model.to_onnx().model.SerializeToString())
    for answer in (found, session.run(None, {"p": p})[0]):
        assert np.isnan(answer[0]).all() and close(answer[1:], wanted[1:])
    if bad is not None:
        with pytest.raises(InputError, match="p must be between 0 and 1"):
            model.scorer()(bad)


def test_rows_of_many_classes_must_sum_to_one(database):
    model = awkward("TreeCalibrator", n_classes=4)
    p, v = drawn(3, 9, hostile=False, n_classes=4)
    wanted = model.predict_proba(p, v)
    p[0, 0] += 0.01
    database.register("scores", as_table(p, v))
    found = model.to_sql("duckdb").run(database)
    assert np.isnan(found[0]).all() and close(found[1:], wanted[1:])
    with pytest.raises(InputError, match="sum to 1"):
        one_by_one(model.scorer(), p, v, 1)


def test_a_wrong_export_is_noticed(database):
    exported = awkward("TreeCalibrator").to_sql("duckdb")
    wrong = exported.rows.expected.copy()
    wrong[3] += 1e-6
    changed = replace(exported, rows=replace(exported.rows, expected=wrong))
    with pytest.raises(VarcalError, match="at random row 3"):
        changed.check(database)


def test_variables_may_be_named_like_words_and_parts_of_a_query(database):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 1_500)
    names = ["order", "r", "t", "select", "p_1", "valid", "row_number", "tables", "Order", "p"]
    v = {name: rng.normal(size=1_500) for name in names}
    y = rng.random(1_500) < 1 / (1 + np.exp(-sum(v.values()) - np.log(p / (1 - p))))
    model = vc.VariableCalibrator(trees=False).fit(p, y, v)
    # DuckDB does not tell names apart by their case.
    columns = {name: f"{name} {k}" for k, name in enumerate(names)}
    database.register("scores", as_table(p, {columns[name]: v[name] for name in names}))
    assert close(model.to_sql("duckdb", X=columns).run(database), model.predict_proba(p, v))
    onnx = model.to_onnx()
    assert close(onnx.run(p, dict(reversed(v.items()))), model.predict_proba(p, v))
    with pytest.raises(InputError, match="no column 'order'"):
        onnx.run(p, {name: v[name] for name in names[1:]})
    model = vc.calibrators.TreeCalibrator().fit(p, y, {"P": p})
    found = model.to_sql("duckdb", X={"P": "p"}).run(database)
    assert close(found, model.predict_proba(p, {"P": p}))


def test_the_python_file_stands_alone(tmp_path):
    path = tmp_path / "calibrator.py"
    small().to_python().save(path)
    done = subprocess.run(
        [sys.executable, "-I", str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("200 random rows agree; largest difference ")
    lines = [line.split() for line in path.read_text().splitlines()]
    imports = [words[1] for words in lines if words[:1] in (["from"], ["import"])]
    assert imports == ["re", "bisect", "contextlib", "datetime", "math"]


def test_an_empty_string_may_be_a_level_of_onnx():
    assert small().to_onnx().missing[SEX] == "<missing>"
    assert set(small(PLAIN_SEX).to_onnx().missing) == {PLAIN_SEX, "member"}
