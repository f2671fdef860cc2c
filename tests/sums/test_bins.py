import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from varcal._input.variables import Variable
from varcal._sums.bins import LevelBins
from varcal._sums.choose_bins import choose_bins, support_levels
from varcal.exceptions import InputError

finite = st.floats(-1e6, 1e6, allow_nan=False, width=32)
tied = st.integers(-3, 3).map(float)
columns = st.one_of(
    arrays(np.float64, st.integers(1, 200), elements=finite),
    arrays(np.float64, st.integers(1, 200), elements=tied),
)


def of(values, name="v"):
    return Variable.of(values, name)


@settings(max_examples=50)
@given(columns, st.integers(1, 12))
def test_quantile_edges_and_rows_are_those_of_pandas_qcut(values, n_bins):
    bins = choose_bins([of(values)], n_bins=n_bins)
    if len(np.unique(values)) == 1:
        assert bins.size == 1
        return
    codes, edges = pd.qcut(values, n_bins, labels=False, retbins=True, duplicates="drop")
    # Older versions of pandas round the last digit of an edge in another way.
    last_digit = 4e-16 * np.abs(values).max()
    np.testing.assert_allclose(bins.edges, edges, rtol=0, atol=last_digit)
    same = np.array_equal(bins.edges, edges) | ~np.isin(values, [*bins.edges, *edges])
    np.testing.assert_array_equal(bins.index(of(values))[same], codes[same])


N = 20_003


def hostile_columns():
    rng = np.random.default_rng(5)
    normal = rng.normal(50, 15, N)
    return {
        "normal": normal,
        "single precision": normal.astype(np.float32),
        "extended precision": normal.astype(np.longdouble) / 3,
        "whole numbers": rng.integers(17, 90, N),
        "bytes": rng.integers(0, 200, N).astype(np.uint8),
        "beyond 2**53": 2**60 + 256 * rng.integers(0, 10_000, N),
        "zeros": np.where(rng.random(N) < 0.9, 0.0, rng.exponential(5000, N)),
        "constant": np.full(N, 7.0),
        "heavy tails": rng.standard_cauchy(N),
        "widest": rng.choice([-8e307, -1.0, 0.0, 1e-300, 8e307], N),
        "hundreds of decades": 10 ** rng.uniform(-300, 300, N),
        "subnormal": rng.integers(0, 100_000, N) * 5e-324,
        "strided": np.repeat(normal, 2)[::2],
    }


@pytest.mark.parametrize("name", hostile_columns())
@pytest.mark.parametrize("n_bins", [10, 1000])
def test_edges_and_bins_of_hostile_columns_are_those_of_numpy(name, n_bins):
    values = hostile_columns()[name]
    bins = choose_bins([of(values)], n_bins=n_bins)
    edges = np.unique(np.quantile(values.astype(np.float64), support_levels(n_bins)))
    np.testing.assert_array_equal(bins.cuts, edges[1:-1])
    for cut in bins.cuts[:: max(1, n_bins // 50)]:
        near = [np.nextafter(cut, -np.inf), cut, np.nextafter(cut, np.inf), np.inf, -np.inf]
        found = bins.index(of(np.array(near)))
        np.testing.assert_array_equal(found, np.searchsorted(bins.cuts, near))


mixed = st.one_of(finite, tied, st.sampled_from([np.nan, np.inf, -np.inf]))


@given(
    arrays(np.float64, st.integers(1, 150), elements=mixed),
    st.integers(1, 12),
    st.sampled_from(["quantile", "uniform", "atoms"]),
)
@settings(max_examples=100)
def test_bins_partition_the_rows(values, n_bins, binning):
    bins = choose_bins([of(values)], n_bins=n_bins, binning=binning)
    index = bins.index(of(values))
    assert index.min() >= 0 and index.max() < bins.size
    assert len(bins.labels()) == bins.size
    assert list(bins.cuts) == sorted(set(bins.cuts))
    missing = np.isnan(values)
    assert bins.missing == missing.any()
    assert (index[missing] == bins.size - 1).all()
    order = np.argsort(values[~missing], kind="stable")
    assert (np.diff(index[~missing][order]) >= 0).all()
    if bins.size > 1 and not missing.any():
        assert index[values == -np.inf].max(initial=0) == 0
        assert index[values == np.inf].min(initial=bins.size - 1) == bins.size - 1


@pytest.mark.parametrize(
    ("values", "cuts", "labels", "index"),
    [
        (
            [17, 18, 30, 31, 65, 90],
            [18, 30, 65],
            ["[17, 18)", "[18, 30]", "(30, 65]", "(65, 90]"],
            [0, 1, 1, 2, 2, 3],
        ),
        ([18, 40, 65], [18, 30, 65], ["[18, 30]", "(30, 65]"], [0, 1, 1]),
        ([20, 21], [0, 10, 30], ["[0, 10]", "(10, 30]"], [1, 1]),
        ([1, 5, 9], [5], ["[1, 5)", "[5, 9]"], [0, 1, 1]),
        ([1, 2, np.inf, np.nan], [0, 1, 3], None, [0, 1, 2, 3]),
    ],
)  # fmt: skip
def test_given_cut_points_keep_every_row(values, cuts, labels, index):
    variable = of(np.array(values, dtype=float), "age")
    bins = choose_bins([variable], bins={"age": cuts})
    np.testing.assert_array_equal(bins.index(variable), index)
    assert labels is None or bins.labels() == labels
    assert choose_bins([variable], bins=cuts) == bins


def test_levels_rare_levels_and_missing():
    values = ["a"] * 500 + ["b"] * 495 + ["x", "y", "z"] + [None] * 2
    bins = choose_bins([of(values)])
    assert bins == LevelBins("v", ("a", "b"), ("x", "y", "z"), missing=True)
    assert bins.labels() == ["a", "b", "other (3 levels)", "missing"]
    np.testing.assert_array_equal(np.bincount(bins.index(of(values))), [500, 495, 3, 2])
    single = choose_bins([of(["a"] * 500 + ["x"])])
    assert single.levels == ("a", "x")  # a single rare level is not pooled
    assert choose_bins([of([None, None])]).labels() == ["missing"]
    assert choose_bins([of([True, True])]).labels() == ["False", "True"]


def test_new_rows_without_a_bin_are_refused():
    numbers = choose_bins([of([1.0, 2.0])])
    with pytest.raises(InputError, match="missing values, but its bins have none for them"):
        numbers.index(of([1.0, np.nan]))
    letters = choose_bins([of(["a", "b"])])
    with pytest.raises(InputError, match="level without a bin: 'c'"):
        letters.index(of(["a", "c"]))
    with pytest.raises(InputError, match="missing values"):
        letters.index(of(["a", None]))
    pooled = choose_bins([of(["a"] * 998 + ["x", "y"])])
    assert pooled.index(of(["c"]))[0] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bins": 0}, "n_bins must be"),
        ({"n_bins": 2.5}, "n_bins must be"),
        ({"n_bins": True}, "n_bins must be"),
        ({"binning": "quantil"}, "did you mean 'quantile'"),
        ({"bins": 10}, "n_bins="),
        ({"bins": [3, 2]}, "must increase"),
        ({"bins": []}, "must be numeric cut points"),
        ({"bins": [1, np.inf]}, "must be finite"),
        ({"bins": [1, np.nan]}, "remove the others"),
        ({"bins": ["a", "b"]}, "must be numeric cut points"),
        ({"binning": np.array(["quantile"])}, "binning must be one of"),
        ({"bins": {"w": [1, 2]}}, "no column 'w'"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(InputError) as caught:
        choose_bins([of([1.0, 2.0, 3.0])], **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("values", "options", "labels"),
    [
        (
            [0.5, 0.9999989, 0.9999992, 0.9999999, 1.0],
            {"bins": [0.5, 0.9999989, 0.9999992, 1.0]},
            ["[0.5, 0.9999989]", "(0.9999989, 0.9999992]", "(0.9999992, 1]"],
        ),
        ([1e7 + 0.25, 1e7 + 0.5], {"n_bins": 1}, ["[10000000.2, 10000000.5]"]),
        ([1e7, 1e7 + 0.25], {"n_bins": 1}, ["[10000000, 10000000.2]"]),
        ([1e16, 1e16 + 2], {"n_bins": 1}, ["[10000000000000000, 10000000000000002]"]),
        ([-0.0, 1 / 3], {"n_bins": 1}, ["[0, 0.333333]"]),
        (
            np.array(["2024-01-01T00:00:00.1", "2024-01-01T00:00:00.3"], "M8[ms]"),
            {"n_bins": 1},
            ["[2024-01-01 00:00:00.100, 2024-01-01 00:00:00.300]"],
        ),
        (
            np.array(["2024-01-01T00:00:00", "2024-01-01T00:00:00.000009"], "M8[us]"),
            {"n_bins": 1},
            ["[2024-01-01 00:00:00, 2024-01-01 00:00:00.000009]"],
        ),
        ([-np.inf, 22.0, 30.0], {"bins": [18, 25]}, ["[-inf, 18)", "[18, 25]", "(25, 30]"]),
        ([20.0, np.inf], {"bins": [18, 25]}, ["[18, 25]", "(25, inf]"]),
        ([-np.inf, np.inf], {"bins": [5]}, ["[-inf, 5)", "[5, inf]"]),
        ([np.nan, np.nan], {}, ["missing"]),
        ([np.inf, np.inf], {}, ["not finite"]),
        ([np.inf, np.nan], {}, ["not finite", "missing"]),
        (["missing", None], {}, ["missing", "(missing)"]),
        (pd.Categorical([1, "1"]), {}, ["1", "'1'"]),
    ],
)
def test_labels_distinguish_bins(values, options, labels):
    variable = of(np.array(values) if isinstance(values[0], float) else values)
    assert choose_bins([variable], **options).labels() == labels
