"""Audits of fitted classifiers: probabilities or margins, and variables that they do not see."""

import numpy as np
import polars as pl
import pytest
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC, LinearSVC

import varcal as vc
from varcal.calibrators.cross_fitting import sigmoid_of_margins
from varcal.exceptions import InputError


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True, as_frame=True)


def test_straight_from_an_estimator(cancer):
    X, y = cancer
    some = X[["mean radius", "mean area"]]
    small = GaussianNB().fit(some[:300], y[:300])
    by_hand = vc.audit(y[300:], small.predict_proba(some[300:]), some[300:])
    assert repr(vc.audit_estimator(small, some[300:], y[300:])) == repr(by_hand)
    array = LogisticRegression(max_iter=5000).fit(some.to_numpy()[:300], y[:300])
    rows = vc.audit_estimator(array, some.to_numpy()[300:], y[300:]).rows
    assert {row.variable for row in rows} == {"v0", "v1"}


def test_what_is_no_fitted_classifier_is_refused(cancer):
    X, y = cancer
    with pytest.raises(InputError, match="model has no classes_: GaussianNB"):
        vc.audit_estimator(GaussianNB(), X, y)

    class Labels:
        classes_ = np.array([0, 1])

    with pytest.raises(InputError, match="model has neither predict_proba nor decision_function"):
        vc.audit_estimator(Labels(), X, y)


@pytest.mark.parametrize("kind", ["polars", "series", "array"])
def test_variables_that_the_model_does_not_see(cancer, kind):
    X, y = cancer
    seen, hidden = X[["mean radius", "mean texture"]], X["mean area"]
    model = GaussianNB().fit(seen[:300], y[:300])
    rest = hidden[300:]
    v = {
        "polars": pl.from_pandas(rest.to_frame()),
        "series": rest,
        "array": rest.to_numpy(),
    }[kind]
    name = "v" if kind == "array" else "mean area"
    found = vc.audit_estimator(model, seen[300:], y[300:], variables=v, ladder="none")
    assert {row.variable for row in found} == {"mean radius", "mean texture", name}
    alone = vc.audit(y[300:], model.predict_proba(seen[300:]), rest, ladder="none")
    assert found.row(name).error.value == alone.rows[0].error.value


def test_names_never_clash_silently(cancer):
    X, y = cancer
    model = GaussianNB().fit(X[:300], y[:300])
    with pytest.raises(
        InputError, match="variables has columns that X has, too: 'mean area'"
    ) as caught:
        vc.audit_estimator(model, X[300:], y[300:], variables=X[["mean area"]][300:])
    assert "rename them" in caught.value.hint
    array = GaussianNB().fit(X.to_numpy()[:300, :2], y[:300])
    rest = X.to_numpy()[300:]
    found = vc.audit_estimator(array, rest[:, :2], y[300:], variables=rest[:, 5:7], ladder="none")
    assert {row.variable for row in found} == {"x0", "x1", "v0", "v1"}


@pytest.mark.parametrize("model", [LinearSVC(), Perceptron(), RidgeClassifier(), SVC()])
def test_margins_become_probabilities_that_the_note_explains(cancer, model):
    X, y = cancer
    X = (X - X.mean()) / X.std()
    model.fit(X[:200], y[:200])
    found = vc.audit_estimator(model, X[200:], y[200:], ladder="none")
    assert found.notes[0] == (
        f"{type(model).__name__} has no predict_proba: the audit is of a sigmoid of its "
        "decision_function, cross-fitted on these rows."
    )
    # What a user of scikit-learn would do by hand, with other folds.
    calibrated = CalibratedClassifierCV(FrozenEstimator(model))
    by_hand = cross_val_predict(calibrated, X[200:], y[200:], method="predict_proba")
    found_p = sigmoid_of_margins(model.decision_function(X[200:]), y[200:], [0, 1])
    assert np.abs(found_p - by_hand).mean() < 0.02


def test_the_sigmoid_recovers_a_known_truth_without_seeing_a_rows_label():
    rng = np.random.default_rng(1)
    margin = rng.normal(0, 500, 6000)  # as large as the margins of a linear model on raw features
    truth = expit(margin / 200 - 0.5)
    y = (rng.random(6000) < truth).astype(int)
    p = sigmoid_of_margins(margin, y, [0, 1])[:, 1]
    assert np.abs(p - truth).max() < 0.04
    flipped = y.copy()
    flipped[0] = 1 - y[0]
    again = sigmoid_of_margins(margin, flipped, [0, 1], groups=np.arange(6000))[:, 1]
    kept = sigmoid_of_margins(margin, y, [0, 1], groups=np.arange(6000))[:, 1]
    assert again[0] == kept[0] and (again != kept).any()
