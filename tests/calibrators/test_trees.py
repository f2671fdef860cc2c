"""Trees in the variable calibrator: what several variables do together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss

from varcal import VariableCalibrator


def world(n: int, seed: int):
    """Return scores, outcomes and variables of which three are wrong together."""
    rng = np.random.default_rng(seed)
    v, z = rng.uniform(size=(n, 4)), rng.normal(scale=1.2, size=n)
    truth = expit(z + 1.3 * np.sign(np.prod(v[:, :3] - 0.45, axis=1)))
    return expit(z), (rng.random(n) < truth).astype(int), v


def mixed():
    """Return rows with categories and missing values."""
    rng = np.random.default_rng(101)
    n = 4000
    v = pd.DataFrame(
        {
            "a": rng.uniform(size=n),
            "b": rng.uniform(size=n),
            "kind": rng.choice(list("uvwxyz"), n),
            "gone": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
        }
    )
    z = rng.normal(size=n)
    board = 2.4 * ((np.floor(6.3 * v["a"]) + np.floor(6.3 * v["b"])) % 2 - 0.5)
    above = v["gone"].isna() | (v["gone"] > 0)
    both = 2.0 * np.where(v["kind"].isin(["u", "v", "w"]) == above, 1, -1)
    y = (rng.random(n) < expit(z + board + both * (v["a"] > 0.3))).astype(int)
    return expit(z), y, v


def test_interactions_that_curves_miss_are_learned():
    first, grown = (VariableCalibrator(trees=t).fit(*world(6000, 100)) for t in (False, True))
    assert first.model_.trees is None and grown.trees_share_ > 0.5
    p, y, v = world(20_000, 200)
    before, after = (log_loss(y, fit.predict_proba(p, v)[:, 1]) for fit in (first, grown))
    assert before - after > 0.02


@pytest.mark.parametrize("options", [{"monotone": True}, {"preserve_ranking": True}])
def test_options_that_exclude_trees(options):
    fit = VariableCalibrator(**options).fit(*world(3000, 100))
    assert fit.model_.trees is None
    assert "excludes them" in str(fit.describe())


def test_a_weight_of_two_is_the_same_as_two_rows():
    p, y, v = world(4000, 100)
    weight = np.where(np.arange(4000) % 3, 1.0, 2.0)
    twice = np.repeat(np.arange(4000), weight.astype(int))
    weighted = VariableCalibrator().fit(p, y, v, sample_weight=weight)
    repeated = VariableCalibrator().fit(p[twice], y[twice], v[twice])
    assert weighted.model_.trees is not None
    p, _, v = world(500, 300)
    assert np.abs(weighted.predict_proba(p, v) - repeated.predict_proba(p, v)).max() < 1e-6


def test_describe_and_effects_tell_what_trees_do():
    fit = VariableCalibrator().fit(*mixed())
    text = str(fit.describe())
    assert "trees, mostly along" in text and "a second model to be validated as one" in text
    (row,) = (row for row in fit.describe().rows if row["step"] == "trees")
    assert row["mean change, points"] > 0.5 and row["evidence"].startswith("saves 0.0")
    first = VariableCalibrator(trees=False).fit(*mixed()).effects()
    both = zip(fit.effects().curves, first.curves, strict=True)
    apart = [np.abs(grown.value - before.value).max() for grown, before in both]
    assert max(apart) > 0.05
    assert fit.effects()["gone"][0].missing is not None
