"""Rows in files, and a calibrator fitted on some of them."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import varcal as vc
from cases.command_line import COLUMNS, run


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Rows whose gap depends on age only; `noise` is noise."""
    found = tmp_path_factory.mktemp("rows")
    sim = vc.datasets.make_gap(6000, "tilt", vece=0.1, random_state=3)
    rng = np.random.default_rng(3)
    rows = pa.table(
        {
            "y": np.where(sim.y == 1, "yes", "no"),
            "p": sim.p,
            "age": np.round(20 + 60 * sim.v).astype(np.int64),
            "noise": rng.normal(size=6000),
            "w": np.ones(6000),
            "who": np.arange(6000) // 3,
            "tags": [["a"]] * 6000,
        }
    )
    flat = rows.drop_columns("tags")
    parquet.write_table(rows, found / "rows.parquet")
    csv.write_csv(flat, found / "rows.csv")
    csv.write_csv(flat.slice(0, 3000), found / "cal.csv")
    csv.write_csv(flat.slice(3000), found / "test.csv")
    return found


@pytest.fixture(scope="session")
def calibrated(folder):
    """Calibrate and apply."""
    given = [*COLUMNS, "--variables", "age", "-o", "cal.json"]
    first = run("calibrate", "cal.csv", *given, cwd=folder)
    second = run("apply", "cal.json", "test.csv", "-o", "out.csv", cwd=folder)
    return first, second
