"""Bands of curves contain the truth, also at ends, jumps and with groups; the worst place too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

import varcal as vc


def curve(y, p, v, **more):
    return vc.curve(y, p, v, event="positive", classes=(0, 1), **more)


def covers(found, gap):
    truth = gap(found.x)
    return bool(np.all((found.band_low <= truth) & (truth <= found.band_high)))


SHAPES = {
    "none": (lambda v: 0 * v, (0.2, 0.8)),
    "sine": (lambda v: 0.15 * np.sin(6 * np.pi * v), (0.2, 0.8)),
    "bad tail": (lambda v: 0.2 * expit((v - 0.9) / 0.025), (0.6, 1.0)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_band_and_worst_set_contain_the_truth(name):
    gap, scores = SHAPES[name]
    rng = np.random.default_rng(3)
    held = stars = points = 0
    for _ in range(80):
        v, s = rng.random(3000), rng.uniform(*scores, 3000)
        found = curve(rng.random(3000) < s - gap(v), s, v)
        truth = gap(found.x)
        held += covers(found, gap)
        points += np.mean((found.gap_low <= truth) & (truth <= found.gap_high))
        low, high = found.searched
        inside = (low <= found.x) & (found.x <= high)
        stars += found.worst_set[np.argmax(np.where(inside, np.abs(truth), -1))]
    assert held >= 71 and stars >= 75 and points >= 72


@pytest.mark.parametrize(("n", "whole"), [(5_000, True), (15_000, False), (50_000, False)])
def test_the_band_covers_a_jump(n, whole):
    """Without jumps 69, 20 and 5 % of the bands covered the truth."""
    rng = np.random.default_rng(n)
    covered = 0
    for _ in range(40):
        v = rng.uniform(18, 91, n)
        v = np.floor(v) if whole else v
        s = 0.2 + 0.6 * rng.beta(2, 3, n)
        covered += covers(
            curve(rng.random(n) < s - 0.15 * (v >= 65), s, v), lambda x: 0.15 * (x >= 65)
        )
    assert covered >= 33  # 93 % of 40 is 37; 33 is two and a half standard errors below


def test_the_curve_breaks_where_a_jump_is_certain_and_not_where_it_is_smooth():
    rng = np.random.default_rng(0)
    v, s = np.floor(rng.uniform(18, 91, 100_000)), 0.2 + 0.6 * rng.beta(2, 3, 100_000)
    hit = rng.random(100_000) < s - 0.15 * (v >= 65)
    found = curve(hit, s, {"age": v})
    assert found.breaks == (65.0,) and "The gap jumps at 65." in repr(found)
    before, after = (float(found.gap[found.x == age][0]) for age in (64, 65))
    assert abs(before) < 0.02 and abs(after - 0.15) < 0.02
    assert curve(hit, s, v, bands=False).breaks == (65.0,)
    assert np.isnan(found.plot().get_lines()[1].get_ydata()).sum() == 1
    for amount, width in ((0.0, 1.0), (0.15, 0.1), (0.15, 0.03)):
        u, s = rng.random(20_000), rng.uniform(0.2, 0.8, 20_000)
        assert curve(rng.random(20_000) < s - amount * expit((u - 0.6) / width), s, u).breaks == ()


def test_a_possible_jump_does_not_widen_the_pointwise_band(age):
    """Along age the drawn band once had bulges where a jump was possible, 1.5 times as wide."""
    inside = (age.x > 25) & (age.x < 60)
    width = (age.observed_high - age.observed_low)[inside]
    assert np.abs(np.diff(width)).max() < 0.02


def test_the_band_holds_where_the_variable_has_a_tail():
    """Along an exponential variable the outermost place was missed in four of ten samples."""
    rng = np.random.default_rng(1)

    def gap(v):
        return expit(v - 2) - expit(0.6 * (v - 2))

    covered = 0
    for _ in range(40):
        v = rng.exponential(size=50_000)
        covered += covers(curve(rng.random(50_000) < expit(0.6 * (v - 2)), expit(v - 2), v), gap)
    assert covered >= 34


@pytest.mark.parametrize("n", [3_000, 20_000])
def test_a_faulty_tail_is_found_and_covered(n):
    """The fault lies in the outer 5 % of the rows, which were not searched."""
    rng = np.random.default_rng(2)

    def gap(v):
        return 0.15 * expit((v - 0.965) / 0.006)

    covered = found = band = 0
    for _ in range(40):
        v, s = rng.random(n), 0.98 + 0.02 * rng.random(n)
        one = curve(rng.random(n) < s - gap(v), s, v)
        covered += one.vce_low <= gap(one.x).max() <= one.vce_high
        found += one.worst > 0.95
        band += covers(one, gap)
    assert covered >= 33 and found >= 36 and band >= 33


def test_groups_widen_the_band_enough():
    rng = np.random.default_rng(4)
    held = {True: 0, False: 0}
    for _ in range(40):
        v, s, group = rng.random(4000), rng.uniform(0.3, 0.7, 4000), rng.integers(0, 15, 4000)
        hit = rng.random(4000) < s - np.clip(rng.normal(0, 0.2, 15), -0.3, 0.3)[group]
        for aware in held:
            held[aware] += covers(curve(hit, s, v, groups=group if aware else None), np.zeros_like)
    assert held[True] >= 36 and held[False] <= 32


def test_the_gap_flips_with_the_event_and_the_scale_of_weights_does_not_matter():
    rng = np.random.default_rng(6)
    v, s, w = rng.random(2000), rng.uniform(0.2, 0.8, 2000), rng.exponential(size=2000)
    hit = rng.random(2000) < s - 0.2 * v + 0.1
    found, scaled = (curve(hit, s, v, sample_weight=weight) for weight in (w, 1000 * w))
    flipped = curve(~hit, 1 - s, v, sample_weight=w)
    np.testing.assert_allclose(flipped.gap, -found.gap, atol=1e-9)
    np.testing.assert_allclose(flipped.band_low, -found.band_high, atol=1e-9)
    np.testing.assert_allclose(scaled.band_low, found.band_low, rtol=1e-9)
    assert flipped.worst == found.worst == pytest.approx(scaled.worst)


def test_levels_match_their_closed_form_and_few_values_are_levels():
    rng = np.random.default_rng(9)
    level, s = rng.integers(0, 3, 900), rng.uniform(0.2, 0.8, 900)
    hit = rng.random(900) < s - 0.1 * (level == 2)
    found = curve(hit, s, np.array(list("abc"))[level])
    for k in range(3):
        e = (s - hit)[level == k]
        n = len(e)
        unit = max(e.var(ddof=1), np.mean((s * (1 - s))[level == k]))
        expected = np.sqrt((n * unit + 1) / (n + 4) / n)
        assert found.gap[k] == pytest.approx(e.mean())
        assert (found.gap_high - found.gap)[k] == pytest.approx(1.959964 * expected, rel=1e-6)
        # Šidák's critical value of three levels.
        assert (found.band_high - found.gap)[k] == pytest.approx(2.387739 * expected, rel=1e-5)
    assert found.worst_label == "c" and found.vce_low <= abs(found.gap[2]) <= found.vce_high
    few = curve(hit, s, level)
    assert few.span == 0
    np.testing.assert_allclose(few.band_high, found.band_high)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.one_of(st.integers(0, 5).map(float), st.floats(-1e6, 1e6)),
            st.booleans(),
            st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1)),
            st.sampled_from([1.0, 0.5, 20.0]),
            st.integers(0, 4),
        ),
        min_size=2,
        max_size=60,
    ),
    st.booleans(),
)
def test_any_rows_give_finite_bands_with_width(rows, grouped):
    v, hit, s, w, group = (np.array(column, float) for column in zip(*rows, strict=True))
    grouped = grouped and len(set(group)) > 1
    found = curve(hit, s, v, sample_weight=w, groups=group if grouped else None)
    for name in ("gap", "band_low", "band_high", "observed_low", "predicted_high", "density"):
        assert np.isfinite(getattr(found, name)).all(), name
    assert (found.band_high > found.band_low).all()
    assert 0 <= found.vce_low <= found.vce_high <= 1


def test_a_curve_says_which_ends_were_not_searched():
    rng = np.random.default_rng(4)
    v, p = rng.random(2_000), rng.uniform(0.3, 0.7, 2_000)
    y = rng.random(2_000) < p
    found = curve(y, p, {"v": v})
    assert 0.01 < found.unsearched < 0.03
    low, high = found.searched
    assert low > v.min() and high < v.max()
    assert found.search_note in repr(found) and "of the rows lie outside" in found.search_note
    whole = curve(y, p, {"v": v}, trim=0)
    assert whole.unsearched == 0 and whole.search_note == ""
