"""`python -m varcal` is the command `varcal`."""

from varcal.cli import program

program()
