"""Bands and the worst place at the ends of a variable: small versions of the benchmark's worlds."""

import numpy as np
import pytest
from scipy.special import expit

import varcal as vc
from varcal._inference.bands import curve_bands
from varcal._inference.smoothers import smoother_weights
from varcal._sums.curve_cells import Cells


def bands_of(rng, v, s, gap):
    v = np.sort(v)
    s = s(v) if callable(s) else s
    hit = rng.random(len(v)) < s - gap(v)
    return curve_bands(Cells.from_rows(v, hit, s, most=1000))


def test_the_band_holds_where_the_variable_has_a_tail():
    """Along an exponential variable the outermost place was missed in four of ten samples."""
    rng = np.random.default_rng(1)

    def gap(v):
        return expit(v - 2) - expit(0.6 * (v - 2))

    covered = 0
    for _ in range(60):
        bands = bands_of(rng, rng.exponential(size=50_000), lambda v: expit(v - 2), gap)
        truth = gap(bands.x)
        covered += bool(np.all((bands.low <= truth) & (truth <= bands.high)))
    assert covered >= 51  # 95 % of 60 is 57; 51 is three and a half standard errors below


@pytest.mark.parametrize("n", [3_000, 20_000])
def test_a_faulty_tail_is_found_and_covered(n):
    """The fault lies in the outer 5 % of the rows, which were not searched."""
    rng = np.random.default_rng(2)

    def gap(v):
        return 0.15 * expit((v - 0.965) / 0.006)

    covered = found = band = 0
    for _ in range(40):
        bands = bands_of(rng, rng.random(n), 0.98 + 0.02 * rng.random(n), gap)
        truth = gap(bands.x)
        covered += bands.worst_low <= truth.max() <= bands.worst_high
        found += bands.x[bands.worst] > 0.95
        band += bool(np.all((bands.low <= truth) & (truth <= bands.high)))
    assert covered >= 33 and found >= 36 and band >= 33


def test_the_upper_limit_of_the_largest_gap_is_pointwise():
    rng = np.random.default_rng(3)
    bands = bands_of(rng, rng.random(5_000), rng.uniform(0.3, 0.7, 5_000), lambda v: 0.1 * v)
    size, inside = np.abs(bands.gap), bands.searched
    assert bands.worst_high == pytest.approx(
        (size + bands.pointwise_critical * bands.gap_se)[inside].max()
    )
    assert bands.worst_low == pytest.approx(np.maximum(bands.low, -bands.high)[inside].max())


def test_a_curve_says_which_ends_were_not_searched():
    rng = np.random.default_rng(4)
    v, p = rng.random(2_000), rng.uniform(0.3, 0.7, 2_000)
    y = rng.random(2_000) < p
    found = vc.curve(y, p, {"v": v}, event="positive")
    assert 0.01 < found.unsearched < 0.03
    low, high = found.searched
    assert low > v.min() and high < v.max()
    assert found.search_note in repr(found) and "of the rows lie outside" in found.search_note
    again = type(found).from_dict(found.to_dict())
    assert again.search_note == found.search_note and again.searched == found.searched
    whole = vc.curve(y, p, {"v": v}, event="positive", trim=0)
    assert whole.unsearched == 0 and whole.search_note == ""


def test_a_polynomial_of_a_transformed_axis_is_reproduced():
    x = (np.arange(50) + 0.5) / 50
    axis = np.log(x)
    weights = smoother_weights(x, x, bandwidth=0.3, degree=2, transform=np.log)
    np.testing.assert_allclose(weights @ axis**2, axis**2, atol=1e-8)
