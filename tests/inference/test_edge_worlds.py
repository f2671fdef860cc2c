"""Small versions of the worlds of `benchmarks/worlds.py` in which varcal once failed."""

import importlib
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm

import varcal as vc
from varcal._inference.error_sums import ErrorSums
from varcal._inference.quadratic_forms import normal_sums

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def edge():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        worlds = importlib.import_module("worlds")
    return {one.name: one for make in worlds.EDGES for one in make()}


def rate(edge, name, replicates):
    rng = np.random.default_rng(15)
    return np.mean([edge[name].draw(rng).hit for _ in range(replicates)])


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("uneven, v by group, 20 groups, tilt 0.0", 0.61),
        ("VECE, v by group, 20 groups, tilt 0.08", 0.72),
        ("overall gap 0.0, near .999, n = 1,000", 0.67),
    ],
)
def test_intervals_cover_where_they_did_not(edge, name, before):
    assert rate(edge, name, 40) > 0.84 > before  # 95 % less three standard errors


def test_heavy_weights_do_not_make_a_gap_change(edge):
    found = rate(edge, "uneven, weights 1000, numeric, n = 60, gap 0.0", 60)
    assert found < 0.135  # 5 % and three standard errors; 100 % before


def test_two_classes_have_the_interval_of_one():
    """The gaps of two classes are equal up to their sign: bounds on their covariance are exact."""
    sim = vc.datasets.make_gap(800, "tilt", vece=0.08, random_state=3)
    both, one = (vc.estimate(sim.y, sim.p, sim.v, event=e) for e in ("classwise", "positive"))
    for name in ("value", "debiased", "low", "high", "noise_floor", "noise_high"):
        assert getattr(both, name) == pytest.approx(getattr(one, name), rel=1e-6), name


def test_an_interval_over_classes_is_narrower_than_the_mean_of_the_classes_intervals():
    rng = np.random.default_rng(0)
    p, v = rng.dirichlet(np.ones(10), 1000), rng.random(1000)
    y = (rng.random(1000)[:, None] > p.cumsum(1)).sum(1)
    found = vc.estimate(y, p, v, event="classwise", classes=range(10))
    each = [vc.estimate(y == k, p[:, k], v, event="positive") for k in range(10)]
    assert found.value == pytest.approx(np.mean([one.value for one in each]))
    assert found.high - found.low < 0.8 * np.mean([one.high - one.low for one in each])
    assert found.noise_high < np.mean([one.noise_high for one in each])


def test_many_classes_fall_back_to_means_of_ends(monkeypatch):
    rng = np.random.default_rng(1)
    p, v = rng.dirichlet(np.ones(4), 400), rng.random(400)
    y = (rng.random(400)[:, None] > p.cumsum(1)).sum(1)
    one = vc.estimate(y, p, v, event="classwise", classes=range(4))
    monkeypatch.setattr("varcal._inference.measured.MOST_CELLS", 10)
    other = vc.estimate(y, p, v, event="classwise", classes=range(4))
    assert other.value == pytest.approx(one.value) and other.high > one.high
    assert other.low == 0 or other.p_value < 0.05


@pytest.mark.parametrize(("n", "score"), [(20, 0.1), (8, 0.03), (300, 0.02), (40, 0.9)])
def test_sums_of_equal_scores_are_the_normal_scores_of_a_binomial_law(n, score):
    for hits in range(1, min(n, 12)):
        rows = np.full(n, score), np.arange(n) < hits
        cells = ErrorSums.from_rows(np.zeros(n, int), *rows, n_bins=1)
        sums, scale, *_ = normal_sums(cells, cells.null2, np.zeros(()))
        law = binom(n, score)
        middle = law.cdf(hits) - law.pmf(hits) / 2
        assert sums[0] / scale[0] ** 0.5 == pytest.approx(norm.ppf(middle), rel=1e-3, abs=1e-3)


def test_a_few_rare_rows_do_not_blind_the_test(rng):
    n = 3_500
    v, p = rng.random(n), rng.uniform(0.1, 0.6, n)
    y = rng.random(n) < p + 0.25 * (v - 0.5)
    missing = np.where(np.arange(n) < 8, np.nan, v)
    whole, sparse = (vc.estimate(y, p, x, event="positive").p_value for x in (v, missing))
    assert sparse < whole**0.7 < 1e-5
    found = vc.audit(y, p, {"v": v, "missing": missing}, ladder="none")
    assert found.row("missing").uneven.p_value < found.row("v").uneven.p_value ** 0.7 < 1e-3


def test_impossible_events_are_found(rng):
    n = 2_000
    v, p = rng.random(n), rng.uniform(0.2, 0.6, n)
    p[v > 0.9] = 0.0
    y = (rng.random(n) < p) | ((v > 0.9) & (np.arange(n) % 25 == 0))
    assert vc.estimate(y, p, v, event="positive").p_value < 1e-3


def test_gaps_that_cancel_inside_bins_are_found_and_measured(rng):
    n = 10_000
    v, p = rng.random(n), rng.uniform(0.2, 0.8, n)
    y = rng.random(n) < p - 0.08 * np.sin(18 * np.pi * v)
    found = vc.estimate(y, p, v, event="positive", n_bins=10)
    assert found.value == pytest.approx(vc.vece(y, p, v, event="positive"))
    assert 0.01 < found.low < 0.16 / np.pi < found.high
    row = vc.audit(y, p, {"v": v}, ladder="none").rows[0]
    assert row.uneven.within and row.low < 0.16 / np.pi < row.high and row.p_holm < 1e-6
