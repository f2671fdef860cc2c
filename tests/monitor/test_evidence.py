"""Evidence and intervals against closed forms and simulations with known truth."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import varcal as vc
from varcal._monitor.detectors import Detector, Moments, Running, log_evidence
from varcal._sums.stats import STAKES, log_gains

SCORE = np.array([0.1, 0.3, 0.5, 0.8])


def mean_e_values(gap, limit=0.0, size=(1, 1, 1, 1), weight=None, used=None, **options):
    """Return means over all outcomes of four units, whose truths are the scores plus a gap.

    The axes are directions (outcomes more frequent than scores, or less), cells and stakes.
    """

    def rows(outcome):
        made = {"y": outcome, "p": SCORE, "v": list("abab"), "unit": list("klmn")}
        made |= {"w": [1.0, 0.5, 2.0, 0.1]} if weight is not None else {}
        return {name: np.repeat(column, size) for name, column in made.items()}

    bins = vc.make_bins(
        "y", "p", ["v"], data=rows([0, 1, 0, 1]), events=["positive"], sample_weight=weight,
        monitor=limit, **options,
    )  # fmt: skip
    mean = 0.0
    for outcome in itertools.product([0, 1], repeat=4):
        monitor = vc.Monitor(bins, limit=limit if used is None else used)
        monitor.update(rows(outcome), id=1)
        found = monitor._detector.flow[monitor._running.sums[0] > 0]
        mean = mean + found * np.prod(np.where(outcome, SCORE + gap, 1 - SCORE - gap))
    return mean.reshape(-1, 2, len(STAKES)).swapaxes(0, 1)


@pytest.mark.parametrize("limit", [0.0, 0.03])
def test_the_mean_of_an_e_value_is_one_at_the_limit_exactly(limit):
    for side, gap in enumerate((limit, -limit)):
        mean = mean_e_values(gap, limit)
        np.testing.assert_allclose(mean[side], 1.0, rtol=1e-12)
        assert (mean <= 1 + 1e-12).all()  # in neither direction is there more
        assert (mean_e_values(gap + 0.01 * (1 - 2 * side), limit)[side] > 1).all()


@pytest.mark.filterwarnings("ignore:the bins were chosen")
def test_self_normalized_evidence_is_weaker():
    for side, gap in enumerate((0.03, -0.03)):
        assert (mean_e_values(gap, 0.02, used=0.03)[side] < 1).all()


def test_bets_on_weighted_rows_and_on_units_are_fair():
    mean = mean_e_values(0.0, weight="w", weight_cap=2.0)
    np.testing.assert_allclose(mean, 1.0, rtol=1e-12)
    # Rows of a unit always agree, and units differ in size.
    several = {"size": (5, 2, 3, 1)}
    np.testing.assert_allclose(mean_e_values(0.0, **several, groups="unit"), 1.0, rtol=1e-12)
    assert mean_e_values(0.0, **several).max() > 2  # what the units are for


def moments_of(score, hit):
    """Sum the rows of one cell along the last axis, with bets against a limit of 0."""
    x = hit - score
    sums = np.stack(
        [one.sum(-1, keepdims=True) for one in (x * 0 + 1, x * 0 + 1, hit, score, x**2)]
    )
    flat = log_gains(score.ravel(), hit.ravel(), None, 0.0)
    gains = flat.reshape(*score.shape, 2, len(STAKES)).sum(axis=-3)[..., None, :, :]
    return Moments(sums, sums[2] - sums[3], sums[0], np.ones(sums[0].shape), gains)


@pytest.mark.parametrize("bets", [True, False])
def test_false_alarms_are_rare_and_changes_are_found(bets):
    # 400 histories of 100 batches of 40 rows in one cell; then 40 batches with a gap of 15 points.
    rng = np.random.default_rng(1)
    detector, alarms, part = Detector.new(400, 1), np.zeros((2, 400), bool), np.ones(1)
    for t in range(140):
        score = rng.beta(1, 2, (400, 40))
        hit = rng.random(score.shape) < score + (0.15 if t >= 100 else 0.0)
        found = moments_of(score, hit)
        found = found if bets else replace(found, gains=None)
        detector.update(log_evidence(found, np.zeros((1, 2))), found)
        alarms[0 if t < 100 else 1] |= detector.total(part, spent=True) >= 20
    # At most 5 % in truth: 8 % is three standard errors above.
    assert alarms[0].mean() < 0.08
    assert alarms[1].mean() > 0.95
    bet = int(detector.flow[0, 0].argmax())
    assert bet < len(STAKES)  # outcomes more frequent than predicted
    assert abs(detector.start[0, 0, bet] - 101) <= 5


def test_the_interval_covers_a_moving_mean_at_all_times():
    rng = np.random.default_rng(2)
    running, missed = Running.new(300, 1), np.zeros(300, bool)
    truth, n = np.zeros(300), 0
    for t in range(150):
        score = rng.beta(1, 2, (300, 20))
        p = np.clip(score + 0.1 * np.sin(t / 9), 0, 1)
        running.update(moments_of(score, rng.random(score.shape) < p))
        truth, n = truth + (score - p).sum(axis=1), n + 20
        _, low, high = running.interval(np.log(2 / 0.05))
        missed |= (truth / n < low[:, 0]) | (truth / n > high[:, 0])
    assert missed.mean() < 0.05
