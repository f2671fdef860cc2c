"""Soft labels: shares between 0 and 1 in the place of classes."""

import numpy as np
import pytest

import varcal as vc
from varcal.exceptions import InputError


def judged(n=3000, seed=0, fault=0.0):
    """Shares of ten judges who say yes, and predictions that are too low where v > 0.7."""
    rng = np.random.default_rng(seed)
    p, v = rng.uniform(0.05, 0.95, n), rng.uniform(size=n)
    rate = np.clip(p + fault * (v > 0.7), 0.01, 0.99)
    return rng.binomial(10, rng.beta(20 * rate, 20 * (1 - rate))) / 10, p, v


@pytest.mark.parametrize("event", ["positive", "correct", "classwise"])
def test_a_share_is_as_many_votes(event):
    y, p, v = judged(500)
    votes = np.round(10 * y).astype(int)
    each = (np.arange(10) < votes[:, None]).astype(int).ravel()
    cuts = {"bins": [0, 0.2, 0.5, 0.8, 1], "event": event}
    one = vc.bin_table(y, p, v, **cuts)
    many = vc.bin_table(each, np.repeat(p, 10), np.repeat(v, 10), **cuts)
    for name in ("share", "predicted", "observed", "gap"):
        np.testing.assert_allclose(one.columns[name], many.columns[name], atol=1e-12)
    found = vc.vece(y, p, v, **cuts)
    assert found == pytest.approx(vc.vece(each, np.repeat(p, 10), np.repeat(v, 10), **cuts))


def test_the_positive_class_may_be_the_first():
    y, p, v = judged(500)
    one, two = (
        vc.vece(y, p, v, event="positive"),
        vc.vece(y, 1 - p, v, event="positive", pos_label=0),
    )
    assert one == pytest.approx(two)


def test_intervals_and_tests_hold():
    covered, rejected = [], []
    for seed in range(60):
        y, p, v = judged(1000, seed, fault=0.15)
        found = vc.estimate(y, p, v, event="positive")
        truth = float(np.mean(np.abs(np.clip(p + 0.15, 0.01, 0.99) - p) * (v > 0.7)))
        covered.append(found.low <= truth <= found.high)
        y, p, v = judged(1000, seed)
        rejected.append(vc.estimate(y, p, v, event="positive").p_value < 0.05)
    assert np.mean(covered) >= 0.9 and np.mean(rejected) <= 0.1


def test_an_audit_and_a_curve_find_the_fault():
    y, p, v = judged(fault=0.15)
    noise = np.random.default_rng(1).normal(size=len(v))
    found = vc.audit(y, p, {"v": v, "noise": noise})
    assert found.verdict == "repair" and found.places[0].variable == "v"
    inside = v >= float(found.row("v").table.columns["low"][found.places[0].first_bin])
    assert found.places[0].observed == pytest.approx(y[inside].mean(), abs=0.01)
    assert found.ladder is None and "shares between 0 and 1" in found.ladder_obstacle
    assert found["v"].gap[-20] < -0.1 < vc.curve(y, p, v, event="positive").gap[5]


def test_swapped_arguments_are_refused():
    y, p, v = judged(200)
    for function in (vc.vece, vc.bin_table, vc.estimate, vc.curve):
        with pytest.raises(InputError, match="look swapped"):
            function(p, (y > 0.5).astype(int), v)


@pytest.mark.parametrize(
    "function",
    [
        lambda y, p, v: vc.slices(y, p, {"v": v}),
        lambda y, p, v: vc.compare(y, {"a": p, "b": p**2}, {"v": v}),
        lambda y, p, v: vc.decompose(y, p),
        lambda y, p, v: vc.measures(y, p),
        lambda y, p, v: vc.reliability(y, p),
        lambda y, p, v: vc.vece(y, np.column_stack([1 - p, p]), v),
        lambda y, p, v: vc.vece(3 * y, p, v),
    ],
)
def test_others_need_classes(function):
    with pytest.raises(InputError, match="y is not a label"):
        function(*judged(200))


def test_amounts_get_the_hint():
    y, p, v = judged(200)
    with pytest.raises(InputError, match='for amounts or counts pass outcome="mean"'):
        vc.vece(3 * y, p, v)
    with pytest.raises(InputError, match='for amounts or counts pass outcome="mean"'):
        vc.vece((y > 0.5).astype(int), 3 * p, v)
