"""Kills processes while they write, and looks at what is left.

A child process writes a file again and again until it is killed (SIGKILL) at a random moment. The
file must then be a complete version, and after the next write of it nothing else may be there.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random

from torture.outcome import Outcome
from torture.writers import Writer, writers
from varcal.exceptions import InputError

#: Seconds until a child is killed, at most. Writing a file takes 2 to 30 ms.
LONGEST = 0.08
#: What may be beside the files.
LOCKS = {".monitor.json.lock"}


def run(first: int, n: int, outcome: Outcome) -> None:
    """Kill `n` writing processes; the number of a case chooses writer and moment."""
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        kinds = writers(folder)
        known = [_versions(one, folder) for one in kinds]
        for number in range(first, first + n):
            which = number % len(kinds)
            one_kill(number, kinds[which], known[which], folder, outcome)


def _versions(writer: Writer, folder: Path) -> list[object]:
    found = []
    for k in range(2):
        path = folder / f"{k}-{writer.name}"
        writer.write(path, k)
        found.append(writer.content(path))
    return found


def forked(work: Callable[[], None]) -> int:
    """Start a process that does some work, without loading anything again."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def one_kill(
    number: int, writer: Writer, versions: list[object], home: Path, outcome: Outcome
) -> None:
    """Kill one process that writes, and look at what is left."""
    random = Random(f"kill {number}")
    with tempfile.TemporaryDirectory(dir=home) as folder:
        path = Path(folder, writer.name)
        if random.random() < 0.8:
            writer.write(path, 0)

        def write_forever() -> None:
            for k in range(10**9):
                writer.write(path, k % 2)

        child = forked(write_forever)
        time.sleep(random.random() * LONGEST)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        label = f"case {number} ({writer.name})"
        if not os.WIFSIGNALED(status):
            outcome.fail(f"{label}: the writer failed")
            return
        there, left = path.exists(), _others(path)
        if there and writer.content(path) not in versions:
            outcome.fail(f"{label}: the file is not complete")
            return
        try:
            writer.write(path, 1)
        except InputError as error:
            outcome.fail(f"{label}: the next write is refused: {error.message}")
            return
        if writer.content(path) != versions[1]:
            outcome.fail(f"{label}: the next write is not complete")
        elif _others(path):
            outcome.fail(f"{label}: left {_others(path)}")
        elif left:
            outcome.add("whole, with a temporary file that the next write removed")
        else:
            outcome.add("whole, with nothing beside it" if there else "nothing written")


def _others(path: Path) -> list[str]:
    """Return what else is beside a file."""
    return sorted(set(os.listdir(path.parent)) - {path.name} - LOCKS)
