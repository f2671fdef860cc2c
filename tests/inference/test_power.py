"""Rows needed, and the error that a test can find."""

import numpy as np
import pytest

import varcal as vc
from varcal.exceptions import InputError


def test_rows_needed_and_the_detectable_error_agree(rng):
    n = vc.rows_needed(0.05)
    s = np.full(n, 0.5)
    found = vc.estimate(rng.random(n) < s, s, rng.random(n), event="positive")
    assert found.detectable == pytest.approx(0.05, rel=0.05)
    assert vc.rows_needed(0.1) < n / 3.5


@pytest.mark.parametrize(
    "options", [{"gap": 0}, {"gap": 2}, {"power": 1}, {"level": 95}, {"n_bins": 0}]
)
def test_rows_needed_checks_its_arguments(options):
    with pytest.raises(InputError):
        vc.rows_needed(**{"gap": 0.05} | options)
