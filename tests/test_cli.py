"""The command line, driven as a real process."""

import os
import subprocess
import sys

import pytest

import varcal


def run(*arguments, **env):
    return subprocess.run(
        [sys.executable, "-m", "varcal", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ | env,
        check=False,
    )


def test_version_and_help():
    assert run("--version").stdout == f"varcal {varcal.__version__}\n"
    assert "demo" in run("--help").stdout and run("-h").returncode == 0


def test_demo_ranks_variables_and_shows_the_worst():
    done = run("demo")
    assert done.returncode == 0 and not done.stderr
    assert "\x1b" not in done.stdout  # no colour off a terminal
    lines = done.stdout.splitlines()
    head = next(k for k, line in enumerate(lines) if line.split()[:2] == ["#", "variable"])
    assert lines[head + 1].split()[:2] == ["1", "relationship"]
    assert "Husband" in done.stdout and "Overall overconfident by 20.6 points" in done.stdout


def test_demo_in_an_ascii_pipe():
    done = run("demo", PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and done.stdout and not done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_any_encoding_can_hold_the_output(encoding):
    code = (
        "import sys, varcal.cli as c\n"
        "@c.main.command()\n"
        "def say():\n"
        "    print('−0.5 × é')\n"
        "c.main(['say'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        check=False,
    )
    expected = {"ascii": "-0.5 x ?", "cp1252": "-0.5 × é", "utf-8": "−0.5 × é"}[encoding]
    assert done.returncode == 0 and done.stdout.decode(encoding).strip() == expected


@pytest.mark.parametrize("arguments", [["dmo"], ["demo", "--nope"], ["demo", "extra"]])
def test_wrong_arguments(arguments):
    done = run(*arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr and done.stderr


def test_errors_are_one_message_with_a_hint():
    code = (
        "import click, varcal.cli as c\n"
        "from varcal.exceptions import InputError\n"
        "@c.main.command()\n"
        "def boom():\n"
        "    raise InputError('p is odd', 'even it')\n"
        "c.main(['boom'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: p is odd\nhint: even it\n"
