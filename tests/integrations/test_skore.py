"""The check in real reports of skore; run by ``make test-integrations``."""

import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

skore = pytest.importorskip("skore", reason="skore is not installed")


def checked(model, X, y, **options):
    from varcal.integrations.skore import CalibrationCheck

    report = skore.EstimatorReport(model, X_test=X, y_test=y)
    report.checks.add([CalibrationCheck(**options)])
    found = report.checks.summarize().frame()
    return found[found["code"] == "VARCAL001"].iloc[0]


@pytest.fixture(scope="module")
def data():
    return load_breast_cancer(return_X_y=True, as_frame=True)


def test_an_issue_names_what_is_wrong(data):
    X, y = data
    model = GaussianNB().fit(X[:300], y[:300])
    found = checked(model, X[300:], y[300:], limit=0.001)
    assert found["section"] == "issue"
    assert "P(target = 1)" in found["explanation"]
    assert checked(model, X[300:], y[300:], limit=0.5)["section"] == "passed"


def test_a_regressor_is_not_judged(data):
    X, y = data
    found = checked(LinearRegression().fit(X[:300], y[:300]), X[300:], y[300:])
    assert found["section"] == "not_applicable"
    assert "not a classifier" in found["explanation"]
