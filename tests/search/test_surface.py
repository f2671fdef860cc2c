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
    return {"y": y, "p": p, "v1": u, "v2": v}


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
        place = [np.searchsorted(a.edges[1:-1], given[v], "left") for a, v in
                 ((found.first, "v1"), (found.second, "v2"))]  # fmt: skip
        cell = place[0] * 24 + place[1]
        total = np.bincount(cell, gap(given["v1"], given["v2"]), 576)
        truth = (total / np.maximum(np.bincount(cell, minlength=576), 1)).reshape(24, 24)
        inside = (found.low <= truth) & (truth <= found.high)
        covered += inside[found.judged].all()
    assert covered >= 10  # of 12 at 95 %: fewer in 1 of 50


def test_the_order_of_variables_has_no_influence():
    given = world()
    turned = vc.surface(**given | {"v1": given["v2"], "v2": given["v1"]})
    np.testing.assert_allclose(vc.surface(**given).gap, turned.gap.T, atol=1e-9)


def test_integer_weights_of_levels_equal_repetition():
    rng = np.random.default_rng(0)
    n = 2000
    given = {
        "y": rng.integers(0, 2, n),
        "p": rng.uniform(0.2, 0.8, n),
        "v1": rng.choice(["a", "b", "c"], n),
        "v2": rng.choice(["x", "y"], n),
    }
    weight = rng.integers(1, 4, n)
    weighted = vc.surface(**given, sample_weight=weight)
    repeated = vc.surface(**{name: np.repeat(one, weight) for name, one in given.items()})
    np.testing.assert_allclose(weighted.gap, repeated.gap, atol=1e-12)
    np.testing.assert_allclose(weighted.predicted, repeated.predicted)
    # A weight says how much a row counts, not that it was seen as often.
    assert weighted.n.sum() == n < repeated.n.sum()


def test_levels_and_dates():
    given = world()
    level = np.array([f"level {k}" for k in (given["v1"] * 20).astype(int)])
    dates = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(given["v2"] * 300, "D"))
    found = vc.surface(given["y"], given["p"], {"kind": level}, {"day": dates})
    assert found.first.kind == "levels" and len(found.first) <= 13
    assert any(label.startswith("other") for label in found.first.labels)
    assert found.second.text(0).startswith("day 2024-01")
    table = vc.surface(given["y"], given["p"], {"kind": level}, {"half": given["v2"] > 0.5})
    np.testing.assert_allclose(
        table.gap[table.n > 0], (table.predicted - table.observed)[table.n > 0]
    )


def test_groups_widen_the_band():
    given = world()
    unit = np.repeat(np.arange(600), 10)
    for name in given:  # ten copies of every tenth row
        given[name] = np.repeat(given[name][::10], 10)
    alone = vc.surface(**given)
    grouped = vc.surface(**given, groups=unit)
    wider = (grouped.high - grouped.low)[grouped.judged & alone.judged]
    narrow = (alone.high - alone.low)[grouped.judged & alone.judged]
    assert np.median(wider / narrow) > 1.5
    assert grouped.grouped


def test_frames_lazy_rows_and_saved_forms():
    given = world()
    frame = pl.DataFrame({"y": given["y"], "p": given["p"], "a": given["v1"], "b": given["v2"]})
    found = vc.surface("y", "p", "a", "b", data=frame)
    lazy = vc.surface("y", "p", "a", "b", data=frame.lazy())
    np.testing.assert_array_equal(found.gap, lazy.gap)
    assert isinstance(found.to_frame(), pl.DataFrame)
    assert set(found.to_frame().columns) >= {"a", "b", "rows", "gap", "sure"}
    again = vc.results.Surface.from_dict(json.loads(json.dumps(found.to_dict(), allow_nan=False)))
    np.testing.assert_array_equal(found.sure, again.sure)
    assert again.sentence == found.sentence
    assert "Surface of 'a' and 'b'" in repr(found) and "<table" in found._repr_html_()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"v2": None}, "v2 is None"),
        ({"v1": {"a": [1], "b": [2]}}, "v1 has 2 columns"),
        ({"v1": {"x": np.zeros(6000)}, "v2": {"x": np.zeros(6000)}}, "v1 and v2 are both 'x'"),
        ({"v1": np.full(6000, np.nan)}, "'v1' is missing at every row"),
        ({"level": 2}, "level must"),
        ({"v1": np.zeros(5)}, "lengths differ"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    with pytest.raises(InputError, match=message):
        vc.surface(**world() | change)
