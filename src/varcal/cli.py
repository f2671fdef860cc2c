"""The command line."""

from __future__ import annotations

import codecs
import sys
from typing import Any

import click

from varcal._version import __version__
from varcal.exceptions import VarcalError


class _Commands(click.Group):
    """Bad input ends with one readable message and exit code 2, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        _write_in_any_encoding()
        try:
            return super().invoke(ctx)
        except VarcalError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(2)


# What our output holds beyond ASCII, and what stands for it where the encoding cannot hold it.
_PLAIN = {"−": "-", "–": "-", "·": "|", "×": "x", "±": "+-", "…": "...", "→": "->"}


def _write_in_any_encoding() -> None:
    """Let output streams replace what their encoding cannot hold, instead of failing."""
    codecs.register_error("varcal.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        try:
            "".join(_PLAIN).encode(stream.encoding)
        except UnicodeEncodeError:
            stream.reconfigure(errors="varcal.plain")  # type: ignore[union-attr]


def _plain(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    found = error.object[error.start : error.end]
    return "".join(_PLAIN.get(character, "?") for character in found), error.end


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="varcal %(version)s")
def main() -> None:
    """Show where along a variable a classifier's confidence is wrong.

    \b
    Examples:
      varcal demo                   see it work on bundled census data
    """


@main.command()
def demo() -> None:
    """Rank the variables of bundled census data and show the worst one.

    A neural network predicts whether a person earns more than 50,000 dollars. Its confidence
    is too high everywhere, but much more so in some places than in others.
    """
    from varcal._demo import show_demo  # noqa: PLC0415  rich loads when first needed

    show_demo(sys.stdout)
