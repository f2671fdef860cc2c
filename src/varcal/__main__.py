"""`python -m varcal` and the command `varcal`.

Nothing is imported at the top but what Python has loaded anyway, so that Ctrl-C is handled
from the first moment on.
"""

import sys


def program() -> None:
    """Run the command line in a process of its own."""
    try:
        try:
            from varcal.cli import program as run  # noqa: PLC0415

            run()
        finally:
            # The work is done or given up: from here on Ctrl-C ends the process without a word.
            import signal  # noqa: PLC0415

            signal.signal(signal.SIGINT, signal.SIG_DFL)
            # Python remembers that Ctrl-C came while a library ran code from a string, and would
            # let `python -m varcal` end by the signal instead of the exit code. This resets it.
            exec("")
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: no file is left incomplete\n")
        sys.exit(130)


if __name__ == "__main__":
    program()
