"""A saved result of every kind, how it is loaded, and what a user does with it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import varcal as vc
from varcal.exceptions import VarcalError

Rows = tuple[np.ndarray, np.ndarray, pd.DataFrame]
DIALECTS = ("duckdb", "postgres", "spark", "bigquery", "snowflake")


@dataclass(frozen=True, eq=False)
class SavedResult:
    """The text of a file, how to load it and how to use what was loaded."""

    name: str
    text: str
    path: Path
    load: Callable[[Path], Any]
    use: Callable[[Any], None]


def check_probabilities(q: np.ndarray, n: int, k: int) -> None:
    """Check that each of n rows has k probabilities."""
    assert q.shape == (n, k) and (q >= 0).all()
    assert np.allclose(q.sum(axis=1), 1, rtol=0, atol=1e-12)


def rows(n: int = 300, k: int = 2, seed: int = 0) -> Rows:
    """Draw scores of k classes, outcomes and variables of three kinds."""
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


def saved_results(folder: Path) -> Iterator[SavedResult]:
    """Yield a saved result of every kind, with every calibrator."""
    two, three = rows(), rows(k=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for make, data in [
            (vc.VariableCalibrator(), two),
            (vc.VariableCalibrator(), three),
            (vc.calibrators.TreeCalibrator(), two),
            (vc.calibrators.AugmentedCalibrator(), three),
            (vc.calibrators.BetaCalibrator(), two),
            (vc.calibrators.DirichletCalibrator(), three),
            (vc.calibrators.HistogramCalibrator(), three),
            (vc.calibrators.IsotonicCalibrator(), two),
            (vc.calibrators.PlattCalibrator(), three),
            (vc.calibrators.ScalingBinningCalibrator(), two),
            (vc.calibrators.ShiftCalibrator(), two),
            (vc.calibrators.ShiftCalibrator(), three),
            (vc.calibrators.TemperatureCalibrator(), three),
            (vc.calibrators.VectorScalingCalibrator(), three),
        ]:
            yield _calibrator(folder, make.fit(*data), data)
        yield _grown(folder)
        yield _slices(folder)
        yield _audit(folder, "audit", vc.audit(*_last_first(two)))
        yield _audit(folder, "audit of three classes", vc.audit(*_last_first(three), slices=True))
        yield from _sums(folder)


def _last_first(data: Rows) -> Any:
    p, y, v = data
    return y, p, v


def _calibrator(folder: Path, fitted: Any, data: Rows) -> SavedResult:
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

    def use(found: Any) -> None:
        n_classes = len(found.classes_)
        check_probabilities(found.predict_proba(p, v), len(p), n_classes)
        check_probabilities(found.predict_proba(q, others), 4, n_classes)
        str(found.describe())

    name = f"{type(fitted).__name__} {k}"
    return SavedResult(name, path.read_text(), path, vc.load, use)


def grown_rows(n: int = 8_000) -> Rows:
    """Return rows of which three variables together decide, so that trees are needed."""
    rng = np.random.default_rng(0)
    age, job = rng.integers(0, 10, n).astype(float), rng.integers(0, 6, n)
    dose, z = rng.integers(0, 4, n).astype(float), rng.normal(size=n)
    eta = z + 2.5 * ((age > 5) ^ (job > 2)) - 2.0 * ((age > 3) & (dose > 1) & (job < 4))
    eta += 1.5 * ((dose < 1) & (age < 3))
    y = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)
    age[rng.random(n) < 0.05] = np.nan
    v = pd.DataFrame({"age": age, "job": np.array(list("abcdef"))[job], "dose": dose})
    return 1 / (1 + np.exp(-z)), y, v


def _grown(folder: Path) -> SavedResult:
    """Return a calibrator with trees."""
    p, y, v = grown_rows()
    fitted = vc.VariableCalibrator().fit(p, y, v)
    assert fitted.model_.trees is not None
    path = folder / "grown.json"
    fitted.save(path)
    some = slice(0, 600)
    others = pd.DataFrame(
        {"age": [-1e300, 1e300, np.nan, 5.0], "job": ["a", "z", None, "c"], "dose": [0, 1e9, 3, 1]}
    )

    def use(found: Any) -> None:
        check_probabilities(found.predict_proba(p[some], v[some]), 600, 2)
        check_probabilities(found.predict_proba([0.0, 1.0, 0.5, 0.2], others), 4, 2)
        found.predict_interval(p[some], v[some])
        str(found.describe()), found.effects()

    name = "VariableCalibrator with trees"
    return SavedResult(name, path.read_text(), path, vc.load, use)


def _slices(folder: Path) -> SavedResult:
    n = 3_000
    p, y, v = rows(n)
    v["stay"] = pd.to_timedelta(np.arange(n) % 50, unit="h")
    wrong = (v["age"] > 50) | (v["job"] == "a") | (v["day"] > "2024-03-01") | (v["stay"] > "40h")
    y = np.where(wrong & (np.arange(n) % 3 > 0), 1, y)
    found = vc.slices(y, p, v, draws=19)
    assert {one.kind for each in found for one in each.conditions} >= {"numeric", "levels"}
    path = folder / "slices.json"
    found.save(path)

    def use(found: Any) -> None:
        repr(found), found.to_dict(), found.to_frame(), found.sentence
        found.plot()
        plt.close("all")
        for one in found:
            assert one.mask(v).shape == (n,)
            for dialect in DIALECTS:
                try:
                    one.to_sql(dialect)
                except VarcalError:  # a duration, which some databases cannot turn into seconds
                    continue

    return SavedResult("slices", path.read_text(), path, vc.load, use)


def _audit(folder: Path, name: str, audit: vc.results.Audit) -> SavedResult:
    """Return an audit with its ladder."""
    assert audit.ladder is not None
    path = folder / f"{name}.json"
    audit.save(path)

    def use(found: Any) -> None:
        found.report(), found.report(folder / "report.md"), repr(found), found.to_frame()
        found.to_dict(), found.sentence, found.verdict, found.advice
        str(found.ladder), [str(row) for row in found]
        found.plot(), found.rows[0].plot()
        if found.intersections is not None:
            more = found.intersections
            more.slices.plot()
            more.sentence, str(more.predictable)
        plt.close("all")
        if (list(found.targets), found.level) == (list(audit.targets), audit.level):
            str(found.since(audit))

    return SavedResult(name, path.read_text(), path, vc.load, use)


def _sums(folder: Path) -> Iterator[SavedResult]:
    p, y, v = rows()
    frame = {"y": y, "p": p, "age": v["age"], "job": v["job"], "day": v["day"]}
    bins = vc.make_bins("y", "p", data=frame, monitor=0.02)
    collected = vc.collect(frame, bins)
    path = folder / "collected.json"
    collected.save(path)

    def use_collected(found: Any) -> None:
        vc.ece(found)
        for along in found.plan.along:
            vc.vece(found, v=along.name)
        repr(vc.audit(found))
        found + found

    yield SavedResult("collected", path.read_text(), path, vc.load, use_collected)
    monitor = vc.Monitor(bins)
    for day in range(3):
        monitor.update(frame, id=f"day {day}")
    monitor.acknowledge() if monitor.status.alarm else None
    path = folder / "monitor.json"
    monitor.save(path)

    def use_monitor(found: Any) -> None:
        str(found), str(found.status), found.to_frame()
        found.report(folder / "report.html")
        found.update(frame, id="zzz")

    yield SavedResult("monitor", path.read_text(), path, vc.load, use_monitor)
