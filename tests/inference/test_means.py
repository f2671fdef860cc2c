"""Predicted means: figures against plain sums, other tools and simulations with known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import f_oneway

from varcal._inference.mean_law import (
    MeanSums,
    gap_limits,
    mean_error,
    mean_law,
    mean_test,
    overall_limits,
)
from varcal._sums.mean_stats import SHARES, variance_power


def rows(seed, n=2000, tilt=0.0):
    """Draw a variable, gamma claims of Poisson counts, their means, and tenths."""
    rng = np.random.default_rng(seed)
    v = rng.random(n)
    mu = np.exp(0.5 * rng.normal(size=n))
    y = rng.poisson(mu * (1.1 + tilt * (2 * v - 1))) * rng.gamma(2, 0.5, n)
    return v, y, mu, (v * 10).astype(int)


def fine_of(v, y, mu):
    return MeanSums.from_rows(np.argsort(np.argsort(v)) * 100 // len(v), y, mu, n_bins=100)


def test_ratios_are_those_of_plain_sums_and_of_another_tool():
    polars = pytest.importorskip("polars")
    diagnostics = pytest.importorskip("model_diagnostics.calibration")
    _, y, mu, tenth = rows(0)
    bins = MeanSums.from_rows(tenth, y, mu, n_bins=10)
    actual, expected = np.bincount(tenth, y), np.bincount(tenth, mu)
    np.testing.assert_allclose(-bins.cells.gap, actual / expected - 1, rtol=1e-12)
    assert np.isclose(bins.overall, y.sum() / mu.sum() - 1, rtol=1e-12)
    other = MeanSums.from_rows(tenth, y, mu, n_bins=10, relative=False)
    feature = polars.Series("tenth", tenth.astype(str), dtype=polars.Categorical)
    table = diagnostics.compute_bias(y_obs=y, y_pred=mu, feature=feature).sort("tenth")
    np.testing.assert_allclose(other.cells.gap, table["bias_mean"].to_numpy(), rtol=1e-9)


def test_a_relative_gap_is_the_difference_of_ratios_with_weight_mu():
    _, y, mu, tenth = rows(1)
    one = MeanSums.from_rows(tenth, y, mu, n_bins=10, power=2.0)
    same = MeanSums.from_rows(
        tenth, y / mu, np.ones_like(mu), n_bins=10, weight=mu, relative=False, power=2.0
    )
    np.testing.assert_allclose(mean_law(one).gap, mean_law(same).gap, atol=1e-12)
    np.testing.assert_allclose(mean_law(one).cov, mean_law(same).cov, atol=1e-12)
    np.testing.assert_allclose([*one.third, *one.fourth], [*same.third, *same.fourth], rtol=1e-9)


def test_with_normal_errors_the_test_is_nearly_the_analysis_of_variance():
    rng = np.random.default_rng(2)
    for _ in range(5):
        tenth = np.arange(3000) % 10
        y = 5 + rng.normal(size=3000) + 0.05 * tenth * rng.random()
        bins = MeanSums.from_rows(
            tenth, y, np.full(3000, 5.0), n_bins=10, relative=False, power=0.0
        )
        expected = f_oneway(*(y[tenth == k] for k in range(10))).pvalue
        assert mean_test(bins) == pytest.approx(expected, rel=0.35, abs=0.02)


def test_a_constant_gap_is_rarely_rejected_and_a_tilted_one_is_found():
    def rejected(tilt):
        found = []
        for seed in range(120):
            v, y, mu, tenth = rows(seed, tilt=tilt)
            bins = MeanSums.from_rows(tenth, y, mu, n_bins=10)
            found.append(mean_test(bins, fine_of(v, y, mu)) < 0.05)
        return np.mean(found)

    assert rejected(0.0) <= 0.1
    assert rejected(0.3) >= 0.9


def test_no_gap_is_rejected_where_the_gap_is_constant():
    v, y, mu, tenth = rows(3, n=20_000)
    bins = MeanSums.from_rows(tenth, y, mu, n_bins=10)
    assert mean_test(bins, fine_of(v, y, mu), constant=False) < 0.001
    assert mean_test(bins, fine_of(v, y, mu)) > 0.01


def test_intervals_cover_and_do_not_depend_on_the_unit():
    hits, overall, each = [], [], []
    for seed in range(60):
        _, y, mu, tenth = rows(seed, tilt=0.3)
        bins = MeanSums.from_rows(tenth, y, mu, n_bins=10)
        found = mean_error(bins, mean_test(bins))
        hits.append(found.low <= 0.15 <= found.high)
        low, high = overall_limits(bins)
        overall.append(low <= 0.1 <= high)
        low, high = gap_limits(bins)
        truth = 0.1 + 0.3 * (np.arange(10) / 5 - 0.9)
        each.append(np.mean((low <= truth) & (truth <= high)))
    assert np.mean(hits) >= 0.9
    assert np.mean(overall) >= 0.88
    assert np.mean(each) >= 0.93
    cents = MeanSums.from_rows(tenth, 100 * y, 100 * mu, n_bins=10)
    same = mean_error(cents, mean_test(cents))
    assert same.debiased == pytest.approx(mean_error(bins, mean_test(bins)).debiased, rel=1e-6)


def test_groups_that_vary_are_not_taken_for_a_gap():
    rejected = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        unit = rng.integers(0, 60, 1500)
        v = rng.random(60)[unit]
        y = rng.poisson(2 * rng.gamma(4, 0.25, 60)[unit]) * 1.0
        tenth, mu = (v * 10).astype(int), np.full(1500, 2.0)
        bins = MeanSums.from_rows(tenth, y, mu, n_bins=10, bucket=unit)
        alone = MeanSums.from_rows(tenth, y, mu, n_bins=10)
        p = mean_test(bins, seed=seed)
        rejected.append([p < 0.05, mean_test(alone) < 0.05, mean_error(bins, p).low > 0])
    grouped, as_rows, above = np.mean(rejected, axis=0)
    assert grouped <= 0.12
    assert above == grouped
    assert as_rows >= 0.8


@pytest.mark.parametrize(
    ("y", "mu", "exposure", "power"),
    [
        ([-1.0, 2.0], [1.0, 1.0], None, 0.0),
        ([0.0, 3.0], [1.0, 1.0], None, 1.0),
        ([0.0, 4.0], [1.0, 1.0], [1.0, 0.25], 1.0),
        ([0.0, 2.5], [1.0, 1.0], None, 1.5),
        ([0.5, 2.5], [1.0, 1.0], None, 2.0),
        ([0.5, 0.2], [0.5, 0.3], None, SHARES),
    ],
)
def test_the_model_of_the_variance_follows_from_the_outcomes(y, mu, exposure, power):
    assert variance_power(y, mu, exposure) == power
