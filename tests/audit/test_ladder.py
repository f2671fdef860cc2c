"""The ladder: what each repair leaves on rows that did not fit it, and which one suffices."""

import numpy as np
import pytest
from scipy.special import expit, logit

import varcal as vc
from varcal.calibrators import calibrator as held_out


def rows(n, truth, seed=0, rate=-0.8):
    """Return outcomes, probabilities and three variables; `truth` gives the true logit."""
    rng = np.random.default_rng(seed)
    X = {"age": rng.integers(20, 80, n), "noise": rng.random(n), "sex": rng.choice(["f", "m"], n)}
    score = rate + rng.normal(0, 1, n)
    return (rng.random(n) < expit(truth(score, X))).astype(int), expit(score), X


WORLDS = {
    "as it is": lambda score, X: score,
    "shift": lambda score, X: score + 0.7,
    "score curve": lambda score, X: 0.5 * score,
    "variables": lambda score, X: score + (X["age"] - 50) / 25,
}


@pytest.fixture(scope="module")
def audits():
    return {name: vc.audit(*rows(4000, truth, seed=3)) for name, truth in WORLDS.items()}


@pytest.mark.parametrize("name", WORLDS)
def test_the_repair_that_a_clear_fault_needs_is_advised(audits, name):
    audit = audits[name]
    assert audit.advice == audit.ladder.suffices == name
    assert audit.ladder.rung(name).suffices
    assert not any(rung.suffices for rung in audit.ladder.rungs[: list(WORLDS).index(name)])


def test_noise_does_not_look_repaired(audits):
    first, *_, variables = audits["as it is"].ladder.rungs
    assert variables.log_loss > first.log_loss - audits["as it is"].ladder.matters


def test_the_first_rung_has_the_figures_of_the_audit(audits):
    for audit in audits.values():
        first, own = audit.ladder.rungs[0], audit.target
        ends = (first.average.value, first.average.low, first.average.high)
        assert ends == (own.gap, own.gap_low, own.gap_high)
        assert first.by_score.value == audit.by_score.debiased
        uneven = {row.variable: (row.uneven.debiased, row.low, row.high) for row in audit.rows}
        assert {k: (one.value, one.low, one.high) for k, one in first.uneven.items()} == uneven


def test_what_the_model_says_after_the_repair_follows_from_the_repaired_rows(audits):
    audit = audits["variables"]
    table = audit.row("age").table.columns
    before, happens = np.array(table["predicted"]), np.array(table["observed"])
    after = np.array(audit.ladder.after["age"])
    assert np.abs(after - happens).mean() < 0.6 * np.abs(before - happens).mean()
    shifted = audits["shift"].ladder
    assert shifted.steps["shift"] == pytest.approx(0.7, abs=0.15)
    assert shifted.places_after[0] == pytest.approx(-audits["shift"].gap, abs=1e-3)


def test_probabilities_come_from_rows_that_did_not_fit_them(monkeypatch):
    seen, original = [], held_out.calibrate_held_out

    def checked(calibrator, learn, held):
        seen.append((len({*learn.unit.values} & {*held.unit.values}), len(learn.variables)))
        return original(calibrator, learn, held)

    monkeypatch.setattr(held_out, "calibrate_held_out", checked)
    y, p, X = rows(600, WORLDS["variables"])
    vc.audit(y, p, X, groups=np.arange(600), protected="sex").ladder  # noqa: B018
    assert seen == [(0, 0)] * 10 + [(0, 2)] * 2


def test_the_error_by_score_after_pooling_is_not_biased_to_0():
    _, p_true, X = rows(20_000, WORLDS["as it is"], seed=99)
    q_true = expit(WORLDS["score curve"](logit(p_true), X))
    true, rungs = [], []
    for seed in range(30):
        y, p, variables = rows(800, WORLDS["score curve"], seed)
        rungs.append(vc.audit(y, p, variables, ladder="score").ladder.rung("score curve"))
        q = vc.calibrators.BetaCalibrator().fit(p, y).predict_proba(p_true)[:, 1]
        tenth = np.argsort(np.argsort(q)) // 2000
        true.append(np.abs(np.bincount(tenth, q - q_true)).sum() / 20_000)
    assert np.mean(true) > 0.01
    assert np.mean([one.by_score.value for one in rungs]) == pytest.approx(np.mean(true), abs=0.005)
    pairs = zip(rungs, true, strict=True)
    assert np.mean([one.by_score.low <= t <= one.by_score.high for one, t in pairs]) >= 0.9


def test_obstacles():
    for n, events, n_groups, reason in (
        (40, 10, 40, "it needs 50 rows; there are 40"),
        (200, 0, 200, "it needs 4 rows of a second class; there are 0"),
        (200, 50, 10, "it needs 12 groups; there are 10"),
    ):
        _, p, X = rows(n, WORLDS["as it is"])
        audit = vc.audit((np.arange(n) < events) * 1, p, X, groups=np.arange(n) % n_groups)
        assert (audit.ladder, audit.advice, audit.ladder_obstacle) == (None, None, reason)
