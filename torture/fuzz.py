"""Runs the targets of `parsers` and `functions` in a process of their own, case by case.

A case is made from the name of its target and its number, so that a number repeats it:

    python -m torture.fuzz "saved files" 1234

A process that is killed by a case is noticed: it says in a file which case it works on.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from torture.outcome import Outcome

#: Address space of a process that runs cases. A case that needs more has no bound on its sizes.
MEMORY = 8 << 30
#: Cases per process.
BATCH = 20_000
#: Seconds of computing that one case may take.
CPU_SECONDS = 60


def targets() -> dict[str, tuple[Callable[[Random], None], int]]:
    """Return all targets with their shares; loading them takes a second."""
    from torture import functions, parsers  # noqa: PLC0415

    return {**parsers.TARGETS, **functions.TARGETS}


def one_case(target: Callable[[Random], None], name: str, number: int) -> str:
    """Run one case; return how it ended: with an answer, an error of varcal, or a failure."""
    from varcal.exceptions import VarcalError  # noqa: PLC0415

    try:
        target(Random(f"{name} {number}"))
    except VarcalError as error:
        return "" if error.message else "FAILED: an error without a message"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)
        own = [one for one in place if f"{os.sep}varcal{os.sep}" in one.filename] or place
        where = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
        return f"FAILED: {type(error).__name__} in {where}: {str(error)[:120]}"
    return "answered"


def run_batch(name: str, first: int, n: int, progress: str) -> None:
    """Run cases in this process, and print their outcome."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    target = targets()[name][0]
    handle = os.open(progress, os.O_RDWR)
    found = Outcome()
    for number in range(first, first + n):
        os.pwrite(handle, str(number).encode().ljust(20), 0)
        # The system ends a process that computes for longer.
        spent = int(resource.getrusage(resource.RUSAGE_SELF).ru_utime)
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (spent + CPU_SECONDS, most))
        ended = one_case(target, name, number)
        if ended.startswith("FAILED"):
            found.fail(f"case {number}: {ended}")
        else:
            found.add(ended or "refused")
    print(json.dumps(vars(found)))


def run(name: str, first: int, n: int, outcome: Outcome) -> None:
    """Run the cases of a target from a number on, in processes of their own, one for each core."""
    cores = os.cpu_count() or 1
    size = min(BATCH, -(-n // cores))
    starts = range(first, first + n, size)
    with ThreadPoolExecutor(cores) as pool:
        for found in pool.map(lambda k: _in_process(name, k, min(size, first + n - k)), starts):
            outcome.join(found)


def _in_process(name: str, first: int, n: int) -> Outcome:
    """Run some cases in a new process; one that ends the process is found, and left out."""
    with tempfile.NamedTemporaryFile() as progress:
        done = subprocess.run(
            [sys.executable, "-m", "torture.fuzz", name, str(first), str(n), progress.name],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        if done.returncode == 0:
            return Outcome(**json.loads(done.stdout))
        number = int(Path(progress.name).read_text() or first)
    found = Outcome()
    found.fail(f"case {number}: ended the process by {done.returncode}")
    for start, end in ((first, number), (number + 1, first + n)):
        if start < end:
            found.join(_in_process(name, start, end - start))
    return found


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(one_case(targets()[sys.argv[1]][0], sys.argv[1], int(sys.argv[2])) or "refused")
    else:
        run_batch(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
