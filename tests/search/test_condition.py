"""Conditions in words, on rows and in SQL."""

import datetime as dt

import numpy as np
import pytest

from varcal._export.dialects import DIALECTS
from varcal._input.dates import with_dates
from varcal._input.variables import Variable
from varcal._search.cells import grid_of
from varcal._search.condition import Condition
from varcal.exceptions import InputError


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (Condition("age", "numeric", low=-3.5), "age > −3.5"),
        (Condition("age", "numeric", high=60.0, missing=True), "age ≤ 60 or missing"),
        (Condition("age", "numeric", missing=True, values=False), "age is missing"),
        (Condition("age", "numeric"), "age is known"),
        (Condition("sex", "levels", levels=("f", "x")), "sex in {f, x}"),
        (Condition("sex", "levels", levels=("f",), negated=True), "sex ≠ f"),
        (
            Condition("day", "datetime", low=1709251200.0, high=1711929600.0),
            "2024-03 < day ≤ 2024-04",
        ),
    ],
)
def test_text(condition, text):
    assert condition.text == text


def test_mask_of_an_unknown_level_follows_the_rule():
    column = Variable.of(["a", "new", None], "kind")
    assert Condition("kind", "levels", levels=("a",)).mask(column).tolist() == [True, False, False]
    others = Condition("kind", "levels", levels=("a",), negated=True)
    assert others.mask(column).tolist() == [False, True, False]


def test_mask_reads_dates_as_the_search_did():
    texts = ["2024-03-01", "2024-03-05", None]
    found = with_dates(Variable.of(texts, "day"))
    condition = Condition("day", "datetime", low=1709340000.0, date_format=found.date_format)
    assert condition.mask(Variable.of(texts, "day")).tolist() == [False, True, False]
    days = [dt.date(2024, 3, 1), dt.date(2024, 3, 5), None]
    assert condition.mask(Variable.of(days, "day")).tolist() == [False, True, False]


def test_another_kind_is_refused():
    with pytest.raises(InputError, match="X 'age' holds levels, and the rule is about numbers"):
        Condition("age", "numeric", low=3.0).mask(Variable.of(["a", "b"], "age"))


def test_every_range_of_cells_is_a_condition_with_the_same_rows():
    rng = np.random.default_rng(0)
    numbers = np.where(rng.random(500) < 0.1, np.nan, rng.normal(size=500).round(1))
    numbers[:5] = np.inf
    numbers[5:9] = -np.inf
    levels = rng.choice(["a", "b", "c", None], 500)
    variables = [
        Variable.of(numbers, "x"),
        Variable.of(levels, "kind"),
        Variable.of(rng.integers(0, 6, 500), "count"),
        Variable.of(rng.random(500) < 0.3, "flag"),
    ]
    grid = grid_of(variables, rng.random(500), [False] * 4)
    for axis, line, variable in zip(grid.axes, grid.fine, variables, strict=True):
        assert line.max() == axis.n_cells - 1
        for low in range(axis.n_cells):
            for high in range(low + 1, axis.n_cells + 1, 3):
                inside = (line >= low) & (line < high)
                condition = axis.condition(low, high)
                assert np.array_equal(condition.mask(variable), inside), condition.text


def test_sql_finds_the_rows_of_the_mask():
    duckdb = pytest.importorskip("duckdb")
    pyarrow = pytest.importorskip("pyarrow")
    x = [1.0, 2.0, None, float("nan"), 3.0]
    table = pyarrow.table(
        {
            "it's": x,
            "kind": ["a", None, "b", "q'uote", "a"],
            "flag": [True, False, None, True, True],
            "day": [dt.datetime(2024, 3, k) for k in range(1, 6)],
            "n": [1, 2, None, 4, 5],
        }
    )
    conditions = [
        Condition("it's", "numeric", low=1.0),
        Condition("it's", "numeric", low=1.0, missing=True),
        Condition("it's", "numeric", missing=True, values=False),
        Condition("it's", "numeric"),
        Condition("kind", "levels", levels=("a", "q'uote")),
        Condition("kind", "levels", levels=("a",), negated=True, missing=True),
        Condition("kind", "levels", levels=(), negated=True),
        Condition("flag", "levels", levels=(True,)),
        Condition("day", "datetime", high=1709337600.0),
        Condition("n", "numeric", low=1.0, high=4.0),
    ]
    dialect = DIALECTS["duckdb"]
    query = ", ".join(f"{one.to_sql(dialect)} AS c{k}" for k, one in enumerate(conditions))
    found = duckdb.from_arrow(table).project(query).fetchnumpy()
    for k, one in enumerate(conditions):
        mask = one.mask(with_dates(Variable.of(table.column(one.variable), one.variable)))
        assert found[f"c{k}"].tolist() == mask.tolist(), one.text


def test_sql_of_a_duration_needs_a_database_that_has_them():
    condition = Condition("wait", "duration", low=60.0)
    assert "EPOCH" in condition.to_sql(DIALECTS["duckdb"])
    with pytest.raises(InputError, match="'wait' is a duration, which Spark cannot"):
        condition.to_sql(DIALECTS["spark"])
