"""The command line: one file per command, `_program.py` for what they share."""

import signal
import sys
from typing import Any

from varcal.cli._apply import apply
from varcal.cli._audit import audit
from varcal.cli._calibrate import calibrate
from varcal.cli._compare import compare
from varcal.cli._demo import demo
from varcal.cli._export import export
from varcal.cli._monitor import monitor
from varcal.cli._program import main
from varcal.cli._slices import slices

__all__ = ["main", "program"]

for _command in (audit, slices, calibrate, apply, export, compare, monitor, demo):
    main.add_command(_command)


def program() -> None:
    """Run the command line in a process of its own."""
    sys.unraisablehook = _pass_interrupts_on
    if sys.argv[1:2] == ["apply"]:
        from varcal.calibrators._interface.estimator import leave_out_sklearn  # noqa: PLC0415

        leave_out_sklearn()
    main()


def _pass_interrupts_on(found: Any) -> None:
    """Send Ctrl-C again if it came where Python can raise no exception, such as a callback."""
    if isinstance(found.exc_value, KeyboardInterrupt) and hasattr(signal, "setitimer"):
        # Not at once, because this function cannot raise it either.
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        signal.setitimer(signal.ITIMER_REAL, 0.001)
    else:
        sys.__unraisablehook__(found)
