"""Order statistics and ranks equal those of a sorted copy, to the bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from varcal._binning import order_statistics as module
from varcal._binning.order_statistics import OrderStatistics
from varcal._binning.summary import ArraySummary

N = 120_000


def columns():
    rng = np.random.default_rng(5)
    normal = rng.normal(50, 15, N)
    return {
        "normal": normal,
        "sorted": np.sort(normal),
        "reversed": -np.sort(-normal),
        "single precision": normal.astype(np.float32),
        "whole numbers": rng.integers(17, 90, N),
        "bytes": rng.integers(0, 200, N).astype(np.uint8),
        "booleans": rng.random(N) < 0.3,
        "beyond 2**53": rng.integers(2**60, 2**60 + 10_000, N),
        "atom": np.where(rng.random(N) < 0.9, 0.0, rng.exponential(5000, N)),
        "two values": np.where(rng.random(N) < 0.5, 0.0, 5e-324),
        "constant": np.full(N, 7.0),
        "heavy tails": rng.standard_cauchy(N),
        "lognormal": np.exp(3 * rng.normal(size=N)),
        "widest": rng.choice([-1.7e308, -1.0, 0.0, 1e-300, 1.7e308], N),
        "one far out": np.append(normal[1:], 1e300),
        "hundreds of decades": 10 ** rng.uniform(-300, 300, N),
        "subnormal": rng.integers(0, 100_000, N) * 5e-324,
        "strided": np.repeat(normal, 2)[::2],
        "frequent in the sample only": np.where(np.arange(N) % (N // 4096) == 0, 0.5, normal),
        "extended precision": np.where(
            rng.random(N) < 0.5, np.longdouble(1) / 3, normal.astype(np.longdouble)
        ),
        "most outside": np.where(np.arange(N) % 30 == 0, normal, 1e6 * normal),
    }


@pytest.mark.parametrize("name", columns())
def test_equal_to_a_sorted_copy(name):
    values = columns()[name]
    ordered = np.sort(values.astype(np.float64))
    found = OrderStatistics(values, float(ordered[0]), float(ordered[-1]))
    ranks = np.unique(np.linspace(0, N - 1, 500).astype(np.intp))
    np.testing.assert_array_equal(found.at(ranks), ordered[ranks])
    between = (ordered[ranks[:-1]] / 2 + ordered[ranks[1:]] / 2)[::9]
    outside = [np.nextafter(ordered[0], -np.inf), np.nextafter(ordered[-1], np.inf)]
    asked = np.concatenate([ordered[ranks[::7]], between, outside])
    np.testing.assert_array_equal(found.below(asked), np.searchsorted(ordered, asked))
    upto = found.below(asked, equal=True)
    np.testing.assert_array_equal(upto, np.searchsorted(ordered, asked, side="right"))


@given(
    st.lists(
        st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, 1.0])),
        min_size=1,
        max_size=200,
    ),
    st.integers(0, 2**32 - 1),
)
def test_any_numbers(numbers, seed):
    rng = np.random.default_rng(seed)
    values = rng.choice(numbers, 400)
    ordered = np.sort(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "FEW", 50)  # so that few numbers are put into cells, too
        patch.setattr(module, "PLACING", 40)
        found = OrderStatistics(values, ordered[0], ordered[-1])
        ranks = rng.integers(0, 400, 30)
        np.testing.assert_array_equal(found.at(ranks), ordered[ranks])
        asked = rng.choice(ordered, 10)
        np.testing.assert_array_equal(found.below(asked), np.searchsorted(ordered, asked))


@pytest.mark.parametrize("name", ["normal", "whole numbers", "atom", "lognormal", "subnormal"])
def test_quantiles_are_those_of_numpy(name):
    values = columns()[name].astype(np.float64)
    values[:50], values[50:80], values[80:99] = np.nan, np.inf, -np.inf
    levels = np.linspace(0, 1, 101)
    summary = ArraySummary(values)
    wanted = np.quantile(values[np.isfinite(values)], levels)
    np.testing.assert_array_equal(summary.quantiles(levels), wanted)
    assert summary.n_missing == 50
    for value in (-np.inf, np.inf, float(wanted[50])):
        assert summary.count(value) == (values == value).sum()
        assert summary.below(value) == (values < value).sum()
        assert summary.above(value) == (values > value).sum()
