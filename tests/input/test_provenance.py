"""Answers about the calibration rows themselves are recognized, others are not."""

import numpy as np
import pytest

from varcal._input.provenance import MEMORY, fingerprint, in_sample, remember
from varcal.calibrators import BetaCalibrator, DirichletCalibrator, TreeCalibrator, load_calibrator


def rows(seed, n=300):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, rng.random(n) < p, rng.normal(size=n)


@pytest.mark.parametrize("calibrator", [BetaCalibrator(), TreeCalibrator()])
def test_answers_on_the_fitted_rows_are_known(calibrator):
    p, y, v = rows(1)
    fit = calibrator.fit(p, y, v)
    q = fit.predict_proba(p, v)
    name = type(calibrator).__name__
    assert in_sample(q) == in_sample(q[:, 1]) == in_sample(q.copy()[::-1]) == name
    fresh = rows(2)
    assert in_sample(fit.predict_proba(fresh[0], fresh[2])) is None
    shuffled = np.random.default_rng(0).permutation(300)
    assert in_sample(fit.predict_proba(p[shuffled], v[shuffled])) == name


def test_the_same_scores_with_other_variables_are_other_rows():
    p, y, v = rows(3)
    fit = TreeCalibrator().fit(p, y, v)
    assert in_sample(fit.predict_proba(p, v + 1)) is None


def test_many_classes_and_saved_calibrators_are_known_too(tmp_path):
    rng = np.random.default_rng(4)
    p = rng.dirichlet([1, 1, 1], 200)
    fit = DirichletCalibrator().fit(p, rng.integers(0, 3, 200))
    fit.save(tmp_path / "cal.json")
    again = load_calibrator(tmp_path / "cal.json")
    assert in_sample(again.predict_proba(p)) == "DirichletCalibrator"


def test_memory_is_bounded():
    for k in range(MEMORY + 5):
        remember(np.array([k / 1000, 0.123]), "x")
    assert in_sample(np.array([0.0, 0.123])) is None
    assert in_sample(np.array([MEMORY / 1000, 0.123])) == "x"


def test_fingerprints_tell_rows_apart():
    a, b = np.array([0.1, 0.2]), np.array([1.0, 2.0])
    assert fingerprint(a, b) != fingerprint(b, a)
    assert fingerprint(a, b) != fingerprint(a, b[::-1])
    assert fingerprint(a, b) == fingerprint(a[::-1], b[::-1])
    assert fingerprint(np.array([0.0])) == fingerprint(np.array([-0.0]))
    assert fingerprint(a) != fingerprint(np.append(a, 0.3))
