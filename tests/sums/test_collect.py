"""Collected batches add up to the statistics of all rows."""

from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import varcal as vc
from cases.lazy_tables import same_audits
from varcal.exceptions import InputError


def make_rows(n=3_000, seed=0):
    rng = np.random.default_rng(seed)
    v = np.round(rng.normal(size=n), 2)
    p = rng.uniform(0.05, 0.95, n)
    return pa.table(
        {
            "y": (rng.random(n) < np.clip(p + 0.1 * np.sign(v), 0, 1)).astype(int),
            "p": p,
            "v": np.where(rng.random(n) < 0.05, np.nan, v),
            "kind": rng.choice(["a", "b", "c"], n),
            "w": rng.exponential(size=n),
            "unit": rng.integers(0, 300, n),
        }
    )


@pytest.fixture(scope="module")
def rows():
    return make_rows()


def parts_of(rows, many):
    cuts = np.linspace(0, len(rows), many + 1).astype(int)
    return [rows.slice(a, b - a) for a, b in pairwise(cuts)]


def test_days_sum_up_to_the_same_audit(rows):
    options = dict(sample_weight="w", groups="unit")
    bins = vc.make_bins("y", "p", ["v", "kind"], data=rows, **options)
    total = sum(vc.collect(day, bins) for day in parts_of(rows, 5))
    found = vc.audit(total)
    whole = vc.audit("y", "p", ["v", "kind"], data=rows, **options)
    same_audits(found, whole)
    assert [row.p_holm for row in found] == pytest.approx([row.p_holm for row in whole], rel=1e-6)
    np.testing.assert_allclose(found["v"].gap, whole["v"].gap, atol=1e-9)
    assert found.n_rows == len(total) == len(rows) and found.grouped
    assert found.ladder is found.advice is None and "only their sums" in found.ladder_obstacle


@given(
    st.lists(st.floats(0, 1), max_size=4),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.permutations(range(5)),
)
@settings(max_examples=40)
def test_any_split_in_any_order_gives_the_whole(places, seed, weighted, order):
    rows = make_rows(60, seed)
    weight = "w" if weighted else None
    bins = vc.make_bins("y", "p", ["v", "kind"], data=rows, sample_weight=weight, n_bins=4)
    cuts = [0, *sorted(int(60 * place) for place in places), 60]
    days = [rows.slice(a, b - a) for a, b in pairwise(cuts) if b > a]
    days = [days[k] for k in order if k < len(days)]
    total = sum(vc.collect(day, bins) for day in days)
    whole = vc.collect(rows, bins)
    assert total.n_rows == 60
    for a, b in zip(total.tables, whole.tables, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_every_function_takes_collected_rows(rows):
    bins = vc.make_bins("y", "p", ["v", "kind"], data=rows, binning="quantile")
    total = sum(vc.collect(day, bins) for day in parts_of(rows, 3))
    y, p = rows["y"], rows["p"]
    given = {"v": rows["v"]}
    assert vc.vece(total, v="v") == pytest.approx(vc.vece(y, p, given), abs=1e-12)
    assert vc.ece(total) == pytest.approx(vc.ece(y, p), abs=1e-12)
    a, b = vc.estimate(total, v="v", event="positive"), vc.estimate(y, p, given, event="positive")
    assert (a.debiased, a.low, a.high) == pytest.approx((b.debiased, b.low, b.high))
    assert vc.estimate(total).metric == "ECE"
    a, b = vc.bin_table(total, v="kind"), vc.bin_table(y, p, {"kind": rows["kind"]})
    assert a.columns["bin"] == b.columns["bin"] and a.columns["n"] == b.columns["n"]
    assert vc.curve(total, v="v").n_missing == vc.curve(y, p, given).n_missing > 0
    a, b = vc.reliability(total), vc.reliability(y, p)
    np.testing.assert_allclose(a.observed, b.observed)


def test_values_that_the_first_day_did_not_have(rows):
    first = rows.filter(pa.compute.equal(rows["kind"], "a"))
    first = first.filter(pa.compute.invert(pa.compute.is_nan(first["v"])))
    bins = vc.make_bins("y", "p", ["v", "kind"], data=first)
    total = vc.collect(first, bins) + vc.collect(rows, bins)
    table = vc.bin_table(total, v="kind")
    assert table.columns["bin"] == ["a", "other"]
    assert sum(table.columns["n"]) == len(first) + len(rows)
    assert vc.bin_table(total, v="v").columns["bin"][-1] == "missing"
    # Extra bins that stay empty are not shown.
    assert vc.bin_table(vc.collect(first, bins), v="kind").columns["bin"] == ["a"]
    assert "missing" not in vc.bin_table(vc.collect(first, bins), v="v").columns["bin"]


def test_events_that_are_collected(rows):
    bins = vc.make_bins("y", "p", ["v"], data=rows, events=["classwise"], binning="quantile")
    total = vc.collect(rows, bins)
    found = vc.vece(total, v="v", event="classwise")
    assert found == pytest.approx(
        vc.vece(rows["y"], rows["p"], rows["v"], event="classwise"), abs=1e-12
    )
    one = vc.vece(total, v="v", event="positive", pos_label=1)
    assert one == pytest.approx(vc.vece(rows["y"], rows["p"], rows["v"], event="positive"))
    with pytest.raises(InputError, match=r"make_bins\(…, pos_label=…\)"):
        vc.vece(total, v="v", event="positive", pos_label=0)
    with pytest.raises(InputError, match='event="correct" was not collected'):
        vc.vece(total, v="v")
    with pytest.raises(InputError, match="events must be one of"):
        vc.make_bins("y", "p", ["v"], data=rows, events=["right"])


def test_a_batch_may_be_empty(rows):
    bins = vc.make_bins("y", "p", ["v"], data=rows, unlabelled="drop")
    blank = rows.set_column(0, "y", pa.nulls(len(rows), pa.int64()))
    whole = vc.collect(rows, bins)
    for day in (rows.slice(0, 0), ds.dataset(rows.slice(0, 0)), blank, ds.dataset(blank)):
        nothing = vc.collect(day, bins)
        assert len(nothing) == 0 and len(nothing + whole) == len(rows)
        with pytest.raises(InputError, match="no label at any row"):
            vc.ece(nothing)
    assert (vc.collect(blank, bins) + whole).n_dropped == len(rows)


@pytest.mark.parametrize("other", [[1, 2], [0, 3], [-1, 1], ["no", "yes"], [0.0, 2.0]])
@pytest.mark.parametrize("lazily", [False, True])
def test_labels_that_mean_something_else_are_refused(rows, other, lazily):
    bins = vc.make_bins("y", "p", ["v"], data=rows)
    y = pa.array([other[k] for k in rows["y"].to_pylist()])
    day = rows.set_column(0, "y", y)
    with pytest.raises(InputError, match=r"y is not among classes \[0, 1\]"):
        vc.collect(ds.dataset(day) if lazily else day, bins)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
@pytest.mark.parametrize("lazily", [False, True])
def test_weights_far_above_the_plan_are_refused(rows, lazily):
    bins = vc.make_bins("y", "p", ["v"], data=rows, sample_weight="w")
    heavy = rows.set_column(4, "w", pa.array(rows["w"].to_numpy() * 1e200))
    with pytest.raises(InputError, match="the sum of sample_weight overflows"):
        vc.collect(ds.dataset(heavy) if lazily else heavy, bins)
    large = rows.set_column(2, "v", pa.array(np.full(len(rows), 1e308)))
    with pytest.raises(InputError, match="the sum of variable 'v' overflows"):
        vc.collect(ds.dataset(large) if lazily else large, bins)


def test_options_that_are_fixed_when_rows_are_collected(rows):
    bins = vc.make_bins("y", "p", ["v"], data=rows, n_bins=20)
    total = vc.collect(rows, bins)
    for said, own in (
        (dict(n_bins=10), "20"),
        (dict(binning="quantile"), "'atoms'"),
        (dict(binning="uniform"), "'atoms'"),
        (dict(from_logits=True), "False"),
        (dict(unlabelled="drop"), "'raise'"),
        (dict(bins=[0.0]), ""),
    ):
        with pytest.raises(InputError, match=f"{next(iter(said))} is given together.*{own}"):
            vc.vece(total, v="v", **said)
    with pytest.raises(InputError, match="unlabelled must be one of"):
        vc.vece(total, v="v", unlabelled="perhaps")
    with pytest.raises(InputError, match=r"binning is given together.*'atoms'"):
        vc.ece(total, binning="uniform")
    # Equal values and defaults are accepted.
    assert vc.vece(total, v="v", n_bins=20, binning="atoms") == vc.vece(total, v="v")
    assert vc.ece(total, n_bins=20, binning="atoms") == vc.ece(total)


def test_incompatible_batches_and_options(rows):
    bins = vc.make_bins("y", "p", ["v"], data=rows)
    heavy = vc.make_bins("y", "p", ["v"], data=rows, sample_weight="w")
    total = vc.collect(rows, bins)
    both = vc.collect(rows, vc.make_bins("y", "p", ["v", "kind"], data=rows))
    zero = rows.set_column(4, "w", pa.array(np.zeros(len(rows))))
    p = rows["p"].to_numpy().copy()
    p[7] = np.nan
    with pytest.raises(TypeError):
        total + 1
    for call, said in (
        (lambda: total + both, "different bins cannot be merged"),
        (lambda: vc.audit(total, data=rows), "data is given together with collected"),
        (lambda: vc.vece(total, v="kind"), "no column 'kind'"),
        (lambda: vc.vece(total, v=np.zeros(3)), "v is a ndarray"),
        (lambda: vc.vece(both, v=["v", "kind"]), "was not collected"),
        (lambda: vc.collect(rows.set_column(2, "v", rows["kind"]), bins), "but its bins are numer"),
        (lambda: vc.collect(rows.drop_columns(["p"]), bins), "no column 'p'"),
        (lambda: vc.collect(ds.dataset(rows.drop_columns(["p"])), bins), "no column 'p'"),
        (lambda: vc.make_bins("y", "p", None, data=rows), "X is None"),
        (lambda: vc.audit(vc.collect(zero, heavy)), "sample_weight is 0 at every row"),
        (lambda: vc.collect(rows, 10), "bins is a int"),
        (lambda: vc.collect(rows.set_column(1, "p", pa.array(p)), bins), "missing: nan at row 7"),
    ):
        with pytest.raises(InputError, match=said):
            call()


def test_levels_keep_the_order_that_their_type_declares(rows):
    sizes = pl.Enum(["S", "M", "L"])
    frame = pl.from_arrow(rows).with_columns(size=pl.Series(["M", "L", "S"] * 1_000, dtype=sizes))
    for data in (frame, frame.to_pandas(), frame.lazy()):
        bins = vc.make_bins("y", "p", ["size"], data=data)
        assert vc.bin_table(vc.collect(data, bins), v="size").columns["bin"] == ["S", "M", "L"]
