"""`python -m varcal` and the command `varcal`."""

import sys


def program() -> None:
    """Run the command line; Ctrl-C while it is being imported also ends in one line."""
    try:
        from varcal.cli import main  # noqa: PLC0415

        main()
    except KeyboardInterrupt:
        print("interrupted: no file is left incomplete", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    program()
