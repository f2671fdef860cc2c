"""The tree over V: cuts as in scikit-learn, missing values, categories, small leaves."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.tree import DecisionTreeClassifier

from varcal.calibrators import BetaCalibrator, IsotonicCalibrator, TreeCalibrator
from varcal.calibrators.evaluate import evaluate
from varcal.calibrators.tree import Leaf, Split
from varcal.calibrators.tree import _grow as grow
from varcal.calibrators.tree import _leaf_step as leaf_step
from varcal.calibrators.tree import _leaves as leaves
from varcal.exceptions import InputError, VarcalWarning


def cuts(node):
    if isinstance(node, Leaf):
        return []
    return [*cuts(node.left), (node.variable, node.threshold), *cuts(node.right)]


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_cuts_are_those_of_scikit_learn(n_classes, weighted, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(700, 4)).round(2)
    y = np.clip(np.floor(X @ [1, 0.5, 0, -1] + rng.normal(size=700) + n_classes / 2), 0, None)
    y = np.minimum(y.astype(int), n_classes - 1)
    weight = rng.uniform(0.2, 3, 700) if weighted else None
    peer = DecisionTreeClassifier(max_depth=3, min_weight_fraction_leaf=0.05, random_state=0)
    peer.fit(X, y, sample_weight=weight)
    total = 700 if weight is None else weight.sum()
    ours = grow(list(X.T), y, weight, n_classes, max_depth=3, min_weight=0.05 * total)
    tree = peer.tree_
    inner = tree.children_left >= 0
    theirs = sorted(zip(tree.feature[inner], tree.threshold[inner], strict=True))
    found = sorted(cuts(ours))
    assert [k for k, _ in found] == [k for k, _ in theirs]
    assert [t for _, t in found] == pytest.approx([t for _, t in theirs], abs=1e-6)
    same = peer.apply(X)
    found = leaf_of(ours, list(X.T))
    assert len(set(zip(found, same, strict=True))) == len(set(same))


def leaf_of(node, columns):
    return evaluate([leaf_step(node)], np.empty((len(columns[0]), 2)), columns, [0])[:, 0]


def test_thresholds_keep_double_precision():
    base = 1.7e18
    v = base + 1024.0 * np.arange(200)
    y = (np.arange(200) >= 120).astype(int)
    node = grow([v], y, None, 2, max_depth=1, min_weight=1)
    assert v[119] < node.threshold <= v[120]


def test_infinite_values_are_assigned_to_a_branch():
    v = np.r_[np.full(20, -np.inf), np.zeros(20), np.full(20, np.inf)]
    y = np.repeat([0, 1, 0], 20)
    node = grow([v], y, None, 2, max_depth=2, min_weight=1)
    assert len(set(leaf_of(node, [v]))) == 3


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


def test_few_missing_values_go_to_the_larger_branch():
    rng, p = sample()
    v = rng.uniform(size=1500)
    y = rng.random(1500) < expit(logit(p) + np.where(v > 0.8, 2, 0))
    v[:3] = np.nan
    fit = TreeCalibrator(max_depth=1).fit(p, y, v)
    assert fit.tree_.other == "left"
    assert (fit.predict_proba([0.3], [np.nan]) == fit.predict_proba([0.3], [0.1])).all()
    plain = TreeCalibrator(max_depth=1).fit(p[3:], y[3:], v[3:])
    assert (plain.predict_proba([0.3], [np.nan]) == plain.predict_proba([0.3], [0.1])).all()


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


def test_categories_of_many_classes_are_split_too():
    rng = np.random.default_rng(0)
    v = rng.choice(list("abcdef"), 900)
    truth = np.where(np.isin(v, list("ace")), 0, rng.integers(1, 3, 900))
    p = np.full((900, 3), 1 / 3)
    fit = TreeCalibrator(max_depth=1).fit(p, truth, v)
    q = fit.predict_proba(p[:2], ["a", "b"])
    assert q[0, 0] > 0.9 and q[1, 0] < 0.1


def test_frames_of_any_library_give_the_same_tree(make_frame):
    rng, p = sample()
    age, income = rng.integers(18, 90, 1500), rng.lognormal(size=1500)
    y = rng.random(1500) < expit(logit(p) + (age > 50) - (income > 1))
    array = np.column_stack([age, income])
    expected = TreeCalibrator().fit(p, y, array).predict_proba(p, array)
    fit = TreeCalibrator().fit(p, y, make_frame({"age": age, "income": income}))
    swapped = make_frame({"income": income, "extra": age, "age": age})
    assert (fit.predict_proba(p, swapped) == expected).all()


def test_arrays_and_frames_can_be_mixed_by_position():
    rng, p = sample(300)
    frame = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    y = rng.random(300) < p
    fit = TreeCalibrator().fit(p, y, frame)
    assert (fit.predict_proba(p, frame) == fit.predict_proba(p, frame.to_numpy())).all()


def test_dates_are_variables():
    rng, p = sample(600)
    day = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(600), unit="D"))
    y = rng.random(600) < expit(logit(p) + np.where(np.arange(600) > 300, 2, -1))
    fit = TreeCalibrator(max_depth=1).fit(p, y, day)
    q = fit.predict_proba([0.5, 0.5], pd.Series(pd.to_datetime(["2024-03-01", "2025-06-01"])))
    assert logit(q[:, 1]) == pytest.approx([-1, 2], abs=0.5)
    with pytest.raises(InputError, match="holds numbers, but the calibrator was fitted on dates"):
        fit.predict_proba([0.5], [7.0])


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


def test_borrowing_ranges_from_the_leaf_to_all_rows():
    rng, p = sample()
    v = rng.normal(size=1500)
    y = rng.random(1500) < expit(logit(p) + np.where(v > 0, 1, -1))
    whole = BetaCalibrator().fit(p, y).predict_proba(p)
    gaps = []
    for borrow in (0, 20, 1000, 1e9):
        q = TreeCalibrator(max_depth=1, borrow=borrow).fit(p, y, v).predict_proba(p, v)
        gaps.append(np.abs(q - whole).max())
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[-1] < 1e-6


def test_any_score_based_calibrator_can_be_used_in_leaves():
    rng, p = sample()
    v = rng.normal(size=1500)
    y = rng.random(1500) < expit(logit(p) + (v > 0))
    fit = TreeCalibrator(IsotonicCalibrator(), max_depth=1, borrow=0).fit(p, y, v)
    cut = fit.tree_.threshold
    expected = IsotonicCalibrator().fit(p[v >= cut], y[v >= cut]).predict_proba(p[v >= cut])
    assert (fit.predict_proba(p[v >= cut], v[v >= cut]) == expected).all()


def test_description_gives_ranges_and_counts():
    rng, p = sample()
    age = rng.uniform(20, 80, 1500)
    y = rng.random(1500) < expit(logit(p) + np.where(age < 40, -2, np.where(age < 60, 0, 2)))
    fit = TreeCalibrator(max_depth=2, min_leaf=0.2).fit(p, y, {"age": age})
    frame = fit.describe().to_frame()
    assert frame["n"].sum() == 1500
    assert frame["share"].sum() == pytest.approx(1)
    assert frame["where"].iloc[0].startswith("age < ")
    assert frame["where"].iloc[-1].startswith("age ≥ ")
    assert any(" ≤ age < " in where for where in frame["where"])
    assert "A tree on age with" in fit.describe().words
    assert [leaf.n for leaf, _ in leaves(fit.tree_)] == frame["n"].tolist()


def test_the_tree_repairs_what_depends_on_v():
    rng = np.random.default_rng(0)
    n = 40_000
    v, p = rng.uniform(size=n), rng.uniform(0.05, 0.95, n)
    truth = expit(logit(p) + np.where(v < 0.5, 1.0, -1.0))
    y = rng.random(n) < truth
    half = n // 2
    fit = TreeCalibrator().fit(p[:half], y[:half], v[:half])
    q = fit.predict_proba(p[half:], v[half:])[:, 1]
    beta = BetaCalibrator().fit(p[:half], y[:half]).predict_proba(p[half:])[:, 1]
    assert np.abs(q - truth[half:]).mean() < 0.02 < 0.1 < np.abs(beta - truth[half:]).mean()
