"""The program `varcal`: help, warnings, errors and exit codes of all commands."""

from __future__ import annotations

import codecs
import os
import re
import sys
import warnings
from typing import Any, NoReturn

import click

from varcal._version import __version__
from varcal.cli._spelling import OPTIONS, option_text
from varcal.exceptions import InputError, VarcalError, VarcalWarning, nearest

#: The width that all output fits in.
WIDTH = 80
#: Exit codes.
BAD_INPUT, OUR_BUG, INTERRUPTED, BROKEN_PIPE = 2, 3, 130, 141


class _Commands(click.Group):
    """A group of commands whose errors are one readable message and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            try:
                return super().invoke(ctx)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            # What is still buffered goes nowhere. Click would exit with 1: here a failed gate.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(BROKEN_PIPE)

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        _write_in_any_encoding()
        _show_warnings()
        kwargs = {"prog_name": "varcal"} | kwargs | {"standalone_mode": False}
        try:
            code = super().main(*args, **kwargs)
        except click.Abort:
            say("interrupted", "no file is left incomplete")
            code = INTERRUPTED
        except Exception as error:
            code = _code_of(error)
        sys.exit(code if isinstance(code, int) else 0)


def _code_of(error: Exception) -> int:
    """Say what is wrong, and return the exit code."""
    if isinstance(error, InputError):
        return _fail(*error.spelled(OPTIONS, option_text))
    if isinstance(error, VarcalError):
        return _fail(error.message, error.hint)
    if isinstance(error, click.ClickException):
        return _fail(*_usage(error))
    import traceback  # noqa: PLC0415  only a bug needs it

    traceback.print_exception(error)
    return _fail("this is a bug in varcal", "please report it with the lines above", OUR_BUG)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="varcal %(version)s")
def main() -> None:
    """Show where along a variable a classifier's confidence is wrong, and repair it.

    \b
    Examples:
      varcal demo                                see it work on census data
      varcal audit preds.csv --label y --prob p  rank all other columns
      varcal slices preds.csv --label y --prob p search combinations of columns
      varcal calibrate cal.csv --label y --prob p --variables age -o cal.json
      varcal apply cal.json new.csv -o calibrated.csv
      varcal compare test.csv --label y --prob p --prob p_calibrated
      varcal monitor update state.json day.csv   watch batches, exit 4 on alarm

    Exit codes: 0 success, 1 a gate that you set is not passed, 2 bad input, 4 a monitor raises an
    alarm.
    """


def _fail(message: str, hint: str, code: int = BAD_INPUT) -> int:
    say("error", message)
    if hint:
        say("hint", hint)
    return code


def say(kind: str, message: str) -> None:
    """Write a message to standard error: in logs one line, on a terminal broken between words."""
    line = f"{kind}: {message}"
    if sys.stderr.isatty():
        import textwrap  # noqa: PLC0415  only terminals need it

        lines = textwrap.wrap(
            line,
            WIDTH,
            subsequent_indent=" " * (len(kind) + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )
        line = "\n".join(lines)
    print(line, file=sys.stderr)


def _usage(error: click.ClickException) -> tuple[str, str]:
    """Return the message and the hint of an error in the arguments."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "varcal"
    message, _, near = error.format_message().rstrip(".?)").partition(" Did you mean ")
    if isinstance(error, click.NoSuchOption):
        known = [] if context is None else [o for p in context.command.params for o in p.opts]
        message, near = f"no option {error.option_name}", nearest(error.option_name, known) or ""
    missing = re.fullmatch(r"No such command '(.*)'", message)
    if missing is not None and context is not None:  # older versions of click suggest nothing
        similar = nearest(missing[1], context.command.list_commands(context))
        near = repr(similar) if similar else ""
    hint = f"did you mean {near}?" if near else f"{path} --help shows the options and examples"
    return message.rstrip("."), hint


def _show_warnings() -> None:
    """Show varcal's own warnings in one line each, and no others unless asked for with -W."""
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", VarcalWarning)

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        say("warning", str(message))

    warnings.showwarning = show


# The characters of our output beyond ASCII, and what replaces them in encodings without them.
_PLAIN = {
    "−": "-",
    "–": "-",
    "·": "|",
    "×": "x",
    "±": "+-",
    "…": "...",
    "→": "->",
    "≤": "<=",
    "≥": ">=",
    "▲": "^",
    "▼": "v",
}


def _write_in_any_encoding() -> None:
    """Let output streams replace characters that their encoding lacks, instead of failing."""
    codecs.register_error("varcal.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        try:
            "".join(_PLAIN).encode(stream.encoding)
        except UnicodeEncodeError:
            stream.reconfigure(errors="varcal.plain")  # type: ignore[union-attr]


def encodable(line: str, encoding: str | None = None) -> str:
    """Write signs that an encoding, by default that of standard output, lacks in ASCII.

    >>> encodable("−0.2 … ▲", "ascii")
    '-0.2 . ^'
    """
    encoding = encoding or sys.stdout.encoding or "utf-8"
    try:
        line.encode(encoding)
    except UnicodeEncodeError:
        # One character for each, so that columns stay aligned.
        table = str.maketrans({sign: plain[0] for sign, plain in _PLAIN.items()})
        return line.translate(table).encode(encoding, "replace").decode(encoding)
    return line


def _plain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in lacking), error.end
