"""The variable calibrator with few distinct scores and tied rows."""

import numpy as np
import pytest
from scipy.special import expit, logit

from varcal.calibrators import VariableCalibrator
from varcal.calibrators.variable import many_classes, two_classes
from varcal.exceptions import InputError


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


# ------------------------------------------------------------------ columns that do not vary


@pytest.mark.parametrize("values", [[0.2, 0.8], [0.3, 0.9]])
def test_two_scores_are_repaired_and_so_are_those_between(values):
    p, y, v, truth = few_scores(values, 5000)
    fit = VariableCalibrator().fit(p, y, v)
    assert np.abs(fit.predict_proba(p, v)[:, 1] - truth).max() < 0.04
    between = np.linspace(*values, 15)
    for level, effect in (("a", 0.7), ("b", -0.7)):
        q = fit.predict_proba(between, {"v": [level] * 15})[:, 1]
        assert np.abs(q - expit(logit(between) + effect)).max() < 0.06


def test_nearly_mirrored_scores_are_harmless():
    p, y, v, truth = few_scores([0.2, 0.8], 5000)
    p = p + np.random.default_rng(1).normal(scale=1e-7, size=5000)
    fit = VariableCalibrator().fit(p, y, v)
    assert np.abs(fit.predict_proba(p, v)[:, 1] - truth).max() < 0.05
    q = fit.predict_proba([0.5, 0.5], {"v": ["a", "b"]})[:, 1]
    assert q == pytest.approx(expit([0.7, -0.7]), abs=0.1)


# ------------------------------------------------------------------ folds


@pytest.mark.parametrize(("values", "n"), [([0.3], 1000), ([0.1, 0.5, 0.9], 12_000)])
def test_few_scores_are_repaired_without_variables(values, n):
    rng = np.random.default_rng(0)
    p = rng.choice(values, n)
    truth = expit(logit(p) - 0.8)
    y = rng.random(n) < truth
    fit = VariableCalibrator().fit(p, y)
    assert fit.score_share_ == 1
    assert np.abs(fit.predict_proba(p)[:, 1] - truth).max() < 0.04


@pytest.mark.parametrize("n", [1000, 12_000])
def test_one_certainty_is_repaired(n):
    p, y, truth = one_certainty(n)
    fit = VariableCalibrator().fit(p, y)
    assert fit.score_share_ == 1
    assert np.abs(fit.predict_proba(p) - truth).max() < 0.05


def test_weights_equal_repeated_rows_with_few_ties():
    rng = np.random.default_rng(0)
    n = 600
    p, v, count = rng.uniform(0.05, 0.95, n), rng.normal(size=n), rng.integers(1, 4, n)
    y = (rng.random(n) < expit(logit(p) + 0.3 * v)).astype(int)
    heavy = VariableCalibrator().fit(p, y, v, sample_weight=count)
    long = VariableCalibrator().fit(*(np.repeat(each, count) for each in (p, y, v)))
    assert heavy.variables_share_ == pytest.approx(long.variables_share_, abs=1e-6)
    assert heavy.predict_proba(p, v) == pytest.approx(long.predict_proba(p, v), abs=1e-6)


# ------------------------------------------------------------------ samples


def test_a_sample_of_tied_rows_suits_both_models(monkeypatch):
    monkeypatch.setattr(two_classes, "MOST_ROWS", 1000)
    monkeypatch.setattr(many_classes, "MOST_ROWS", 1000)
    p, y, v, truth = few_scores([0.2, 0.6, 0.8], 6000)
    q = VariableCalibrator().fit(p, y, v).predict_proba(p, v)[:, 1]
    assert np.abs(q - truth).max() < 0.05
    p, y, truth = one_certainty(6000)
    assert np.abs(VariableCalibrator().fit(p, y).predict_proba(p) - truth).max() < 0.05


# ------------------------------------------------------------------ options


def test_monotone_is_for_two_classes():
    p, y, _ = one_certainty(200)
    with pytest.raises(InputError, match="monotone=True needs two classes; y has 3"):
        VariableCalibrator(monotone=True).fit(p, y)
