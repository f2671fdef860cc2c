import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from varcal._input.variables import Variable, sort_levels
from varcal.exceptions import InputError

UTC = dt.UTC
COLUMNS = {
    "integers": [1, 2, 4, 4],
    "integers with missing": [1, 2, None, 4],
    "floats": [1.5, None, float("nan"), 2.0],
    "strings": ["b", "a", None, "b"],
    "booleans": [True, None, False, True],
    "all true": [True, True, True, True],
    "dates": [dt.date(2020, 1, 1), None, dt.date(2021, 1, 1), dt.date(2020, 6, 1)],
    "instants": [
        dt.datetime(2020, 1, 1, 12, tzinfo=UTC),
        None,
        dt.datetime(2021, 1, 1, tzinfo=UTC),
    ],
    "decimals": [decimal.Decimal("1.5"), None, decimal.Decimal(2)],
    "nothing": [None, None, None],
    "durations": [dt.timedelta(days=1), None, dt.timedelta(seconds=1)],
}
READERS = {
    "objects": lambda c: np.array([*c, None], dtype=object)[:-1],
    "pandas": pd.Series,
    "pandas nullable": lambda c: pd.Series(c).convert_dtypes(),
    "pandas arrow": lambda c: pd.Series(c).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.Series,
    "pyarrow": lambda c: pa.chunked_array([pa.array(c)]),
    "pyarrow array": pa.array,
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
def test_every_library_is_read_as_a_list(column, reader):
    expected = Variable.of(column, "v")
    found = Variable.of(reader(column), "v")
    assert (found.kind, found.levels) == (expected.kind, expected.levels)
    np.testing.assert_array_equal(found.values, expected.values)


def test_kinds_and_values():
    assert Variable.of(COLUMNS["booleans"], "v").levels == (False, True)
    assert Variable.of(COLUMNS["all true"], "v").levels == (False, True)
    np.testing.assert_array_equal(Variable.of(COLUMNS["all true"], "v").values, [1, 1, 1, 1])
    instants = Variable.of(COLUMNS["instants"], "v")
    assert instants.kind == "datetime"
    assert instants.values[0] == dt.datetime(2020, 1, 1, 12, tzinfo=UTC).timestamp()
    durations = Variable.of(COLUMNS["durations"], "v")
    assert durations.values[0] == 86_400 and durations.kind == "duration"
    np.testing.assert_array_equal(Variable.of(COLUMNS["strings"], "v").missing(), [0, 0, 1, 0])
    np.testing.assert_array_equal(Variable.of([1, 2], "v").missing(), [0, 0])


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "America/Port-au-Prince"])
def test_time_zones_name_the_same_instant(zone):
    stamps = pd.Series(pd.to_datetime(["2020-01-01 12:00", None])).dt.tz_localize(zone)
    expected = stamps[0].timestamp()
    for column in (stamps, stamps.dt.tz_convert("UTC"), pd.DatetimeIndex(stamps), stamps.tolist()):
        found = Variable.of(column, "v")
        assert found.kind == "datetime"
        np.testing.assert_array_equal(found.values, [expected, np.nan])


def test_types_that_narwhals_does_not_know():
    sparse = pd.Series(pd.arrays.SparseArray([0.0, 1.0, np.nan]))
    np.testing.assert_array_equal(Variable.of(sparse, "v").values, [0, 1, np.nan])
    wide = np.array([1.5, 2.0], dtype=np.longdouble)
    for column in (wide, pd.Series(wide)):
        found = Variable.of(column, "v")
        assert found.values.dtype == np.float64 and found.values[0] == 1.5
    large = Variable.of(pl.Series([1, None, 2**70], dtype=pl.Int128), "v")
    np.testing.assert_array_equal(large.values, [1, np.nan, 2.0**70])
    with pytest.raises(InputError, match="holds Period"):
        Variable.of(pd.Series(pd.period_range("2020", periods=2)), "v")


def test_strings_of_every_library_are_numbered_as_in_numpy(rng):
    words = rng.choice(["b", "é", "a", "Z", "zz", ""], 500)
    levels, codes = np.unique(words, return_inverse=True)
    for read in READERS.values():
        found = Variable.of(read(words.tolist()), "v")
        assert found.levels == tuple(levels)
        np.testing.assert_array_equal(found.values, codes)
    two = pa.chunked_array([pa.array(["b", "a"]), pa.array([None, "c"]), pa.array([], pa.string())])
    np.testing.assert_array_equal(Variable.of(two, "v").values, [1, 0, -1, 2])
    sliced = pl.Series(["x", "b", "a", None])[1:]
    np.testing.assert_array_equal(Variable.of(sliced, "v").values, [1, 0, -1])


@pytest.mark.parametrize(
    ("series", "levels", "codes"),
    [
        (
            pd.Categorical(["lo", "hi", None], categories=["none", "lo", "hi"]),
            ("lo", "hi"),
            [0, 1, -1],
        ),
        (pd.Categorical([3, 1, 3]), (1, 3), [1, 0, 1]),
        (pl.Series(["b", "a", None], dtype=pl.Categorical), ("a", "b"), [1, 0, -1]),
        (pl.Series(["lo", "hi"], dtype=pl.Enum(["none", "lo", "hi"])), ("lo", "hi"), [0, 1]),
        (pa.chunked_array([pa.array([3, 1, None]).dictionary_encode()]), (1, 3), [1, 0, -1]),
    ],
)
def test_categories_keep_their_declared_order_and_lose_unused_ones(series, levels, codes):
    columns = [series]
    if isinstance(series, pd.Categorical):
        columns += [pd.Series(series), pd.CategoricalIndex(series)]
    for column in columns:
        found = Variable.of(column, "v")
        assert found.levels == levels
        np.testing.assert_array_equal(found.values, codes)


def test_masked_arrays_are_missing_not_used():
    masked = np.ma.array([1.0, 99.0, 3.0], mask=[False, True, False])
    np.testing.assert_array_equal(Variable.of(masked, "v").values, [1, np.nan, 3])
    np.testing.assert_array_equal(Variable.of(np.ma.array([1.0, 2.0]), "v").values, [1, 2])


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (np.array([1 + 2j]), "dtype complex128"),
        (["a", 1], "object array that holds int, str"),
        ([[1], [2]], "has shape (2, 1)"),
        ([object()], "holds object"),
        (pl.Series([[1], [2]]), "is of type List"),
        ([[1], [2, 3]], "cannot be read as an array"),
        (iter([1]), "variable 'age' is a single list_iterator, not a column"),
        ([10**400], "holds a number too large for a float"),
        ([decimal.Decimal("sNaN")], "holds a number too large for a float"),
    ],
)
def test_invalid_variables_are_refused_by_name(column, message):
    with pytest.raises(InputError) as caught:
        Variable.of(column, "age")
    assert message in str(caught.value)
    assert "hint:" in str(caught.value)


def test_mixed_labels_that_cannot_be_ordered_still_have_one_order():
    first = Variable.of(pd.Series(["x", 1, "x"], dtype="category"), "v")
    assert first.levels == (1, "x")
    many = Variable.of(pd.Categorical([10, 9, "x"]), "v")
    assert sort_levels(many.values, many.levels)[1] == [9, 10, "x"]
    assert sort_levels(np.array([1, 0]), [2j, 1j])[1] == [1j, 2j]
