"""`slices` from end to end: what is planted is found, on every kind of data."""

import json

import numpy as np
import pytest

import varcal as vc
from varcal._search.condition import Condition
from varcal._search.slices_result import Slice
from varcal.exceptions import InputError

DRAWS = 39


def planted(n=3000, seed=0, gap=0.25):
    """Rows whose risk is too high for women above 60."""
    rng = np.random.default_rng(seed)
    X = {
        "age": rng.integers(20, 90, n).astype(float),
        "sex": rng.choice(["f", "m"], n),
        "x": rng.normal(size=n),
        "kind": rng.choice(["a", "b", "c", "d"], n),
    }
    p = rng.uniform(0.3, 0.9, n)
    wrong = (X["age"] > 60) & (X["sex"] == "f")
    y = (rng.random(n) < p - gap * wrong).astype(int)
    return y, p, X, wrong


def jaccard(a, b):
    return (a & b).sum() / (a | b).sum()


@pytest.fixture(scope="module")
def found():
    y, p, X, _ = planted()
    return vc.slices(y, p, X, draws=DRAWS)


def test_a_planted_slice_is_found(found):
    y, p, X, wrong = planted()
    assert found.p_value == 1 / (DRAWS + 1)
    assert len(found) == 1
    one = found[0]
    assert jaccard(one.mask(X), wrong) > 0.85
    assert [condition.variable for condition in one.conditions] == ["age", "sex"]
    assert (one.claim, one.depth, one.p_adjusted) == ("probability", 2, 1 / (DRAWS + 1))
    inside = one.mask(X)
    assert one.rows == inside.sum()
    assert one.share == pytest.approx(inside.mean())
    assert one.gap == pytest.approx(p[inside].mean() - y[inside].mean())
    assert one.predicted - one.observed == pytest.approx(one.gap)
    assert one.low < 0.25 < one.high
    assert one.over_parents == pytest.approx(one.gap, abs=0.08)


def test_words(found):
    one = found[0]
    assert one.rule.endswith(" and sex = f")
    assert one.sentence.startswith(f"Where {one.rule} ({one.rows} rows, ")
    assert "too high by" in one.sentence
    lines = repr(found).splitlines()
    assert lines[0] == "1 slice, 3,000 rows, 4 variables (p=0.025)"
    assert lines[1].split() == ["shrunk", "interval", "rows", "says", "happens", "rule"]
    assert found.sentence.startswith("1 slice of 4 variables and 3,000 rows. Where ")


def test_a_slice_is_shrunk_for_the_search_and_its_interval_excludes_zero(found):
    """A rule is chosen for its gap; on other rows the same rule has a smaller one."""
    one = found[0]
    assert 0 < one.low < one.shrunk < one.gap < one.high
    for seed in range(6):
        y, p, X, _ = planted(gap=0.12, seed=seed)
        shown = vc.slices(y, p, X, draws=DRAWS)
        assert all(one.low * one.high > 0 for one in shown)
        assert shown.slices or shown.p_value > 0.05 or "none is certain" in shown.sentence


def test_table_file_and_settings(found, tmp_path):
    frame = found.to_frame()
    assert list(frame["rule"]) == [found[0].rule]
    assert {"rows", "share", "gap", "low", "high", "p_adjusted", "over_parents"} <= set(frame)
    found.save(tmp_path / "slices.json")
    again = vc.load(tmp_path / "slices.json")
    assert again == found
    assert repr(again) == repr(found)
    assert found.settings["draws"] == DRAWS
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict() | {
        "slices": json.loads(json.dumps(found.to_dict()["slices"]))
    }


def test_the_same_seed_gives_the_same_slices(found):
    y, p, X, _ = planted()
    assert vc.slices(y, p, X, draws=DRAWS) == found


def test_more_classes():
    rng = np.random.default_rng(4)
    n = 3000
    X = {"a": rng.random(n), "kind": rng.choice(["u", "v"], n)}
    p = rng.dirichlet([4, 3, 2], n)
    rate = p.copy()
    wrong = (X["a"] > 0.6) & (X["kind"] == "u")
    rate[wrong] = 0.45 * rate[wrong] + 0.55 * np.array([0.0, 0.0, 1.0])
    y = np.array(["x", "y", "z"])[(rng.random(n)[:, None] > rate.cumsum(axis=1)).sum(axis=1)]
    found = vc.slices(y, p, X, draws=DRAWS)
    assert {one.claim for one in found} <= {"confidence", "class x", "class y", "class z"}
    assert jaccard(found[0].mask(X), wrong) > 0.7
    for after in ("average", "single"):
        again = vc.slices(y, p, X, draws=DRAWS, after=after)
        assert again.p_value < 0.1


def test_missing_values_are_a_level_of_their_own():
    rng = np.random.default_rng(5)
    n = 3000
    gone = rng.random(n) < 0.2
    X = {"x": np.where(gone, np.nan, rng.normal(size=n)), "u": rng.random(n)}
    p = rng.uniform(0.3, 0.7, n)
    y = rng.random(n) < p + 0.2 * gone
    one = vc.slices(y, p, X, draws=DRAWS)[0]
    assert one.conditions[0].missing
    assert jaccard(one.mask(X), gone) > 0.95
    assert one.gap < 0


def test_dates():
    rng = np.random.default_rng(6)
    n = 2000
    day = np.datetime64("2024-01-01") + rng.integers(0, 300, n).astype("timedelta64[D]")
    late = day >= np.datetime64("2024-07-01")
    p = rng.uniform(0.3, 0.7, n)
    y = rng.random(n) < p + 0.2 * late
    X = {"day": day.astype(str), "u": rng.random(n)}
    one = vc.slices(y, p, X, draws=DRAWS)[0]
    assert one.conditions[0].kind == "datetime"
    assert jaccard(one.mask(X), late) > 0.9
    assert one.rule.startswith("day > 2024-")
    assert "EPOCH" in one.to_sql()


def test_weights_move_the_figures():
    y, p, X, wrong = planted(seed=2)
    heavy = np.where(X["kind"] == "a", 3.0, 1.0)
    one = vc.slices(y, p, X, draws=DRAWS, sample_weight=heavy)[0]
    inside = one.mask(X)
    assert jaccard(inside, wrong) > 0.7
    mean = np.average(p[inside] - y[inside], weights=heavy[inside])
    assert one.gap == pytest.approx(mean)
    assert one.weight == pytest.approx(heavy[inside].sum())
    tiny = vc.slices(y, p, X, draws=DRAWS, sample_weight=heavy * 2.0**-40)[0]
    assert tiny.rule == one.rule


def test_groups_are_less_certain_than_rows():
    rng = np.random.default_rng(7)
    unit = np.repeat(np.arange(100), 20)
    X = {"site": np.repeat(rng.normal(size=100), 20), "x": rng.normal(size=2000)}
    p = rng.uniform(0.3, 0.7, 2000)
    shift = np.repeat(rng.normal(0, 0.15, 100), 20)
    y = rng.random(2000) < np.clip(p + shift, 0, 1)
    plain = vc.slices(y, p, X, draws=DRAWS)
    grouped = vc.slices(y, p, X, draws=DRAWS, groups=unit)
    assert grouped.grouped
    assert plain.p_value < 0.05 < grouped.p_value


def test_the_score_may_be_a_variable():
    rng = np.random.default_rng(8)
    n = 3000
    p = rng.uniform(0.05, 0.95, n)
    X = {"a": rng.random(n), "b": rng.random(n)}
    y = rng.random(n) < np.where((p > 0.7) & (X["a"] > 0.5), p - 0.3, p)
    one = vc.slices(y, p, X, score=True, draws=DRAWS)[0]
    assert "score" in [condition.variable for condition in one.conditions]
    assert jaccard(one.mask(X, p), (p > 0.7) & (X["a"] > 0.5)) > 0.7
    assert '"my score"' in one.to_sql(score="my score")
    with pytest.raises(InputError, match="p is not given"):
        one.mask(X)
    with pytest.raises(InputError, match="score is not given"):
        one.to_sql()
    with pytest.raises(InputError, match="X has a column 'score'"):
        vc.slices(y, p, X | {"score": p}, score=True)


def test_a_calibrated_model_shows_nothing():
    y, p, X, _ = planted(gap=0.0, seed=11)
    found = vc.slices(y, p, X, draws=DRAWS)
    assert not len(found)
    assert found.sentence.startswith(
        "No slice of 4 variables and 3,000 rows is clearly worse than the "
    )
    assert repr(found) == found.sentence


def test_after_takes_off_what_is_known():
    rng = np.random.default_rng(9)
    n = 4000
    X = {"a": rng.random(n), "b": rng.random(n), "kind": rng.choice(["u", "v"], n)}
    p = rng.uniform(0.3, 0.7, n)
    overall = rng.random(n) < p - 0.15
    assert vc.slices(overall, p, X, draws=DRAWS, after=None).p_value < 0.05
    assert vc.slices(overall, p, X, draws=DRAWS).p_value > 0.05
    alone = rng.random(n) < p + 0.25 * (X["a"] - 0.5) - 0.1 * (X["kind"] == "u")
    assert vc.slices(alone, p, X, draws=DRAWS).p_value < 0.05
    assert vc.slices(alone, p, X, draws=DRAWS, after="single").p_value > 0.05
    corner = (X["a"] > 0.5) == (X["b"] > 0.5)
    crossed = rng.random(n) < p + np.where(corner, 0.15, -0.15)
    found = vc.slices(crossed, p, X, draws=DRAWS, after="single")
    assert found.p_value < 0.05
    assert all(one.depth > 1 for one in found)


def test_slices_are_not_shown_twice():
    rng = np.random.default_rng(10)
    n = 6000
    X = {"a": rng.random(n), "b": rng.random(n), "c": rng.random(n)}
    X["copy"] = X["a"] + 1e-3 * rng.normal(size=n)
    p = rng.uniform(0.3, 0.7, n)
    y = rng.random(n) < p + 0.25 * (X["a"] > 0.8) - 0.25 * (X["b"] < 0.2)
    found = vc.slices(y, p, X, draws=DRAWS)
    masks = [one.mask(X) for one in found]
    assert len(found) >= 2
    assert all(jaccard(a, b) <= 0.5 for k, a in enumerate(masks) for b in masks[:k])
    assert {one.gap > 0 for one in found} == {True, False}


def test_a_sample_is_searched_and_all_rows_are_counted():
    y, p, X, wrong = planted(n=6000, seed=1)
    found = vc.slices(y, p, X, draws=DRAWS, search_rows=3000)
    assert (found.n, found.n_searched) == (6000, 3000)
    assert found.notes == (
        "A random sample of 3,000 rows was searched; all figures use every row.",
    )
    assert found[0].rows == found[0].mask(X).sum()
    assert jaccard(found[0].mask(X), wrong) > 0.7


@pytest.mark.parametrize("library", ["duckdb", "parquet"])
def test_lazy_rows(library, tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    y, p, X, wrong = planted(n=5000, seed=1)
    unit, weight = np.arange(5000) // 5, np.where(X["kind"] == "a", 2.0, 1.0)
    table = pa.table({"y": y, "p": p, "unit": unit, "w": weight, **X})
    if library == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        data = duckdb.from_arrow(table)
    else:
        data = tmp_path / "rows.parquet"
        pq.write_table(table, data)
    options = {"draws": DRAWS, "groups": "unit", "sample_weight": "w"}
    names = list(X)
    few = vc.slices("y", "p", names, data=data, **options)
    memory = vc.slices("y", "p", names, data=table, **options)
    assert few.slices == memory.slices
    assert few.p_value == memory.p_value
    monkeypatch.setattr("varcal._sums.sources.FEW_ROWS", 0)
    many = vc.slices("y", "p", names, data=data, search_rows=3000, **options)
    assert many.n == 5000
    assert 2500 < many.n_searched < 3500
    one = many[0]
    inside = one.mask(X)
    assert one.rows == inside.sum()
    assert one.gap == pytest.approx(np.average(p[inside] - y[inside], weights=weight[inside]))
    assert jaccard(inside, wrong) > 0.7


def test_identifiers_are_left_out():
    y, p, X, _ = planted()
    X["customer_id"] = np.random.default_rng(0).permutation(10_000)[: len(y)]
    found = vc.slices("y", "p", data={"y": y, "p": p, **X}, draws=DRAWS)
    assert [name for name, _ in found.left_out] == ["customer_id"]
    assert found.n_variables == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_depth": 4}, "max_depth must be one of 1, 2, 3; got 4"),
        ({"after": "all"}, "after must be one of None, 'average', 'single'; got 'all'"),
        ({"after": "single", "max_depth": 1}, "no slice is left to search"),
        ({"draws": 5}, "draws must be an integer of at least 19; got 5"),
        (
            {"draws": 19, "level": 0.99},
            "draws is 19: no p-value can be below 0.05, and level is 0.99",
        ),
        ({"most": 0}, "most must be an integer of at least 1; got 0"),
        ({"search_rows": 10}, "search_rows must be an integer of at least 200; got 10"),
        ({"level": 1.0}, "level must lie between 0 and 1; got 1.0"),
        ({"score": "yes"}, "score must be True or False; got 'yes'"),
        ({"groups": np.zeros(3000)}, "groups has only one group"),
    ],
)
def test_options_are_checked(options, message):
    y, p, X, _ = planted()
    with pytest.raises(InputError) as error:
        vc.slices(y, p, X, **options)
    assert message in str(error.value)


def test_too_few_rows_and_no_variables():
    y, p, X, _ = planted()
    with pytest.raises(InputError, match="y has 100 rows; a search of slices needs at least 200"):
        vc.slices(y[:100], p[:100], {"x": X["x"][:100]})
    with pytest.raises(InputError, match="X is None"):
        vc.slices(y, p, None)
    with pytest.raises(InputError, match="every value is missing"):
        vc.slices(y, p, {"x": np.full(3000, np.nan)})


def test_mask_needs_the_columns_of_the_rule():
    condition = Condition("age", "numeric", low=36.0)
    one = Slice(
        (condition,), "probability", 2, 0.5, 2.0, 0.4, 0.5, -0.1, 0, -0.2, 0.0, 0.01, -0.1, 1
    )
    with pytest.raises(InputError, match="X: no column 'age' in X"):
        one.mask({"agee": [1.0]})


def test_one_variable_and_depth_one():
    y, p, X, _ = planted()
    found = vc.slices(y, p, {"age": X["age"]}, draws=DRAWS)
    assert found[0].depth == 1
    shallow = vc.slices(y, p, X, max_depth=1, draws=DRAWS)
    assert {one.depth for one in shallow} == {1}
