"""The meta-estimator: scikit-learn's own checks, pipelines, searches, frames, routing."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from varcal.calibrators import BetaCalibrator, VariableCalibratedClassifier, VariableCalibrator
from varcal.exceptions import InputError, VarcalWarning


@parametrize_with_checks([VariableCalibratedClassifier(LogisticRegression())], legacy=True)
@pytest.mark.filterwarnings("ignore::varcal.exceptions.VarcalWarning")
def test_all_of_scikit_learns_checks(estimator, check):
    check(estimator)


def people(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.uniform(18, 80, n), "x": rng.normal(size=n)})
    y = rng.random(n) < expit(2 * frame["x"] * (frame["age"] < 45))
    return frame, np.where(y, "yes", "no")


def test_a_frozen_estimator_is_calibrated_and_not_touched():
    X, y = people()
    model = LogisticRegression().fit(X[:600], y[:600])
    held = model.coef_.copy()
    fit = VariableCalibratedClassifier(FrozenEstimator(model), variables=["age"]).fit(
        X[600:], y[600:]
    )
    direct = VariableCalibrator().fit(model.predict_proba(X[600:]), y[600:], X[["age"]][600:])
    assert (fit.predict_proba(X) == direct.predict_proba(model.predict_proba(X), X[["age"]])).all()
    assert (model.coef_ == held).all()
    assert fit.classes_.tolist() == ["no", "yes"]
    assert fit.n_features_in_ == 2
    assert fit.feature_names_in_.tolist() == ["age", "x"]
    assert str(fit.describe()).startswith("VariableCalibrator.")


def test_cross_fitting_matches_its_definition():
    X, y = people(400)
    cv = KFold(4, shuffle=True, random_state=0)
    fit = VariableCalibratedClassifier(LogisticRegression(), variables="age", cv=cv).fit(X, y)
    p = np.empty((400, 2))
    for train, test in cv.split(X):
        p[test] = LogisticRegression().fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])
    calibrator = VariableCalibrator().fit(p, y, X[["age"]])
    full = LogisticRegression().fit(X, y).predict_proba(X)
    assert fit.predict_proba(X) == pytest.approx(calibrator.predict_proba(full, X[["age"]]))


def test_a_name_that_an_earlier_step_dropped_gets_a_hint():
    X, y = people(300)
    inner = VariableCalibratedClassifier(LogisticRegression(), variables="age", cv=2)
    with pytest.raises(InputError, match=r"names the column 'age'.*\n.*set_output"):
        make_pipeline(StandardScaler(), inner).fit(X, y)
    make_pipeline(StandardScaler().set_output(transform="pandas"), inner).fit(X, y)
    make_pipeline(StandardScaler().set_output(transform="polars"), inner).fit(X, y)
    with pytest.raises(InputError, match="did you mean 'age'"):
        clone(inner).set_params(variables="aeg").fit(X, y)
    with pytest.raises(InputError, match="asks for column 7, but X has 2"):
        clone(inner).set_params(variables=7).fit(X, y)
    with pytest.raises(InputError, match="variables must be a name"):
        clone(inner).set_params(variables=[]).fit(X, y)
    with pytest.raises(InputError, match=r"variables holds 1\.5"):
        clone(inner).set_params(variables=[1.5]).fit(X, y)


class Deaf(LogisticRegression):
    """A classifier without weights and without probabilities."""

    predict_proba = decision_function = property()

    def fit(self, X, y):
        return super().fit(X, y)


def test_missing_features_of_the_estimator_are_reported():
    X, y = people(200)
    with pytest.raises(InputError, match="neither predict_proba nor decision_function"):
        VariableCalibratedClassifier(Deaf(), cv=2).fit(X, y)
    with pytest.warns(VarcalWarning, match="takes no sample_weight"), pytest.raises(InputError):
        VariableCalibratedClassifier(Deaf(), cv=2).fit(X, y, sample_weight=np.ones(200))
    with pytest.raises(InputError, match="calibrator must be a calibrator of varcal"):
        VariableCalibratedClassifier(LogisticRegression(), calibrator="beta").fit(X, y)
    with pytest.raises(InputError, match=r"got 'prefit'\nhint: .*FrozenEstimator\(model\)"):
        VariableCalibratedClassifier(LogisticRegression(), cv="prefit").fit(X, y)
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    with pytest.raises(InputError, match="none of the estimator's classes"):
        VariableCalibratedClassifier(frozen).fit(X, np.where(np.arange(200) == 9, "maybe", y))
    rare = np.where(np.arange(200) < 3, "rare", y)
    with pytest.raises(InputError, match="3 rows of the class 'rare', fewer than the 5 folds"):
        VariableCalibratedClassifier(LogisticRegression(), cv=5).fit(X, rare)
    assert VariableCalibratedClassifier(LogisticRegression()).fit(X, rare).predict(X).size == 200
    rare = np.where(np.arange(200) < 1, "rare", y)
    with pytest.raises(InputError, match="1 rows of the class 'rare', fewer than the 2 folds"):
        VariableCalibratedClassifier(LogisticRegression()).fit(X, rare)


def test_v_may_be_separate_from_x():
    X, y = people(300)
    apart = VariableCalibratedClassifier(LogisticRegression(), cv=2)
    fit = apart.fit(X[["x"]], y, variables=X["age"])
    inside = VariableCalibratedClassifier(LogisticRegression(), cv=2)
    inside.fit(X[["x"]], y, variables={"age": X["age"]})
    assert np.isfinite(fit.predict_proba(X[["x"]], variables=X["age"])).all()
    assert fit.predict(X[["x"]], variables=X["age"]).shape == (300,)
    with pytest.raises(InputError, match="variables is missing, though it was given to fit"):
        fit.predict_proba(X[["x"]])
    with pytest.raises(InputError, match="variables are given to fit, and variables="):
        clone(apart).set_params(variables="x").fit(X, y, variables=X["age"])
    plain = clone(apart).fit(X, y)
    with pytest.raises(InputError, match="variables is given, though it was not given to fit"):
        plain.predict_proba(X, variables=X["age"])


def test_v_and_weights_are_routed():
    X, y = people(300)
    weight = np.random.default_rng(0).uniform(0.5, 2, 300)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        ours = (
            VariableCalibratedClassifier(inner, cv=2)
            .set_fit_request(variables=True, sample_weight=True)
            .set_predict_proba_request(variables=True)
        )
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), ours)
        pipe.fit(X[["x"]], y, variables=X["age"], sample_weight=weight)
        routed = pipe.predict_proba(X[["x"]], variables=X["age"])
    scaled = StandardScaler().fit_transform(X[["x"]])
    plain = VariableCalibratedClassifier(LogisticRegression(), cv=2)
    plain.fit(scaled, y, sample_weight=weight, variables=X["age"])
    assert routed == pytest.approx(plain.predict_proba(scaled, variables=X["age"]))


def crowd(seed=0):
    """Return rows of 60 units, each with its own feature that determines the label."""
    rng = np.random.default_rng(seed)
    units = np.repeat(np.arange(60), 8)
    y = np.repeat(rng.integers(0, 2, 60), 8)
    X = pd.DataFrame({"mark": units, "age": rng.uniform(18, 80, 480)})
    return X, y, np.array([f"unit {k}" for k in units])


@pytest.mark.parametrize("cv", [None, GroupKFold(4), list(GroupKFold(4).split(*crowd()))])
def test_groups_are_not_split(cv):
    X, y, units = crowd()
    seen = []

    class Spy(VariableCalibrator):
        def fit(self, p, y, v, **given):
            seen.append(given["groups"])
            return super().fit(p, y, v, **given)

    forest = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2)
    given = {"variables": "age", "calibrator": Spy(), "cv": cv}
    VariableCalibratedClassifier(forest, **given).fit(X, y, groups=pl.Series(units))
    (groups,) = seen
    assert len(groups) == len(y) and len(np.unique(groups)) == 60
    assert np.bincount(groups).tolist() == [8] * 60


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
def test_groups_that_cannot_be_used_are_refused():
    X, y, units = crowd()
    model = VariableCalibratedClassifier(LogisticRegression(), variables="age")
    with pytest.raises(InputError, match="lengths differ: X 480, groups 479"):
        model.fit(X, y, groups=units[1:])
    with pytest.raises(InputError, match="groups is missing: None at row 3"):
        model.fit(X, y, groups=[None if k == 3 else one for k, one in enumerate(units)])
    with pytest.raises(InputError, match="cv splits 59 of the groups, among them that of row"):
        clone(model).set_params(cv=KFold(3, shuffle=True, random_state=0)).fit(X, y, groups=units)
    with pytest.raises(InputError, match="y has 1 groups with rows of the class 0, fewer than"):
        model.fit(X, y, groups=np.where(y == 0, "one", units))
    with pytest.raises(InputError, match=r"cv is GroupKFold.* 'groups' parameter should not be"):
        clone(model).set_params(cv=GroupKFold(3)).fit(X, y)
    half = np.arange(480) < 240
    with pytest.raises(InputError, match="cv: fold 2 has no rows to test on"):
        clone(model).set_params(cv=[(half, ~half), (half, [])]).fit(X, y)


class Words(ClassifierMixin, BaseEstimator):
    """A classifier of texts whose classes are not sorted."""

    classes_ = np.array([1, 0])

    def __sklearn_is_fitted__(self):
        return True

    def predict_proba(self, X):
        sure = np.array([0.8 if text == "b" else 0.3 for text in X])
        return np.column_stack([sure, 1 - sure])


def test_a_frozen_model_keeps_its_own_order_of_classes():
    texts, y = np.array(["a", "b"] * 60), np.array([0, 1, 1, 1, 0, 0] * 20)
    v = np.arange(120.0)
    model = VariableCalibratedClassifier(FrozenEstimator(Words()), calibrator=BetaCalibrator())
    fit = model.fit(texts, y, variables=v)
    assert fit.classes_.tolist() == [1, 0]
    p = fit.predict_proba(texts, variables=v)
    assert abs(p[:, 0].mean() - y.mean()) < 0.02  # the first column is P(y = 1)
