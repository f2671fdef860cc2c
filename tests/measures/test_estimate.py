import json

import numpy as np
import pytest

import varcal as vc
from varcal.exceptions import InputError


def test_ece_and_every_event(rng):
    p = rng.dirichlet([1, 1, 1], 600)
    y = np.array([rng.choice(3, p=row) for row in p])
    for event in ("correct", "classwise"):
        found = vc.estimate(y, p, event=event)
        assert found.metric == "ECE" and found.value == pytest.approx(vc.ece(y, p, event=event))
        assert found.low <= found.debiased <= found.high and 0 < found.p_value <= 1
    assert found.to_dict()["event"] == "classwise"
    json.dumps(found.to_dict(), allow_nan=False)
    assert "noise floor" in repr(found)


def test_dropped_rows_weights_and_names(make_frame, rng):
    n = 300
    s = rng.random(n)
    data = make_frame({"y": [None, *(rng.random(n - 1) < s[1:]).tolist()], "p": s.tolist(),
                       "v": rng.normal(size=n).tolist(), "w": rng.random(n).tolist()})  # fmt: skip
    found = vc.estimate("y", "p", "v", data=data, sample_weight="w", unlabelled="drop")
    assert found.n_dropped == 1 and found.n_rows == 299 and found.variable == "v"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 0}, "level must lie between 0 and 1"),
        ({"v": np.ones((3, 2))}, "v has 2 variables; an estimate is along one"),
        ({"groups": ["a", "a", "a"]}, "only one group"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(InputError) as caught:
        vc.estimate([0, 1, 1], [0.2, 0.6, 0.7], **{"v": [1.0, 2.0, 3.0]} | options)
    assert message in str(caught.value)


def test_p_values_are_never_zero():
    v = np.arange(4000.0)
    found = vc.estimate(np.zeros(4000, int), np.full(4000, 0.9), v, event="positive")
    assert 0 < found.p_value < 1e-20
