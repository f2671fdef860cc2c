"""Augmented calibration: equal to scikit-learn, independent of units, stable outside the range."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

from varcal.calibrators import AugmentedCalibrator, BetaCalibrator, PlattCalibrator


def sample(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    p, v = rng.uniform(0.02, 0.98, n), rng.normal(50, 12, n)
    y = rng.random(n) < expit(logit(p) + 0.05 * (v - 50))
    return rng, p, v, y


def test_equals_scikit_learn_on_the_same_terms():
    _, p, v, y = sample()
    X = np.column_stack([np.log(p), -np.log1p(-p), v / 100, (v / 100) ** 2])
    peer = LogisticRegression(C=1, tol=1e-13, max_iter=1000, solver="newton-cholesky").fit(X, y)
    fit = AugmentedCalibrator.paper().fit(p, y, v / 100)
    assert fit.maps_[0].coef == pytest.approx(peer.coef_[0], abs=1e-7)
    assert fit.predict_proba(p, v / 100) == pytest.approx(peer.predict_proba(X), abs=1e-8)


@pytest.mark.parametrize("score", ["beta", "logistic"])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_unit_of_v_does_not_matter(score, degree):
    _, p, v, y = sample()
    one = AugmentedCalibrator(score=score, degree=degree).fit(p, y, v)
    other = AugmentedCalibrator(score=score, degree=degree).fit(p, y, 1e6 * v - 3e8)
    q = other.predict_proba(p, 1e6 * v - 3e8)
    assert q == pytest.approx(one.predict_proba(p, v), abs=1e-7)


def test_a_large_penalty_leaves_the_score_alone():
    _, p, v, y = sample()
    fit = AugmentedCalibrator(l2=1e12).fit(p, y, v)
    assert fit.predict_proba(p, v) == pytest.approx(
        BetaCalibrator().fit(p, y).predict_proba(p), abs=1e-8
    )
    fit = AugmentedCalibrator(score="logistic", l2=1e12, nonnegative=False).fit(p, y, v)
    assert fit.predict_proba(p, v) == pytest.approx(
        PlattCalibrator(smooth_targets=False).fit(p, y).predict_proba(p), abs=1e-8
    )


def test_values_beyond_the_range_count_as_its_ends():
    _, p, v, y = sample()
    fit = AugmentedCalibrator(degree=3).fit(p, y, v)
    far = fit.predict_proba([0.3] * 4, [v.min(), -1e9, -np.inf, v.min() - 1])
    assert far == pytest.approx(far[[0] * 4], abs=0)
    far = fit.predict_proba([0.3] * 3, [v.max(), 1e300, np.inf])
    assert far == pytest.approx(far[[0] * 3], abs=0)


def test_infinite_values_in_the_calibration_rows_count_as_ends():
    _, p, v, y = sample()
    v[:5] = np.inf
    fit = AugmentedCalibrator().fit(p, y, v)
    assert np.isfinite(fit.predict_proba(p, v)).all()


def test_missing_values_have_an_effect_of_their_own():
    rng, p, v, _ = sample(6000)
    gone = rng.random(6000) < 0.3
    y = rng.random(6000) < expit(logit(p) + np.where(gone, 1.5, 0.05 * (v - 50)))
    v[gone] = np.nan
    fit = AugmentedCalibrator().fit(p, y, v)
    q = logit(fit.predict_proba([0.5] * 3, [np.nan, 30, 70])[:, 1])
    assert q == pytest.approx([1.5, -1, 1], abs=0.25)
    assert "v missing" in fit.describe().to_frame()["term"].tolist()


def test_missing_values_unknown_to_the_fit_are_average():
    _, p, v, y = sample()
    fit = AugmentedCalibrator(degree=1).fit(p, y, v)
    assert fit.predict_proba([0.5], [np.nan]) == pytest.approx(
        fit.predict_proba([0.5], [v.mean()]), abs=1e-9
    )


def test_categories_have_effects_and_unseen_ones_none():
    rng, p, v, _ = sample(8000)
    kind = rng.choice(["x", "y", "z"], 8000)
    y = rng.random(8000) < expit(logit(p) + np.select([kind == "x", kind == "y"], [1, -1], 0.0))
    frame = pd.DataFrame({"kind": pd.Categorical(kind), "v": v})
    fit = AugmentedCalibrator().fit(p, y, frame)
    new = pd.DataFrame({"kind": ["x", "y", "z", "never"], "v": 50.0})
    q = logit(fit.predict_proba([0.5] * 4, new)[:, 1])
    assert q[:3] == pytest.approx([1, -1, 0], abs=0.2)
    assert q[1] < q[3] < q[0]


def test_several_variables_and_many_classes():
    rng = np.random.default_rng(0)
    n = 4000
    p = rng.dirichlet([1, 1, 1], n)
    v = rng.normal(size=(n, 2))
    tilted = p * np.exp(np.column_stack([v[:, 0], np.zeros(n), -v[:, 1]]))
    tilted /= tilted.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > tilted.cumsum(axis=1)).sum(axis=1)
    fit = AugmentedCalibrator().fit(p[::2], y[::2], v[::2])
    q = fit.predict_proba(p[1::2], v[1::2])
    assert np.abs(q - tilted[1::2]).mean() < 0.04 < np.abs(p - tilted).mean()
    assert q.sum(axis=1) == pytest.approx(1)
    assert len(fit.describe().to_frame()) == 3 * (2 + 4 + 1)


def test_the_score_never_counts_against_itself():
    rng = np.random.default_rng(1)
    p, v = rng.uniform(0.05, 0.95, 500), rng.normal(size=500)
    y = rng.random(500) < expit(-logit(p) + v)
    fit = AugmentedCalibrator().fit(p, y, v)
    assert (fit.maps_[0].coef[:2] == 0).all()
    free = AugmentedCalibrator(nonnegative=False).fit(p, y, v)
    assert (free.maps_[0].coef[:2] < 0).all()


def test_an_unseen_category_adds_nothing_and_is_not_missing():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 3_000)
    kind = np.array(["a", "b", None], dtype=object)[rng.integers(0, 3, 3_000)]
    y = rng.random(3_000) < np.clip(p + 0.3 * np.equal(kind, None), 0, 1)
    fit = AugmentedCalibrator(score="logistic").fit(p, y, {"kind": kind})
    a, b, missing, unseen = fit.predict_proba([0.5] * 4, {"kind": ["a", "b", None, "c"]})[:, 1]
    names = list(fit.describe().to_frame()["term"])
    shown = dict(zip(names, fit.maps_[0].coef, strict=False))
    # The logit of ½ is 0: what is left is the intercept.
    assert unseen == pytest.approx(1 / (1 + np.exp(-fit.maps_[0].intercept)), abs=1e-12)
    assert shown["kind missing"] > 0.5 and missing > unseen + 0.1 and a != b
