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
from varcal.exceptions import InputError

N = 700
RNG = np.random.default_rng(3)
V, SEX = RNG.random(N), RNG.choice(["f", "m"], N)
P = RNG.beta(2, 3, N)
P[:5] = 0.5  # no class is more likely
Y = np.where(RNG.random(N) < np.clip(P + 0.3 * (V - 0.5), 0, 1), "bad", "good")
ROWS = pa.table({"y": Y, "p": P, "other": 1 - P, "v": V, "sex": SEX})


def figures(p, data, **options):
    """Return the figures of every function that reads rows, with column `p` as the vector."""
    found = {}
    for event in ("correct", "positive", "classwise"):
        rows = dict(data=data, event=event, **options)
        found[f"ece {event}"] = vc.ece("y", p, **rows)
        found[f"vece {event}"] = vc.vece("y", p, "v", **rows)
        found[f"estimate {event}"] = vc.estimate("y", p, "v", **rows).value
        if event != "classwise":
            found[f"reliability {event}"] = vc.reliability("y", p, **rows).ece.value
    rows = dict(data=data, event="positive", **options)
    found["curve"] = vc.curve("y", p, "v", **rows).gap
    found["table"] = np.array(vc.bin_table("y", p, "v", **rows).columns["gap"])
    audit = vc.audit("y", p, ["v", "sex"], data=data, ladder="none", **options)
    found["audit"] = audit.gap
    found["uneven"] = [row.uneven.debiased for row in audit]
    bins = vc.make_bins("y", p, ["v", "sex"], data=data, **options)
    found["collect"] = vc.audit(vc.collect(data, bins)).gap
    return found


def assert_same(one, other, tolerance=1e-9):
    for name, value in other.items():
        np.testing.assert_allclose(one[name], value, atol=tolerance, err_msg=name)


def test_a_vector_of_the_first_class_is_one_minus_that_of_the_second():
    bad, good = figures("p", ROWS, pos_label="bad"), figures("other", ROWS)
    signed = ("curve", "table", "audit", "collect")
    assert_same(bad, {name: -one if name in signed else one for name, one in good.items()})
    assert_same(bad, figures(["p", "other"], ROWS, pos_label="bad"), 0)


def test_batches_mean_the_same(tmp_path, request):
    parquet.write_table(ROWS, tmp_path / "rows.parquet", row_group_size=200)
    expected = figures("p", ROWS, pos_label="bad")
    del expected["curve"]
    request.getfixturevalue("in_batches")
    lazy = pl.scan_parquet(tmp_path / "rows.parquet")
    assert_same(figures("p", lazy, pos_label="bad", edges="exact"), expected, 1e-7)


def test_scikit_learn_says_the_same():
    observed, predicted = calibration_curve(Y, P, pos_label="bad", n_bins=7)
    options = {"event": "positive", "pos_label": "bad"}
    table = vc.bin_table(Y, P, bins=np.linspace(0, 1, 8), **options)
    np.testing.assert_allclose(table.columns["predicted"], predicted)
    np.testing.assert_allclose(table.columns["observed"], observed)
    found = vc.compare(Y, {"a": P, "b": np.column_stack([P, 1 - P])}, pos_label="bad")
    brier = brier_score_loss(Y, P, pos_label="bad")
    assert [found.row(name, "Brier").value for name in "ab"] == pytest.approx([brier] * 2)
    p = P.clip(0.01, 0.99)
    logits = vc.ece(Y, np.log(p / (1 - p)), from_logits=True, **options)
    assert logits == pytest.approx(vc.ece(Y, p, **options), abs=1e-9)
    X = pd.DataFrame({"v": V, "p": P})
    model = LogisticRegression().fit(X, Y)
    score = vc.ece_scorer(**options)(model, X, Y)
    assert score == pytest.approx(-vc.ece(Y, model.predict_proba(X)[:, 0], **options))


def test_searches_and_surfaces_follow_the_positive_class():
    X = {"v": V, "sex": SEX}
    settings = {"draws": 99, "after": None, "level": 0.9}
    bad = vc.slices(Y, P, X, pos_label="bad", **settings)
    good = vc.slices(Y, 1 - P, X, **settings)
    assert bad.p_value == good.p_value < 0.1 and len(bad)
    assert [one.gap for one in bad] == pytest.approx([-one.gap for one in good])
    one, two = vc.surface(Y, P, X, pos_label="bad"), vc.surface(Y, 1 - P, X)
    np.testing.assert_allclose(one.gap, -two.gap, atol=1e-9)


@pytest.mark.parametrize("method", [vc.calibrators.PlattCalibrator, vc.calibrators.TreeCalibrator])
def test_a_calibrator_keeps_the_class_of_its_vector(method, tmp_path):
    fitted = method().fit(P, Y, {"v": V}, pos_label="bad")
    expected = method().fit(P, (Y == "bad").astype(int), {"v": V}).predict_proba(P, {"v": V})
    fitted.save(tmp_path / "cal.json")
    for one in (fitted, vc.load(tmp_path / "cal.json")):
        assert one.classes_.tolist() == ["good", "bad"]
        np.testing.assert_array_equal(one.predict_proba(P, {"v": V}), expected)


def test_unknown_classes_are_named():
    for use in (
        lambda: vc.ece(Y, P, pos_label="worse"),
        lambda: vc.calibrators.PlattCalibrator().fit(P, Y, pos_label="worse"),
        lambda: vc.make_bins("y", "p", ["v"], data=ROWS, pos_label="worse"),
    ):
        with pytest.raises(InputError, match="pos_label must be one of 'bad', 'good'; got 'worse'"):
            use()
    with pytest.raises(InputError, match=r"^pos_label is 'a', which has no meaning with 3 classes"):
        vc.ece(["a", "b", "c"], np.full((3, 3), 1 / 3), pos_label="a")
