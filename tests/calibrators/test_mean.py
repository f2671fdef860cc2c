"""The repair of predicted means."""

from __future__ import annotations

import numpy as np

from varcal.calibrators.mean import fit_mean


def test_calibrated_means_hardly_change_and_wrong_ones_are_repaired():
    rng = np.random.default_rng(0)
    n = 4000
    v, level = rng.random(n), rng.integers(0, 4, n)
    mu = np.exp(0.5 * rng.normal(size=n))
    columns = [v, level]
    right = fit_mean(mu, rng.poisson(mu) * 1.0, columns, [0, 4])
    assert np.abs(np.log(right.predict(mu, columns) / mu)).mean() < 0.02
    true = mu * np.exp(0.2 + 0.8 * (v - 0.5) + np.array([0.3, 0, 0, -0.3])[level])
    model = fit_mean(mu, rng.poisson(true) * 1.0, columns, [0, 4])
    before, after = (
        np.abs(np.log(each / true)).mean() for each in (mu, model.predict(mu, columns))
    )
    assert after < before / 3


def test_one_factor_is_the_ratio_of_sums():
    rng = np.random.default_rng(1)
    mu = np.full(5000, 3.0)
    y = rng.poisson(4.5, 5000) * 1.0
    np.testing.assert_allclose(fit_mean(mu, y, [], []).predict(mu, []), y.mean(), rtol=1e-3)


def test_amounts_that_may_be_negative_get_the_identity_link():
    rng = np.random.default_rng(2)
    v = rng.random(4000)
    mu = rng.normal(size=4000)
    y = mu + 2 * v + 3 * rng.normal(size=4000)
    model = fit_mean(mu, y, [v], [0])
    assert np.sqrt(np.mean((model.predict(mu, [v]) - mu - 2 * v) ** 2)) < 0.25


def test_exposure_weighs_rates():
    rng = np.random.default_rng(3)
    n = 5000
    v, exposure, mu = rng.random(n), rng.uniform(0.1, 1, n), np.full(n, 0.5)
    true = mu * np.exp(v - 0.5)
    y = rng.poisson(exposure * true) / exposure
    model = fit_mean(mu, y, [v], [0], exposure=exposure)
    assert model.power == 1.0
    assert np.abs(np.log(model.predict(mu, [v]) / true)).mean() < 0.1


def test_one_absurd_prediction_does_not_decide():
    rng = np.random.default_rng(4)
    v = rng.random(3000)
    mu = np.full(3000, 1.0)
    mu[0] = 1e5
    y = np.exp(v - 0.5) * rng.gamma(2, 0.5, 3000) + 1e-6
    model = fit_mean(mu, y, [v], [0])
    assert model.stages[-1].share > 0.5
