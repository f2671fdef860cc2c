"""The bundled rows: published facts about them, and how wrong their models are."""

import numpy as np
import pytest

import varcal as vc
from varcal.datasets import load_adult, load_census, load_yelp
from varcal.exceptions import InputError


class TestAdult:
    @pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
    def test_to_frame(self, adult, backend):
        pytest.importorskip(backend)
        import narwhals as nw

        frame = nw.from_native(adult.to_frame(backend))
        assert frame.columns == ["y", "p", *adult.X]
        assert frame["workclass"].null_count() == 963
        np.testing.assert_array_equal(frame["p"].to_numpy(), adult.p)

    def test_unknown_library(self, adult):
        with pytest.raises(InputError, match="backend must be one of") as caught:
            adult.to_frame("panda")
        assert caught.value.hint == "did you mean 'pandas'?"


@pytest.fixture(scope="module")
def census():
    return load_census()


class TestTable:
    def test_facts_that_uci_publishes(self, census):
        """From adult.names: rows, rows without unknowns, and the share above 50K of all."""
        assert len(census.y_train) == 32_561 and len(census.y_test) == 16_281
        complete = []
        for X in (census.X_train, census.X_test):
            assert len(X) == 14
            coded = [column for column in X.values() if column.dtype == object]
            assert len(coded) == 8
            complete.append(np.logical_and.reduce([column != None for column in coded]).sum())  # noqa: E711
        assert complete == [30_162, 15_060]
        both = np.concatenate([census.y_train, census.y_test])
        assert round(100 * both.mean(), 2) == 23.93
        assert "CC BY 4.0" in census.licence and "Kohavi" in census.source


@pytest.fixture(scope="module")
def yelp():
    return load_yelp()


class TestYelp:
    def test_what_the_papers_calibrators_do(self, yelp):
        fit, held = yelp.part("calibration"), yelp.part("test")
        found = {
            "uncalibrated": held.p,
            "platt": vc.calibrators.PlattCalibrator.paper().fit(fit.p, fit.y).predict_proba(held.p),
            "beta": vc.calibrators.BetaCalibrator.paper().fit(fit.p, fit.y).predict_proba(held.p),
        }
        for calibrator in (vc.calibrators.TreeCalibrator, vc.calibrators.AugmentedCalibrator):
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
