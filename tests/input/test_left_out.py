"""Columns that an audit leaves out by itself: only where that is certain."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pytest

import varcal as vc
from varcal.exceptions import InputError

N = 1000
RNG = np.random.default_rng(7)
P = RNG.uniform(size=N)
Y = (RNG.random(N) < P).astype(int)
SENTENCES = [f"The {k}th customer says that the service was slow and rude" for k in range(N)]
UNIQUE = "identifier: 1,000 different values in 1,000 rows"
CONSTANT = "constant: the same value at every row"

LEFT_OUT = {
    "user": ([f"user-{k}" for k in range(N)], UNIQUE),
    "email": (
        [f"u{max(k, 20)}@example.org" for k in range(N)],
        "identifier: 980 different values in 1,000 rows",
    ),
    "comment": (SENTENCES, "free text: 1,000 different values in 1,000 rows"),
    "answer": (["none"] * 300 + SENTENCES[300:], "free text: 701 different values in 1,000 rows"),
    "country": (["DE"] * N, CONSTANT),
    "version": ([3] * N, CONSTANT),
    "flag": ([True] * N, CONSTANT),
    "n": (range(1, N + 1), "row number: counts from 1 to 1,000"),
    "backwards": (range(N - 1, -1, -1), "row number: counts from 0 to 999"),
    "Unnamed: 0": (RNG.permutation(5 * N)[:N], UNIQUE),
    "": (RNG.permutation(N), UNIQUE),
    "__index_level_0__": (range(50, 50 + N), UNIQUE),
    "customer_id": (RNG.permutation(9 * N)[:N], UNIQUE),
    "PassengerId": (range(900, 900 + N), UNIQUE),
    "accountid": (2**53 + np.arange(N), UNIQUE),
    "key": (
        [float(k) if k % 20 else None for k in range(7 * N, 8 * N)],
        "identifier: 950 different values in 950 rows",
    ),
    "city": (
        [f"city {k % 400}" for k in range(N)],
        "too many values: 400 different values in 1,000 rows, none of them in 1 % of the rows",
    ),
    "price": (
        [f"{k / 7:.3f}" for k in range(N)],
        "numbers stored as text: convert them to numbers",
    ),
    "nothing": ([None] * N, "every value is missing"),
}
KEPT = {
    "income": RNG.lognormal(10, 1, N),
    "whole floats": np.rint(RNG.lognormal(10, 1, N)),
    "cents": RNG.integers(0, 10**9, N),
    "fnlwgt": RNG.permutation(N * 9)[:N],
    "paid": RNG.permutation(N * 9)[:N],
    "rank": RNG.permutation(N) + 1,
    "week": range(1, N + 1),
    "year": range(1900, 1900 + N),
    "shuffled": RNG.permutation(N),
    "branch_id": RNG.integers(0, 30, N),
    "group": RNG.choice(["a", "b", "c"], N),
    "some known": ["yes" if k % 3 else None for k in range(N)],
    "cabin": [f"C{k}" if k % 4 == 0 else None for k in range(N)],
    "moment": pd.Series(pd.date_range("2024-01-01", periods=N, freq="17min")),
    "day": [str(dt.date(2020, 1, 1) + dt.timedelta(days=k)) for k in range(N)],
    "span": pd.Series(pd.to_timedelta(np.arange(N), unit="h")),
    # Equal as floats, but not constant.
    "code": np.array([2**53, 2**53 + 1] * (N // 2)),
}
FRAME = pd.DataFrame({name: pd.Series(column) for name, (column, _) in LEFT_OUT.items()})
FRAME = FRAME.assign(y=Y, p=P, age=RNG.normal(size=N))


def audited(*args, **options):
    return vc.audit(*args, **options, ladder="none")


def names_of(audit):
    return {row.variable for row in audit if "(" not in row.variable}


@pytest.mark.filterwarnings("ignore:variable 'code'")
def test_whole_tables_are_judged_without_columns_that_say_nothing():
    found = audited("y", "p", data=FRAME.assign(**KEPT))
    assert dict(found.left_out) == {name: reason for name, (_, reason) in LEFT_OUT.items()}
    assert names_of(found) == {"age", *KEPT}
    few = audited(
        Y[:10], P[:10], pd.DataFrame({"name": [f"name {k}" for k in range(10)], "n": P[:10]})
    )
    assert "name" in names_of(few)


def test_columns_that_the_user_names_are_judged():
    some = FRAME[["user", "n", "flag"]]
    rows = some.assign(y=Y, p=P)
    assert names_of(audited(Y, P, FRAME[["age", "city", "user"]], include=["city"])) == {
        "age",
        "city",
    }
    for X in (["user", "n"], ("user", "n")):
        assert names_of(audited("y", "p", X, data=rows)) == {"user", "n"}
    assert names_of(audited(Y, P, dict(some[["user", "n"]]))) == {"user", "n"}
    assert names_of(audited("y", "p", "user", data=rows)) == {"user"}
    assert names_of(audited(Y, P, some["n"])) == {"n"}
    assert names_of(audited(Y, P, np.arange(N))) == {"v"}
    assert names_of(audited(Y, P, some["user"].tolist())) == {"v"}


def test_a_table_without_variables_tells_how_to_bring_columns_back():
    some = FRAME[["user", "flag"]]
    with pytest.raises(InputError, match="X has no variable to audit: 'user' \\(identifier") as one:
        audited(Y, P, some)
    assert one.value.hint == "bring columns back with include=['user']"
    with pytest.raises(InputError, match="include: no column 'usr'") as two:
        audited(Y, P, some, include=["usr"])
    assert "'user'" in two.value.hint


def test_lazy_rows_leave_out_the_same_columns(monkeypatch):
    # Samples of lazy rows are floats, in which integers above 2**53 coincide: such a key stays.
    frame = FRAME.drop(columns=["nothing", "", "accountid"])
    whole = audited("y", "p", data=frame)
    monkeypatch.setattr("varcal._sums.sources.FEW_ROWS", 100)
    monkeypatch.setattr("varcal._sums.sources.BATCH_ROWS", 300)
    lazy = pl.from_pandas(frame).lazy()
    found = audited("y", "p", data=lazy)
    assert {name for name, _ in found.left_out} == {name for name, _ in whole.left_out}
    assert names_of(found) == {"age"}
    assert names_of(audited("y", "p", ["age", "user"], data=lazy)) == {"age", "user"}
