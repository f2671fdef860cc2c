"""Rows that are made up to check an export."""

import numpy as np
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


@pytest.mark.parametrize("rising", [True, False])
def test_rows_are_at_and_on_both_sides_of_the_threshold_of_a_tree(rng, rising):
    age = rng.integers(20, 110, 2000).astype(float)
    p = rng.uniform(0.05, 0.95, 2000)
    y = rng.random(2000) < np.where(age < 50, p, p**3)
    # Missing values go to the heavier side, which is right or left.
    v = {"age": age if rising else 110 - age}
    fitted = vc.TreeCalibrator(max_depth=1).fit(p, y, v)
    assert fitted.tree_.other == ("right" if rising else "left")
    exported = fitted.to_python()
    made_up = np.array(exported.rows.values(0), dtype=float)
    threshold = fitted.tree_.threshold
    for there in (made_up < threshold, made_up == threshold, made_up > threshold):
        assert there.sum() >= 5
    exported.check()
