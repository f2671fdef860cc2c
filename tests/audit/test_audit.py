"""The record of an audit: figures, invariants, limits, decisions, suspicions, files."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest

import varcal as vc
from cases import audits
from varcal.exceptions import InputError


def quick(y, p, X, **options):
    return vc.audit(y, p, X, ladder="none", **options)


def test_figures_are_those_of_pandas():
    rows, found = audits.rows(), audits.found()
    hit, side = rows.churn == "Yes", rows.p >= 0.5
    gap = rows.p - hit
    assert found.target.name == "P(churn = Yes)" and found.target.sides == ("No", "Yes")
    assert (found.predicted, found.observed) == pytest.approx((rows.p.mean(), hit.mean()))
    cells = gap.groupby([rows.plan, side])
    share = cells.size() / len(rows)
    row = found.row("plan")
    assert row.error.value == pytest.approx((share * cells.mean().abs()).sum())
    rest = (gap - gap.groupby(side).transform("mean")).groupby([rows.plan, side]).mean()
    assert row.uneven.value == pytest.approx((share * rest.abs()).sum())
    table = row.table.to_frame().set_index(["side", "bin"])
    for (plan, yes), mean in cells.mean().items():
        one = table.loc[("Yes" if yes else "No", plan)]
        assert one.gap == pytest.approx(mean) and one.n == cells.size()[plan, yes]
    by_score = gap.groupby(pd.qcut(rows.p, 10))
    ece = (by_score.mean().abs() * by_score.size()).sum() / len(rows)
    assert found.by_score.value == pytest.approx(ece, abs=1e-4)
    place = found.row("age").place
    inside = rows.age >= 56
    assert (place.text, place.n) == ("56 and over", inside.sum())
    assert place.gap == pytest.approx(gap[inside].mean()) and place.is_sure and place.low < 0


def test_events_under_weights_are_effective_rows():
    """With weights 1 and 3 in turn, n rows count as n · 2² / ((1² + 3²) / 2)."""
    rows = audits.rows("rare")
    hit = rows.churn == "Yes"
    weight = np.where(np.cumsum(hit) % 2, 1.0, 3.0)
    plain, same, turn = (
        quick(rows.churn, rows.p, {"v": rows.noise}, sample_weight=one).target.events
        for one in (None, np.full(len(rows), 2.0), weight)
    )
    assert plain == same == hit.sum() and turn == pytest.approx(hit.sum() * 0.8, abs=1)


@pytest.mark.parametrize(
    ("rate", "options", "limit", "reason"),
    [
        (0.24, {}, 0.02, "the default"),
        (0.96, {}, 0.008, "a fifth of the rarer class's rate, 4.00%"),
        (0.009, {}, 0.0018, "a fifth of the rarer class's rate, 0.90%"),
        (0.009, {"limit": 0.05}, 0.05, "as set"),
        (0.24, {"relative_limit": 0.1}, 0.024, "10% of the rarer class's rate, 24.00%"),
    ],
)
def test_the_limit_follows_the_rate(rng, rate, options, limit, reason):
    y = np.arange(2000) < 2000 * rate
    found = quick(y, np.full(2000, rate), {"v": rng.normal(size=2000)}, **options)
    assert found.limit == pytest.approx(limit) and found.target.limit_reason == reason


def test_few_events_are_never_fine(rng):
    n = 20_000
    p, y = np.full(n, 0.0004), np.zeros(n, int)
    y[:8] = 1
    found = quick(y, p, {"v": rng.permutation(n) % 3 + 0.0}, limit=0.05)
    assert found.target.few_events and found.verdict == "cannot tell"
    assert "only 8 rows of the rarer outcome" in found.sentence
    assert quick(y, p, {"v": rng.normal(size=n)}).limit == pytest.approx(0.2 * 0.0004)
    assert quick(np.arange(n) % 2, np.full(n, 0.5), {"v": y}, limit=0.05).verdict == "fine"


def test_rare_levels_of_protected_columns_are_not_pooled(rng):
    levels = np.repeat(["most", "few", "fewer"], [2000, 6, 4])
    p = rng.random(levels.size)
    rows = pd.DataFrame({"of": levels, "p": p, "y": rng.random(levels.size) < p})
    for data in (rows, pl.from_pandas(rows).lazy()):
        found = vc.audit("y", "p", data=data, protected="of", ladder="none").row("of").table
        assert found.columns["bin"][:3] == ["few", "fewer", "most"]
        assert found.columns["n"][:3] == [6, 4, 2000]


def test_protected_columns():
    found = audits.found("fine")
    assert found.protected == ("plan",)
    rows = audits.rows().assign(one=1)
    some = vc.audit("churn", "p", data=rows, protected=["plan", "one"], ladder="none")
    assert some.protected == ("plan",) and dict(some.left_out)["one"]
    with pytest.raises(InputError, match=r"no column 'plam' .*\nhint: did you mean 'plan'"):
        vc.audit("churn", "p", data=rows, protected="plam")


def suspected(kind, rng, n=6000):
    p = rng.uniform(0.05, 0.95, n)
    y = rng.random(n) < p
    day = np.arange(n) % 90
    X = {"v": rng.normal(size=n), "w": rng.normal(size=n), "day": np.datetime64("2024-01-01") + day}
    if kind == "reversed":
        p = 1 - p
    elif kind == "perfect":
        y = p > 0.5
    elif kind == "classes":
        p = (p > 0.5) * 1.0
    elif kind == "one class":
        y = np.ones(n)
    elif kind == "outcome":
        X["left"] = np.where(y, "yes", "no")
    elif kind == "copies":
        y, p, X = np.tile(y, 2), np.tile(p, 2), {name: np.tile(x, 2) for name, x in X.items()}
    elif kind in ("days", "times"):
        y = rng.random(n) < np.clip(p + rng.normal(0, 0.15, 90)[day], 0, 1)
        seconds = rng.integers(0, 86_400, n) if kind == "times" else np.zeros(n, int)
        X["day"] = X["day"].astype("M8[s]") + seconds.astype("m8[s]")
    return quick(y, p, X).suspicions


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("reversed", "Scores look reversed: rows with higher probabilities have the outcome less"),
        ("perfect", "The model separates the classes almost perfectly (AUC 1.0000)"),
        ("classes", "All probabilities are 0 or 1. Are they predicted classes?"),
        ("one class", "All rows have the same outcome"),
        ("outcome", "Each bin of left has only one outcome. Does the column contain the outcome?"),
        ("copies", "50.0% of the rows are exact copies of others"),
        ("days", "Rows with the same day are correlated"),
        ("times", "Rows with the same day of day are correlated"),
    ],
)
def test_suspicions_about_the_input(rng, kind, words):
    (said,) = suspected(kind, rng)
    assert said.startswith(words) and (" correlated" in said) == ("groups=" in said)


def test_frequent_scores_are_bins_of_their_own(rng):
    p = rng.choice([0.0, 1.0], 4000)
    y = rng.random(4000) < 0.3 + 0.4 * p
    by_score = quick(y, p, {"v": p}).by_score
    assert by_score.value == pytest.approx(np.abs(p - 0.3 - 0.4 * p).mean(), abs=0.03)


def test_no_suspicion_about_clean_rows(rng, adult):
    assert suspected("clean", rng) == () == quick(adult.y, adult.p, adult.X).suspicions
    assert all(audits.found(kind).suspicions == () for kind in ("groups", "rare", "fine"))


def test_a_loaded_audit_is_the_same_and_says_what_it_lacks(tmp_path):
    found = vc.audit("churn", "p", data=audits.rows(), ladder="score")
    assert found["age"].variable == "age" and found.ladder is not None
    found.save(tmp_path / "audit.json")
    for again in (vc.load(tmp_path / "audit.json"), pickle.loads(pickle.dumps(found))):
        assert again.to_dict() == found.to_dict() and repr(again) == repr(found)
        with pytest.raises(InputError, match="the curve along 'plan' needs the rows, and the rows"):
            again["plan"]
    kept = pickle.loads(pickle.dumps(vc.audit("churn", "p", data=audits.rows())))
    assert (kept.ladder, kept.ladder_obstacle) == (
        None,
        "the rows are not kept in files and copies",
    )
    with pytest.raises(InputError, match="no column 'agee' in the audit\nhint: did you mean 'age'"):
        found["agee"]


def test_changes_since_last_month(rng):
    def month(step, n=6000):
        s, v = rng.uniform(0.3, 0.7, n), rng.random(n)
        return quick(rng.random(n) < s - step * (v > 0.5), s, {"v": v, "w": rng.normal(size=n)})

    before, after = month(0.02), month(0.2)
    changes = after.since(before)
    table = changes.to_frame().set_index("variable")
    assert table.loc["v", "verdict"] == "worse" and table.loc["w", "verdict"] == "no clear change"
    assert table.loc["v", "low"] < table.loc["v", "change"] < table.loc["v", "high"]
    assert before.since(after).to_frame().set_index("variable").loc["v", "verdict"] == "better"
    fewer = quick([False, True] * 50, [0.4, 0.6] * 50, {"z": range(100)})
    assert set(fewer.since(before).columns["verdict"]) == {"new", "gone"} and "worse" in repr(
        changes
    )
    with pytest.raises(InputError, match=r"previous is of P\(churn = Yes\) at level 0.95, this"):
        after.since(audits.found())
    with pytest.raises(InputError, match="previous is a dict"):
        after.since({})


def test_a_change_of_cells_is_not_called_worse_if_the_error_is_not(rng):
    """The error moves from one half of v to the other: as large as before, elsewhere."""

    def month(sign, n=20_000):
        s, v = rng.uniform(0.3, 0.7, n), rng.random(n)
        return quick(rng.random(n) < s - 0.1 * sign * np.sign(v - 0.5), s, {"v": v})

    changes = month(1).since(month(-1)).columns
    assert changes["verdict"] == ["changed"] and changes["low"][0] < 0 < changes["high"][0]
    assert changes["p_adjusted"][0] < 0.05 and changes["place"][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 2}, "limit must lie between 0 and 1"),
        ({"limit": "2"}, "limit must lie between 0 and 1; got '2'"),
        ({"limit": 0.1, "relative_limit": 0.1}, "limit and relative_limit are both given"),
        ({"level": 1.0}, "level must lie between 0 and 1"),
        ({"ladder": "al"}, "did you mean 'all'"),
        ({"bins": {"w": [1]}}, "no column 'w'"),
        ({"X": None}, "X is None"),
        ({"X": {"v": [np.nan, np.nan]}}, "X has no value"),
    ],
)
def test_wrong_options(options, message):
    with pytest.raises(InputError) as caught:
        vc.audit(**{"y": [0, 1], "p": [0.2, 0.6], "X": {"v": [1, 2]}} | options)
    assert message in str(caught.value)
