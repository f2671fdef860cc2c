"""Scorer, Python, ONNX and DuckDB give what predict_proba gives, for every calibrator."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import varcal as vc
from cases.calibrators import binary, every, fitted, many
from cases.exports import AGE, BY_VARIABLE, PLAIN_SEX, SEX, awkward, drawn, small
from varcal._export.exported import ExportError, RandomRows
from varcal._export.program import Program
from varcal.exceptions import InputError

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
pytest.importorskip("onnx", reason="onnx is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

CLOSE = 1e-8
ROWS = 1_500


@pytest.fixture
def database():
    with duckdb.connect() as connection:
        yield connection


def as_table(p, v):
    scores = {"p": p} if p.ndim == 1 else {f"p_{k}": p[:, k] for k in range(p.shape[1])}
    columns = {name: pa.array(column.tolist(), *_type(column)) for name, column in v.items()}
    return pa.table({"id": np.arange(len(p)), **scores, **columns})


def _type(column):
    return (pa.timestamp("us"),) if column.dtype.kind == "M" else ()


def one_row(p, v, i):
    values = {name: column[i] for name, column in v.items()}
    return (float(p[i]) if p.ndim == 1 else p[i].tolist()), values


def same_rows(answers, wanted):
    found = np.array(answers)
    return np.abs((found if found.ndim == 2 else found[:, None]) - wanted).max() <= CLOSE


@every
@pytest.mark.parametrize("data", [binary, many])
def test_every_calibrator_in_every_target(calibrator, data, database):
    model = fitted(calibrator, data)
    p, _, v = data(n=600, seed=5)
    names = model.schema_.names if hasattr(model, "schema_") else ()
    variables = dict(zip(names, v.T, strict=False)) or {"v0": v[:, 0]}
    wanted = model.predict_proba(p, variables)
    database.register("rows", as_table(p, variables))
    exported = model.to_sql("duckdb", table="rows")
    assert np.abs(exported.run(database) - wanted).max() <= CLOSE
    assert exported.check(database).largest <= CLOSE
    onnx = model.to_onnx()
    assert np.abs(onnx.run(p, variables) - wanted).max() <= CLOSE
    assert onnx.check().n_rows == 200
    assert model.to_python().check().largest <= CLOSE
    score, last = model.scorer(), wanted[:, 1:] if p.ndim == 1 else wanted
    assert same_rows([score(*one_row(p, variables, i)) for i in range(50)], last[:50])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_of_0_and_1_stay_there_when_shifted(n_classes, database):
    p, y, _ = binary() if n_classes == 2 else many()
    model = vc.calibrators.ShiftCalibrator().fit(p, y)
    ends = np.array([0, 1e-300, 1e-18, 0.4, 1 - 2**-53, 1])
    if n_classes == 3:
        ends = np.array([[1, 0, 0], [0, 0.5, 0.5], [1e-300, 0, 1 - 1e-16], [0.2, 0.3, 0.5]])
    wanted = model.predict_proba(ends)
    assert ((wanted[:, 1] if n_classes == 2 else wanted) == 0).tolist() == (ends == 0).tolist()
    database.register("rows", as_table(ends, {}))
    assert np.abs(model.to_sql("duckdb", table="rows").run(database) - wanted).max() <= 1e-15
    assert np.abs(model.to_onnx().run(ends) - wanted).max() <= 1e-15
    found = [model.scorer()(one.tolist()) for one in ends]
    assert same_rows(found, wanted[:, 1:] if n_classes == 2 else wanted)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("name", BY_VARIABLE)
def test_hostile_rows(name, n_classes, database):
    model = awkward(name, n_classes=n_classes)
    p, v = drawn(ROWS, 7, hostile=True, n_classes=n_classes)
    wanted = model.predict_proba(p, v)
    database.execute("CREATE TABLE precious AS SELECT 1 AS kept")
    database.register("arrow_rows", as_table(p, v))
    database.execute('CREATE TABLE "rows\'\\" AS FROM arrow_rows')
    exported = model.to_sql("duckdb", table=["rows'\\"])
    assert np.abs(exported.run(database) - wanted).max() <= CLOSE
    exported.check(database)
    onnx = model.to_onnx()
    assert np.abs(onnx.run(p, v) - wanted).max() <= CLOSE
    onnx.check()
    plain = model.to_python()
    assert plain.check().largest <= CLOSE
    names = {"__name__": "calibrator"}
    exec(plain.text, names)
    score, last = model.scorer(), wanted[:, 1:] if n_classes == 2 else wanted
    days = v["day"].astype(object)
    rows = [one_row(p, v | {"day": days}, i) for i in range(300)]
    assert same_rows([score(*row) for row in rows], last[:300])
    assert same_rows([names["calibrate"](*row) for row in rows], last[:300])
    assert database.execute("SELECT kept FROM precious").fetchall() == [(1,)]


def test_the_query_is_all_that_is_needed(database):
    model = small()
    p, v = drawn(2_000, 8, hostile=True)
    database.register("scores", as_table(p, v))
    exported = model.to_sql("duckdb", keep=["id", AGE], column="calibrated")
    found = database.execute(exported.query).fetchnumpy()
    assert list(found) == ["id", AGE, "calibrated"]
    order = np.argsort(found["id"])
    assert np.abs(found["calibrated"][order] - model.predict_proba(p, v)[:, 1]).max() <= CLOSE


@pytest.mark.parametrize("n_levels", [250, 300])
def test_many_levels_are_joined_and_very_many_are_pooled(n_levels, database):
    rng = np.random.default_rng(0)
    n = 6_000
    numbers = rng.integers(0, n_levels, n)
    shop = np.array([f"shop {k}" for k in numbers], dtype=object)
    p = rng.uniform(0.1, 0.9, n)
    lift = rng.normal(size=n_levels)[numbers] + np.log(p / (1 - p))
    y = rng.random(n) < 1 / (1 + np.exp(-lift))
    model = vc.VariableCalibrator().fit(p, y, {"shop": shop})
    shop[:50], shop[50:100] = "new", None
    exported = model.to_sql("duckdb")
    database.register("scores", as_table(p, {"shop": shop}))
    assert any(model.schema_.pooled) == (n_levels == 300)
    wanted = model.predict_proba(p, {"shop": shop})
    assert np.abs(exported.run(database) - wanted).max() <= CLOSE
    assert np.abs(model.to_onnx().run(p, {"shop": shop}) - wanted).max() <= CLOSE
    score = model.scorer()
    found = [score(float(p[i]), {"shop": shop[i]}) for i in range(200)]
    assert np.abs(np.array(found) - wanted[:200, 1]).max() <= CLOSE


def test_a_long_curve_is_joined(database):
    rng = np.random.default_rng(0)
    p = rng.random(40_000)
    model = vc.calibrators.IsotonicCalibrator().fit(p, rng.random(40_000) < p)
    exported = model.to_sql("duckdb")
    assert len(model.maps_[0].knots) > 20 and "LEFT JOIN" in exported.query
    p[:4] = 0.0, 1.0, model.maps_[0].knots[3], model.maps_[0].knots[-1]
    database.register("scores", as_table(p, {}))
    assert np.abs(exported.run(database) - model.predict_proba(p)).max() <= CLOSE


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.1, np.inf, None])
def test_scores_that_predict_proba_refuses(bad, database):
    model = awkward("TreeCalibrator")
    p, v = drawn(50, 9, hostile=True)
    wanted = model.predict_proba(p, v)
    scores = pa.array([bad, *p[1:].tolist()])
    database.register("scores", as_table(p, v).set_column(1, "p", scores))
    found = model.to_sql("duckdb").run(database)
    assert np.isnan(found[0]).all()
    assert np.abs(found[1:] - wanted[1:]).max() <= CLOSE
    onnx = model.to_onnx()
    p[0] = np.nan if bad is None else bad
    found = onnx._run(np.column_stack([1 - p, p]), RandomRows.of(Program.of(model), 50).variables)
    assert np.isnan(found[0]).all() and np.isfinite(found[1:]).all()
    if bad is not None:
        with pytest.raises(InputError, match="p must be between 0 and 1"):
            model.scorer()(bad, {name: column[1] for name, column in v.items()})


def test_rows_of_many_classes_must_sum_to_one(database):
    model = awkward("TreeCalibrator", n_classes=4)
    p, v = drawn(3, 9, hostile=False, n_classes=4)
    wanted = model.predict_proba(p, v)
    p[0, 0] += 0.01
    database.register("scores", as_table(p, v))
    found = model.to_sql("duckdb").run(database)
    assert np.isnan(found[0]).all() and np.abs(found[1:] - wanted[1:]).max() <= CLOSE
    with pytest.raises(InputError, match="sum to 1"):
        model.scorer()(*one_row(p, v, 0))


def test_a_wrong_export_is_noticed(database):
    model = awkward("TreeCalibrator")
    exported = model.to_sql("duckdb")
    wrong = exported.rows.expected.copy()
    wrong[3] += 1e-6
    changed = replace(exported, rows=replace(exported.rows, expected=wrong))
    with pytest.raises(ExportError, match="at random row 3"):
        changed.check(database)


def test_what_cannot_be_exported_is_refused():
    p, y, v = binary()
    vc.VariableCalibrator(monotone=True).fit(p, y, v).to_python().check()
    with pytest.raises(InputError, match="dialect must be one of"):
        fitted_platt().to_sql("oracle")
    with pytest.raises(InputError, match="varcal cannot run queries in BigQuery"):
        fitted_platt().to_sql("bigquery").run(None)
    with pytest.raises(InputError, match="p names 2 columns, but the calibrator needs 1"):
        fitted_platt().to_sql("duckdb", p=["a", "b"])
    with pytest.raises(InputError, match="no column 'x'"):
        awkward("TreeCalibrator").to_sql("duckdb", X={"x": "y"})
    with pytest.raises(InputError, match="table has no name"):
        fitted_platt().to_sql("duckdb", table=[])


def test_columns_that_are_named_twice_are_refused():
    model = awkward("TreeCalibrator", n_classes=4)
    with pytest.raises(InputError, match="p names the column 'a' twice"):
        model.to_sql("duckdb", p=["a", "b", "c", "a"])
    with pytest.raises(InputError, match="keep names the column 'id' twice"):
        fitted_platt().to_sql("duckdb", keep=["id", "id"])
    with pytest.raises(InputError, match="two columns 'id'"):
        fitted_platt().to_sql("duckdb", keep="id", column="id")


def test_a_variable_may_be_the_score(database):
    p = np.random.default_rng(0).random(3_000)
    y = np.random.default_rng(1).random(3_000) < np.where(p > 0.5, 0.9, 0.1)
    model = vc.TreeCalibrator().fit(p, y, {"P": p})
    exported = model.to_sql("duckdb", X={"P": "p"})
    database.register("scores", as_table(p, {}))
    assert np.abs(exported.run(database) - model.predict_proba(p, {"P": p})).max() <= CLOSE
    assert model.schema_.names == ("P",) and exported.check(database).n_rows == 200
    assert model.to_sql("duckdb").check(database).n_rows == 200


def fitted_platt():
    return vc.calibrators.PlattCalibrator().fit([0.2, 0.4, 0.6, 0.9], [0, 1, 0, 1])


def test_the_python_file_stands_alone(tmp_path):
    path = tmp_path / "calibrator.py"
    small().to_python().save(path)
    done = subprocess.run(
        [sys.executable, "-I", str(path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("200 random rows agree; largest difference ")
    imports = [
        line for line in path.read_text().splitlines() if line.startswith(("from", "import"))
    ]
    assert [line.split()[1] for line in imports] == ["bisect", "math"]


def test_random_rows_are_not_those_of_the_fit():
    model = small()
    p, v = drawn(1_500, 0, hostile=False)
    rows = model.to_python().rows
    assert not np.isin(rows.p[:, 1], p[(p > 0) & (p < 1)]).any()
    held = set(zip(p, v[AGE], strict=True))
    assert not held & set(zip(rows.p[:, 1], rows.variables[0].values, strict=True))


def test_an_empty_string_may_be_a_level_of_onnx():
    onnx = small().to_onnx()
    assert onnx.missing[SEX] == "<missing>"
    assert PLAIN_SEX not in onnx.missing


def test_variables_may_be_named_like_words_and_parts_of_a_query(database):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 1_500)
    names = ["order", "r", "t", "select", "p_1", "valid", "row_number", "score", "Order"]
    v = {name: rng.normal(size=1_500) for name in names}
    y = rng.random(1_500) < 1 / (1 + np.exp(-sum(v.values()) - np.log(p / (1 - p))))
    model = vc.VariableCalibrator(trees=False).fit(p, y, v)
    # DuckDB does not tell names apart by their case.
    columns = {name: f"{name} {k}" for k, name in enumerate(names)}
    database.register("scores", as_table(p, {columns[name]: v[name] for name in names}))
    found = model.to_sql("duckdb", X=columns).run(database)
    assert np.abs(found - model.predict_proba(p, v)).max() <= CLOSE
    onnx = model.to_onnx()
    backwards = dict(reversed(v.items()))
    assert np.abs(onnx.run(p, backwards) - model.predict_proba(p, v)).max() <= CLOSE
    with pytest.raises(InputError, match="no column 'order'"):
        onnx.run(p, {name: v[name] for name in names[1:]})
