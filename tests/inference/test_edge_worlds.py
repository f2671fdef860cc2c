"""Small versions of the worlds of `benchmarks/worlds.py` in which varcal once failed."""

import importlib
from pathlib import Path

import numpy as np
import pytest

import varcal as vc
from varcal._inference.error_sums import ErrorSums
from varcal._inference.gap_law import GapLaw
from varcal._inference.quadratic_forms import LEAST_MODEL, MODEL_ROWS, constant_gap_moments
from varcal._inference.simulated_null import draw_cells

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
        ("VECE, v by group, 12 groups, tilt 0.0", 0.02),
        ("uneven, v by group, 20 groups, tilt 0.0", 0.61),
        ("VECE, v by group, 20 groups, tilt 0.08", 0.72),
        ("overall gap 0.0, near .999, n = 1,000", 0.67),
        ("overall gap -0.003, .2 % predicted, n = 600", 0.8),
    ],
)
def test_intervals_cover_where_they_did_not(edge, name, before):
    assert rate(edge, name, 60) > 0.86 > before  # 95 % less three standard errors


@pytest.mark.parametrize(
    "name",
    [
        "uneven, weights 1000, numeric, n = 60, gap 0.0",
        "uneven, weights lognormal 2, numeric, n = 100, gap 0.0",
    ],
)
def test_heavy_weights_do_not_make_a_gap_change(edge, name):
    assert rate(edge, name, 100) < 0.115  # 5 % and three standard errors; 100 and 28 % before


def test_every_world_draws(edge):
    for world in edge.values():
        found = world.draw(np.random.default_rng(1))
        assert found.hit in (True, False) and (world.kind == "test") == np.isnan(found.width)


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


def test_moments_of_a_constant_gap_are_those_of_rows_with_equal_weights():
    rng = np.random.default_rng(2)
    s = rng.random(500) ** 2
    cells = ErrorSums.from_rows(rng.integers(0, 9, 500), s, rng.random(500) < s, n_bins=9)
    g = float(cells.overall)
    model = np.maximum(
        cells.null2 + g * (2 * cells.score2 - cells.n) - g**2 * cells.n, LEAST_MODEL * cells.null2
    )
    scatter = (cells.square2 + 2 * g * cells.error2 + g**2 * cells.n) * 500 / 499
    model *= scatter.sum() / model.sum()
    per_row = scatter.sum() / 500
    share = cells.n * per_row / (cells.n * per_row + MODEL_ROWS)
    v = share * scatter + (1 - share) * model
    np.testing.assert_allclose(constant_gap_moments(cells)[0], v, rtol=1e-12)
    heavier = ErrorSums.from_rows(np.zeros(500, int), s, np.ones(500), np.full(500, 7.0), n_bins=1)
    assert heavier.effective_rows == pytest.approx([500])


def test_drawn_sums_of_cells_have_the_moments_of_rows():
    rng = np.random.default_rng(3)
    s = np.concatenate([rng.beta(1, 60, 300), 1 - rng.beta(1, 60, 300), rng.random(300)])
    w = np.where(np.arange(900) % 2, 1.0, 3.0)
    cells = ErrorSums.from_rows(np.arange(900) // 300, s, rng.random(900) < s, w, n_bins=3)
    drawn = draw_cells(cells, 40_000, 0)
    np.testing.assert_allclose(drawn.mean(0) / drawn.std(0), 0, atol=0.02)
    np.testing.assert_allclose(drawn.var(0), cells.null2, rtol=0.03)


def test_drawn_sums_of_a_constant_gap_have_its_variance():
    rng = np.random.default_rng(3)
    s = rng.uniform(0.3, 0.5, 900)
    cells = ErrorSums.from_rows(np.arange(900) // 300, s, rng.random(900) < s - 0.25, n_bins=3)
    chance = s - float(cells.overall) * 900 / 905
    expected = np.bincount(np.arange(900) // 300, chance * (1 - chance))
    drawn = draw_cells(cells, 40_000, 0, constant=True)
    np.testing.assert_allclose(drawn.var(0), expected, rtol=0.03)
    np.testing.assert_allclose(drawn.mean(0) / drawn.std(0), 0, atol=0.02)


def test_equal_scores_are_drawn_exactly():
    cells = ErrorSums.from_rows(np.zeros(20, int), np.full(20, 0.1), np.zeros(20), n_bins=1)
    hits = draw_cells(cells, 50_000, 0)[:, 0] + 2
    expected = [0.9**20, 20 * 0.1 * 0.9**19]
    np.testing.assert_allclose([(np.rint(hits) == k).mean() for k in (0, 1)], expected, atol=0.01)


def test_a_law_over_classes_refuses_nothing_that_one_class_allows():
    law = GapLaw.from_cells(
        ErrorSums.from_rows([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.8], [0, 1, 1, 1], n_bins=2)
    )
    joint = GapLaw.of_classes([law, law], same_bins=True)
    assert joint.value == pytest.approx(law.value) and joint.dependence == 2
