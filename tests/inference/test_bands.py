from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from varcal._inference import bands as _bands
from varcal._inference.bands import curve_bands, level_bands, path_length, simultaneous_critical
from varcal._measures.curve import density
from varcal._sums.curve_cells import Cells


def draw(rng, n, gap, scores=(0.2, 0.8)):
    v = np.sort(rng.random(n))
    s = rng.uniform(*scores, n)
    return v, (rng.random(n) < s - gap(v)).astype(float), s


def arrays(bands):
    return {
        field.name: value
        for field in dataclasses.fields(bands)
        if isinstance(value := getattr(bands, field.name), np.ndarray)
    }


def test_coarse_cells_keep_every_sum():
    rng = np.random.default_rng(0)
    v, hit, s = np.round(rng.exponential(20, 3000)), rng.random(3000) < 0.5, rng.random(3000)
    w, group = rng.random(3000), rng.integers(0, 7, 3000)
    fine = Cells.from_rows(v, hit, s, w, group)
    coarse = fine.coarsen(20)
    assert len(coarse) <= 20
    assert coarse.n.sum() == 3000
    assert coarse.square2.sum() == pytest.approx(np.sum(w**2 * (hit - s) ** 2))
    assert coarse.null2.sum() == pytest.approx(np.sum(w**2 * s * (1 - s)))
    assert coarse.weight @ coarse.x == pytest.approx(w @ v)
    np.testing.assert_allclose(coarse.group_hit.sum(1), coarse.hit)
    assert (np.diff(coarse.x) > 0).all()
    assert fine.coarsen(10_000) is fine


def test_a_frequent_value_keeps_its_own_cell():
    v = np.r_[np.zeros(500), np.linspace(1, 2, 1500)]
    cells = Cells.from_rows(v, np.zeros(2000), np.full(2000, 0.5), most=100)
    assert cells.x[0] == 0 and cells.n[0] == 500
    assert cells.n[1:].max() <= 2 * cells.n[1:].min()


def test_tube_formula_agrees_with_simulated_suprema():
    hat = _bands._even_hat(250, 0.125, 4)
    noise = np.random.default_rng(1).normal(size=(250, 8000))
    sd = np.linspace(0.5, 2, 250)
    factor = hat * sd
    se = np.linalg.norm(factor, axis=1)
    for level in (0.9, 0.95, 0.99):
        c = simultaneous_critical(factor, level=level)
        held = np.mean(np.max(np.abs(factor @ noise) / se[:, None], axis=0) <= c)
        assert level - 0.007 <= held <= level + 0.02


def test_independent_points_use_sidak_and_one_point_the_normal():
    assert simultaneous_critical(np.eye(1), level=0.9) == pytest.approx(1.644854, abs=1e-6)
    assert simultaneous_critical(np.diag([1.0, 5.0, 0.2])) == pytest.approx(2.387739, abs=1e-5)
    assert simultaneous_critical(np.ones((40, 1))) == pytest.approx(1.959964, abs=1e-6)
    assert simultaneous_critical(np.eye(1), dof=4) == pytest.approx(2.776445, abs=1e-6)
    assert simultaneous_critical(np.zeros((3, 2))) == pytest.approx(1.959964, abs=1e-6)
    assert path_length(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])) == pytest.approx(np.pi / 2)


@pytest.mark.parametrize(
    ("gap", "scores"),
    [
        (lambda v: 0 * v, (0.2, 0.8)),
        (lambda v: 0.15 * np.sin(6 * np.pi * v), (0.2, 0.8)),
        (lambda v: 0.2 / (1 + np.exp((0.9 - v) / 0.025)), (0.6, 1.0)),
    ],
    ids=["none", "sine", "bad tail"],
)
def test_band_and_worst_set_contain_the_truth(gap, scores):
    rng = np.random.default_rng(3)
    held = stars = 0
    samples = 120
    for _ in range(samples):
        bands = curve_bands(Cells.from_rows(*draw(rng, 3000, gap, scores), most=1000))
        truth = gap(bands.x)
        held += np.all((bands.low <= truth) & (truth <= bands.high))
        inside = np.where(bands.searched, np.abs(truth), -1)
        stars += bands.candidates[np.argmax(inside)]
    assert held >= 0.9 * samples
    assert stars >= 0.94 * samples


def test_groups_widen_the_band_enough():
    rng = np.random.default_rng(4)
    with_groups = without = 0
    samples = 60
    for _ in range(samples):
        v, s = np.sort(rng.random(4000)), rng.uniform(0.3, 0.7, 4000)
        group = rng.integers(0, 15, 4000)
        hit = rng.random(4000) < s - np.clip(rng.normal(0, 0.2, 15), -0.3, 0.3)[group]
        for buckets in (group, None):
            bands = curve_bands(Cells.from_rows(v, hit, s, None, buckets, most=1000))
            held = np.all((bands.low <= 0) & (bands.high >= 0))
            with_groups += held and buckets is not None
            without += held and buckets is None
    assert with_groups >= 0.92 * samples
    assert without <= 0.8 * samples


def test_gap_is_error_minus_predicted_error_and_flips_with_the_event():
    rng = np.random.default_rng(6)
    v, hit, s = draw(rng, 2000, lambda v: 0.2 * v - 0.1)
    bands = curve_bands(Cells.from_rows(v, hit, s, most=1000))
    np.testing.assert_allclose(bands.gap, bands.error - bands.predicted_error, atol=1e-12)
    flipped = curve_bands(Cells.from_rows(v, 1 - hit, 1 - s, most=1000))
    np.testing.assert_allclose(flipped.gap, -bands.gap, atol=1e-12)
    np.testing.assert_allclose(flipped.low, -bands.high, atol=1e-9)
    assert flipped.worst == bands.worst
    for name in ("error", "predicted_error", "gap"):
        low, high = bands.pointwise(name)
        assert (low <= high).all() and (np.abs([low, high]) <= 1).all()
    low, high = bands.pointwise("gap")
    assert (bands.low <= low).all() and (high <= bands.high).all()


def test_scale_of_weights_does_not_matter():
    rng = np.random.default_rng(7)
    v, hit, s = draw(rng, 1500, lambda v: 0.1 * v)
    w = rng.exponential(size=1500)
    a = arrays(curve_bands(Cells.from_rows(v, hit, s, w, most=1000)))
    b = arrays(curve_bands(Cells.from_rows(v, hit, s, 1000 * w, most=1000)))
    for name, value in a.items():
        np.testing.assert_allclose(b[name], value, rtol=1e-9, atol=1e-12, err_msg=name)


def test_levels_match_their_closed_form():
    rng = np.random.default_rng(9)
    level = rng.integers(0, 3, 900)
    s = rng.uniform(0.2, 0.8, 900)
    hit = (rng.random(900) < s - 0.1 * (level == 2)).astype(float)
    bands = level_bands(Cells.from_rows(level, hit, s))
    for k in range(3):
        e = (s - hit)[level == k]
        n = len(e)
        unit = max(e.var(ddof=1), np.mean((s * (1 - s))[level == k]))
        expected = np.sqrt((n * unit + 1) / (n + 4) / n)
        assert bands.gap[k] == pytest.approx(e.mean())
        assert bands.gap_se[k] == pytest.approx(expected)
    assert bands.critical == pytest.approx(2.387739, abs=1e-5)
    assert bands.worst == 2
    assert bands.worst_low <= abs(bands.gap[2]) <= bands.worst_high


def test_worst_set_of_levels_contains_the_worst_level():
    rng = np.random.default_rng(10)
    gap = np.array([0.1, 0.1, -0.1, 0.05, 0.0])
    held = 0
    for _ in range(400):
        level = rng.integers(0, 5, 600)
        s = rng.uniform(0.3, 0.7, 600)
        hit = rng.random(600) < s - gap[level]
        held += level_bands(Cells.from_rows(level, hit, s)).candidates[0]
    assert held >= 0.95 * 400


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
        min_size=1,
        max_size=60,
    ),
    st.booleans(),
)
def test_any_rows_give_finite_bands_with_width(rows, grouped):
    v, hit, s, w, group = (np.array(column, float) for column in zip(*rows, strict=True))
    cells = Cells.from_rows(v, hit, s, w, group.astype(int) if grouped else None)
    for bands in (curve_bands(cells), level_bands(cells)):
        for name, value in arrays(bands).items():
            assert np.isfinite(value).all(), name
        assert (bands.high > bands.low).all()
        assert bands.candidates[bands.worst]
        assert 0 <= bands.worst_low <= bands.worst_high <= 1


@pytest.mark.parametrize("kind", ["normal", "uniform"])
def test_density_near_the_truth_and_of_mass_one(kind):
    rng = np.random.default_rng(11)
    v = rng.normal(size=20_000) if kind == "normal" else rng.random(20_000)
    cells = Cells.from_rows(v, v * 0, v * 0 + 0.5, most=1000)
    at = np.linspace(v.min(), v.max(), 400)
    got = density(cells.x, cells.weight, at, rows=20_000)
    truth = np.exp(-(at**2) / 2) / np.sqrt(2 * np.pi) if kind == "normal" else np.ones(400)
    assert np.abs(got - truth).max() < (0.02 if kind == "normal" else 0.12)
    assert (got[1:] + got[:-1]) @ np.diff(at) / 2 == pytest.approx(1, abs=0.02)
    assert np.isfinite(density([3.0], [5.0], [3.0, 99.0], rows=5)).all()


def test_few_distinct_values_are_estimated_separately():
    rng = np.random.default_rng(12)
    v, s = rng.integers(0, 8, 400), rng.uniform(0.2, 0.8, 400)
    cells = Cells.from_rows(v, rng.random(400) < s, s)
    few, levels = curve_bands(cells), level_bands(cells)
    assert few.half_span == 0
    np.testing.assert_array_equal(few.gap, cells.gap)
    np.testing.assert_array_equal(few.high, levels.high)
