"""Columns that are valid but odd: exact, refused with a clear error, or announced by a warning."""

import datetime as dt
import warnings
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyarrow import parquet

import varcal as vc
from varcal.exceptions import InputError, VarcalError, VarcalWarning

N = 240
RNG = np.random.default_rng(0)
P = RNG.random(N).round(3)
Y = (RNG.random(N) < P).astype(int)
DAY = dt.datetime(2020, 1, 1)
WEST, EAST = (dt.timezone(dt.timedelta(hours=hours)) for hours in (-12, 12))


def mixed(*values):
    column = np.empty(N, dtype=object)
    column[:] = [values[k % len(values)] for k in range(N)]
    return column


COLUMNS = {
    "attoseconds": np.arange(N).astype("M8[as]"),
    "femtoseconds": np.arange(N).astype("M8[fs]"),
    "far years": (np.arange(N) + 10**15).astype("M8[Y]"),
    "months long": np.arange(N).astype("m8[M]"),
    "only NaT": np.full(N, "NaT", dtype="M8"),
    "last moment, west": mixed(dt.datetime.max.replace(tzinfo=WEST), DAY.replace(tzinfo=WEST)),
    "first moment, east": mixed(dt.datetime.min.replace(tzinfo=EAST), DAY.replace(tzinfo=EAST)),
    "first and last moment": mixed(dt.datetime.min, dt.datetime.max),
    "longest durations": mixed(dt.timedelta.min, dt.timedelta.max),
    "times": mixed(dt.time(1), dt.time(2)),
    "with and without zone": mixed(DAY.replace(tzinfo=WEST), DAY),
    "constant": np.full(N, 3.0),
    "constant text": np.full(N, "a"),
    "1.7e308": RNG.choice([-1.7e308, 0.0, 1.7e308], N),
    "least numbers": np.where(RNG.random(N) < 0.5, 5e-324, 0.0),
    "some infinite": np.where(RNG.random(N) < 0.2, np.inf, RNG.normal(size=N)),
    "all infinite": np.where(RNG.random(N) < 0.5, np.inf, -np.inf),
    "half precision": RNG.normal(size=N).astype(np.float16),
    "extended precision": RNG.normal(size=N).astype(np.longdouble),
    "beyond double": np.full(N, np.longdouble("1e4000")),
    "beyond 2**53": np.array([2**53 + k % 5 for k in range(N)]),
    "huge integers": mixed(10**30, 10**30 + 1, 5),
    "too large integers": mixed(10**400, 5),
    "decimals": mixed(Decimal("0.1"), Decimal("1e400"), Decimal("NaN")),
    "fractions": mixed(Fraction(1, 2), Fraction(1, 3)),
    "complex": np.ones(N) * 1j,
    "NUL": mixed("a\0", "b"),
    "surrogates": mixed("a\udcff", "b"),
    "bytes": np.array([b"a", b"b"] * (N // 2)),
    "all types": mixed("a", 1, None, 2.5, True),
    "signalling NaN": np.frombuffer(np.full(N, 0x7FF0000000000001, dtype="u8").tobytes(), "f8"),
    "zeros of both signs": np.where(RNG.random(N) < 0.5, -0.0, 0.0),
    "nullable": pd.Series([2**60 + k % 5 if k % 7 else None for k in range(N)], dtype="Int64"),
    "periods": pd.Series(pd.period_range("2020-01", periods=N, freq="D")),
    "intervals": pd.cut(pd.Series(RNG.random(N)), 4),
    "Berlin": pd.Series(pd.date_range("2020", periods=N, tz="Europe/Berlin")),
}  # fmt: skip
USES = {
    "bin_table": lambda v: vc.bin_table(Y, P, v),
    "even bins": lambda v: vc.bin_table(Y, P, v, binning="uniform"),
    "frequent values": lambda v: vc.bin_table(Y, P, v, binning="atoms"),
    "vece": lambda v: vc.vece(Y, P, v),
    "curve": lambda v: vc.curve(Y, P, v),
    "estimate": lambda v: vc.estimate(Y, P, v),
    "tree": lambda v: vc.calibrators.TreeCalibrator().fit(P, Y, {"v": v}),
    "augmented": lambda v: vc.calibrators.AugmentedCalibrator().fit(P, Y, {"v": v}),
    "labels": lambda v: vc.ece(v, P),
    "labels of a fit": lambda v: vc.calibrators.PlattCalibrator().fit(P, v).predict(P),
    "groups": lambda v: vc.estimate(Y, P, P, groups=v),
    "weights": lambda v: vc.estimate(Y, P, P, sample_weight=v),
}
ROLES = {"sample_weight": "w", "groups": "unit"}
SLOW = {
    "audit": lambda v: vc.audit(Y, P, {"v": v}, ladder="none", include="v"),
    "slices": lambda v: vc.slices(Y, P, {"v": v}, draws=19),
    "variable": lambda v: vc.VariableCalibrator().fit(P, Y, {"v": v}),
    "collect": lambda v: vc.collect(table(v), vc.make_bins("y", "p", "v", data=table(v), **ROLES)),
    "monitor": lambda v: watched(table(v), monitor=0.02),
}


def table(v):
    return {"y": Y, "p": P, "v": v, "w": 0.25 + np.arange(N) % 3, "unit": np.arange(N) // 4}


def watched(rows, **options):
    monitor = vc.Monitor(vc.make_bins("y", "p", "v", data=rows, **options))
    monitor.update(rows, id=1)
    return monitor


@pytest.mark.parametrize("name", COLUMNS)
def test_odd_columns_are_read_or_refused(name, tmp_path):
    """Nothing but errors of varcal come out, and no warning of numpy; what is saved loads again."""
    v = COLUMNS[name]
    for use in (*USES.values(), *SLOW.values()):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", VarcalWarning)
            try:
                found = use(v)
            except VarcalError:
                continue
            if hasattr(found, "save") and name != "surrogates":  # save() refuses them unclearly
                assert_saved_whole(found, v, tmp_path)


def assert_saved_whole(found, v, folder):
    path, copy = (folder / f"{type(found).__name__}{k}.json" for k in range(2))
    try:
        found.save(path)
    except InputError:  # bytes and intervals are no values of JSON
        return
    again = vc.load(path)
    assert repr(again) == repr(found)
    again.save(copy)
    assert copy.read_bytes() == path.read_bytes()
    if hasattr(found, "predict_proba"):
        mine, theirs = (one.predict_proba(P[:9], {"v": v[:9]}) for one in (found, again))
        assert (mine == theirs).all()


@pytest.mark.parametrize("rare", [0, 1, -3.5, 1e300])
def test_an_audit_of_a_value_that_few_rows_do_not_have_loads_again(rare, tmp_path):
    """The percentiles of such a variable were neighbouring floats, too near for 40 bars."""
    sim = vc.datasets.make_gap(2000, random_state=0)
    v = np.where(np.arange(2000) < 5, rare, 2.0)
    found = vc.audit(sim.y, sim.p, {"v": v, "same": sim.v}, ladder="none")
    edges = found["v"].histogram.edges
    assert (np.diff(edges) > 0).all() and edges[0] <= min(rare, 2) and edges[-1] >= max(rare, 2)
    assert_saved_whole(found, v, tmp_path)


@pytest.mark.parametrize("classes", [("all", "none"), ("", "x")])
def test_an_audit_of_classes_named_like_its_sides_loads_again(classes, tmp_path):
    rng = np.random.default_rng(0)
    p, v = rng.random(600), rng.random(600)
    y = np.array(classes)[(rng.random(600) < p).astype(int)]
    found = vc.audit(y, p, {"v": v}, classes=classes)
    assert not {"", "all"} & set(found.target.sides) and found.row("v").n_bins == 10
    assert_saved_whole(found, v, tmp_path)


def values_of(column):
    """Return the distinct values of a column, as numbers."""
    n = len(column)
    table = vc.bin_table(np.arange(n) % 2, np.full(n, 0.4), column, binning="atoms", classes=(0, 1))
    return sorted(set(table.columns["low"]) - {np.nan})


def test_the_ends_of_the_calendar_have_their_offset():
    (last,), (plain,) = (
        values_of([dt.datetime.max.replace(tzinfo=zone)] * 2) for zone in (WEST, None)
    )
    assert last - plain == 12 * 3600
    with pytest.raises(InputError, match="further than three million years away, at row 1"):
        values_of(np.array([0, 10**9], dtype="M8[Y]"))
    with pytest.raises(InputError, match="holds durations in M"):
        values_of(np.array([3], dtype="m8[M]"))


def test_large_labels_are_kept_exactly(tmp_path):
    labels = np.array([2**63, 2**63 + 1], dtype=np.uint64)[Y]
    fit = vc.calibrators.BetaCalibrator().fit(P, labels)
    assert fit.classes_.tolist() == [2**63, 2**63 + 1]
    fit.save(tmp_path / "cal.json")
    again = vc.load(tmp_path / "cal.json")
    assert again.predict(P).tolist() == fit.predict(P).tolist()
    assert vc.ece(labels, P) == vc.ece(Y, P)
    mixed_sizes = np.array([1, 2**64 - 1], dtype=np.uint64)[Y]
    assert vc.calibrators.PlattCalibrator().fit(P, mixed_sizes).classes_.tolist() == [1, 2**64 - 1]


@pytest.mark.parametrize("use", ["vece", "curve", "tree", "augmented"])
def test_integers_that_doubles_merge_are_announced(use):
    ids = np.array([2**60 + k % 5 for k in range(N)])
    with pytest.warns(VarcalWarning, match="of which 5 distinct ones become 1 in double precision"):
        USES[use](ids)
    exact = np.array([2**53 + 2 * (k % 5) for k in range(N)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        USES[use](exact)
        vc.vece(Y, P, ids.astype(str))


def test_weights_that_could_never_count_are_refused():
    weight = np.ones(N)
    weight[7] = 1e-80
    with pytest.raises(InputError, match="less than 1e-60 times the largest, 1: 1e-80 at row 7"):
        vc.ece(Y, P, sample_weight=weight)
    weight[7] = 0.0
    assert vc.ece(Y, P, sample_weight=weight) >= 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide = 10.0 ** RNG.uniform(-29, 29, N)
        vc.audit(Y, P, {"v": P}, sample_weight=wide)
        vc.VariableCalibrator().fit(P, Y, P, sample_weight=wide / wide.mean())
        a, b = (vc.estimate(Y, P, P, sample_weight=wide * factor) for factor in (1.0, 2.0**900))
        assert a == b


@pytest.mark.parametrize("zone", ["Europe/Berlin", None])
def test_dates_keep_their_zone_between_fit_and_prediction(zone, tmp_path):
    days = pd.Series(pd.date_range("2020", periods=N, tz=zone))
    wrong = days.dt.tz_localize(None) if zone else days.dt.tz_localize("UTC")
    fit = vc.VariableCalibrator().fit(P, Y, {"day": days})
    tree = vc.calibrators.TreeCalibrator().fit(P, Y, {"day": days})
    tree.save(tmp_path / "cal.json")
    calls = [fit.predict_proba, fit.predict_interval, fit.to_onnx().run, tree.predict_proba]
    for call in (*calls, vc.load(tmp_path / "cal.json").predict_proba):
        call(P[:5], {"day": days[:5].dt.tz_convert("UTC") if zone else days[:5]})
        call(P[:2], {"day": [None, None]})
        with pytest.raises(InputError, match=r"'day' holds dates with .* time zone, but the calib"):
            call(P[:5], {"day": wrong[:5]})
    with pytest.raises(InputError, match="time zone"):
        tree.scorer()(0.5, {"day": wrong.iloc[0].to_pydatetime()})


@pytest.mark.parametrize(
    ("y", "p", "v", "weight"),
    [
        pytest.param([0, 0, 1], [0.2, 0.8, 0.7], [3, 1, 2], [1, 1e40, 2], id="no share is left"),
        pytest.param([1, 0], [1.0, 1.0], [1, 2], [1e-40, 1], id="no variance, tiny weights"),
        pytest.param([0, 1], [0.3, 0.6], [0, 1e307], [1, 1e40], id="weight times value"),
    ],
)
def test_extreme_weights_and_values_audit_without_a_warning(y, p, v, weight):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", VarcalWarning)
        found = vc.audit(y, p, {"v": v}, sample_weight=weight, ladder="none")
        assert "nan" not in str(found)
        vc.surface(y, p, np.column_stack([v, v[::-1]]), sample_weight=weight)


NESTED = {
    "lists": pa.array([[1, 2]] * N),
    "structs": pa.array([{"a": 1}] * N),
    "bytes": pa.array([b"a", b"b"] * (N // 2)),
    "times": pa.array([dt.time(1), dt.time(2)] * (N // 2)),
}
TABLE = pa.table({"y": Y, "p": P, "q": P / 2, "age": RNG.normal(size=N), **NESTED})
OBJECTS = ("complex", "all types", "periods", "with and without zone", "decimals")
SOURCES = {
    "pandas": lambda path: TABLE.to_pandas().assign(**{name: COLUMNS[name] for name in OBJECTS}),
    "polars": lambda path: pl.from_arrow(TABLE).with_columns(
        pl.Series("objects", [{1}] * N, dtype=pl.Object)
    ),
    "pyarrow": lambda path: TABLE,
    "parquet": str,
    "relation": lambda path: duckdb.connect().sql(f"SELECT *, INTERVAL 1 DAY AS gap FROM '{path}'"),
    "scan": pl.scan_parquet,
    "dataset": ds.dataset,
}


@pytest.fixture(scope="module")
def parquet_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("odd") / "rows.parquet"
    parquet.write_table(TABLE, path)
    return path


@pytest.mark.parametrize("source", SOURCES)
def test_columns_that_cannot_be_variables_are_left_out(source, parquet_path, monkeypatch):
    monkeypatch.setattr("varcal._sums.sources.FEW_ROWS", 0)  # the last four in batches
    data = SOURCES[source](parquet_path)
    for use in (
        lambda **more: vc.audit("y", "p", data=data, ladder="none", **more),
        lambda **more: vc.slices("y", "p", data=data, draws=19, max_depth=1, **more),
    ):
        reasons = dict(use().left_out)
        assert {"lists", "structs", "bytes"} <= set(reasons) and "age" not in reasons
        assert reasons["lists"].startswith("cannot be a variable: it is of type List") or (
            source == "pandas" and "holds ndarray" in reasons["lists"]
        )
        with pytest.raises(InputError, match="variable 'lists' "):
            use(include=["lists"])
    with pytest.raises(InputError, match="variable 'structs' "):
        vc.audit("y", "p", ["age", "structs"], data=data)
    bins = vc.make_bins("y", "p", data=data)
    assert "lists" in dict(vc.audit(vc.collect(data, bins)).left_out)
