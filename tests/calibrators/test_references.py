"""Every score-based calibrator against an independent implementation or optimizer."""

from itertools import pairwise

import numpy as np
import pytest
import statsmodels.api as sm
from betacal import BetaCalibration
from scipy.optimize import minimize
from scipy.special import log_softmax, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from varcal.calibrators import (
    BetaCalibrator,
    DirichletCalibrator,
    HistogramCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    ScalingBinningCalibrator,
    ShiftCalibrator,
    TemperatureCalibrator,
)


@pytest.fixture(scope="module")
def cancer():
    """Naive Bayes on two features of breast cancer: overconfident, not separable."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, [4, 9]]
    model = GaussianNB().fit(X[::2], y[::2])
    return model, X[1::2], y[1::2], model.predict_proba(X[1::2])[:, 1]


@pytest.fixture(scope="module")
def digits():
    """A linear model on a few pixels of the digits."""
    X, y = load_digits(return_X_y=True)
    X = X[:, 20:30] / 16
    model = LogisticRegression(C=0.5, max_iter=500).fit(X[::2], y[::2])
    return model, X[1::2], y[1::2], model.predict_proba(X[1::2])


def beta_columns(p):
    return np.column_stack([np.log(p), -np.log1p(-p)])


@pytest.mark.parametrize("parameters", ["abm", "am", "ab"])
def test_beta_is_at_least_as_good_as_betacal_and_near_it(cancer, parameters):
    _, _, y, p = cancer
    theirs = BetaCalibration(parameters).fit(p, y).predict(p)
    ours = BetaCalibrator(parameters=parameters).fit(p, y).predict_proba(p)[:, 1]

    def log_loss(q):
        return -np.mean(np.where(y, np.log(q), np.log1p(-q)))

    assert log_loss(ours) <= log_loss(theirs) + 1e-12
    assert ours == pytest.approx(theirs, abs=2e-3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [500, 13_000, 110_000])  # without a sample, with one, with two
def test_a_newton_step_from_the_fit_of_beta_goes_nowhere(rng, n, weighted):
    p = rng.beta(0.7, 0.9, n)
    y = (rng.random(n) < p**1.5).astype(int)
    w = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    fit = BetaCalibrator().fit(p, y, sample_weight=w if weighted else None).maps_[0]
    # In long doubles the sums have no rounding that matters here.
    features = np.stack([np.log(p), -np.log1p(-p), np.ones(n)]).astype(np.longdouble)
    q = 1 / (1 + np.exp(-(np.append(fit.coef, fit.intercept) @ features)))
    gradient = (features * (w * (q - y))).sum(axis=1)
    hessian = (features * (w * q * (1 - q))) @ features.T
    step = np.linalg.solve(hessian.astype(float), gradient.astype(float))
    assert np.abs(step).max() < 1e-11


def test_beta_bounds_are_those_of_a_bounded_optimizer():
    rng = np.random.default_rng(5)
    for _ in range(20):
        p = rng.beta(1, 1, 60).clip(0.01, 0.99)
        y = rng.random(60) < np.clip(p + rng.normal(0, 0.6), 0.2, 0.8)

        def loss(theta, p=p, y=y):
            eta = beta_columns(p) @ theta[:2] + theta[2]
            return np.mean(np.logaddexp(0, eta) - y * eta)

        bounds = [(0, None), (0, None), (None, None)]
        options = {"ftol": 1e-15, "gtol": 1e-10}
        best = minimize(loss, [1, 1, 0], bounds=bounds, method="L-BFGS-B", options=options)
        ours = BetaCalibrator().fit(p, y).maps_[0]
        assert (ours.coef >= 0).all()
        assert loss([*ours.coef, ours.intercept]) <= best.fun + 1e-12


def test_platt_equals_scikit_learn(cancer):
    model, X, y, p = cancer
    peer = CalibratedClassifierCV(FrozenEstimator(model), method="sigmoid").fit(X, y)
    ours = PlattCalibrator(on="probability").fit(p, y)
    assert ours.predict_proba(p) == pytest.approx(peer.predict_proba(X), abs=1e-6)
    peer = LogisticRegression(C=1.0, tol=1e-13, solver="newton-cholesky").fit(p[:, None], y)
    ours = PlattCalibrator.paper().fit(p, y).maps_[0]
    assert ours.coef[0] == pytest.approx(peer.coef_[0, 0], abs=1e-8)
    assert ours.intercept == pytest.approx(peer.intercept_[0], abs=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
def test_shift_equals_a_binomial_model_of_statsmodels(weighted):
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 1, 3000).clip(1e-12, 1 - 1e-12)
    y, weight = rng.random(3000) < p**1.5, rng.integers(1, 4, 3000) if weighted else np.ones(3000)
    ends = np.array([0, 1, 0]), np.array([1, 0, 0]), np.array([5, 6, 7])  # which do not enter
    p_all, y_all, weight_all = (np.r_[a, b] for a, b in zip((p, y, weight), ends, strict=True))
    ours = ShiftCalibrator().fit(p_all, y_all, sample_weight=weight_all)
    peer = sm.GLM(
        y.astype(float),
        np.ones((3000, 1)),
        family=sm.families.Binomial(),
        offset=np.log(p / (1 - p)),
        freq_weights=weight,
    ).fit(tol=1e-14)
    assert ours.shift_ == pytest.approx(peer.params[0], abs=1e-9)


def test_shifts_of_many_classes_make_the_means_right():
    """The gradient of the multinomial likelihood: the mean of q minus the rate of each class."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.full(4, 0.5), 2000)
    y = (rng.random((2000, 1)) > np.cumsum(p**0.5 / (p**0.5).sum(1, keepdims=True), 1)).sum(1)
    p[:600, 0] = 0  # such a row enters with the other classes
    p /= p.sum(axis=1, keepdims=True)
    weight = rng.uniform(0.5, 2, 2000)
    ours = ShiftCalibrator().fit(p, y, sample_weight=weight)
    entered = p[np.arange(2000), y] > 0
    means = np.average(ours.predict_proba(p[entered]), axis=0, weights=weight[entered])
    rates = np.bincount(y[entered], weight[entered]) / weight[entered].sum()
    assert means == pytest.approx(rates, abs=1e-11)
    assert ours.shift_.sum() == pytest.approx(0, abs=1e-14)


@pytest.mark.parametrize("weighted", [False, True])
def test_isotonic_equals_scikit_learn(cancer, weighted):
    model, X, y, p = cancer
    weight = np.random.default_rng(2).uniform(0.1, 3, len(y)) if weighted else None
    grid = np.linspace(0, 1, 501)
    peer = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    peer.fit(p, y, sample_weight=weight)
    ours = IsotonicCalibrator().fit(p, y, sample_weight=weight)
    assert ours.predict_proba(grid)[:, 1] == pytest.approx(peer.predict(grid), abs=1e-12)
    if not weighted:
        whole = CalibratedClassifierCV(FrozenEstimator(model), method="isotonic").fit(X, y)
        assert ours.predict_proba(p) == pytest.approx(whole.predict_proba(X), abs=1e-12)


def test_temperature_equals_scikit_learn(digits):
    if "temperature" not in str(CalibratedClassifierCV._parameter_constraints["method"]):
        pytest.skip("scikit-learn has it from 1.8 on")
    model, X, y, p = digits
    peer = CalibratedClassifierCV(FrozenEstimator(model), method="temperature").fit(X, y)
    ours = TemperatureCalibrator().fit(p, y)
    assert ours.predict_proba(p) == pytest.approx(peer.predict_proba(X), abs=1e-7)
    assert (ours.predict(p) == model.predict(X)).all()


def penalized_loss(theta, p, y, weight, penalty, target):
    logits = np.log(p) @ theta[:, :-1].T + theta[:, -1]
    losses = -log_softmax(logits, axis=1)[np.arange(len(y)), y]
    return np.average(losses, weights=weight) + (penalty * (theta - target) ** 2).sum()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"l2": 0.01},
        {"toward": "zero", "l2": 1e-3},
    ],
    ids=str,
)
def test_dirichlet_is_at_the_optimum_of_its_definition(digits, settings):
    _, _, y, p = digits
    y, p = np.minimum(y, 4), np.column_stack([p[:, :4], p[:, 4:].sum(axis=1)])
    ours = DirichletCalibrator(**settings).fit(p, y)
    zero = settings.get("toward") == "zero"
    temperature = 1.0 if zero else TemperatureCalibrator().fit(p, y).temperature_
    p = p ** (1 / temperature)  # the penalty is that of tempered probabilities
    theta = np.column_stack([ours.coef_ * temperature, ours.intercept_])
    default = 5 * 4 / 4 / len(y), 5 / 4 / len(y)  # ¼ K (K − 1) / n and ¼ K / n
    weights = np.full((5, 6), settings.get("l2", default[0]))
    weights[:, -1] = settings.get("l2", default[1])
    target = np.column_stack([np.eye(5), np.zeros(5)])
    if zero:
        target = np.zeros((5, 6))
        assert (theta[-1] == 0).all()

    def loss(flat):
        full = flat.reshape(-1, 6)
        if zero:
            full = np.vstack([full, np.zeros(6)])
        return penalized_loss(full, p, y, None, weights, target)

    rows = theta[:-1] if zero else theta
    assert np.abs(numerical_gradient(loss, rows.ravel())).max() < 1e-8


def test_dirichlet_with_two_classes_and_no_penalty_is_beta(cancer):
    _, _, y, p = cancer
    beta = BetaCalibrator(nonnegative=False).fit(p, y).predict_proba(p)
    assert DirichletCalibrator(l2=1e-12).fit(p, y).predict_proba(p) == pytest.approx(beta, abs=1e-6)


@pytest.mark.parametrize("n_bins", [1, 3, 10])
def test_histogram_is_the_hit_rate_of_a_chunk(cancer, n_bins):
    _, _, y, p = cancer
    order = np.argsort(p, kind="stable")
    expected = np.empty(len(y))
    for chunk in np.array_split(order, n_bins):
        expected[chunk] = y[chunk].mean()
    ours = HistogramCalibrator(n_bins=n_bins).fit(p, y).predict_proba(p)[:, 1]
    assert ours == pytest.approx(expected, abs=1e-12)


def test_histogram_of_equal_width_has_midpoints_where_nothing_fell():
    fit = HistogramCalibrator(n_bins=4, binning="uniform").fit([0.1, 0.2, 0.25, 0.9], [0, 1, 1, 1])
    found = fit.predict_proba([0.0, 0.25, 0.26, 0.6, 1.0])[:, 1]
    assert found == pytest.approx([2 / 3, 2 / 3, 0.375, 0.625, 1.0])


@pytest.mark.parametrize("n", [35, 284])
def test_scaling_binning_is_its_definition(cancer, n):
    y, p = cancer[2][:n], cancer[3][:n]
    z = logit(np.clip(p, 1e-12, 1 - 1e-12))
    peer = LogisticRegression(C=1e10, tol=1e-13, max_iter=1000, solver="newton-cholesky")
    g = peer.fit(z[:, None], y).predict_proba(z[:, None])[:, 1]
    chunks = [c for c in np.array_split(np.sort(g), 10) if c.size]
    edges = [(a[-1] + b[0]) / 2 for a, b in pairwise(chunks)]
    edges = np.unique([*edges, 1.0])
    index = np.searchsorted(edges, g)
    expected = np.array([g[index == k].mean() for k in index])
    ours = ScalingBinningCalibrator().fit(p, y).predict_proba(p)[:, 1]
    assert ours == pytest.approx(expected, abs=1e-6)


def numerical_gradient(loss, theta, step=1e-5):
    """Return differences of fourth order, which are accurate to about 1e-10 here."""
    grad = np.empty(theta.size)
    for k in range(theta.size):
        e = np.zeros(theta.size)
        e[k] = step * max(1.0, abs(theta[k]))
        near = loss(theta + e) - loss(theta - e)
        far = loss(theta + 2 * e) - loss(theta - 2 * e)
        grad[k] = (8 * near - far) / (12 * e[k])
    return grad
