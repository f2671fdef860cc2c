"""Simulators: their closed forms agree with independent estimates on simulated rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate

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
        ("shape", "scores", "largest"),
        [("tilt", "rare", "0.01"), ("tail", "beta", "0.042857"), ("step", "confident", "0.081818")],
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
