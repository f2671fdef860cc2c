"""Scores of boosters: raw margins and weighted classes."""

import numpy as np
import pytest

import varcal as vc

lightgbm = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
xgboost = pytest.importorskip("xgboost", reason="XGBoost is not installed")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 3))
    y = (rng.random(6000) < 1 / (1 + np.exp(2 - X[:, 0] - X[:, 1] * X[:, 2]))).astype(int)
    return X, y


def margins(name, X, y):
    if name == "lightgbm":
        data = lightgbm.Dataset(X[:3000], y[:3000])
        settings = {"objective": "binary", "scale_pos_weight": 4, "verbose": -1, "num_threads": 1}
        booster = lightgbm.train(settings, data, 30)
        return booster.predict(X[3000:], raw_score=True), booster.predict(X[3000:])
    data = xgboost.DMatrix(X[:3000], y[:3000])
    settings = {"objective": "binary:logistic", "scale_pos_weight": 4, "nthread": 1}
    booster, new = xgboost.train(settings, data, 30), xgboost.DMatrix(X[3000:])
    return booster.predict(new, output_margin=True), booster.predict(new)


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_raw_margins_are_logits(rows, name):
    X, y = rows
    raw, p = margins(name, X, y)
    held = y[3000:]
    assert vc.ece(held, raw, from_logits=True) == pytest.approx(vc.ece(held, p), abs=1e-5)
    audit = vc.audit(held, raw, {"x": X[3000:, 0]}, from_logits=True, ladder="none")
    assert audit.verdict == "repair" and audit.gap > 0.05  # weighted classes: far too high
