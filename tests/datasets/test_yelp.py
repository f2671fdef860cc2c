"""The bundled Yelp predictions, and the parts of the script that made them that need no model."""

from __future__ import annotations

import numpy as np
import pytest

import varcal as vc
from varcal.datasets import Dataset, load_adult, load_yelp
from varcal.exceptions import InputError


@pytest.fixture(scope="module")
def yelp():
    return load_yelp()


class TestYelp:
    def test_shape(self, yelp):
        assert isinstance(yelp, Dataset)
        assert repr(yelp) == "Dataset('yelp', 29,500 rows, 11 variables)"
        assert list(yelp.X)[:3] == ["length", "special_characters", "words"]
        assert all(len(column) == 29_500 for column in (yelp.y, yelp.p, *yelp.X.values()))
        assert set(np.unique(yelp.y)) == {0, 1}
        assert dict(zip(*np.unique(yelp.split, return_counts=True), strict=True)) == {
            "calibration": 10_000,
            "test": 19_500,
        }

    def test_right_nearly_always_and_overconfident(self, yelp):
        held = yelp.part("test")
        hit, score = (held.p > 0.5) == held.y, np.maximum(held.p, 1 - held.p)
        assert hit.mean() == pytest.approx(0.9680, abs=5e-5)
        gap = score.mean() - hit.mean()
        assert gap == pytest.approx(0.0120, abs=5e-5)
        # One-sided at every length, so that the error by length is the mean gap (theorem 3).
        deciles = np.quantile(held["length"], np.linspace(0, 1, 11)[1:-1])
        by_length = np.bincount(np.searchsorted(deciles, held["length"]), score - hit)
        assert (by_length > 0).all()
        assert vc.vece(held.y, held.p, held["length"]) == pytest.approx(gap)

    def test_what_the_papers_calibrators_do(self, yelp):
        """The table of docs/datasets.md."""
        fit, held = yelp.part("calibration"), yelp.part("test")
        found = {
            "uncalibrated": held.p,
            "platt": vc.calibrators.PlattCalibrator.paper().fit(fit.p, fit.y).predict_proba(held.p),
            "beta": vc.BetaCalibrator.paper().fit(fit.p, fit.y).predict_proba(held.p),
        }
        for calibrator in (vc.TreeCalibrator, vc.AugmentedCalibrator):
            fitted = calibrator.paper("yelp").fit(fit.p, fit.y, fit["length"])
            found[calibrator.__name__] = fitted.predict_proba(held.p, held["length"])
        figures = {
            name: (vc.ece(held.y, p), vc.vece(held.y, p, held["length"]))
            for name, p in found.items()
        }
        assert figures == {
            "uncalibrated": pytest.approx((0.0124, 0.0120), abs=1e-4),
            "platt": pytest.approx((0.0273, 0.0072), abs=1e-4),
            "beta": pytest.approx((0.0076, 0.0044), abs=1e-4),
            "TreeCalibrator": pytest.approx((0.0078, 0.0043), abs=1e-4),
            "AugmentedCalibrator": pytest.approx((0.0077, 0.0044), abs=1e-4),
        }

    def test_unknown_part(self, yelp):
        with pytest.raises(InputError, match="name must be one of") as caught:
            yelp.part("tests")
        assert caught.value.hint == "did you mean 'test'?"
        with pytest.raises(InputError, match="Dataset adult has no parts"):
            load_adult().part("test")
