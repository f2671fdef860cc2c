"""The command line, run in the process of the tests, because a new process takes a second."""

import contextlib
import io
import os
import tempfile
import warnings
from dataclasses import dataclass
from unittest import mock

from varcal.cli import main

#: The roles of columns in most tests.
COLUMNS = ["--label", "y", "--prob", "p"]


@dataclass(frozen=True)
class Done:
    """The result of a run, with the names of `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


def run(*arguments, cwd=".", given="", **env):
    """Run `varcal` with these arguments, this standard input and these environment variables.

    Streams, warning filters, the working folder and the environment are afterwards as they were.
    """
    content = given.encode() if isinstance(given, str) else given
    stdin = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        contextlib.chdir(cwd),
        mock.patch.dict(os.environ, env),
        mock.patch.object(tempfile, "tempdir", None),  # so that TMPDIR is looked up again
        mock.patch("sys.stdin", stdin),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
        warnings.catch_warnings(),
    ):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as left:
            code = left.code
    stdout.flush()
    stderr.flush()
    return Done(
        0 if code is None else code,
        stdout.buffer.getvalue().decode(),
        stderr.buffer.getvalue().decode(),
    )
