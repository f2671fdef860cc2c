"""Simulators: their closed forms agree with independent estimates on simulated rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from varcal.datasets import make_gap
from varcal.exceptions import InputError

N = 100_000
SHAPES = ["tilt", "hump", "step", "tail", "sine", "none"]


class TestBinnedTruth:
    """Values integrated by scipy."""

    @pytest.mark.parametrize("shape", SHAPES)
    def test_gap_shapes(self, shape):
        sim = make_gap(10, shape)
        edges = np.linspace(0, 1, 11)
        by_hand = sum(
            abs(integrate.quad(sim.gap, a, b, points=[0.45] if a < 0.45 < b else None)[0])
            for a, b in pairwise(edges)
        )
        assert sim.vece_in_bins(10) == pytest.approx(by_hand, abs=1e-6)
        assert sim.vece_in_bins(10) <= sim.vece + 1e-12

    def test_refuses_ties(self):
        with pytest.raises(InputError, match="has ties"):
            make_gap(10, variable="tied").vece_in_bins()
        with pytest.raises(InputError, match="n_bins must be an integer of at least 1"):
            make_gap(10).vece_in_bins(0)


class TestGap:
    @pytest.mark.parametrize(
        ("scores", "variable"),
        [("beta", "continuous"), ("uniform", "tied"), ("rare", "categorical")],
    )
    @pytest.mark.parametrize("shape", SHAPES)
    def test_truth(self, shape, scores, variable):
        vece = 0.002 if scores == "rare" else 0.04
        sim = make_gap(N, shape, vece=vece, scores=scores, variable=variable, random_state=3)
        assert sim.vece == (0 if shape == "none" else vece)
        assert ((sim.rate >= 0) & (sim.rate <= 1)).all()
        # The rows' own truth is the population's, but for the sampling of v and s.
        gap = sim.gap(sim.v)
        assert np.abs(gap).mean() == pytest.approx(sim.vece, abs=5 * gap.std() / np.sqrt(N) + 1e-15)
        noise = (sim.p - sim.rate) - gap
        assert abs(noise.mean()) <= 5 * noise.std() / np.sqrt(N) + 1e-15
        by_score = np.abs(sim.score_gap(sim.p))
        assert by_score.mean() == pytest.approx(
            sim.ece, abs=5 * by_score.std() / np.sqrt(N) + 1e-12
        )
        z = (sim.y - sim.rate).sum() / np.sqrt((sim.rate * (1 - sim.rate)).sum())
        assert abs(z) < 4

    @pytest.mark.parametrize("scores", ["beta", "uniform", "rare", "confident"])
    @pytest.mark.parametrize("shape", ["tilt", "hump"])
    def test_ece_by_integration(self, scores, shape):
        sim = make_gap(10, shape, vece=0.005, scores=scores)
        # Ranks of the scores: the integral of |gap| over their distribution.
        integral = integrate.quad(
            lambda u: abs(float(sim.score_gap(sim.score_quantile(u)))), 0, 1, limit=500
        )[0]
        assert sim.ece == pytest.approx(integral, rel=1e-5)

    @pytest.mark.parametrize(
        ("scores", "law"),
        [
            ("beta", stats.beta(2, 5)),
            ("uniform", stats.uniform(0.2, 0.6)),
            ("rare", stats.beta(2, 98)),
            ("confident", stats.beta(5, 0.5)),
        ],
    )
    def test_score_laws(self, scores, law):
        sim = make_gap(5000, "none", scores=scores)
        assert stats.kstest(sim.p, law.cdf).pvalue > 1e-3
        np.testing.assert_allclose(sim.score_quantile([0.1, 0.6]), law.ppf([0.1, 0.6]))

    def test_variables(self):
        tied = make_gap(N, variable="tied").v
        assert tied.dtype.kind == "i" and set(np.unique(tied)) == set(range(21))
        assert (tied == 16).mean() == pytest.approx(0.3 + 0.7 / 21, abs=0.01)
        levels, rows = np.unique(make_gap(N, variable="categorical").v, return_counts=True)
        assert "".join(levels) == "abcdefgh"
        assert rows.min() / N == pytest.approx(0.02, abs=0.005)

    @pytest.mark.parametrize(
        ("shape", "scores", "largest"),
        [
            ("tilt", "rare", "0.01"),
            ("tail", "beta", "0.042857"),
            ("step", "confident", "0.081818"),
        ],
    )
    def test_no_room(self, shape, scores, largest):
        with pytest.raises(InputError, match=f"at most {largest}"):
            make_gap(10, shape, scores=scores, vece=0.15)
        rate = make_gap(1000, shape, scores=scores, vece=float(largest)).rate
        assert ((rate >= 0) & (rate <= 1)).all()

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"shape": "tild"}, "did you mean 'tilt'"),
            ({"scores": "betta"}, "did you mean 'beta'"),
            ({"variable": "cat"}, "variable must be one of"),
            ({"vece": -0.1}, "vece must be from 0 to below 1; got -0.1"),
            ({"vece": float("nan")}, "vece must be"),
            ({"n": 0}, "n must be a positive integer; got 0"),
        ],
    )
    def test_bad_arguments(self, options, message):
        with pytest.raises(InputError, match=message):
            make_gap(**{"n": 10, **options})

    def test_unknown_level(self):
        with pytest.raises(InputError, match="no level 'z'"):
            make_gap(10, variable="categorical").gap(["a", "z"])


class TestSimulation:
    def test_deterministic(self):
        a, b, c = (
            make_gap(500, random_state=5),
            make_gap(500, random_state=5),
            make_gap(500, random_state=6),
        )
        for name in ("y", "p", "v", "rate"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
        assert not np.array_equal(a.v, c.v)
        given = make_gap(500, random_state=np.random.default_rng(5))
        np.testing.assert_array_equal(a.p, given.p)
