"""Files are read correctly or refused by name, whichever reader is used."""

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import parquet

import varcal as vc
from cases.command_line import run
from varcal.exceptions import InputError

N = 600


def make_rows(n=N, seed=0, **columns):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(int)
    return pa.table({"y": y, "p": p, "v": rng.normal(size=n)} | columns)


def write(rows, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(rows, path)
    return path


@pytest.fixture(scope="module")
def tree():
    rows = make_rows(seed=9)
    return vc.calibrators.TreeCalibrator().fit(rows.select(["p"]), rows["y"], {"v": rows["v"]})


@pytest.fixture(params=["at once", "in batches"])
def either_way(request, monkeypatch):
    if request.param == "in batches":
        monkeypatch.setattr("varcal._sums.sources.FEW_ROWS", 0)


def audited(*files):
    """Return the exit code and the output of an audit."""
    done = run("audit", *files, "--label", "y", "--prob", "p")
    return done.returncode, done.stderr


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr("varcal.cli._options.LARGE", -1)
    return audited


def replaced(rows, name, column):
    return rows.set_column(rows.column_names.index(name), name, column)


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize("folder", [True, False])
def test_different_types_keep_all_values(tmp_path, folder):
    rows = make_rows()
    ends = replaced(rows, "p", pa.array(np.round(rows["p"].to_numpy()).astype(int)))
    write(replaced(ends, "v", pa.nulls(N)), tmp_path / "day=1" / "a.parquet")
    write(rows, tmp_path / "day=2" / "b.parquet")
    floats = replaced(ends, "p", ends["p"].cast(pa.float64()))
    whole = pa.concat_tables([replaced(floats, "v", pa.nulls(N, pa.float64())), rows])
    data = tmp_path if folder else str(tmp_path / "*" / "*.parquet")
    assert vc.ece("y", "p", data=data) == pytest.approx(vc.ece("y", "p", data=whole), abs=1e-12)
    a, b = (vc.bin_table("y", "p", "v", data=one) for one in (data, whole))
    assert a.columns["n"] == b.columns["n"] and a.columns["bin"] == b.columns["bin"]
    days = vc.bin_table("y", "p", "day", data=data, binning="atoms")
    assert [n for n in days.columns["n"] if n] == [N, N]


def test_types_and_names_of_columns(tmp_path):
    write(make_rows(k=np.arange(N)), tmp_path / "a.parquet")
    write(make_rows(k=np.arange(N).astype(str)), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"'k' has type string in .*b\.parquet', but int64"):
        vc.ece("y", "p", data=tmp_path)
    coded = make_rows(k=pa.array(np.arange(N).astype(str)).dictionary_encode())
    write(coded, tmp_path / "a.parquet")
    assert vc.bin_table("y", "p", "k", data=tmp_path).columns["n"] == [2 * N]
    # In another order, and with names that differ by case.
    rows = make_rows(Age=np.zeros(N), age=np.ones(N))
    write(rows, tmp_path / "a.parquet")
    write(rows.select(["y", "p", "v", "age", "Age"]), tmp_path / "b.parquet")
    found = vc.bin_table("y", "p", "age", data=tmp_path, binning="atoms")
    assert (found.columns["low"], found.columns["n"]) == ([1.0], [2 * N])


@pytest.mark.usefixtures("either_way")
def test_partitions_at_any_depth_and_of_all_files_or_none(tmp_path, tree):
    for day in (1, 2):
        write(make_rows(seed=day), tmp_path / "in" / f"day={day}" / "part" / "a.parquet")
    data = tmp_path / "in"
    found = vc.bin_table("y", "p", "day", data=data, binning="atoms")
    assert [n for n in found.columns["n"] if n] == [N, N]
    vc.apply(tree, data, tmp_path / "out.parquet")
    assert parquet.read_table(tmp_path / "out.parquet")["day"].to_pylist() == [1] * N + [2] * N
    # Folders above the one that is given add nothing.
    below = write(make_rows(), tmp_path / "run=5" / "rows" / "a.parquet").parent
    assert [row.variable for row in vc.audit("y", "p", data=below, ladder="none")] == ["v"]
    write(make_rows(), data / "root.parquet")
    with pytest.raises(InputError, match=r"folders of .*root\.parquet' add no column"):
        vc.apply(tree, data, tmp_path / "more.parquet")
    for name, folder in (("case", "V=1"), ("same", "v=1"), ("twice", "day=1/Day=2")):
        write(make_rows(), tmp_path / name / folder / "a.parquet")
        with pytest.raises(InputError, match=r"adds a column .* already"):
            vc.bin_table("y", "p", "v", data=tmp_path / name)


def spoil(path):
    """Overwrite the pages of a file and leave its footer."""
    whole = bytearray(path.read_bytes())
    middle = slice(4, len(whole) // 2)
    whole[middle] = b"\xff" * len(whole[middle])
    path.write_bytes(whole)


@pytest.mark.usefixtures("either_way", "large")
@pytest.mark.parametrize("how", ["cut", "pages"])
def test_truncated_files(tmp_path, tree, how):
    folder = tmp_path / "in"
    files = [write(make_rows(), folder / f"{name}.parquet") for name in "ab"]
    if how == "cut":
        files[1].write_bytes(files[1].read_bytes()[:-100])
    else:
        spoil(files[1])
    said = r"b\.parquet" if how == "cut" else r"cannot read .*a\.parquet' and 1 more"
    with pytest.raises(InputError, match=said):
        vc.vece("y", "p", "v", data=folder)
    with pytest.raises(InputError, match=said):
        vc.apply(tree, folder, tmp_path / "out.parquet")
    code, told = audited(*files)
    assert code == 2 and "cannot read" in told and "bug" not in told


@pytest.mark.usefixtures("either_way")
def test_queries_that_fail(tmp_path):
    rows = make_rows(k=pa.array(["word"] * N))
    connection = duckdb.connect()
    connection.register("seen", rows)
    frame = pl.from_arrow(rows).lazy()
    spoil(write(rows, tmp_path / "a.parquet"))
    for data, said in (
        (connection.sql("SELECT y, p, k::DOUBLE AS v FROM seen"), "the DuckDB relation: .*word"),
        (frame.with_columns(v=pl.col("k").cast(pl.Float64)), "the polars LazyFrame"),
        (frame.select("y", "p", pl.col("none")), "the polars LazyFrame"),
        (ds.dataset(tmp_path / "a.parquet"), "the PyArrow dataset"),
    ):
        with pytest.raises(InputError, match=f"cannot read {said}"):
            vc.vece("y", "p", "v", data=data)
    for query in ("SELECT y, p, v, -v AS v FROM seen", "SELECT y, p, v, -v AS V FROM seen"):
        with pytest.raises(InputError, match="two columns of the same name: 'v'"):
            vc.vece("y", "p", "v", data=connection.sql(query))
    closed = connection.sql("FROM seen")
    connection.close()
    with pytest.raises(InputError, match="cannot read the DuckDB relation"):
        vc.vece("y", "p", "v", data=closed)


def test_texts_that_are_no_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(make_rows(), tmp_path / "with a name.parquet")
    assert vc.ece("y", "p", data=".") == vc.ece("y", "p", data="with a name.parquet")
    for data, said in {
        "SELECT\n* FROM rows": r"connection\.sql",
        "\n from rows": r"connection\.sql",
        "WITH a AS (SELECT 1) FROM a": r"connection\.sql",
        "-- a note\n" + "SELECT 1, " * 200: "no file",
        "rows\0.csv": "cannot be a path: it has a zero character",
        "": "the path is empty",
        "rows.xls": "no file 'rows.xls'",
    }.items():
        with pytest.raises(InputError, match=said):
            vc.ece("y", "p", data=data)


def test_a_glob_of_too_many_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("varcal._files.formats.MOST_FILES", 2)
    for name in "abc":
        write(make_rows(), tmp_path / f"{name}.parquet")
    assert vc.ece("y", "p", data=str(tmp_path / "[ab].parquet")) > 0
    with pytest.raises(InputError, match="matches more than 2 files"):
        vc.ece("y", "p", data=str(tmp_path / "*.parquet"))


def test_hidden_files_are_skipped_and_both_extensions_read(tmp_path, tree):
    write(make_rows(), tmp_path / "in" / "a.parquet")
    write(make_rows(), tmp_path / "in" / "b.PQ")
    for aside in ("_temporary/c.parquet", ".hidden/d.parquet", ".e.parquet", "_f.parquet"):
        write(make_rows(), tmp_path / "in" / aside)
    assert vc.apply(tree, tmp_path / "in", tmp_path / "out.parquet").n_rows == 2 * N


@pytest.mark.usefixtures("either_way")
def test_names_that_polars_would_expand():
    rows = make_rows(**{"*": np.arange(N) % 7, "^.*$": np.arange(N) % 5})
    for name in ("*", "^.*$"):
        lazy = pl.from_arrow(rows).lazy()
        a, b = (vc.bin_table("y", "p", name, data=one) for one in (rows, lazy))
        np.testing.assert_allclose(a.columns["gap"], b.columns["gap"], atol=1e-12)
