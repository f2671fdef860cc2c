"""A two-minute part of `make torture`: a few kills, bad disks, interrupts, load and fuzzing."""

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from cases.unmeasured import unmeasured
from torture.mutate import mutated
from torture.outcome import Outcome, Record

ROOT = Path(__file__).parents[2]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="forks, and looks into /proc")


@pytest.mark.slow
@linux_only
@pytest.mark.parametrize(
    "part",
    [
        "kills --kills 24",
        "disks",
        "interrupts --interrupts 6",
        "load --small",
        "fuzz --cases 3000",
    ],
)
def test_nothing_breaks(part):
    done = subprocess.run(
        [sys.executable, "-m", "torture", *part.split()],
        cwd=ROOT,
        env=unmeasured(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " cases: " in done.stdout and "FAILED" not in done.stdout


def test_a_case_is_repeated_by_its_number():
    made = [mutated(Random("JSON lines 7"), b'{"y": 1}\n') for _ in range(2)]
    assert made[0] == made[1] != b'{"y": 1}\n'


def test_a_run_goes_on_where_it_stopped(tmp_path, capsys):
    path = tmp_path / "record.json"
    with Record(path).part("kills") as outcome:
        outcome.add("whole", 3)
        outcome.fail("case 3: half a file")
    record = Record(path)
    assert record.parts["kills"].tried == 4
    assert record.failures == ["kills: case 3: half a file"]
    other = Outcome()
    other.add("whole")
    record.parts["kills"].join(other)
    assert record.parts["kills"].counts == {"whole": 4, "FAILED": 1}
    assert "4 cases: 1 FAILED, 3 whole" in capsys.readouterr().out
