import json

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score

import varcal as vc
from varcal._inference.paired import auc_parts, mean_interval, row_losses
from varcal.exceptions import InputError


@pytest.fixture(scope="module")
def world():
    sim = vc.datasets.make_gap(6000, "tilt", vece=0.1)
    return sim, sim.rate


@pytest.fixture(scope="module")
def found(world):
    sim, truth = world
    rng = np.random.default_rng(0)
    sets = {"raw": sim.p, "truth": truth, "worse": np.clip(sim.p + 0.2, 0, 1), "same": sim.p}
    X = {"v": sim.v, "noise": rng.normal(size=len(sim.y))}
    return vc.compare(sim.y, sets, X, event="positive")


def test_verdicts(found):
    assert found.row("truth", "VECE", "v").verdict == "fixed"
    assert found.row("worse", "VECE", "v").verdict == "made worse"
    assert found.row("same", "VECE", "v").verdict == "unchanged"
    assert found.row("raw", "VECE", "v").verdict == "baseline"
    assert found.row("truth", "log-loss").verdict == "better"
    assert found.row("worse", "Brier").verdict == "made worse"
    assert found.row("truth", "VECE", "noise").verdict == "unchanged"
    assert found.row("same", "AUC").difference == 0
    with pytest.raises(InputError):
        found.row("truth", "F1")


def test_figures_are_those_of_scikit_learn(found, world):
    sim, truth = world
    assert found.row("truth", "accuracy").value == pytest.approx(accuracy_score(sim.y, truth > 0.5))
    assert found.row("truth", "log-loss").value == pytest.approx(log_loss(sim.y, truth))
    assert found.row("truth", "Brier").value == pytest.approx(brier_score_loss(sim.y, truth))
    assert found.row("truth", "AUC").value == pytest.approx(roc_auc_score(sim.y, truth))


def test_multiclass_losses_are_those_of_scikit_learn(rng):
    p, y = rng.dirichlet([1, 1, 1], 300), rng.integers(0, 3, 300)
    losses = row_losses(p, y)
    assert losses["log-loss"].mean() == pytest.approx(log_loss(y, p))
    assert losses["accuracy"].mean() == pytest.approx(accuracy_score(y, p.argmax(1)))
    assert losses["Brier"].mean() == pytest.approx(((p - np.eye(3)[y]) ** 2).sum(1).mean())
    audit = vc.compare(y, {"a": p, "b": p}, None)
    assert {row.metric for row in audit.rows} == {"accuracy", "log-loss", "Brier", "ECE"}


def test_auc_with_ties_and_one_class(rng):
    s, h = np.round(rng.random(500), 1), rng.random(500) < 0.4
    assert auc_parts(s, h)[0] == pytest.approx(roc_auc_score(h, s))
    assert np.isnan(auc_parts(s, np.ones(500, bool))[0])


@pytest.mark.slow
def test_intervals_cover_known_truths():
    """Paired differences of log-loss, AUC and VECE on simulated rows cover the truth."""
    rng = np.random.default_rng(5)

    def draw(n):
        v, s = rng.random(n), rng.uniform(0.25, 0.75, n)
        y = rng.random(n) < s - 0.2 * (v - 0.5)
        return y, {"a": s, "b": np.clip(s - 0.1 * (v - 0.5), 0, 1)}, {"v": v}

    big = vc.compare(*draw(400_000), event="positive")
    keys = [("log-loss", ""), ("AUC", ""), ("VECE", "v")]
    truth = {key: big.row("b", *key).difference for key in keys}
    inside = dict.fromkeys(keys, 0)
    for _ in range(80):
        small = vc.compare(*draw(1500), event="positive")
        for key in keys:
            row = small.row("b", *key)
            inside[key] += row.difference_low <= truth[key] <= row.difference_high
    for key, count in inside.items():
        assert count >= 68, key  # 95 % of 80 is 76; 68 is four standard errors below


def test_groups_widen_intervals(rng):
    values, unit = rng.normal(size=40).repeat(25), np.arange(40).repeat(25)
    _, low, high = mean_interval(values, None, None, 0.95)
    _, wide_low, wide_high = mean_interval(values, None, unit, 0.95)
    assert wide_high - wide_low > 4 * (high - low)
    assert np.isnan(mean_interval(np.ones(1), None, None, 0.95)[1])
    y = rng.random(1000) < 0.5
    p = np.clip(0.5 + values * 0.05, 0, 1)
    assert vc.compare(y, {"a": p, "b": 1 - p}, {"v": values}, groups=unit).n_rows == 1000


def test_the_rule_of_the_paper_hides_changed_predictions(rng):
    n = 3000
    p = rng.uniform(0.3, 0.7, n)
    y = rng.random(n) < p
    flipped = 1 - p
    sets = {"raw": p, "flipped": flipped}
    fair = vc.compare(y, sets, {"v": rng.random(n)}, event="correct")
    paper = vc.compare(y, sets, {"v": rng.random(n)}, event="correct", hits="first")
    assert fair.row("flipped", "ECE").value > 0.15
    assert paper.row("flipped", "ECE").value < 0.05


def test_tables_and_names(found, make_frame, world):
    sim, truth = world
    json.dumps(found.to_dict(), allow_nan=False)
    assert "fixed" in repr(found) and "6,000 held-out rows" in repr(found)
    data = make_frame({"y": sim.y[:500].tolist(), "p": sim.p[:500].tolist(),
                       "q": truth[:500].tolist(), "v": sim.v[:500].tolist()})  # fmt: skip
    named = vc.compare("y", {"raw": "p", "mended": "q"}, ["v"], data=data, event="positive")
    frame = named.to_frame()
    assert isinstance(frame, pd.DataFrame if isinstance(data, dict) else type(data))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(methods=[0.1]), "methods must be a dict"),
        (dict(methods={}), "methods must be a dict"),
        (dict(methods={"a": [0.1, 0.9]}, hits="fisrt"), "did you mean 'first'"),
        (dict(methods={"a": [0.1, 0.9]}, event="classwise"), "classwise"),
        (dict(methods={"a": [0.1, 1.9]}), "outside [0, 1]"),
    ],
)
def test_wrong_input(arguments, message):
    with pytest.raises(InputError) as caught:
        vc.compare([0, 1], **arguments)
    assert message in str(caught.value)


def test_weighted_auc_is_that_of_scikit_learn(rng):
    y, s, w = rng.random(400) < 0.4, np.round(rng.random(400), 1), rng.random(400)
    assert auc_parts(s, y, w)[0] == pytest.approx(roc_auc_score(y, s, sample_weight=w))


def test_two_methods_with_the_same_name():
    with pytest.raises(InputError, match="same name"):
        vc.compare([0, 1], {1: [0.1, 0.9], "1": [0.2, 0.8]})


def test_vece_is_that_of_the_audit_with_its_claim(rng):
    """Over- and underestimated risk cancel in the confidence: the risk is compared."""
    n = 4_000
    x, q = rng.normal(size=n), rng.beta(2, 2, n)
    p = np.clip(q - 0.12 * x, 0.01, 0.99)
    y = rng.random(n) < q
    X = {"x": x, "heaped": np.where(rng.random(n) < 0.4, 0, rng.integers(1, 50, n))}
    audit = vc.audit(y, p, X, repair=False)
    found = vc.compare(y, {"raw": p, "truth": q}, X)
    assert found.event == "both" and found.binning == audit.binning
    for name in X:
        row = audit.row(name)
        for method in ("raw", "truth"):
            assert found.row(method, "VECE", name).claim == row.claim
        assert found.row("raw", "VECE", name).value == pytest.approx(row.vece.debiased, abs=1e-12)
    assert found.row("raw", "VECE", "x").claim == "risk"
    assert found.row("truth", "VECE", "x").verdict in ("fixed", "better")
    assert "VECE x (risk)" in repr(found)
    larger = max(audit.claims.values(), key=lambda claim: claim.score.ece.debiased)
    assert found.row("raw", "ECE").claim == larger.claim
    again = type(found).from_dict(found.to_dict())
    assert again.row("raw", "VECE", "x").claim == "risk" and repr(again) == repr(found)


def test_more_than_two_classes_compare_the_worst_claim(rng):
    n = 3_000
    v = rng.random(n)
    q = rng.dirichlet([2, 2, 2], n)
    y = (rng.random(n)[:, None] > q.cumsum(1)).sum(1)
    shift = 0.25 * (v - 0.5)[:, None] * np.array([1.0, -1.0, 0.0])
    p = np.clip(q + shift, 0.01, None)
    found = vc.compare(y, {"raw": p / p.sum(1, keepdims=True), "truth": q}, {"v": v})
    assert found.row("raw", "VECE", "v").claim in ("class 0", "class 1")
    assert found.row("truth", "VECE", "v").verdict in ("fixed", "better")
    assert found.row("raw", "ECE").claim == "confidence"


def test_a_change_needs_a_size_to_be_worse_or_better():
    """A sure rise of the log-loss by 0.00005 is not "made worse"."""
    rng = np.random.default_rng(5)
    q = rng.uniform(0.02, 0.98, 200_000)
    y = rng.random(200_000) < q
    found = vc.compare(y, {"raw": q, "shifted": np.clip(q + 0.005, 0, 1)}, None, event="positive")
    row = found.row("shifted", "log-loss")
    assert row.difference_low > 0 and row.p_holm < 0.05 and row.difference < 0.001
    assert row.verdict == "unchanged"


def test_verdicts_are_adjusted_for_the_number_of_comparisons(rng):
    n = 400
    q = rng.uniform(0.2, 0.8, n)
    sets = {"raw": q} | {f"m{k}": np.clip(q + rng.normal(0, 0.02, n), 0, 1) for k in range(20)}
    found = vc.compare(rng.random(n) < q, sets, None, event="positive")
    rows = [row for row in found.rows if row.method != "raw"]
    assert any(row.p_value < 0.05 for row in rows)
    for row in rows:
        assert (
            row.p_holm
            >= min(1, row.p_value * sum(other.p_value >= row.p_value for other in rows)) - 1e-12
        )
        assert row.verdict == "unchanged" or row.p_holm < 0.05
