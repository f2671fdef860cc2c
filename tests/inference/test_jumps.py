"""Curves that jump: small versions of the benchmark's worlds."""

import numpy as np
import pytest

import varcal as vc
from varcal._inference.bands import curve_bands
from varcal._sums.curve_cells import Cells


def step_world(rng, n, *, whole=True):
    """Return ages, scores and hits with a gap of 15 points from the age of 65 on."""
    v = rng.uniform(18, 91, n)
    v = np.floor(v) if whole else v
    s = 0.2 + 0.6 * rng.beta(2, 3, n)
    return v, s, rng.random(n) < s - 0.15 * (v >= 65)


@pytest.mark.parametrize(("n", "whole"), [(5_000, True), (15_000, True), (15_000, False)])
def test_the_band_covers_a_jump(n, whole):
    """Without jumps 69, 40 and 20 % of the bands covered the truth."""
    rng = np.random.default_rng(n)
    covered = 0
    for _ in range(40):
        v, s, hit = step_world(rng, n, whole=whole)
        bands = curve_bands(Cells.from_rows(v, hit, s, most=1000))
        truth = 0.15 * (bands.x >= 65)
        covered += bool(np.all((bands.low <= truth) & (truth <= bands.high)))
    assert covered >= 33  # 93 % of 40 is 37; 33 is two and a half standard errors below


def test_the_curve_breaks_where_a_jump_is_certain():
    v, s, hit = step_world(np.random.default_rng(0), 100_000)
    found = vc.curve(hit, s, {"age": v}, event="positive")
    assert found.breaks == (65.0,) and "The gap jumps at 65." in repr(found)
    before, after = (float(found.gap[found.x == age][0]) for age in (64, 65))
    assert abs(before) < 0.02 and abs(after - 0.15) < 0.02
    assert vc.curve(hit, s, v, event="positive", bands=False).breaks == (65.0,)
    assert vc.results.Curve.from_dict(found.to_dict()).breaks == (65.0,)
    line = found.plot().get_lines()[1]
    assert np.isnan(line.get_ydata()).sum() == 1


def test_smooth_curves_have_no_breaks():
    rng = np.random.default_rng(1)
    for amount, width in ((0.0, 1.0), (0.15, 0.1), (0.15, 0.03)):
        u, s = rng.random(20_000), rng.uniform(0.2, 0.8, 20_000)
        gap = amount / (1 + np.exp(-(u - 0.6) / width))
        assert vc.curve(rng.random(20_000) < s - gap, s, u, event="positive").breaks == ()
