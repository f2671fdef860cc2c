"""Exported queries in Spark."""

import numpy as np
import pytest

from cases.exports import PLAIN_SEX, awkward, drawn

pytest.importorskip("pyspark", reason="pyspark is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
# One worker of pytest-xdist runs them all: there is one Spark session.
pytestmark = [pytest.mark.spark, pytest.mark.slow]


def load(spark, p, v):
    scores = {"p": p} if p.ndim == 1 else {f"p_{k}": p[:, k] for k in range(p.shape[1])}
    columns = {name: pa.array(c.tolist()) if c.dtype.kind == "O" else c for name, c in v.items()}
    # Instants, not times of day wherever Spark runs.
    columns["day"] = pa.array(v["day"]).cast(pa.timestamp("us", tz="UTC"))
    table = pa.table({"id": np.arange(len(p)), **scores, **columns})
    spark.createDataFrame(table).createOrReplaceTempView("scores")


@pytest.mark.parametrize("name", ["TreeCalibrator", "VariableCalibrator"])
def test_hostile_rows(name, spark_session):
    model = awkward(name, sex=PLAIN_SEX)
    p, v = drawn(1_000, 7, hostile=True, sex=PLAIN_SEX)
    load(spark_session, p, v)
    spark_session.sql("SELECT 1 AS kept").createOrReplaceTempView("precious")
    exported = model.to_sql("spark")
    assert np.abs(exported.run(spark_session, key="id") - model.predict_proba(p, v)).max() <= 1e-8
    assert exported.check(spark_session).n_rows == 200
    assert spark_session.sql("SELECT kept FROM precious").collect()[0].kept == 1


def test_many_classes_and_bad_scores(spark_session):
    model = awkward("VariableCalibrator", sex=PLAIN_SEX, n_classes=4)
    p, v = drawn(500, 8, hostile=True, sex=PLAIN_SEX, n_classes=4)
    wanted = model.predict_proba(p, v)
    p[0] = np.nan
    load(spark_session, p, v)
    found = model.to_sql("spark").run(spark_session, key="id")
    assert np.isnan(found[0]).all() and np.abs(found[1:] - wanted[1:]).max() <= 1e-8
