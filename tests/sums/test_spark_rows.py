"""Spark data frames, classic and of Spark Connect, give the same results as rows in memory."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import varcal as vc
from cases.lazy_tables import audits_in_memory, make_table, same_audits
from varcal.exceptions import InputError

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed")
# One worker of pytest-xdist runs them all: there is one Spark session.
pytestmark = [pytest.mark.spark, pytest.mark.slow]

DOTTED = "a.b `c`"


@pytest.fixture(scope="session")
def classic(spark_session):
    return spark_session


@pytest.fixture(scope="session")
def connect(classic):
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    from pyspark.sql.connect.session import SparkSession

    port = classic.conf.get("spark.connect.grpc.binding.port")
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="session", params=["classic", "connect"])
def spark(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="session")
def table():
    """The table without types that Spark does not have: unsigned bytes and dictionaries."""
    rows = make_table()
    byte = rows.column("byte").cast(pa.int16())
    rows = rows.set_column(rows.column_names.index("byte"), "byte", byte)
    kind = rows.column("kind").cast(pa.string())
    rows = rows.set_column(rows.column_names.index("kind"), "kind", kind)
    return rows.append_column(DOTTED, rows.column("age"))


@pytest.fixture(scope="session")
def frame(spark, table):
    return spark.createDataFrame(table)


@pytest.fixture(scope="session")
def classic_frame(classic, table):
    return classic.createDataFrame(table)


@pytest.fixture(scope="session")
def whole_of(table):
    return audits_in_memory(table)


@pytest.mark.usefixtures("in_batches")
def test_parts_equal_memory(frame, table, whole_of):
    roles = ("y", "p", "w", "unit")
    names = [name for name in table.column_names if name not in roles]
    if "connect" in type(frame).__module__:  # the sums are the same; only the way there differs
        names = ["x", "flag", "kind", DOTTED]
    a = whole_of(tuple(names), "w")
    b = vc.audit("y", "p", names, data=frame, sample_weight="w")
    assert (b.engine, b.edges) == ("spark", "exact")  # the sample holds all rows
    same_audits(a, b, other_zone=["when"])  # that of the session
    for name in set(names) - {"empty"}:
        np.testing.assert_allclose(b[name].gap, a[name].gap, atol=1e-9)


@pytest.mark.usefixtures("in_batches")
def test_faults_are_named_without_a_trace(frame):
    with pytest.raises(InputError, match=r"p is outside \[0, 1\]: -?\d+\.\d+\n"):
        vc.vece("y", "x", "p", data=frame.where("x between 1.1 and 3"))
    with pytest.raises(InputError, match="sample_weight is negative"):
        vc.vece("y", "p", "w", data=frame, sample_weight="age")
    with pytest.raises(InputError, match="no column 'aGE'"):
        vc.vece("y", "p", "aGE", data=frame)
    twice = frame.toDF(*frame.columns[:-1], "p")
    with pytest.raises(InputError, match="two columns of the same name: 'p'"):
        vc.vece("y", "p", "x", data=twice)


@pytest.fixture(scope="module")
def tree():
    rng = np.random.default_rng(4)
    p, v = rng.random(2_000), rng.normal(size=2_000)
    y = rng.random(2_000) < np.clip(p + 0.2 * np.sign(v), 0, 1)
    return vc.calibrators.TreeCalibrator().fit(pa.table({"p": p}), y, {"age": v})


def test_a_calibrator_is_applied_by_its_query(classic_frame, tree, tmp_path):
    with pytest.raises(InputError, match=r"source is a Spark data frame\n.*to_sql\(\"spark\""):
        vc.apply(tree, classic_frame, tmp_path / "out.parquet")


def test_the_guide(classic, tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "scale.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python spark\n(.*?)^```", page, re.M | re.S)
    rng = np.random.default_rng(6)
    rows = {"y": rng.integers(0, 2, 900), "p": rng.random(900), "age": rng.integers(18, 90, 900)}
    for day in range(3):
        part = pa.table({name: column[day::3] for name, column in rows.items()})
        (tmp_path / "predictions" / f"day={day}").mkdir(parents=True)
        parquet.write_table(part, tmp_path / "predictions" / f"day={day}" / "rows.parquet")
    scores = pa.table({"p": rows["p"]})
    cal = vc.calibrators.TreeCalibrator().fit(scores, rows["y"], {"age": rows["age"].astype(float)})
    for name in ("predictions", "calibrated"):  # the session has a folder of its own
        block = block.replace(f'"{name}"', repr(str(tmp_path / name)))
    scope = {"vc": vc, "cal": cal, "spark": classic}
    exec(compile(block, "scale.md", "exec"), scope)
    assert scope["audit"].n_rows == 900 and scope["today"].n_rows == 300
    written = parquet.read_table(tmp_path / "calibrated")
    assert len(written) == 900 and written.column_names[-1] == "p_calibrated"
