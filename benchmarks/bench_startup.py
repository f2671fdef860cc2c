"""CPU time of the command line on a small file, relative to that of loading its libraries.

    python benchmarks/bench_startup.py [--repeats 7]

Every run is a process of its own, with compiled modules in a cache, as installed.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import varcal as vc

ROWS = 1_592


def write_inputs(folder: Path) -> None:
    """Write a small file and two calibrators, fitted on other rows."""
    rng = np.random.default_rng(0)
    v = {"age": rng.normal(50, 15, ROWS), "income": rng.lognormal(10, 1, ROWS)}
    v["city"] = rng.choice(["Bath", "Cork", "Jena"], ROWS)
    p = rng.uniform(0.02, 0.98, ROWS)
    y = (rng.random(ROWS) < p ** (v["age"] / 50).clip(0.3, 3)).astype(int)
    lines = ["y,p,age,income,city"]
    lines += [
        f"{row[0]},{row[1]!r},{row[2]!r},{row[3]!r},{row[4]}"
        for row in zip(*(column.tolist() for column in (y, p, *v.values())), strict=True)
    ]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    half = ROWS // 2
    part = {name: values[:half] for name, values in v.items()}
    vc.VariableCalibrator().fit(p[:half], y[:half], part).save(folder / "variables.json")
    vc.calibrators.BetaCalibrator().fit(p[:half], y[:half]).save(folder / "beta.json")


def cpu_ms(arguments: list[str], folder: Path) -> float:
    """Return the CPU time of a process in milliseconds."""
    env = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(folder / "compiled")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=env, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3


def main(repeats: int) -> None:
    audit = ["-m", "varcal", "audit", "rows.csv", "--label", "y", "--prob", "p"]
    apply = ["rows.csv", "--prob", "p", "-o", "out.csv"]
    runs = {
        "`import click`": ["-c", "import click"],
        "`import numpy, pyarrow`": ["-c", "import numpy, pyarrow"],
        "`import sklearn.base`": ["-c", "import sklearn.base"],
        "`varcal --help`": ["-m", "varcal", "--help"],
        "`varcal audit --help`": ["-m", "varcal", "audit", "--help"],
        "`varcal audit`": audit,
        "`varcal audit -o report.html`": [*audit, "-o", "report.html"],
        "`varcal apply`, BetaCalibrator": ["-m", "varcal", "apply", "beta.json", *apply],
        "`varcal apply`, VariableCalibrator": ["-m", "varcal", "apply", "variables.json", *apply],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        # In turn, so that other work on the machine slows all of them; the first round compiles.
        rounds = [
            [cpu_ms(arguments, folder) for arguments in runs.values()] for _ in range(repeats + 1)
        ]
    best = dict(zip(runs, np.min(rounds[1:], axis=0), strict=True))
    click, arrow = best["`import click`"], best["`import numpy, pyarrow`"]
    print(f"| {ROWS:,} rows | CPU ms | × click | × numpy and pyarrow |")
    print("|---|---|---|---|")
    for what, spent in best.items():
        print(f"| {what} | {spent:.0f} | {spent / click:.1f} | {spent / arrow:.1f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    main(parser.parse_args().repeats)
