"""Time to write a report compared with that of its audit, and the size of the file.

python benchmarks/bench_report.py [--quick]
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import varcal as vc


def columns(n: int, n_variables: int) -> dict[str, np.ndarray]:
    """Make columns that are, in turn, numeric, integer, tied, categorical and dates."""
    rng = np.random.default_rng(1)
    kinds: list[Callable[[], np.ndarray]] = [
        lambda: rng.gamma(2, size=n),
        lambda: rng.integers(18, 90, n),
        lambda: np.where(rng.random(n) < 0.4, 0.0, rng.normal(size=n)),
        lambda: rng.choice([f"level {k}" for k in range(12)], n),
        lambda: np.datetime64("2020-01-01") + rng.integers(0, 1500, n).astype("m8[D]"),
    ]
    return {f"variable {k}": kinds[k % len(kinds)]() for k in range(n_variables)}


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    """Return the minimum CPU time of a few runs, on which other work has little effect."""
    best = np.inf
    for _ in range(repeats):
        started = time.process_time()
        call()
        best = min(best, time.process_time() - started)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    n, n_variables = (5000, 5) if quick else (100_000, 30)
    X = columns(n, n_variables)
    rng = np.random.default_rng(2)
    p = rng.uniform(0.05, 0.95, n)
    y = (rng.random(n) < p - 0.1 * (X["variable 1"] > 60)).astype(int)
    audit = vc.audit(y, p, X)
    took = seconds(lambda: vc.audit(y, p, X), 1 if quick else 3)
    print(f"audit of {n_variables} variables × {n:,} rows: {took:.2f} s\n")
    print("| format | time | / time of the audit | size | gzipped |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("html", "md", "json"):
            path = Path(folder) / f"report.{suffix}"
            spent = seconds(lambda path=path: audit.report(path))
            content = path.read_bytes()
            print(
                f"| {suffix} | {spent:.2f} s | {spent / took:.2f} | {len(content) / 1e6:.2f} MB "
                f"| {len(gzip.compress(content)) / 1e3:.0f} kB |"
            )


if __name__ == "__main__":
    main()
