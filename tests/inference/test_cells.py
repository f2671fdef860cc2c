"""Cells, the bins of a variable within each predicted side: their law and their test."""

import numpy as np
import pytest
import statsmodels.api as sm

from varcal._inference.calibration_test import calibration_test
from varcal._inference.cell_law import cell_law, part_of
from varcal._inference.measured import LawErrors
from varcal._input.events import claim_of, predicted
from varcal._input.predictions import Predictions
from varcal._input.variables import Variable
from varcal._sums.evidence import profile_of
from varcal._sums.profile import SidedProfile

BINS = {"n_bins": 10, "binning": "atoms", "bins": None, "edges": None}


def cells(p, y, v, **more):
    """Return the tables of both sides over bins and fine cells, and which cells have an order."""
    rows, variable = Predictions.of(y, p, **more), Variable.of(v, "v")
    claim = claim_of(rows, 1)
    found = SidedProfile.of(1, profile_of(rows, claim, variable, BINS, 200, predicted(rows, 1)))
    sides = (found.others, found.own)
    coarse, fine = [one.coarse for one in sides], [one.fine for one in sides]
    placed = np.ones(fine[0].bins.size, dtype=bool)
    return coarse, fine, placed


def p_of(p, y, v):
    return calibration_test(*cells(p, y, v), constant=True).p_value


@pytest.mark.parametrize("gap", [0.0, 0.08])
@pytest.mark.parametrize("follows", [False, True])
def test_a_gap_that_is_constant_within_sides_is_rarely_rejected(rng, gap, follows):
    n, hits = 500, 0
    for _ in range(200):
        p = rng.uniform(0.2, 0.8, n)
        v = p + 0.05 * rng.normal(size=n) if follows else rng.random(n)
        hits += p_of(p, rng.random(n) < p - gap, v) < 0.05
    assert hits <= 20  # 10 ± 3.1 are expected


@pytest.mark.parametrize("kind", ["same", "opposite", "one side"])
def test_an_error_of_either_side_is_found(rng, kind):
    n, found = 1000, 0
    for _ in range(60):
        p, v = rng.uniform(0.2, 0.8, n), rng.random(n)
        side = np.where(p > 0.5, 1, -1)
        pull = {"same": 1, "opposite": side, "one side": 2 * (side > 0)}[kind]
        found += p_of(p, rng.random(n) < p + 0.25 * (v - 0.5) * pull, v) < 0.05
    assert found >= 42  # about 57


def test_chi_square_over_bins_is_that_of_a_robust_regression(rng):
    """With many rows, and an error of one side only, it is White's test of bins by side."""
    n = 60_000
    p, v = rng.uniform(0.1, 0.45, n), rng.integers(0, 10, n).astype(float)
    y = rng.random(n) < p + 0.002 * (v - 4.5)
    coarse, fine, _ = cells(p, y, v)
    ours = calibration_test(coarse[:1], fine[:1], None, constant=True).p_value
    design = np.column_stack([np.ones(n), *(v == k for k in range(9))]).astype(float)
    fit = sm.OLS(y - p, design).fit(cov_type="HC0")
    theirs = float(fit.wald_test(np.eye(10)[1:], use_f=False, scalar=True).pvalue)
    assert ours == pytest.approx(theirs, rel=0.05)


def test_swapping_the_classes_changes_nothing(rng):
    p, v = rng.uniform(0.02, 0.98, 900), rng.random(900)
    y = rng.random(900) < p
    weight = rng.exponential(size=900)
    one, two = (cells(score, hit, v, sample_weight=weight) for score, hit in ((p, y), (1 - p, ~y)))
    first, second = (calibration_test(*each, constant=True).p_value for each in (one, two))
    assert first == pytest.approx(second, rel=1e-6)
    for center in (False, True):
        laws = [cell_law(each[0], center=center) for each in (one, two)]
        first, second = (LawErrors.of([law]).measured(0.95)[0] for law in laws)
        assert vars(first) == pytest.approx(vars(second), rel=1e-6, nan_ok=True)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_law_has_the_gaps_of_a_groupby(rng, grouped):
    n = 3000
    p, v = rng.uniform(0.05, 0.95, n), rng.integers(0, 4, n).astype(float)
    y = rng.random(n) < np.clip(p + 0.05 * v - 0.1, 0, 1)
    more = {"groups": rng.integers(0, 60, n)} if grouped else {}
    coarse, *_ = cells(p, y, v, **more)
    side = p > 0.5
    mean = np.array([(p - y)[side == s].mean() for s in (False, True)])
    gap = np.array([[(p - y)[(side == s) & (v == k)].mean() for k in range(4)] for s in (0, 1)])
    law, centered = (cell_law(coarse, center=center) for center in (False, True))
    held = law.share > 0
    np.testing.assert_allclose(law.gap[held], gap.ravel(), atol=1e-12)
    np.testing.assert_allclose(centered.gap[held], (gap - mean[:, None]).ravel(), atol=1e-12)
    own = np.repeat([0.0, 1.0], len(held) // 2)
    share, middle, error = part_of(law, own)
    assert (share, middle) == pytest.approx((side.mean(), mean[1]))
    assert error == pytest.approx((p - y)[side].std() / side.sum() ** 0.5, rel=0.5)
    # What is centred within a side has no variance along the average of the side.
    assert part_of(centered, own)[1:] == pytest.approx((0, 0), abs=1e-6)
