"""The variable calibrator on data with known truth."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.metrics import log_loss, roc_auc_score

import varcal as vc
from varcal import load
from varcal.calibrators import VariableCalibrator
from varcal.exceptions import InputError, VarcalWarning


def world(n, seed=0, *, calibrated=False):
    """Return scores, outcomes, variables of every kind, and the true probabilities."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(20, 80, n),
            "kind": rng.choice(["a", "b", "c"], n),
            "noise": rng.normal(size=n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
        }
    )
    p = rng.beta(1.2, 1.8, n).clip(1e-4, 1 - 1e-4)
    wrong = 0.04 * (frame["age"] - 50) + np.where(frame["kind"] == "c", 0.8, 0.0)
    truth = p if calibrated else expit(0.7 * logit(p) + wrong.to_numpy())
    return p, (rng.random(n) < truth).astype(int), frame, truth


@cache
def fit_of(n, seed=0):
    """Return the fit on the rows of `world`, which is shared and must not be changed."""
    p, y, v, _ = world(n, seed)
    return VariableCalibrator().fit(p, y, v)


def loss(y, q):
    return float(log_loss(y, q[:, 1] if q.ndim == 2 else q))


def test_many_variables_are_repaired_together():
    p2, y2, v2, truth = world(20_000, seed=1)
    q = fit_of(4000).predict_proba(p2, v2)[:, 1]
    assert np.abs(q - truth).mean() < 0.025
    for name in ("age", "kind", "noise"):
        left = vc.estimate(y2, q, v2[name], event="positive")
        assert left.value < 0.02
    assert loss(y2, q) < loss(y2, truth) + 0.003


def test_calibrated_scores_stay_calibrated():
    p2, y2, v2, _ = world(20_000, 100, calibrated=True)
    best = -(p2 * np.log(p2) + (1 - p2) * np.log(1 - p2)).mean()
    floor = vc.vece(y2, p2, v2["age"], event="positive")
    worse, left = [], []
    for seed in range(6):
        p, y, v, _ = world(1000, seed, calibrated=True)
        q = VariableCalibrator().fit(p, y, v).predict_proba(p2, v2)[:, 1]
        worse.append(-(p2 * np.log(q) + (1 - p2) * np.log(1 - q)).mean() - best)
        left.append(vc.vece(y2, q, v2["age"], event="positive"))
    assert np.mean(worse) < 0.002 and np.median(worse) < 1e-4
    assert np.mean(left) < floor + 0.006


def test_an_interaction_without_main_effects_is_found():
    rng = np.random.default_rng(0)
    n = 9000
    v = rng.normal(size=(n, 4))
    p = rng.uniform(0.1, 0.9, n)
    truth = expit(logit(p) + 0.5 * np.sign(v[:, 0] * v[:, 2]))
    y = rng.random(n) < truth
    fit = VariableCalibrator().fit(p[:6000], y[:6000], v[:6000])
    assert next(term.name for term in fit.terms_ if term.name != "score") == "v0 × v2"
    wrong = np.abs(fit.predict_proba(p[6000:], v[6000:])[:, 1] - truth[6000:]).mean()
    assert wrong < 0.045 < 0.08 < np.abs(p - truth).mean()
    assert "v0 × v2" in str(fit.describe())


def divergence(truth, q):
    q = q[:, 1].clip(1e-12, 1 - 1e-12)
    return (truth * np.log(truth / q) + (1 - truth) * np.log((1 - truth) / (1 - q))).mean()


@pytest.mark.parametrize(("n", "mean", "worst"), [(10, 0, 0), (20, 0.001, 0.01), (50, 0.001, 0.02)])
def test_few_rows_leave_the_scores_as_they_are(n, mean, worst):
    p2, _, v2, _ = world(500, 999, calibrated=True)
    lost = []
    for seed in range(20):
        p, y, v, _ = world(n, seed, calibrated=True)
        y[:2] = [0, 1]
        q = VariableCalibrator().fit(p, y, v).predict_proba(p2, v2)
        lost.append(divergence(p2, q))
    assert np.mean(lost) <= mean + 1e-12 and np.max(lost) <= worst + 1e-12


def many_world(n, seed=0, k=5):
    rng = np.random.default_rng(seed)
    v = rng.normal(size=(n, 2))
    logits = 3 * rng.normal(size=(n, k))
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    sharp = np.exp(-0.6 + 0.5 * v[:, 0])
    q = np.exp(logits * sharp[:, None])
    q /= q.sum(1, keepdims=True)
    y = (rng.random((n, 1)) > np.cumsum(q, axis=1)).sum(1).clip(0, k - 1)
    return p, y, v, q


def test_many_classes_get_a_temperature_that_depends_on_the_variable():
    p, y, v, _ = many_world(2500)
    p2, y2, v2, truth = many_world(6000, seed=1)
    fit = VariableCalibrator().fit(p, y, v)
    q = fit.predict_proba(p2, v2)
    assert (q.argmax(1) == y2).mean() > (p2.argmax(1) == y2).mean() - 0.005
    plain = vc.calibrators.TemperatureCalibrator().fit(p, y).predict_proba(p2)
    assert log_loss(y2, q) < log_loss(y2, plain) - 0.02
    assert log_loss(y2, q) < log_loss(y2, truth) + 0.02
    assert vc.vece(y2, q, v2[:, 0]) < 0.03 < vc.vece(y2, plain, v2[:, 0])


def test_preserve_ranking_keeps_the_auc():
    p, y, v, _ = world(800, 0)
    p[:40], p[40:60] = 1e-7, 1 - 1e-9
    q = VariableCalibrator(preserve_ranking=True).fit(p, y, v).predict_proba(p, v)[:, 1]
    assert roc_auc_score(y, q) == pytest.approx(roc_auc_score(y, p), abs=1e-12)
    order = np.argsort(p, kind="stable")
    apart = np.diff(p[order]) > 1e-6
    assert (np.diff(q[order])[apart] > 0).all()


def test_preserve_ranking_keeps_the_order_of_classes():
    p, y, v, _ = many_world(600)
    q = VariableCalibrator(preserve_ranking=True).fit(p, y, v).predict_proba(p, v)
    assert (np.argsort(q, axis=1) == np.argsort(p, axis=1)).all()


def test_the_mean_is_kept():
    p, y, v, _ = world(1500)
    weight = np.random.default_rng(0).integers(1, 4, 1500)
    q = VariableCalibrator().fit(p, y, v, sample_weight=weight).predict_proba(p, v)[:, 1]
    assert np.average(q, weights=weight) == pytest.approx(np.average(y, weights=weight), abs=1e-9)


def test_unseen_levels_are_the_population_and_missing_values_have_an_effect():
    p, y, v, _ = world(3000)
    v = v.assign(age=v["age"].mask(np.arange(3000) % 3 == 0))
    y = np.where(v["age"].isna(), 1, y)
    fit = VariableCalibrator(trees=False).fit(p, y, v)
    same = pd.concat([v.iloc[[1]]] * 4).assign(kind=["a", "b", "c", "new"])
    q = fit.predict_proba(np.full(4, 0.5), same)[:, 1]
    assert q[:3].min() < q[3] < q[:3].max()
    assert fit.predict_proba([0.3], v.iloc[[0]])[0, 1] > 0.8
    far = v.iloc[[1, 1]].assign(age=[80.0, 1e9])
    q = fit.predict_proba([0.5, 0.5], far)[:, 1]
    assert q[0] == pytest.approx(q[1], abs=0.02)


def test_sampling_weights_are_not_treated_as_counts_silently():
    p, y, v, _ = world(600)
    survey = np.random.default_rng(0).gamma(5.0, 100.0, 600)
    with pytest.warns(VarcalWarning) as caught:
        VariableCalibrator().fit(p, y, v, sample_weight=survey)
    (said,) = caught
    assert said.filename == __file__
    assert str(said.message) == (
        "sample_weight is read as the number of rows that each row stands for: "
        f"{survey.sum():,.0f} in total on 600 rows, so the fit trusts them "
        f"{survey.mean():,.1f} times as much as rows without weights; if these are sampling "
        "weights, divide them by their mean"
    )
    for quiet in (survey / survey.mean(), np.rint(survey), 1 + survey / 1e3):
        VariableCalibrator().fit(p, y, v, sample_weight=quiet)


def test_groups_must_match_and_few_groups_change_nothing():
    p, y, v, _ = world(600)
    with pytest.raises(InputError, match="lengths differ"):
        VariableCalibrator().fit(p, y, v, groups=np.zeros(599))
    for count in (1, 4):
        with pytest.warns(VarcalWarning, match=f"groups holds {count} unit"):
            fit = VariableCalibrator().fit(p, y, v, groups=np.arange(600) % count)
        q = fit.predict_proba(p, v)
        assert q[:, 1] == pytest.approx(p, abs=1e-9)


def test_intervals_of_many_classes_cover_the_truth():
    inside = []
    for seed in range(4):
        p, y, v, _ = many_world(500, seed)
        p2, _, v2, truth = many_world(800, seed + 50)
        fit = VariableCalibrator().fit(p, y, v)
        low, high = fit.predict_interval(p2, v2)
        inside.append(((low <= truth) & (truth <= high)).mean())
    assert 0.89 < np.mean(inside) <= 1


@pytest.mark.parametrize("most", [0.0, 0.03])
@pytest.mark.parametrize("make", [world, many_world])
def test_predictions_and_intervals_stay_within_max_shift(make, most):
    p, y, v, _ = make(400)
    fit = VariableCalibrator(max_shift=most).fit(p, y, v)
    low, high = fit.predict_interval(p, v)
    before = p if p.ndim == 2 else np.column_stack([1 - p, p])
    assert low.min() >= 0 and high.max() <= 1
    assert (low >= before - most - 1e-12).all() and (high <= before + most + 1e-12).all()
    q = fit.predict_proba(p, v)
    assert np.abs(q - before).max() <= most + 1e-12
    assert (low <= q).all() and (q <= high).all()


def test_effects_show_what_each_variable_changed(tmp_path):
    p, _, v, _ = world(4000)
    fit = fit_of(4000)
    told = {term.name: term for term in fit.terms_}
    assert told["age"].active and told["kind"].active and not told["noise"].active
    assert told["age"].moved > told["kind"].moved > told["noise"].moved
    effects = fit.effects()
    assert list(effects) == ["age", "kind", "noise", "day", "day (weekday)"]
    (middle,) = effects["age"]
    assert np.diff(middle.value).min() > -0.05 and np.ptp(middle.value) == pytest.approx(
        2.4, rel=0.3
    )
    assert (middle.low < middle.value).all() and (middle.value < middle.high).all()
    assert effects["kind"][0].at == ("a", "b", "c")
    assert effects["day"][0].at[0].startswith("2024-01-01")
    gone = [curve.missing is not None for curve in effects.curves]
    assert len(effects.to_frame()) == sum(len(curve.at) for curve in effects.curves) + sum(gone)
    assert effects.to_dict()["terms"][0]["name"] == fit.terms_[0].name
    with pytest.raises(InputError, match="did you mean 'age'"):
        effects["aeg"]
    fit.save(tmp_path / "cal.json")
    again = load(tmp_path / "cal.json")
    assert again.effects().to_dict() == effects.to_dict()
    assert (again.predict_interval(p, v)[0] == fit.predict_interval(p, v)[0]).all()


def test_effects_without_variables_cannot_be_drawn():
    p, y, _, _ = world(300)
    effects = VariableCalibrator().fit(p, y).effects()
    assert effects.curves == ()
    with pytest.raises(InputError, match="no effect to draw"):
        effects.plot()
