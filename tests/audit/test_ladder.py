"""The ladder: what each repair leaves on rows that did not fit it, and which one suffices."""

import json
import warnings

import numpy as np
import pytest
from scipy.special import expit, logit

import varcal as vc
from varcal._audit import ladder as module
from varcal._audit.ladder import RUNGS, Ladder
from varcal._input.predictions import Predictions


def rows(n, truth, seed=0, rate=-0.8):
    """Return outcomes, probabilities and three variables; `truth` gives the true logit."""
    rng = np.random.default_rng(seed)
    X = {"age": rng.integers(20, 80, n), "noise": rng.random(n), "sex": rng.choice(["f", "m"], n)}
    score = rate + rng.normal(0, 1, n)
    return (rng.random(n) < expit(truth(score, X))).astype(int), expit(score), X


def along_age(score, X):
    return score + (X["age"] - 50) / 25


WORLDS = {
    "as it is": lambda score, X: score,
    "shift": lambda score, X: score + 0.7,
    "score curve": lambda score, X: 0.5 * score,
    "variables": along_age,
}


@pytest.fixture(scope="module")
def audits():
    return {name: vc.audit(*rows(4000, truth, seed=3)) for name, truth in WORLDS.items()}


@pytest.mark.parametrize("name", WORLDS)
def test_the_repair_that_a_clear_fault_needs_is_advised(audits, name):
    audit = audits[name]
    assert audit.advice == audit.ladder.suffices == name
    assert audit.ladder.rung(name).suffices
    assert not any(rung.suffices for rung in audit.ladder.rungs[: RUNGS.index(name)])


def test_the_first_rung_has_the_figures_of_the_audit(audits):
    for audit in audits.values():
        first = audit.ladder.rungs[0]
        assert (first.average, first.average_low, first.average_high) == (
            audit.target.gap,
            audit.target.gap_low,
            audit.target.gap_high,
        )
        assert first.by_score == audit.by_score.debiased
        for row in audit.rows:
            left = first.uneven[row.variable]
            assert (left.value, left.low, left.high) == (row.uneven.debiased, row.low, row.high)


def test_a_ladder_comes_back_from_json(audits):
    for audit in audits.values():
        text = json.dumps(audit.ladder.to_dict(), allow_nan=False)
        back = Ladder.from_dict(json.loads(text))
        assert json.dumps(back.to_dict()) == text
        assert back.advice == audit.ladder.advice
        assert list(back.to_frame()["rung"]) == list(RUNGS)


def test_what_the_model_says_after_the_repair_follows_from_the_repaired_rows(audits):
    audit = audits["variables"]
    table = audit.row("age").table.columns
    bins = [k for k, side in enumerate(table["side"]) if side == "all"]
    after = np.array(audit.ladder.after["age"])[bins]
    before, observed = np.array(table["predicted"])[bins], np.array(table["observed"])[bins]
    assert np.abs(after - observed).mean() < 0.5 * np.abs(before - observed).mean()
    shifted = audits["shift"].ladder
    assert shifted.steps["shift"] == pytest.approx(0.7, abs=0.15)
    assert shifted.places_after[0] == pytest.approx(-audits["shift"].gap, abs=1e-3)


def test_a_shift_is_about_the_named_class():
    y, p, X = rows(3000, WORLDS["shift"])
    first = vc.audit(y, p, X, ladder="score").ladder
    other = vc.audit(y, 1 - p, X, pos_label=0, ladder="score").ladder
    assert other.steps["shift"] == pytest.approx(-first.steps["shift"], abs=1e-6)
    assert [rung.name for rung in other.rungs] == list(RUNGS[:3])


def test_parts_keep_groups_whole_and_are_not_stratified():
    y, p, _ = rows(600, WORLDS["as it is"])
    unit = np.repeat(np.arange(60), 10)
    parts = module._parts(Predictions.of(y, p, groups=unit), 5, np.random.default_rng(0))
    assert all(len(set(parts[unit == one])) == 1 for one in range(60))
    assert np.bincount(parts).tolist() == [120] * 5
    plain = Predictions.of(y, p)
    events = [y[module._parts(plain, 2, np.random.default_rng(k)) == 1].sum() for k in range(40)]
    assert np.std(events) > 0.5 * np.sqrt(600 * y.mean() * (1 - y.mean()) / 4)


def test_probabilities_come_from_rows_that_did_not_fit_them(monkeypatch):
    seen = []
    held_out = __import__("varcal.calibrators._interface.held_out", fromlist=["x"])
    original = held_out.calibrate_held_out

    def checked(calibrator, learn, held):
        seen.append((set(learn.unit.values) & set(held.unit.values), len(learn.variables)))
        return original(calibrator, learn, held)

    monkeypatch.setattr(held_out, "calibrate_held_out", checked)
    y, p, X = rows(600, along_age)
    vc.audit(y, p, X, groups=np.arange(600), protected="sex").ladder  # noqa: B018
    assert [len(both) for both, _ in seen] == [0] * 12
    assert [n for _, n in seen] == [0] * 10 + [2, 2]


def test_noise_is_not_repaired():
    rng = np.random.default_rng(5)
    y, p, _ = rows(1500, WORLDS["as it is"])
    X = {f"x{k}": rng.random(1500) for k in range(8)}
    ladder = vc.audit(y, p, X).ladder
    assert ladder.rung("variables").log_loss > ladder.rungs[0].log_loss - ladder.matters


def test_the_error_by_score_after_pooling_is_not_biased_to_0():
    true, shown, inside = [], [], []
    _, p_true, X = rows(20_000, WORLDS["as it is"], seed=99)
    for seed in range(40):
        y, p, variables = rows(800, WORLDS["score curve"], seed)
        rung = vc.audit(y, p, variables, ladder="score").ladder.rung("score curve")
        q = vc.BetaCalibrator().fit(p, y).predict_proba(p_true)[:, 1]
        tenth = np.argsort(np.argsort(q)) // 2000
        gap = np.bincount(tenth, q - expit(WORLDS["score curve"](logit(p_true), X))) / 20_000
        true.append(np.abs(gap).sum())
        shown.append(rung.by_score)
        inside.append(rung.by_score_low <= true[-1] <= rung.by_score_high)
    assert np.mean(shown) == pytest.approx(np.mean(true), abs=0.005)
    assert np.mean(true) > 0.01
    assert np.mean(inside) >= 0.9


def test_weights_count_as_shares():
    y, p, X = rows(1500, WORLDS["shift"])
    weight = np.random.default_rng(1).choice([1.0, 3.0], 1500)
    one, many = (
        vc.audit(y, p, X, sample_weight=k * weight, ladder="score").ladder for k in (1, 1000)
    )
    for a, b in zip(one.rungs, many.rungs, strict=True):
        assert (a.average_high, a.by_score) == pytest.approx((b.average_high, b.by_score))
        assert a.log_loss == pytest.approx(b.log_loss)


def test_more_classes():
    rng = np.random.default_rng(2)
    logits = rng.normal(0, 1, (3000, 4))
    true = logits + np.array([1.0, 0, 0, -0.5])
    p, q = (np.exp(one) / np.exp(one).sum(1, keepdims=True) for one in (logits, true))
    y = (rng.random((3000, 1)) > q.cumsum(1)).sum(1)
    audit = vc.audit(y, p, {"v": rng.random(3000)})
    assert audit.advice == "shift"
    text = json.dumps(audit.ladder.to_dict(), allow_nan=False)
    assert Ladder.from_dict(json.loads(text)).rung("shift").n_learned == 1500


def test_scores_of_0_and_1_and_a_single_variable():
    y, p, X = rows(2000, WORLDS["as it is"])
    p = np.where(p < 0.1, 0.0, np.where(p > 0.9, 1.0, p))
    ladder = vc.audit(y, p, {"age": X["age"]}).ladder
    assert all(np.isfinite(rung.log_loss) for rung in ladder.rungs)
    assert ladder.rung("score curve").log_loss < ladder.rungs[0].log_loss - 0.05


def test_no_repair_says_0_because_of_few_events(monkeypatch):
    _, p, _ = rows(400, WORLDS["as it is"])
    y = (p > np.sort(p)[-6]).astype(int)  # a curve separates the five events
    given, parts = Predictions.of(y, p), np.arange(400) % 5

    def least():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return module._held_out("score curve", given, parts, [], np.random.default_rng(0)).min()

    assert least() == pytest.approx(0.1 / 320)
    monkeypatch.setattr(module, "FLOOR", 0.0)
    assert least() < 1e-6


@pytest.mark.parametrize(
    ("n", "events", "groups", "reason"),
    [
        (40, 10, None, "it needs 50 rows; there are 40"),
        (200, 0, None, "it needs 4 rows of a second class; there are 0"),
        (200, 50, 10, "it needs 12 groups; there are 10"),
    ],
)
def test_obstacles(n, events, groups, reason):
    _, p, X = rows(n, WORLDS["as it is"])
    unit = None if groups is None else np.arange(n) % groups
    audit = vc.audit((np.arange(n) < events).astype(int), p, X, groups=unit)
    assert audit.ladder is None
    assert audit.advice is None
    assert audit.ladder_obstacle == reason
