"""An audit of many variables on a million rows, curves included, against `np.argsort` alone.

    python benchmarks/bench_audit.py [variables] [rows]

Prints a Markdown table: CPU time of the audit, of one `np.argsort` a variable, and their ratio;
then one estimate at n = 1,000.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import varcal as vc


def main() -> None:
    many = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    n = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    rng = np.random.default_rng(0)
    p = rng.beta(2, 3, n)
    y = (rng.random(n) < p).astype(np.int64)
    columns = {f"v{k}": rng.normal(size=n) for k in range(many)}
    vc.audit(y[:2000], p[:2000], {"v": columns["v0"][:2000]})  # load everything once
    start = time.process_time()
    vc.audit(y, p, columns)
    audit = time.process_time() - start
    start = time.process_time()
    for column in columns.values():
        np.argsort(column)
    sorts = time.process_time() - start
    print(f"Audit of {many} variables × {n:,} rows, both events and all curves included\n")
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
