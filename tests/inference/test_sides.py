import numpy as np
import pytest
import statsmodels.api as sm

from varcal._inference._sides.sided_test import SidedSums, sided_test
from varcal._inference.error_sums import ErrorSums
from varcal._inference.scored_rows import ScoredRows

SIGNS = np.array([[1.0, 1.0], [-1.0, 1.0]])


def sums_of(p, y, v, n_bins=10, weight=None):
    """Return the sums of both sides over bins of equal support, and the rows."""
    side, rank = (p > 0.5).astype(int), v.argsort().argsort()
    sizes = (n_bins, min(200, len(p)))
    places = [rank * size // len(p) + size * side for size in sizes]
    tables = [
        ErrorSums.from_rows(place, p, y, weight, n_bins=2 * size)
        for place, size in zip(places, sizes, strict=True)
    ]
    coarse, fine = (
        ErrorSums(**{name: x.reshape(2, -1) for name, x in vars(table).items()}) for table in tables
    )
    merge = np.arange(sizes[1]) * n_bins // sizes[1]
    return SidedSums(coarse, fine, SIGNS, None, merge), ScoredRows(p, *places, weight)


@pytest.mark.parametrize("gap", [0.0, 0.08])
@pytest.mark.parametrize("follows", [False, True])
def test_a_gap_that_is_constant_within_sides_is_rarely_rejected(rng, gap, follows):
    n, hits = 500, 0
    for _ in range(200):
        p = rng.uniform(0.2, 0.8, n)
        v = p + 0.05 * rng.normal(size=n) if follows else rng.random(n)
        y = rng.random(n) < p - gap
        hits += sided_test(*sums_of(p, y, v))[0] < 0.05
    assert hits <= 20  # 10 ± 3.1 are expected


@pytest.mark.parametrize(
    ("kind", "claim"), [("risk", 0), ("confidence", 1), ("one side", 0), ("one side", 1)]
)
def test_the_claim_that_is_wrong_is_found(rng, kind, claim):
    n, found, own = 1000, 0, 0
    for _ in range(60):
        p, v = rng.uniform(0.2, 0.8, n), rng.random(n)
        side = np.where(p > 0.5, 1, -1)
        pull = {"risk": 1, "confidence": side, "one side": 2 * (side > 0)}[kind]
        y = rng.random(n) < p + 0.25 * (v - 0.5) * pull
        every, *each = sided_test(*sums_of(p, y, v))
        found, own = found + (every < 0.05), own + (each[claim] < 0.05)
    assert found >= 42  # about 57
    if kind == "one side":
        assert found >= own - 2


def test_chi_square_over_bins_is_that_of_a_robust_regression(rng):
    """With many rows the form of the risk is White's test of bins added to the two sides."""
    n = 60_000
    p, v = rng.uniform(0.1, 0.9, n), rng.random(n)
    y = rng.random(n) < p + 0.012 * (v - 0.5)
    side, place = p > 0.5, (10 * v).astype(int)
    sums = ErrorSums.from_rows(place + 10 * side, p, y, n_bins=20)
    table = ErrorSums(**{name: x.reshape(2, -1) for name, x in vars(sums).items()})
    ours = sided_test(SidedSums(table, None, np.array([[1.0, 1.0]])))[0]
    design = np.column_stack([side, ~side, *(place == k for k in range(9))]).astype(float)
    fit = sm.OLS(y - p, design).fit(cov_type="HC0")
    theirs = float(fit.wald_test(np.eye(11)[2:], use_f=False, scalar=True).pvalue)
    assert ours == pytest.approx(theirs, rel=0.05)


def test_a_side_without_rows_costs_nothing(rng):
    p, v = rng.uniform(0.1, 0.45, 800), rng.random(800)
    y = rng.random(800) < p + 0.15 * (v - 0.5)
    every, risk, confidence = sided_test(*sums_of(p, y, v))
    assert every == risk == confidence < 0.05


def test_swapping_the_classes_changes_nothing(rng):
    p, v = rng.uniform(0.02, 0.98, 900), rng.random(900)
    y = rng.random(900) < p
    weight = rng.exponential(size=900)
    one = sided_test(sums_of(p, y, v, weight=weight)[0])
    two = sided_test(sums_of(1 - p, ~y, v, weight=weight)[0])
    np.testing.assert_allclose(one, two, rtol=1e-8)
