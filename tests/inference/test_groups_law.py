"""Intervals of rows in groups, whose bins vary together, and tests of several claims at once."""

import numpy as np
import pytest

from varcal._inference.cluster_law import cluster_law
from varcal._inference.debias import interval
from varcal._inference.error_sums import ErrorSums
from varcal._inference.gap_law import GapLaw, plug_in_moments
from varcal._inference.measured import LawErrors


def test_the_error_of_bins_that_vary_together_is_skewed(rng):
    bins, z = 10, 1.96
    cov = 0.03**2 * (0.6 + 0.4 * np.eye(bins))
    share = np.full(bins, 0.1)
    law = GapLaw(np.zeros(bins), share, cov, cov, np.zeros((bins, bins)), df=49.0)
    drawn = rng.multivariate_normal(np.zeros(bins), cov, 100_000)
    for theta in (0.0, 0.03, 0.06):
        sample = np.abs(theta + drawn) @ share
        uneven = []
        for shared in (True, False):
            found = plug_in_moments(law, np.ones(bins), np.array([theta]), shared=shared)
            mean, sd, skew = (x[0] for x in found)
            assert mean == pytest.approx(sample.mean(), rel=0.01)
            assert sd == pytest.approx(sample.std(), rel=0.02)
            uneven.append((sample > mean + (z + (z * z - 1) * skew / 6) * sd).mean())
        assert 0.01 < uneven[0] < 0.026 < uneven[1]  # nominal 0.025


@pytest.mark.parametrize(("theta", "before"), [(0.04, 0.85), (0.06, 0.91)])
def test_intervals_cover_if_all_bins_vary_together(theta, before):
    rng = np.random.default_rng(15)
    bins, many = 10, 400
    cov = np.broadcast_to(0.03**2 * (0.6 + 0.4 * np.eye(bins)), (many, bins, bins))
    gaps = rng.multivariate_normal(np.full(bins, theta), cov[0], many)
    law = GapLaw(gaps, np.full((many, bins), 0.1), cov, cov, np.zeros_like(cov), df=49.0)
    low, high = interval(law)
    assert ((low <= theta) & (theta <= high)).mean() > 0.93 > before


def mixed_law(rng, gap, *, mix, center, n_groups=50, rows=30):
    """Rows of a group share 70 % of their luck; v is a mean of that of the group and their own."""
    shape = (n_groups, rows)
    v = mix * rng.random((n_groups, 1)) + (1 - mix) * rng.random(shape)
    s = rng.uniform(0.3, 0.7, shape)
    luck = np.where(rng.random(shape) < 0.7, rng.random((n_groups, 1)), rng.random(shape))
    cell = np.minimum((10 * v).astype(int), 9) + 10 * np.arange(n_groups)[:, None]
    hit = luck < s - gap(v)
    sums = ErrorSums.from_rows(cell.ravel(), s.ravel(), hit.ravel(), n_bins=10 * n_groups)
    by_group = {name: one.reshape(n_groups, 10) for name, one in vars(sums).items()}
    return cluster_law(ErrorSums(**by_group), center=center)


@pytest.mark.parametrize(
    ("gap", "mix", "center", "truth", "before"),
    [
        (lambda v: 0.2 * (2 * v - 1), 0.5, True, 0.0667, 0.91),
        (lambda v: 0.07 + 0 * v, 0.0, False, 0.07, 0.81),
    ],
    ids=["uneven error, v mixed", "the same gap everywhere"],
)
def test_groups_with_rows_in_many_bins(gap, mix, center, truth, before):
    rng = np.random.default_rng(15)
    laws = [mixed_law(rng, gap, mix=mix, center=center) for _ in range(300)]
    found = LawErrors.of(laws)
    covers = [
        low <= truth <= high for low, high in zip(found.low(0.95), found.high(0.95), strict=True)
    ]
    assert np.mean(covers) > 0.94 > before
