"""Decomposed scores against model-diagnostics and scikit-learn; intervals against a known truth."""

import numpy as np
import pytest
from model_diagnostics.scoring import LogLoss, SquaredError
from model_diagnostics.scoring import decompose as peer
from scipy.special import expit
from sklearn.metrics import brier_score_loss, log_loss

import varcal as vc

PARTS = ("miscalibration", "discrimination", "uncertainty")


def rows(n, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) * 1.5
    return (rng.random(n) < expit(0.4 + 0.6 * z)).astype(int), expit(z), rng.uniform(0.5, 2, n)


@pytest.mark.parametrize("rule", ["log", "brier"])
@pytest.mark.parametrize("weighted", [False, True])
def test_equal_to_model_diagnostics(rule, weighted):
    y, p, weight = rows(2000, 1)
    p = p.round(2).clip(0.01, 0.99)  # ties
    w = weight if weighted else None
    found = vc.decompose(y, p, rule=rule, sample_weight=w)
    scoring = {"log": LogLoss(), "brier": SquaredError()}[rule]
    theirs = peer(y.astype(float), p, weights=w, scoring_function=scoring)
    for name in (*PARTS, "score"):
        assert getattr(found, name).value == pytest.approx(theirs[name][0], abs=1e-10), name
    metric = {"log": log_loss, "brier": brier_score_loss}[rule]
    assert found.score.value == pytest.approx(metric(y, p, sample_weight=w))


@pytest.mark.parametrize("rule", ["log", "brier"])
def test_intervals_hold_the_truth(rule):
    big, truth = rows(400_000, 0), {}
    c = expit(0.4 + 0.6 * np.log(big[1] / (1 - big[1])))

    def score(q):
        if rule == "log":
            return -(c * np.log(q) + (1 - c) * np.log1p(-q)).mean()
        return (c * (1 - q) ** 2 + (1 - c) * q**2).mean()

    rate = np.full(len(c), c.mean())
    truth = {"miscalibration": score(big[1]) - score(c), "discrimination": score(rate) - score(c)}
    truth |= {"uncertainty": score(rate), "score": score(big[1])}
    held, off = dict.fromkeys(truth, 0), dict.fromkeys(truth, 0.0)
    for seed in range(60):
        y, p, _ = rows(1000, 100 + seed)
        found = vc.decompose(y, p, rule=rule)
        for name, value in truth.items():
            part = getattr(found, name)
            held[name] += part.low <= value <= part.high
            off[name] += (part.debiased - value) / 60
    assert min(held.values()) >= 52  # at 93 % of 60, fewer are seen once in 100 runs
    plain = np.mean(
        [vc.decompose(*rows(1000, s)[:2], rule=rule).miscalibration.value for s in range(20)]
    )
    assert abs(off["miscalibration"]) < (plain - truth["miscalibration"]) / 2


def test_a_certain_score_that_was_wrong_is_infinitely_bad():
    found = vc.decompose([0, 1, 0, 1], [0.2, 0.8, 1.0, 0.6])
    assert found.score.value == np.inf and found.uncertainty.value == pytest.approx(np.log(2))
    assert "Log-loss of 4 rows" in repr(found)
    assert found.to_dict()["uncertainty"]["value"] == found.uncertainty.value


def test_more_classes_are_refused():
    with pytest.raises(vc.exceptions.InputError, match="y has 3 classes; scores of two"):
        vc.decompose([0, 1, 2], np.full((3, 3), 1 / 3))
