"""An audit of many variables on a million rows, curves included, compared with `np.argsort`.

    python benchmarks/bench_audit.py [variables] [rows]

Prints a Markdown table: the CPU times of the audit and of one `np.argsort` per variable, and their
ratio; then the time of one estimate at n = 1,000.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import varcal as vc


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
    start = time.process_time()
    vc.audit(y, p, columns)
    audit = time.process_time() - start
    start = time.process_time()
    for column in columns.values():
        np.argsort(column)
    sorts = time.process_time() - start
    print(f"Audit of {n_variables} variables × {n:,} rows, both events and all curves included\n")
    print("| | CPU s | ratio |\n|---|---|---|")
    print(f"| np.argsort of every column | {sorts:.2f} | 1 |")
    print(f"| varcal.audit | {audit:.2f} | {audit / sorts:.2f} |")
    times = []
    for _ in range(20):
        start = time.process_time()
        vc.estimate(y[:1000], p[:1000], columns["v0"][:1000])
        times.append(time.process_time() - start)
    print(f"\nestimate at n = 1,000: {1e3 * np.median(times):.1f} ms")


if __name__ == "__main__":
    main()
