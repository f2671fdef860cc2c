"""Calibrators applied to files: the same results in every format, other columns unchanged."""

import datetime as dt
import decimal
import gzip
import json
import re

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import csv, feather, parquet
from pyarrow import json as json_lines

import varcal as vc
from varcal.exceptions import InputError

N = 400


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    p, age = rng.random(N), rng.integers(18, 90, N)
    return pa.table(
        {
            "id": [f"{k:05d}" for k in range(N)],
            "y": (rng.random(N) < np.clip(p + (age - 54) / 100, 0, 1)).astype(np.int64),
            "p": p,
            "age": age,
            "city": np.array(["Bath", "Cork", "a,b"])[rng.integers(0, 3, N)],
        }
    )


@pytest.fixture(scope="module")
def tree(rows):
    return vc.calibrators.TreeCalibrator(min_leaf=0.1).fit(
        rows.select(["p"]), rows["y"], rows.select(["age", "city"])
    )


@pytest.fixture(scope="module")
def expected(rows, tree):
    return tree.predict_proba(rows.select(["p"]), rows.select(["age", "city"]))[:, 1]


def write(table, path):
    if path.name.endswith((".csv", ".csv.gz")):
        table.to_pandas().to_csv(path, index=False)
    elif path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=150)
    elif path.suffix == ".feather":
        feather.write_feather(table, str(path), chunksize=150)
    else:
        text = "".join(json.dumps(row) + "\n" for row in table.to_pylist())
        path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def read(path):
    """Return the rows of a file that was written."""
    if path.suffix == ".parquet":
        return parquet.read_table(path)
    if path.suffix == ".arrow":
        return feather.read_table(path)
    if path.suffix == ".ndjson":
        return json_lines.read_json(path)
    tab = csv.ParseOptions(delimiter="\t" if ".tsv" in path.name else ",")
    return csv.read_csv(path, parse_options=tab)


SOURCES = ["in.csv", "in.csv.gz", "in.parquet", "in.feather", "in.jsonl", "in.jsonl.gz"]
OUTPUTS = ["out.csv", "out.tsv.gz", "out.parquet", "out.arrow", "out.ndjson"]


@pytest.mark.parametrize("out", OUTPUTS)
@pytest.mark.parametrize("source", SOURCES)
def test_every_format_to_every_other(source, out, rows, tree, expected, tmp_path, monkeypatch):
    monkeypatch.setattr("varcal._files.read_rows.BLOCK_BYTES", 4096)  # many chunks
    monkeypatch.setattr("varcal._files.read_rows.CHUNK_ROWS", 90)
    path = write(rows, tmp_path / source)
    done = vc.apply(tree, path, tmp_path / out)
    assert done == vc.results.Applied(str(tmp_path / out), N, ("p_calibrated",))
    back = read(tmp_path / out)
    assert back.column_names == [*rows.column_names, "p_calibrated"]
    np.testing.assert_array_equal(back["p_calibrated"].to_numpy(), expected)
    for name in ("p", "age", "city"):
        assert back[name].to_pylist() == rows[name].to_pylist()


def test_csv_to_csv_keeps_text_unchanged(tree, tmp_path, monkeypatch):
    monkeypatch.setattr("varcal._files.read_rows.BLOCK_BYTES", 300)
    lines = [f"{k:03d},0.50,{20 + k}.0,Bath,1e3,NA,2020-01-0{1 + k % 9}" for k in range(60)]
    lines[7] = '007,0.50,27.0,Cork,"a ""b"", c",  ,x'
    lines[8] = '008,0.50,28.0,Cork,"two\nlines",TRUE,'
    text = "id,p,age,city,n,m,d\n" + "\n".join(lines) + "\n"
    (tmp_path / "in.csv").write_text(text, encoding="utf-8")
    vc.apply(tree, tmp_path / "in.csv", tmp_path / "out.csv")
    out = (tmp_path / "out.csv").read_text(encoding="utf-8")
    assert re.sub(r",(p_calibrated|[\d.e-]+)$", "", out, flags=re.M) == text


def test_parquet_keeps_types_and_metadata(rows, tree, tmp_path):
    day = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
    extra = {
        "level": pa.array(["x", None] * (N // 2)).dictionary_encode(),
        "when": pa.array([day] * N, pa.timestamp("us", "UTC")),
        "price": pa.array([decimal.Decimal("1.50")] * N, pa.decimal128(10, 2)),
        "tags": pa.array([["a"], []] * (N // 2)),
        "small": pa.array([1, None] * (N // 2), pa.int8()),
        "nothing": pa.nulls(N),
    }
    for name, column in extra.items():
        rows = rows.append_column(name, column)
    rows = rows.replace_schema_metadata({"who": "me"})
    parquet.write_table(rows, tmp_path / "in.parquet", row_group_size=77)
    vc.apply(tree, tmp_path / "in.parquet", tmp_path / "out.parquet")
    back = parquet.read_table(tmp_path / "out.parquet")
    assert back.drop_columns("p_calibrated").equals(rows)
    assert back.schema.metadata[b"who"] == b"me"
    vc.apply(tree, tmp_path / "in.parquet", tmp_path / "out.jsonl")
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert first["tags"] == ["a"] and first["when"].startswith("2024-02-29 12:00:00")
    with pytest.raises(InputError, match=r"column 'tags' of type list.* cannot be written as text"):
        vc.apply(tree, tmp_path / "in.parquet", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


def test_several_files_and_globs(rows, tree, expected, tmp_path):
    never_null = pa.schema([column.with_nullable(False) for column in rows.schema])
    write(rows.slice(0, 100).cast(never_null), tmp_path / "b1.parquet")
    parts = rows.slice(100).select(["city", "age", "p", "y", "id"])  # another order
    parts = parts.set_column(1, "age", parts["age"].cast(pa.int32()))
    parts = parts.set_column(3, "y", pa.nulls(len(parts), pa.int64()))
    write(parts, tmp_path / "b2.parquet")
    vc.apply(tree, str(tmp_path / "b*.parquet"), tmp_path / "out.parquet")
    back = read(tmp_path / "out.parquet")
    np.testing.assert_array_equal(back["p_calibrated"], expected)
    assert back["id"].to_pylist() == rows["id"].to_pylist()
    write(rows.drop_columns("id"), tmp_path / "less.parquet")
    for paths in (["b1.parquet", "less.parquet"], ["less.parquet", "b1.parquet"]):
        with pytest.raises(InputError, match="no column 'id'"):
            vc.apply(tree, [tmp_path / one for one in paths], tmp_path / "out2.parquet")


def test_source_may_be_the_output(rows, tree, tmp_path):
    path = write(rows, tmp_path / "rows.csv")
    vc.apply(tree, path, path)
    assert read(path).column_names[-1] == "p_calibrated"
    with pytest.raises(InputError, match="already has a column 'p_calibrated'"):
        vc.apply(tree, path, path)
    vc.apply(tree, path, path, column="again")
    assert read(path)["again"].to_pylist() == read(path)["p_calibrated"].to_pylist()


def test_more_than_two_classes(tmp_path):
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 300)
    table = pa.table({f"p{k}": p[:, k] for k in range(3)})
    y = np.array(["cat", "dog", "owl"])[[rng.choice(3, p=one) for one in p]]
    cal = vc.calibrators.TemperatureCalibrator().fit(table, y)
    cal.save(tmp_path / "cal.json")
    write(table, tmp_path / "in.parquet")
    done = vc.apply(
        tmp_path / "cal.json", tmp_path / "in.parquet", tmp_path / "o.parquet", column="q"
    )
    assert done.columns == ("q_cat", "q_dog", "q_owl")
    back = read(tmp_path / "o.parquet").select(list(done.columns)).to_pandas().to_numpy()
    np.testing.assert_array_equal(back, cal.predict_proba(p))
    with pytest.raises(InputError, match="p has 2 classes"):
        vc.apply(cal, tmp_path / "in.parquet", tmp_path / "x.parquet", p=["p0"])


def test_bad_rows_are_named_by_their_number_in_the_file(rows, tree, tmp_path, monkeypatch):
    monkeypatch.setattr("varcal._files.read_rows.CHUNK_ROWS", 50)
    scores = rows["p"].to_pylist()
    scores[321] = None
    bad = rows.set_column(2, "p", pa.array(scores))
    write(bad, tmp_path / "in.parquet")
    with pytest.raises(InputError, match=r"in.parquet': p is missing: nan at row 321\n"):
        vc.apply(tree, tmp_path / "in.parquet", tmp_path / "out.csv")
    assert [one.name for one in tmp_path.iterdir()] == ["in.parquet"]


#: Faults that test_dialect.py, test_read_rows.py and test_source.py do not have.
BROKEN = {
    "ragged.csv": (b"p,age,city\n0.5,30,Bath\n0.5,30\n", "Expected 3 columns, got 2"),
    "twice.csv": (b"p,age,city,age\n0.5,30,Bath,31\n", "two columns of the same name: 'age'"),
    "text.csv": (b"p,age,city\nhigh,30,Bath\n", "text.csv': p 'p' holds levels, not numbers"),
    "cut.feather": (None, "cannot read .* as arrow.*\nhint: the file is truncated"),
    "cut.csv.gz": (None, "cannot read|no rows"),
    "array.json": (b'[{"p": 0.5, "age": 30, "city": "Bath"}]', "one object per line"),
    "lacks.jsonl": (b'{"p": 0.5, "agee": 30}\n', "no column 'age' .*\nhint: did you mean 'agee'"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
def test_unusable_files_leave_nothing_behind(name, out, rows, tree, tmp_path):
    path, (content, said) = tmp_path / name, BROKEN[name]
    whole = content or write(rows, path).read_bytes()
    path.write_bytes(content or whole[: len(whole) // 2])
    (tmp_path / out).write_text("before")
    there = {one.name for one in tmp_path.iterdir()}
    with pytest.raises(InputError, match=said):
        vc.apply(tree, path, tmp_path / out)
    assert {one.name for one in tmp_path.iterdir()} == there
    assert (tmp_path / out).read_text() == "before"


def test_invalid_outputs(rows, tree, tmp_path):
    path = write(rows, tmp_path / "in.csv")
    for out, said in {
        tmp_path / "out.xlsx": "unknown file extension",
        tmp_path / "out.parquet.gz": "unknown file extension",
        tmp_path / "no" / "out.csv": "cannot write .*No such file",
        tmp_path / "in.csv" / "out.csv": "cannot write",
    }.items():
        with pytest.raises(InputError, match=said):
            vc.apply(tree, path, out)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="it is a folder"):
        vc.apply(tree, path, tmp_path / "folder.csv")
    with pytest.raises(InputError, match="has no Parquet file"):
        vc.apply(tree, tmp_path / "folder.csv", tmp_path / "out.csv")
    with pytest.raises(InputError, match="no file is given"):
        vc.apply(tree, [], tmp_path / "out.csv")
    with pytest.raises(InputError, match="format must be one of"):
        vc.apply(tree, path, tmp_path / "out.csv", format="xls")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder.csv", "in.csv"]


def test_fitted_on_arrays(rows, tmp_path):
    p, y, age = (rows[name].to_numpy() for name in ("p", "y", "age"))
    cal = vc.calibrators.TreeCalibrator().fit(p, y, age)
    path, out = write(rows, tmp_path / "in.csv"), tmp_path / "out.csv"
    with pytest.raises(InputError, match=r"unknown.*\n.*p="):
        vc.apply(cal, path, out)
    with pytest.raises(InputError, match="no column 'v'"):
        vc.apply(cal, path, out, p="p")
    with pytest.raises(InputError, match=r"X names 2 columns, but .* 1"):
        vc.apply(cal, path, out, p="p", X=["age", "city"])
    vc.apply(cal, path, out, p="p", X="age")
    np.testing.assert_array_equal(read(out)["p_calibrated"], cal.predict_proba(p, age)[:, 1])


def test_types_that_show_late(tree, tmp_path, monkeypatch):
    """Values that do not fit the type of the first block change the type of the whole column."""
    monkeypatch.setattr("varcal._files.read_rows.BLOCK_BYTES", 256)
    n = 100
    late = {
        "whole": ([1] * n, 2.5, pa.float64()),
        "empty": ([None] * n, 3, pa.int64()),
        "word": ([1] * n, "x", pa.string()),
        "truth": ([True] * n, False, pa.bool_()),
    }
    frame = {name: [*first, last] for name, (first, last, _) in late.items()}
    frame |= {"p": [0.5] * (n + 1), "age": [30] * n + [30.5], "city": ["Bath"] * (n + 1)}
    lines = [",".join(frame)]
    lines += [
        ",".join("" if one is None else str(one) for one in row)
        for row in zip(*frame.values(), strict=True)
    ]
    (tmp_path / "in.csv").write_text("\n".join(lines))
    vc.apply(tree, tmp_path / "in.csv", tmp_path / "out.parquet")
    back = parquet.read_table(tmp_path / "out.parquet")
    for name, (first, last, kind) in late.items():
        assert back.schema.field(name).type == kind
        told = ["1"] * n + ["x"] if name == "word" else [*first, last]
        assert back[name].to_pylist() == told
    assert back["age"].to_pylist()[-1] == 30.5

    del frame["word"]  # JSON distinguishes 1 from "1"
    objects = [dict(zip(frame, row, strict=True)) for row in zip(*frame.values(), strict=True)]
    objects[-1]["only here"] = {"deep": 1}
    objects[0]["day"] = "2024-01-01"
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, objects)))
    vc.apply(tree, tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    back = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert back[-1]["whole"] == 2.5 and back[-1]["only here"] == {"deep": 1}
    assert back[0]["day"] == "2024-01-01" and back[1]["day"] is None


@pytest.mark.parametrize("kind", ["relation", "polars", "pyarrow", "folder", "partitions"])
def test_lazy_rows_are_calibrated_in_order(kind, rows, tree, expected, tmp_path, monkeypatch):
    monkeypatch.setattr("varcal._sums.sources.BATCH_ROWS", 77)
    path = tmp_path / "in" / "day=3" if kind == "partitions" else tmp_path / "in"
    path.mkdir(parents=True)
    for k in range(4):
        parquet.write_table(rows.slice(100 * k, 100), path / f"{k}.parquet")
    files = str(path / "*.parquet")
    source = {
        "relation": lambda: duckdb.connect().sql(f"SELECT * FROM read_parquet('{files}')"),
        "polars": lambda: pl.scan_parquet(files),
        "pyarrow": lambda: ds.dataset(path),
        "folder": lambda: tmp_path / "in",
        "partitions": lambda: str(tmp_path / "in"),
    }[kind]()
    assert vc.apply(tree, source, tmp_path / "out.parquet").n_rows == N
    written = parquet.read_table(tmp_path / "out.parquet", partitioning=None)
    assert written["id"].to_pylist() == rows["id"].to_pylist()
    np.testing.assert_allclose(written["p_calibrated"].to_numpy(), expected, atol=1e-15)
    assert ("day" in written.column_names) == (kind == "partitions")
