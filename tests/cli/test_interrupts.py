"""Ctrl-C ends the program with 130 and one line, also while it is loading."""

import os
import subprocess
import sys

import pytest

from cases.unmeasured import unmeasured

#: Runs the program, and presses Ctrl-C when the n-th module is imported.
AT_IMPORT = """
import os, signal, sys

class Interrupt:
    left = int(sys.argv[1])
    def find_spec(self, name, path=None, target=None):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["varcal", *sys.argv[2:]]
from varcal.__main__ import program
program()
"""
SAID = "interrupted: no file is left incomplete"


# Before the program is loaded, and in a command.
@pytest.mark.parametrize("n", [12, 400])
def test_while_modules_are_imported(n, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("y,p,age\n" + "0,0.3,40\n1,0.6,50\n0,0.7,60\n" * 100)
    out = tmp_path / "report.html"
    done = subprocess.run(
        [
            *(sys.executable, "-c", AT_IMPORT, str(n), "audit", str(rows)),
            *("--label", "y", "--prob", "p", "-o", str(out)),
        ],
        env=unmeasured(),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr.strip()) == (130, SAID)
    assert os.listdir(tmp_path) == ["rows.csv"]
