import json

import numpy as np
import pytest

import varcal as vc
from varcal._inference.cumulative_test import cumulative_test, largest_tail, range_tail
from varcal._input.variables import Variable
from varcal.exceptions import InputError


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
        (200, "uniform", "continuous", False),
        (200, "rare", "tied", False),
        (1000, "rare", "continuous", False),
        (1000, "heaped", "categorical", False),
        (1000, "uniform", "continuous", True),
    ],
)
def test_type_one_error(n, scores, variable, weighted):
    """Calibrated outcomes are rejected at 5 % about 5 % of the time, sparse ones too."""
    rng = np.random.default_rng(1)
    replicates, rejected = 300, 0
    for k in range(replicates):
        y, s, v = null_rows(rng, n, scores, variable)
        w = rng.exponential(size=n) if weighted else None
        found = vc.estimate(y, s, v, event="positive", sample_weight=w, random_state=k)
        rejected += found.p_value < 0.05
    # At most 6.5 % is claimed; three standard errors of the draws are added.
    assert 0.02 < rejected / replicates < 0.065 + 3 * np.sqrt(0.05 * 0.95 / replicates)


@pytest.mark.parametrize(
    ("shape", "vece", "n"),
    [("none", 0.0, 500), ("tilt", 0.04, 500), ("hump", 0.04, 2000), ("step", 0.15, 2000),
     ("tail", 0.03, 2000), ("sine", 0.04, 2000)],
)  # fmt: skip
def test_interval_covers_the_population_value_of_the_same_bins(shape, vece, n):
    replicates, inside = 200, 0
    truth = vc.datasets.make_gap(10, shape, vece=vece).vece_in_bins(10)
    cuts = np.linspace(0, 1, 11)
    for seed in range(replicates):
        sim = vc.datasets.make_gap(n, shape, vece=vece, random_state=seed)
        found = vc.estimate(sim.y, sim.p, sim.v, event="positive", bins=cuts)
        inside += found.low <= truth <= found.high
    assert inside / replicates > 0.90  # the claim is 94 % on average, 90 % in the worst shape


def test_the_debiased_value_is_less_biased_and_nearer():
    truth = vc.datasets.make_gap(10, "hump", vece=0.01).vece_in_bins(10)
    plug_in, debiased = [], []
    for seed in range(200):
        sim = vc.datasets.make_gap(2000, "hump", vece=0.01, random_state=seed)
        found = vc.estimate(sim.y, sim.p, sim.v, event="positive", bins=np.linspace(0, 1, 11))
        plug_in.append(found.value - truth)
        debiased.append(found.debiased - truth)
    allowed = max(abs(np.mean(plug_in)), np.std(plug_in)) / 4
    assert abs(np.mean(debiased)) < allowed + 2 * np.std(debiased) / np.sqrt(200)
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
    for _ in range(200):
        unit = np.repeat(np.arange(120), 8)
        v = rng.random(120)[unit]
        s = rng.uniform(0.3, 0.7, len(unit))
        # One draw decides for all rows of a unit: outcomes are calibrated but depend.
        y = rng.random(120)[unit] < s
        rejected["rows"] += vc.estimate(y, s, v, event="positive").p_value < 0.05
        grouped = vc.estimate(y, s, v, event="positive", groups=unit)
        rejected["groups"] += grouped.p_value < 0.05
    assert rejected["rows"] > 80
    assert rejected["groups"] < 23  # 5 % of 200 and about four standard errors


@pytest.mark.slow
@pytest.mark.parametrize("test", ["kuiper", "kolmogorov-smirnov"])
def test_cumulative_tests_hold_their_level_and_find_a_tilt(test):
    rng = np.random.default_rng(5)
    rejected = found = 0
    for _ in range(300):
        y, s, v = null_rows(rng, 400, "uniform", "tied" if rng.random() < 0.5 else "continuous")
        rejected += vc.estimate(y, s, v, event="positive", test=test).p_value < 0.05
        u = rng.random(400)
        tilted = rng.random(400) < s + 0.4 * (u - 0.5)
        found += vc.estimate(tilted, s, u, event="positive", test=test).p_value < 0.05
    assert rejected / 300 < 0.09
    assert found / 300 > 0.5


def test_tails_of_brownian_motion_by_simulation():
    rng = np.random.default_rng(6)
    steps = rng.normal(size=(4000, 2000)).cumsum(axis=1) / np.sqrt(2000)
    path = np.concatenate([np.zeros((4000, 1)), steps], axis=1)
    # Between two steps the path goes on: its extremes lie 0.5826 steps further out on average.
    beyond = 0.5826 / np.sqrt(2000)
    span, far = path.max(1) - path.min(1) + 2 * beyond, np.abs(path).max(1) + beyond
    for q in (0.5, 0.9, 0.95):
        assert range_tail(np.quantile(span, q)) == pytest.approx(1 - q, abs=0.03)
        assert largest_tail(np.quantile(far, q)) == pytest.approx(1 - q, abs=0.03)
    assert range_tail(0.1) == largest_tail(0.05) == 1.0


def test_cumulative_edge_cases():
    certain = np.array([1.0, 0.0, 1.0])
    right, wrong = np.array([True, False, True]), np.array([False, True, True])
    v = Variable.of([1.0, np.nan, 2.0], "v")
    assert cumulative_test(v, certain, right) == 1.0
    assert 0 < cumulative_test(v, certain, wrong) < 1e-200
    letters = Variable.of(["a", "b", "a"], "v")
    assert 0 < cumulative_test(letters, np.full(3, 0.5), wrong) <= 1


def test_ece_and_every_event(rng):
    p = rng.dirichlet([1, 1, 1], 600)
    y = np.array([rng.choice(3, p=row) for row in p])
    for event in ("correct", "classwise"):
        found = vc.estimate(y, p, event=event)
        assert found.metric == "ECE" and found.value == pytest.approx(vc.ece(y, p, event=event))
        assert found.low <= found.debiased <= found.high and 0 < found.p_value <= 1
    assert found.to_dict()["event"] == "classwise"
    json.dumps(found.to_dict(), allow_nan=False)
    assert "noise floor" in repr(found)


def test_dropped_rows_weights_and_names(make_frame, rng):
    n = 300
    s = rng.random(n)
    data = make_frame({"y": [None, *(rng.random(n - 1) < s[1:]).tolist()], "p": s.tolist(),
                       "v": rng.normal(size=n).tolist(), "w": rng.random(n).tolist()})  # fmt: skip
    found = vc.estimate("y", "p", "v", data=data, sample_weight="w", unlabelled="drop")
    assert found.n_dropped == 1 and found.n_rows == 299 and found.variable == "v"


def test_rows_needed_and_the_detectable_error_agree(rng):
    n = vc.rows_needed(0.05)
    s = np.full(n, 0.5)
    found = vc.estimate(rng.random(n) < s, s, rng.random(n), event="positive")
    assert found.detectable == pytest.approx(0.05, rel=0.05)
    assert vc.rows_needed(0.1) < n / 3.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 0}, "level must lie between 0 and 1"),
        ({"test": "kupier"}, "did you mean 'kuiper'"),
        ({"test": "kuiper", "groups": [1, 2, 3]}, "assumes independent rows"),
        ({"v": np.ones((3, 2))}, "v has 2 variables; an estimate is along one"),
        ({"groups": ["a", "a", "a"]}, "only one group"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(InputError) as caught:
        vc.estimate([0, 1, 1], [0.2, 0.6, 0.7], **{"v": [1.0, 2.0, 3.0]} | options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "options", [{"gap": 0}, {"gap": 2}, {"power": 1}, {"level": 95}, {"n_bins": 0}]
)
def test_rows_needed_checks_its_arguments(options):
    with pytest.raises(InputError):
        vc.rows_needed(**{"gap": 0.05} | options)


@pytest.mark.parametrize("test", ["combined", "kuiper", "kolmogorov-smirnov"])
def test_p_values_are_never_zero(test):
    v = np.arange(4000.0)
    found = vc.estimate(np.zeros(4000, int), np.full(4000, 0.9), v, event="positive", test=test)
    assert 0 < found.p_value < 1e-20
