"""Calibrators compared with other packages and with the arithmetic that they need at least.

    python benchmarks/bench_calibrators.py [rows]

Prints a Markdown table of minimum CPU times and ratios, all from one run:

- beta calibration compared with betacal, both as it is (it stops at scikit-learn's default
  tolerance) and with a tolerance that reaches the size of our gradient;
- Dirichlet calibration on 2,000 × 10 compared with the 4.8 s of CPU time reported for dirichletcal
  at the same optimum;
- a beta fit on `rows` rows (1 M by default) compared with one gradient of the logistic loss on the
  same features;
- predictions compared with one vectorized `np.exp` of as many numbers.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from betacal import BetaCalibration
from scipy.special import expit, log_softmax
from sklearn.linear_model import LogisticRegression

from varcal.calibrators import (
    BetaCalibrator,
    DirichletCalibrator,
    PlattCalibrator,
    TreeCalibrator,
)
from varcal.datasets import load_adult

#: CPU seconds reported for dirichletcal on 2,000 × 10 at the same optimum.
DIRICHLETCAL_SECONDS = 4.8


def best(call: Callable[[], object], repeats: int = 7) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def two_classes(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 0.9, n)
    y = rng.random(n) < expit(0.6 * np.log(p) - 0.9 * np.log1p(-p) + 0.3)
    return p, y.astype(np.int64)


def many_classes(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(n, k)) * 2
    shifted = logits * 0.6 + rng.normal(size=k) * 0.3
    y = (shifted + rng.gumbel(size=(n, k))).argmax(axis=1)
    return np.exp(log_softmax(logits, axis=1)), y


def tight_beta(p: np.ndarray, y: np.ndarray) -> LogisticRegression:
    inside = np.clip(p, 2.3e-16, 1 - 2.3e-16)
    features = np.column_stack([np.log(inside), -np.log(1 - inside)])
    return LogisticRegression(C=99999999999, tol=1e-10, max_iter=10_000).fit(features, y)


def row(task: str, seconds: float, baseline: str, theirs: float, target: str) -> None:
    ratio = theirs / seconds if "faster" in target else seconds / theirs
    print(
        f"| {task} | {seconds * 1e3:.2f} | {baseline} | {theirs * 1e3:.2f} "
        f"| {ratio:.1f} | {target} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", nargs="?", type=int, default=1_000_000)
    n = parser.parse_args().rows
    warnings.simplefilter("ignore")
    print("| task | CPU ms | compared with | CPU ms | ratio | target |\n|---|---|---|---|---|---|")

    adult = load_adult()
    simulated = two_classes(100_000)
    for name, (p, y) in {
        "Adult, 2,500 rows": (adult.p[:2500], adult.y[:2500]),
        "Adult, 16,281 rows": (adult.p, adult.y),
        "simulated, 100,000 rows": simulated,
    }.items():
        ours = best(lambda p=p, y=y: BetaCalibrator().fit(p, y), 40)
        peer = best(lambda p=p, y=y: BetaCalibration().fit(p, y), 40)
        row(f"BetaCalibrator.fit, {name}", ours, "betacal", peer, "≥ 5 times faster")
        peer = best(lambda p=p, y=y: tight_beta(p, y), 10)
        row(f"BetaCalibrator.fit, {name}", ours, "betacal's fit, tol=1e-10", peer, "– faster")

    p, y = many_classes(2_000, 10)
    row(
        "DirichletCalibrator.fit, 2,000 × 10",
        best(lambda: DirichletCalibrator.paper().fit(p, y)),
        "dirichletcal, as reported",
        DIRICHLETCAL_SECONDS,
        "≥ 10 times faster",
    )

    p, y = two_classes(n)
    design = np.column_stack([np.log(p), -np.log1p(-p), np.ones(n)])
    theta, target = np.array([0.6, 0.9, 0.3]), y.astype(np.float64)

    def gradient() -> np.ndarray:
        return design.T @ (expit(design @ theta) - target)

    one_gradient = best(gradient)
    beta_seconds = best(lambda: BetaCalibrator().fit(p, y), 5)
    row(f"BetaCalibrator.fit, {n:,} rows", beta_seconds, "one gradient", one_gradient, "≤ 40")

    one_exp = best(lambda: np.exp(p), 15)
    for calibrator in (PlattCalibrator(), PlattCalibrator(on="probability"), BetaCalibrator()):
        fit = calibrator.fit(p, y)
        seconds = best(lambda fit=fit: fit.predict_proba(p[:-1]), 15)
        row(f"{calibrator!r}.predict_proba, {n:,} rows", seconds, "one exp", one_exp, "≤ 10")

    v = np.random.default_rng(1).normal(size=n)
    seconds = best(lambda: TreeCalibrator().fit(p, y, v), 2)
    row(f"TreeCalibrator.fit, {n:,} rows, one variable", seconds, "beta fit", beta_seconds, "–")


if __name__ == "__main__":
    main()
