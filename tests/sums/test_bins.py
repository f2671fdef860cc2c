"""Bins, seen through the tables that `bin_table` returns."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import varcal as vc
from varcal.exceptions import InputError

finite = st.floats(-1e6, 1e6, allow_nan=False, width=32)
tied = st.integers(-3, 3).map(float)


def table(values, **options):
    """Return the bins of a variable and the rows of each."""
    n = len(values)
    return vc.bin_table(np.arange(n) % 2, np.full(n, 0.5), {"v": values}, **options).columns


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
    values = hostile_columns()[name].astype(np.float64)
    # pandas moves a level to the next float above if n_bins times it is not a whole number.
    levels = np.linspace(0, 1, n_bins + 1)
    levels = np.where(n_bins * levels != np.arange(n_bins + 1), np.nextafter(levels, 1), levels)
    edges = np.unique(np.quantile(values, levels))
    found = table(hostile_columns()[name], n_bins=n_bins)
    np.testing.assert_array_equal(found["high"], edges[1:] if len(edges) > 1 else edges)
    rows = np.bincount(np.searchsorted(edges[1:-1], values), minlength=max(len(edges) - 1, 1))
    np.testing.assert_array_equal(found["n"], rows)


mixed = st.one_of(finite, tied, st.sampled_from([np.nan, np.inf, -np.inf]))


@given(
    arrays(np.float64, st.integers(1, 150), elements=mixed),
    st.integers(1, 12),
    st.sampled_from(["quantile", "uniform", "atoms"]),
)
@settings(max_examples=100)
def test_bins_partition_the_rows(values, n_bins, binning):
    found = table(values, n_bins=n_bins, binning=binning)
    missing = np.isnan(values)
    assert sum(found["n"]) == len(values) and len(set(found["bin"])) == len(found["bin"])
    assert ("missing" in found["bin"]) == missing.any()
    rows = np.array(found["n"])[: len(found["n"]) - missing.any()]
    assert not missing.any() or found["n"][-1] == missing.sum()
    if np.isfinite(values).any():
        # A bin has the values above its lower edge and up to its upper one.
        inner = np.array(found["high"])[: len(rows) - 1]
        if binning != "atoms":
            expected = np.bincount(np.searchsorted(inner, values[~missing]), minlength=len(rows))
            np.testing.assert_array_equal(rows, expected)
        assert (np.diff(inner) >= 0).all()


@pytest.mark.parametrize(
    ("values", "cuts", "labels", "rows"),
    [
        (
            [17, 18, 30, 31, 65, 90],
            [18, 30, 65],
            ["[17, 18)", "[18, 30]", "(30, 65]", "(65, 90]"],
            [1, 2, 2, 1],
        ),
        ([18, 40, 65], [18, 30, 65], ["[18, 30]", "(30, 65]"], [1, 2]),
        ([20, 21], [0, 10, 30], ["[0, 10]", "(10, 30]"], [0, 2]),
        ([1, 5, 9], [5], ["[1, 5)", "[5, 9]"], [1, 2]),
        ([1, 2, np.inf, np.nan], [0, 1, 3], None, [1, 1, 1, 1]),
    ],
)
def test_given_cut_points_keep_every_row(values, cuts, labels, rows):
    values = np.array(values, dtype=float)
    found = table(values, bins={"v": cuts})
    assert found["n"] == rows and labels in (None, found["bin"])
    assert table(values, bins=cuts)["bin"] == found["bin"]


def test_levels_rare_levels_and_missing():
    found = table(["a"] * 500 + ["b"] * 495 + ["x", "y", "z"] + [None] * 2)
    assert found["bin"] == ["a", "b", "other (3 levels)", "missing"]
    assert found["n"] == [500, 495, 3, 2]
    assert table(["a"] * 500 + ["x"])["bin"] == ["a", "x"]  # a single rare level is not pooled
    assert table([None, None])["bin"] == ["missing"]
    assert table([True, True])["bin"] == ["False", "True"]


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
        table([1.0, 2.0, 3.0], **options)
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
    values = np.array(values) if isinstance(values[0], float) else values
    assert table(values, **options)["bin"] == labels
