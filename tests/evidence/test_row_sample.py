"""A sample of lazy rows is a sample of the rows themselves."""

import duckdb
import numpy as np
import polars as pl
import pyarrow.dataset as ds
import pytest
from pyarrow import parquet

from cases.lazy_tables import make_table
from varcal._engines.open import lazy_rows
from varcal._evidence._survey.row_sample import sample_rows
from varcal._evidence.roles import Roles
from varcal._input.predictions import Predictions

OPENERS = {
    "duckdb": str,
    "relation": lambda path: duckdb.connect().sql(f"FROM read_parquet('{path}')"),
    "polars": pl.scan_parquet,
    "pyarrow": ds.dataset,
}


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(scope="module")
def path(table, tmp_path_factory):
    found = tmp_path_factory.mktemp("rows") / "rows.parquet"
    parquet.write_table(table, found, row_group_size=1_000)
    return found


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    for name in ("duckdb", "polars", "arrow"):
        monkeypatch.setattr(f"varcal._engines.{name}_rows.BATCH_ROWS", 777)


@pytest.mark.parametrize("opener", OPENERS)
def test_every_engine(opener, path, table):
    names = tuple(n for n in table.column_names if n not in ("y", "p", "w", "unit", "Age", "age"))
    roles = Roles("y", ("p",), names, "w", "unit", unlabelled="drop")
    rows = lazy_rows(OPENERS[opener](path))
    whole = Predictions.of(
        "y",
        "p",
        list(names),
        data=table,
        sample_weight="w",
        groups="unit",
        unlabelled="drop",
    )
    found = sample_rows(rows, roles, whole.classes, 1_000)
    assert 900 < len(found) + found.n_dropped < 1_100
    assert found.classes == whole.classes
    assert [one.kind for one in found.variables] == [one.kind for one in whole.variables]
    # Weights are scaled by a power of two that depends on the largest of them.
    assert set(found.p) <= set(whole.p)
    error = 4 * np.std(whole.p) / np.sqrt(len(found))
    assert abs(found.p.mean() - whole.p.mean()) < error
    again = sample_rows(lazy_rows(OPENERS[opener](path)), roles, whole.classes, 1_000)
    np.testing.assert_array_equal(found.p, again.p)


def test_all_rows_if_there_are_few(path, table):
    found = sample_rows(lazy_rows(str(path)), Roles("y", ("p",), unlabelled="drop"), (0, 1), 10**9)
    assert len(found) + found.n_dropped == len(table)
