"""Ctrl-C at any moment ends the program with 130 and one line, also while it is loading."""

import os
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from cases.unmeasured import unmeasured
from varcal.cli import main
from varcal.cli._program import _Commands

#: Runs the program, and presses Ctrl-C when the n-th module is imported.
AT_IMPORT = """
import os, signal, sys

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
SAID = "interrupted: no file is left incomplete\n"


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("y,p,age\n" + "0,0.3,40\n1,0.6,50\n0,0.7,60\n" * 100)
    return path


@pytest.mark.parametrize("n", [6, 12, 40, 90, 160, 260, 400])
def test_while_modules_are_imported(n, rows, tmp_path):
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
    assert (done.returncode, done.stderr) == (130, SAID)
    assert os.listdir(tmp_path) == ["rows.csv"]


IN_STRING = """
import os, signal, sys
from varcal.cli import main

@main.command()
def code():
    exec("import os, signal; os.kill(os.getpid(), signal.SIGINT)")

@main.command()
def callback():
    class Left:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
    Left()
    while True:
        pass

@main.command()
def another():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("no such module") from None

sys.argv = ["varcal", sys.argv[1]]
from varcal.__main__ import program
program()
"""


@pytest.mark.parametrize("where", ["code", "callback", "another"])
def test_where_libraries_hide_it(where, tmp_path):
    """In code from a string, in a callback, and turned into another exception."""
    (tmp_path / "hidden.py").write_text(IN_STRING)
    done = subprocess.run(
        [sys.executable, "-m", "hidden", where],
        capture_output=True,
        text=True,
        env=unmeasured(PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path])),
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", SAID)


def test_a_process_in_the_background_goes_on_ignoring_it(monkeypatch):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert CliRunner().invoke(main, ["--version"]).exit_code == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert isinstance(main, _Commands)
