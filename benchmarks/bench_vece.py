"""VECE of one variable on 1 M rows, compared with pandas `qcut` + `groupby` in one run.

    python benchmarks/bench_vece.py [rows]

Prints a Markdown table: the minimum CPU time of several runs, its ratio to that of pandas, and the
memory in addition to the input (peak of traced allocations).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pandas as pd

import varcal as vc


def best(call: Callable[[], object], repeats: int = 9) -> float:
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def peak(call: Callable[[], object]) -> float:
    tracemalloc.start()
    call()
    _, largest = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return largest / 1e6


def import_time(modules: str) -> float:
    code = f"import time; t = time.process_time(); import {modules}; print(time.process_time() - t)"
    runs = [subprocess.check_output([sys.executable, "-c", code]) for _ in range(7)]
    return min(map(float, runs))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", nargs="?", type=int, default=1_000_000)
    n = parser.parse_args().rows
    rng = np.random.default_rng(0)
    p = rng.beta(2, 3, n)
    y = (rng.random(n) < p).astype(np.int64)
    v = rng.normal(50, 15, n)

    def by_pandas() -> float:
        score = np.maximum(p, 1 - p)
        hit = (p > 0.5) == y
        codes = pd.qcut(v, 10, labels=False, duplicates="drop")
        frame = pd.DataFrame({"score": score, "hit": hit}, copy=False)
        means = frame.groupby(codes).mean()
        share = np.bincount(codes) / n
        return float((share * (means["score"] - means["hit"]).abs()).sum())

    def ours() -> float:
        return vc.vece(y, p, v)

    assert abs(by_pandas() - ours()) < 1e-12
    theirs, own = best(by_pandas), best(ours)
    print(f"VECE, {n:,} rows, 10 bins, exact edges\n")
    print("| | CPU ms | ratio | MB beyond input |\n|---|---|---|---|")
    print(f"| pandas qcut + groupby | {theirs * 1e3:.1f} | 1 | {peak(by_pandas):.1f} |")
    print(f"| varcal.vece | {own * 1e3:.1f} | {theirs / own:.2f} | {peak(ours):.1f} |")
    base, with_varcal = import_time("numpy, narwhals"), import_time("varcal; varcal.vece")
    print(f"\nimport of numpy and narwhals {base * 1e3:.0f} ms")
    print(
        f"import of varcal with its metrics {with_varcal * 1e3:.0f} ms "
        f"(ratio {with_varcal / base:.2f})"
    )


if __name__ == "__main__":
    main()
