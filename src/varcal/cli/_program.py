"""The program `varcal`: help, warnings, errors and exit codes of all commands."""

from __future__ import annotations

import codecs
import re
import sys
import warnings
from typing import Any, NoReturn

import click

from varcal._version import __version__
from varcal.exceptions import InputError, VarcalError, VarcalWarning, python_setting

#: The width that all output fits in.
WIDTH = 80
#: Exit codes; a command has its own for gates and alarms.
BAD_INPUT, OUR_BUG, INTERRUPTED = 2, 3, 130
#: Arguments of the library whose options have other names.
_OTHER_NAMES = {
    "y": "--label",
    "p": "--prob",
    "v": "--variables",
    "X": "--variables",
    "sample_weight": "--weight",
    "groups": "--group",
    "monitor": "--limit",
    "unlabelled": "--drop-unlabelled",
    "outcome": "--mean",
    "out": "--output",
    "data": "the file",
}
#: Characters of our output that some encodings lack, and what replaces them.
_PLAIN = str.maketrans("−–·×▲▼", "--|x^v") | str.maketrans(
    {"±": "+-", "…": "...", "→": "->", "≤": "<=", "≥": ">="}
)


class _Commands(click.Group):
    """A group of commands whose errors are one readable message and an exit code."""

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        _prepare_streams()
        kwargs = {"prog_name": "varcal"} | kwargs | {"standalone_mode": False}
        try:
            code = super().main(*args, **kwargs)
        except click.Abort:
            say("interrupted", "no file is left incomplete")
            code = INTERRUPTED
        except Exception as error:
            code = _code_of(error)
        sys.exit(code if isinstance(code, int) else 0)


_SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


@click.group(cls=_Commands, context_settings=_SETTINGS)
@click.version_option(__version__, "-V", "--version", message="varcal %(version)s")
def main() -> None:
    """Find for whom a classifier's probabilities are wrong, and repair them.

    \b
    Examples:
      varcal demo                                see it work on census data
      varcal audit preds.csv --label y --prob p  rank all other columns
      varcal slices preds.csv --label y --prob p search combinations of columns
      varcal calibrate cal.csv --label y --prob p -o cal.json
      varcal apply cal.json new.csv -o calibrated.csv
      varcal compare test.csv --label y --prob p --prob p_calibrated
      varcal monitor update state.json day.csv   watch batches, exit 4 on alarm

    Exit codes: 0 success, 1 a gate that you set is not passed, 2 bad input, 4 a monitor raises an
    alarm.
    """


def say(kind: str, message: str) -> None:
    """Write a message to standard error: in logs one line, on a terminal broken between words."""
    line = f"{kind}: {message}"
    if sys.stderr.isatty():
        import textwrap  # noqa: PLC0415  only terminals need it

        indent = " " * (len(kind) + 2)
        whole = {"break_long_words": False, "break_on_hyphens": False}
        line = textwrap.fill(line, WIDTH, subsequent_indent=indent, **whole)  # type: ignore[arg-type]
    print(line, file=sys.stderr)


def print_json(value: object) -> None:
    """Write a document to standard output."""
    import json  # noqa: PLC0415  only --json needs it

    print(json.dumps(value, allow_nan=False, ensure_ascii=False))


def _code_of(error: Exception) -> int:
    """Say what is wrong, and return the exit code."""
    code = BAD_INPUT
    if isinstance(error, InputError):
        message, hint = error.spelled(option_names(), option_text)
    elif isinstance(error, VarcalError):
        message, hint = error.message, error.hint
    elif isinstance(error, click.ClickException):
        path = getattr(getattr(error, "ctx", None), "command_path", "varcal")
        if error.format_message().startswith("Usage: "):  # nothing was given
            print(error.format_message(), file=sys.stderr)
            return code
        text = " ".join(error.format_message().split()).rstrip(".")
        message, *near = re.split(r"\.? \(?(?=Did you mean|Possible )", text)
        hint = f"{path} --help shows the options and examples"
        if near:
            hint = (near[0][0].lower() + near[0][1:]).rstrip(")")
    else:
        import traceback  # noqa: PLC0415  only a bug needs it

        traceback.print_exception(error)
        message, hint = "this is a bug in varcal", "please report it with the lines above"
        code = OUR_BUG
    say("error", message)
    if hint:
        say("hint", hint)
    return code


def option_names() -> dict[str, str]:
    """Return the option of every argument of the library that the command line can set."""
    found, commands = dict(_OTHER_NAMES), list(main.commands.values())
    for command in commands:
        commands += getattr(command, "commands", {}).values()
        options = [option for option in command.params if isinstance(option, click.Option)]
        found |= {str(option.name): max(option.opts, key=len) for option in options}
    return found


def option_text(name: str, value: object) -> str:
    """Write a setting as it is given on the command line.

    >>> option_text("unlabelled", "drop"), option_text("classes", ["a", "b"])
    ('--drop-unlabelled', '--classes a,b')
    """
    option = option_names().get(name)
    if option is None:
        return python_setting(name, value)
    if value is None or value is True or name in ("unlabelled", "outcome"):
        return option
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    return f"{option} {'…' if value is ... else value}"


def _prepare_streams() -> None:
    """Show our own warnings in one line each, and write signs that an encoding lacks in ASCII."""
    if not sys.warnoptions:  # with -W the user chooses
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", VarcalWarning)
    warnings.showwarning = lambda message, *_, **__: say("warning", str(message))

    def plain(error: UnicodeError) -> tuple[str, int]:
        assert isinstance(error, UnicodeEncodeError)
        lacking = error.object[error.start : error.end].translate(_PLAIN)
        return lacking.encode("ascii", "replace").decode(), error.end

    codecs.register_error("varcal.plain", plain)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="varcal.plain")
