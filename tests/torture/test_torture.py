"""A small part of `make torture`: a few kills and bad disks."""

import subprocess
import sys
from pathlib import Path

import pytest

from cases.unmeasured import unmeasured

ROOT = Path(__file__).parents[2]
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="forks, and looks into /proc")


@pytest.mark.slow
@linux_only
@pytest.mark.parametrize("part", ["kills --kills 12", "disks"])
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
