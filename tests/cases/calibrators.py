"""Calibrators of every kind, and data to fit them on."""

from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

from varcal.calibrators import (
    AugmentedCalibrator,
    BetaCalibrator,
    DirichletCalibrator,
    HistogramCalibrator,
    IsotonicCalibrator,
    PlattCalibrator,
    ScalingBinningCalibrator,
    ShiftCalibrator,
    TemperatureCalibrator,
    TreeCalibrator,
    VariableCalibrator,
    VectorScalingCalibrator,
)

ALL = [
    AugmentedCalibrator(),
    AugmentedCalibrator(PlattCalibrator(), degree=1),
    BetaCalibrator(),
    BetaCalibrator(parameters="am"),
    DirichletCalibrator(),
    HistogramCalibrator(),
    HistogramCalibrator(binning="uniform"),
    IsotonicCalibrator(),
    PlattCalibrator(),
    PlattCalibrator(on="probability"),
    ScalingBinningCalibrator(),
    ShiftCalibrator(),
    TemperatureCalibrator(),
    TreeCalibrator(),
    TreeCalibrator(IsotonicCalibrator(), max_depth=2),
    TreeCalibrator(TemperatureCalibrator(), max_depth=1, min_leaf=0.3, borrow=0),
    VariableCalibrator(),
    VariableCalibrator(trees=False, max_shift=0.2),
    VariableCalibrator(preserve_ranking=True),
    VectorScalingCalibrator(),
]
every = pytest.mark.parametrize("calibrator", ALL, ids=lambda c: repr(c).replace("\n", ""))


def binary(n=400, seed=0):
    rng = np.random.default_rng(seed)
    v = np.column_stack([rng.normal(size=n), rng.integers(0, 4, n)])
    p = rng.beta(0.8, 0.8, n).clip(1e-6, 1 - 1e-6)
    y = (rng.random(n) < np.clip(p**1.5 + 0.1 * (v[:, 0] > 0), 0.02, 0.98)).astype(int)
    return p, y, v


def many(n=400, k=3, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.7), n)
    y = (rng.random((n, 1)) > np.cumsum(p**0.6 / (p**0.6).sum(1, keepdims=True), axis=1)).sum(1)
    return p, np.minimum(y, k - 1), rng.normal(size=(n, 2))


@cache
def fitted(calibrator, data):
    """Return one of `ALL`, fitted on the rows of `binary` or `many`; it must not be changed."""
    return clone(calibrator).fit(*data())


def check_probabilities(q, n, k):
    assert q.shape == (n, k) and q.dtype == np.float64
    assert np.isfinite(q).all() and (q >= 0).all() and (q <= 1).all()
    assert q.sum(axis=1) == pytest.approx(np.ones(n), abs=1e-12)
