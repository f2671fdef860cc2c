"""An audit of many variables compared with `np.argsort` of every column.

    python benchmarks/bench_audit.py [variables] [rows]

Prints a Markdown table: wall and CPU times of the audit and of one `np.argsort` per variable,
their ratio, and the memory beyond the input (growth of the peak resident size); then the time of
one estimate at n = 1,000. A wide table: ``python benchmarks/bench_audit.py 2000 1000``.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable

import numpy as np

import varcal as vc


def timed(call: Callable[[], object]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - wall, time.process_time() - cpu


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("variables", nargs="?", type=int, default=50)
    parser.add_argument("rows", nargs="?", type=int, default=1_000_000)
    options = parser.parse_args()
    n_variables, n = options.variables, options.rows
    rng = np.random.default_rng(0)
    p = rng.beta(2, 3, n)
    y = (rng.random(n) < p).astype(np.int64)
    columns = {f"v{k}": rng.normal(size=n) for k in range(n_variables)}
    vc.audit(y[:2000], p[:2000], {"v": columns["v0"][:2000]})  # load all modules first
    before = peak_mb()
    audit = timed(lambda: vc.audit(y, p, columns))
    memory = peak_mb() - before
    sorts = timed(lambda: [np.argsort(column) for column in columns.values()])
    print(f"Audit of {n_variables:,} variables × {n:,} rows\n")
    print("| | wall s | CPU s | CPU ratio | MB beyond input |\n|---|---|---|---|---|")
    print(f"| np.argsort of every column | {sorts[0]:.2f} | {sorts[1]:.2f} | 1 | |")
    print(
        f"| varcal.audit | {audit[0]:.2f} | {audit[1]:.2f} | {audit[1] / sorts[1]:.2f} "
        f"| {memory:.0f} |"
    )
    print(f"\nper variable: {1e3 * audit[1] / n_variables:.1f} ms of CPU")
    few = slice(0, 1000)
    times = [timed(lambda: vc.estimate(y[few], p[few], columns["v0"][few]))[1] for _ in range(20)]
    print(f"estimate at n = 1,000: {1e3 * np.median(times):.1f} ms")


if __name__ == "__main__":
    main()
