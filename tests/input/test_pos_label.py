"""A vector p is P(y = pos_label), as in scikit-learn, in every function and engine."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss

import varcal as vc
from cases.command_line import run
from varcal.exceptions import InputError

N = 700
RNG = np.random.default_rng(3)
V, SEX = RNG.random(N), RNG.choice(["f", "m"], N)
P = RNG.beta(2, 3, N)
P[:5] = 0.5  # no class is more likely
Y = np.where(RNG.random(N) < np.clip(P + 0.3 * (V - 0.5), 0, 1), "bad", "good")
ROWS = pa.table({"y": Y, "p": P, "other": 1 - P, "v": V, "sex": SEX})


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    found = tmp_path_factory.mktemp("rows") / "rows.parquet"
    parquet.write_table(ROWS, found, row_group_size=200)
    return found


@pytest.fixture
def in_batches(monkeypatch):
    monkeypatch.setattr("varcal._sums.sources.FEW_ROWS", 0)
    monkeypatch.setattr("varcal._sums.sources.BATCH_ROWS", 200)


def figures(p, data, **options):
    """Return the figures of every function that reads rows, with column `p` as the vector."""
    found = {}
    for event in ("correct", "positive", "classwise"):
        found[f"ece {event}"] = vc.ece("y", p, data=data, event=event, **options)
        found[f"vece {event}"] = vc.vece("y", p, "v", data=data, event=event, **options)
        found[f"estimate {event}"] = vc.estimate(
            "y", p, "v", data=data, event=event, **options
        ).value
    for event in ("correct", "positive"):
        found[f"curve {event}"] = vc.curve("y", p, "v", data=data, event=event, **options).gap
        table = vc.bin_table("y", p, "v", data=data, event=event, **options)
        found[f"table {event}"] = np.array([table.columns["predicted"], table.columns["observed"]])
        shape = vc.reliability("y", p, data=data, event=event, **options)
        found[f"reliability {event}"] = shape.ece.value
    audit = vc.audit("y", p, ["v", "sex"], data=data, ladder="none", **options)
    found["audit"] = [audit.gap, *(row.uneven.debiased for row in audit)]
    found["label"] = audit.target.label == "bad"
    bins = vc.make_bins("y", p, ["v", "sex"], data=data, **options)
    found["collect"] = vc.audit(vc.collect(data, bins)).gap
    return found


def mirrored(found):
    """Return what is the same whichever of two classes is called positive."""
    signed = ("curve positive", "table positive", "audit", "collect", "label")
    plain = {name: value for name, value in found.items() if name not in signed}
    flipped = {"curve positive": -found["curve positive"], "collect": -found["collect"]}
    flipped["table positive"] = 1 - found["table positive"]
    flipped["audit"] = [-found["audit"][0], *found["audit"][1:]]
    return plain | flipped


def assert_same(one, other, tolerance=1e-9):
    for name, value in other.items():
        np.testing.assert_allclose(one[name], value, atol=tolerance, err_msg=name)


def test_a_vector_of_the_first_class_is_one_minus_that_of_the_second():
    bad = figures("p", ROWS, pos_label="bad")
    assert bad["label"]
    assert_same(bad, mirrored(figures("other", ROWS)))
    both = figures(["p", "other"], ROWS, pos_label="bad")
    assert_same(bad, both, 0)


def test_batches_mean_the_same(path, in_batches):
    whole = figures("p", ROWS, pos_label="bad")
    expected = {name: value for name, value in whole.items() if "curve" not in name}
    found = figures("p", pl.scan_parquet(path), pos_label="bad", edges="exact")
    assert_same(found, expected, 1e-7)


def test_logits_are_those_of_the_positive_class():
    p = P.clip(0.01, 0.99)
    logits = np.log(p / (1 - p))
    found = vc.ece(Y, logits, from_logits=True, event="positive", pos_label="bad")
    assert found == pytest.approx(vc.ece(Y, p, event="positive", pos_label="bad"), abs=1e-9)


def test_scikit_learn_says_the_same():
    cuts = np.linspace(0, 1, 8)
    observed, predicted = calibration_curve(Y, P, pos_label="bad", n_bins=7)
    table = vc.bin_table(Y, P, event="positive", pos_label="bad", bins=cuts)
    np.testing.assert_allclose(table.columns["predicted"], predicted)
    np.testing.assert_allclose(table.columns["observed"], observed)
    found = vc.compare(Y, {"a": P, "b": np.column_stack([P, 1 - P])}, pos_label="bad")
    brier = brier_score_loss(Y, P, pos_label="bad")
    for name in ("a", "b"):
        assert found.row(name, "Brier").value == pytest.approx(brier)


def test_searches_and_surfaces_follow_the_positive_class():
    X = {"v": V, "sex": SEX}
    settings = {"draws": 99, "after": None}
    bad = vc.slices(Y, P, X, pos_label="bad", **settings)
    good = vc.slices(Y, 1 - P, X, **settings)
    assert bad.p_value == good.p_value < 0.05
    assert [one.gap for one in bad] == pytest.approx([-one.gap for one in good])
    one = vc.surface(Y, P, V, SEX, pos_label="bad")
    two = vc.surface(Y, 1 - P, V, SEX)
    np.testing.assert_allclose(one.gap, -two.gap, atol=1e-9)
    both = np.column_stack([P, 1 - P])
    gaps = [vc.predictable_gap(Y, p, X, pos_label="bad").value for p in (P, both)]
    assert gaps[0] == gaps[1]


@pytest.mark.parametrize(
    "method", [vc.calibrators.PlattCalibrator, vc.calibrators.IsotonicCalibrator, vc.TreeCalibrator]
)
def test_a_calibrator_keeps_the_class_of_its_vector(method, tmp_path):
    fitted = method().fit(P, Y, {"v": V}, pos_label="bad")
    plain = method().fit(P, (Y == "bad").astype(int), {"v": V})
    assert fitted.classes_.tolist() == ["good", "bad"]
    new = {"v": V[:99]}
    expected = plain.predict_proba(P[:99], new)
    np.testing.assert_array_equal(fitted.predict_proba(P[:99], new), expected)
    fitted.save(tmp_path / "cal.json")
    again = vc.load(tmp_path / "cal.json")
    np.testing.assert_array_equal(again.predict_proba(P[:99], new), expected)


def test_monitors_watch_the_positive_class():
    rows = {"y": Y, "p": P, "v": V}
    turned = {"y": Y, "p": 1 - P, "v": V}
    states = []
    for data, label in ((rows, "bad"), (turned, None)):
        bins = vc.make_bins("y", "p", data=data, monitor=0.02, pos_label=label)
        monitor = vc.Monitor(bins)
        monitor.update(data, id="day 1")
        states.append(monitor)
    assert [cell.claim for cell in states[0]._cells.cells] == [
        cell.claim for cell in states[1]._cells.cells
    ]
    assert states[0].status.alarm == states[1].status.alarm


def test_estimators_and_scorers_name_the_class_only():
    X = pd.DataFrame({"v": V, "p": P})
    model = LogisticRegression().fit(X, Y)
    found = vc.audit_estimator(model, X, Y, pos_label="bad", ladder="none")
    p = model.predict_proba(X)[:, 0]
    assert found.gap == pytest.approx(p.mean() - (Y == "bad").mean())
    score = vc.ece_scorer(event="positive", pos_label="bad")(model, X, Y)
    assert score == pytest.approx(-vc.ece(Y, p, event="positive", pos_label="bad"))


def test_unknown_classes_are_named():
    for use in (
        lambda: vc.ece(Y, P, pos_label="worse"),
        lambda: vc.audit(Y, P, {"v": V}, pos_label="worse"),
        lambda: vc.calibrators.PlattCalibrator().fit(P, Y, pos_label="worse"),
        lambda: vc.make_bins("y", "p", ["v"], data=ROWS, pos_label="worse"),
    ):
        with pytest.raises(InputError, match="pos_label must be one of 'bad', 'good'; got 'worse'"):
            use()
    with pytest.raises(InputError, match="pos_label is 'a', which has no meaning with 3 classes"):
        vc.ece(["a", "b", "c"], np.full((3, 3), 1 / 3), pos_label="a")


def test_the_command_line_reads_the_column_as_the_positive_label(path, tmp_path):
    options = ["--label", "y", "--prob", "p", "--pos-label", "bad"]
    cal, out, state = (str(tmp_path / name) for name in ("cal.json", "out.parquet", "state.json"))
    assert run("calibrate", str(path), *options, "--method", "beta", "-o", cal).returncode == 0
    assert run("apply", cal, str(path), "-o", out).returncode == 0
    expected = vc.BetaCalibrator().fit(P, Y == "bad").predict_proba(P[:9])[:, 1]
    found = parquet.read_table(out)["p_calibrated"].to_numpy()[:9]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    started = run("monitor", "init", state, str(path), *options, "--variables", "v")
    assert started.returncode == 0
