"""E-values, detectors and intervals against closed forms and simulations with known truth."""

import itertools

import numpy as np
import pytest

from varcal._engines.bets import STAKES, log_gains
from varcal._monitor.confidence import Running
from varcal._monitor.detector import Detector, log_evidence
from varcal._monitor.moments import Moments, moments_of_rows, moments_of_units


def moments_of(score, hit, weight=None, cap=1.0, limit=0.02):
    """Sum rows of one cell, along the last axis but for that of histories."""
    w = np.ones_like(score) if weight is None else weight
    x = hit - score
    shape = (*score.shape[:-1], 1)
    sums = {
        "n": np.full(shape, float(score.shape[-1])),
        "weight": w.sum(-1, keepdims=True),
        "weight2": (w**2).sum(-1, keepdims=True),
        "hit": (w * hit).sum(-1, keepdims=True),
        "score": (w * score).sum(-1, keepdims=True),
        "hit2": (w**2 * hit).sum(-1, keepdims=True),
        "score2": (w**2 * score).sum(-1, keepdims=True),
        "square2": (w**2 * x**2).sum(-1, keepdims=True),
    }
    flat = log_gains(score.ravel(), hit.ravel(), w.ravel() / cap, limit)
    gains = flat.reshape(*score.shape, 2, len(STAKES)).sum(axis=-3)
    return moments_of_rows(sums, cap, gains[..., None, :, :])


def without_bets(moments):
    return Moments(**{**vars(moments), "gains": None})


@pytest.mark.parametrize("limit", [0.0, 0.03])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_mean_of_an_e_value_is_one_at_the_limit_exactly(limit, sign):
    # All outcomes of four rows whose true rates are the scores plus the limit.
    score = np.array([0.1, 0.3, 0.5, 0.8])
    truth = score + sign * limit
    mean = np.zeros((2, 2, len(STAKES)))
    for outcome in itertools.product([0, 1], repeat=4):
        hit = np.array(outcome, dtype=bool)
        chance = np.prod(np.where(hit, truth, 1 - truth))
        found = moments_of(score, hit, limit=limit)
        limits = np.full((1, 2), limit)
        mean[0] += chance * np.exp(log_evidence(found, limits)[0])
        mean[1] += chance * np.exp(log_evidence(without_bets(found), limits)[0])
    side = 0 if sign == 1 else 1
    np.testing.assert_allclose(mean[0, side], 1.0, rtol=1e-12)  # the bets are fair
    assert (mean <= 1 + 1e-12).all()  # in neither direction is there more
    assert (mean[1] <= mean[0] + 1e-12).all()  # the self-normalized evidence is weaker


def test_weighted_bets_are_fair_up_to_the_cap():
    score, weight = np.array([0.2, 0.6, 0.4]), np.array([0.5, 3.0, 1.0])
    mean = 0.0
    for outcome in itertools.product([0, 1], repeat=3):
        hit = np.array(outcome, dtype=bool)
        chance = np.prod(np.where(hit, score, 1 - score))
        found = moments_of(score, hit, weight, cap=3.0, limit=0.0)
        mean = mean + chance * np.exp(log_evidence(found, np.zeros((1, 2))))
    np.testing.assert_allclose(mean, 1.0, rtol=1e-12)


def test_bets_on_units_are_fair_although_their_rows_always_agree():
    score, size = np.array([0.3, 0.3, 0.6]), np.array([5.0, 2.0, 3.0])
    by_row = by_unit = 0.0
    for outcome in itertools.product([0, 1], repeat=3):
        hit = np.array(outcome, dtype=float)
        chance = np.prod(np.where(hit == 1, score, 1 - score))
        sums = {"n": size, "hit": size * hit, "score": size * score}
        units = moments_of_units({name: one[:, None] for name, one in sums.items()})
        by_unit = by_unit + chance * np.exp(log_evidence(units, np.zeros((1, 2))))
        rows = np.repeat(score, size.astype(int)), np.repeat(hit, size.astype(int)) == 1
        found = moments_of(*rows, limit=0.0)
        by_row = by_row + chance * np.exp(log_evidence(found, np.zeros((1, 2))))
    np.testing.assert_allclose(by_unit, 1.0, rtol=1e-12)
    assert by_row.max() > 2  # what the units are for


@pytest.mark.parametrize("bets", [True, False])
def test_false_alarms_are_rare_and_changes_are_found(bets):
    # 400 histories of 100 batches of 40 rows in one cell; then 40 batches with a gap of 15 points.
    rng = np.random.default_rng(1)
    detector, limits, alarms = Detector.new(400, 1), np.zeros((1, 2)), np.zeros((2, 400), bool)
    part = np.ones(1)
    for t in range(140):
        score = rng.beta(1, 2, (400, 40))
        hit = rng.random(score.shape) < score + (0.15 if t >= 100 else 0.0)
        found = moments_of(score, hit, limit=0.0)
        found = found if bets else without_bets(found)
        detector.update(log_evidence(found, limits), found)
        alarms[0 if t < 100 else 1] |= detector.total(part, spent=True) >= 20
    # At most 5 % in truth: 8 % is three standard errors above.
    assert alarms[0].mean() < 0.08
    assert alarms[1].mean() > 0.95
    cell, bet = np.unravel_index(detector.flow[0].argmax(), detector.flow[0].shape)
    assert (cell, bet < len(STAKES)) == (0, True)  # outcomes more frequent than predicted
    assert abs(detector.start[0, 0, bet] - 101) <= 5


def test_the_interval_covers_a_moving_mean_at_all_times():
    rng = np.random.default_rng(2)
    running, missed = Running.new(300, 1), np.zeros(300, bool)
    truth, n = np.zeros(300), 0
    for t in range(150):
        score = rng.beta(1, 2, (300, 20))
        p = np.clip(score + 0.1 * np.sin(t / 9), 0, 1)
        hit = rng.random(score.shape) < p
        running.update(moments_of(score, hit))
        truth, n = truth + (score - p).sum(axis=1), n + 20
        _, low, high = running.interval(np.log(2 / 0.05), grouped=False)
        missed |= (truth / n < low[:, 0]) | (truth / n > high[:, 0])
    assert missed.mean() < 0.05
