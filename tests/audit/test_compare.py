"""Comparisons: figures of scikit-learn, errors of audits, verdicts that are sure and matter."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score

import varcal as vc
from cases import audits
from varcal.exceptions import InputError

COLUMNS = ["age", "plan", "noise"]


@pytest.fixture(scope="module")
def world():
    sim = vc.datasets.make_gap(6000, "tilt", vece=0.1)
    noise = np.random.default_rng(0).normal(size=len(sim.y))
    sets = {"raw": sim.p, "truth": sim.rate, "worse": np.clip(sim.p + 0.2, 0, 1), "same": sim.p}
    return sim, sets, {"v": sim.v, "noise": noise}


@pytest.fixture(scope="module")
def found(world):
    sim, sets, X = world
    return vc.compare(sim.y, sets, X)


def test_verdicts(found):
    assert found.row("truth", "uneven", "v").verdict == "fixed"
    assert found.row("worse", "average").verdict == "made worse"
    assert found.row("same", "uneven", "v").verdict == "no clear change"
    assert found.row("raw", "uneven", "v").verdict == "baseline"
    assert found.row("truth", "log-loss").verdict == "better"
    assert found.row("worse", "Brier").verdict == "made worse"
    assert found.row("truth", "uneven", "noise").verdict == "no clear change"
    assert found.row("same", "AUC").difference == 0
    with pytest.raises(InputError, match="metric must be one of"):
        found.row("truth", "F1")
    with pytest.raises(InputError, match="did you mean 'truth'"):
        found.row("truht", "AUC")


def test_figures_are_those_of_scikit_learn(found, world):
    sim, sets, _ = world
    for name, p in sets.items():
        expected = {
            "accuracy": accuracy_score(sim.y, p > 0.5),
            "log-loss": log_loss(sim.y, p),
            "Brier": brier_score_loss(sim.y, p),
            "AUC": roc_auc_score(sim.y, p),
            "average": abs(p.mean() - sim.y.mean()),
        }
        for metric, value in expected.items():
            row = found.row(name, metric)
            assert row.value == pytest.approx(value) and row.low <= value <= row.high


def test_errors_are_those_of_audits():
    rows = audits.rows()
    p = {"raw": rows.p, "half": 0.5 * rows.p, "flipped": 1 - rows.p}
    found = vc.compare(rows.churn, p, rows[COLUMNS])
    assert found.target == "P(churn = Yes)" and found.label == "churn"
    for name in p:
        audit = vc.audit(rows.churn, p[name], rows[COLUMNS], ladder="none")
        assert found.row(name, "average").value == pytest.approx(abs(audit.gap))
        assert found.row(name, "by score").value == pytest.approx(audit.by_score.debiased)
        for row in audit:
            mine = found.row(name, "uneven", row.variable)
            assert mine.value == pytest.approx(row.uneven.debiased)
            assert (mine.target, mine.noise_floor) == (
                row.target,
                pytest.approx(row.uneven.noise_high),
            )


@pytest.mark.slow
def test_intervals_cover_known_truths():
    rng = np.random.default_rng(5)

    def draw(n):
        v, s = rng.random(n), rng.uniform(0.25, 0.75, n)
        y = rng.random(n) < s - 0.2 * (v - 0.5)
        return y, {"a": s, "b": np.clip(s - 0.1 * (v - 0.5), 0, 1)}, {"v": v}

    big = vc.compare(*draw(400_000))
    keys = [("log-loss", ""), ("AUC", ""), ("uneven", "v"), ("average", "")]
    truth = {key: big.row("b", *key).difference for key in keys}
    inside = dict.fromkeys(keys, 0)
    for _ in range(40):
        small = vc.compare(*draw(1500))
        for key in keys:
            row = small.row("b", *key)
            inside[key] += row.difference_low <= truth[key] <= row.difference_high
    for key, count in inside.items():
        assert count >= 33, key  # of 40 at 95 %: fewer in 1 of 1,400


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ([0.1], "methods must be a dict of probabilities by name; got list"),
        ({}, "methods must be a dict"),
        ({"a": [0.1, 1.9]}, "outside [0, 1]"),
        ({1: [0.1, 0.9], "1": [0.2, 0.8]}, "methods has two of the same name"),
    ],
)
def test_wrong_input(methods, message):
    with pytest.raises(InputError) as caught:
        vc.compare([0, 1], methods, None)
    assert message in str(caught.value)


def test_a_change_needs_a_size_and_is_adjusted_for_its_number(rng):
    q = rng.uniform(0.02, 0.98, 200_000)
    y = rng.random(200_000) < q
    row = vc.compare(y, {"raw": q, "moved": np.clip(q + 0.007, 0, 1)}, None).row(
        "moved", "log-loss"
    )
    assert row.difference_low > 0 and row.p_holm < 0.05 and row.difference < 0.001
    assert row.verdict == "no clear change"
    q, y = q[:400], y[:400]
    sets = {"raw": q} | {f"m{k}": np.clip(q + rng.normal(0, 0.02, 400), 0, 1) for k in range(20)}
    rows = [row for row in vc.compare(y, sets, None).rows if row.method != "raw"]
    assert any(row.p_value < 0.05 for row in rows)
    for row in rows:
        later = sum(other.p_value >= row.p_value for other in rows)
        assert row.p_holm >= min(1, row.p_value * later) - 1e-12
        assert row.verdict == "no clear change" or row.p_holm < 0.05
