"""`varcal export` writes files that agree with predict_proba, and says how it knows."""

import runpy

import numpy as np
import pytest

import varcal as vc
from cases.command_line import run


@pytest.fixture
def saved(tmp_path):
    rng = np.random.default_rng(0)
    p, age = rng.uniform(0.05, 0.95, 2_000), rng.uniform(20, 80, 2_000)
    y = rng.random(2_000) < p ** (age / 50)
    vc.calibrators.TreeCalibrator().fit(p, y, {"age": age}).save(tmp_path / "cal.json")
    return tmp_path / "cal.json"


def test_python_and_sql_are_checked_by_running_them(saved, tmp_path):
    path = tmp_path / "cal.py"
    done = run("export", saved, "--to", "python", "-o", path, "--check")
    assert done.returncode == 0 and "200 random rows agree with predict_proba" in done.stdout
    found = runpy.run_path(str(path))["calibrate"](0.4, {"age": 33.0})
    wanted = vc.load(saved).predict_proba([0.4], {"age": [33.0]})[0, 1]
    assert found == pytest.approx(wanted, abs=1e-12)
    pytest.importorskip("duckdb", reason="duckdb is not installed")
    options = ["--table", "predictions", "--prob", "score", "--keep", "id,day", "--column", "q"]
    done = run("export", saved, "--to", "sql", *options, "-o", tmp_path / "cal.sql", "--check")
    assert done.returncode == 0 and "200 random rows agree" in done.stdout
    text = (tmp_path / "cal.sql").read_text()
    for part in ('"predictions"', '"score"', '"id"', '"day"', '"q"'):
        assert part in text


def test_onnx_is_run(saved, tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    done = run("export", saved, "--to", "onnx", "-o", tmp_path / "cal.onnx", "--check")
    assert done.returncode == 0 and "200 random rows agree" in done.stdout
    assert (tmp_path / "cal.onnx").stat().st_size > 1_000


def test_an_extension_that_does_not_fit_is_refused(saved, tmp_path):
    done = run("export", saved, "--to", "onnx", "-o", tmp_path / "cal.sql")
    assert done.returncode != 0 and not (tmp_path / "cal.sql").exists()


def test_a_check_needs_a_database_that_is_here(saved, tmp_path):
    options = ["--dialect", "postgres", "--check", "-o", tmp_path / "cal.sql"]
    done = run("export", saved, "--to", "sql", *options)
    assert done.returncode == 2 and "--check cannot run a query for postgres" in done.stderr
