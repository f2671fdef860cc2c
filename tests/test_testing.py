"""`assert_calibrated` fails exactly when an audit says repair, and shows its first screen."""

import pytest

import varcal as vc
from varcal.testing import assert_calibrated


def test_a_wrong_model_fails_with_the_first_screen():
    sim = vc.datasets.make_gap(4000, "tilt", vece=0.1)
    with pytest.raises(AssertionError) as caught:
        assert_calibrated(sim.y, sim.p, {"age": sim.v})
    text = str(caught.value)
    assert text.startswith("The probabilities are not calibrated.\n\nREPAIR")
    assert "age" in text
    assert_calibrated(sim.y, sim.p, {"age": sim.v}, limit=0.2)


def test_columns_of_a_frame_and_options():
    sim = vc.datasets.make_gap(4000, "none")
    frame = {"y": sim.y, "p": sim.p, "v": sim.v}
    assert_calibrated("y", "p", data=frame, limit=0.1)
    with pytest.raises(vc.exceptions.InputError, match="an assertion needs none"):
        assert_calibrated("y", "p", data=frame, ladder="all")
