"""The gap over two variables: its band, kinds of variables, claims, groups and wrong input."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest

import varcal as vc
from varcal.exceptions import InputError


def world(n=6000, seed=0, gap=lambda u, v: 0.3 * (u - 0.5) * (v - 0.5) * 4):
    rng = np.random.default_rng(seed)
    u, v = rng.random((2, n))
    p = rng.uniform(0.3, 0.7, n)
    y = (rng.random(n) < p - gap(u, v)).astype(int)
    return {"y": y, "p": p, "X": {"u": u, "v": v}}


def test_a_saddle_is_found_with_its_signs():
    found = vc.surface(**world(20_000))
    assert found.gap.shape == (24, 24)
    over, under = found.sure == 1, found.sure == -1
    assert over[20:, 20:].mean() > 0.7 and over[:4, :4].mean() > 0.7
    assert under[20:, :4].mean() > 0.7 and under[:4, 20:].mean() > 0.7
    assert not under[20:, 20:].any() and not over[20:, :4].any()
    row, _ = found.worst
    assert {row in range(5), row in range(19, 24)} == {True, False}
    assert found.p_value < 0.01
    assert "surely off" in found.sentence and "too high by" in found.sentence


@pytest.mark.slow
@pytest.mark.parametrize(
    "gap",
    [
        lambda u, v: 0 * u,
        lambda u, v: 0.15 * np.exp(-(((u - v) / 0.1) ** 2) / 2),
        lambda u, v: 0.2 * u * np.sin(6 * v),
    ],
    ids=["zero", "ridge", "fan"],
)
def test_the_whole_surface_is_covered(gap):
    covered = 0
    for seed in range(12):
        given = world(10_000, seed, gap)
        found = vc.surface(**given)
        u, v = given["X"].values()
        cell = 24 * np.searchsorted(found.first.edges[1:-1], u, "left")
        cell += np.searchsorted(found.second.edges[1:-1], v, "left")
        total = np.bincount(cell, gap(u, v), 576)
        truth = (total / np.maximum(np.bincount(cell, minlength=576), 1)).reshape(24, 24)
        inside = (found.low <= truth) & (truth <= found.high)
        covered += inside[found.judged].all()
    assert covered >= 10  # of 12 at 95 %: fewer in 1 of 50


def test_the_order_of_variables_has_no_influence():
    given = world()
    turned = vc.surface(given["y"], given["p"], dict(reversed(given["X"].items())))
    np.testing.assert_allclose(vc.surface(**given).gap, turned.gap.T, atol=1e-9)


def test_integer_weights_of_levels_equal_repetition():
    rng = np.random.default_rng(0)
    n = 2000
    y, p = rng.integers(0, 2, n), rng.uniform(0.2, 0.8, n)
    X = pd.DataFrame({"a": rng.choice(["a", "b", "c"], n), "b": rng.choice(["x", "y"], n)})
    weight = rng.integers(1, 4, n)
    weighted = vc.surface(y, p, X, sample_weight=weight)
    y, p, X = (np.repeat(one, weight, axis=0) for one in (y, p, X.to_numpy()))
    repeated = vc.surface(y, p, X)
    np.testing.assert_allclose(weighted.gap, repeated.gap, atol=1e-12)
    np.testing.assert_allclose(weighted.predicted, repeated.predicted)
    # A weight says how much a row counts, not that it was seen as often.
    assert weighted.n.sum() == n < repeated.n.sum()


def test_levels_and_dates():
    given = world()
    u, v = given["X"].values()
    level = np.array([f"level {k}" for k in (u * 20).astype(int)])
    dates = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(v * 300, "D"))
    found = vc.surface(given["y"], given["p"], {"kind": level, "day": dates})
    assert found.first.kind == "levels" and len(found.first) <= 13
    assert any(label.startswith("other") for label in found.first.labels)
    assert found.second.text(0).startswith("day 2024-01")
    table = vc.surface(given["y"], given["p"], {"kind": level, "half": v > 0.5})
    np.testing.assert_allclose(
        table.gap[table.n > 0], (table.predicted - table.observed)[table.n > 0]
    )


def test_groups_widen_the_band():
    given = world()
    unit = np.repeat(np.arange(600), 10)
    # ten copies of every tenth row
    rows = pd.DataFrame(given.pop("X") | given)
    rows = rows.iloc[np.repeat(np.arange(0, 6000, 10), 10)]
    given = {"y": rows["y"], "p": rows["p"], "X": rows[["u", "v"]]}
    alone = vc.surface(**given)
    grouped = vc.surface(**given, groups=unit)
    wider = (grouped.high - grouped.low)[grouped.judged & alone.judged]
    narrow = (alone.high - alone.low)[grouped.judged & alone.judged]
    assert np.median(wider / narrow) > 1.5
    assert grouped.grouped


def test_frames_lazy_rows_and_saved_forms():
    given = world()
    frame = pl.DataFrame(given.pop("X") | given)
    found = vc.surface("y", "p", ["u", "v"], data=frame)
    lazy = vc.surface("y", "p", ["u", "v"], data=frame.lazy())
    np.testing.assert_array_equal(found.gap, lazy.gap)
    assert isinstance(found.to_frame(), pl.DataFrame)
    assert set(found.to_frame().columns) >= {"u", "v", "rows", "gap", "sure"}
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    np.testing.assert_array_equal(np.array(plain["gap"], float), found.gap)
    assert "Surface of 'u' and 'v'" in repr(found) and "<table" in found._repr_html_()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": None}, "X has 0 variables"),
        ({"X": np.zeros((6000, 3))}, "X has 3 variables"),
        ({"X": {"u": np.full(6000, np.nan), "v": np.zeros(6000)}}, "'u' is missing at every row"),
        ({"level": 2}, "level must"),
        ({"X": {"u": np.zeros(5), "v": np.zeros(6000)}}, "lengths differ"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    with pytest.raises(InputError, match=message):
        vc.surface(**world() | change)
