"""A saved result of every kind, how it is loaded, and what a user does with it."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

import varcal as vc
from cases.calibrators import check_probabilities
from varcal._audit.audit_result import AUDIT
from varcal._evidence.collected_file import COLLECTED
from varcal._monitor.monitor_file import MONITOR
from varcal.calibrators._saved.json_file import CALIBRATOR, CLASSIFIER
from varcal.report import inline_report, summarise_monitor


@dataclass(frozen=True, eq=False)
class SavedResult:
    """The text of a file, its kind, how to load it and how to use what was loaded."""

    name: str
    kind: Any
    text: str
    path: Any
    load: Any
    use: Any


def rows(n=300, k=2, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.8), n)
    y = (rng.random((n, 1)) > np.cumsum(p, axis=1)).sum(1).clip(0, k - 1)
    v = pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 80, n)),
            "job": rng.choice(["a", "b", "c"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, n), unit="D"),
        }
    )
    return (p[:, 1] if k == 2 else p), y, v


def saved_results(folder):
    """Yield a saved result of every kind, with every calibrator."""
    two, three = rows(), rows(k=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for make, data in [
            (vc.VariableCalibrator(), two),
            (vc.VariableCalibrator(), three),
            (vc.TreeCalibrator(), two),
            (vc.AugmentedCalibrator(), three),
            (vc.BetaCalibrator(), two),
            (vc.DirichletCalibrator(), three),
            (vc.HistogramCalibrator(), three),
            (vc.IsotonicCalibrator(), two),
            (vc.PlattCalibrator(), three),
            (vc.ScalingBinningCalibrator(), two),
            (vc.TemperatureCalibrator(), three),
            (vc.VectorScalingCalibrator(), three),
        ]:
            yield _calibrator(folder, make.fit(*data), data)
        yield _classifier(folder)
        yield from _sums(folder)


def _calibrator(folder, fitted, data):
    path = folder / "calibrator.json"
    fitted.save(path)
    p, _, v = data
    k = len(fitted.classes_)
    others = pd.DataFrame(
        {
            "age": [-1e300, 1e300, np.nan, 40.5],
            "job": ["a", "z", None, "c"],
            "day": pd.to_datetime(["1970-01-01", "2200-01-01", None, "2024-02-03"]),
        }
    )
    q = np.array([0.0, 1.0, 0.5, 0.2]) if k == 2 else np.vstack([np.eye(3), np.full(3, 1 / 3)])

    def use(found):
        n_classes = len(found.classes_)
        check_probabilities(found.predict_proba(p, v), len(p), n_classes)
        check_probabilities(found.predict_proba(q, others), 4, n_classes)
        str(found.describe())

    name = f"{type(fitted).__name__} {k}"
    return SavedResult(name, CALIBRATOR, path.read_text(), path, vc.load_calibrator, use)


def _classifier(folder):
    path = folder / "classifier.json"
    p, y, _ = rows()
    X = np.column_stack([p, np.arange(len(p)) % 7])
    model = vc.VariableCalibratedClassifier(
        LogisticRegression(), variables=[1], calibrator=vc.TreeCalibrator(max_depth=1), cv=2
    ).fit(X, y)
    model.save(path)

    def load(path):
        return vc.VariableCalibratedClassifier.load(path, estimator=model.estimator_)

    def use(found):
        check_probabilities(found.predict_proba(X), len(X), 2)
        found.predict(X)

    return SavedResult("classifier", CLASSIFIER, path.read_text(), path, load, use)


def _sums(folder):
    p, y, v = rows()
    frame = {"y": y, "p": p, "age": v["age"], "job": v["job"], "day": v["day"]}
    audit = vc.audit(y, p, v, repair=False)
    path = folder / "audit.json"
    audit.save(path)

    def use_audit(found):
        inline_report(found)
        repr(found), found.to_dict(), found.sentence, found.bound
        if (found.event, found.level) == (audit.event, audit.level):
            str(found.since(audit))

    yield SavedResult("audit", AUDIT, path.read_text(), path, vc.load_audit, use_audit)
    bins = vc.make_bins("y", "p", data=frame, monitor=0.02)
    collected = vc.collect(frame, bins)
    path = folder / "collected.json"
    collected.save(path)

    def use_collected(found):
        vc.ece(found)
        for along in found.along:
            vc.vece(found, v=along.name)
        repr(vc.audit(found, repair=False))
        found + found

    yield SavedResult(
        "collected", COLLECTED, path.read_text(), path, vc.load_collected, use_collected
    )
    monitor = vc.Monitor(bins)
    for day in range(3):
        monitor.update(frame, id=f"day {day}")
    monitor.acknowledge() if monitor.status.alarm else None
    path = folder / "monitor.json"
    monitor.save(path)

    def use_monitor(found):
        str(found), str(found.status), found.to_frame()
        summarise_monitor(found)
        found.update(frame, id="zzz")

    yield SavedResult("monitor", MONITOR, path.read_text(), path, vc.load_monitor, use_monitor)
