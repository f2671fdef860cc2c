"""The bundled Yelp predictions, and the parts of the script that made them that need no model."""

from __future__ import annotations

import pytest

import varcal as vc
from varcal.datasets import load_adult, load_yelp
from varcal.exceptions import InputError


@pytest.fixture(scope="module")
def yelp():
    return load_yelp()


class TestYelp:
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
