"""Lazy rows of every engine give the same results as rows in memory."""

import json
import sys

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import parquet

import varcal as vc
from cases.command_line import run
from cases.lazy_tables import N, audits_in_memory, make_table, same_audits
from varcal._sums import stream as _survey
from varcal.exceptions import InputError


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    found = tmp_path_factory.mktemp("rows") / "rows.parquet"
    parquet.write_table(table, found, row_group_size=1_000)
    return found


def relation(path):
    # DuckDB itself has no names that differ by case only.
    return duckdb.connect().sql(f"FROM read_parquet('{path}')")


OPENERS = {"duckdb": str, "relation": relation, "polars": pl.scan_parquet, "pyarrow": ds.dataset}


@pytest.fixture(params=OPENERS)
def opened(request, path):
    return OPENERS[request.param](path)


def names_for(opened, table):
    roles = ("y", "p", "w", "unit")
    names = [name for name in table.column_names if name not in roles]
    case = {"Age", "age"} if type(opened).__name__ == "DuckDBPyRelation" else set()
    return [name for name in names if name not in case]


@pytest.fixture(scope="module")
def whole_of(table):
    return audits_in_memory(table)


@pytest.mark.parametrize(
    ("engine", "weight"), [*((engine, "w") for engine in OPENERS), ("pyarrow", None)]
)
def test_batches_equal_memory(engine, weight, path, table, in_batches, whole_of):
    opened = OPENERS[engine](path)
    names = names_for(opened, table)
    whole = whole_of(tuple(names), weight)
    found = vc.audit("y", "p", names, data=opened, sample_weight=weight)
    assert found.edges == "exact"  # the sample holds all rows
    assert found.engine in ("duckdb", "polars", "pyarrow") and whole.engine == "numpy"
    same_audits(whole, found)
    for name in set(names) - {"empty"}:
        np.testing.assert_allclose(found[name].gap, whole[name].gap, atol=1e-9)


@pytest.mark.usefixtures("in_batches")
def test_every_function_takes_lazy_rows(opened, table):
    pairs = [
        (vc.vece("y", "p", ["x", "kind"], data=data), vc.ece("y", "p", data=data))
        for data in (opened, table)
    ]
    np.testing.assert_allclose(*pairs, atol=1e-12)
    a, b = (vc.estimate("y", "p", "x", data=data, groups="unit") for data in (opened, table))
    assert a.debiased == pytest.approx(b.debiased) and a.p_value == pytest.approx(b.p_value)
    assert a.to_dict()["edges"] == "exact"
    a, b = (vc.curve("y", "p", "when", data=data) for data in (opened, table))
    np.testing.assert_allclose(a.gap, b.gap, atol=1e-9)
    a, b = (vc.bin_table("y", "p", "flag", data=d, event="classwise") for d in (opened, table))
    assert a.columns["class"] == b.columns["class"] and a.columns["bin"] == b.columns["bin"]
    np.testing.assert_allclose(a.columns["gap"], b.columns["gap"], atol=1e-12)
    a, b = (vc.reliability("y", "p", data=data) for data in (opened, table))
    np.testing.assert_allclose(a.observed, b.observed, atol=1e-12)


@pytest.mark.usefixtures("in_batches")
@pytest.mark.parametrize("many", [10, 700])  # few have buckets of their own, many are hashed
@pytest.mark.parametrize("labels", [[False, True], ["owl", "dog", "cat"]])
def test_labels_and_groups_that_no_batch_has_all_of(labels, many):
    rng = np.random.default_rng(1)
    n = 4_000
    p = rng.dirichlet(np.arange(1, len(labels) + 1), n)
    rows = {f"p{k}": p[:, k] for k in range(len(labels))}
    rows |= {"y": np.sort(rng.choice(labels, n)), "v": rng.choice(["a", "b"], n)}
    rows |= {"unit": [f"u{k}" for k in np.sort(rng.integers(0, many, n))]}
    table = pa.table(rows)
    for classes in (None, labels):
        a, b = (
            vc.estimate(
                "y", list(rows)[: len(labels)], "v", data=data, groups="unit", event="classwise",
                classes=classes,
            )
            for data in (table, ds.dataset(table))
        )  # fmt: skip
        assert (a.low, a.high, a.p_value) == pytest.approx((b.low, b.high, b.p_value))


@pytest.mark.usefixtures("in_batches")
def test_rows_without_outcome(table):
    y = table.column("y").to_pylist()
    y[:2_000] = [None] * 2_000  # whole batches of them
    y[3_000] = None
    rows = table.set_column(0, "y", pa.array(y, pa.int8()))
    with pytest.raises(InputError, match="y has no label: None at row 0"):
        vc.vece("y", "p", "x", data=ds.dataset(rows))
    a, b = (
        vc.bin_table("y", "p", "x", data=data, unlabelled="drop")
        for data in (rows, ds.dataset(rows))
    )
    assert a.n_dropped == b.n_dropped == 2_001
    np.testing.assert_allclose(a.columns["gap"], b.columns["gap"], atol=1e-12)
    nothing = rows.set_column(0, "y", pa.nulls(N, pa.int8()))
    with pytest.raises(InputError, match="no label at any row"):
        vc.vece("y", "p", "x", data=ds.dataset(nothing), unlabelled="drop")


def spoilt(table, name, row, value):
    column = table.column(name).to_pylist()
    column[row] = value
    place = table.column_names.index(name)
    return table.set_column(place, name, pa.array(column))


@pytest.mark.usefixtures("in_batches")
@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("p", 1.5, r"p is outside \[0, 1\]: 1.5 at row 4321"),
        ("p", float("nan"), "p is missing: nan at row 4321"),
        ("w", -1.0, "sample_weight is negative: -1.0 at row 4321"),
        ("w", None, "sample_weight is not a finite number: nan at row 4321"),
        ("unit", None, "groups is missing: None at row 4321"),
        ("y", 0.5, "y is not a label: 0.5 at row 4321"),
        ("y", 3, "y holds 3 distinct labels"),
    ],
)
def test_faults_are_named_with_their_row(table, tmp_path, name, value, said):
    rows = spoilt(table, name, 4_321, value)
    parquet.write_table(rows, tmp_path / "rows.parquet")
    data = ds.dataset(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=said):
        vc.estimate("y", "p", "x", data=data, sample_weight="w", groups="unit")


@pytest.mark.usefixtures("in_batches")
def test_sampled_edges_are_near_the_true_quantiles(monkeypatch):
    monkeypatch.setattr(_survey, "SAMPLE", 20_000)
    rng = np.random.default_rng(3)
    n = 100_000
    rows = pa.table({"y": rng.integers(0, 2, n), "p": rng.random(n), "v": rng.lognormal(size=n)})
    monkeypatch.setattr("varcal._sums.sources.BATCH_ROWS", 9_999)
    found = vc.bin_table("y", "p", "v", data=ds.dataset(rows))
    again = vc.bin_table("y", "p", "v", data=ds.dataset(rows))
    assert found.edges == "sampled" and found.columns == again.columns
    v = rows.column("v").to_numpy()
    # Each inner edge is a quantile of 20,000 rows: standard error at most 0.5 / sqrt(20,000).
    share = np.array([(v <= high).mean() for high in found.columns["high"]])
    assert np.abs(share - np.arange(1, 11) / 10).max() < 4 * 0.5 / np.sqrt(20_000)
    assert (found.columns["low"][0], found.columns["high"][-1]) == (v.min(), v.max())
    # The sums themselves are those of all rows.
    edges = [*found.columns["low"], found.columns["high"][-1]]
    exact = vc.bin_table("y", "p", "v", data=rows, bins=edges)
    np.testing.assert_allclose(found.columns["gap"], exact.columns["gap"], atol=1e-12)
    atoms = rows.append_column("heap", pa.array(np.where(v < 1, 0.0, v)))
    audit = vc.audit("y", "p", ["heap"], data=ds.dataset(atoms))
    assert audit.edges == "sampled" and audit.row("heap").table.columns["bin"][0] == "0"


@pytest.mark.usefixtures("in_batches")
def test_levels_that_are_not_in_the_sample(monkeypatch):
    monkeypatch.setattr(_survey, "SAMPLE", 500)
    rng = np.random.default_rng(4)
    n = 5_000
    name = np.where(rng.random(n) < 0.5, "often", rng.integers(0, n, n).astype(str))
    rows = pa.table({"y": rng.integers(0, 2, n), "p": rng.random(n), "name": name})
    found = vc.bin_table("y", "p", "name", data=ds.dataset(rows))
    assert found.columns["bin"][0] == "often" and "other" in found.columns["bin"]
    assert sum(found.columns["n"]) == n
    assert found.columns["n"][0] == (name == "often").sum()


def test_nan_that_parquet_statistics_leave_out(tmp_path):
    # The statistics of PyArrow say that values lie in [1, 2], and DuckDB uses them by default.
    v = np.array([1.0, np.nan, 2.0, np.nan] * 50)
    rows = pa.table({"y": [0, 1] * 100, "p": np.linspace(0, 1, 200), "v": v})
    parquet.write_table(rows, tmp_path / "nan.parquet")
    found = vc.bin_table("y", "p", "v", data=str(tmp_path / "nan.parquet"))
    assert found.columns["bin"][-1] == "missing" and found.columns["n"][-1] == 100


def test_unusable_data_are_refused(tmp_path):
    with pytest.raises(InputError, match="no file"):
        vc.vece("y", "p", "x", data=str(tmp_path / "none.parquet"))
    with pytest.raises(InputError, match="has no Parquet file"):
        vc.vece("y", "p", "x", data=tmp_path)
    (tmp_path / "a.csv").write_text("y,p\n1,0.5\n")
    (tmp_path / "b.csv").write_text("y,q\n1,0.5\n")
    with pytest.raises(InputError, match=r"no column .p. in .*b\.csv"):
        vc.ece("y", "p", data=str(tmp_path / "*.csv"))
    parquet.write_table(make_table(50), tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="no column 'agee'"):
        vc.vece("y", "p", "agee", data=tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="y is a ndarray, but data is read in batches"):
        vc.vece(np.zeros(3), "p", "x", data=tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="p is None"):
        vc.audit("y", data=tmp_path / "rows.parquet")
    parquet.write_table(make_table(50).select(["y", "p"]), tmp_path / "two.parquet")
    with pytest.raises(InputError, match="data has no column left for a variable"):
        vc.audit("y", "p", data=tmp_path / "two.parquet")
    with pytest.raises(InputError, match="v names a column twice"):
        vc.vece("y", "p", ["x", "x"], data=tmp_path / "rows.parquet")


def test_parquet_without_duckdb(table, tmp_path, monkeypatch):
    parquet.write_table(table, tmp_path / "rows.parquet")
    with_duckdb = vc.vece("y", "p", "x", data=tmp_path / "rows.parquet")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert vc.vece("y", "p", "x", data=tmp_path / "rows.parquet") == pytest.approx(with_duckdb)
    plan = vc.make_bins("y", "p", ["x"], data=tmp_path / "rows.parquet")
    assert vc.collect(tmp_path / "rows.parquet", plan).engine == "pyarrow"


@pytest.mark.usefixtures("in_batches")
def test_the_command_line_works_on_large_files_in_batches(table, tmp_path, monkeypatch):
    rows = table.select(["y", "p", "x", "text", "w"]).append_column("tags", pa.array([[1]] * N))
    parquet.write_table(rows, tmp_path / "rows.parquet")

    def audited():
        command = ["audit", tmp_path / "rows.parquet", "--label", "y", "--prob", "p"]
        done = run(*command, "--classes", "0,1", "--weight", "w", "--json")
        assert done.returncode == 0 and "cannot be a variable" in done.stdout
        return json.loads(done.stdout)

    whole = audited()
    monkeypatch.setattr("varcal.cli._options.LARGE", 0)
    found = audited()
    assert (whole["engine"], found["engine"]) == ("numpy", "pyarrow")
    for a, b in zip(whole["rows"], found["rows"], strict=True):
        assert a["variable"] == b["variable"]
        assert a["uneven"]["debiased"] == pytest.approx(b["uneven"]["debiased"])


@pytest.mark.usefixtures("in_batches")
def test_large_integer_groups_are_distinguished():
    rng = np.random.default_rng(7)
    n = 4_000
    number = rng.integers(0, 40, n)
    rows = {
        "y": (rng.random(n) < 0.2 + 0.6 * rng.random(40)[number]).astype(int),
        "p": rng.random(n),
        "v": rng.normal(size=n),
    }
    a, b = (
        vc.estimate("y", "p", "v", data=ds.dataset(pa.table(rows | {"u": unit})), groups="u")
        for unit in (number, 2**60 + number)  # as floats they would all be the same
    )
    assert (a.low, a.high, a.p_value) == (b.low, b.high, b.p_value)


@pytest.mark.usefixtures("in_batches")
@pytest.mark.parametrize("event", ["correct", "positive"])
@pytest.mark.parametrize("from_logits", [False, True])
def test_even_bins_of_the_score_lie_between_its_true_ends(monkeypatch, event, from_logits):
    monkeypatch.setattr(_survey, "SAMPLE", 300)
    rng = np.random.default_rng(8)
    p = rng.uniform(0.3, 0.6, 5_000)
    p[[17, 4_001, 444]] = 0.01, 0.97, 0.5  # that a sample of 300 rows misses
    p = np.log(p / (1 - p)) if from_logits else p
    rows = pa.table({"y": rng.integers(0, 2, 5_000), "p": p})
    a, b = (
        vc.bin_table("y", "p", data=d, event=event, binning="uniform", from_logits=from_logits)
        for d in (rows, ds.dataset(rows))
    )
    assert b.edges == "exact" and a.columns["n"] == b.columns["n"]
    np.testing.assert_allclose(a.columns["gap"], b.columns["gap"], atol=1e-12)
    two = pa.table({"y": rows["y"], "a": 1 - rng.uniform(0, 1, 5_000) ** 9})
    two = two.append_column("b", pa.array(1 - two["a"].to_numpy()))
    options = dict(event="classwise", binning="uniform")
    a, b = (vc.ece("y", ["a", "b"], data=d, **options) for d in (two, ds.dataset(two)))
    assert a == pytest.approx(b, abs=1e-12)
