"""A calibrator writes the same results for lazy rows as for rows in memory."""

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import parquet

import varcal as vc
from varcal.exceptions import InputError

N = 5_000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "id": np.arange(N),
            "p": rng.random(N),
            "age": rng.integers(18, 90, N).astype(float),
            "Age": rng.normal(size=N),
            "kind": pa.array(rng.choice(["a", "b", None], N)).dictionary_encode(),
        }
    )


@pytest.fixture(scope="module")
def tree(rows):
    y = np.random.default_rng(1).random(N) < rows["p"].to_numpy()
    return vc.TreeCalibrator().fit(rows.select(["p"]), y, {"age": rows["age"]})


@pytest.fixture(scope="module")
def answer(tree, rows):
    p = np.random.default_rng(2).random(N)
    other = rows.set_column(1, "p", pa.array(p))
    return other, tree.predict_proba(other.select(["p"]), {"age": other["age"]})[:, 1]


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr("varcal._sums.sources.BATCH_ROWS", 777)


@pytest.mark.parametrize("kind", ["relation", "polars", "pyarrow", "folder", "partitions"])
def test_lazy_rows_are_calibrated_in_order(tree, answer, tmp_path, kind):
    rows, expected = answer
    path = tmp_path / "in" / "day=3" if kind == "partitions" else tmp_path / "in"
    path.mkdir(parents=True)
    rows = rows.drop_columns(["Age"]) if kind == "relation" else rows
    for k in range(5):
        parquet.write_table(rows.slice(1_000 * k, 1_000), path / f"{k}.parquet")
    files = str(path / "*.parquet")
    source = {
        "relation": lambda: duckdb.connect().sql(f"SELECT * FROM read_parquet('{files}')"),
        "polars": lambda: pl.scan_parquet(files),
        "pyarrow": lambda: ds.dataset(path),
        "folder": lambda: tmp_path / "in",
        "partitions": lambda: str(tmp_path / "in"),
    }[kind]()
    done = vc.apply(tree, source, tmp_path / "out.parquet")
    assert done.n_rows == N and done.columns == ("p_calibrated",)
    written = parquet.read_table(tmp_path / "out.parquet", partitioning=None)
    assert written["id"].to_pylist() == list(range(N))
    assert written["kind"].to_pylist() == rows["kind"].to_pylist()
    np.testing.assert_allclose(written["p_calibrated"].to_numpy(), expected, atol=1e-15)
    assert ("day" in written.column_names) == (kind == "partitions")


def test_errors_name_the_problem(tree, answer, tmp_path):
    rows, _ = answer
    with pytest.raises(InputError, match="no column 'q'"):
        vc.apply(tree, ds.dataset(rows), tmp_path / "out.parquet", p="q")
    with pytest.raises(InputError, match="already has a column 'age'"):
        vc.apply(tree, ds.dataset(rows), tmp_path / "out.parquet", column="age")
    with pytest.raises(InputError, match="no rows"):
        vc.apply(tree, ds.dataset(rows.slice(0, 0)), tmp_path / "out.parquet")
    p = rows["p"].to_numpy().copy()
    p[3_210] = 2.0
    spoilt = ds.dataset(rows.set_column(1, "p", pa.array(p)))
    with pytest.raises(InputError, match=r"2\.0 at row 3210"):
        vc.apply(tree, spoilt, tmp_path / "out.parquet")
    assert not list(tmp_path.iterdir())
