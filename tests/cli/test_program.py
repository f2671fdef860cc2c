"""What all commands share: help, errors and exit codes, streams and signals.

Most tests run the program in their own process. Those of start-up, signals, pipes and encodings
start another one.
"""

import contextlib
import gzip
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import click
import pytest

import varcal as vc
from cases.command_line import COLUMNS, run
from cases.unmeasured import unmeasured
from torture.interrupts import SAID
from varcal.cli import main
from varcal.exceptions import InputError, VarcalWarning

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "varcal"]


def commands(command=main, path=()):
    """Yield every command with its path."""
    yield path, command
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, (*path, name))


# ------------------------------------------------------------------ help


def test_version_and_help():
    done = subprocess.run([*COMMAND, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"varcal {vc.__version__}\n"
    done = run()
    assert done.returncode == 2 and done.stderr.startswith("Usage: varcal [OPTIONS] COMMAND")
    done = run("audit", "-h")
    assert done.returncode == 0 and done.stdout.isascii()


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=" ".join)
def test_every_help_fits_and_has_examples_that_exist(path):
    text = run(*path, "--help").stdout
    assert max(map(len, text.splitlines())) <= 80
    shown = dict(commands())[path].help.partition("Examples:")[2]
    examples = re.findall(r"varcal (\w+)(.*(?:\\\n.*)?)", shown)
    assert examples
    for called, rest in examples:
        command = main.commands[called]
        command = getattr(command, "commands", {}).get((rest.split() or [""])[0], command)
        known = {option for one in command.params for option in one.opts}
        used = re.findall(r"(?<=\s)-{1,2}[a-z][\w-]*", re.sub(r"\s{4,}[a-z ]+$", "", rest))
        assert set(used) <= known, called


# ------------------------------------------------------------------ wrong arguments and files


def audit_of(name):
    return ["audit", name, *COLUMNS, "--variables", "age"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["dmo"], "No such command 'dmo'\nhint: "),
        (["demo", "--nope"], "--nope"),
        (["export", "cal.json"], "Missing option '--to'. Choose from: sql, onnx, python"),
        (["audit"], "Missing argument 'FILE...'\nhint: varcal audit --help"),
        (["audit", "rows.csv", "--lable", "y"], "'--label'"),
        (["audit", "rows.csv", *COLUMNS, "--format", "cvs"], "'cvs' is not one of 'csv', 'tsv', "),
        (audit_of("missing.csv"), "no file 'missing.csv'"),
        (
            ["calibrate", "rows.csv", "noise", *COLUMNS, "-o", "o.json"],
            "by commas, as in age,noise",
        ),
        (audit_of("empty.csv"), "cannot read 'empty.csv' as csv: Empty CSV file"),
        (audit_of("header.csv"), "the file has no rows"),
        (audit_of("cut.parquet"), "cannot read 'cut.parquet' as parquet"),
        (audit_of("rows.xlsx"), "unknown file extension: 'rows.xlsx'"),
        (["audit", "rows.csv", "--label", "yy", "--prob", "p"], "hint: did you mean 'y'?"),
        (["audit", "rows.csv", "--label", "age", "--prob", "p"], "the label column 'age' holds 61"),
        (["audit", "rows.csv", "--label", "y", "--prob", "age"], "--prob 'age' is outside [0, 1]"),
        (["audit", "rows.csv", *COLUMNS, "--variables", "agee"], "did you mean 'age'?"),
        (["audit", "rows.csv", *COLUMNS, "--variables", "age,,p"], "has an empty name"),
        (["audit", "rows.csv", *COLUMNS, "--pos-label", "1"], "label"),
        (["slices", "rows.csv", *COLUMNS, "--classes", "\ud800,1"], "type of the label column"),
        (["audit", "rows.csv", *COLUMNS, "--sep", "\0"], "--sep must be one character"),
        (["audit", "rows.csv", *COLUMNS, "--weight", "noise"], "--weight 'noise' is negative"),
        (["audit", "rows.csv", *COLUMNS, "--classes", "yes"], "--classes"),
        (["audit", "rows.csv", *COLUMNS, "--level", "2"], "--level must lie between 0 and 1"),
        (["audit", "-", "rows.csv", *COLUMNS], "- (standard input) is given together"),
        (["compare", "rows.csv", "--label", "y", "--prob", "p", "--prob", "p"], "'p' twice"),
        (["monitor", "update", "x" * 300, "rows.csv"], "cannot read 'xxx"),
        (["apply", "odd.json", "rows.csv", "-o", "o.csv"], "do not match its checksum"),
        (["apply", "cal.json", "out.csv", "-o", "o.csv"], "choose another name for the new column"),
        (["apply", "cal.json", "test.csv", "-o", "no/o.csv"], "cannot write 'no/o.csv'"),
        (["apply", "cal.json", "test.csv", "-o", "o.doc"], "unknown file extension"),
    ],
)
def test_bad_input_gives_two_lines(arguments, said, folder, calibrated):
    (folder / "empty.csv").write_text("")
    (folder / "rows.xlsx").write_text("")
    (folder / "header.csv").write_text("y,p,age\n")
    (folder / "cut.parquet").write_bytes((folder / "rows.parquet").read_bytes()[:9000])
    (folder / "odd.json").write_text((folder / "cal.json").read_text().replace("0.1", "0.2", 1))
    done = run(*arguments, cwd=folder)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("error: ") and said in done.stderr
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["error", "hint"]
    assert not (folder / "o.csv").exists()


ONCE = [
    pytest.param(path, option, id=" ".join((*path, option.opts[0])))
    for path, command in commands()
    for option in command.params
    if path and isinstance(option, click.Option) and not (option.multiple or option.is_flag)
]


@pytest.mark.parametrize(("path", "option"), ONCE)
def test_an_option_of_one_value_is_refused_twice(path, option):
    done = run(*path, option.opts[0], "first", option.opts[-1], "second")
    named = max(option.opts, key=len)
    assert (done.returncode, done.stderr) == (
        2,
        f"error: {named} is given more than once: 'first' and 'second'\nhint: give {named} once\n",
    )


# ------------------------------------------------------------------ bugs, warnings, encodings


@pytest.fixture
def add_command(monkeypatch):
    """Return a function that adds a command to the program for the duration of a test."""
    return lambda body: monkeypatch.setitem(
        main.commands, body.__name__, click.command(body.__name__)(body)
    )


def test_a_crash_is_not_a_failed_gate(add_command):
    @add_command
    def boom():
        1 / 0  # noqa: B018

    done = run("boom")
    assert done.returncode == 3 and "ZeroDivisionError" in done.stderr
    assert "this is a bug in varcal" in done.stderr


def test_errors_and_warnings_of_the_library_are_plain_lines(add_command):
    @add_command
    def boom():
        warnings.warn("careful", VarcalWarning, stacklevel=1)
        warnings.warn("somebody else", FutureWarning, stacklevel=1)
        raise InputError("p is odd", "even it")

    done = run("boom")
    assert done.returncode == 2
    assert done.stderr == "warning: careful\nerror: p is odd\nhint: even it\n"


@pytest.mark.parametrize(
    ("encoding", "shown"), [("ascii", "-0.5 x ?"), ("cp1252", "-0.5 × é"), ("utf-8", "−0.5 × é")]
)
def test_output_in_any_encoding(encoding, shown):
    code = (
        "import varcal.cli as c\nc.main.command('say')(lambda: print('−0.5 × é'))\nc.main(['say'])"
    )
    env = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, check=True)
    assert done.stdout.decode(encoding).strip() == shown


def test_colours_only_on_a_terminal_and_not_with_no_color(folder):
    command = [*COMMAND, "audit", "rows.csv", *COLUMNS, "--variables", "age", "--ladder", "none"]
    said = {}
    for name, env in {"plain": {}, "off": {"NO_COLOR": "1"}}.items():
        ours, theirs = pty.openpty()
        done = subprocess.Popen(
            [*command, "--gate"], cwd=folder, env=unmeasured() | env, stdout=theirs,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs)
        parts = []
        with contextlib.suppress(OSError):  # how Linux says that the other end is closed
            while part := os.read(ours, 65_536):
                parts.append(part)
        os.close(ours)
        assert done.wait() == 1
        said[name] = b"".join(parts)
    assert b"\x1b[31m\x1b[1mFAILED\x1b[0m  the verdict" in said["plain"]
    assert b"\x1b" not in said["off"] and b"FAILED  the verdict" in said["off"]


def test_standard_input_and_named_pipes_are_files(folder, tmp_path):
    rest = [*COLUMNS, "--variables", "age", "--ladder", "none", "--json"]
    wanted = run("audit", folder / "rows.csv", *rest)
    rows = (folder / "rows.csv").read_bytes()
    for given in (rows, gzip.compress(rows), (folder / "rows.parquet").read_bytes()):
        assert run("audit", "-", *rest, given=given).stdout == wanted.stdout
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(rows,))
    writer.start()
    done = run("audit", tmp_path / "pipe", *rest)
    writer.join()
    assert done.stdout == wanted.stdout and "read as comma-separated" in done.stderr


# ------------------------------------------------------------------ interrupts


def test_interrupted_run_leaves_no_file(folder, calibrated, tmp_path):
    source = tmp_path / "big.csv.gz"
    source.write_bytes(gzip.compress(b"p,age\n" + b"0.5,40\n" * 1_500_000, 1))
    process = subprocess.Popen(
        [*COMMAND, "apply", str(folder / "cal.json"), str(source), "-o", str(tmp_path / "out.csv")],
        env=unmeasured(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(tmp_path.glob(".varcal-*.tmp")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert (process.returncode, said.strip()) == (130, SAID)
    assert [path.name for path in tmp_path.iterdir()] == ["big.csv.gz"]


def test_a_closed_pipe_ends_the_program_silently(folder):
    command = [*COMMAND, "audit", "rows.csv", *COLUMNS, "--ladder", "none"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, text=True
    )
    process.stdout.close()
    assert not process.stderr.read()
    assert process.wait() == -signal.SIGPIPE  # which a shell reports as 141


# ------------------------------------------------------------------ the guide


def shape(text):
    """Return what must be the same on every machine: all but digits and the width of columns.

    After a repair, errors may be close to the limit of noise, so both verdicts count as the same.
    """
    text = re.sub(r"\b(fixed|better)\b", "improved", text)
    return re.sub(r"\s+", " ", re.sub(r"[\d.,]+(e-\d+)?", "#", text)).strip()


def said_by(command):
    """Return all that a line of the guide shows; it may end in `| tail -n`."""
    line, _, last = command.partition(" | tail -")
    program, *arguments = shlex.split(line)
    assert program == "varcal" and "|" not in arguments, command
    done = run(*arguments)
    lines = done.stdout.splitlines(keepends=True)
    return done.stderr + "".join(lines[-int(last) :] if last else lines)


def test_guide_shows_real_output(tmp_path, monkeypatch):
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names, n_commands = {}, 0
    for language, block in re.findall(r"^```(python|console)\n(.*?)^```", page, re.M | re.S):
        if language == "python":
            exec(block, names)
            continue
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, re.M):
            parts = re.split(r"^…\n", shown, flags=re.M)  # as in tools/doc_pages.py
            pattern = ".*".join(re.escape(shape(part)) for part in parts)
            assert re.fullmatch(pattern, shape(said_by(command))), command
            n_commands += 1
    assert n_commands >= 8
