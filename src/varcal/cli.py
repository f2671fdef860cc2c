"""The command line."""

from __future__ import annotations

import sys
from typing import Any

import click

from varcal._version import __version__
from varcal.exceptions import VarcalError


class _Commands(click.Group):
    """Bad input ends with one readable message and exit code 2, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except VarcalError as error:
            click.echo(f"error: {error}", err=True)
            ctx.exit(2)


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
