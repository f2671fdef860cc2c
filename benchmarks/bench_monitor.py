"""Costs of a monitor: an update beside `collect`, and what grows with the number of batches.

    python benchmarks/bench_monitor.py [--variables 50] [--rows 1000] [--batches 10000]

Times are the smallest of many repetitions. `update(frame)` sums rows into the bins of the monitor
only, without the fine cells of an audit, so that it takes less than `collect`.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import varcal as vc


def make_rows(n: int, variables: int, seed: int) -> dict[str, np.ndarray]:
    """Return calibrated predictions of random variables."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 2, n)
    rows = {f"x{k}": rng.normal(size=n) for k in range(variables)}
    return rows | {"p": p, "y": (rng.random(n) < p).astype(int)}


def best(work: Callable[[], Any], repeats: int) -> float:
    """Return the smallest time of some runs in milliseconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--variables", type=int, default=50)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--batches", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=30)
    given = parser.parse_args(arguments)
    rows = make_rows(given.rows, given.variables, 0)
    plain = vc.make_bins("y", "p", data=rows)
    bins = vc.make_bins("y", "p", data=rows, monitor=0.02)
    monitor = vc.Monitor(bins)
    several = [make_rows(given.rows, given.variables, k) for k in range(given.repeats)]
    full = [vc.collect(one, bins) for one in several]
    number = iter(range(10**9))

    def update(batches: list[Any]) -> Callable[[], Any]:
        monitor.reset()
        left = iter(batches)
        return lambda: monitor.update(next(left), id=next(number))

    costs = {
        "collect, bins without monitor": best(lambda: vc.collect(rows, plain), given.repeats),
        "collect, bins with monitor": best(lambda: vc.collect(rows, bins), given.repeats),
        "update with a frame": best(update(several), given.repeats),
        "update with collected sums": best(update(full), given.repeats),
    }
    print(f"{given.rows:,} rows, {given.variables} variables\n")
    print("| task | milliseconds |\n|---|---|")
    for name, cost in costs.items():
        print(f"| {name} | {cost:.2f} |")
    small = make_rows(200, 5, 1)
    few = vc.Monitor(vc.make_bins("y", "p", data=small, monitor=0.02))
    batches = [make_rows(200, 5, k) for k in range(50)]
    print("\n| batches | size of the state, kB | peak memory, MB |\n|---|---|---|")
    for t in range(1, given.batches + 1):
        few.update(batches[t % 50], id=t)
        if t in (given.batches // 10, given.batches // 2, given.batches):
            with tempfile.TemporaryDirectory() as folder:
                few.save(Path(folder) / "monitor.json")
                size = (Path(folder) / "monitor.json").stat().st_size / 1000
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
            print(f"| {t:,} | {size:.0f} | {peak:.0f} |")


if __name__ == "__main__":
    main()
