"""Intervals of the variable calibrator hold the true probability, also where curves are biased."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from varcal import VariableCalibrator
from varcal.calibrators._variable._columns.design import SCORE
from varcal.calibrators._variable.roughness import fit_roughness


def drawn(world: str, rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    z, v = 1.3 * rng.normal(size=n) - 0.3, rng.uniform(-1, 1, (n, 3))
    if world == "smooth":
        return expit(z), v, expit(0.8 * z + 0.7 * np.sin(2 * v[:, 0]) + 0.6 * v[:, 1] ** 2)
    if world == "jump":
        return expit(z), v, expit(z + 0.9 * np.sign(v[:, 0] - 0.3) + 0.3 * v[:, 1])
    p = rng.binomial(20, expit(1.8 * z)) / 20
    return p, v, expit(logit(0.05 + 0.9 * p) + 0.5 * np.sin(2 * v[:, 0]))


def covered(world: str, seed: int, n: int = 1000) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    p, v, truth = drawn(world, rng, n + 1000)
    fit = VariableCalibrator().fit(p[:n], rng.random(n) < truth[:n], v[:n])
    low, high = (end[:, 1] for end in fit.predict_interval(p[n:], v[n:]))
    inside = (low <= truth[n:]) & (truth[n:] <= high)
    return float(inside.mean()), float((high - low).mean())


@pytest.mark.parametrize(
    ("world", "least", "widest"),
    [("smooth", 0.93, 0.25), ("jump", 0.90, 0.27), ("votes", 0.90, 0.22)],
)
def test_mean_coverage_over_rows(world, least, widest):
    found = np.array([covered(world, seed) for seed in range(8)])
    assert found[:, 0].mean() >= least
    assert found[:, 1].mean() <= widest


def residuals(step: float) -> tuple[dict[int, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(0)
    values = rng.uniform(size=4000)
    truth = expit(step * (values > 0.5) - step / 2)
    return {SCORE: np.zeros(4000), 0: values}, (rng.random(4000) < truth) - 0.5


def test_what_a_model_leaves_out_is_found_where_it_is():
    weight, nothing = np.full(4000, 0.25), np.zeros((4000, 0))
    numbers, residual = residuals(2.0)
    found = fit_roughness(numbers, nothing, np.zeros((0, 0)), residual, weight)
    assert found.variables == (0,)
    variance = found.variance(np.zeros(2), [np.array([0.1, 0.9])])
    assert np.abs(variance - 1.0).max() < 0.5  # the step is one logit up and one down
    assert found.variance(np.zeros(1), [np.array([np.nan])]) == 0


def test_without_anything_left_out_little_is_added():
    weight, nothing = np.full(4000, 0.25), np.zeros((4000, 0))
    numbers, residual = residuals(0.0)
    found = fit_roughness(numbers, nothing, np.zeros((0, 0)), residual, weight)
    assert found.variance(np.zeros(1), [np.array([0.3])]) < 0.02
