from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from varcal._inference.smoothers import nearest_bandwidth, smoother_weights


def sample(kind: str, n: int, seed: int = 0):
    rng = np.random.default_rng(seed)
    x = {
        "skewed": rng.gamma(2, size=n),
        "heavy tails": rng.standard_cauchy(n),
        "ties": np.round(rng.gamma(2, size=n) * 5),
    }[kind]
    x.sort()
    return x, np.sin(x) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize(
    ("kind", "n", "span", "degree"),
    [
        ("skewed", 60, 0.5, 2),
        ("skewed", 60, 0.9, 2),
        ("skewed", 100, 0.5, 0),
        ("heavy tails", 200, 0.3, 1),
        ("heavy tails", 200, 0.9, 2),
        ("ties", 150, 0.4, 2),
        ("ties", 300, 0.9, 1),
    ],
)
def test_equals_scikit_misc_direct_fit_with_exact_statistics(kind, n, span, degree):
    loess = pytest.importorskip("skmisc.loess").loess
    x, y = sample(kind, n)
    at = np.quantile(x, np.linspace(0.05, 0.95, 17))
    peer = loess(x, y, span=span, degree=degree, surface="direct", statistics="exact")
    peer.fit()
    expected = peer.predict(at, stderror=True)
    weights = smoother_weights(x, at, span=span, degree=degree)
    np.testing.assert_allclose(weights @ y, expected.values, atol=1e-8)
    error = expected.residual_scale * np.sqrt((weights**2).sum(1))
    np.testing.assert_allclose(error, expected.stderr, atol=1e-8)


def test_prior_weights_as_scikit_misc():
    loess = pytest.importorskip("skmisc.loess").loess
    x, y = sample("skewed", 80)
    w = np.random.default_rng(1).uniform(0.5, 2, 80)
    at = np.quantile(x, np.linspace(0.05, 0.95, 17))
    peer = loess(x, y, weights=w, span=0.5, degree=2, surface="direct", statistics="exact")
    peer.fit()
    expected = peer.predict(at, stderror=True)
    weights = smoother_weights(x, at, span=0.5, weight=w)
    np.testing.assert_allclose(weights @ y, expected.values, atol=1e-8)
    # scikit-misc divides the smoother's weights by the prior ones, not their squares.
    error = expected.residual_scale * np.sqrt(((weights / w) ** 2).sum(1))
    np.testing.assert_allclose(error, expected.stderr, atol=1e-8)


def test_ties_as_cells_equal_rows():
    x, y = sample("ties", 250)
    value, cell, counts = np.unique(x, return_inverse=True, return_counts=True)
    mean = np.bincount(cell, y) / counts
    at = np.linspace(1, 20, 12)
    rows = smoother_weights(x, at, span=0.6)
    cells = smoother_weights(value, at, span=0.6, counts=counts)
    np.testing.assert_allclose(cells @ mean, rows @ y, atol=1e-12)
    np.testing.assert_allclose((cells**2 / counts).sum(1), (rows**2).sum(1), rtol=1e-10)


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4])
def test_equals_weighted_least_squares(degree):
    x, y = sample("skewed", 40)
    w = np.random.default_rng(3).uniform(0.1, 3, 40)
    at = np.array([0.4, 1.7, 3.0])
    weights = smoother_weights(x, at, bandwidth=2.5, degree=degree, weight=w)
    for i, x0 in enumerate(at):
        u = np.abs(x - x0) / 2.5
        kernel = w * np.where(u < 1, 1 - u**3, 0) ** 3
        fit = np.polynomial.polynomial.polyfit(x - x0, y, degree, w=np.sqrt(kernel))
        assert weights[i] @ y == pytest.approx(fit[0], abs=1e-9)


@settings(max_examples=100)
@given(
    st.lists(st.integers(-6, 6), min_size=1, max_size=40),
    st.lists(st.floats(-8, 8), min_size=1, max_size=5),
    st.floats(0.01, 2.5),
)
def test_bandwidth_is_the_distance_to_the_nearest_share_of_rows(values, at, span):
    x = np.sort(np.array(values, float))
    near = min(len(x), max(1, int(np.floor(len(x) * span + 1e-5))))
    expected = [np.sort(np.abs(x - a))[near - 1] * np.sqrt(max(1, span)) for a in at]
    np.testing.assert_allclose(nearest_bandwidth(x, at, span), expected, atol=1e-12)
    value, counts = np.unique(x, return_counts=True)
    np.testing.assert_allclose(
        nearest_bandwidth(value, at, span, counts=counts), expected, atol=1e-12
    )


@settings(max_examples=150)
@given(
    st.lists(
        st.one_of(st.integers(-3, 3).map(float), st.floats(-1e12, 1e12)), min_size=1, max_size=30
    ),
    st.lists(st.one_of(st.integers(-4, 4).map(float), st.floats(-1e12, 1e12)), min_size=1),
    st.sampled_from([0.05, 0.3, 0.9, 1.0, 2.0]),
    st.integers(0, 4),
)
def test_any_data_give_finite_weights_that_sum_to_one(values, at, span, degree):
    weights = smoother_weights(np.sort(values), at, span=span, degree=degree)
    assert np.isfinite(weights).all()
    scale = np.maximum(np.abs(weights).sum(1), 1)
    np.testing.assert_allclose(weights.sum(1) / scale, 1 / scale, atol=1e-7)


def test_very_close_points_do_not_overflow():
    weights = smoother_weights([0.0, 5e-324, 1e12], [5e-324, 1.0], span=0.4)
    assert np.isfinite(weights).all()
    assert smoother_weights([0.0], [5e-324], span=0.05) == pytest.approx(1.0)


def test_a_tie_wider_than_the_span_gives_its_mean():
    x = np.r_[np.zeros(90), np.linspace(1, 2, 10)]
    y = np.r_[np.tile([0.0, 1.0], 45), np.full(10, 9.0)]
    assert smoother_weights(x, [0.0], span=0.5) @ y == pytest.approx(0.5)
    between = smoother_weights(np.array([0.0, 2.0]), [1.0], span=0.9, counts=np.array([5, 5]))
    np.testing.assert_allclose(between, [[0.5, 0.5]])


def test_too_few_distinct_values_lower_the_degree():
    x = np.repeat([0.0, 1.0], 5)
    quadratic = smoother_weights(x, [0.25], span=2.0, degree=2)
    np.testing.assert_allclose(quadratic, smoother_weights(x, [0.25], span=2.0, degree=1))
    np.testing.assert_allclose(quadratic @ x, [0.25])
