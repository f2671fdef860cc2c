"""What every public function of varcal gives on fixed rows, as numbers under readable names.

`results` computes them through ``import varcal as vc`` alone. ``tests/golden/results.json``
holds what they are meant to be, and ``test_results.py`` compares. No sentence, verdict or layout
of a file is among them, so that these can be reworded; what is there are figures, counts, edges of
bins and orders of variables.

Only where a change of results is intended, write the file again::

    python tests/cases/golden_results.py
"""

import json
import math
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
from pyarrow import csv, parquet
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

import varcal as vc

FILE = Path(__file__).parents[1] / "golden" / "results.json"

#: Values of an array that are kept at each of its ends.
N_ENDS = 5

MEASURED = ("value", "debiased", "low", "high", "p_value", "noise_floor", "noise_high")
SERIES = (
    "predicted",
    "observed",
    "gap",
    "predicted_low",
    "predicted_high",
    "observed_low",
    "observed_high",
    "gap_low",
    "gap_high",
    "band_low",
    "band_high",
    "density",
)
BAND = ("observed", "gap", "band_low")
CURVE_NUMBERS = (
    "worst",
    "vce",
    "vce_low",
    "vce_high",
    "vece",
    "vece_low",
    "vece_high",
    "overall",
    "span",
    "n_rows",
    "n_missing",
    "missing_gap",
)
REGION = ("low", "high", "gap_low", "gap_high", "share")
ESTIMATE = (*MEASURED, "detectable", "n_rows", "n_bins", "variable", "edges")
ROW = ("kind", "target", "p_holm", "p_bh", "rank_low", "rank_high", "n_bins", "missing")
TARGET = ("predicted", "observed", "gap", "gap_low", "gap_high", "p_value", "events", "limit")
RELIABILITY = (
    "predicted",
    "observed",
    "observed_low",
    "observed_high",
    "consistent_low",
    "consistent_high",
    "counts",
    "smooth",
    "smooth_low",
    "n_rows",
)
COMPARED = (
    "value",
    "low",
    "high",
    "noise_floor",
    "difference",
    "difference_low",
    "difference_high",
)

VARIABLES = ("age", "fnlwgt", "capital-gain", "hours-per-week", "workclass", "sex")


class Record:
    """Results by name: those that must be the same, and those that must be close."""

    def __init__(self):
        self.exact = {}
        self.close = {}

    def keep(self, key, value, *, exact=False):
        """Keep a value: whole numbers, truths and texts exactly, other numbers closely.

        An array is kept by its shape and by its ends, sum, sum of squares, least and largest value;
        a short one, and one that must be exact, is kept whole.
        """
        assert key not in self.exact and key not in self.close, key
        if value is None or isinstance(value, str | bool | int | np.bool_ | np.integer):
            self.exact[key] = value.item() if isinstance(value, np.generic) else value
        elif isinstance(value, float):
            self.close[key] = _number(value)
        elif exact or (len(value) and isinstance(value[0], str)):
            self.exact[key] = [_number(one) if isinstance(one, float) else one for one in value]
        else:
            self._keep_array(key, np.asarray(value))

    def _keep_array(self, key, array):
        flat = array.ravel()
        counts = array.dtype.kind in "bui"
        kept = flat
        if flat.size > 2 * N_ENDS:
            held = flat if counts else flat[np.isfinite(flat)].astype(np.float64)
            told = [held.sum(), held @ held, held.min(), held.max()]
            kept = [*flat[:N_ENDS], *flat[-N_ENDS:], *told]
        numbers = [int(one) if counts else _number(one) for one in kept]
        (self.exact if counts else self.close)[key] = [list(array.shape), numbers]

    def fields(self, key, result, names):
        """Keep some attributes of a result."""
        for name in names:
            self.keep(f"{key}/{name}", getattr(result, name))


def _number(value):
    """Return a plain number, None where it is not finite."""
    return float(value) if math.isfinite(value) else None


def results():
    """Compute all results.

    Returns
    -------
    dict
        ``exact`` and ``close``, each a dict of plain values by name.
    """
    record = Record()
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        for part in (
            _datasets,
            _simulations,
            _errors,
            _bin_tables,
            _estimates,
            _curves,
            _reliabilities,
            _comparisons,
            _scorers,
            _classifiers,
        ):
            part(record)
        for part in (
            _audits,
            _collections,
            _lazy_rows,
            _many_rows,
            _calibrators,
            _applied,
        ):
            home = Path(folder) / part.__name__
            home.mkdir()
            part(record, home)
    return {"exact": record.exact, "close": record.close}


# Rows


def _part(X, rows):
    return {name: column[rows] for name, column in X.items()}


def _adult(first, last):
    """Return outcomes, probabilities and variables of some rows of Adult, in mixed order.

    The model is overconfident everywhere, which makes all errors the same. Its logits are scaled,
    so that gaps have either sign.
    """
    y, p, X = _overconfident_adult(first, last)
    p = p.clip(1e-60, 1 - 1e-16)
    return y, 1 / (1 + (p / (1 - p)) ** -0.025), X


def _overconfident_adult(first, last):
    adult = vc.datasets.load_adult()
    rows = np.random.default_rng(1).permutation(len(adult))[first:last]
    return adult.y[rows], adult.p[rows], {name: adult[name][rows] for name in VARIABLES}


def _weights(n):
    return np.random.default_rng(2).uniform(0.5, 1.5, n)


def _groups(n, many):
    return np.random.default_rng(3).integers(0, many, n)


def _variables(rng, n):
    """Draw a number and a category with values missing, a date, whole numbers and noise."""
    age = 20 + 60 * rng.random(n)
    age[rng.random(n) < 0.05] = np.nan
    kind = rng.choice(
        np.array(["red", "green", "blue", None], dtype=object), n, p=(0.5, 0.3, 0.1, 0.1)
    )
    return {
        "age": age,
        "kind": kind,
        "day": np.datetime64("2024-01-01", "s")
        + rng.integers(0, 300, n) * np.timedelta64(86_400, "s"),
        "visits": rng.integers(0, 6, n),
        "noise": rng.random(n),
    }


def _tilt(X):
    """Return how much the truth differs from the scores, and by which factor."""
    old = (np.nan_to_num(X["age"], nan=50.0) - 50) / 30
    shift = 0.8 * old * np.where(X["kind"] == "red", 1.0, -0.6) - 0.25 * X["visits"]
    return shift, np.where(X["kind"] == "blue", 0.4, 0.8)


def _binary(n, seed):
    """Draw a model of two classes whose gap goes with its variables, two of them together."""
    rng = np.random.default_rng(seed)
    X = _variables(rng, n)
    logit = 3 * rng.random(n) + 3 * rng.random(n) - 3
    shift, factor = _tilt(X)
    y = (rng.random(n) < 1 / (1 + np.exp(-(factor * logit + shift)))).astype(int)
    return y, 1 / (1 + np.exp(-logit)), X


def _multiclass(n, seed, power=0.65):
    """Draw a model of four classes whose gap goes with its variables; overconfident at power 1."""
    rng = np.random.default_rng(seed)
    X = _variables(rng, n)
    logits = 6 * rng.random((n, 4)) - 3
    shift, factor = _tilt(X)
    truth = np.exp(logits * (factor * np.exp(0.4 * shift))[:, None] + [0.4, 0.0, 0.0, -0.3])
    drawn = (rng.random(n)[:, None] * truth.sum(axis=1, keepdims=True) > truth.cumsum(axis=1)).sum(
        1
    )
    p = np.exp(power * logits)
    return np.array(list("abcd"))[drawn], p / p.sum(axis=1, keepdims=True), X


# Data sets and simulators


def _datasets(record):
    yelp = vc.datasets.load_yelp()
    tables = {
        "adult": vc.datasets.load_adult(),
        "yelp": yelp,
        "yelp-calibration": yelp.part("calibration"),
    }
    for name, data in tables.items():
        record.keep(f"datasets/{name}/y", data.y)
        record.keep(f"datasets/{name}/p", data.p)
        record.keep(f"datasets/{name}/frame", list(data.to_frame("pyarrow").column_names))
        for variable, column in data.X.items():
            _keep_column(record, f"datasets/{name}/{variable}", column)
    census = vc.datasets.load_census()
    record.keep("datasets/census/y_train", census.y_train)
    record.keep("datasets/census/y_test", census.y_test)
    for variable, column in census.X_train.items():
        _keep_column(record, f"datasets/census/{variable}", column)


def _keep_column(record, key, column):
    if column.dtype != object:
        record.keep(key, column)
        return
    held, counts = np.unique([str(one) for one in column], return_counts=True)
    record.keep(f"{key}/levels", held.tolist())
    record.keep(f"{key}/counts", counts.tolist(), exact=True)


def _simulations(record):
    make = vc.datasets
    shapes = ("tilt", "hump", "step", "tail", "sine", "none")
    found = {f"gap/{shape}": make.make_gap(1000, shape) for shape in shapes}
    # Scores and variable do not depend on the shape.
    same = [f"gap/{shape}" for shape in shapes[1:]]
    for scores in ("uniform", "rare", "confident"):
        found[f"gap/{scores}"] = make.make_gap(1000, "tail", vece=0.002, scores=scores)
    for variable in ("tied", "categorical"):
        found[f"gap/{variable}"] = make.make_gap(1000, variable=variable, random_state=4)
    at = np.linspace(0.05, 0.95, 10)
    for name, sim in found.items():
        key = f"simulations/{name}"
        record.fields(key, sim, ("y", "rate", "ece", "vece", "event"))
        if name not in same:
            record.keep(f"{key}/p", sim.p)
            text = sim.v.dtype.kind == "U"
            _keep_column(record, f"{key}/v", sim.v.astype(object) if text else sim.v)
        record.keep(f"{key}/score_quantile", sim.score_quantile(at))
        record.keep(f"{key}/score_gap", sim.score_gap(at))
        record.keep(f"{key}/ece_in_bins", sim.ece_in_bins(7))
        if sim.v.dtype.kind == "f":
            record.keep(f"{key}/gap", sim.gap(at))
            record.keep(f"{key}/vece_in_bins", sim.vece_in_bins(7))


# Errors by bins


def _errors(record):
    y, p, X = _adult(0, 4000)
    for event in ("correct", "positive", "classwise"):
        record.keep(f"ece/adult/{event}", vc.ece(y, p, event=event))
        for name in VARIABLES:
            record.keep(f"vece/adult/{event}/{name}", vc.vece(y, p, X[name], event=event))
    for norm in (1, 2, "max"):
        for side in ("both", "over", "under"):
            options = {"event": "positive", "norm": norm, "side": side}
            record.keep(f"ece/adult/{norm}/{side}", vc.ece(y, p, **options))
            record.keep(f"vece/adult/{norm}/{side}", vc.vece(y, p, X["age"], **options))
    for binning in ("quantile", "uniform", "atoms"):
        options = {"binning": binning, "n_bins": 15}
        record.keep(f"ece/adult/{binning}", vc.ece(y, p, **options))
        for name in ("age", "capital-gain"):
            record.keep(f"vece/adult/{binning}/{name}", vc.vece(y, p, X[name], **options))
    two = {name: X[name] for name in ("age", "workclass")}
    record.keep("ece/adult/bins", vc.ece(y, p, bins=[0, 0.6, 0.9, 0.99, 1]))
    record.keep("vece/adult/bins", vc.vece(y, p, X["age"], bins=[17, 25, 40, 65, 90]))
    record.keep("vece/adult/joint", vc.vece(y, p, two))
    record.keep("vece/adult/joint/bins", vc.vece(y, p, two, bins={"age": [17, 40, 90]}))
    weight = _weights(len(y))
    record.keep("ece/adult/weights", vc.ece(y, p, sample_weight=weight))
    record.keep("vece/adult/weights", vc.vece(y, p, two, sample_weight=weight, event="positive"))
    record.keep("vece/adult/pos_label", vc.vece(y, 1 - p, X["sex"], event="positive", pos_label=0))
    y, p, X = _overconfident_adult(0, 4000)
    record.keep("ece/overconfident", vc.ece(y, p, event="positive"))
    record.keep("vece/overconfident", vc.vece(y, p, X["age"], event="positive"))
    y, p, X = _multiclass(2000, 11)
    for event in ("correct", "classwise"):
        record.keep(f"ece/classes/{event}", vc.ece(y, p, event=event))
        for name, column in X.items():
            record.keep(f"vece/classes/{event}/{name}", vc.vece(y, p, column, event=event))
    logits = np.log(p) + 0.3
    record.keep("ece/classes/logits", vc.ece(y, logits, from_logits=True))
    order = [2, 0, 3, 1]
    reordered = vc.ece(y, p[:, order], classes=[*"cadb"], event="classwise", binning="uniform")
    record.keep("ece/classes/order", reordered)
    unknown = np.where(np.arange(len(y)) % 9 == 0, None, y)
    record.keep("ece/classes/dropped", vc.ece(unknown, p, unlabelled="drop"))
    whole = X["visits"]
    for name, column in {
        "truths": whole > 2,
        "categories": pd.Categorical.from_codes(whole % 3, ["low", "high", "middle"], ordered=True),
        "dates": pa.array(X["day"].astype("datetime64[D]")),
        "spans": whole * np.timedelta64(3600, "s"),
        "single": X["noise"].astype(np.float32),
        "decimals": pa.array(whole).cast(pa.decimal128(24, 2)),
        "infinite": np.where(whole == 0, -np.inf, X["age"]),
        "constant": np.zeros(len(y)),
    }.items():
        record.keep(f"vece/kinds/{name}", vc.vece(y, p, column))
        counts = vc.bin_table(y, p, column, binning="atoms", n_bins=4).columns["n"]
        record.keep(f"bin_table/kinds/{name}", counts, exact=True)
    named = pd.DataFrame(p, columns=[*"abcd"])
    record.keep("ece/classes/frame", vc.ece(pd.Categorical(y), named))
    for gap in (0.01, 0.02, 0.05, 0.1):
        record.keep(f"rows_needed/{gap}", vc.rows_needed(gap))
    record.keep(
        "rows_needed/options", vc.rows_needed(0.03, variance=0.05, n_bins=20, level=0.9, power=0.9)
    )


def _keep_table(record, key, table):
    record.fields(key, table, ("variable", "n_rows", "edges"))
    # The score's own edges come from sums and exponentials; those of a variable are its values.
    chosen = table.variable != "confidence"
    for name in ("low", "high"):
        if name in table.columns:
            record.keep(f"{key}/{name}", table.columns[name], exact=chosen)
    record.keep(f"{key}/n", table.columns["n"], exact=True)
    for name in ("share", "predicted", "observed", "gap", "gap_low", "gap_high"):
        record.keep(f"{key}/{name}", table.columns[name])


def _bin_tables(record):
    y, p, X = _adult(0, 4000)
    two = {name: X[name] for name in ("hours-per-week", "sex")}
    tables = {
        "score": vc.bin_table(y, p),
        "score/positive": vc.bin_table(y, p, event="positive", n_bins=5, level=0.9),
        "age/uniform": vc.bin_table(y, p, X["age"], binning="uniform", n_bins=7),
        "age/classwise": vc.bin_table(y, p, X["age"], event="classwise", n_bins=4),
        "age/weights": vc.bin_table(y, p, X["age"], sample_weight=_weights(len(y))),
        "capital-gain/atoms": vc.bin_table(y, p, X["capital-gain"], binning="atoms"),
        "joint": vc.bin_table(y, p, two, n_bins=4),
        "age/bins": vc.bin_table(y, p, X["age"], bins=[17, 30, 50, 90], event="positive"),
    }
    for name in ("fnlwgt", "hours-per-week", "workclass"):
        tables[name] = vc.bin_table(y, p, {name: X[name]})
    for name, table in tables.items():
        _keep_table(record, f"bin_table/adult/{name}", table)
    y, p, X = _multiclass(2000, 11)
    for name, column in X.items():
        table = vc.bin_table(
            y, p, {name: column}, event="classwise" if name == "kind" else "correct"
        )
        _keep_table(record, f"bin_table/classes/{name}", table)


# Estimates, curves, reliability


def _estimates(record):
    y, p, X = _adult(0, 4000)
    weight = _weights(len(y))
    found = {
        "score": vc.estimate(y, p),
        "score/positive": vc.estimate(y, p, event="positive", level=0.8),
        "age/classwise": vc.estimate(y, p, X["age"], event="classwise"),
        "age/weights": vc.estimate(y, p, X["age"], sample_weight=weight),
        "workclass/weights": vc.estimate(y, p, X["workclass"], sample_weight=weight),
        "age/groups": vc.estimate(y, p, X["age"], groups=_groups(len(y), 400)),
        "sex/groups": vc.estimate(y, p, X["sex"], groups=_groups(len(y), 400), event="positive"),
        "age/few-groups": vc.estimate(y, p, X["age"], groups=_groups(len(y), 30)),
    }
    for name in VARIABLES:
        found[name] = vc.estimate(y, p, {name: X[name]}, event="positive")
    for name, one in found.items():
        record.fields(f"estimate/adult/{name}", one, ESTIMATE)
    for name, options in {
        "rare": {"shape": "tilt", "vece": 0.008, "scores": "rare", "random_state": 5},
        "rarer": {"shape": "hump", "vece": 0.008, "scores": "rare", "random_state": 6},
        "tied": {"shape": "hump", "vece": 0.02, "variable": "tied", "random_state": 6},
        "none": {"shape": "none", "random_state": 7},
    }.items():
        sim = vc.datasets.make_gap(1500, **options)
        one = vc.estimate(sim.y, sim.p, sim.v, event="positive")
        record.fields(f"estimate/{name}/combined", one, ESTIMATE)
    y, p, X = _multiclass(2000, 11)
    for name, column in X.items():
        record.fields(f"estimate/classes/{name}", vc.estimate(y, p, {name: column}), ESTIMATE)
    classwise = vc.estimate(y, p, X["age"], event="classwise", groups=_groups(len(y), 150))
    record.fields("estimate/classes/classwise", classwise, ESTIMATE)


def _keep_curve(record, key, curve, series):
    record.keep(f"{key}/kind", curve.kind)
    record.fields(key, curve, CURVE_NUMBERS)
    record.fields(key, curve, ("x", *series))
    record.keep(f"{key}/worst_set", curve.worst_set)
    record.keep(f"{key}/counts", curve.counts)
    for name in ("regions", "excess"):
        regions = getattr(curve, name)
        record.keep(f"{key}/{name}", len(regions))
        for region in regions[:1]:
            record.keep(f"{key}/{name}/n", region.n)
            record.keep(f"{key}/{name}/first", [getattr(region, each) for each in REGION])


def _keep_histogram(record, key, histogram):
    record.fields(key, histogram, ("edges", "share", "trimmed"))


def _curves(record):
    y, p, X = _adult(0, 4000)
    age = {"age": X["age"]}
    found = {name: vc.curve(y, p, {name: X[name]}) for name in VARIABLES}
    found |= {
        "age/positive": vc.curve(y, p, age, event="positive", level=0.9, trim=0.1),
        "age/weights": vc.curve(y, p, age, sample_weight=_weights(len(y))),
        "age/groups": vc.curve(y, p, age, groups=_groups(len(y), 400)),
        "sex/groups": vc.curve(y, p, {"sex": X["sex"]}, groups=_groups(len(y), 30)),
        "age/span": vc.curve(y, p, age, span=0.9),
        "age/grid": vc.curve(y, p, age, grid=25),
        "age/points": vc.curve(y, p, age, span=0.5, grid=[20, 35.5, 61]),
    }
    for name, curve in found.items():
        series = SERIES if name in ("age", "workclass") else BAND
        _keep_curve(record, f"curve/adult/{name}", curve, series)
        _keep_histogram(record, f"curve/adult/{name}/histogram", curve.histogram)
    y, p, X = _multiclass(2000, 11)
    for name, column in X.items():
        curve = vc.curve(y, p, {name: column})
        _keep_curve(record, f"curve/classes/{name}", curve, BAND)


def _reliabilities(record):
    y, p, _ = _adult(0, 4000)
    many, q, _ = _multiclass(2000, 11)
    found = {
        "adult": vc.reliability(y, p),
        "adult/positive": vc.reliability(y, p, event="positive", binning="uniform"),
        "adult/weights": vc.reliability(y, p, sample_weight=_weights(len(y)), n_bins=6),
        "adult/groups": vc.reliability(y, p, groups=_groups(len(y), 60), level=0.9),
        "classes": vc.reliability(many, q),
    }
    for name, one in found.items():
        key = f"reliability/{name}"
        record.fields(key, one, RELIABILITY)
        record.fields(f"{key}/ece", one.ece, ESTIMATE)
        _keep_histogram(record, f"{key}/histogram", one.histogram)


# Audits and comparisons


def _keep_audit(record, key, audit):
    for name, target in audit.targets.items():
        record.fields(f"{key}/{name}", target, TARGET)
        record.fields(f"{key}/{name}/by_score", target.by_score, MEASURED)
        record.keep(f"{key}/{name}/n", target.score.columns["n"], exact=True)
    record.fields(key, audit, ("n_rows", "n_bins", "grouped", "edges"))
    record.keep(f"{key}/order", [row.variable for row in audit])
    for row in audit:
        own = f"{key}/{row.variable}"
        record.fields(own, row, ROW)
        record.keep(f"{own}/interval", [row.low, row.high])
        record.fields(f"{own}/error", row.error, MEASURED)
        record.fields(f"{own}/uneven", row.uneven, MEASURED)
        for other in row.others:
            record.fields(f"{own}/{other.target}", other.uneven, MEASURED)
        record.keep(f"{own}/n", row.table.columns["n"], exact=True)
        record.keep(f"{own}/gap_low", row.table.columns["gap_low"])
        if "high" in row.table.columns:
            record.keep(f"{own}/high", row.table.columns["high"], exact=True)


def _audits(record, folder):
    y, p, X = _adult(0, 4000)
    few = {name: X[name] for name in ("age", "workclass")}
    first = vc.audit(y, p, X)
    found = {
        "adult": first,
        "adult/other-class": vc.audit(y, 1 - p, few, pos_label=0, relative_limit=0.1),
        "adult/weights": vc.audit(y, p, few, sample_weight=_weights(len(y)), level=0.9),
        "adult/groups": vc.audit(y, p, few, groups=_groups(len(y), 400)),
        "adult/bins": vc.audit(y, p, few, bins={"age": [17, 30, 60, 90]}, binning="quantile"),
    }
    y0, p0, X0 = _overconfident_adult(0, 4000)
    found["overconfident"] = vc.audit(y0, p0, {"age": X0["age"], "sex": X0["sex"]})
    many, q, Z = _multiclass(2000, 11)
    found["classes"] = vc.audit(many, q, Z, n_bins=8)
    two = {name: Z[name] for name in ("age", "kind")}
    found["classes/groups"] = vc.audit(many, q, two, groups=_groups(len(many), 50))
    train_y, _, train = _adult(8000, 10_000)
    numbers = np.column_stack([X[name] for name in ("age", "hours-per-week")])
    model = GaussianNB().fit(
        np.column_stack([train[name] for name in ("age", "hours-per-week")]), train_y
    )
    found["estimator"] = vc.audit_estimator(model, numbers, y)
    for name, audit in found.items():
        _keep_audit(record, f"audit/{name}", audit)
    later_y, later_p, later = _adult(4000, 6000)
    later_y = np.where(np.arange(len(later_y)) % 20 == 0, np.nan, later_y)
    later["hours"], later["gone"] = later.pop("hours-per-week"), np.full(len(later_y), np.nan)
    second = vc.audit(later_y, later_p, later, unlabelled="drop")
    record.fields("audit/dropped", second, ("gap", "n_rows", "n_dropped"))
    changes = second.since(first).columns
    record.keep("audit/since/variable", changes["variable"])
    for name in ("before", "after", "change", "low", "high"):
        record.keep(f"audit/since/{name}", changes[name])
    first.save(folder / "audit.json")
    loaded = vc.load(folder / "audit.json")
    record.keep("audit/loaded", loaded.to_dict() == first.to_dict())


def _keep_comparison(record, key, found):
    record.keep(f"{key}/methods", list(found.methods))
    record.keep(f"{key}/figures", [" ".join(figure) for figure in found.figures])
    record.fields(key, found, ("n_rows", "n_dropped", "grouped"))
    for row in found.rows:
        figure = f"{row.metric}/{row.variable}" if row.variable else row.metric
        record.keep(f"{key}/{figure}/{row.method}", [getattr(row, name) for name in COMPARED])


def _comparisons(record):
    y, p, X = _binary(2500, 12)
    fit, held = slice(None, 1500), slice(1500, None)
    methods = {"raw": p[held]}
    for name, calibrator in {
        "beta": vc.BetaCalibrator(),
        "tree": vc.TreeCalibrator(),
        "augmented": vc.AugmentedCalibrator(),
    }.items():
        calibrator.fit(p[fit], y[fit], _part(X, fit))
        methods[name] = calibrator.predict_proba(p[held], _part(X, held))
    some = {
        "y": y[held],
        "methods": {name: methods[name] for name in ("raw", "tree")},
        "X": {name: X[name][held] for name in ("age", "kind")},
    }
    many = len(y[held])
    found = {
        "plain": vc.compare(y[held], methods, _part(X, held)),
        "few-bins": vc.compare(**some, n_bins=5),
        "quantile": vc.compare(**some, binning="quantile", level=0.9),
        "weights": vc.compare(**some, sample_weight=_weights(many), random_state=1),
        "groups": vc.compare(**some, groups=_groups(many, 120)),
    }
    y, p, X = _multiclass(2000, 11)
    fit, held = slice(None, 1000), slice(1000, None)
    mended = vc.calibrators.TemperatureCalibrator().fit(p[fit], y[fit]).predict_proba(p[held])
    found["classes"] = vc.compare(y[held], {"raw": p[held], "mended": mended}, _part(X, held))
    for name, one in found.items():
        _keep_comparison(record, f"compare/{name}", one)


def _scorers(record):
    y, _, X = _adult(0, 2000)
    numbers = np.column_stack([X[name] for name in VARIABLES[:4]])
    for name, scorer in {
        "ece": vc.ece_scorer(n_bins=15),
        "vece": vc.vece_scorer(0, event="positive"),
        "vece/joint": vc.vece_scorer([0, 3], n_bins=4, norm=2),
    }.items():
        scores = cross_val_score(GaussianNB(), numbers, y, scoring=scorer, cv=3)
        record.keep(f"scorers/{name}", scores)


# Rows that come in batches or stay elsewhere


def _frame(first, last):
    """Return rows of Adult as an Arrow table, with weights and groups."""
    y, p, X = _adult(first, last)
    n = len(y)
    return pa.table({"y": y, "p": p, **X, "weight": _weights(n), "unit": _groups(n, 500)})


def _collections(record, folder):
    days = [_frame(start, start + 1500) for start in (0, 1500, 3000)]
    for name, roles in {
        "plain": {"X": ["age", "capital-gain", "workclass", "sex"]},
        "weights": {"X": ["age", "workclass"], "sample_weight": "weight", "events": ["classwise"]},
        "groups": {"X": ["age", "workclass"], "groups": "unit", "binning": "quantile"},
    }.items():
        key = f"collected/{name}"
        plan = vc.make_bins("y", "p", data=days[0], **roles)
        record.keep(f"{key}/variables", [one.name for one in plan.along])
        record.keep(f"{key}/kinds", [one.kind for one in plan.along])
        total = sum(vc.collect(day, plan) for day in days)
        record.fields(key, total, ("n_rows", "n_dropped"))
        for ending in ("json", "parquet"):
            total.save(folder / f"{name}.{ending}")
            again = vc.load(folder / f"{name}.{ending}")
            event = "classwise" if name == "weights" else "correct"
            record.keep(f"{key}/{ending}", vc.ece(again + total, event=event))
        if name == "weights":
            record.keep(f"{key}/vece", vc.vece(total, v="age", event="classwise"))
            _keep_table(
                record, f"{key}/table", vc.bin_table(total, v="workclass", event="classwise")
            )
            continue
        _keep_audit(record, f"{key}/audit", vc.audit(total))
        record.keep(f"{key}/ece", vc.ece(total))
        record.keep(f"{key}/vece", vc.vece(total, v="age"))
        _keep_table(record, f"{key}/table", vc.bin_table(total, v="workclass"))
        record.fields(f"{key}/estimate", vc.estimate(total, v="age", event="positive"), ESTIMATE)
        _keep_curve(record, f"{key}/curve", vc.curve(total, v="age"), ("gap", "band_low"))
        record.fields(f"{key}/reliability", vc.reliability(total), RELIABILITY)


def _sources(rows, folder):
    """Give the same rows to every reader."""
    parquet.write_table(rows, folder / "rows.parquet", row_group_size=700)
    csv.write_csv(rows, folder / "rows.csv")
    parts = folder / "parts"
    parts.mkdir()
    for number in range(3):
        length = len(rows) // 3 + 1
        parquet.write_table(rows.slice(number * length, length), parts / f"{number}.parquet")
    return {
        "arrow": rows,
        "pandas": rows.to_pandas(),
        "parquet": folder / "rows.parquet",
        "csv": folder / "rows.csv",
        "parts": parts,
        "dataset": pyarrow.dataset.dataset(folder / "rows.parquet"),
        "polars": pl.scan_parquet(folder / "rows.parquet"),
        "duckdb": duckdb.sql("select * from rows"),
    }


def _lazy_rows(record, folder):
    sources = _sources(_frame(0, 2000), folder)
    for name, source in sources.items():
        key = f"sources/{name}"
        record.keep(f"{key}/ece", vc.ece("y", "p", data=source, sample_weight="weight"))
        record.keep(f"{key}/vece", vc.vece("y", "p", ["age", "sex"], data=source))
        found = vc.estimate("y", "p", "workclass", data=source, groups="unit", event="positive")
        record.fields(f"{key}/estimate", found, ESTIMATE)
        ranked = vc.audit("y", "p", ["age", "workclass", "capital-gain"], data=source)
        record.keep(f"{key}/audit/order", [row.variable for row in ranked])
        for row in ranked:
            record.keep(f"{key}/audit/{row.variable}", row.uneven.debiased)
        plan = vc.make_bins("y", "p", ["age", "workclass"], data=source)
        total = vc.collect(source, plan) + vc.collect(sources["arrow"], plan)
        record.keep(f"{key}/collected/n_rows", total.n_rows)
        record.keep(f"{key}/collected/vece", vc.vece(total, v="age"))


def _many_rows(record, folder):
    """So many rows that edges are chosen by a sample, and that sums are taken in passes."""
    sim = vc.datasets.make_gap(1_050_000, "sine", random_state=8)
    kind = np.array(["red", "green", "blue"])[(10 * sim.v).astype(int) % 3]
    unit = np.arange(len(sim)) % 40
    rows = pa.table({"y": sim.y, "p": sim.p, "v": sim.v, "kind": kind, "unit": unit})
    parquet.write_table(rows, folder / "rows.parquet")
    record.keep("many/memory/ece", vc.ece(sim.y, sim.p, event="positive"))
    record.keep("many/memory/vece", vc.vece(sim.y, sim.p, sim.v, event="positive"))
    path = folder / "rows.parquet"
    for name, source in {
        "parquet": path,
        "dataset": pyarrow.dataset.dataset(path),
        "polars": pl.scan_parquet(path),
    }.items():
        table = vc.bin_table("y", "p", "v", data=source, event="positive").columns
        record.keep(f"many/{name}/n", table["n"], exact=True)
        record.keep(f"many/{name}/high", table["high"], exact=True)
        found = vc.estimate("y", "p", "v", data=source, event="positive")
        record.fields(f"many/{name}/estimate", found, ESTIMATE)
    ranked = vc.audit("y", "p", ["v", "kind"], data=path, groups="unit")
    _keep_audit(record, "many/audit", ranked)
    y, p, v = (np.tile(column, 4) for column in (sim.y, sim.p, sim.v))
    table = vc.bin_table(y, p, v, event="positive", edges="sampled")
    _keep_table(record, "many/sampled", table)


# Calibrators


def _every_calibrator():
    """Return calibrators of every kind by name, with the settings that they have."""
    return {
        "augmented": vc.AugmentedCalibrator(),
        "augmented/logistic": vc.AugmentedCalibrator(score="logistic", degree=1, l2=5.0),
        "beta": vc.BetaCalibrator(),
        "beta/am": vc.BetaCalibrator(parameters="am"),
        "beta/paper": vc.BetaCalibrator.paper(),
        "dirichlet": vc.calibrators.DirichletCalibrator(),
        "dirichlet/odir": vc.calibrators.DirichletCalibrator(penalty="off_diagonal", l2=0.01),
        "dirichlet/paper": vc.calibrators.DirichletCalibrator.paper(),
        "histogram": vc.calibrators.HistogramCalibrator(),
        "histogram/uniform": vc.calibrators.HistogramCalibrator(binning="uniform", n_bins=7),
        "isotonic": vc.calibrators.IsotonicCalibrator(),
        "platt": vc.calibrators.PlattCalibrator(),
        "platt/probability": vc.calibrators.PlattCalibrator(on="probability"),
        "scaling-binning": vc.calibrators.ScalingBinningCalibrator(),
        "scaling-binning/paper": vc.calibrators.ScalingBinningCalibrator.paper(),
        "shift": vc.calibrators.ShiftCalibrator(),
        "temperature": vc.calibrators.TemperatureCalibrator(),
        "tree": vc.TreeCalibrator(),
        "tree/isotonic": vc.TreeCalibrator(
            vc.calibrators.IsotonicCalibrator(), max_depth=2, min_leaf=0.2
        ),
        "vector-scaling": vc.calibrators.VectorScalingCalibrator(),
    }


def _every_variable_calibrator(n_classes):
    found = {
        "plain": vc.VariableCalibrator(),
        "no-pairs": vc.VariableCalibrator(trees=False),
        "ranking": vc.VariableCalibrator(preserve_ranking=True),
        "limited": vc.VariableCalibrator(trees=False, max_shift=0.1),
    }
    if n_classes == 2:
        found["monotone"] = vc.VariableCalibrator(trees=False, monotone=True)
    return found


def _calibrators(record, folder):
    for name, (y, p, X) in {
        "binary": _binary(2100, 14),
        "classes": _multiclass(2100, 15, 1.0),
    }.items():
        fit, held = slice(None, 1500), slice(1500, None)
        new = _part(X, held)
        new["kind"] = np.where(np.arange(len(new["kind"])) % 50 == 0, "unseen", new["kind"])
        for kind, calibrator in _every_calibrator().items():
            calibrator.fit(p[fit], y[fit], _part(X, fit))
            key = f"calibrators/{name}/{kind}"
            _keep_calibrator(record, key, calibrator, p[held], new, folder / "calibrator.json")
            _keep_description(record, f"{key}/describe", calibrator)
        for kind, calibrator in _every_variable_calibrator(p.ndim + 1).items():
            calibrator.fit(p[fit], y[fit], _part(X, fit))
            key = f"calibrators/{name}/variable/{kind}"
            _keep_calibrator(record, key, calibrator, p[held], new, folder / "calibrator.json")
            _keep_variable_fit(record, key, calibrator, p[held], new)
            if kind == "plain":
                _keep_effects(record, f"{key}/effects", calibrator.effects())
        _more_fits(record, f"calibrators/{name}", y[fit], p[fit], _part(X, fit), p[held], new)
    _adult_fits(record, folder)
    _many_fitted(record)
    _many_classes(record)


def _keep_calibrator(record, key, calibrator, p, X, file):
    q = calibrator.predict_proba(p, X)
    record.keep(f"{key}/predict_proba", q)
    held, counts = np.unique(calibrator.predict(p, X).astype(str), return_counts=True)
    record.keep(f"{key}/predict", [*held.tolist(), *map(str, counts)])
    calibrator.save(file)
    loaded = vc.load(file)
    record.keep(f"{key}/loaded", bool((loaded.predict_proba(p, X) == q).all()))


def _keep_description(record, key, calibrator):
    told = [value for row in calibrator.describe().rows for value in row.values()]
    for kind in (int, float):
        numbers = [value for value in told if isinstance(value, kind)]
        if numbers:
            record.keep(f"{key}/{kind.__name__}", numbers)


def _keep_variable_fit(record, key, calibrator, p, X):
    low, high = calibrator.predict_interval(p, X, level=0.9)
    record.keep(f"{key}/low", low)
    record.keep(f"{key}/high", high)
    record.fields(key, calibrator, ("score_share_", "variables_share_", "trees_share_"))
    record.keep(f"{key}/order", [term.name for term in calibrator.terms_])
    for term in calibrator.terms_:
        record.keep(f"{key}/terms/{term.name}", [term.edf, term.moved, term.evidence])
        record.keep(f"{key}/terms/{term.name}/active", term.active)


def _keep_effects(record, key, effects):
    for name in effects:
        for number, effect in enumerate(effects[name]):
            own = f"{key}/{name}/{number}"
            record.fields(own, effect, ("score", "value", "high", "inner"))
            record.keep(f"{own}/missing", effect.missing)


def _more_fits(record, key, y, p, X, new_p, new_X):
    """Fit with weights, with groups, without variables, and on few rows."""
    weight, groups = _weights(len(y)), _groups(len(y), 100)
    for name, calibrator in {
        "beta": vc.BetaCalibrator(),
        "isotonic": vc.calibrators.IsotonicCalibrator(),
        "dirichlet": vc.calibrators.DirichletCalibrator(),
        "tree": vc.TreeCalibrator(),
        "augmented": vc.AugmentedCalibrator(),
        "variable": vc.VariableCalibrator(),
    }.items():
        calibrator.fit(p, y, X, sample_weight=weight)
        record.keep(f"{key}/{name}/weights", calibrator.predict_proba(new_p, new_X))
    fits = {"groups": vc.VariableCalibrator().fit(p, y, X, groups=groups)}
    for n in (60, 120, 160):
        fits[f"{n}-rows"] = vc.VariableCalibrator().fit(p[:n], y[:n], _part(X, slice(n)))
    for name, fit in fits.items():
        record.keep(f"{key}/variable/{name}", fit.predict_proba(new_p, new_X))
        record.fields(f"{key}/variable/{name}", fit, ("score_share_", "variables_share_"))
    alone = vc.VariableCalibrator().fit(p, y)
    record.keep(f"{key}/variable/alone", alone.predict_proba(new_p))


def _adult_fits(record, folder):
    """Fit on real rows, whose scores lie next to 0 and 1."""
    y, p, X = _overconfident_adult(0, 2000)
    new_y, new_p, new = _overconfident_adult(10_000, 12_000)
    for name, calibrator in {
        "augmented": vc.AugmentedCalibrator(),
        "augmented/paper": vc.AugmentedCalibrator.paper("adult"),
        "beta": vc.BetaCalibrator(),
        "platt": vc.calibrators.PlattCalibrator(),
        "tree": vc.TreeCalibrator(),
        "tree/paper": vc.TreeCalibrator.paper("bank"),
        "variable": vc.VariableCalibrator(),
    }.items():
        calibrator.fit(p, y, X)
        key = f"calibrators/adult/{name}"
        _keep_calibrator(record, key, calibrator, new_p, new, folder / "calibrator.json")
        mended = calibrator.predict_proba(new_p, new)
        record.keep(f"{key}/vece", vc.vece(new_y, mended, new["age"], event="positive"))


def _many_fitted(record):
    """Fit on more rows than decide on terms, and answer for so many that threads share them."""
    sim_y, sim_p, sim_X = _binary(25_000, 16)
    fit = vc.VariableCalibrator(trees=False).fit(sim_p, sim_y, sim_X)
    _, many_p, many_X = _binary(70_000, 17)
    record.keep("calibrators/many/variable", fit.predict_proba(many_p, many_X))
    record.keep("calibrators/many/order", [term.name for term in fit.terms_])
    beta = vc.BetaCalibrator().fit(sim_p, sim_y)
    record.keep("calibrators/many/beta", beta.predict_proba(many_p))


def _many_classes(record):
    """Fit with so many classes that second derivatives are not held."""
    rng = np.random.default_rng(22)
    p = rng.random((900, 30)) ** 4
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random(len(p))[:, None] > np.sqrt(p.cumsum(axis=1))).sum(axis=1)
    for name, calibrator in {
        "dirichlet": vc.calibrators.DirichletCalibrator(),
        "vector-scaling": vc.calibrators.VectorScalingCalibrator(),
        "temperature": vc.calibrators.TemperatureCalibrator(),
        "variable": vc.VariableCalibrator(),
    }.items():
        calibrator.fit(p[:600], y[:600], {"half": np.arange(600) % 2})
        answer = calibrator.predict_proba(p[600:], {"half": np.arange(300) % 2})
        record.keep(f"calibrators/many-classes/{name}", answer)


def _classifiers(record):
    y, _, X = _adult(0, 2400)
    numbers = np.column_stack([X[name] for name in VARIABLES[:4]]).astype(float)
    sex = {"sex": X["sex"]}
    fit, held = slice(None, 1600), slice(1600, None)
    train, train_y = numbers[fit], y[fit]
    many = len(train_y)
    old_y, _, old = _adult(8000, 10_000)
    model = GaussianNB().fit(np.column_stack([old[name] for name in VARIABLES[:4]]), old_y)
    make = vc.VariableCalibratedClassifier
    found = {
        "plain": make(GaussianNB()).fit(train, train_y),
        "frozen": make(FrozenEstimator(model), variables=0).fit(train, train_y),
        "ensemble": make(GaussianNB(), variables=[0, 3], cv=3, ensemble=True).fit(train, train_y),
        "tree": make(GaussianNB(), calibrator=vc.TreeCalibrator()).fit(train, train_y),
        "weights": make(GaussianNB(), variables=0).fit(train, train_y, _weights(many)),
        "groups": make(GaussianNB(), variables=0).fit(train, train_y, groups=_groups(many, 90)),
        "ridge": make(RidgeClassifier(), variables=0).fit(train, train_y),
    }
    for name, classifier in found.items():
        record.keep(f"classifier/{name}/predict_proba", classifier.predict_proba(numbers[held]))
        record.keep(f"classifier/{name}/score", classifier.score(numbers[held], y[held]))
    apart = make(GaussianNB()).fit(train, train_y, variables=_part(sex, fit))
    answer = apart.predict_proba(numbers[held], variables=_part(sex, held))
    record.keep("classifier/apart/predict_proba", answer)
    label, p, V = _multiclass(1500, 18, 1.0)
    several = make(RidgeClassifier(), cv=4).fit(
        p[:1000], label[:1000], variables=_part(V, slice(1000))
    )
    answer = several.predict_proba(p[1000:], variables=_part(V, slice(1000, None)))
    record.keep("classifier/classes/predict_proba", answer)


def _applied(record, folder):
    _, p, X = _binary(800, 19)
    y, fit_p, fit_X = _binary(1000, 20)
    calibrator = vc.TreeCalibrator().fit(pa.table({"p": fit_p}), y, fit_X)
    calibrator.save(folder / "calibrator.json")
    rows = pa.table({"id": np.arange(len(p)), "p": p, **X})
    sources = _sources(rows, folder)
    for name in ("parquet", "csv", "parts", "dataset", "polars", "duckdb"):
        out = folder / f"{name}-out.parquet"
        done = vc.apply(folder / "calibrator.json", sources[name], out)
        record.keep(f"apply/{name}/n_rows", done.n_rows)
        record.keep(f"apply/{name}/columns", list(done.columns))
        written = parquet.read_table(out).sort_by("id")
        record.keep(f"apply/{name}", written["p_calibrated"].to_numpy())
    vc.apply(calibrator, sources["csv"], folder / "out.csv", column="q")
    record.keep("apply/text", csv.read_csv(folder / "out.csv")["q"].to_numpy())
    for name in ("out.jsonl.gz", "out.arrow", "out.tsv"):
        vc.apply(calibrator, sources["parquet"], folder / name)
        again = vc.apply(calibrator, folder / name, folder / f"{name}.parquet", column="q")
        record.keep(f"apply/{name}/n_rows", again.n_rows)
        record.keep(f"apply/{name}", parquet.read_table(again.out)["q"].to_numpy())
    y, p, X = _multiclass(1200, 21, 1.0)
    names = [*"abcd"]
    calibrator = vc.calibrators.DirichletCalibrator().fit(p[:800], y[:800])
    parquet.write_table(pa.table(dict(zip(names, p[800:].T, strict=True))), folder / "many.parquet")
    done = vc.apply(calibrator, folder / "many.parquet", folder / "many-out.parquet", p=names)
    record.keep("apply/classes/columns", list(done.columns))
    written = parquet.read_table(folder / "many-out.parquet")
    for name in done.columns:
        record.keep(f"apply/classes/{name}", written[name].to_numpy())


def main():
    """Write the results file again, one result a line."""
    found = results()
    groups = []
    for group in ("exact", "close"):
        lines = [f"{_text(key)}: {_text(value)}" for key, value in sorted(found[group].items())]
        groups.append(f"{_text(group)}: {{\n" + ",\n".join(lines) + "\n}")
    FILE.write_text("{\n" + ",\n".join(groups) + "\n}\n", encoding="utf-8")


def _text(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


if __name__ == "__main__":
    main()
