"""The second stage of the variable calibrator: tables of pairs and trees where rows are many."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from cases.luck import log_loss, lucky_days
from varcal import VariableCalibrator, load
from varcal.exceptions import InputError


def world(name: str, n: int, seed: int):
    """Return scores, outcomes, variables and true probabilities."""
    rng = np.random.default_rng(seed)
    v, z = rng.uniform(size=(n, 4)), rng.normal(scale=1.2, size=n)
    sign = {
        "nothing": np.zeros(n),
        "checkerboard": 2.4 * ((np.floor(6.3 * v[:, 0]) + np.floor(6.3 * v[:, 1])) % 2 - 0.5),
        "spikes": 1.3 * np.sign(np.prod(v[:, :3] - 0.45, axis=1)),
        "jump": 0.9 * np.sign(v[:, 0] - 0.65) + 0.9 * (np.abs(v[:, 1] - 0.5) < 0.12),
    }[name]
    truth = expit(z + sign)
    return expit(z), (rng.random(n) < truth).astype(int), v, truth


@cache
def fitted(name: str, n: int = 6000, **options):
    p, y, v, _ = world(name, n, 100)
    return VariableCalibrator(**options).fit(p, y, v)


@cache
def mixed():
    """Return a fit on rows with categories and missing values, and the rows."""
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
    return VariableCalibrator().fit(expit(z), y, v), expit(z), y, v


@pytest.mark.parametrize(("name", "least"), [("checkerboard", 0.02), ("spikes", 0.02)])
def test_interactions_that_the_first_stage_misses_are_learned(name, least):
    p, y, v, _ = world(name, 20_000, 200)
    grown, first = fitted(name), fitted(name, trees=False)
    assert first.model_.growth is None
    before, after = (log_loss(y, fit.predict_proba(p, v)[:, 1]) for fit in (first, grown))
    assert before - after > least
    growth = grown.model_.growth
    assert (growth.tables[0].pair == (1, 2)) if name == "checkerboard" else growth.share > 0.5


def test_where_there_is_nothing_to_learn_the_first_stage_stays_as_it_is():
    p, y, v, _ = world("nothing", 4000, 100)
    fit = VariableCalibrator().fit(p, y, v)
    assert fit.model_.growth is None
    same = VariableCalibrator(trees=False).fit(p, y, v)
    assert (fit.predict_proba(p, v) == same.predict_proba(p, v)).all()


@pytest.mark.parametrize(
    "options", [{"monotone": True}, {"preserve_ranking": True}, {"interactions": False}]
)
def test_options_that_exclude_the_second_stage(options):
    p, y, v, _ = world("checkerboard", 3000, 100)
    fit = VariableCalibrator(**options).fit(p, y, v)
    assert fit.model_.growth is None
    assert ("excludes them" in str(fit.describe())) == ("interactions" not in options)


def test_growth_must_be_true_or_false():
    with pytest.raises(InputError, match="growth must be one of True, False; got 'yes'"):
        VariableCalibrator(growth="yes").fit([0.2, 0.8], [0, 1])


def test_max_shift_limits_both_stages():
    p, y, v, _ = world("checkerboard", 6000, 100)
    fit = VariableCalibrator(max_shift=0.05).fit(p, y, v)
    assert fit.model_.growth is not None
    assert np.abs(fit.predict_proba(p, v)[:, 1] - p).max() <= 0.05 + 1e-12


def test_the_order_of_rows_changes_nothing():
    fit, p, y, v = mixed()
    turned = np.random.default_rng(0).permutation(len(p))
    again = VariableCalibrator().fit(p[turned], y[turned], v.iloc[turned])
    some = slice(0, 500)
    assert (fit.predict_proba(p[some], v[some]) == again.predict_proba(p[some], v[some])).all()


def test_a_weight_of_two_is_the_same_as_two_rows():
    p, y, v, _ = world("spikes", 4000, 100)
    weight = np.where(np.arange(4000) % 3, 1.0, 2.0)
    twice = np.repeat(np.arange(4000), weight.astype(int))
    weighted = VariableCalibrator().fit(p, y, v, sample_weight=weight)
    repeated = VariableCalibrator().fit(p[twice], y[twice], v[twice])
    assert weighted.model_.growth is not None
    new = world("spikes", 500, 300)
    q = weighted.predict_proba(new[0], new[2])
    assert np.abs(q - repeated.predict_proba(new[0], new[2])).max() < 1e-6


def test_rows_of_a_group_are_held_out_together():
    lucky = lucky_days(6000, 100, 0.8)
    days = lucky.v["month"] * 28 + lucky.v["day"]
    alone = VariableCalibrator().fit(lucky.p, lucky.y, lucky.v, blocks=False)
    assert alone.model_.growth is not None
    assert alone.model_.growth.tables[0].pair == (1, 2)
    grouped = VariableCalibrator().fit(lucky.p, lucky.y, lucky.v, groups=days)
    other = lucky_days(20_000, 999, 0.8)
    raw = log_loss(other.y, other.p)
    assert log_loss(other.y, alone.predict_proba(other.p, other.v)[:, 1]) > raw + 0.02
    assert log_loss(other.y, grouped.predict_proba(other.p, other.v)[:, 1]) < raw + 0.001


def test_later_rows_judge_the_second_stage():
    lucky = lucky_days(6000, 100, 0.8)
    days = lucky.v["month"] * 28 + lucky.v["day"]
    fit = VariableCalibrator().fit(lucky.p, lucky.y, lucky.v, time=days)
    assert fit.model_.growth is None
    p, y, v, _ = world("checkerboard", 8000, 100)
    assert VariableCalibrator().fit(p, y, v, time=np.arange(8000)).model_.growth is not None


@pytest.mark.parametrize("name", ["checkerboard", "spikes"])
def test_intervals_cover_the_truth(name):
    p, _, v, truth = world(name, 5000, 200)
    low, high = fitted(name).predict_interval(p, v)
    covered = (low[:, 1] <= truth) & (truth <= high[:, 1])
    assert covered.mean() > 0.9


def test_describe_and_effects_tell_what_the_second_stage_does():
    text = str(fitted("checkerboard").describe())
    assert "Table of v0 × v1: lowers the log-loss of held-out rows by 0.0" in text
    text = str(fitted("spikes").describe())
    assert "trees, mostly along v" in text
    fit, p, _, v = mixed()
    first = VariableCalibrator(trees=False).fit(p, mixed()[2], v).effects()
    both = zip(fit.effects().curves, first.curves, strict=True)
    apart = [np.abs(grown.value - before.value).max() for grown, before in both]
    assert max(apart) > 0.05
    assert fit.effects()["gone"][0].missing is not None


def test_a_saved_file_gives_the_same_answers(tmp_path):
    fit, p, _, v = mixed()
    assert fit.model_.growth.trees is not None
    fit.save(tmp_path / "fit.json")
    again = load(tmp_path / "fit.json")
    assert (again.predict_proba(p, v) == fit.predict_proba(p, v)).all()
    assert (tmp_path / "fit.json").stat().st_size < 5_000_000
    assert str(again.describe()) == str(fit.describe())


def test_a_function_of_one_row_gives_the_same_answers():
    fit, _, _, v = mixed()
    p, new = np.linspace(0, 1, 60), v.iloc[:60].copy()
    new.loc[new.index[:5], "kind"] = "unseen"
    new.loc[new.index[5:9], "kind"] = None
    new.loc[new.index[9:12], "a"] = np.nan
    new.loc[new.index[12:14], "b"] = [-1e300, 1e300]
    score = fit.scorer()
    rows = [
        {name: None if pd.isna(value) else value for name, value in row.items()}
        for row in new.to_dict("records")
    ]
    found = [score(float(each), row) for each, row in zip(p, rows, strict=True)]
    assert np.abs(found - fit.predict_proba(p, new)[:, 1]).max() < 1e-12


def test_exports_give_the_same_answers():
    fit = mixed()[0]
    assert fit.model_.growth.tables
    assert fit.model_.growth.trees is not None
    fit.to_python().check()
    pytest.importorskip("onnxruntime")
    fit.to_onnx().check()


def test_sql_gives_the_same_answers():
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        mixed()[0].to_sql("duckdb").check(connection)
