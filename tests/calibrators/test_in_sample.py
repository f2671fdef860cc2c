"""A calibrator warns if it is applied to the rows that it was fitted on, and only then."""

import warnings

import numpy as np
import pytest

from varcal import load
from varcal.calibrators import BetaCalibrator, DirichletCalibrator, TreeCalibrator
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


def test_many_classes_are_recognized_and_a_loaded_calibrator_does_not_know(tmp_path):
    rng = np.random.default_rng(4)
    p = rng.dirichlet([1, 1, 1], 200)
    fit = DirichletCalibrator().fit(p, rng.integers(0, 3, 200))
    assert warns(fit, p) and not warns(fit, p[:, ::-1])
    fit.save(tmp_path / "cal.json")
    assert not warns(load(tmp_path / "cal.json"), p)


def test_the_same_columns_paired_in_another_way_are_other_rows():
    p, y, v = rows(5)
    fit = TreeCalibrator().fit(p, y, {"v": v, "missing": np.where(v < 0, np.nan, v)})
    for column in (v[::-1], np.where(v < 0, 0.5, v)):
        assert not warns(fit, p, {"v": column, "missing": np.where(v < 0, np.nan, v)})
