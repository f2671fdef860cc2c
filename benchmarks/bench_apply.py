"""Time and peak memory of `varcal apply` on large files, each run in its own process.

    python benchmarks/bench_apply.py [rows]

Five million rows by default. The target is a peak below 500 MB for Parquet.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import varcal as vc

TARGET_MB = 500


def write_rows(path: Path, n_rows: int) -> None:
    """Write rows with a score, two variables, a text and an id, in parts."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    cities = np.array(["Bath", "Cork", "Jena", "Lund"])
    writer = None
    for start in range(0, n_rows, 500_000):
        n = min(500_000, n_rows - start)
        part = pa.table(
            {
                "id": np.arange(start, start + n),
                "p": rng.random(n),
                "age": rng.integers(18, 90, n),
                "income": rng.lognormal(10, 1, n),
                "city": cities[rng.integers(0, 4, n)],
            }
        )
        writer = writer or parquet.ParquetWriter(path, part.schema)
        writer.write_table(part)
    writer.close()


def save_calibrator(path: Path) -> None:
    rng = np.random.default_rng(1)
    p, age = rng.random(20_000), rng.integers(18, 90, 20_000)
    y = (rng.random(20_000) < np.clip(p + (age - 54) / 300, 0, 1)).astype(int)
    city = np.array(["Bath", "Cork", "Jena", "Lund"])[rng.integers(0, 4, 20_000)]
    vc.calibrators.TreeCalibrator().fit(p, y, {"age": age, "city": city}).save(path)


def measure(calibrator: Path, source: Path, out: Path) -> tuple[float, float]:
    """Return the time in seconds and the peak of resident memory in MB."""
    code = (
        "import resource, sys, varcal as vc;"
        "vc.apply(*sys.argv[1:4], p='p', column=sys.argv[4]);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            str(calibrator),
            str(source),
            str(out),
            f"from_{source.suffix[1:]}",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return time.perf_counter() - start, int(done.stdout) / 1024


def main(n_rows: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_calibrator(folder / "cal.json")
        write_rows(folder / "rows.parquet", n_rows)
        print(f"{n_rows:,} rows, five columns, a tree on age and city")
        pairs = [("rows.parquet", "out.parquet"), ("rows.parquet", "rows.csv")]
        for source, out in [*pairs, ("rows.csv", "out.csv"), ("rows.csv", "out.arrow")]:
            report(folder, source, out)


def report(folder: Path, source: str, out: str) -> None:
    seconds, peak = measure(folder / "cal.json", folder / source, folder / out)
    verdict = "ok" if peak < TARGET_MB else f"over {TARGET_MB} MB"
    print(f"{source:>13} → {out:<12} {seconds:6.1f} s  peak {peak:5.0f} MB  {verdict}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", nargs="?", type=int, default=5_000_000)
    main(parser.parse_args().rows)
