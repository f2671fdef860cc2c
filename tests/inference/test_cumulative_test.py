"""Tests without bins: Kuiper and Kolmogorov–Smirnov."""

import numpy as np
import pytest

import varcal as vc
from varcal._inference.cumulative_test import cumulative_test, largest_tail, range_tail
from varcal._input.variables import Variable


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
@pytest.mark.parametrize("test", ["kuiper", "kolmogorov-smirnov"])
def test_cumulative_tests_hold_their_level_and_find_a_tilt(test):
    rng = np.random.default_rng(5)
    rejected = found = 0
    for _ in range(150):
        y, s, v = null_rows(rng, 400, "uniform", "tied" if rng.random() < 0.5 else "continuous")
        rejected += vc.estimate(y, s, v, event="positive", test=test).p_value < 0.05
        u = rng.random(400)
        tilted = rng.random(400) < s + 0.4 * (u - 0.5)
        found += vc.estimate(tilted, s, u, event="positive", test=test).p_value < 0.05
    assert rejected / 150 < 0.1
    assert found / 150 > 0.5


def test_tails_of_brownian_motion_by_simulation():
    rng = np.random.default_rng(6)
    steps = rng.normal(size=(4000, 2000)).cumsum(axis=1) / np.sqrt(2000)
    path = np.concatenate([np.zeros((4000, 1)), steps], axis=1)
    # Between two steps the path goes on: its extremes lie 0.5826 steps further out on average.
    uneven = 0.5826 / np.sqrt(2000)
    span, far = path.max(1) - path.min(1) + 2 * uneven, np.abs(path).max(1) + uneven
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
