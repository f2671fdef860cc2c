"""Run the paper's experiments and write their tables and pictures: ``python -m reproduction``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from reproduction.experiments import EXPERIMENTS, run
from reproduction.results import verdict, write_index


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the named experiments; return 1 if something should agree with the paper and does not."""
    parser = argparse.ArgumentParser(prog="python -m reproduction", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME",
        help=f"what to run, by default everything: {', '.join(EXPERIMENTS)}",
    )  # fmt: skip
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("VARCAL_PAPER_DATA"), metavar="FOLDER",
        help="the authors' output files; by default VARCAL_PAPER_DATA, or else a download",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("build/reproduction"), metavar="FOLDER")
    parser.add_argument("--splits", type=int, default=50, help="splits of the corrected protocol")
    given = parser.parse_args(arguments)
    if unknown := set(given.names) - set(EXPERIMENTS):
        parser.error(f"no such experiment: {', '.join(sorted(unknown))}")
    started = time.monotonic()
    found = []
    for name in given.names or EXPERIMENTS:
        results = run(name, given.data, n_splits=given.splits)
        results.write(given.out / name)
        print(results.text() + "\n", flush=True)
        found.append(results)
    write_index(found, given.out)
    for results in found:
        print(results.summary)
        for failure in results.failures:
            print(f"differs from the paper: {results.title}: {failure}", file=sys.stderr)
    print(f"{verdict(found)} ({time.monotonic() - started:.0f} s) → {given.out}")
    return int(any(results.failures for results in found))


if __name__ == "__main__":
    raise SystemExit(main())
