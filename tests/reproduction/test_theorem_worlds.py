"""Simulated classifiers of the theorems: their closed forms agree with independent estimates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import varcal as vc
from reproduction.theorem_worlds import make_consistent, make_ece_bound, make_vece_bound

N = 100_000
THEOREMS = [make_vece_bound, make_ece_bound, make_consistent]


def binned_error(score, hit, over, n_bins):
    """Mean absolute gap over bins of equal support, by sorting alone."""
    order = np.argsort(over, kind="stable")
    return sum(
        abs((score[part] - hit[part]).sum()) for part in np.array_split(order, n_bins)
    ) / len(hit)


def score_and_hit(sim):
    return sim.p.max(axis=1), (sim.p.argmax(axis=1) == sim.y).astype(int)


def tolerance(n_bins, n=N):
    """Bound the noise of a binned error: its bias without gaps plus five standard deviations."""
    return 0.5 * np.sqrt(2 * n_bins / (np.pi * n)) + 5 * 0.5 / np.sqrt(n)


def rows(k):
    """Return fewer rows for many classes: probabilities are n × k numbers."""
    return N if k < 10 else N // 4


class TestTheorems:
    @pytest.mark.parametrize("k", [2, 3, 10, 100])
    @pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
    def test_vece_bound(self, k, share):
        alpha = share * (k - 1) / (2 * k)
        sim = make_vece_bound(rows(k), k, alpha=alpha, random_state=k)
        assert sim.ece == pytest.approx(alpha / 4)
        assert sim.vece == pytest.approx(0.5 - 1 / (2 * k) - alpha / 2)
        score, hit = score_and_hit(sim)
        assert binned_error(score, hit, sim.v, 10) == pytest.approx(
            sim.vece, abs=tolerance(10, rows(k))
        )
        # Inside two of ten bins the gap changes its sign: mean |−2, −1, 0, 1, 2|/5 of α/5.
        assert binned_error(score, hit, score, 10) == pytest.approx(
            0.24 * alpha, abs=tolerance(10, rows(k))
        )
        # 40 bins put a bin edge on both crossings, where the binned form is the integral.
        assert binned_error(score, hit, score, 40) == pytest.approx(
            sim.ece, abs=tolerance(40, rows(k))
        )

    @pytest.mark.parametrize("k", [2, 3, 10, 100])
    @pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
    def test_ece_bound(self, k, share):
        alpha = share * (k - 1) / (2 * k)
        sim = make_ece_bound(rows(k), k, alpha=alpha, random_state=k)
        assert sim.vece == 0
        assert sim.ece == pytest.approx(0.5 - 1 / (2 * k) - alpha / 2)
        score, hit = score_and_hit(sim)
        assert binned_error(score, hit, score, 10) == pytest.approx(
            sim.ece, abs=tolerance(10, rows(k))
        )
        assert binned_error(score, hit, sim.v, 10) < tolerance(10, rows(k))

    @pytest.mark.parametrize("k", [2, 3, 10, 100])
    @pytest.mark.parametrize("direction", ["over", "under"])
    @pytest.mark.parametrize("share", [0.3, 1.0])
    def test_consistent(self, k, direction, share):
        alpha = share * (k - 1) / (3 * k)
        sim = make_consistent(rows(k), k, alpha=alpha, direction=direction, random_state=k)
        score, hit = score_and_hit(sim)
        assert sim.ece == sim.vece == alpha
        assert abs(score.mean() - hit.mean()) == pytest.approx(
            alpha, abs=5 * 0.5 / np.sqrt(rows(k))
        )
        assert binned_error(score, hit, score, 10) == pytest.approx(
            alpha, abs=tolerance(10, rows(k))
        )
        assert binned_error(score, hit, sim.v, 10) == pytest.approx(
            alpha, abs=tolerance(10, rows(k))
        )
        sign = 1 if direction == "over" else -1
        assert (sign * sim.gap(sim.v) > 0).all()

    @pytest.mark.parametrize("k", [2, 3, 10, 100])
    @pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
    @pytest.mark.parametrize("make", THEOREMS)
    def test_our_metrics_meet_the_closed_forms(self, make, k, share):
        largest = (k - 1) / (3 * k if make is make_consistent else 2 * k)
        n = rows(k)
        sim = make(n, k, alpha=share * largest, random_state=k + 1)
        classes = range(k)
        assert vc.ece(sim.y, sim.p, n_bins=40, classes=classes) == pytest.approx(
            sim.ece, abs=tolerance(40, n)
        )
        assert vc.ece(sim.y, sim.p, classes=classes) == pytest.approx(
            sim.ece_in_bins(10), abs=tolerance(10, n)
        )
        assert vc.vece(sim.y, sim.p, sim.v, classes=classes) == pytest.approx(
            sim.vece, abs=tolerance(10, n)
        )

    def test_noise_shrinks_with_n(self):
        """The theorem has an ECE of nearly 0 and a VECE of nearly 0.5, with a million rows."""
        sim = make_vece_bound(1_000_000, 10, alpha=0.001)
        score, hit = score_and_hit(sim)
        assert binned_error(score, hit, score, 10) < 0.004
        assert binned_error(score, hit, sim.v, 10) == pytest.approx(0.4495, abs=0.003)

    @pytest.mark.parametrize("make", THEOREMS)
    @settings(max_examples=25)
    @given(k=st.integers(2, 40), share=st.floats(0.01, 1), seed=st.integers(0, 2**31))
    def test_rows_are_probabilities(self, make, k, share, seed):
        largest = (k - 1) / (3 * k if make is make_consistent else 2 * k)
        sim = make(300, k, alpha=share * largest, random_state=seed)
        assert sim.p.shape == (300, k)
        assert (sim.p >= 0).all()
        np.testing.assert_allclose(sim.p.sum(axis=1), 1, rtol=0, atol=1e-12)
        top = np.sort(sim.p, axis=1)
        assert (top[:, -1] > top[:, -2]).all()
        assert ((sim.rate >= 0) & (sim.rate <= 1)).all()
        assert set(np.unique(sim.y)) <= set(range(k))

    @pytest.mark.parametrize("make", THEOREMS)
    def test_wrong_labels_are_spread_over_the_others(self, make):
        sim = make(30_000, 4, alpha=0.2)
        predicted = sim.p.argmax(axis=1)
        shift = (sim.y - predicted)[sim.y != predicted] % 4
        assert stats.chisquare(np.bincount(shift)[1:]).pvalue > 1e-4
        assert stats.chisquare(np.bincount(predicted)).pvalue > 1e-4

    @pytest.mark.parametrize("make", THEOREMS)
    def test_rate_is_the_rate_of_hits(self, make):
        sim = make(N, 3, alpha=0.15)
        hit = score_and_hit(sim)[1]
        z = (hit - sim.rate).sum() / np.sqrt((sim.rate * (1 - sim.rate)).sum())
        assert abs(z) < 4


class TestBinnedTruth:
    """Values computed by hand."""

    def test_vece_bound_score_bins(self):
        sim = make_vece_bound(10, alpha=0.2)
        for n_bins in (4, 8, 12, 40):
            assert sim.ece_in_bins(n_bins) == pytest.approx(0.05)
        for n_bins in (2, 6, 10, 14):
            half = n_bins // 2
            assert sim.ece_in_bins(n_bins) == pytest.approx(0.05 * (1 - 1 / half**2))
        assert sim.ece_in_bins(1) == pytest.approx(0)

    @pytest.mark.parametrize("n_bins", [2, 5, 10])
    def test_middle_bin_cancels(self, n_bins):
        lost = n_bins % 2 / n_bins
        vece, ece = make_vece_bound(10, 5, alpha=0.2), make_ece_bound(10, 5, alpha=0.2)
        assert vece.vece_in_bins(n_bins) == pytest.approx(vece.vece * (1 - lost))
        # What cancels are the scores nearest the middle, whose gap is the smallest.
        smallest = 0.4 - 0.2 * (1 - 0.5 / n_bins)
        assert ece.ece_in_bins(n_bins) == pytest.approx(ece.ece - lost * smallest)
        assert ece.vece_in_bins(n_bins) == 0

    def test_consistent_needs_no_bins(self):
        sim = make_consistent(10, alpha=0.1)
        assert sim.ece_in_bins(7) == pytest.approx(0.1)
        assert sim.vece_in_bins(7) == pytest.approx(0.1)
