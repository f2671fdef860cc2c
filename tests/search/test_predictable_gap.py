"""How much of the gap can be predicted: planted gaps, calibrated models, any order of rows."""

import json

import numpy as np
import pytest

import varcal as vc
from varcal.exceptions import InputError


def world(n=3000, seed=0, size=0.2):
    rng = np.random.default_rng(seed)
    X = {
        "a": rng.random(n),
        "b": rng.random(n),
        "kind": rng.choice(["x", "y", "z"], n),
        "noise": rng.standard_normal(n),
    }
    p = rng.uniform(0.3, 0.7, n)
    gap = size * ((X["a"] > 0.5) & (X["kind"] == "x"))
    y = (rng.random(n) < p - gap).astype(int)
    return {"y": y, "p": p, "X": X}, gap


def test_a_planted_gap_is_found_and_its_lower_limit_holds():
    given, gap = world()
    found = vc.predictable_gap(**given)
    true = np.sqrt(np.mean(gap**2))
    assert 0 < found.low < found.value < 1.3 * true
    assert found.low < true and found.p_value < 0.001
    assert found.claim == "probability"
    assert "At least" in found.sentence and "Predictable gap" in repr(found)
    again = vc.results.PredictableGap.from_dict(
        json.loads(json.dumps(found.to_dict(), allow_nan=False))
    )
    assert again == found


@pytest.mark.slow
@pytest.mark.parametrize("units", [None, 120], ids=["rows", "groups"])
def test_a_calibrated_model_is_seldom_rejected(units):
    rejected = 0
    for seed in range(15):
        given, _ = world(600, seed, 0.0)
        if units:  # rows of a group are copies: they have to be in the same block
            rows = np.repeat(np.arange(units), 600 // units)
            given = {"y": given["y"][rows], "p": given["p"][rows], "groups": rows,
                     "X": {name: one[rows] for name, one in given["X"].items()}}  # fmt: skip
        found = vc.predictable_gap(**given)
        rejected += found.p_value < 0.05
        assert (found.low > 0) == (found.p_value < 0.05)
    assert rejected <= 3  # of 15 at 5 %: more in 1 of 180


def test_rounding_of_another_processor_has_no_influence():
    """Blocks followed the order of probabilities, and a last bit changed the value by a tenth."""
    given, _ = world(1500)
    p = given["p"].round(2)  # many are equal
    near = p * (1 + 1e-13 * np.random.default_rng(3).standard_normal(1500))
    found, again = (vc.predictable_gap(**given | {"p": one}) for one in (p, near))
    assert (again.value, again.low) == pytest.approx((found.value, found.low), rel=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": None}, "X is None"),
        ({"groups": np.zeros(1500, int)}, "groups has 1 group"),
        ({"level": 1}, "level must"),
        (world(100)[0], "there are 100 rows"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    with pytest.raises(InputError, match=message):
        vc.predictable_gap(**world(1500)[0] | change)
