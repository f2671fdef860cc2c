"""Many classes and few rows: no worse than a plain temperature, and better in log-loss."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from varcal import VariableCalibrator, ece
from varcal.calibrators import TemperatureCalibrator
from varcal.calibrators.regression import softmax


def noisy_digits(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    turned = rng.permutation(len(y))
    X, y = (X + rng.normal(0, 3, X.shape))[turned], y[turned]
    model = LogisticRegression(C=0.01, max_iter=200).fit(X[:400], y[:400])
    v = np.column_stack([X.mean(axis=1), X.std(axis=1)])
    return model.predict_proba(X[400:]), y[400:], v[400:]


def test_no_worse_than_a_temperature_on_ten_classes():
    gaps = []
    for seed in range(8):
        p, y, v = noisy_digits(seed)
        figures = []
        for calibrator in (VariableCalibrator(), TemperatureCalibrator()):
            calibrator.fit(p[:400], y[:400], v[:400], classes=range(10))
            q = calibrator.predict_proba(p[400:], v[400:])
            loss = -np.log(q[np.arange(len(q)), y[400:]]).mean()
            figures.append([ece(y[400:], q, classes=range(10)), loss])
        gaps.append(np.subtract(*figures))
    more_ece, more_loss = np.mean(gaps, axis=0)
    assert more_ece < 0.006
    assert more_loss < -0.01


def softened(rng: np.random.Generator, n: int, power: float) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities whose right inverse temperature is `power`, and classes."""
    logits = rng.normal(size=(n, 4))
    y = (power * logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return softmax(logits), y


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_a_temperature_is_applied_as_far_as_it_is_signal(power):
    found = []
    for seed in range(10):
        p, y = softened(np.random.default_rng(seed), 150, power)
        fit = VariableCalibrator().fit(p, y, classes=range(4))
        q = fit.predict_proba([[0.7, 0.1, 0.1, 0.1]])[0]
        found.append(np.log(q[0] / q[1]) / np.log(7))
    assert abs(np.mean(found) - power) < 0.15 * power
    # Where scores are right already, most draws leave them exactly as they are.
    assert power != 1.0 or np.isclose(found, 1.0).sum() >= 5
