"""Intervals cover the truth, agree with the p-value of the same result, and have width."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import varcal as vc


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
    y = rng.random(n) < np.clip(s + draw(st.floats(0, 0.15)) * np.cos(3 * v), 0, 1)
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


@settings(max_examples=60)
@given(worlds())
def test_an_interval_excludes_zero_exactly_where_the_p_value_is_small(world):
    y, s, v, options = world
    for found in (vc.estimate(y, s, v, **options), vc.estimate(y, s, **options)):
        assert (found.low > 0) == (found.p_value < 1 - found.level)
        assert found.low <= found.debiased <= found.high <= 1


@settings(max_examples=20)
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


@settings(max_examples=12)
@given(
    st.integers(0, 1000), st.sampled_from([60, 400]), st.booleans(), st.sampled_from([0.8, 0.95])
)
def test_every_change_of_a_comparison_agrees_with_its_p_value(seed, n, grouped, level):
    rng = np.random.default_rng(seed)
    v, q = rng.random(n), rng.uniform(0.05, 0.95, n)
    y = rng.random(n) < q
    y[:2] = [True, False]
    sets = {
        "a": np.clip(q + rng.normal(0, 0.1) * (v - 0.5), 0.01, 0.99),
        "b": np.clip(q + rng.normal(0, 0.3) * v, 0.01, 0.99),
        "c": rng.uniform(0.01, 0.99, n),
    }
    groups = rng.integers(0, 12, n) if grouped else None
    for row in vc.compare(y, sets, {"v": v}, groups=groups, level=level).rows:
        if row.method == "a":
            assert row.verdict == "baseline" and math.isnan(row.p_value)
            continue
        excludes = row.difference_low > 0 or row.difference_high < 0
        assert excludes == (row.p_value < 1 - level)
        assert row.p_value <= row.p_holm
        assert row.difference_low <= row.difference <= row.difference_high
        if row.verdict != "no clear change":
            assert row.p_holm < 1 - level


def test_a_curve_with_too_few_groups_for_a_test_has_an_interval():
    rng = np.random.default_rng(0)
    s, v, unit = rng.random(300), rng.random(300), np.arange(300) % 4
    curve = vc.curve(rng.random(300) < s, s, v, groups=unit)
    assert 0 <= curve.vece_low <= curve.vece_high


@pytest.mark.parametrize(
    ("shape", "vece", "n"), [("none", 0.0, 500), ("tilt", 0.04, 500), ("step", 0.15, 2000)]
)
def test_interval_covers_the_population_value_of_the_same_bins(shape, vece, n):
    inside = 0
    truth = vc.datasets.make_gap(10, shape, vece=vece).vece_in_bins(10)
    for seed in range(120):
        sim = vc.datasets.make_gap(n, shape, vece=vece, random_state=seed)
        found = vc.estimate(sim.y, sim.p, sim.v, event="positive", bins=np.linspace(0, 1, 11))
        inside += found.low <= truth <= found.high
    assert inside > 108  # the claim is 94 % on average, 90 % in the worst shape


@pytest.mark.parametrize("tilt", [0.0, 0.08])
def test_intervals_cover_where_groups_lie_along_the_variable(tilt):
    """Of 20 groups, each at one place along v, 61 and 72 % of the intervals covered."""
    rng = np.random.default_rng(15)
    covered = 0
    for _ in range(40):
        place = rng.random(20)
        unit = np.repeat(np.arange(20), 40)
        v, s = place[unit], rng.uniform(0.3, 0.7, 800)
        y = np.where(rng.random(800) < 0.5, rng.random(20)[unit], rng.random(800)) < s - tilt * (
            2 * v - 1
        )
        found = vc.estimate(y, s, v, event="positive", groups=unit)
        covered += found.low <= tilt * np.abs(2 * place - 1).mean() <= found.high
    assert covered >= 34  # 95 % less three standard errors


def test_the_overall_gap_of_scores_near_one_is_covered():
    """Where no error is seen, an interval of the observed variance alone has no width: 67 %."""
    rng = np.random.default_rng(15)
    covered = 0
    for _ in range(60):
        p = 1 - rng.exponential(0.001, 1_000)
        y = rng.random(1_000) < p
        audit = vc.audit(y, p, {"v": rng.random(1_000)}, classes=[False, True], ladder="none")
        (target,) = audit.targets.values()
        covered += target.gap_low <= 0 <= target.gap_high
    assert covered >= 52


@pytest.mark.parametrize("tilts", [(0.0, 0.02), (0.02, 0.0), (0.1, 0.05), (0.04, -0.04)])
def test_the_interval_of_a_change_covers_and_has_width(tilts):
    """With a calibrated first set, the jackknife covered 63 %, with width 0 in a fifth."""
    rng = np.random.default_rng(15)
    covered = 0
    for _ in range(30):
        v, q = rng.random(1_000), rng.uniform(0.2, 0.8, 1_000)
        sets = {name: q + tilt * (2 * v - 1) for name, tilt in zip("ab", tilts, strict=True)}
        row = vc.compare(rng.random(1_000) < q, sets, {"v": v}).row("b", "uneven", "v")
        covered += row.difference_low <= (abs(tilts[1]) - abs(tilts[0])) / 2 <= row.difference_high
        assert row.difference_high - row.difference_low > 1e-4
    assert covered >= 25  # of 30 at 95 %: fewer in 1 of 300
    same = vc.compare(rng.random(1_000) < q, {"a": q, "b": q}, {"v": v}).row("b", "uneven", "v")
    assert same.difference_low == same.difference_high == 0


def test_gaps_that_cancel_inside_bins_are_found_and_measured(rng):
    v, p = rng.random(10_000), rng.uniform(0.2, 0.8, 10_000)
    y = rng.random(10_000) < p - 0.08 * np.sin(18 * np.pi * v)
    found = vc.estimate(y, p, v, event="positive", n_bins=10)
    assert found.value == pytest.approx(vc.vece(y, p, v, event="positive"))
    assert 0.01 < found.low < 0.16 / np.pi < found.high
    row = vc.audit(y, p, {"v": v}, ladder="none").rows[0]
    assert row.uneven.within and row.low < 0.16 / np.pi < row.high and row.p_holm < 1e-6


def test_waves_of_scores_near_one_are_measured_by_what_varies(rng):
    """They say that hardly anything varies: counted by them, bins have too few finer cells."""
    n, u = 2_000, (np.arange(1_000) + 0.5) / 1_000

    def scores(q):
        return np.where(q < 0.4, 0.5 + 1.2 * q, 0.98 + 0.02 * np.minimum((q - 0.4) / 0.4, 1))

    def chance(s, v):
        return np.clip(s - 0.3 * np.sin(6 * np.pi * v), 0, 1)

    truth = np.abs((scores(u) - chance(scores(u), u[:, None])).mean(axis=1)).mean()
    covered = 0
    for _ in range(40):
        s, v = scores(rng.random(n)), rng.random(n)
        found = vc.estimate(rng.random(n) < chance(s, v), s, v, event="positive")
        covered += found.low <= truth <= found.high
    assert covered >= 34  # counted by scores, about 30


def test_two_classes_have_the_interval_of_one():
    """The gaps of two classes are equal up to their sign: bounds on their covariance are exact."""
    sim = vc.datasets.make_gap(800, "tilt", vece=0.08, random_state=3)
    both, one = (vc.estimate(sim.y, sim.p, sim.v, event=e) for e in ("classwise", "positive"))
    for name in ("value", "debiased", "low", "high", "noise_floor", "noise_high"):
        assert getattr(both, name) == pytest.approx(getattr(one, name), rel=1e-6), name
