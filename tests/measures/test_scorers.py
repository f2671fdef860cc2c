import pickle

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB

import varcal as vc
from varcal.exceptions import InputError


@pytest.fixture(scope="module")
def cancer():
    data = load_breast_cancer(as_frame=True)
    return data.data, data.target


def test_scorer_is_minus_the_metric(cancer):
    X, y = cancer
    model = GaussianNB().fit(X, y)
    p = model.predict_proba(X)
    assert vc.ece_scorer(norm=2)(model, X, y) == -vc.ece(y, p, norm=2)
    by_name = vc.vece_scorer("mean radius")(model, X, y)
    assert by_name == -vc.vece(y, p, X["mean radius"]) == vc.vece_scorer(0)(model, X, y)
    assert vc.vece_scorer(["mean radius", 1])(model, X, y) == -vc.vece(y, p, X.iloc[:, :2])
    w = np.arange(len(y)) + 1.0
    assert vc.ece_scorer()(model, X, y, sample_weight=w) == -vc.ece(y, p, sample_weight=w)
    scorer = vc.vece_scorer(0, n_bins=5)
    assert pickle.loads(pickle.dumps(scorer))(model, X, y) == scorer(model, X, y)


def test_in_cross_validation_and_search_with_any_labels(cancer):
    X, y = cancer
    labels = np.where(y == 1, "benign", "malignant")
    scores = cross_val_score(GaussianNB(), X, labels, scoring=vc.vece_scorer("mean area"))
    assert scores.shape == (5,) and (scores < 0).all()
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-1]}, scoring=vc.ece_scorer())
    assert search.fit(X, labels).best_score_ < 0
    iris = load_iris(as_frame=True)
    model = LogisticRegression(max_iter=500)
    assert (cross_val_score(model, iris.data, iris.target, scoring=vc.ece_scorer()) <= 0).all()


def test_names_and_positions_of_columns(cancer):
    X, y = cancer
    model, table = GaussianNB().fit(X.to_numpy(), y), X.to_numpy()
    expected = vc.vece_scorer(1)(model, table, y)
    for position in (np.int64(1), np.array([1]), 1 - X.shape[1]):
        assert vc.vece_scorer(position)(model, table, y) == expected
    for position in (30, -31):
        with pytest.raises(InputError, match=f"position {position}, but X has 30 columns"):
            vc.vece_scorer(position)(model, table, y)
    with pytest.raises(InputError, match="without names"):
        vc.vece_scorer("mean radius")(model, table, y)
    with pytest.raises(InputError, match="did you mean 'mean radius'"):
        vc.vece_scorer("mean radios")(GaussianNB().fit(X, y), X, y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: vc.ece_scorer(n_bin=5), "no option 'n_bin'\nhint: did you mean 'n_bins'"),
        (
            lambda: vc.ece_scorer(classes=[0, 1]),
            "no option 'classes'\nhint: the options are event,",
        ),
        (lambda: vc.vece_scorer([0, 0]), "names a column twice: [0, 0]"),
        (lambda: vc.vece_scorer([]), "variables is empty"),
        (lambda: vc.vece_scorer([0, None]), "variables is [0, None]"),
    ],
)
def test_wrong_options_are_refused_when_the_scorer_is_made(make, message):
    with pytest.raises(InputError) as caught:
        make()
    assert message in str(caught.value)
