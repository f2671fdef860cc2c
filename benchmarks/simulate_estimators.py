"""Estimators of the calibration error in worlds that others published, with a known truth.

    python benchmarks/simulate_estimators.py --out estimators.jsonl [--draws 100] [--slow-draws 10]
    python benchmarks/simulate_estimators.py --table estimators.jsonl [--published mean_errors.csv]

The worlds are those of "A Variational Estimator for Lp Calibration Errors" (arXiv 2602.24230):
scores p ~ Beta(½, ½), P(y = 1 | p) = h(p), 200 to 10,000 rows; the target is E|p − h(p)|.
``along`` is the same gap along a variable: v ~ Beta(½, ½), scores uniform between .35 and .65 and
P(y = 1 | p, v) = p + h(v) − v, so that the target is the same number.

Estimators of probmetrics, of relplot and of scikit-learn are left out where they are not installed;
those that take seconds are drawn `--slow-draws` times. Every draw is one JSON line, written when it
is measured; draws that the file has are not repeated. `--published` names a table of mean absolute
errors with the columns h_func and n_samples and one column for each estimator.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.integrate import quad
from scipy.special import expit, logit

import varcal as vc

Shape = Callable[[np.ndarray], np.ndarray]
Estimator = Callable[[np.ndarray, np.ndarray, np.ndarray], dict[str, float]]
SIZES = np.round(np.geomspace(200, 10_000, 15)).astype(int)


def _wavy(p: np.ndarray) -> np.ndarray:
    wave = 2 * np.sin(10 * np.pi * p) + np.sin(20 * (2 * np.pi / 3) * p)
    return p + wave / (10 * np.pi)


SHAPES: dict[str, Shape] = {
    "perfectly_calibrated_bin": lambda p: p,
    "overconfident_binary": lambda p: expit(0.4 * logit(p) + 0.3),
    "underconfident_binary": lambda p: expit(4 * logit(p) + 1),
    "wavy_increasing_function_bin": _wavy,
}


def true_error(shape: Shape) -> float:
    """Return E|p − h(p)|; with p = sin²(t) the density of t is constant."""

    def gap(t: float) -> float:
        p = np.clip(np.sin(t) ** 2, 1e-12, 1 - 1e-12)
        return abs(p - np.clip(shape(p), 0, 1))

    return quad(gap, 0, np.pi / 2, limit=2_000)[0] * 2 / np.pi


def draw(world: str, n: int, seed: int, along: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw outcomes, scores and the variable that the error is measured along."""
    rng = np.random.default_rng([seed, n, list(SHAPES).index(world), along])
    v = np.clip(rng.beta(0.5, 0.5, n), 1e-9, 1 - 1e-9)
    truth = np.clip(SHAPES[world](v), 0, 1)
    p = rng.uniform(0.35, 0.65, n) if along else v
    y = (rng.random(n) < (p + truth - v if along else truth)).astype(int)
    return y, p, v


def ours(y: np.ndarray, p: np.ndarray, v: np.ndarray) -> dict[str, float]:
    """Return the debiased error with its interval, as `estimate` gives it by default."""
    found = vc.estimate(y, p, None if v is p else v, event="positive", classes=[0, 1])
    return {"error": found.debiased, "low": found.low, "high": found.high}


def fifteen_bins(y: np.ndarray, p: np.ndarray, v: np.ndarray) -> dict[str, float]:
    """Return the plug-in error over 15 bins of equal width."""
    bins = np.minimum((15 * v).astype(int), 14)
    return {"error": float(np.abs(np.bincount(bins, p - y)).sum() / len(y))}


def smooth(y: np.ndarray, p: np.ndarray, v: np.ndarray) -> dict[str, float]:
    """Return relplot's smooth calibration error, which has another target."""
    from relplot import smECE

    return {"error": float(smECE(p, y))}


def variational(calibrator: str) -> Estimator:
    """Return the estimator of the paper: what a recalibration gains, five folds."""

    def estimator(y: np.ndarray, p: np.ndarray, v: np.ndarray) -> dict[str, float]:
        import multiprocessing
        from multiprocessing.pool import ThreadPool

        import torch
        from probmetrics.calibrators import get_calibrator
        from probmetrics.classifiers import WS_CatboostClassifier
        from probmetrics.metrics import MetricsWithCalibration, ProperLpLoss
        from probmetrics.splitters import CVSplitter

        # Processes that it forks can wait for each other for ever, beside the threads of torch.
        multiprocessing.Pool = ThreadPool
        model = WS_CatboostClassifier() if calibrator == "catboost" else get_calibrator(calibrator)
        metric = MetricsWithCalibration(ProperLpLoss(1), model, CVSplitter(5), random_state=0)
        both = torch.tensor(np.column_stack([1 - p, p]))
        with contextlib.chdir(tempfile.gettempdir()):  # CatBoost writes a folder
            found = metric.compute_all_from_labels_probs(torch.tensor(y), both)
        return {"error": float(next(x for name, x in found.items() if "calib-err" in name))}

    return estimator


#: Name → estimator, whether it also works along a variable, whether it is slow.
ESTIMATORS: dict[str, tuple[Estimator, bool, bool]] = {
    "varcal": (ours, True, False),
    "15 bins": (fifteen_bins, True, False),
}
if find_spec("relplot"):
    ESTIMATORS["smECE (relplot)"] = (smooth, False, False)
if find_spec("probmetrics"):
    ESTIMATORS["isotonic (probmetrics)"] = (variational("isotonic"), False, False)
    ESTIMATORS["temperature (probmetrics)"] = (variational("temp-scaling"), False, False)
    ESTIMATORS["quadratic (probmetrics)"] = (variational("logistic"), False, False)
    if find_spec("catboost"):
        ESTIMATORS["CatBoost (probmetrics)"] = (variational("catboost"), False, True)


def jobs(draws: int, slow_draws: int) -> Iterator[tuple[str, str, int, int, str]]:
    """Yield axis, world, rows, seed and estimator, a draw of everything before the next draw."""
    for seed in range(draws):
        for axis in ("by score", "along"):
            for world in SHAPES:
                for n in SIZES:
                    for name, (_, works_along, slow) in ESTIMATORS.items():
                        if (axis == "along" and not works_along) or (slow and seed >= slow_draws):
                            continue
                        yield axis, world, int(n), seed, name


KEYS = ("axis", "world", "n", "seed", "estimator")


def run(given: argparse.Namespace) -> None:
    """Draw what the file does not hold yet, until the time is over."""
    done = set()
    if given.out.exists():
        lines = given.out.read_text(encoding="utf-8").splitlines()
        done = {tuple(json.loads(line)[key] for key in KEYS) for line in lines}
    end = time.monotonic() + 60 * given.minutes
    with given.out.open("a", encoding="utf-8") as file:
        for job in jobs(given.draws, given.slow_draws):
            if job in done:
                continue
            if time.monotonic() > end:
                print("The time is over; run again to continue.")
                return
            axis, world, n, seed, name = job
            y, p, v = draw(world, n, seed, axis == "along")
            found = ESTIMATORS[name][0](y, p, v)
            file.write(json.dumps(dict(zip(KEYS, job, strict=True)) | found) + "\n")
            file.flush()


def table(given: argparse.Namespace) -> None:
    """Print mean absolute errors, biases and the coverage of intervals, in points."""
    drawn = pd.read_json(given.table, lines=True)
    drawn["truth"] = drawn["world"].map({name: true_error(h) for name, h in SHAPES.items()})
    drawn["off"] = 100 * (drawn["error"] - drawn["truth"])
    drawn["absolute"] = drawn["off"].abs()
    if given.published:
        published = pd.read_csv(given.published).rename(columns={"h_func": "world"})
        published = published[published["world"].isin(SHAPES)].drop(columns="n_samples")
        print((100 * published.groupby("world").mean()).round(2).T.to_markdown(), "\n")
    cells = drawn.groupby(["axis", "estimator", "world"])
    for figure in ("absolute", "off"):
        mean = cells[figure].mean().unstack()
        mean["all worlds"] = mean.mean(axis=1)
        spread = cells[figure].std() / np.sqrt(cells[figure].count())
        mean["±"] = np.sqrt((spread**2).unstack().sum(axis=1)) / len(SHAPES)
        print(f"{figure}, points\n\n{mean.round(2).to_markdown()}\n")
    held = drawn[drawn["estimator"] == "varcal"]
    held = held.assign(held=(held["low"] <= held["truth"]) & (held["truth"] <= held["high"]))
    part = pd.cut(held["n"], [0, 500, 2_000, 10_000], labels=["to 500", "to 2,000", "to 10,000"])
    covered = 100 * held.groupby(["axis", "world", part], observed=True)["held"].mean().unstack()
    print(f"coverage of 95 % intervals, %\n\n{covered.round(1).to_markdown()}\n")
    print("draws of a cell:", cells.size().unstack().min(axis=1).to_dict())


def main() -> None:
    """Draw, or print the tables of a file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--published", type=Path)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--slow-draws", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=60)
    given = parser.parse_args()
    warnings.filterwarnings("ignore")
    if given.out:
        run(given)
    if given.table:
        table(given)


if __name__ == "__main__":
    main()
