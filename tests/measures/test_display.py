"""The display draws on a given axes and reads columns as scikit-learn's does."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB

import varcal as vc

display = vc.VariableCalibrationDisplay


@pytest.fixture(scope="module")
def model():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return GaussianNB().fit(X[:300], y[:300]), X[300:], y[300:]


def test_a_column_by_name_by_position_and_as_an_array(model):
    fitted, X, y = model
    _, ax = plt.subplots()
    by_name = display.from_estimator(fitted, X, y, "mean area", ax=ax)
    assert by_name.ax_ is ax and by_name.figure_ is ax.figure
    assert by_name.ax_.get_xlabel().startswith("mean area")
    position = list(X.columns).index("mean area")
    for v in (position, X["mean area"]):
        np.testing.assert_array_equal(
            display.from_estimator(fitted, X, y, v).curve.gap, by_name.curve.gap
        )
    p = fitted.predict_proba(X)[:, 1]
    direct = display.from_predictions(y, p, X["mean area"])
    np.testing.assert_allclose(direct.curve.gap, by_name.curve.gap, atol=1e-12)
    assert direct.curve.event == "positive"
    plt.close("all")


def test_margins_are_refused(model):
    _, X, y = model
    with pytest.raises(vc.exceptions.InputError, match="no predict_proba: RidgeClassifier"):
        display.from_estimator(RidgeClassifier().fit(X, y), X, y, "mean area")
