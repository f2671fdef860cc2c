"""Rows that are not independent: blocks of correlated rows, and judgement forward in time."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from varcal import VariableCalibratedClassifier, VariableCalibrator, load
from varcal.exceptions import CorrelatedRowsWarning, InputError, VarcalWarning


def lucky_days(n, seed, luck):
    """Return rows of 336 days, whose logits differ by normal luck; seeds have other luck."""
    rng = np.random.default_rng(seed)
    number = rng.integers(0, 336, n)
    p = expit(rng.normal(-0.5, 1.2, n))
    y = rng.random(n) < expit(logit(p) + luck * rng.normal(size=336)[number])
    v = {"month": number // 28, "day": number % 28, "x": rng.normal(size=n)}
    return SimpleNamespace(p=p, y=y.astype(int), v=v)


@pytest.fixture(scope="module")
def lucky():
    return lucky_days(4000, seed=1, luck=0.8)


@pytest.fixture(scope="module")
def fitted(lucky):
    with pytest.warns(CorrelatedRowsWarning, match="rows of the same month × day are correlated"):
        return VariableCalibrator().fit(lucky.p, lucky.y, lucky.v)


def test_what_was_learned_from_days_is_not_trusted_on_others(lucky, fitted):
    new = lucky_days(20_000, seed=2, luck=0.8)
    raw = log_loss(new.y, new.p)
    assert log_loss(new.y, fitted.predict_proba(new.p, new.v)[:, 1]) < raw + 0.002
    assert fitted.variables_share_ < 0.5


def test_the_description_and_the_file_say_how_it_was_judged(fitted, lucky, tmp_path):
    assert (fitted.judged_.how, fitted.judged_.of) == ("blocks", "month × day")
    assert fitted.judged_.n_units == 336 and 0.02 < fitted.judged_.worth < 0.12
    words = (
        "Shrinkage was judged on held-out blocks of month × day (336), whose rows are correlated."
    )
    assert words in str(fitted.describe())
    fitted.save(tmp_path / "cal.json")
    assert load(tmp_path / "cal.json").judged_ == fitted.judged_
    known = VariableCalibrator().fit(lucky.p, lucky.y, lucky.v, blocks=False)
    assert known.judged_.how == "random" and "judged" not in str(known.describe())


@pytest.mark.parametrize("kind", ["date", "text", "number"])
def test_days_of_a_date_are_found(kind):
    rows = lucky_days(3000, seed=3, luck=0.8)
    number = 28 * rows.v["month"] + rows.v["day"]
    date = pd.Timestamp("2024-01-01") + pd.to_timedelta(number, "D")
    column = {"date": date, "text": date.strftime("%Y-%m-%d"), "number": number}[kind]
    v = pd.DataFrame({"when": column, "x": rows.v["x"]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CorrelatedRowsWarning)
        fit = VariableCalibrator().fit(rows.p, rows.y, v)
    assert fit.judged_.of == ("when" if kind == "number" else "day of when")


def test_without_luck_nothing_changes():
    rng = np.random.default_rng(5)
    v = lucky_days(3000, seed=5, luck=0.0).v
    p = expit(rng.normal(size=3000))
    y = rng.random(3000) < expit(logit(p) + 0.6 * np.sin(v["day"] / 4) + 0.5 * (v["month"] > 6))
    with warnings.catch_warnings():
        warnings.simplefilter("error", VarcalWarning)
        fit = VariableCalibrator().fit(p, y, v)
    known = VariableCalibrator().fit(p, y, v, blocks=False)
    assert fit.judged_.how == "random" and fit.variables_share_ > 0.9
    some = {name: column[:50] for name, column in v.items()}
    assert (fit.predict_proba(p[:50], some) == known.predict_proba(p[:50], some)).all()


def test_luck_of_neighbouring_rows_only_warns():
    rng = np.random.default_rng(0)
    p = expit(rng.normal(size=3000))
    y = rng.random(3000) < expit(logit(p) + 0.8 * np.repeat(rng.normal(size=100), 30))
    v = {"x": rng.normal(size=3000)}
    with pytest.warns(CorrelatedRowsWarning, match="stand near one another"):
        here = VariableCalibrator().fit(p, y, v)
    order = rng.permutation(3000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", CorrelatedRowsWarning)
        there = VariableCalibrator().fit(p[order], y[order], {"x": v["x"][order]})
        VariableCalibrator().fit(p, y, v, blocks=False)
    q = [each.predict_proba([0.2, 0.7], {"x": [0.0, 1.0]}) for each in (here, there)]
    np.testing.assert_allclose(q[0], q[1], atol=1e-9)


@pytest.mark.parametrize("given", [{"blocks": "day"}, {}], ids=["named", "found"])
@pytest.mark.filterwarnings("ignore::varcal.exceptions.CorrelatedRowsWarning")
def test_order_and_repetition_of_tied_rows_change_nothing(given):
    rng = np.random.default_rng(3)
    day, x = rng.integers(0, 60, 900), rng.normal(size=900).round(1)
    p = rng.uniform(0.1, 0.9, 900).round(2)
    y = rng.random(900) < expit(logit(p) + 0.5 * x + 1.2 * rng.normal(size=60)[day])
    weight, turned = rng.integers(1, 4, 900), rng.permutation(900)

    def answers(rows, sample_weight=None):
        v = {"day": day[rows], "x": x[rows]}
        fit = VariableCalibrator().fit(p[rows], y[rows], v, sample_weight=sample_weight, **given)
        assert (fit.judged_.how, fit.judged_.n_units) == ("blocks", 60)
        return fit.predict_proba(p[:50], {"day": day[:50], "x": x[:50]})

    weighted = answers(np.arange(900), weight)
    assert (answers(turned, weight[turned]) == weighted).all()
    repeated = answers(np.repeat(np.arange(900), weight))
    np.testing.assert_allclose(repeated, weighted, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"blocks": True}, "blocks is True"),
        ({"blocks": "da"}, "blocks: no column 'da' in X\nhint: did you mean 'day'"),
        ({"blocks": [1, 2]}, "lengths differ: .*blocks 2"),
        ({"blocks": "day", "groups": np.arange(100)}, "blocks is given together with groups"),
        ({"blocks": "day", "time": np.arange(100)}, "blocks is given together with time"),
        ({"blocks": [None, *range(99)]}, "blocks is missing: None at row 0"),
    ],
)
def test_errors_of_blocks(given, message):
    p = np.linspace(0.1, 0.9, 100)
    with pytest.raises(InputError, match=message) as caught:
        VariableCalibrator().fit(p, p > 0.5, {"day": np.arange(100) % 10}, **given)
    assert caught.value.argument == "blocks" or "lengths" in message


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


def test_time_and_groups_together():
    rng = np.random.default_rng(0)
    p, time = rng.random(400), rng.random(400)
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
        (["2024-01-01"] * 99 + ["soon"], "time cannot be read as dates: it holds 'soon'"),
        (["03/04/2024"] * 100, "it holds '03/04/2024'"),
        ([np.inf, *range(99)], "time is infinite: inf at row 0"),
        (range(7), "lengths differ: p 100, time 7"),
        ("month", "time: no column 'month' in X"),
    ],
)
def test_errors_of_time(time, message):
    p = np.linspace(0.1, 0.9, 100)
    with pytest.raises(InputError, match=message) as caught:
        VariableCalibrator().fit(p, p > 0.5, {"day": np.arange(100)}, time=time)
    assert caught.value.argument == "time"
