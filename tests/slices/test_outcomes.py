"""Residuals, simulated outcomes, known gaps, figures of batches."""

import pickle

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import logit

from varcal._evidence.roles import Roles
from varcal._input.labels import Part
from varcal._input.predictions import Predictions
from varcal._input.variables import Variable
from varcal._slices.cells import grid_of
from varcal._slices.condition import Condition
from varcal._slices.figures import Wanted, _FiguresWork, figures_of
from varcal._slices.known_gaps import RIDGE, fit, overall_design, single_design
from varcal._slices.outcomes import Dependence, Outcomes


def two_classes(n=2000, **more):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, n)
    return Predictions.of((rng.random(n) < p).astype(int), p, {"x": rng.normal(size=n)}, **more)


def test_residuals_of_both_claims_differ_by_the_side_only():
    out = Outcomes.of(two_classes(), 0)
    side = np.where(out.predicted == 1, 1, -1)[:, None]
    risk, sure = out.columns(1, slice(0, 6)), out.columns(-1, slice(0, 6))
    assert np.array_equal(sure, risk * side)
    assert np.array_equal(out.columns(0, slice(0, 6)), -risk)
    expected = out.y - out.p
    assert np.allclose(risk[:, 0], expected, atol=1e-5)


def test_sums_do_not_depend_on_the_order_of_rows():
    weight = np.random.default_rng(1).exponential(size=2000)
    out = Outcomes.of(two_classes(sample_weight=weight), 0)
    e = out.columns(1, slice(0, 4)).astype(np.float64)
    order = np.random.default_rng(2).permutation(2000)
    assert np.array_equal(e.sum(axis=0), e[order].cumsum(axis=0)[-1])
    v = out.weights(1)
    assert np.array_equal(v.sum(axis=0), v[order].cumsum(axis=0)[-1])


def test_simulated_outcomes_have_the_scores_as_rates():
    rng = np.random.default_rng(3)
    p = rng.dirichlet([3, 2, 1], 500)
    rows = Predictions.of(rng.choice(["a", "b", "c"], 500), p, {"x": rng.random(500)})
    out = Outcomes.of(rows, 0)
    for key in (-1, 0, 2):
        e = out.simulated(key, slice(1, 801)).astype(float)
        s = out.score(key)
        assert abs(e.mean()) < 0.003
        assert (e**2).mean() == pytest.approx((s * (1 - s)).mean(), rel=0.02)


def test_a_shift_takes_the_gap_of_a_slice_off():
    rng = np.random.default_rng(4)
    p = rng.dirichlet([3, 2, 1], 3000)
    three = Predictions.of(rng.choice(["a", "b", "c"], 3000), p, {"x": rng.random(3000)})
    inside = np.arange(3000) < 700
    for rows in (two_classes(3000), three):
        out = Outcomes.of(rows, 0)
        for key in (-1, 0, 1):
            moved = out.shifted(key, inside)
            gap = (moved.hit(key) - moved.score(key))[inside].mean()
            assert abs(gap) < 1e-6
            assert np.array_equal(moved.score(key)[~inside], out.score(key)[~inside])
            assert (moved.score(key)[inside] > 0).all()


def test_known_gaps_are_gone_after_the_fit():
    rng = np.random.default_rng(5)
    n = 4000
    x, kind = rng.random(n), rng.choice(["a", "b"], n)
    s = rng.uniform(0.2, 0.8, n)
    hit = rng.random(n) < s - 0.1 + 0.2 * (kind == "a") * 1.0 - 0.1 * x
    grid = grid_of([Variable.of(x, "x"), Variable.of(kind, "kind")], s, [False, False])
    side = np.zeros(n, dtype=np.intp)
    overall = fit(overall_design(side), s, hit, np.ones(n))
    assert abs((hit - overall.score).mean()) < 1e-4
    single = fit(single_design(grid, side), s, hit, np.ones(n))
    for level in ("a", "b"):
        assert abs((hit - single.score)[kind == level].mean()) < 5e-4
    # Simulated residuals lose their part along the cells as well, but for the ridge.
    e = ((rng.random((n, 3)) < single.score[:, None]) - single.score[:, None]).astype(np.float32)
    left = single.removed_from(e)
    assert np.abs(left[kind == "a"].mean(axis=0)).max() < 2e-4
    assert 0.9 < single.scale < 1.15


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sure", [0.0, 1e-300, 1.0])
def test_gaps_of_certain_scores_are_taken_off_without_overflow(sure):
    n, hits = 4000, 1200
    hit, weight = np.arange(n) < hits, np.full(n, 2.0)
    side = (np.arange(n) % 2).astype(np.intp)
    found = fit(overall_design(side), np.full(n, sure), hit, weight)
    # Each side has one rate s, at which the residuals balance the ridge: wn(h - s) = ridge·β.
    start = logit(min(max(sure, 1e-12), 1 - 1e-12))
    rate = brentq(
        lambda s: (n * (0.3 - s)) - RIDGE * (logit(s) - start), 1e-11, 1 - 1e-11, xtol=1e-14
    )
    assert found.score == pytest.approx(np.full(n, rate), abs=1e-9)
    assert 0.9 < found.scale < 1.1


def test_rows_of_a_group_keep_their_rates_and_depend_on_each_other():
    group = np.repeat(np.arange(300), 8)
    s = np.tile(np.linspace(0.1, 0.6, 8), 300)
    hit = Dependence(group, 0.4).uniform(np.random.default_rng(6), 400) < s[:, None]
    rate = hit.reshape(300, 8, 400).mean(axis=(0, 2))
    assert np.allclose(rate, s[:8], atol=0.01)
    found = [Dependence.of(group, s, hit[:, k]).rho for k in range(20)]
    assert 0.35 < np.mean(found) < 0.5
    alone = Dependence.of(group, s, np.random.default_rng(7).random(2400) < s)
    assert alone.rho < 0.1


def test_figures_of_batches_add_up():
    rng = np.random.default_rng(8)
    n = 900
    frame = {
        "y": rng.integers(0, 2, n),
        "p": rng.random(n),
        "x": rng.normal(size=n),
        "w": rng.exponential(size=n),
        "unit": rng.integers(0, 30, n),
    }
    wanted = (Wanted((Condition("x", "numeric", low=0.0), Condition("x", "numeric", high=1.0)), 1),)
    roles = Roles("y", ("p",), ("x",), "w", "unit")
    work = pickle.loads(pickle.dumps(_FiguresWork(roles, Part((0, 1), True), wanted, True)))
    parts = [
        work({name: column[first : first + 300] for name, column in frame.items()}, first)
        for first in (0, 300, 600)
    ]
    total = parts[0] + parts[1] + parts[2]
    whole = figures_of(
        Predictions.of("y", "p", ["x"], data=frame, sample_weight="w", groups="unit"),
        wanted,
        hashed=False,
    )
    one, other = total.own[0], whole.own[0]
    assert (total.n_rows, one.rows) == (whole.n_rows, other.rows)
    assert np.allclose(one.sums, other.sums)
    assert [f.rows for f in total.joining[0]] == [f.rows for f in whole.joining[0]]
    inside = (frame["x"] > 0) & (frame["x"] <= 1)
    gap = np.average((frame["p"] - frame["y"])[inside], weights=frame["w"][inside])
    assert one.gap == pytest.approx(gap)


def test_the_standard_error_is_that_of_a_mean():
    rows = two_classes(5000)
    condition = Condition("x", "numeric", low=0.0)
    figures = figures_of(rows, [Wanted((condition,), 1)], hashed=False).own[0]
    inside = rows.variables[0].values > 0
    e = (rows.p - rows.y)[inside]
    assert figures.standard_error == pytest.approx(e.std() / np.sqrt(len(e)), rel=0.01)
    paired = two_classes(5000, groups=np.arange(5000) // 50)
    grouped = figures_of(paired, [Wanted((condition,), 1)], hashed=False).own[0]
    assert grouped.standard_error >= figures.standard_error
