"""The isotonic calibration curve against scikit-learn, and its band against a known truth."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import varcal as vc


def test_isotonic_curve_equals_scikit_learn_and_its_band_holds():
    held = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.02, 0.98, 800)
        truth = 0.1 + 0.8 * p**2
        y = (rng.random(800) < truth).astype(int)
        found = vc.reliability(y, p, event="positive", method="isotonic")
        fit = found.isotonic
        curve = 0.1 + 0.8 * fit.score**2
        held += bool(((fit.low <= curve) & (curve <= fit.high)).all())
    wanted = IsotonicRegression(y_min=0, y_max=1).fit(p, y).predict(fit.score)
    np.testing.assert_allclose(fit.rate, wanted, atol=1e-12)
    assert held >= 24
    np.testing.assert_array_equal(found.to_dict()["isotonic"]["high"], fit.high)
    with pytest.raises(vc.exceptions.InputError, match="band is for independent rows"):
        vc.reliability(y, p, method="isotonic", groups=y)
