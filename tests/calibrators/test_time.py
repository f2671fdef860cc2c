"""Trust that is judged forward in time."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from cases.luck import log_loss
from varcal import VariableCalibratedClassifier, VariableCalibrator
from varcal.calibrators.variable.dependence import hashed, make_folds
from varcal.exceptions import InputError, VarcalWarning


def drifting(n=4000, seed=0, *, lasting=0.0):
    """Return rows of 200 days in which the effect of x turns around, and that of u lasts."""
    rng = np.random.default_rng(seed)
    day = rng.integers(0, 200, n)
    x, u = rng.normal(size=n), rng.normal(size=n)
    p = expit(rng.normal(-0.5, 1.2, n))
    passing = np.where(day < 100, 0.9, -0.9)
    y = rng.random(n) < expit(logit(p) + passing * x + lasting * u)
    return p, y.astype(int), {"x": x, "u": u}, day


def test_an_effect_that_does_not_last_is_not_trusted():
    p, y, v, day = drifting()
    early = day < 160
    now = {name: column[early] for name, column in v.items()}
    later = {name: column[~early] for name, column in v.items()}
    fits = [
        VariableCalibrator(trees=False).fit(p[early], y[early], now, **how)
        for how in ({"blocks": False}, {"time": day[early]})
    ]
    raw = log_loss(y[~early], p[~early])
    losses = [log_loss(y[~early], fit.predict_proba(p[~early], later)[:, 1]) for fit in fits]
    assert losses[1] < raw + 0.002 < losses[0]


def test_an_effect_that_lasts_is_found():
    p, y, v, day = drifting(lasting=1.0)
    fit = VariableCalibrator().fit(p, y, {"u": v["u"]}, time=day)
    assert fit.variables_share_ == 1
    assert (fit.judged_.how, fit.judged_.n_units) == ("time", 5)
    words = "Shrinkage was judged forward in time: on 5 periods, by models of earlier rows."
    assert words in str(fit.describe())


def test_dates_texts_and_numbers_are_the_same_time():
    p, y, v, day = drifting(800)
    date = pd.Timestamp("2024-01-01") + pd.to_timedelta(day, "D")
    answers = [
        VariableCalibrator().fit(p, y, v, time=time).predict_proba([0.3], {"x": [1], "u": [0]})
        for time in (day, date, date.strftime("%d.%m.%Y"), pd.Series(date))
    ]
    named = VariableCalibrator().fit(p, y, {**v, "day": day}, time="day")
    assert np.ptp(answers) < 1 and all((each == answers[0]).all() for each in answers)
    assert named.judged_ == VariableCalibrator().fit(p, y, v, time=day).judged_


def test_many_classes_and_weights():
    rng = np.random.default_rng(0)
    p, day = rng.dirichlet([2, 2, 2], 900), rng.integers(0, 60, 900)
    y = (p.cumsum(axis=1) < rng.random((900, 1))).sum(axis=1)
    fit = VariableCalibrator().fit(p, y, time=day, sample_weight=rng.integers(0, 3, 900))
    assert fit.judged_.how == "time"


def test_with_groups_a_held_out_group_does_not_fit():
    rng = np.random.default_rng(0)
    p, time, groups = rng.random(400), rng.random(400), rng.integers(0, 30, 400)
    folds = make_folds(hashed([p]), (p > 0.5).astype(int), np.ones(400), groups, time)
    for train, held in folds.splits():
        assert time[train].max() < time[held].min()
        assert not np.isin(groups[train], groups[held]).any()
    fit = VariableCalibrator().fit(p, rng.random(400) < p, groups=np.arange(400) // 2, time=time)
    assert fit.judged_.how == "time and groups"
    assert "by models of earlier rows, and on other groups." in str(fit.describe())


def test_few_times_leave_the_scores_as_they_are():
    p, y, v, day = drifting(600)
    with pytest.warns(VarcalWarning, match="time holds 3 instants; at least 5 are needed"):
        fit = VariableCalibrator().fit(p, y, v, time=day % 3)
    assert fit.predict_proba([0.3], {"x": [1], "u": [0]})[0, 1] == pytest.approx(0.3)


def test_a_classifier_passes_time_on():
    p, y, v, day = drifting(900)
    X = np.column_stack([logit(p), v["x"]])
    cross = VariableCalibratedClassifier(LogisticRegression(), variables=1).fit(X, y, time=day)
    frozen = FrozenEstimator(LogisticRegression().fit(X[:100], y[:100]))
    fit = VariableCalibratedClassifier(frozen, variables=1).fit(X, y, time=day)
    assert cross.calibrator_.judged_.how == fit.calibrator_.judged_.how == "time"
    blocked = VariableCalibratedClassifier(frozen, variables=1).fit(X, y, blocks=day)
    assert blocked.calibrator_.judged_.how == "blocks"
    with pytest.raises(InputError, match="time is the string 'day'"):
        VariableCalibratedClassifier(frozen).fit(X, y, time="day")


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ([1.0, None, *range(98)], "time is missing: None at row 1"),
        (["2024-01-01", None] * 50, r"time is missing: None at row 1 \(50 such rows\)"),
        (["2024-01-01"] * 99 + ["soon"], "time is neither a date nor a number: 'soon' at row 99"),
        (["03/04/2024"] * 100, "day and month cannot be told apart"),
        ([np.inf, *range(99)], "time is infinite: inf at row 0"),
        (range(7), "lengths differ: p 100, time 7"),
        ("month", "time: no column 'month' in X"),
    ],
)
def test_errors(time, message):
    p = np.linspace(0.1, 0.9, 100)
    with pytest.raises(InputError, match=message) as caught:
        VariableCalibrator().fit(p, p > 0.5, {"day": np.arange(100)}, time=time)
    assert caught.value.argument == "time"
