"""The command line: `_program.py` and `_options.py` for what commands share, then the commands."""

from varcal.cli._audit import audit
from varcal.cli._calibrators import apply, calibrate, export
from varcal.cli._compare import compare
from varcal.cli._demo import demo
from varcal.cli._measures import measures
from varcal.cli._monitor import monitor
from varcal.cli._program import main
from varcal.cli._slices import slices

__all__ = ["main"]

for _command in (audit, measures, slices, calibrate, apply, export, compare, monitor, demo):
    main.add_command(_command)
