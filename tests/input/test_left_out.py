"""Columns that an audit leaves out by itself: only where that is certain."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import varcal as vc
from varcal._input.left_out import ColumnFacts, explicit_names, reason_to_leave_out
from varcal._input.predictions import ALL
from varcal._input.variables import Variable
from varcal._sums import sources
from varcal._sums.gather import gather
from varcal._sums.plan import Question
from varcal.exceptions import InputError

N = 1000
RNG = np.random.default_rng(7)
SENTENCES = [f"The {k}th customer says that the service was slow and rude" for k in range(N)]

LEFT_OUT = {
    "user": ([f"user-{k}" for k in range(N)], "identifier: 1,000 different values in 1,000 rows"),
    "email": (
        [f"u{max(k, 20)}@example.org" for k in range(N)],
        "identifier: 980 different values in 1,000 rows",
    ),
    "comment": (SENTENCES, "free text: 1,000 different values in 1,000 rows"),
    "answer": (
        ["none"] * 300 + SENTENCES[300:],
        "free text: 701 different values in 1,000 rows",
    ),
    "country": (["DE"] * N, "constant: the same value at every row"),
    "version": ([3] * N, "constant: the same value at every row"),
    "flag": ([True] * N, "constant: the same value at every row"),
    "n": (range(1, N + 1), "row number: counts from 1 to 1,000"),
    "backwards": (range(N - 1, -1, -1), "row number: counts from 0 to 999"),
    "Unnamed: 0": (RNG.permutation(5 * N)[:N], "identifier: 1,000 different values in 1,000 rows"),
    "": (RNG.permutation(N), "identifier: 1,000 different values in 1,000 rows"),
    "__index_level_0__": (range(50, 50 + N), "identifier: 1,000 different values in 1,000 rows"),
    "customer_id": (
        RNG.permutation(9 * N)[:N],
        "identifier: 1,000 different values in 1,000 rows",
    ),
    "PassengerId": (range(900, 900 + N), "identifier: 1,000 different values in 1,000 rows"),
    "accountid": (
        2**53 + np.arange(N),
        "identifier: 1,000 different values in 1,000 rows",
    ),
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
    "name of ten": [f"name {k}" for k in range(10)],
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_columns_that_say_nothing_are_left_out(name):
    column, reason = LEFT_OUT[name]
    facts = ColumnFacts.of(Variable.of(pd.Series(column), name))
    assert reason_to_leave_out(name, facts) == reason


@pytest.mark.parametrize("name", KEPT)
def test_columns_that_may_say_something_stay(name):
    column = KEPT[name]
    frame = pd.DataFrame({name: column, "other": RNG.normal(size=len(column))})
    y = RNG.integers(0, 2, len(frame))
    assert name in vc.audit(y, np.full(len(frame), 0.5), frame)


def names_of(audit):
    return [row.variable for row in audit]


def audit_rows():
    p = RNG.uniform(size=N)
    y = (RNG.random(N) < p).astype(int)
    return y, p, {name: pd.Series(column) for name, (column, _) in LEFT_OUT.items()}


def left_out(data):
    options = {"n_bins": 10, "binning": "atoms", "bins": None, "edges": None}
    return gather("y", "p", ALL, Question(options, "correct"), data=data).left_out()


def test_a_whole_frame_is_judged_without_them():
    y, p, columns = audit_rows()
    frame = pd.DataFrame(columns | {"age": RNG.normal(size=N)})
    found = vc.audit(y, p, frame)
    assert names_of(found) == ["age"]
    assert found.row("age").p_holm == found.row("age").uneven.p_value
    again = vc.audit(y, p, frame, include=["city", "version"])
    assert set(names_of(again)) == {"age", "city", "version"}
    by_name = vc.audit("y", "p", data=frame.assign(y=y, p=p))
    assert names_of(by_name) == ["age"]


def test_columns_that_the_user_names_are_judged():
    y, p, columns = audit_rows()
    frame = pd.DataFrame({name: columns[name] for name in ("user", "n", "flag")})
    for X in (["user", "n"], ("user", "n"), {"user": frame["user"], "n": frame["n"]}):
        data = None if isinstance(X, dict) else frame.assign(y=y, p=p)
        found = vc.audit(y, p, X) if data is None else vc.audit("y", "p", X, data=data)
        assert set(names_of(found)) == {"user", "n"}
    assert names_of(vc.audit("y", "p", "user", data=frame.assign(y=y, p=p))) == ["user"]
    assert names_of(vc.audit(y, p, frame["n"])) == ["n"]
    assert names_of(vc.audit(y, p, np.arange(N))) == ["v"]
    assert names_of(vc.audit(y, p, [f"user {k}" for k in range(N)])) == ["v"]


def test_a_table_without_variables_tells_how_to_bring_columns_back():
    y, p, columns = audit_rows()
    with pytest.raises(InputError, match="X has no variable to audit: 'user' \\(identifier") as one:
        vc.audit(y, p, pd.DataFrame({"user": columns["user"], "flag": columns["flag"]}))
    assert one.value.hint == "bring columns back with include=['user']"
    with pytest.raises(InputError, match="include: no column 'usr'") as two:
        vc.audit(y, p, pd.DataFrame({"user": columns["user"]}), include=["usr"])
    assert "'user'" in two.value.hint
    with pytest.raises(InputError, match="include is 3"):
        explicit_names(None, 3, ["a"])


def test_lazy_rows_leave_out_the_same_columns(monkeypatch):
    y, p, columns = audit_rows()
    frame = pd.DataFrame(columns | {"y": y, "p": p, "age": RNG.normal(size=N)})
    # Samples of lazy rows are floats, in which integers above 2**53 coincide: such a key stays.
    frame = frame.drop(columns=["nothing", "", "accountid"]).assign(
        **{"Unnamed: 0": np.arange(N)[::-1]}
    )
    whole = left_out(frame)
    monkeypatch.setattr(sources, "FEW_ROWS", 100)
    monkeypatch.setattr(sources, "BATCH_ROWS", 300)
    lazy = pl.from_pandas(frame).lazy()
    assert left_out(lazy) == whole and len(whole) > 10
    assert names_of(vc.audit("y", "p", data=lazy)) == ["age"]
    some = vc.audit("y", "p", ["age", "user"], data=pl.from_pandas(frame).lazy())
    assert set(names_of(some)) == {"age", "user"}


def test_collected_sums_remember_them(tmp_path):
    y, p, columns = audit_rows()
    rows = pa.table({"y": y, "p": p, "age": RNG.normal(size=N), "user": columns["user"]})
    day = vc.collect(rows, vc.make_bins("y", "p", data=rows))
    day.save(tmp_path / "day.json")
    again = vc.load(tmp_path / "day.json")
    for collected in (day, again, day + again):
        found = vc.audit(collected)
        assert names_of(found) == ["age"]
        reason = "identifier: 1,000 different values in 1,000 rows"
        assert found.left_out == (("user", reason),)
        assert set(names_of(vc.audit(collected, include="user"))) == {"age", "user"}
    chosen = vc.collect(rows, vc.make_bins("y", "p", ["age", "user"], data=rows))
    assert set(names_of(vc.audit(chosen))) == {"age", "user"}


def test_integers_that_are_equal_as_floats_are_no_constant():
    column = np.array([2**53, 2**53 + 1] * 50)
    facts = ColumnFacts.of(Variable.of(column, "code"))
    assert reason_to_leave_out("code", facts) == ""
