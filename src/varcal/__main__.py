"""`python -m varcal` and the command `varcal`."""

import signal
import sys


def program() -> None:
    """Run the command line; Ctrl-C while it is being imported also ends in one line."""
    if hasattr(signal, "SIGPIPE"):  # as other programs end where `| head` has read enough
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        from varcal.cli import main  # noqa: PLC0415

        main()
    except KeyboardInterrupt:
        print("interrupted: no file is left incomplete", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    program()
