"""Presses Ctrl-C at random moments of the command line.

Some processes are started anew and interrupted when the n-th module is imported; the others are
forked with everything loaded and interrupted during their work.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from torture.kills import forked
from torture.outcome import Outcome

SAID = "interrupted: no file is left incomplete"
AT_IMPORT = """
import os, signal, sys
# A shell lets what it starts in the background ignore Ctrl-C, and so do all children.
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupt:
    left = int(sys.argv[1])
    def find_spec(self, name, path=None, target=None):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["varcal", *sys.argv[2:]]
from varcal.__main__ import program
program()
"""
#: Imports from the first of the program to one that every command reaches.
FIRST_IMPORT, LAST_IMPORT = 6, 450


def commands(folder: Path) -> list[tuple[list[str], str]]:
    """Return commands, each with the file that it writes."""
    import varcal as vc  # noqa: PLC0415

    sim = vc.datasets.make_gap(3_000, random_state=0)
    rows = zip(sim.y.tolist(), sim.p.tolist(), sim.v.tolist(), strict=True)
    text = "y,p,age\n" + "".join(f"{y},{p},{v}\n" for y, p, v in rows)
    (folder / "rows.csv").write_text(text, encoding="utf-8")
    vc.VariableCalibrator().fit(sim.p, sim.y, {"age": sim.v}).save(folder / "cal.json")
    columns = ["--label", "y", "--prob", "p"]
    return [
        (["audit", "rows.csv", *columns, "-o", "page.html"], "page.html"),
        (["calibrate", "rows.csv", *columns, "--variables", "age", "-o", "new.json"], "new.json"),
        (["apply", "cal.json", "rows.csv", "--prob", "p", "-o", "out.csv"], "out.csv"),
        (["slices", "rows.csv", *columns, "--draws", "19", "-o", "slices.json"], "slices.json"),
    ]


def run_imports(first: int, n: int, outcome: Outcome) -> None:
    """Interrupt new processes while they import."""
    with tempfile.TemporaryDirectory() as folder:
        given = commands(Path(folder))
        for number in range(first, first + n):
            random = Random(f"import {number}")
            command, out = random.choice(given)
            at = random.randrange(FIRST_IMPORT, LAST_IMPORT)
            done = subprocess.run(
                [sys.executable, "-c", AT_IMPORT, str(at), *command],
                cwd=folder,
                capture_output=True,
                text=True,
            )
            label = f"case {number} ({command[0]}, import {at})"
            _judge(label, done.returncode, done.stderr, Path(folder, out), outcome)
    if outcome.counts.get("had finished", 0) == outcome.tried > 1:
        outcome.fail("no process was interrupted")


def run_work(first: int, n: int, outcome: Outcome) -> None:
    """Interrupt processes during their work."""
    from varcal.cli import main  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        given = commands(folder)
        longest = [_seconds(command, folder) for command, _ in given]
        for number in range(first, first + n):
            random = Random(f"interrupt {number}")
            which = random.randrange(len(given))
            command, out = given[which]
            said = folder / "said.txt"

            def work(command: list[str] = command, said: Path = said) -> None:
                os.chdir(folder)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(handle, 2)
                sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
                sys.stdout = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
                try:
                    main(command)
                except SystemExit as left:
                    sys.stderr.flush()
                    os._exit(int(left.code or 0))
                except KeyboardInterrupt:  # before or after the command, as in `varcal.__main__`
                    os._exit(130)

            child = forked(work)
            time.sleep(0.005 + random.random() * longest[which])
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGINT)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            label = f"case {number} ({command[0]})"
            text = said.read_text(encoding="utf-8") if said.exists() else ""
            _judge(label, code, text, folder / out, outcome)
            said.unlink(missing_ok=True)


def _seconds(command: list[str], folder: Path) -> float:
    """Return how long a command takes once everything is loaded; its modules stay loaded."""
    from varcal.cli import main  # noqa: PLC0415

    taken = 0.0
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        for _ in range(2):
            start = time.monotonic()
            with contextlib.suppress(SystemExit):
                main(command)
            taken = time.monotonic() - start
    return taken


def _judge(label: str, code: int, said: str, out: Path, outcome: Outcome) -> None:
    beside = [name for name in os.listdir(out.parent) if name.endswith(".tmp")]
    if beside or (code == 0 and not out.exists()):
        outcome.fail(f"{label}: code {code}, left {beside}, said {said[-200:]!r}")
    elif code == 0:
        outcome.add("had finished")
    elif code == 130 and said.rstrip().endswith(SAID) and "Traceback" not in said:
        outcome.add("ended with 130 and one line")
    elif code in (130, -signal.SIGINT):
        outcome.add("ended by the interrupt")
    elif "KeyboardInterrupt" in said or "ImportError" in said:
        outcome.add("ended with an error that a library made of the interrupt")
    else:
        outcome.fail(f"{label}: code {code}, said {said[-200:]!r}")
    out.unlink(missing_ok=True)
