"""The variable calibrator: what it promises, on data whose truth is known."""

import os
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from sklearn.metrics import log_loss, roc_auc_score

import varcal as vc
from varcal.calibrators import PlattCalibrator, VariableCalibrator, load_calibrator
from varcal.calibrators._gam import LogisticLoss, fit_gam
from varcal.calibrators._lookup import Lookup
from varcal.calibrators._score_basis import log_odds
from varcal.exceptions import InputError

matplotlib.use("Agg")


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


def loss(y, q):
    return float(log_loss(y, q[:, 1] if q.ndim == 2 else q))


# ------------------------------------------------------------------ what it is for


def test_many_variables_are_repaired_together():
    p, y, v, _ = world(4000)
    p2, y2, v2, truth = world(20_000, seed=1)
    q = VariableCalibrator().fit(p, y, v).predict_proba(p2, v2)[:, 1]
    assert np.abs(q - truth).mean() < 0.025
    for name in ("age", "kind", "noise"):
        left = vc.estimate(y2, q, v2[name], event="positive")
        assert left.value < 0.02
    assert loss(y2, q) < loss(y2, truth) + 0.003


def test_what_is_calibrated_already_stays_so():
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
    assert [trial.pair for trial in fit.pairs_ if trial.admitted] == [(0, 2)]
    off = VariableCalibrator(interactions=False).fit(p[:6000], y[:6000], v[:6000])
    here, there = (
        np.abs(one.predict_proba(p[6000:], v[6000:])[:, 1] - truth[6000:]).mean()
        for one in (fit, off)
    )
    assert here < 0.045 < 0.08 < there
    assert "v0 × v2" in str(fit.describe())


def test_few_rows_leave_the_scores_as_they_are():
    p, y, v, _ = world(30, calibrated=True)
    assert VariableCalibrator().fit(p, y, v).variables_trust_ < 1
    shift = [
        np.abs(VariableCalibrator().fit(*(one[:n] for one in world(n, s)[:3])).predict_proba(
            p, v)[:, 1] - p).mean()
        for n in (10, 4000)
        for s in (1,)
    ]  # fmt: skip
    assert shift[0] < shift[1]


def test_without_variables_it_calibrates_the_score():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 8000)
    truth = expit(0.5 * logit(p) - 0.3)
    y = rng.random(8000) < truth
    q = VariableCalibrator().fit(p[:2000], y[:2000]).predict_proba(p[2000:])[:, 1]
    platt = PlattCalibrator().fit(p[:2000], y[:2000]).predict_proba(p[2000:])[:, 1]
    assert loss(y[2000:], q) < loss(y[2000:], platt) + 0.002
    assert np.abs(q - truth[2000:]).mean() < 0.02


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
    assert (q.argmax(1) == p2.argmax(1)).all()
    plain = vc.TemperatureCalibrator().fit(p, y).predict_proba(p2)
    assert log_loss(y2, q) < log_loss(y2, plain) - 0.02
    assert log_loss(y2, q) < log_loss(y2, truth) + 0.02
    assert vc.vece(y2, q, v2[:, 0]) < 0.03 < vc.vece(y2, plain, v2[:, 0])


# ------------------------------------------------------------------ options


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(30, 400))
def test_monotone_never_falls_along_the_score(seed, n):
    rng = np.random.default_rng(seed)
    p, v = rng.random(n), rng.normal(size=(n, 2))
    y = rng.random(n) < np.where(v[:, 0] > 0, p, 1 - p)
    y[:2] = [0, 1]
    fit = VariableCalibrator(monotone=True).fit(p, y, v)
    grid = np.linspace(0, 1, 201)
    for row in v[:3]:
        q = fit.predict_proba(grid, np.tile(row, (201, 1)))[:, 1]
        assert (np.diff(q) >= -1e-12).all()


@pytest.mark.parametrize("seed", range(3))
def test_preserve_ranking_keeps_the_auc(seed):
    p, y, v, _ = world(800, seed)
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


@pytest.mark.parametrize("most", [0.0, 0.05, 1.0])
def test_max_shift_holds(most):
    p, y, v, _ = world(1500)
    q = VariableCalibrator(max_shift=most).fit(p, y, v).predict_proba(p, v)
    assert np.abs(q[:, 1] - p).max() <= most + 1e-12
    p, y, v, _ = many_world(800)
    q = VariableCalibrator(max_shift=most).fit(p, y, v).predict_proba(p, v)
    assert np.abs(q - p).max() <= most + 1e-12
    assert (q.argmax(1) == p.argmax(1)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interactions": True}, "interactions must be one of 'auto', False"),
        ({"monotone": "yes"}, "monotone must be one of"),
        ({"max_shift": -0.1}, "max_shift must lie between 0 and 1"),
        ({"max_shift": "a"}, "max_shift must lie between 0 and 1"),
    ],
)
def test_parameters_are_checked(options, message):
    p, y, v, _ = world(100)
    with pytest.raises(InputError, match=message):
        VariableCalibrator(**options).fit(p, y, v)


# ------------------------------------------------------------------ rows of every kind


def test_the_mean_is_kept():
    p, y, v, _ = world(1500)
    weight = np.random.default_rng(0).integers(1, 4, 1500)
    q = VariableCalibrator().fit(p, y, v, sample_weight=weight).predict_proba(p, v)[:, 1]
    assert np.average(q, weights=weight) == pytest.approx(np.average(y, weights=weight), abs=1e-9)


def test_unseen_levels_are_the_population_and_missing_values_have_an_effect():
    p, y, v, _ = world(3000)
    v = v.assign(age=v["age"].mask(np.arange(3000) % 3 == 0))
    y = np.where(v["age"].isna(), 1, y)
    fit = VariableCalibrator(interactions=False).fit(p, y, v)
    same = pd.concat([v.iloc[[1]]] * 4).assign(kind=["a", "b", "c", "new"])
    q = fit.predict_proba(np.full(4, 0.5), same)[:, 1]
    assert q[:3].min() < q[3] < q[:3].max()
    assert fit.predict_proba([0.3], v.iloc[[0]])[0, 1] > 0.8
    far = v.iloc[[1, 1]].assign(age=[80.0, 1e9])
    q = fit.predict_proba([0.5, 0.5], far)[:, 1]
    assert q[0] == pytest.approx(q[1], abs=0.02)


def test_the_order_of_rows_does_not_matter():
    p, y, v, _ = world(1200)
    turned = np.random.default_rng(0).permutation(1200)
    one = VariableCalibrator().fit(p, y, v).predict_proba(p, v)
    other = VariableCalibrator().fit(p[turned], y[turned], v.iloc[turned]).predict_proba(p, v)
    assert other == pytest.approx(one, abs=1e-6)


def test_constant_columns_and_copies_do_no_harm():
    p, y, v, truth = world(3000)
    more = v.assign(same=7.0, gone=np.nan, word="x", again=v["age"], mirrored=-v["age"])
    q = VariableCalibrator().fit(p, y, more).predict_proba(p, more)[:, 1]
    assert np.abs(q - truth).mean() < 0.03


def test_weights_below_one_are_no_counts():
    p, y, v, _ = world(1500)
    plain = VariableCalibrator().fit(p, y, v).predict_proba(p, v)
    small = VariableCalibrator().fit(p, y, v, sample_weight=np.full(1500, 1 / 1500))
    assert small.predict_proba(p, v) == pytest.approx(plain, abs=1e-8)


def test_groups_are_held_out_together():
    rng = np.random.default_rng(0)
    unit = np.repeat(np.arange(60), 20)
    p = np.repeat(rng.uniform(0.2, 0.8, 60), 20)
    v = np.repeat(rng.normal(size=60), 20)
    y = np.repeat(rng.random(60) < p[::20], 20)
    fooled = VariableCalibrator().fit(p + 1e-3 * rng.random(1200), y, v + rng.random(1200))
    honest = VariableCalibrator().fit(
        p + 1e-3 * rng.random(1200), y, v + rng.random(1200), groups=unit
    )
    assert honest.variables_trust_ <= fooled.variables_trust_
    with pytest.raises(InputError, match="lengths differ"):
        VariableCalibrator().fit(p, y, v, groups=unit[1:])


def test_many_rows_are_sampled_for_penalties_only(monkeypatch):
    import varcal.calibrators._variable_logistic as logistic

    p, y, v, truth = world(6000)
    monkeypatch.setattr(logistic, "MOST_ROWS", 2000)
    fit = VariableCalibrator().fit(p, y, v)
    q = fit.predict_proba(p, v)[:, 1]
    assert np.abs(q - truth).mean() < 0.02
    assert q.mean() == pytest.approx(y.mean(), abs=1e-9)
    assert fit.terms_[0].active


# ------------------------------------------------------------------ it explains itself


def test_intervals_cover_the_truth():
    inside = []
    for seed in range(8):
        p, y, v, _ = world(1500, seed)
        p2, _, v2, truth = world(1000, seed + 50)
        low, high = VariableCalibrator().fit(p, y, v).predict_interval(p2, v2)
        inside.append(((low[:, 1] <= truth) & (truth <= high[:, 1])).mean())
        assert low[:, 0] == pytest.approx(1 - high[:, 1])
    assert 0.9 < np.mean(inside) <= 1


def test_intervals_of_many_classes_hold_the_answer_and_grow_with_the_level():
    p, y, v, _ = many_world(1000)
    fit = VariableCalibrator().fit(p, y, v)
    q = fit.predict_proba(p, v)
    low, high = fit.predict_interval(p, v)
    assert (low <= q).all() and (q <= high).all()
    narrow = fit.predict_interval(p, v, level=0.5)
    assert (high - low >= narrow[1] - narrow[0] - 1e-12).all()
    with pytest.raises(InputError, match="level must lie between 0 and 1"):
        fit.predict_interval(p, v, level=95)


def test_effects_show_who_moved_what(tmp_path):
    p, y, v, _ = world(4000)
    fit = VariableCalibrator().fit(p, y, v)
    told = {term.name: term for term in fit.terms_}
    assert told["age"].active and told["kind"].active and not told["noise"].active
    assert told["age"].moved > told["kind"].moved > told["noise"].moved
    assert fit.edf_ == pytest.approx(sum(term.edf for term in fit.terms_))
    effects = fit.effects()
    assert list(effects) == ["age", "kind", "noise", "day"]
    middle = effects["age"][1]
    assert np.diff(middle.value).min() > -0.05 and np.ptp(middle.value) == pytest.approx(
        2.4, rel=0.3
    )
    assert (middle.low < middle.value).all() and (middle.value < middle.high).all()
    assert effects["kind"][0].at == ("a", "b", "c")
    assert effects["day"][0].at[0].startswith("2024-01-01")
    assert len(effects.to_frame()) == sum(len(curve.at) for curve in effects.curves)
    assert effects.to_dict()["terms"][0]["name"] == fit.terms_[0].name
    for name in (None, "kind", "day"):
        assert effects.plot(name).get_ylabel() == "change of the logit"
    with pytest.raises(InputError, match="did you mean 'age'"):
        effects["aeg"]
    fit.save(tmp_path / "cal.json")
    again = load_calibrator(tmp_path / "cal.json")
    assert again.effects().to_dict() == effects.to_dict()
    assert (again.predict_interval(p, v)[0] == fit.predict_interval(p, v)[0]).all()


def test_effects_without_variables_say_so():
    p, y, _, _ = world(300)
    effects = VariableCalibrator().fit(p, y).effects()
    assert effects.curves == ()
    with pytest.raises(InputError, match="no effect to draw"):
        effects.plot()


def test_effects_of_many_classes():
    p, y, v, _ = many_world(1500)
    effects = VariableCalibrator().fit(p, y, v).effects()
    assert effects.scale == "log inverse temperature"
    (curve,) = effects["v0"]
    assert np.ptp(curve.value) > 1


# ------------------------------------------------------------------ the machinery


def test_penalties_tell_signal_from_noise():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(3000), rng.normal(size=(3000, 8))])
    y = (rng.random(3000) < expit(0.8 * X[:, 1])).astype(float)
    groups = np.array([-1, 0, *[1] * 7])
    fit = fit_gam(X, LogisticLoss(y, np.ones(3000), np.zeros(3000)), groups)
    assert fit.converged
    assert fit.beta[1] == pytest.approx(0.8, abs=0.15)
    assert fit.edf[0] > 0.95 and fit.edf[1] < 3


def test_tables_answer_as_the_design_does():
    p, y, v, _ = world(2000)
    fit = VariableCalibrator().fit(p, y, v)
    model, columns = fit.model_.full, fit.schema_.align(vc.Predictions.of(y, p, v).variables)
    z = log_odds(p)
    exact, spread = model.predictor(z, columns)
    eta, near = model.lookup.predictor(z, columns)
    assert isinstance(model.lookup, Lookup)
    assert eta == pytest.approx(exact, abs=1e-3)
    assert np.corrcoef(spread, near)[0, 1] > 0.9
    assert near.mean() == pytest.approx(spread.mean(), rel=0.1)


PAPER = Path(
    os.environ.get("VARCAL_PAPER_DATA", Path(__file__).parents[2] / "shared" / "data" / "paper")
)


@pytest.mark.skipif(not PAPER.is_dir(), reason=f"the paper's model outputs are not at {PAPER}")
@pytest.mark.parametrize(
    ("name", "numbers", "n_cal", "most"),
    [
        ("bank", ["age", "balance", "campaign", "pdays", "previous"], 1000, 0.0195),
        (
            "adult",
            ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"],
            2500,
            0.016,
        ),
    ],
)
def test_the_papers_sets(name, numbers, n_cal, most):
    table = pd.read_csv(PAPER / f"{name}_out.csv.gz")
    p, y = table["prob_1"].to_numpy(), table["actual"].to_numpy().astype(int)
    worst = []
    for seed in (100, 101):
        rows = np.random.default_rng(seed).permutation(len(y))
        cal, test = rows[:n_cal], rows[n_cal:]
        fit = VariableCalibrator().fit(p[cal], y[cal], table[numbers].iloc[cal])
        q = fit.predict_proba(p[test], table[numbers].iloc[test])
        worst.append(max(vc.vece(y[test], q, table[one].iloc[test]) for one in numbers))
        platt = PlattCalibrator().fit(p[cal], y[cal]).predict_proba(p[test])
        assert loss(y[test], q) < loss(y[test], platt) - 0.01
    assert np.mean(worst) < most
