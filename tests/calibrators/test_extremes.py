"""Extreme scores, separated classes, constants, tiny and large data: correct, or a warning."""

import numpy as np
import pytest
from sklearn.base import clone

from varcal.calibrators import (
    AugmentedCalibrator,
    BetaCalibrator,
    HistogramCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    ScalingBinningCalibrator,
    ShiftCalibrator,
    TemperatureCalibrator,
    TreeCalibrator,
    VariableCalibrator,
)
from varcal.exceptions import VarcalWarning


@pytest.mark.parametrize(
    "calibrator", [BetaCalibrator(), PlattCalibrator(smooth_targets=False), IsotonicCalibrator()]
)
def test_scores_of_0_and_1_get_their_hit_rates(calibrator):
    p = np.repeat([0.0, 1.0], [40, 60])
    y = np.r_[np.arange(40) < 6, np.arange(60) < 45]
    q = calibrator.fit(p, y).predict_proba([0.0, 1.0, 1e-300])[:, 1]
    assert q == pytest.approx([6 / 40, 45 / 60, 6 / 40], abs=1e-8)


def separated(n=60):
    p = np.linspace(0.01, 0.99, n)
    return p, p > 0.5


@pytest.mark.parametrize(
    "calibrator", [BetaCalibrator(), ScalingBinningCalibrator(l2=0), TemperatureCalibrator()]
)
def test_perfect_separation_is_warned_of(calibrator):
    p, y = separated()
    with pytest.warns(VarcalWarning, match="tell the classes apart with certainty"):
        q = calibrator.fit(p, y).predict_proba(p)
    assert np.isfinite(q).all()
    assert ((q[:, 1] > 0.5) == y).all()


@pytest.mark.parametrize(
    "calibrator",
    [BetaCalibrator(), IsotonicCalibrator(), HistogramCalibrator(), ScalingBinningCalibrator()],
    ids=repr,
)
def test_a_constant_score_gets_the_base_rate(calibrator):
    y = np.arange(40) % 4 == 0
    q = calibrator.fit(np.full(40, 0.7), y).predict_proba([0.7])
    assert q[0, 1] == pytest.approx(0.25, abs=1e-8)


@pytest.mark.parametrize("calibrator", [TreeCalibrator(), AugmentedCalibrator()])
@pytest.mark.parametrize("value", [7.0, np.nan, "same"])
@pytest.mark.filterwarnings("ignore:variable 'v' is missing at every row")
def test_a_constant_variable_leaves_beta(calibrator, value):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 0.99, 300)
    y = rng.random(300) < p**2
    v = np.full(300, value)
    found = clone(calibrator).fit(p, y, v).predict_proba(p, v)
    assert found == pytest.approx(BetaCalibrator().fit(p, y).predict_proba(p), abs=1e-6)


def test_no_probability_is_surer_than_the_rows_support():
    rng = np.random.default_rng(0)
    n = 1000
    v = {name: rng.normal(size=n) for name in "abc"}
    p = rng.uniform(0.3, 0.7, n)
    y = (sum(v.values()) + rng.logistic(scale=0.1, size=n) > 0).astype(int)
    fitted = VariableCalibrator().fit(p, y, v)
    far = {name: np.array([-4.0, 4.0]) for name in "abc"}
    q = fitted.predict_proba([0.5, 0.5], far)[:, 1]
    # One row's part of the mean outcome is mixed in.
    least = y.mean() / (n + 1)
    assert least <= q[0] < 3 * least and least <= 1 - q[1] < 3 * least
    np.testing.assert_allclose(fitted.to_onnx().run([0.5, 0.5], far)[:, 1], q, rtol=1e-6)
    low, high = fitted.predict_interval([0.5, 0.5], far)
    assert (low[:, 1] <= q).all() and (q <= high[:, 1]).all()
    doubled = VariableCalibrator().fit(p, y, v, sample_weight=np.full(n, 2.0))
    assert doubled.model_.mix == pytest.approx(1 / (2 * n + 1))


@pytest.mark.parametrize("classes", [2, 3])
def test_a_shift_without_events_adds_half_an_event_to_each_class(classes):
    p = np.full((99, classes), 1 / classes)
    with pytest.warns(VarcalWarning, match="half an event is added to each class"):
        fit = ShiftCalibrator().fit(p, np.zeros(99, int), classes=range(classes))
    wanted = np.r_[99.5, np.full(classes - 1, 0.5)] / (99 + classes / 2)
    assert fit.predict_proba(p[:1])[0] == pytest.approx(wanted, rel=1e-9)


def test_only_scores_of_0_and_1_stay_there_when_shifted():
    fit = ShiftCalibrator().fit([1e-300, 1e-200, 5e-324, 0.5], [0, 1, 1, 1])
    assert fit.shift_ > 600
    q = fit.predict_proba([0, 5e-324, 0.5, 1 - 2**-53, 1])[:, 1]
    assert q[[0, -1]].tolist() == [0, 1] and (q[1:-1] > 0).all() and (q[1:-1] < 1).all()
    fit = ShiftCalibrator().fit([1 - 1e-15] * 9 + [0.3], [0] * 8 + [1] * 2)
    assert fit.predict_proba([1e-300, 1e-310])[:, 1].min() > 0
    many = np.array([[1, 0, 0], [0, 0.5, 0.5], [1e-300, 0.5, 0.5], [0.2, 0.3, 0.5]])
    fit = ShiftCalibrator().fit(many, [0, 1, 2, 0])
    fit.shift_ = np.array([-40.0, 40.0, 0.0])
    q = fit.predict_proba(many)
    assert q[0].tolist() == [1, 0, 0]
    assert ((q == 0) == (many == 0)).all() and (q[1:] < 1).all()
