"""The calibrator of predicted means, beside statsmodels and known truths."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.base import clone
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance, mean_tweedie_deviance

import varcal as vc
from varcal.exceptions import InputError, VarcalWarning


def simulated(n, seed, *, wrong=True):
    """Return means, counts, variables and the true means."""
    rng = np.random.default_rng(seed)
    v, level = rng.random(n), rng.integers(0, 4, n)
    mu = np.exp(0.5 * rng.normal(size=n))
    gap = 0.2 + 0.8 * (v - 0.5) + np.array([0.3, 0, 0, -0.3])[level]
    true = mu * np.exp(gap * wrong)
    return mu, rng.poisson(true), {"v": v, "level": np.array(list("abcd"))[level]}, true


def distance(mu, true):
    return np.abs(np.log(mu / true)).mean()


def test_wrong_means_are_repaired():
    mu, y, X, true = simulated(4000, 0)
    fitted = vc.MeanCalibrator().fit(mu, y, X)
    assert distance(fitted.predict(mu, X), true) < distance(mu, true) / 3
    assert [stage.name for stage in fitted.model_.stages] == ["factor", "curve", "variables"]
    # The last correction is applied in full, so that sums agree, as in any Poisson regression.
    assert fitted.model_.stages[-1].share == 1.0
    assert fitted.predict(mu, X).sum() == pytest.approx(y.sum(), rel=1e-6)


OUTCOMES = {
    "counts": (lambda rng, mu: rng.poisson(mu), mean_poisson_deviance),
    "amounts": (lambda rng, mu: mu * rng.gamma(0.5, 2, len(mu)), mean_gamma_deviance),
    "amounts with zeros": (
        lambda rng, mu: (rng.random(len(mu)) < 0.3) * mu * rng.gamma(2, 0.5, len(mu)) / 0.3,
        lambda y, mu: mean_tweedie_deviance(y, mu, power=1.5),
    ),
}


@pytest.mark.parametrize("kind", OUTCOMES)
@pytest.mark.parametrize("n", [200, 1000])
def test_calibrated_means_are_not_made_worse(kind, n):
    draw, deviance = OUTCOMES[kind]
    worse = []
    for seed in range(12):
        rng = np.random.default_rng([seed, n])
        size = n + 20_000
        mu = np.exp(0.5 * rng.normal(size=size))
        X = {"v": rng.random(size), "u": rng.normal(size=size), "c": rng.integers(0, 5, size)}
        X["c"] = X["c"].astype(str)
        y = draw(rng, mu)
        fit, test = slice(0, n), slice(n, None)
        part, rest = ({name: each[rows] for name, each in X.items()} for rows in (fit, test))
        with np.errstate(all="raise", under="ignore"):
            found = vc.MeanCalibrator().fit(mu[fit], y[fit], part).predict(mu[test], rest)
        worse.append(deviance(y[test], found) / deviance(y[test], mu[test]) - 1)
    error = np.std(worse, ddof=1) / np.sqrt(len(worse))
    assert np.mean(worse) <= min(2 * error, 0.003)
    assert np.max(worse) < 0.03


FAMILIES = {
    "counts": (1.0, sm.families.Poisson()),
    "amounts": (2.0, sm.families.Gamma(sm.families.links.Log())),
    "amounts with zeros": (1.5, sm.families.Tweedie(sm.families.links.Log(), var_power=1.5)),
}


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("weighted", [False, True])
def test_one_factor_is_that_of_a_glm_with_an_offset(kind, weighted):
    power, family = FAMILIES[kind]
    rng = np.random.default_rng(1)
    mu = np.full(5000, 3.0)
    y = OUTCOMES[kind][0](rng, 1.5 * mu)
    weight = rng.integers(1, 4, 5000).astype(float) if weighted else np.ones(5000)
    model = sm.GLM(y, np.ones(5000), family, offset=np.log(mu), freq_weights=weight)
    wanted = mu * np.exp(model.fit().params[0])
    fitted = vc.MeanCalibrator().fit(mu, y, sample_weight=weight if weighted else None)
    assert fitted.model_.power == power
    np.testing.assert_allclose(fitted.predict(mu), wanted, rtol=1e-6)
    np.testing.assert_allclose(fitted.predict(mu), weight @ y / weight.sum(), rtol=1e-6)


def test_exposure_is_that_of_a_glm():
    rng = np.random.default_rng(3)
    n = 5000
    v, exposure, mu = rng.random(n), rng.uniform(0.1, 1, n), np.full(n, 0.5)
    true = mu * np.exp(v - 0.2)
    y = rng.poisson(exposure * true) / exposure
    factor = vc.MeanCalibrator().fit(mu, y, exposure=exposure).predict(mu) / mu
    np.testing.assert_allclose(factor, exposure @ y / (exposure @ mu), rtol=1e-6)
    fitted = vc.MeanCalibrator().fit(mu, y, {"v": v}, exposure=exposure)
    assert fitted.model_.power == 1.0
    assert distance(fitted.predict(mu, {"v": v}), true) < 0.1


def test_without_variables_it_is_a_curve_of_the_mean():
    rng = np.random.default_rng(5)
    mu = np.exp(rng.normal(size=5000))
    y = rng.poisson(1.2 * mu**0.6)
    fitted = vc.MeanCalibrator().fit(mu, y)
    inside = np.array([0.3, 1.0, 3.0])
    np.testing.assert_allclose(fitted.predict(inside), 1.2 * inside**0.6, rtol=0.1)


def test_amounts_that_may_be_negative_take_the_identity_link():
    rng = np.random.default_rng(2)
    v, mu = rng.random(4000), rng.normal(size=4000)
    y = mu + 2 * v + 3 * rng.normal(size=4000)
    fitted = vc.MeanCalibrator(link="identity").fit(mu, y, v)
    assert np.sqrt(np.mean((fitted.predict(mu, v) - mu - 2 * v) ** 2)) < 0.25
    constant = vc.MeanCalibrator(link="identity").fit(np.zeros(4000), y)
    np.testing.assert_allclose(constant.predict(np.zeros(2)), y.mean(), rtol=1e-6)
    assert "change" in str(constant.describe())


def test_one_absurd_prediction_does_not_decide():
    rng = np.random.default_rng(4)
    v, mu = rng.random(3000), np.ones(3000)
    mu[0] = 1e5
    y = np.exp(v - 0.5) * rng.gamma(2, 0.5, 3000) + 1e-6
    assert vc.MeanCalibrator().fit(mu, y, v).model_.stages[-1].share > 0.5


def test_neither_the_order_of_rows_nor_their_unit_matters():
    mu, y, X, _ = simulated(1500, 6)
    groups = np.arange(1500) // 3
    frame = pd.DataFrame(X)
    first = vc.MeanCalibrator().fit(mu, y, frame, groups=groups).predict(mu, frame)
    order = np.random.default_rng(0).permutation(1500)
    moved = frame.iloc[order].reset_index(drop=True)
    again = vc.MeanCalibrator().fit(mu[order], y[order], moved, groups=groups[order])
    assert (again.predict(mu, frame) == first).all()
    amount = y + 0.25
    plain = vc.MeanCalibrator().fit(mu, amount, frame).predict(mu, frame)
    cents = vc.MeanCalibrator().fit(1000 * mu, 1000 * amount + 1e-3, frame)
    np.testing.assert_allclose(cents.predict(1000 * mu, frame), 1000 * plain, rtol=1e-4)


def test_a_weight_of_two_is_a_row_given_twice():
    mu, y, X, _ = simulated(900, 7)
    weight = np.random.default_rng(0).integers(0, 3, 900)
    rows = np.repeat(np.arange(900), weight)
    frame = pd.DataFrame(X)
    weighted = vc.MeanCalibrator().fit(mu, y, frame, sample_weight=weight)
    repeated = vc.MeanCalibrator().fit(mu[rows], y[rows], frame.iloc[rows].reset_index(drop=True))
    np.testing.assert_allclose(weighted.predict(mu, frame), repeated.predict(mu, frame), rtol=1e-6)


def test_few_rows_and_few_groups_change_nothing():
    mu, y, X, _ = simulated(2000, 8)
    assert (vc.MeanCalibrator().fit(mu[:15], y[:15]).predict(mu) == mu).all()
    few = vc.MeanCalibrator().fit(mu, y, X, groups=np.arange(2000) % 4)
    assert (few.predict(mu, X) == mu).all()


def test_rows_beyond_the_sample_count():
    mu, y, X, true = simulated(120_000, 12)
    fitted = vc.MeanCalibrator().fit(mu, y, X)
    assert distance(fitted.predict(mu, X), true) < 0.015
    # Sums of all rows agree, not only those of the sample that penalties are learned on.
    assert fitted.predict(mu, X).sum() == pytest.approx(y.sum(), rel=1e-5)


def test_missing_values_and_unseen_levels():
    mu, y, X, true = simulated(3000, 9)
    gone = np.random.default_rng(0).random(3000) < 0.3
    y = np.random.default_rng(1).poisson(true * np.where(gone, 2.0, 1.0))
    X["v"] = np.where(gone, np.nan, X["v"])
    fitted = vc.MeanCalibrator().fit(mu, y, X)
    new = {"v": [0.5, np.nan, 9.0, 1.0], "level": ["b", "b", "b", "b"]}
    middle, missing, beyond, end = fitted.predict(np.ones(4), new)
    assert missing / middle == pytest.approx(2, rel=0.2) and beyond == end
    unseen, none = fitted.predict(np.ones(2), {"v": [0.5, 0.5], "level": ["z", None]})
    assert unseen == none and np.isfinite(unseen)
    with pytest.warns(VarcalWarning, match="'empty' is missing at every row"):
        vc.MeanCalibrator().fit(mu, y, X | {"empty": np.full(3000, np.nan)})


def test_files_and_pickles_give_the_same_means(tmp_path):
    mu, y, X, _ = simulated(1000, 10)
    X["when"] = np.datetime64("2024-01-01", "h") + np.arange(1000)
    fitted = vc.MeanCalibrator().fit(mu, y, X)
    wanted = fitted.predict(mu, X)
    assert (pickle.loads(pickle.dumps(fitted)).predict(mu, X) == wanted).all()
    path = tmp_path / "means.json"
    fitted.save(path)
    loaded = vc.load(path)
    assert repr(loaded) == "MeanCalibrator()" and (loaded.predict(mu, X) == wanted).all()
    assert str(loaded.describe()) == str(fitted.describe())
    other = clone(vc.MeanCalibrator(link="identity"))
    assert other.get_params() == {"link": "identity"}
    path.write_text(path.read_text().replace('"link":"log"', '"link":"identity"'))
    with pytest.raises(InputError, match="do not match its checksum"):
        vc.load(path)
    fitted.save(path)
    rows = tmp_path / "rows.csv"
    rows.write_text("p\n0.5\n")
    with pytest.raises(InputError, match="is a saved calibrator of means"):
        vc.apply(path, rows, tmp_path / "out.csv", p="p")


def test_describe_says_what_was_applied():
    mu, y, X, _ = simulated(3000, 11)
    shown = vc.MeanCalibrator().fit(mu, y, X).describe()
    assert "Variables: applied in full; saves 0." in shown.words
    assert [row["term"] for row in shown.rows] == ["mu", "v", "level"]
    assert shown.to_frame()["largest factor"].max() > 1.2


N = 40
MU, Y, V = np.ones(N), np.arange(N) % 3, {"age": np.arange(N)}


def changed(values, value):
    found = values.astype(float)
    found[7] = value
    return found


BAD = {
    "mu is not positive.*: 0.0 at row 7": lambda: vc.MeanCalibrator().fit(changed(MU, 0), Y),
    "y is negative: -1.0 at row 7": lambda: vc.MeanCalibrator().fit(MU, changed(Y, -1)),
    "mu is missing or not finite": lambda: vc.MeanCalibrator().fit(changed(MU, np.nan), Y),
    "y is missing or not finite: inf": lambda: vc.MeanCalibrator().fit(MU, changed(Y, np.inf)),
    "y is beyond 1e\\+30": lambda: vc.MeanCalibrator().fit(MU, changed(Y, 1e31)),
    "y is 0 at every row": lambda: vc.MeanCalibrator().fit(MU, 0 * Y),
    "lengths differ: mu 40, y 39": lambda: vc.MeanCalibrator().fit(MU, Y[1:]),
    "variable 'age' 40": lambda: vc.MeanCalibrator().fit(MU[1:], Y[1:], V),
    "y is None": lambda: vc.MeanCalibrator(link="identity").fit(MU, None),
    "mu is None": lambda: vc.MeanCalibrator().fit(None, Y),
    "y and mu are empty": lambda: vc.MeanCalibrator().fit([], []),
    "exposure is not positive": lambda: vc.MeanCalibrator().fit(MU, Y, exposure=changed(MU, -1)),
    "sample_weight is negative": lambda: vc.MeanCalibrator().fit(
        MU, Y, sample_weight=changed(MU, -1)
    ),
    "groups is missing": lambda: vc.MeanCalibrator().fit(MU, Y, groups=changed(MU, np.nan)),
    "mu has shape": lambda: vc.MeanCalibrator().fit(np.ones((N, 2)), Y),
    "y holds levels, not numbers": lambda: vc.MeanCalibrator().fit(MU, Y.astype(str)),
    "link": lambda: vc.MeanCalibrator(link="logit").fit(MU, Y),
    "X is missing: the calibrator was fitted on age": lambda: fitted().predict(MU),
    "no column 'age'": lambda: fitted().predict(MU, {"w": Y}),
    "'age' holds categories": lambda: fitted().predict(MU, {"age": Y.astype(str)}),
    "mu is not positive": lambda: fitted().predict(-MU, V),
}


def fitted():
    return vc.MeanCalibrator().fit(MU, Y, V)


@pytest.mark.parametrize("message", BAD)
def test_bad_input_gets_a_clear_error(message):
    with pytest.raises(InputError, match=message) as caught:
        BAD[message]()
    assert caught.value.hint
