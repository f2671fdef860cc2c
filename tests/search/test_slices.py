"""`slices`: what is planted is found on every kind of data, and its rules, files and errors."""

import datetime as dt
import importlib
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import varcal as vc
from cases.slices import planted
from varcal.exceptions import InputError

DRAWS = 39


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
    assert one.sentence.startswith(f"Where {one.rule} ({one.rows} rows, ")
    assert one.rule.endswith(" and sex = f") and "too high by" in one.sentence
    assert repr(found).startswith("1 slice, 3,000 rows, 4 variables (p=0.025)\nshrunk ")
    assert 0 < one.low < one.shrunk < one.gap < one.high
    assert vc.slices(y, p, X, draws=DRAWS) == found
    tiny = vc.slices(y, p, X, draws=DRAWS, sample_weight=np.full(3000, 2.0**-40))
    assert tiny[0].rule == one.rule and tiny[0].gap == pytest.approx(one.gap)
    shallow = vc.slices(y, p, X, max_depth=1, draws=DRAWS)
    assert {one.depth for one in shallow} == {1}


def test_table_and_file(found, tmp_path):
    assert list(found.to_frame()["rule"]) == [found[0].rule]
    found.save(tmp_path / "slices.json")
    assert vc.load(tmp_path / "slices.json") == found and found.draws == DRAWS


def test_more_classes():
    rng = np.random.default_rng(4)
    n = 3000
    X = {"a": rng.random(n), "kind": rng.choice(["u", "v"], n)}
    p = rng.dirichlet([4, 3, 2], n)
    rate = p.copy()
    wrong = (X["a"] > 0.6) & (X["kind"] == "u")
    rate[wrong] = 0.45 * rate[wrong] + 0.55 * np.array([0.0, 0.0, 1.0])
    y = np.array(["x", "y", "z"])[(rng.random(n)[:, None] > rate.cumsum(axis=1)).sum(axis=1)]
    for after in (None, "average"):
        found = vc.slices(y, p, X, draws=DRAWS, after=after)
        assert found.p_value < 0.05
        assert {one.claim for one in found} <= {"confidence", "class x", "class y", "class z"}
        assert jaccard(found[0].mask(X), wrong) > 0.7


def test_missing_values_and_dates():
    rng = np.random.default_rng(5)
    n = 3000
    gone, day = rng.random(n) < 0.2, rng.integers(0, 300, n).astype("timedelta64[D]")
    day = np.datetime64("2024-01-01") + day
    late = day >= np.datetime64("2024-07-01")
    X = {"x": np.where(gone, np.nan, rng.normal(size=n)), "day": day.astype(str)}
    p = rng.uniform(0.3, 0.7, n)
    one = vc.slices(rng.random(n) < p + 0.2 * gone, p, X, draws=DRAWS)[0]
    assert one.conditions[0].missing and one.gap < 0
    assert jaccard(one.mask(X), gone) > 0.95
    one = vc.slices(rng.random(n) < p + 0.2 * late, p, X, draws=DRAWS)[0]
    assert one.conditions[0].kind == "datetime" and one.rule.startswith("day > 2024-")
    assert jaccard(one.mask(X), late) > 0.9
    assert "EPOCH" in one.to_sql()


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


@pytest.mark.parametrize("library", ["duckdb", "parquet"])
def test_lazy_rows(library, tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    y, p, X, wrong = planted(n=5000, seed=1)
    unit, weight = np.arange(5000) // 5, np.where(X["kind"] == "a", 2.0, 1.0)
    table = pa.table({"y": y, "p": p, "unit": unit, "w": weight, **X})
    data = tmp_path / "rows.parquet"
    if library == "duckdb":
        data = pytest.importorskip("duckdb").from_arrow(table)
    else:
        pq.write_table(table, data)
    options = {"draws": DRAWS, "groups": "unit", "sample_weight": "w"}
    names = list(X)
    few = vc.slices("y", "p", names, data=data, **options)
    memory = vc.slices("y", "p", names, data=table, **options)
    assert (few.slices, few.p_value) == (memory.slices, memory.p_value)
    monkeypatch.setattr("varcal._sums.sources.FEW_ROWS", 0)
    many = vc.slices("y", "p", names, data=data, search_rows=3000, **options)
    assert many.n == 5000 and 2500 < many.n_searched < 3500
    one = many[0]
    inside = one.mask(X)
    assert one.rows == inside.sum()
    assert one.gap == pytest.approx(np.average(p[inside] - y[inside], weights=weight[inside]))
    assert jaccard(inside, wrong) > 0.7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_depth": 4}, "max_depth must be one of 1, 2, 3; got 4"),
        ({"after": "all"}, "after must be one of None, 'average'; got 'all'"),
        ({"draws": 5}, "draws must be an integer of at least 19; got 5"),
        (
            {"draws": 19, "level": 0.99},
            "draws is 19: no p-value can be below 0.05, and level is 0.99",
        ),
        ({"search_rows": 10}, "search_rows must be an integer of at least 200; got 10"),
        ({"level": 1.0}, "level must lie between 0 and 1; got 1.0"),
        ({"groups": np.zeros(3000)}, "groups has only one group"),
        ({"X": None}, "X is None"),
        ({"X": {"x": np.full(3000, np.nan)}}, "every value is missing"),
        ({"y": [0, 1] * 50, "p": [0.5] * 100, "X": {"x": range(100)}}, "y has 100 rows; a search"),
    ],
)
def test_arguments_are_checked(options, message):
    y, p, X, _ = planted()
    with pytest.raises(InputError) as error:
        vc.slices(**{"y": y, "p": p, "X": X} | options)
    assert message in str(error.value)


def test_the_range_found_is_the_clearest_of_all():
    rng = np.random.default_rng(3)
    v, s = rng.integers(0, 9, 4000), rng.uniform(0.3, 0.7, 4000)
    y = rng.random(4000) < s - 0.3 * ((v == 3) | (v == 4))
    e, variance = s - y, s * (1 - s)
    t = {}
    for low, high in combinations(range(10), 2):
        inside = (v >= low) & (v < high)
        t[low, high] = abs(e[inside].sum()) / np.sqrt(variance[inside].sum())
    low, high = max(t, key=t.get)
    one = vc.slices(y, s, {"v": v}, after=None, draws=DRAWS)[0]
    assert np.array_equal(one.mask({"v": v}), (v >= low) & (v < high))


@pytest.mark.parametrize("after", [None, "average"])
def test_compiled_and_numpy_agree_to_the_bit(after, monkeypatch):
    pytest.importorskip("numba")
    y, p, X, _ = planted(n=800, gap=0.35)
    X["gaps"] = np.where(X["x"] < -1, np.nan, X["x"])
    options = {"after": after, "sample_weight": 1 + (X["kind"] == "a"), "draws": 19}
    compiled = vc.slices(y, p, X, **options)
    monkeypatch.setitem(sys.modules, "numba", None)
    assert vc.slices(y, p, X, **options) == compiled and len(compiled)


def slice_of(*conditions):
    """A slice with the given conditions, as saved results have them."""
    plain = {"low": None, "high": None, "levels": [], "negated": False, "missing": False}
    plain |= {"values": True, "zone": "", "date_format": ""}
    figures = ("share", "predicted", "observed", "gap", "shrunk", "low", "high", "p_adjusted")
    return vc.results.Slice.from_dict(
        dict.fromkeys((*figures, "weight", "over_parents"), 0.0)
        | {"claim": "probability", "rows": 2}
        | {"conditions": [plain | one for one in conditions]}
    )


def number(**more):
    return {"variable": "v", "kind": "numeric", **more}


def level(*levels, **more):
    return {"variable": "v", "kind": "levels", "levels": levels, **more}


MISSING = {"missing": True, "values": False}
MARCH = {"variable": "v", "kind": "datetime", "low": 1709251200.0, "high": 1711929600.0}


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (number(low=-3.5), "v > −3.5"),
        (number(high=60.0, missing=True), "v ≤ 60 or missing"),
        (number(**MISSING), "v is missing"),
        (number(), "v is known"),
        (level("f", "x"), "v in {f, x}"),
        (level("f", negated=True), "v ≠ f"),
        (MARCH, "2024-03-01 < v ≤ 2024-04-01"),
    ],
)
def test_rules_in_words(condition, text):
    assert slice_of(condition).rule == text


def test_masks_follow_the_rule_in_other_data():
    column = {"v": ["a", "new", None]}
    assert slice_of(level("a")).mask(column).tolist() == [True, False, False]
    assert slice_of(level("a", negated=True)).mask(column).tolist() == [False, True, False]
    days = slice_of(MARCH | {"low": 1709340000.0, "high": None, "date_format": "%Y-%m-%d"})
    texts = ["2024-03-01", "2024-03-05", None]
    assert days.mask({"v": texts}).tolist() == [False, True, False]
    dates = [None if one is None else dt.date.fromisoformat(one) for one in texts]
    assert days.mask({"v": dates}).tolist() == [False, True, False]
    with pytest.raises(InputError, match="X 'v' holds levels, and the rule is about numbers"):
        slice_of(number(low=3.0)).mask({"v": ["a", "b"]})
    with pytest.raises(InputError, match="X: no column 'v' in X"):
        slice_of(number(low=3.0)).mask({"w": [1.0]})


def test_sql_finds_the_rows_of_the_mask():
    duckdb = pytest.importorskip("duckdb")
    pyarrow = pytest.importorskip("pyarrow")
    x = [1.0, 2.0, None, float("nan"), 3.0]
    table = pyarrow.table(
        {
            "it's": x,
            "kind": ["a", None, "b", "q'uote", "a"],
            "flag": [True, False, None, True, True],
            "day": [dt.datetime(2024, 3, k) for k in range(1, 6)],
            "n": [1, 2, None, 4, 5],
        }
    )
    slices = [
        slice_of(one | {"variable": name})
        for name, one in [
            ("it's", number(low=1.0)),
            ("it's", number(low=1.0, missing=True)),
            ("it's", number(**MISSING)),
            ("it's", number()),
            ("kind", level("a", "q'uote")),
            ("kind", level("a", negated=True, missing=True)),
            ("kind", level(negated=True)),
            ("flag", level(True)),
            ("day", MARCH | {"low": None, "high": 1709337600.0}),
            ("n", number(low=1.0, high=4.0)),
        ]
    ]
    query = ", ".join(f"{one.to_sql()} AS c{k}" for k, one in enumerate(slices))
    found = duckdb.from_arrow(table).project(query).fetchnumpy()
    for k, one in enumerate(slices):
        assert found[f"c{k}"].tolist() == one.mask(table).tolist(), one.rule
    wait = slice_of({"variable": "v", "kind": "duration", "low": 60.0})
    assert "EPOCH" in wait.to_sql()
    with pytest.raises(InputError, match="'v' is a duration, which Spark cannot"):
        wait.to_sql("spark")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("sure", [0.0, 1e-300, 1.0])
def test_gaps_of_certain_scores_are_taken_off_without_overflow(sure):
    rng = np.random.default_rng(0)
    X = {"a": rng.random(2000), "b": rng.random(2000)}
    found = vc.slices(rng.random(2000) < 0.3, np.full(2000, sure), X, draws=19)
    assert found.p_value > 0.05  # the average explains everything


@pytest.mark.parametrize(
    ("name", "n_outcomes", "allowed"),
    # 20 tests at 5 % that share their simulated outcomes: 6 or more would be a fault.
    [("rare", 20, 5), ("average", 5, 2), ("groups", 5, 2)],
)
def test_calibrated_models_are_rarely_rejected(name, n_outcomes, allowed, monkeypatch):
    pytest.importorskip("numba", reason="without the compiled kernels this takes minutes")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    simulation = importlib.import_module("simulate_slices")
    monkeypatch.setitem(simulation.NULLS, name, (1000, 8))
    found = simulation.null_design(name, seed=1, n_outcomes=n_outcomes, draws=39)
    assert (found <= 0.05).sum() <= allowed
