"""Local polynomials of a given span, through the lines of curves, against LOESS programs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import varcal as vc


def sample(kind, n):
    rng = np.random.default_rng(0)
    v = {
        "skewed": rng.gamma(2, size=n),
        "heavy tails": rng.standard_cauchy(n),
        "ties": np.round(rng.gamma(2, size=n) * 5),
    }[kind]
    v.sort()
    return v, np.clip(0.5 + 0.3 * np.sin(v) + 0.05 * rng.normal(size=n), 0.01, 0.99)


def smoothed(v, p, **options):
    """Return the smooth mean score, which follows a number and not only hits."""
    hits = np.arange(len(v)) % 2
    return vc.curve(hits, p, v, event="positive", classes=(0, 1), bands=False, **options)


@pytest.mark.parametrize(
    ("kind", "n", "span", "degree"),
    [
        ("skewed", 60, 0.5, 2),
        ("skewed", 60, 0.9, 2),
        ("skewed", 100, 0.5, 0),
        ("heavy tails", 200, 0.3, 1),
        ("heavy tails", 200, 0.9, 2),
        ("ties", 150, 0.4, 2),
        ("ties", 250, 0.9, 1),
    ],
)
def test_equals_the_direct_fit_of_scikit_misc(kind, n, span, degree):
    loess = pytest.importorskip("skmisc.loess").loess
    v, p = sample(kind, n)
    peer = loess(v, p, span=span, degree=degree, surface="direct", statistics="exact")
    peer.fit()
    found = smoothed(v, p, span=span, degree=degree)
    inside = (found.x >= np.quantile(v, 0.05)) & (found.x <= np.quantile(v, 0.95))
    expected = peer.predict(found.x[inside]).values
    np.testing.assert_allclose(found.predicted[inside], expected, atol=1e-8)


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 4])
def test_equals_weighted_least_squares(degree):
    v, p = sample("skewed", 40)
    w = np.random.default_rng(3).uniform(0.1, 3, 40)
    found = smoothed(v, p, span=0.6, degree=degree, sample_weight=w)
    for k in (5, 20, 33):
        reach = np.sort(np.abs(v - v[k]))[23]
        u = np.abs(v - v[k]) / reach
        kernel = w * np.where(u < 1, 1 - u**3, 0) ** 3
        fit = np.polynomial.polynomial.polyfit(v - v[k], p, degree, w=np.sqrt(kernel))
        assert found.predicted[k] == pytest.approx(fit[0], abs=1e-8)


def test_a_tie_wider_than_the_span_gives_its_mean():
    v = np.r_[np.zeros(90), np.linspace(1, 2, 10)]
    p = np.r_[np.tile([0.2, 0.4], 45), np.full(10, 0.9)]
    assert smoothed(v, p, span=0.5).predicted[0] == pytest.approx(0.3)


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(st.integers(-3, 3).map(float), st.floats(-1e12, 1e12), st.just(5e-324)),
        min_size=2,
        max_size=30,
    ),
    st.sampled_from([0.05, 0.3, 0.9, 1.0, 2.0]),
    st.integers(0, 4),
)
def test_a_constant_is_kept_whatever_the_values(values, span, degree):
    found = smoothed(np.array(values), np.full(len(values), 0.3), span=span, degree=degree)
    np.testing.assert_allclose(found.predicted, 0.3, atol=1e-6)
