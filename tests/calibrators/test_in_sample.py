"""A calibrator warns if it is applied to the rows that it was fitted on, and only then."""

import warnings

import numpy as np
import pytest

from varcal.calibrators import BetaCalibrator, DirichletCalibrator, TreeCalibrator, load_calibrator
from varcal.calibrators._interface.fingerprint import fingerprint
from varcal.exceptions import InSampleWarning


def rows(seed, n=300):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return p, rng.random(n) < p, rng.normal(size=n)


def warns(fit, *given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit.predict_proba(*given)
    return [str(one.message) for one in caught if one.category is InSampleWarning]


@pytest.mark.parametrize("calibrator", [BetaCalibrator(), TreeCalibrator()])
def test_the_rows_of_the_fit_are_recognized_in_any_order(calibrator):
    p, y, v = rows(1)
    fit = calibrator.fit(p, y, v)
    name = type(calibrator).__name__
    (message,) = warns(fit, p, v)
    assert message.startswith(f"these are the rows that this {name} was fitted on")
    fresh = rows(2)
    assert not warns(fit, fresh[0], fresh[2])
    shuffled = np.random.default_rng(0).permutation(300)
    assert warns(fit, p[shuffled], v[shuffled])


def test_the_warning_points_at_the_caller():
    p, y, _ = rows(1)
    with pytest.warns(InSampleWarning) as caught:
        BetaCalibrator().fit(p, y).predict_proba(p)
    assert caught[0].filename == __file__


def test_the_same_scores_with_other_variables_are_other_rows():
    p, y, v = rows(3)
    fit = TreeCalibrator().fit(p, y, v)
    assert not warns(fit, p, v + 1)


def test_many_classes_and_saved_calibrators_are_recognized(tmp_path):
    rng = np.random.default_rng(4)
    p = rng.dirichlet([1, 1, 1], 200)
    fit = DirichletCalibrator().fit(p, rng.integers(0, 3, 200))
    fit.save(tmp_path / "cal.json")
    assert warns(load_calibrator(tmp_path / "cal.json"), p)


def test_fingerprints_distinguish_rows():
    a, b = np.array([0.1, 0.2]), np.array([1.0, 2.0])
    assert fingerprint(a, b) != fingerprint(b, a)
    assert fingerprint(a, b) != fingerprint(a, b[::-1])
    assert fingerprint(a, b) == fingerprint(a[::-1], b[::-1])
    assert fingerprint(np.array([0.0])) == fingerprint(np.array([-0.0]))
    assert fingerprint(a) != fingerprint(np.append(a, 0.3))
