"""Intervals of the variable calibrator hold the true probability, also where curves are biased."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit

from varcal import VariableCalibrator


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
    found = np.array([covered(world, seed) for seed in range(6)])
    assert found[:, 0].mean() >= least
    assert found[:, 1].mean() <= widest
