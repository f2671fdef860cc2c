"""The paper's calibrators along V: a tree with calibrators in its leaves, and added terms."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from varcal.calibrators import AugmentedCalibrator, BetaCalibrator, PlattCalibrator, TreeCalibrator
from varcal.calibrators.tree import Leaf, Split
from varcal.exceptions import InputError, VarcalWarning


def cuts(node):
    if isinstance(node, Leaf):
        return []
    return [*cuts(node.left), (node.variable, node.threshold), *cuts(node.right)]


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_cuts_are_those_of_scikit_learn(n_classes, weighted):
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(700, 4)).round(2)
    y = np.clip(np.floor(X @ [1, 0.5, 0, -1] + rng.normal(size=700) + n_classes / 2), 0, None)
    y = np.minimum(y.astype(int), n_classes - 1)
    weight = rng.uniform(0.2, 3, 700) if weighted else None
    peer = DecisionTreeClassifier(max_depth=3, min_weight_fraction_leaf=0.05, random_state=0)
    peer.fit(X, y, sample_weight=weight)
    p = rng.dirichlet(np.ones(n_classes), 700)
    ours = TreeCalibrator(min_leaf=0.05).fit(p, y, X, sample_weight=weight)
    inner = peer.tree_.children_left >= 0
    theirs = sorted(zip(peer.tree_.feature[inner], peer.tree_.threshold[inner], strict=True))
    found = sorted(cuts(ours.tree_))
    assert [k for k, _ in found] == [k for k, _ in theirs]
    assert [t for _, t in found] == pytest.approx([t for _, t in theirs], abs=1e-6)


def test_thresholds_keep_double_precision_and_infinite_values_a_branch():
    _, p = sample(200)
    v = 1.7e18 + 1024.0 * np.arange(200)
    fit = TreeCalibrator(max_depth=1).fit(p, np.arange(200) >= 120, v)
    assert v[119] < fit.tree_.threshold <= v[120]
    v = np.repeat([-np.inf, 0.0, np.inf], [60, 80, 60])
    fit = TreeCalibrator(max_depth=2, borrow=1).fit(p, v == 0, v)
    low, middle, high = fit.predict_proba([0.5] * 3, [-np.inf, 0, np.inf])[:, 1]
    assert max(low, high) < 0.2 and middle > 0.8
    v = np.arange(200)
    fit = TreeCalibrator(max_depth=3, borrow=1).fit(p, v // 25 % 2, {"age": v})
    assert max(row["where"].count("age") for row in fit.describe().rows) == 2


def sample(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    return rng, p


def test_missing_values_have_a_branch_of_their_own():
    rng, p = sample(9000)
    v = rng.normal(size=9000)
    v[::3] = np.nan
    shift = np.where(np.isnan(v), 2.0, np.where(v > 0, -1.0, 0.0))
    y = rng.random(9000) < expit(logit(p) + shift)
    fit = TreeCalibrator(max_depth=1).fit(p, y, v)
    assert isinstance(fit.tree_, Split) and isinstance(fit.tree_.other, Leaf)
    assert fit.tree_.other.n == 3000
    q = logit(fit.predict_proba([0.5, 0.5, 0.5], [np.nan, 3.0, -3.0])[:, 1])
    assert q == pytest.approx([2, -1, 0], abs=0.35)
    assert "missing or unseen" in str(fit.describe())


def test_categories_are_split_by_their_outcome_not_their_name():
    rng, p = sample()
    v = rng.choice(["b", "a", "d", "c"], 1500)
    y = rng.random(1500) < expit(logit(p) + np.where(np.isin(v, ["a", "d"]), 1.5, -1.0))
    fit = TreeCalibrator(max_depth=1).fit(p, y, {"grade": v})
    named = {
        tuple(fit.schema_.levels[0][k] for k in side)
        for side in (fit.tree_.left_levels, fit.tree_.right_levels)
    }
    assert named == {("a", "d"), ("b", "c")}
    q = logit(fit.predict_proba([0.5] * 3, {"grade": ["a", "c", "never seen"]})[:, 1])
    assert q[:2] == pytest.approx([1.5, -1.0], abs=0.3)
    assert np.isfinite(q[2])
    assert "grade in {a, d}" in str(fit.describe())


def test_variables_must_be_those_of_the_fit():
    _, p = sample(100)
    frame = pd.DataFrame({"age": np.arange(100.0), "weight": np.arange(100.0)[::-1]})
    y = np.arange(100) % 2
    fit = TreeCalibrator(min_leaf=0.3).fit(p, y, frame)
    with pytest.raises(InputError, match="X is missing: the calibrator was fitted on 'age'"):
        fit.predict_proba(p)
    with pytest.raises(InputError, match="no column 'weight'"):
        fit.predict_proba(p, frame.rename(columns={"weight": "wait"}))
    with pytest.raises(InputError, match="X has 3 columns, but the calibrator was fitted on 2"):
        fit.predict_proba(p, np.ones((100, 3)))
    with pytest.raises(InputError, match="holds categories, but the calibrator was fitted on num"):
        fit.predict_proba(p, frame.assign(age="old"))
    assert np.isfinite(fit.predict_proba(p, frame.assign(age=None))).all()
    with pytest.raises(InputError, match="TreeCalibrator learns from at least one variable"):
        TreeCalibrator().fit(p, y)


def test_leaves_of_one_class_borrow_from_all_rows():
    rng, p = sample(1000)
    v = np.repeat([0.0, 1.0], [850, 150])
    y = np.where(v == 1, True, rng.random(1000) < p)
    fit = TreeCalibrator(max_depth=1).fit(p, y, v)
    q = fit.predict_proba([0.1, 0.1], [0, 1])[:, 1]
    assert q[0] == pytest.approx(0.1, abs=0.06)
    assert 0.6 < q[1] < 1
    with pytest.warns(VarcalWarning, match="a leaf of 150 rows holds a single class"):
        bare = TreeCalibrator(max_depth=1, borrow=0).fit(p, y, v)
    whole = BetaCalibrator().fit(p, y).predict_proba([0.1])
    assert bare.predict_proba([0.1], [1]) == pytest.approx(whole, abs=1e-12)


def tilted(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    p, v = rng.uniform(0.02, 0.98, n), rng.normal(50, 12, n)
    y = rng.random(n) < expit(logit(p) + 0.05 * (v - 50))
    return rng, p, v, y


def test_equals_scikit_learn_on_the_same_terms():
    _, p, v, y = tilted()
    X = np.column_stack([np.log(p), -np.log1p(-p), v / 100, (v / 100) ** 2])
    peer = LogisticRegression(C=1, tol=1e-13, max_iter=1000, solver="newton-cholesky").fit(X, y)
    fit = AugmentedCalibrator.paper().fit(p, y, v / 100)
    assert fit.maps_[0].coef == pytest.approx(peer.coef_[0], abs=1e-7)
    assert fit.predict_proba(p, v / 100) == pytest.approx(peer.predict_proba(X), abs=1e-8)


@pytest.mark.parametrize("score", [BetaCalibrator(), PlattCalibrator()])
@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_unit_of_v_does_not_matter(score, degree):
    _, p, v, y = tilted()
    one = AugmentedCalibrator(score, degree=degree).fit(p, y, v)
    other = AugmentedCalibrator(score, degree=degree).fit(p, y, 1e6 * v - 3e8)
    q = other.predict_proba(p, 1e6 * v - 3e8)
    assert q == pytest.approx(one.predict_proba(p, v), abs=1e-7)


@pytest.mark.parametrize("score", [BetaCalibrator(), PlattCalibrator(), BetaCalibrator(l2=3.0)])
def test_a_large_penalty_leaves_the_calibrator_of_the_score(score):
    _, p, v, y = tilted()
    q = AugmentedCalibrator(score, l2=1e14).fit(p, y, v).predict_proba(p, v)
    assert q == pytest.approx(score.fit(p, y).predict_proba(p), abs=1e-9)


def test_the_score_never_counts_against_itself():
    rng = np.random.default_rng(1)
    p, v = rng.uniform(0.05, 0.95, 500), rng.normal(size=500)
    y = rng.random(500) < expit(-logit(p) + v)
    fit = AugmentedCalibrator().fit(p, y, v)
    assert (fit.maps_[0].coef[:2] == 0).all()
    free = AugmentedCalibrator(BetaCalibrator(nonnegative=False)).fit(p, y, v)
    assert (free.maps_[0].coef[:2] < 0).all()


def test_an_unseen_category_adds_nothing_and_is_not_missing():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.1, 0.9, 3_000)
    kind = np.array(["a", "b", None], dtype=object)[rng.integers(0, 3, 3_000)]
    y = rng.random(3_000) < np.clip(p + 0.3 * np.equal(kind, None), 0, 1)
    fit = AugmentedCalibrator(PlattCalibrator()).fit(p, y, {"kind": kind})
    a, b, missing, unseen = fit.predict_proba([0.5] * 4, {"kind": ["a", "b", None, "c"]})[:, 1]
    names = list(fit.describe().to_frame()["term"])
    shown = dict(zip(names, fit.maps_[0].coef, strict=False))
    # The logit of ½ is 0: what is left is the intercept.
    assert unseen == pytest.approx(1 / (1 + np.exp(-fit.maps_[0].intercept)), abs=1e-12)
    assert shown["kind missing"] > 0.5 and missing > unseen + 0.1 and a != b
