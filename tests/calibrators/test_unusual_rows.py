"""The variable calibrator with certain scores, ties, rare levels, jumps and few rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.metrics import log_loss

import varcal as vc
from varcal.calibrators import PlattCalibrator, TemperatureCalibrator, VariableCalibrator
from varcal.calibrators.variable import many_classes, two_classes
from varcal.exceptions import InputError


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
    other = TemperatureCalibrator().fit(p[:2000], y[:2000], classes=range(4))
    assert log_loss(y[2000:], q) < log_loss(y[2000:], other.predict_proba(p[2000:])) + 0.002
    assert vc.ece(y[2000:], q, classes=range(4)) < 0.035


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


@pytest.mark.parametrize("how", [{}, {"monotone": True}, {"preserve_ranking": True}])
@pytest.mark.parametrize("n", [40, 400])
def test_a_hard_classifier_gets_the_rates_of_its_answers(n, how):
    rng = np.random.default_rng(2)
    p = rng.integers(0, 2, n).astype(float)
    y = rng.random(n) < np.where(p > 0, 0.8, 0.2)
    q = VariableCalibrator(**how).fit(p, y).predict_proba([0.0, 1.0])[:, 1]
    assert q == pytest.approx([y[p == 0].mean(), y[p == 1].mean()], abs=0.2 if n == 40 else 0.01)


@pytest.mark.parametrize("size", [1e-308, 1e-30, 1e300])
def test_the_size_of_a_variable_does_not_matter(size):
    rng = np.random.default_rng(8)
    p, v = rng.uniform(0.05, 0.95, 600), rng.normal(size=600)
    y = (rng.random(600) < expit(logit(p) + 1.5 * np.sin(2 * v))).astype(int)
    usual = VariableCalibrator().fit(p, y, v).predict_proba(p, v)
    scaled = VariableCalibrator().fit(p, y, v * size).predict_proba(p, v * size)
    assert scaled == pytest.approx(usual, abs=0.05)


def rows_with_pairs(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p, v = rng.uniform(0.02, 0.98, n), rng.normal(size=(n, 3))
    eta = 2 * np.sin(4 * p) + 2 * v[:, 0] * p + 1.5 * v[:, 1] * v[:, 2]
    return p, (rng.random(n) < expit(eta)).astype(int), v


@pytest.mark.parametrize(("seed", "n"), [(2, 40), (1, 257), (0, 1500)])
def test_monotone_never_falls_not_even_by_rounding(seed, n):
    p, y, v = rows_with_pairs(seed, n)
    fit = VariableCalibrator(monotone=True).fit(p, y, v)
    near = p[:100]
    score = np.sort(np.concatenate([np.linspace(0, 1, 501), near, np.nextafter(near, 1.0)]))
    rng = np.random.default_rng(5)
    # Rows of one v are spread over the call, so that they are computed in different places.
    turned = rng.permutation(5 * len(score))
    q = np.empty(5 * len(score))
    q[turned] = fit.predict_proba(
        np.repeat(score, 5)[turned], np.tile(v[:5], (len(score), 1))[turned]
    )[:, 1]
    assert np.diff(q.reshape(-1, 5), axis=0).min() >= 0


def rows_of_four_classes(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z, v = rng.normal(size=(n, 4)), rng.normal(size=(n, 2))
    sure = np.exp(0.5 + 0.5 * v[:, :1]) * z
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return p, (sure + rng.gumbel(size=z.shape)).argmax(axis=1), v


@pytest.mark.parametrize("rows", [rows_with_pairs, rows_of_four_classes])
def test_the_order_of_rows_changes_nothing_at_all(rows):
    p, y, v = rows(3, 1500)
    rng = np.random.default_rng(3)
    weight, turned = rng.integers(1, 4, len(p)).astype(float), rng.permutation(len(p))
    first, again = (
        VariableCalibrator().fit(p[k], y[k], v[k], sample_weight=weight[k], blocks=False)
        for k in (slice(None), turned)
    )
    p, _, v = rows(6, 300)
    assert (first.predict_proba(p, v) == again.predict_proba(p, v)).all()
    assert first.terms_ == again.terms_


def few_scores(values, n, seed=0, *, effect=0.7):
    """Return scores of few values, outcomes, a variable of two levels, and the truth."""
    rng = np.random.default_rng(seed)
    p, v = rng.choice(values, n), rng.choice(["a", "b"], n)
    truth = expit(logit(p) + np.where(v == "a", effect, -effect))
    return p, (rng.random(n) < truth).astype(int), {"v": v}, truth


def one_certainty(n, seed=0):
    """Return three classes whose largest probability is always 0.8 and the truth 0.5."""
    rng = np.random.default_rng(seed)
    top = rng.integers(0, 3, n)
    p, truth = np.full((n, 3), 0.1), np.full((n, 3), 0.25)
    p[np.arange(n), top], truth[np.arange(n), top] = 0.8, 0.5
    y = (rng.random((n, 1)) > np.cumsum(truth, axis=1)).sum(axis=1).clip(0, 2)
    return p, y, truth


def test_a_sample_of_tied_rows_suits_both_models(monkeypatch):
    monkeypatch.setattr(two_classes, "MOST_ROWS", 1000)
    monkeypatch.setattr(many_classes, "MOST_ROWS", 1000)
    p, y, v, truth = few_scores([0.2, 0.6, 0.8], 6000)
    q = VariableCalibrator().fit(p, y, v).predict_proba(p, v)[:, 1]
    assert np.abs(q - truth).max() < 0.05
    p, y, truth = one_certainty(6000)
    assert np.abs(VariableCalibrator().fit(p, y).predict_proba(p) - truth).max() < 0.05


def test_monotone_is_for_two_classes():
    p, y, _ = one_certainty(200)
    with pytest.raises(InputError, match="monotone=True needs two classes; y has 3"):
        VariableCalibrator(monotone=True).fit(p, y)


def drawn(world: str, rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    z, v = 1.3 * rng.normal(size=n) - 0.3, rng.uniform(-1, 1, (n, 3))
    if world == "smooth":
        return expit(z), v, expit(0.8 * z + 0.7 * np.sin(2 * v[:, 0]) + 0.6 * v[:, 1] ** 2)
    if world == "jump":
        return expit(z), v, expit(z + 0.9 * np.sign(v[:, 0] - 0.3) + 0.3 * v[:, 1])
    p = rng.binomial(20, expit(1.8 * z)) / 20
    return p, v, expit(logit(0.05 + 0.9 * p) + 0.5 * np.sin(2 * v[:, 0]))


def covered(world: str, seed: int, n: int = 1000) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    p, v, truth = drawn(world, rng, n + 1000)
    fit = VariableCalibrator().fit(p[:n], rng.random(n) < truth[:n], v[:n])
    low, high = (end[:, 1] for end in fit.predict_interval(p[n:], v[n:]))
    inside = (low <= truth[n:]) & (truth[n:] <= high)
    return float(inside.mean()), float((high - low).mean())


@pytest.mark.parametrize(
    ("world", "least", "widest"),
    [("smooth", 0.93, 0.25), ("jump", 0.90, 0.27), ("votes", 0.90, 0.22)],
)
def test_mean_coverage_over_rows(world, least, widest):
    found = np.array([covered(world, seed) for seed in range(6)])
    assert found[:, 0].mean() >= least
    assert found[:, 1].mean() <= widest
