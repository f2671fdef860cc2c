"""`python -m torture`: all parts, or those that are named, with counts.

python -m torture                      everything, under 20 minutes on two cores
python -m torture fuzz --cases 10000   one part
python -m torture --record runs.json   goes on where the run in this file stopped
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

from torture import disks, fuzz, interrupts, kills, load
from torture.outcome import Outcome, Record
from varcal.exceptions import VarcalWarning

PARTS = ("kills", "disks", "interrupts", "load", "fuzz")
#: Cases of fuzzing between two notes in the record.
STEP = 100_000


def main() -> int:
    """Run the parts that are asked for; the exit code is 1 if anything failed."""
    parser = argparse.ArgumentParser(description="Try to break varcal.")
    parser.add_argument("parts", nargs="*", default=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--cases", type=int, default=1_000_000, help="cases of fuzzing in all")
    parser.add_argument("--kills", type=int, default=500, help="processes that are killed")
    parser.add_argument("--interrupts", type=int, default=200, help="times Ctrl-C is pressed")
    parser.add_argument("--small", action="store_true", help="a thousandth of the load")
    parser.add_argument("--record", type=Path, help="a file to go on from, and to keep counts in")
    given = parser.parse_args()
    warnings.simplefilter("ignore", VarcalWarning)
    record = Record(given.record)
    if "kills" in given.parts:
        with record.part("kills") as outcome:
            kills.run(outcome.tried, max(0, given.kills - outcome.tried), outcome)
    if "disks" in given.parts:
        with record.part("disks") as outcome:
            disks.run(outcome)
    if "interrupts" in given.parts:
        for name, run, share in (
            ("interrupts of imports", interrupts.run_imports, 5),
            ("interrupts of work", interrupts.run_work, 1),
        ):
            with record.part(name) as outcome:
                n = given.interrupts // share
                run(outcome.tried, max(0, n - outcome.tried), outcome)
    if "load" in given.parts:
        run_load(record, small=given.small)
    if "fuzz" in given.parts:
        run_fuzz(record, given.cases)
    for failure in record.failures:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if record.failures else 0


def run_load(record: Record, *, small: bool) -> None:
    """Run the sizes beyond the usual, or a thousandth of them."""
    k = 1000 if small else 1
    with record.part("load") as outcome:
        load.many_variables(outcome, 5_000 // k)
        load.many_categories(outcome, 1_000_000 // k)
        load.many_loads(outcome, 10_000 // k)
        load.many_batches(outcome, 10_000 // k)
        load.many_rows(outcome, *((2, 5) if small else (20, 50)))


def run_fuzz(record: Record, cases: int) -> None:
    """Run the cases of every target that are still to do, by their shares."""
    targets = fuzz.targets()
    every = sum(share for _, share in targets.values())
    for name, (_, share) in targets.items():
        todo = cases * share // every
        while (done := record.parts.get(name, Outcome()).tried) < todo:
            with record.part(name) as outcome:
                fuzz.run(name, done, min(STEP, todo - done), outcome)
    tried = sum(record.parts[name].tried for name in targets if name in record.parts)
    print(f"{'fuzzing in all':24} {tried:>9,} cases")


if __name__ == "__main__":
    sys.exit(main())
