"""The reliability diagram against rows, scipy and simulation."""

import json

import numpy as np
import pytest
from scipy.stats import binom

import varcal as vc
from varcal._measures.curve_result import Histogram
from varcal._measures.reliability import Reliability
from varcal.exceptions import InputError


def test_bins_are_those_of_the_table_and_of_ece(rng):
    p = rng.random(3000)
    y = rng.random(3000) < p**1.5
    found = vc.reliability(y, p, event="positive", n_bins=7)
    table = vc.bin_table(y, p, event="positive", n_bins=7).columns
    np.testing.assert_allclose(found.predicted, table["predicted"])
    np.testing.assert_allclose(found.observed, table["observed"])
    assert found.counts.tolist() == table["n"]
    assert found.ece.value == pytest.approx(vc.ece(y, p, event="positive", n_bins=7))
    reach = np.array(table["gap_high"]) - np.array(table["gap"])
    np.testing.assert_allclose(found.observed_high, np.clip(found.observed + reach, 0, 1))
    again = Reliability.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    assert again.to_dict() == found.to_dict()
    assert found.to_frame().shape == (7, 7)
    assert "7 bins are outside" in repr(found)


def test_the_consistency_band_is_that_of_the_binomial():
    p = np.repeat([0.1, 0.5, 0.9], 200)
    y = np.tile([0, 1], 300)
    found = vc.reliability(y, p, event="positive", bins=[0, 0.3, 0.7, 1])
    for k, score in enumerate((0.1, 0.5, 0.9)):
        low, high = binom.ppf([0.025, 0.975], 200, score) / 200
        assert abs(found.consistent_low[k] - low) < 0.006
        assert abs(found.consistent_high[k] - high) < 0.006


def test_a_calibrated_model_is_mostly_inside(rng):
    inside = []
    for _ in range(40):
        p = rng.beta(0.7, 2, 800)
        found = vc.reliability(rng.random(800) < p, p, event="positive")
        inside += [
            (found.consistent_low <= found.observed) & (found.observed <= found.consistent_high)
        ]
    assert 0.94 < np.mean(inside) < 0.985


def test_certain_scores_have_no_range():
    found = vc.reliability([0, 0, 1, 1], [0.0, 0.0, 1.0, 1.0], event="positive", n_bins=2)
    assert found.consistent_low.tolist() == found.consistent_high.tolist() == [0.0, 1.0]
    found.plot().figure.canvas.draw()


def test_groups_widen(rng):
    unit = np.repeat(np.arange(100), 20)
    p = np.repeat(rng.uniform(0.2, 0.8, 100), 20)
    y = np.repeat(rng.random(100) < 0.5, 20)
    alone = vc.reliability(y, p, event="positive", n_bins=3)
    grouped = vc.reliability(y, p, event="positive", n_bins=3, groups=unit)
    assert (
        grouped.consistent_high - grouped.consistent_low
        > 2 * (alone.consistent_high - alone.consistent_low)
    ).all()


def test_classwise_is_refused():
    with pytest.raises(InputError, match="a diagram shows one claim"):
        vc.reliability([0, 1], [0.2, 0.8], event="classwise")


def test_histograms_count_the_rows(rng):
    whole = rng.poisson(30, 5000)
    parts = {
        "whole": whole,
        "real": rng.normal(size=5000),
        "heap": np.where(rng.random(5000) < 0.8, 0.0, rng.exponential(1, 5000)),
    }
    y, p = rng.integers(0, 2, 5000), rng.random(5000)
    for name, v in parts.items():
        found = vc.curve(y, p, {name: v}).histogram
        counted = np.histogram(v, found.edges)[0] / 5000
        np.testing.assert_allclose(found.share, counted, atol=0.003)
        assert found.trimmed and 0.95 < found.share.sum() < 1
        assert Histogram.from_dict(found.to_dict()).to_dict() == found.to_dict()
    edges = vc.curve(y, p, whole).histogram.edges
    assert (edges % 1 == 0.5).all() and len(set(np.diff(edges))) == 1
    alone = vc.curve(y, p, np.ones(5000)).histogram
    assert alone.share.tolist() == [1.0] and not alone.trimmed
    levels = vc.curve(y, p, np.array(["a", "b", None], object)[whole % 3]).histogram
    assert levels.edges.tolist() == [-0.5, 0.5, 1.5] and levels.share.sum() == pytest.approx(1)


def test_a_curves_vece_is_that_of_the_estimate(rng):
    v = rng.random(4000)
    p = np.full(4000, 0.5)
    y = rng.random(4000) < 0.3 + 0.4 * v
    found = vc.curve(y, p, v, event="positive")
    one = vc.estimate(y, p, v, event="positive")
    assert (found.vece, found.vece_low, found.vece_high) == (one.debiased, one.low, one.high)
    again = vc.audit(y, p, {"v": v})["v"]
    assert (again.vece, again.vece_low, again.vece_high) == (one.debiased, one.low, one.high)
