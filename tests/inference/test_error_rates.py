"""Tests and intervals keep their levels in worlds whose truth is known."""

import numpy as np
import pytest

import varcal as vc


def null_rows(rng, n, scores, variable):
    s = {
        "uniform": lambda: rng.uniform(0.2, 0.8, n),
        "rare": lambda: rng.beta(0.8, 39.2, n),
        "heaped": lambda: np.where(rng.random(n) < 0.5, 0.995, rng.uniform(0.5, 1, n)),
    }[scores]()
    v = {
        "continuous": lambda: rng.normal(size=n),
        "tied": lambda: np.floor(6 * rng.random(n) ** 2),
        "categorical": lambda: rng.choice(list("abcde"), n, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
    }[variable]()
    return rng.random(n) < s, s, v


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "scores", "variable", "weighted"),
    [
        (200, "rare", "tied", False),
        (1000, "heaped", "categorical", False),
        (1000, "uniform", "continuous", True),
    ],
)
def test_type_one_error(n, scores, variable, weighted):
    """Calibrated outcomes, also sparse ones, are rejected at 5 % about 5 % of the time."""
    rng = np.random.default_rng(1)
    replicates, rejected = 200, 0
    for k in range(replicates):
        y, s, v = null_rows(rng, n, scores, variable)
        w = rng.exponential(size=n) if weighted else None
        found = vc.estimate(y, s, v, event="positive", sample_weight=w, random_state=k)
        rejected += found.p_value < 0.05
    # At most 6.5 % is claimed; three standard errors of the draws are added.
    assert 0.01 < rejected / replicates < 0.065 + 3 * np.sqrt(0.05 * 0.95 / replicates)


@pytest.mark.parametrize(
    ("shape", "vece", "n"),
    [("none", 0.0, 500), ("tilt", 0.04, 500), ("step", 0.15, 2000)],
)
def test_interval_covers_the_population_value_of_the_same_bins(shape, vece, n):
    replicates, inside = 120, 0
    truth = vc.datasets.make_gap(10, shape, vece=vece).vece_in_bins(10)
    cuts = np.linspace(0, 1, 11)
    for seed in range(replicates):
        sim = vc.datasets.make_gap(n, shape, vece=vece, random_state=seed)
        found = vc.estimate(sim.y, sim.p, sim.v, event="positive", bins=cuts)
        inside += found.low <= truth <= found.high
    assert inside / replicates > 0.90  # the claim is 94 % on average, 90 % in the worst shape


def test_the_debiased_value_is_less_biased_and_closer():
    truth = vc.datasets.make_gap(10, "hump", vece=0.01).vece_in_bins(10)
    plug_in, debiased = [], []
    for seed in range(100):
        sim = vc.datasets.make_gap(2000, "hump", vece=0.01, random_state=seed)
        found = vc.estimate(sim.y, sim.p, sim.v, event="positive", bins=np.linspace(0, 1, 11))
        plug_in.append(found.value - truth)
        debiased.append(found.debiased - truth)
    allowed = max(abs(np.mean(plug_in)), np.std(plug_in)) / 4
    assert abs(np.mean(debiased)) < allowed + 2 * np.std(debiased) / np.sqrt(100)
    assert np.mean(np.square(debiased)) < np.mean(np.square(plug_in))


def test_noise_floor_is_that_of_a_perfect_model():
    rng = np.random.default_rng(8)
    values, floors, highs = [], [], []
    for _ in range(300):
        y, s, v = null_rows(rng, 1000, "uniform", "continuous")
        found = vc.estimate(y, s, v, event="positive")
        values.append(found.value)
        floors.append(found.noise_floor)
        highs.append(found.noise_high)
    # 300 draws know the mean to 1.4 %, the quantile to about 3 %.
    assert np.mean(floors) == pytest.approx(np.mean(values), rel=0.04)
    assert np.mean(highs) == pytest.approx(np.quantile(values, 0.95), rel=0.09)


def test_groups_hold_the_level_that_rows_do_not():
    rng = np.random.default_rng(4)
    rejected = {"rows": 0, "groups": 0}
    for _ in range(100):
        unit = np.repeat(np.arange(120), 8)
        v = rng.random(120)[unit]
        s = rng.uniform(0.3, 0.7, len(unit))
        # All rows of a unit share one draw: outcomes are calibrated but dependent.
        y = rng.random(120)[unit] < s
        rejected["rows"] += vc.estimate(y, s, v, event="positive").p_value < 0.05
        grouped = vc.estimate(y, s, v, event="positive", groups=unit)
        rejected["groups"] += grouped.p_value < 0.05
    assert rejected["rows"] > 40
    assert rejected["groups"] < 14  # 5 % of 100 and about four standard errors
