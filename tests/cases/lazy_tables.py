"""A table with a column of every kind, and a comparison of the tables of two audits."""

import datetime as dt
import decimal
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import varcal as vc

N = 6_000
TRICKY = ["Age", "age", 'a "quoted" name', "it's, spaced"]


def make_table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.normal(size=n)
    p = 1 / (1 + np.exp(-score))
    x = np.round(rng.normal(size=n), 3)
    x[:7], x[7:10], x[10:13] = np.nan, np.inf, -np.inf
    day = dt.datetime(2024, 1, 1)
    return pa.table(
        {
            "y": (rng.random(n) < np.clip(p + 0.1 * np.tanh(x), 0, 1)).astype(np.int8),
            "p": p,
            "x": x,
            "null": pa.array([None if k % 11 == 0 else float(k % 17) for k in range(n)]),
            "ties": rng.integers(0, 4, n),
            "byte": rng.integers(0, 200, n).astype(np.uint8),
            "big": rng.integers(0, 2**60, n),
            "money": pa.array([decimal.Decimal(int(k)) / 100 for k in rng.integers(0, 9999, n)]),
            "flag": pa.array([None if k % 13 == 0 else bool(k % 3) for k in range(n)]),
            "kind": pa.array(rng.choice(["red", "green", "blue", None], n)).dictionary_encode(),
            "text": pa.array(rng.choice(["a", "b", "rare"], n, p=[0.7, 0.295, 0.005])),
            "date": pa.array(
                [(day + dt.timedelta(days=int(k))).date() for k in rng.integers(0, 99, n)]
            ),
            "when": pa.array(
                [day + dt.timedelta(seconds=int(k)) for k in rng.integers(0, 10**6, n)],
                pa.timestamp("us", "UTC"),
            ),
            "empty": pa.nulls(n, pa.float64()),
            **{name: rng.normal(size=n) for name in TRICKY},
            "w": rng.exponential(size=n),
            "unit": rng.integers(0, 40, n),
        }
    )


def audits_in_memory(table):
    """Return a function that audits the table in memory, once for each setting."""

    @cache
    def audit(names, weight):
        return vc.audit("y", "p", list(names), data=table, sample_weight=weight)

    return audit


def same_audits(a, b, other_zone=()):
    """Compare audits of the same rows; `other_zone` shows instants in another time zone."""
    assert (a.verdict, a.notes, a.n_rows, a.grouped) == (b.verdict, b.notes, b.n_rows, b.grouped)
    for one, other in zip(a.targets.values(), b.targets.values(), strict=True):
        assert (one.name, one.sides, one.events) == (other.name, other.sides, other.events)
        for name in ("predicted", "observed", "gap", "gap_low", "gap_high", "limit"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9), name
        assert vars(one.by_score) == pytest.approx(vars(other.by_score), rel=1e-6, abs=1e-9)
        np.testing.assert_allclose(one.score.columns["gap"], other.score.columns["gap"], atol=1e-9)
    for one in a:
        other = b.row(one.variable)
        if one.variable.split(" (")[0] in other_zone and one.variable not in other_zone:
            continue  # hours of another clock
        assert (one.kind, one.verdict, one.target) == (other.kind, other.verdict, other.target)
        for name in ("error", "uneven"):
            # A test that simulates hits draws them by row, or by cell without rows.
            mine, theirs = (vars(getattr(row, name)) | {"p_value": 0} for row in (one, other))
            assert mine == pytest.approx(theirs, rel=1e-6, abs=1e-9), one.variable
        for column, values in one.table.columns.items():
            again = other.table.columns[column]
            if column in ("bin", "side"):
                assert values == again or one.variable in other_zone, one.variable
            else:
                np.testing.assert_allclose(values, again, atol=1e-12, err_msg=one.variable)
