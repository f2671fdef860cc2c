"""What varcal gives on fixed rows where no other test has its figures, under readable names.

`results` computes them through ``import varcal as vc`` alone. ``tests/golden/results.json``
holds what they are meant to be, and ``test_results.py`` compares. No sentence, verdict or layout
of a file is among them, so that these can be reworded; what is there are figures, counts, edges of
bins and orders of variables.

Only where a change of results is intended, write the file again::

    python tests/cases/golden_results.py
"""

import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_limits

import varcal as vc

FILE = Path(__file__).parents[1] / "golden" / "results.json"

#: Values of an array that are kept at each of its ends.
N_ENDS = 5

MEASURED = ("value", "debiased", "low", "high", "p_value", "noise_floor", "noise_high")
CURVE = ("x", "observed", "gap", "band_low", "band_high", "counts")
CURVE_NUMBERS = ("worst", "vce", "vce_low", "vece", "vece_high", "overall", "span", "n_missing")
ESTIMATE = (*MEASURED, "detectable", "n_rows", "n_bins", "variable", "edges")
ROW = ("kind", "target", "p_holm", "p_bh", "rank_low", "rank_high", "n_bins", "missing")
TARGET = ("predicted", "observed", "gap", "gap_low", "gap_high", "p_value", "events", "limit")
RELIABILITY = ("predicted", "observed", "observed_low", "consistent_high", "counts", "smooth")
CHANGE = ("difference", "difference_low", "difference_high")
COMPARED = ("value", "low", "high", "noise_floor", *CHANGE)

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
    with threadpool_limits(1):
        for part in (_estimates, _curves, _audits, _comparisons, _collections, _calibrators):
            part(record)
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


# Estimates and curves


def _estimates(record):
    y, p, X = _adult(0, 4000)
    found = {
        "score": vc.estimate(y, p),
        "score/positive": vc.estimate(y, p, event="positive", level=0.8),
        "age": vc.estimate(y, p, {"age": X["age"]}, event="positive"),
        "age/classwise": vc.estimate(y, p, X["age"], event="classwise"),
        "workclass/weights": vc.estimate(y, p, X["workclass"], sample_weight=_weights(len(y))),
        "sex/groups": vc.estimate(y, p, X["sex"], groups=_groups(len(y), 400), event="positive"),
        "age/few-groups": vc.estimate(y, p, X["age"], groups=_groups(len(y), 30)),
    }
    for name, one in found.items():
        record.fields(f"estimate/adult/{name}", one, ESTIMATE)
    sim = vc.datasets.make_gap(1500, "tilt", vece=0.008, scores="rare", random_state=5)
    one = vc.estimate(sim.y, sim.p, sim.v, event="positive")
    record.fields("estimate/rare/combined", one, ESTIMATE)
    y, p, X = _multiclass(2000, 11)
    record.fields("estimate/classes/age", vc.estimate(y, p, {"age": X["age"]}), ESTIMATE)


def _curves(record):
    y, p, X = _adult(0, 4000)
    age = {"age": X["age"]}
    found = {
        "age": vc.curve(y, p, age),
        "workclass": vc.curve(y, p, {"workclass": X["workclass"]}),
        "age/positive": vc.curve(y, p, age, event="positive", level=0.9, trim=0.1),
        "age/weights": vc.curve(y, p, age, sample_weight=_weights(len(y))),
        "age/groups": vc.curve(y, p, age, groups=_groups(len(y), 400)),
        "age/span": vc.curve(y, p, age, span=0.9),
    }
    for name, curve in found.items():
        series = CURVE if name in ("age", "workclass") else ("gap", "band_low")
        record.fields(f"curve/adult/{name}", curve, (*CURVE_NUMBERS, *series))


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
        record.keep(f"{own}/n", row.table.columns["n"], exact=True)


def _audits(record):
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
    many, q, Z = _multiclass(2000, 11)
    found["classes"] = vc.audit(many, q, Z, n_bins=8)
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


def _keep_comparison(record, key, found):
    record.keep(f"{key}/figures", [" ".join(figure) for figure in found.figures])
    record.fields(key, found, ("n_rows", "n_dropped", "grouped"))
    for row in found.rows:
        figure = f"{row.metric}/{row.variable}" if row.variable else row.metric
        record.keep(f"{key}/{figure}/{row.method}", [getattr(row, name) for name in COMPARED])


def _comparisons(record):
    y, p, X = _binary(2500, 12)
    fit, held = slice(None, 1500), slice(1500, None)
    tree = vc.calibrators.TreeCalibrator().fit(p[fit], y[fit], _part(X, fit))
    methods = {"raw": p[held], "tree": tree.predict_proba(p[held], _part(X, held))}
    two = {name: X[name][held] for name in ("age", "kind")}
    some = {"y": y[held], "methods": methods, "X": two}
    many = len(y[held])
    found = {
        "plain": vc.compare(y[held], methods, _part(X, held)),
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


# Sums of batches


def _frame(first, last):
    """Return rows of Adult as an Arrow table, with weights and groups."""
    y, p, X = _adult(first, last)
    n = len(y)
    return pa.table({"y": y, "p": p, **X, "weight": _weights(n), "unit": _groups(n, 500)})


def _collections(record):
    days = [_frame(start, start + 1500) for start in (0, 1500, 3000)]
    for name, roles in {
        "plain": {"X": ["age", "capital-gain", "workclass", "sex"]},
        "groups": {"X": ["age", "workclass"], "groups": "unit", "binning": "quantile"},
    }.items():
        key = f"collected/{name}"
        plan = vc.make_bins("y", "p", data=days[0], **roles)
        total = sum(vc.collect(day, plan) for day in days)
        record.fields(key, total, ("n_rows", "n_dropped"))
        _keep_audit(record, f"{key}/audit", vc.audit(total))
        record.keep(f"{key}/ece", vc.ece(total))
        record.keep(f"{key}/vece", vc.vece(total, v="age"))
        record.fields(f"{key}/estimate", vc.estimate(total, v="age", event="positive"), ESTIMATE)
        record.fields(f"{key}/curve", vc.curve(total, v="age"), ("gap", "band_low"))
        record.fields(f"{key}/reliability", vc.reliability(total), RELIABILITY)
    roles = {"X": ["age", "workclass"], "sample_weight": "weight", "events": ["classwise"]}
    plan = vc.make_bins("y", "p", data=days[0], **roles)
    total = sum(vc.collect(day, plan) for day in days)
    record.keep("collected/weights/vece", vc.vece(total, v="age", event="classwise"))


# Calibrators


def _every_calibrator():
    """Return calibrators of every kind by name, with the settings that they have."""
    return {
        "augmented": vc.calibrators.AugmentedCalibrator(),
        "augmented/logistic": vc.calibrators.AugmentedCalibrator(
            vc.calibrators.PlattCalibrator(smooth_targets=False, eps=1e-300), degree=1, l2=5.0
        ),
        "beta": vc.calibrators.BetaCalibrator(),
        "beta/am": vc.calibrators.BetaCalibrator(parameters="am"),
        "beta/paper": vc.calibrators.BetaCalibrator.paper(),
        "dirichlet": vc.calibrators.DirichletCalibrator(),
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
        "tree": vc.calibrators.TreeCalibrator(),
        "tree/isotonic": vc.calibrators.TreeCalibrator(
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


def _calibrators(record):
    for name, (y, p, X) in {
        "binary": _binary(2100, 14),
        "classes": _multiclass(2100, 15, 1.0),
    }.items():
        fit, held = slice(None, 1500), slice(1500, None)
        new = _part(X, held)
        new["kind"] = np.where(np.arange(len(new["kind"])) % 50 == 0, "unseen", new["kind"])
        for kind, calibrator in _every_calibrator().items():
            calibrator.fit(p[fit], y[fit], _part(X, fit))
            answer = calibrator.predict_proba(p[held], new)
            record.keep(f"calibrators/{name}/{kind}/predict_proba", answer)
        for kind, calibrator in _every_variable_calibrator(p.ndim + 1).items():
            calibrator.fit(p[fit], y[fit], _part(X, fit))
            key = f"calibrators/{name}/variable/{kind}"
            _keep_variable_fit(record, key, calibrator, p[held], new)
        _more_fits(record, f"calibrators/{name}", y[fit], p[fit], _part(X, fit), p[held], new)
    _papers(record)
    _many_classes(record)


def _keep_variable_fit(record, key, calibrator, p, X):
    record.keep(f"{key}/predict_proba", calibrator.predict_proba(p, X))
    low, high = calibrator.predict_interval(p, X, level=0.9)
    record.keep(f"{key}/low", low)
    record.keep(f"{key}/high", high)
    record.fields(key, calibrator, ("score_share_", "variables_share_", "trees_share_"))
    record.keep(f"{key}/order", [term.name for term in calibrator.terms_])
    for term in calibrator.terms_:
        record.keep(f"{key}/terms/{term.name}", [term.edf, term.moved, term.evidence])


def _more_fits(record, key, y, p, X, new_p, new_X):
    """Fit with weights, with groups, without variables, and on few rows."""
    weighted = vc.VariableCalibrator().fit(p, y, X, sample_weight=_weights(len(y)))
    record.keep(f"{key}/variable/weights", weighted.predict_proba(new_p, new_X))
    fits = {
        "groups": vc.VariableCalibrator().fit(p, y, X, groups=_groups(len(y), 100)),
        "120-rows": vc.VariableCalibrator().fit(p[:120], y[:120], _part(X, slice(120))),
    }
    for name, fit in fits.items():
        record.keep(f"{key}/variable/{name}", fit.predict_proba(new_p, new_X))
        record.fields(f"{key}/variable/{name}", fit, ("score_share_", "variables_share_"))
    alone = vc.VariableCalibrator().fit(p, y)
    record.keep(f"{key}/variable/alone", alone.predict_proba(new_p))


def _papers(record):
    """Fit the paper's calibrators on real rows, whose scores lie next to 0 and 1."""
    y, p, X = _overconfident_adult(0, 2000)
    _, new_p, new = _overconfident_adult(10_000, 12_000)
    for name, calibrator in {
        "augmented/paper": vc.calibrators.AugmentedCalibrator.paper("adult"),
        "tree/paper": vc.calibrators.TreeCalibrator.paper("bank"),
    }.items():
        answer = calibrator.fit(p, y, X).predict_proba(new_p, new)
        record.keep(f"calibrators/adult/{name}/predict_proba", answer)


def _many_classes(record):
    """Fit with so many classes that second derivatives are not held."""
    rng = np.random.default_rng(22)
    p = rng.random((900, 30)) ** 4
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random(len(p))[:, None] > np.sqrt(p.cumsum(axis=1))).sum(axis=1)
    for name, calibrator in {
        "dirichlet": vc.calibrators.DirichletCalibrator(),
        "variable": vc.VariableCalibrator(),
    }.items():
        calibrator.fit(p[:600], y[:600], {"half": np.arange(600) % 2})
        answer = calibrator.predict_proba(p[600:], {"half": np.arange(300) % 2})
        record.keep(f"calibrators/many-classes/{name}", answer)


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
