"""An interval excludes 0 exactly where the p-value of the same result is below 1 − level."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import varcal as vc
from varcal._inference.measured import Measured, with_p


@given(
    value=st.floats(1e-6, 1),
    part=st.floats(0, 1),
    low=st.floats(0, 1),
    high=st.floats(1, 3),
    p=st.floats(1e-300, 1),
    level=st.floats(0.01, 0.999),
)
def test_any_interval_agrees_with_any_p_value(value, part, low, high, p, level):
    middle = part * value
    found = with_p(Measured(value, middle, low * middle, high * middle, math.nan, 0, 0), p, level)
    assert (found.low > 0) == (p < 1 - level)
    assert found.low <= found.debiased <= found.high
    assert found.debiased == pytest.approx(middle, abs=1e-3 * value) and found.p_value == p


def test_a_lower_limit_above_zero_stays_and_an_untested_interval_too():
    found = Measured(0.1, 0.09, 0.05, 0.12, math.nan, 0.01, 0.02)
    assert with_p(found, 0.001, 0.95).low == 0.05
    assert with_p(found, math.nan, 0.95).low == 0.05


@st.composite
def worlds(draw):
    """Rows with a gap of random size and shape, scores from dense to rare, and all options."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.sampled_from([30, 120, 500, 2_000]))
    s = {
        "dense": lambda: rng.uniform(0.2, 0.8, n),
        "rare": lambda: rng.beta(0.8, 39.2, n),
        "sure": lambda: 1 - rng.beta(0.5, 60, n),
    }[draw(st.sampled_from(["dense", "rare", "sure"]))]()
    v = rng.random(n)
    if draw(st.booleans()):
        v = np.floor(5 * v)
    size = draw(st.floats(0, 0.15))
    y = rng.random(n) < np.clip(s + size * np.cos(3 * v), 0, 1)
    options = {
        "event": draw(st.sampled_from(["positive", "correct", "classwise"])),
        "level": draw(st.sampled_from([0.8, 0.95, 0.99])),
        "n_bins": draw(st.sampled_from([2, 10])),
    }
    if draw(st.booleans()):
        options["sample_weight"] = rng.lognormal(0, 1, n)
    if draw(st.booleans()):
        options["groups"] = rng.integers(0, draw(st.sampled_from([8, 25])), n)
    return y.astype(int), s, v, options


@settings(max_examples=60, deadline=None)
@given(worlds())
def test_estimates_of_random_worlds(world):
    y, s, v, options = world
    for found in (vc.estimate(y, s, v, **options), vc.estimate(y, s, **options)):
        assert (found.low > 0) == (found.p_value < 1 - found.level)
        assert found.low <= found.debiased <= found.high <= 1


@settings(max_examples=20, deadline=None)
@given(worlds())
def test_the_summaries_of_curves_and_reliability_diagrams_agree_with_their_tests(world):
    y, s, v, options = world
    shared = {k: x for k, x in options.items() if k in ("level", "sample_weight", "groups")}
    curve = vc.curve(y, s, v, event="positive", **shared)
    edges = vc.estimate(y, s, v, event="positive", binning="atoms", **shared)
    assert (curve.vece_low > 0) == (edges.p_value < 1 - edges.level)
    diagram = vc.reliability(y, s, event="positive", **shared)
    assert (diagram.curve.vece_low > 0) == (diagram.ece.p_value < 1 - diagram.level)
    assert diagram.curve.vece_low == diagram.ece.low


def test_a_curve_with_too_few_groups_for_a_test_has_an_interval():
    rng = np.random.default_rng(0)
    s, v, unit = rng.random(300), rng.random(300), np.arange(300) % 4
    curve = vc.curve(rng.random(300) < s, s, v, groups=unit)
    assert 0 <= curve.vece_low <= curve.vece_high
