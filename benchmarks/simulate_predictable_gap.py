"""Type-I error, power and lower limits of the predictable gap, where the true gap is known.

python benchmarks/simulate_predictable_gap.py [--rows 5000] [--samples N] [--world NAME ...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

import varcal as vc

Floats = NDArray[np.float64]

#: Gaps by the ranks of twelve variables.
GAPS: dict[str, Callable[[Floats], Floats]] = {
    "calibrated": lambda u: 0 * u[0],
    "slice of two, 20 % × 10 points": lambda u: 0.1 * ((u[0] > 0.55) & (u[1] < 0.45)),
    "slice of two, 5 % × 20 points": lambda u: 0.2 * ((u[0] > 0.78) & (u[1] < 0.22)),
    "slice of three, 22 % × 15 points": lambda u: (
        0.15 * ((u[0] > 0.4) & (u[1] < 0.6) & (u[2] > 0.4))
    ),
    "additive": lambda u: 0.06 * np.sin(2 * np.pi * u[2]) + 0.04 * (2 * u[5] - 1),
    "saddle": lambda u: 0.4 * (u[3] - 0.5) * (u[4] - 0.5),
    "overall bias": lambda u: 0.03 + 0 * u[0],
}
#: Calibrated worlds that differ in other ways.
NULLS = ("4 % positives", "weights", "groups of 5", "missing values", "3 classes")


def draw(world: str, n: int, seed: int) -> tuple[dict[str, Any], Floats]:
    """Return the arguments of `predictable_gap` and the true gap of each row."""
    rng = np.random.default_rng(seed)
    normal = 0.8 * rng.standard_normal((12, n)) + 0.6 * rng.standard_normal(n)
    u = ndtr(normal)
    X: dict[str, Any] = {f"x{k}": normal[k] for k in range(8)}
    X["count"] = np.floor(np.exp(normal[8]))
    for k, levels in ((9, 2), (10, 4), (11, 8)):
        X[f"kind{levels}"] = np.array([f"level {j}" for j in (levels * u[k]).astype(int)])
    base = 0.02 if world == "4 % positives" else 0.31
    linear = normal[:6].T @ np.array([0.6, -0.5, 0.4, 0.3, -0.3, 0.2])
    p = 1 / (1 + np.exp(-linear - np.log(base / (1 - base))))
    rate = np.clip(p - GAPS.get(world, GAPS["calibrated"])(u), 0.001, 0.999)
    given: dict[str, Any] = {}
    if world == "weights":
        given["sample_weight"] = rng.exponential(size=n)
    if world == "missing values":
        for name in ("x0", "x1", "x2"):
            X[name] = np.where(rng.random(n) < 0.2, np.nan, X[name])
    y: Any = (rng.random(n) < rate).astype(int)
    if world == "groups of 5":
        unit = rng.integers(0, n // 5, n)
        given["groups"] = unit
        # Outcomes of a group hang together: they are made from a common normal.
        latent = np.sqrt(0.3) * rng.standard_normal(n // 5)[unit]
        y = (ndtr(latent + np.sqrt(0.7) * rng.standard_normal(n)) < rate).astype(int)
    if world == "3 classes":
        p = np.column_stack([p * 0.6, p * 0.4, 1 - p])
        y = (rng.random(n)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)
        return {"y": y, "p": p, "X": X}, np.zeros(n)
    return {"y": y, "p": p, "X": X, **given}, p - rate


def main() -> None:
    """Print one line per world."""
    worlds = [*GAPS, *NULLS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--samples", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--world", nargs="*", default=worlds, choices=worlds)
    options = parser.parse_args()
    start = time.process_time()
    print(f"{options.rows:,} rows, {options.samples} samples\n")
    print("| world | true gap | value | lower limit | above the truth | p < 5 % |")
    print("|---|---|---|---|---|---|")
    for world in options.world:
        runs = []
        for k in range(options.samples):
            given, gap = draw(world, options.rows, options.seed + k)
            found = vc.predictable_gap(**given)
            true = float(np.sqrt(np.mean(gap**2)))
            runs.append([true, found.value, found.low, found.low > true, found.p_value < 0.05])
        true, value, low, above, rejected = np.array(runs, dtype=float).mean(axis=0)
        print(
            f"| {world} | {100 * true:.1f} | {100 * value:.1f} | {100 * low:.1f} | "
            f"{100 * above:.1f} % | {100 * rejected:.1f} % |",
            flush=True,
        )
    print(f"\n{time.process_time() - start:.0f} s of processor time")


if __name__ == "__main__":
    main()
