"""Simulated classifiers of the theorems: their closed forms agree with independent estimates.

`run_theory` compares the closed forms with our metrics for many classes and sizes.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cases.binned_error import binned_error
from reproduction.theorem_worlds import make_consistent, make_ece_bound, make_vece_bound

N = 100_000
THEOREMS = [make_vece_bound, make_ece_bound, make_consistent]


def tolerance(n_bins):
    """Bound the noise of a binned error: its bias without gaps plus five standard deviations."""
    return 0.5 * np.sqrt(2 * n_bins / (np.pi * N)) + 5 * 0.5 / np.sqrt(N)


@pytest.mark.parametrize("k", [2, 10])
@pytest.mark.parametrize("make", THEOREMS)
def test_closed_forms(make, k):
    alpha = 0.3 * (k - 1) / (2 * k)
    sim = make(N, k, alpha=alpha, random_state=k)
    large = 0.5 - 1 / (2 * k) - alpha / 2
    ece, vece = {
        make_vece_bound: (alpha / 4, large),
        make_ece_bound: (large, 0.0),
        make_consistent: (alpha, alpha),
    }[make]
    assert (sim.ece, sim.vece) == pytest.approx((ece, vece))
    score, hit = sim.p.max(axis=1), sim.p.argmax(axis=1) == sim.y
    # 40 bins put an edge where the gap changes its sign; there the binned form is the integral.
    assert binned_error(score, hit, score, 40) == pytest.approx(sim.ece, abs=tolerance(40))
    assert binned_error(score, hit, sim.v, 10) == pytest.approx(sim.vece, abs=tolerance(10))
    z = (hit - sim.rate).sum() / np.sqrt((sim.rate * (1 - sim.rate)).sum())
    assert abs(z) < 4


@pytest.mark.parametrize("make", THEOREMS)
@settings(max_examples=15)
@given(k=st.integers(2, 40), share=st.floats(0.01, 1), seed=st.integers(0, 2**31))
def test_rows_are_probabilities(make, k, share, seed):
    largest = (k - 1) / (3 * k if make is make_consistent else 2 * k)
    sim = make(300, k, alpha=share * largest, random_state=seed)
    assert sim.p.shape == (300, k) and (sim.p >= 0).all()
    np.testing.assert_allclose(sim.p.sum(axis=1), 1, rtol=0, atol=1e-12)
    top = np.sort(sim.p, axis=1)
    assert (top[:, -1] > top[:, -2]).all()
    assert ((sim.rate >= 0) & (sim.rate <= 1)).all() and set(np.unique(sim.y)) <= set(range(k))


@pytest.mark.parametrize("make", THEOREMS)
def test_wrong_labels_are_spread_over_the_others(make):
    sim = make(30_000, 4, alpha=0.2)
    predicted = sim.p.argmax(axis=1)
    shift = (sim.y - predicted)[sim.y != predicted] % 4
    assert stats.chisquare(np.bincount(shift)[1:]).pvalue > 1e-4
    assert stats.chisquare(np.bincount(predicted)).pvalue > 1e-4


def test_binned_truth_by_hand():
    sim = make_vece_bound(10, alpha=0.2)
    for n_bins in (4, 8, 12, 40):
        assert sim.ece_in_bins(n_bins) == pytest.approx(0.05)
    for n_bins in (2, 6, 10, 14):
        half = n_bins // 2
        assert sim.ece_in_bins(n_bins) == pytest.approx(0.05 * (1 - 1 / half**2))
    vece, ece = make_vece_bound(10, 5, alpha=0.2), make_ece_bound(10, 5, alpha=0.2)
    for n_bins in (2, 5, 10):
        lost = n_bins % 2 / n_bins  # the middle bin cancels
        assert vece.vece_in_bins(n_bins) == pytest.approx(vece.vece * (1 - lost))
        # What cancels are the scores nearest the middle, whose gap is the smallest.
        smallest = 0.4 - 0.2 * (1 - 0.5 / n_bins)
        assert ece.ece_in_bins(n_bins) == pytest.approx(ece.ece - lost * smallest)
    one = make_consistent(10, alpha=0.1)
    assert (one.ece_in_bins(7), one.vece_in_bins(7)) == pytest.approx((0.1, 0.1))
