# ruff: noqa: E402 (the number of threads is set before numpy is loaded)
import os
import shutil
import socket
import sys
from pathlib import Path

# Two workers of pytest-xdist with a thread per core each mostly wait for one another: small
# fits take up to 50 times as long. Child processes inherit the variables.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

# For libraries that a plugin loaded before this file.
threadpool_limits(1)

# No test fails for being slow.
settings.register_profile(
    "varcal", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("varcal")

ROOT = Path(__file__).parents[1]

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table, "dict": dict}


def pytest_configure(config):
    # Not in pyproject.toml: that would import varcal before coverage watches.
    config.addinivalue_line("filterwarnings", "error::varcal.exceptions.VarcalWarning")
    config.addinivalue_line("filterwarnings", "ignore::varcal.exceptions.InSampleWarning")


@pytest.fixture(params=FRAMES)
def make_frame(request):
    """Make frames; a test with this fixture runs once for each dataframe library."""
    return FRAMES[request.param]


@pytest.fixture(scope="session")
def paper_data():
    """The model outputs of the paper, which are not bundled."""
    folder = Path(os.environ.get("VARCAL_PAPER_DATA", ROOT.parent / "shared" / "data" / "paper"))
    if not folder.is_dir():
        pytest.skip(f"the paper's outputs are not at {folder}; set VARCAL_PAPER_DATA")
    return folder


# As above, varcal is imported late.
@pytest.fixture(scope="session")
def adult():
    """The bundled predictions of Adult; they must not be changed."""
    from varcal.datasets import load_adult

    return load_adult()


@pytest.fixture(scope="session")
def age(adult):
    """The curve of Adult along age; it must not be changed."""
    import varcal as vc

    return vc.curve(adult.y, adult.p, {"age": adult["age"]})


@pytest.fixture
def in_batches(monkeypatch):
    """No rows are few, and batches are small."""
    monkeypatch.setattr("varcal._sums.sources.FEW_ROWS", 0)
    monkeypatch.setattr("varcal._sums.sources.BATCH_ROWS", 777)


@pytest.fixture
def rng():
    return np.random.default_rng(20230207)


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.fixture(scope="session")
def spark_session():
    """The only Spark session of the tests, which also serves Spark Connect."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, and there is none")
    from pyspark.sql import SparkSession

    settings = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.sql.session.timeZone": "Asia/Kolkata",
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(free_port()),
    }
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()
