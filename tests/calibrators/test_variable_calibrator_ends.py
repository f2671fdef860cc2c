"""The variable calibrator with almost certain scores or outcomes, and with curved effects."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.metrics import log_loss

import varcal as vc
from varcal.calibrators import PlattCalibrator, TemperatureCalibrator, VariableCalibrator


def votes(truth, rng, trees=20):
    """Return the share of votes of a small forest, often exactly 0 or 1."""
    return rng.binomial(trees, expit(2.0 * logit(truth))) / trees


def test_scores_of_0_and_1_are_repaired_as_others_are():
    rng = np.random.default_rng(0)
    truth = rng.beta(0.6, 1.0, 6000).clip(0.03, 0.97)
    v = rng.uniform(size=6000)
    truth = expit(logit(truth) + v - 0.5)
    p, y = votes(truth, rng), (rng.random(6000) < truth).astype(int)
    assert 0.05 < (p == 0).mean() < 0.6 and (p == 1).mean() > 0.02
    fit = VariableCalibrator().fit(p[:2000], y[:2000], v[:2000])
    q = fit.predict_proba(p[2000:], v[2000:])[:, 1]
    y, p, truth = y[2000:], p[2000:], truth[2000:]
    for end in (0.0, 1.0):
        assert q[p == end].mean() == pytest.approx(truth[p == end].mean(), abs=0.03)
    assert log_loss(y, q) < log_loss(y, PlattCalibrator().fit(p, y).predict_proba(p))


def test_classes_without_a_vote_may_still_be_true():
    rng = np.random.default_rng(1)
    n = 5000
    truth = rng.dirichlet([0.6] * 4, n)
    y = (truth.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
    p = np.stack([rng.multinomial(10, row) for row in truth]) / 10
    assert (p[np.arange(n), y] == 0).mean() > 0.02
    v = rng.normal(size=n)
    fit = VariableCalibrator().fit(p[:2000], y[:2000], v[:2000], classes=range(4))
    q = fit.predict_proba(p[2000:], v[2000:])
    other = TemperatureCalibrator(eps=1e-4).fit(p[:2000], y[:2000], classes=range(4))
    assert log_loss(y[2000:], q) < log_loss(y[2000:], other.predict_proba(p[2000:])) - 0.02
    assert vc.ece(y[2000:], q, classes=range(4)) < 0.035


def test_certain_rows_stay_certain():
    rng = np.random.default_rng(2)
    v = rng.uniform(-1, 1, 4000)
    y = (rng.random(4000) < expit(25 * v)).astype(int)
    p = rng.uniform(0.3, 0.7, 4000)
    q = VariableCalibrator().fit(p[:1500], y[:1500], v[:1500]).predict_proba(p, v)[:, 1]
    truth = expit(25 * v)
    assert np.abs(q - truth)[1500:].mean() < 0.01
    assert q[v > 0.6].min() > 0.97 and q[v < -0.6].max() < 0.03


@pytest.mark.parametrize(
    ("n", "values", "n_levels"), [(600, [0.02, 0.24], 3), (300, [0.4, 0.44], 2)]
)
def test_equal_rows_do_not_leak_their_outcomes_into_the_link(n, values, n_levels):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        p, v = rng.choice(values, n), rng.integers(0, n_levels, n).astype(str)
        truth = expit(logit(p) + 0.8 * (v == "0"))
        y = (rng.random(n) < truth).astype(int)
        q = VariableCalibrator().fit(p, y, v).predict_proba(p, v)[:, 1]
        excess = truth * np.log(truth / q) + (1 - truth) * np.log((1 - truth) / (1 - q))
        assert excess.mean() < 0.02


@pytest.mark.parametrize("how", [{}, {"monotone": True}])
def test_two_scores_have_narrow_intervals(how):
    rng = np.random.default_rng(0)
    p = rng.choice([0.3, 0.7], 400)
    y = rng.random(400) < p**2
    fit = VariableCalibrator(**how).fit(p, y)
    assert fit.predict_proba([0.3, 0.7])[:, 1] == pytest.approx(
        [y[p == 0.3].mean(), y[p == 0.7].mean()], abs=0.03
    )
    low, high = fit.predict_interval([0.3, 0.7])
    assert (high - low).max() < 0.2


@pytest.mark.parametrize("how", [{}, {"monotone": True}, {"preserve_ranking": True}])
@pytest.mark.parametrize("n", [40, 400])
def test_a_hard_classifier_gets_the_rates_of_its_answers(n, how):
    rng = np.random.default_rng(2)
    p = rng.integers(0, 2, n).astype(float)
    y = rng.random(n) < np.where(p > 0, 0.8, 0.2)
    q = VariableCalibrator(**how).fit(p, y).predict_proba([0.0, 1.0])[:, 1]
    assert q == pytest.approx([y[p == 0].mean(), y[p == 1].mean()], abs=0.2 if n == 40 else 0.01)


def test_a_true_class_of_probability_0_is_evidence_against_the_scores():
    rng = np.random.default_rng(6)
    truth = rng.dirichlet([4.0] * 4, 3000)
    y = (truth.cumsum(axis=1) < rng.random(3000)[:, None]).sum(axis=1)
    p = np.where(truth < 0.06, 0.0, truth)
    p /= p.sum(axis=1, keepdims=True)
    assert (p[np.arange(1000), y[:1000]] == 0).sum() in range(1, 30)
    fit = VariableCalibrator().fit(p[:1000], y[:1000], classes=range(4))
    q = fit.predict_proba(p[1000:])
    assert log_loss(y[1000:], q) < log_loss(y[1000:], truth[1000:]) + 0.02


def test_thirty_rows_are_enough_against_absurd_scores():
    rng = np.random.default_rng(7)
    truth = rng.uniform(0.1, 0.9, 2030)
    y = (rng.random(2030) < truth).astype(int)
    p = expit(40 * logit(truth))
    fit = VariableCalibrator().fit(p[:30], y[:30])
    assert fit.score_share_ == 1
    assert log_loss(y[30:], fit.predict_proba(p[30:])) < 0.75 < 3 < log_loss(y[30:], p[30:])


@pytest.mark.parametrize("size", [1e-308, 1e-30, 1e300])
def test_the_size_of_a_variable_does_not_matter(size):
    rng = np.random.default_rng(8)
    p, v = rng.uniform(0.05, 0.95, 600), rng.normal(size=600)
    y = (rng.random(600) < expit(logit(p) + 1.5 * np.sin(2 * v))).astype(int)
    usual = VariableCalibrator().fit(p, y, v).predict_proba(p, v)
    scaled = VariableCalibrator().fit(p, y, v * size).predict_proba(p, v * size)
    assert scaled == pytest.approx(usual, abs=0.05)
