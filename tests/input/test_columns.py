"""A column of any library is read as the list of its values, and refused by name if it cannot."""

import datetime as dt
import decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import varcal as vc
from varcal.exceptions import InputError

COLUMNS = {
    "integers": [1, 2, 4, 4],
    "integers with missing": [1, 2, None, 4],
    "floats": [1.5, None, float("nan"), 2.0],
    "strings": ["b", "é", None, "b", "Z", "zz", "_", "a"],
    "booleans": [True, None, False, True],
    "all true": [True, True, True, True],
    "dates": [dt.date(2020, 1, 1), None, dt.date(2021, 1, 1), dt.date(2020, 6, 1)],
    "instants": [dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC), None],
    "decimals": [decimal.Decimal("1.5"), None, decimal.Decimal(2)],
    "nothing": [None, None, None],
    "durations": [dt.timedelta(days=1), None, dt.timedelta(seconds=1)],
}  # fmt: skip
READERS = {
    "objects": lambda c: np.array([*c, None], dtype=object)[:-1],
    "pandas": pd.Series,
    "pandas nullable": lambda c: pd.Series(c).convert_dtypes(),
    "pandas arrow": lambda c: pd.Series(c).convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.Series,
    "pyarrow": lambda c: pa.chunked_array([pa.array(c)]),
    "pyarrow array": pa.array,
}


def counts(column):
    """Return the number of rows of each value, as a table shows it."""
    n = len(column)
    table = vc.bin_table([0, 1] * (n // 2) + [0] * (n % 2), [0.4] * n, column, binning="atoms")
    return dict(zip(table.columns["bin"], table.columns["n"], strict=True))


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
def test_every_library_is_read_as_a_list(column, reader):
    found = counts(reader(column))
    assert found == counts(column)
    if isinstance(column[0], str):  # sorted as in numpy
        assert list(found) == [*np.unique([one for one in column if one]), "missing"]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "America/Port-au-Prince"])
def test_time_zones_name_the_same_instant(zone):
    stamps = pd.Series(pd.to_datetime(["2020-01-01 12:00", None])).dt.tz_localize(zone)
    expected = stamps.dt.tz_convert("UTC")
    cuts = [expected[0] - pd.Timedelta("1s"), expected[0]]
    for column in (stamps, expected, pd.DatetimeIndex(stamps), stamps.tolist()):
        table = vc.bin_table([0, 1], [0.4, 0.5], column, bins=cuts)
        assert table.columns["n"] == [1, 1] and table.columns["bin"][-1] == "missing"


def test_types_that_narwhals_does_not_know():
    sparse = pd.Series(pd.arrays.SparseArray([0.0, 1.0, np.nan]))
    assert counts(sparse) == counts([0.0, 1.0, None])
    wide = np.array([1.5, 2.0], dtype=np.longdouble)
    assert counts(wide) == counts(pd.Series(wide)) == counts([1.5, 2.0])
    large = [1.0, None, 2.0**70]
    assert counts(pl.Series([1, None, 2**70], dtype=pl.Int128)) == counts(large)
    with pytest.raises(InputError, match="holds Period"):
        counts(pd.Series(pd.period_range("2020", periods=2)))


def test_text_in_chunks_and_slices():
    two = pa.chunked_array([pa.array(["b", "a"]), pa.array([None, "c"]), pa.array([], pa.string())])
    assert counts(two) == counts(["b", "a", None, "c"])
    assert counts(pl.Series(["x", "b", "a", None])[1:]) == {"a": 1, "b": 1, "missing": 1}


@pytest.mark.parametrize(
    ("column", "levels"),
    [
        (pd.Categorical(["lo", "hi", None], categories=["none", "lo", "hi"]), ["lo", "hi"]),
        (pd.Categorical([3, 1, None]), ["1", "3"]),
        (pl.Series(["b", "a", None], dtype=pl.Categorical), ["a", "b"]),
        (pl.Series(["lo", "hi", None], dtype=pl.Enum(["none", "lo", "hi"])), ["lo", "hi"]),
        (pa.chunked_array([pa.array([3, 1, None]).dictionary_encode()]), ["1", "3"]),
        (pd.Categorical([10, "x", None]), ["10", "x"]),
    ],
)
def test_categories_keep_their_declared_order_and_lose_unused_ones(column, levels):
    columns = [column]
    if isinstance(column, pd.Categorical):
        columns += [pd.Series(column), pd.CategoricalIndex(column)]
    for one in columns:
        assert list(counts(one).items()) == [*((level, 1) for level in levels), ("missing", 1)]


def test_masked_arrays_are_missing_not_used():
    masked = np.ma.array([1.0, 99.0, 3.0], mask=[False, True, False])
    assert counts(masked) == counts([1.0, None, 3.0])
    assert counts(np.ma.array([1.0, 2.0])) == counts([1.0, 2.0])


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
        vc.vece([0, 1], [0.4, 0.5], {"age": column})
    assert message in str(caught.value) and "variable 'age'" in str(caught.value)
    assert "hint:" in str(caught.value)
