"""Tables of bins, estimates and reliability diagrams, against rows, scipy and each other."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import varcal as vc
from varcal.exceptions import InputError


def test_columns_add_up_to_the_metric(make_frame, rng):
    n = 500
    s = rng.random(n)
    data = make_frame(
        {"y": (rng.random(n) < s).astype(int), "p": s, "age": rng.integers(18, 80, n)}
    )
    table = vc.bin_table("y", "p", "age", data=data)
    columns = table.columns
    assert sum(columns["n"]) == table.n_rows == n
    vece = vc.vece("y", "p", "age", data=data)
    assert np.dot(columns["share"], np.abs(columns["gap"])) == pytest.approx(vece)
    assert columns["low"][1:] == columns["high"][:-1]
    gap = np.subtract(columns["predicted"], columns["observed"])
    np.testing.assert_allclose(gap, columns["gap"])
    assert (columns["gap_low"] < gap).all() and (gap < columns["gap_high"]).all()
    assert isinstance(table.to_frame(), pd.DataFrame if isinstance(data, dict) else type(data))


def test_classwise_joint_missing_and_empty_bins():
    y, p = [0, 1, 2, 0], [[0.6, 0.2, 0.2]] * 4
    table = vc.bin_table(
        y, p, {"a": ["x", "x", "z", "z"], "b": [1.0, 3.0, np.nan, 2.0]}, event="classwise", n_bins=2
    )
    assert table.columns["class"] == [0] * 6 + [1] * 6 + [2] * 6
    assert 0 in table.columns["n"] and table.columns["bin"][2] == "x × missing"
    assert set(table.columns["a"]) == {"x", "z"}
    json.dumps(table.to_dict(), allow_nan=False)
    assert "6 empty bins not shown" in repr(table)
    with pytest.raises(InputError, match="variable 'gap' has the name of a column") as caught:
        vc.bin_table([0, 1], [0.1, 0.8], {"x": [1, 2], "gap": list("ab")})
    assert caught.value.hint == "rename the variable"
    assert vc.bin_table([0, 1], [0.1, 0.8], {"gap": list("ab")}).columns["n"] == [1, 1]


def test_intervals_widen_with_the_level_and_are_exact_with_few_events(rng):
    s = np.full(1000, 0.7)
    y, v = rng.random(1000) < 0.7, np.arange(1000)
    narrow, wide = (vc.bin_table(y, s, v, level=level).columns for level in (0.8, 0.99))
    assert (np.subtract(narrow["gap_low"], wide["gap_low"]) > 0).all()
    for level in (95, "a", None):
        with pytest.raises(InputError, match="level must lie between 0 and 1"):
            vc.bin_table([0, 1], [0.1, 0.2], [1, 2], level=level)
    few = np.arange(400) < 3
    exact = binom.sf(2, 400, np.array([0.001, 0.03])), binom.cdf(3, 400, np.array([0.001, 0.03]))
    assert exact[0][0] < 0.025 < exact[0][1] and exact[1][1] < 0.025  # what the ends must satisfy
    options = {"event": "positive", "classes": (0, 1)}
    table = vc.bin_table(few, np.full(400, 0.01), np.zeros(400), **options).columns
    most, least = 0.01 - table["gap_low"][0], 0.01 - table["gap_high"][0]
    assert binom.cdf(3, 400, most) == pytest.approx(0.025) and least < 0.0016
    diagram = vc.reliability(few, np.full(400, 0.01), **options)
    assert diagram.observed_high[0] == pytest.approx(most)


def test_estimates_of_every_event_and_names(make_frame, rng):
    p = rng.dirichlet([1, 1, 1], 600)
    y = np.array([rng.choice(3, p=row) for row in p])
    for event in ("correct", "classwise"):
        found = vc.estimate(y, p, event=event)
        assert found.metric == "ECE" and found.value == pytest.approx(vc.ece(y, p, event=event))
        assert found.low <= found.debiased <= found.high and 0 < found.p_value <= 1
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.to_dict()["event"] == "classwise" and "noise floor" in repr(found)
    s = rng.random(300)
    y, v, w = rng.random(300) < s, rng.normal(size=300), rng.random(300)
    columns = {"y": [None, *y[1:].tolist()], "p": s.tolist(), "v": v.tolist(), "w": w.tolist()}
    data = make_frame(columns)
    found = vc.estimate("y", "p", "v", data=data, sample_weight="w", unlabelled="drop")
    assert found.n_dropped == 1 and found.n_rows == 299 and found.variable == "v"
    v = np.arange(4000.0)
    certain = vc.estimate(np.zeros(4000, int), np.full(4000, 0.9), v, event="positive")
    assert 0 < certain.p_value < 1e-20
    with pytest.raises(InputError, match="v has 2 variables; an estimate is along one"):
        vc.estimate([0, 1, 1], [0.2, 0.6, 0.7], np.ones((3, 2)))


def test_the_bins_of_a_diagram_are_those_of_the_table_and_of_ece(rng):
    p = rng.random(3000)
    y = rng.random(3000) < p**1.5
    found = vc.reliability(y, p, event="positive", n_bins=7)
    table = vc.bin_table(y, p, event="positive", n_bins=7).columns
    np.testing.assert_allclose(found.predicted, table["predicted"])
    np.testing.assert_allclose(found.observed, table["observed"])
    assert found.counts.tolist() == table["n"]
    assert found.ece.value == pytest.approx(vc.ece(y, p, event="positive", n_bins=7))
    np.testing.assert_allclose(found.observed_low, found.predicted - table["gap_high"], atol=1e-12)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False)) == found.to_dict()
    assert found.to_frame().shape == (7, 7)
    assert "7 bins are outside" in repr(found)
    with pytest.raises(InputError, match="a diagram shows one claim"):
        vc.reliability([0, 1], [0.2, 0.8], event="classwise")


def test_the_consistency_band_is_that_of_the_binomial():
    p, y = np.repeat([0.1, 0.5, 0.9], 200), np.tile([0, 1], 300)
    found = vc.reliability(y, p, event="positive", bins=[0, 0.3, 0.7, 1])
    low, high = binom.ppf([[0.025], [0.975]], 200, [0.1, 0.5, 0.9]) / 200
    np.testing.assert_allclose(found.consistent_low, low, atol=0.006)
    np.testing.assert_allclose(found.consistent_high, high, atol=0.006)
    certain = vc.reliability([0, 0, 1, 1], [0.0, 0.0, 1.0, 1.0], event="positive", n_bins=2)
    assert certain.consistent_low.tolist() == certain.consistent_high.tolist() == [0.0, 1.0]
    certain.plot().figure.canvas.draw()
