"""Rows that are made up to check an export."""

import pytest

import varcal as vc
from varcal.exceptions import InputError


def test_durations_are_refused_with_the_way_out(rng):
    p = rng.random(200)
    waited = rng.integers(0, 1000, 200).astype("timedelta64[s]")
    fitted = vc.VariableCalibrator().fit(p, rng.random(200) < p, {"waited": waited})
    with pytest.raises(InputError, match="'waited' holds durations") as caught:
        fitted.to_python()
    assert "seconds" in caught.value.hint
