"""Out-of-core audits of a Parquet file, compared with plain GROUP BY queries in DuckDB.

    python benchmarks/bench_duckdb.py [rows] [--file FILE] [--rounds N]

Ten million rows with five variables by default. Each run has its own process, so that its peak
memory can be measured; the table shows the minimum time and the highest peak of all rounds. The
targets, for 20 and for 100 million rows on two cores, are at most 2.5 times the time of five plain
GROUP BY queries (one per variable, over bins of equal width, with a count and the means of score
and outcome), and less than 500 MB of memory.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

TARGET_RATIO = 2.5
TARGET_MB = 500
VARIABLES = ("v0", "v1", "v2", "v3", "age")

_TIMED = """
import json, resource, sys, time
path = sys.argv[1]
start, cpu = time.perf_counter(), time.process_time()
{task}
print(json.dumps([time.perf_counter() - start, time.process_time() - cpu,
                  resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""
#: The code of each task, which is run in its own process.
TASKS = {
    "five plain GROUP BY queries in DuckDB": f"""
import duckdb
for v in {VARIABLES}:
    bins = f"SELECT floor(4 * {{v}}) AS bin, count(*), avg(p), avg(y) FROM '{{path}}' GROUP BY bin"
    duckdb.sql(bins).fetchall()
""",
    "vc.audit, DuckDB": """
import varcal as vc
assert vc.audit("y", "p", data=path).engine == "duckdb"
""",
    "vc.audit, polars": """
import polars as pl, varcal as vc
assert vc.audit("y", "p", data=pl.scan_parquet(path)).engine == "polars"
""",
    "vc.audit, PyArrow": """
import pyarrow.dataset as ds, varcal as vc
assert vc.audit("y", "p", data=ds.dataset(path)).engine == "pyarrow"
""",
    "vc.vece of one variable, DuckDB": """
import varcal as vc
vc.vece("y", "p", "v0", data=path)
""",
}


def write_rows(path: Path, n_rows: int) -> None:
    """Write rows with an outcome, a score and five variables, in parts."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, n_rows, 1_000_000):
        n = min(1_000_000, n_rows - start)
        v = rng.normal(size=(4, n))
        p = 1 / (1 + np.exp(-1.2 * v[0] - 0.5 * v[1]))
        y = rng.random(n) < np.clip(p + 0.05 * np.sin(v[2]), 0, 1)
        columns = {"y": y.astype(np.int8), "p": p}
        columns |= {f"v{k}": v[k] for k in range(4)} | {"age": rng.integers(18, 90, n)}
        part = pa.table(columns)
        writer = writer or parquet.ParquetWriter(path, part.schema)
        writer.write_table(part)
    writer.close()


def measure(task: str, path: Path) -> tuple[float, float, float]:
    """Return the time and the CPU time in seconds, and the peak of resident memory in MB."""
    code = _TIMED.format(task=TASKS[task])
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    seconds, cpu, peak = json.loads(done.stdout.splitlines()[-1])
    return seconds, cpu, peak


def best_of(
    now: tuple[float, float, float], before: tuple[float, float, float]
) -> tuple[float, float, float]:
    """Return the shorter times and the higher peak: memory must suffice in every round."""
    return min(now[0], before[0]), min(now[1], before[1]), max(now[2], before[2])


def main(n_rows: int, file: Path | None, rounds: int) -> None:
    from pyarrow import parquet

    with tempfile.TemporaryDirectory() as name:
        path = file or Path(name, "rows.parquet")
        if not path.exists():
            write_rows(path, n_rows)
        n_rows = parquet.read_metadata(path).num_rows
        best: dict[str, tuple[float, float, float]] = {}
        for _ in range(rounds):
            for task in TASKS:
                now = measure(task, path)
                best[task] = best_of(now, best.get(task, now))
    floor = best["five plain GROUP BY queries in DuckDB"]
    print(f"{n_rows:,} rows, {len(VARIABLES)} variables\n")
    print("| task | seconds | ratio | CPU seconds | ratio | peak MB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for task, (seconds, cpu, peak) in best.items():
        print(
            f"| {task} | {seconds:.1f} | {seconds / floor[0]:.2f} | {cpu:.1f} | "
            f"{cpu / floor[1]:.2f} | {peak:,.0f} |"
        )
    ratio, peak = best["vc.audit, DuckDB"][0] / floor[0], best["vc.audit, DuckDB"][2]
    print(f"\naudit: {ratio:.2f} times (target {TARGET_RATIO:g}), {peak:,.0f} MB ({TARGET_MB:,})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="?", type=int, default=10_000_000)
    parser.add_argument(
        "--file", type=Path, help="file of rows to use; it is written if it does not exist"
    )
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    main(given.rows, given.file, given.rounds)
