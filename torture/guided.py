"""Fuzzing that is guided by the code it reaches, with atheris.

    python -m torture.guided json 60    a target of parsers.GUIDED, and seconds

atheris is not among the dependencies; install it into an environment of your own. What was found
is added to the tests by hand.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["varcal"]):
    from torture import parsers

from varcal.exceptions import VarcalError  # after the modules that are watched


def main() -> None:
    """Run one target for some seconds; a failure ends the process with its input."""
    name, seconds = sys.argv[1], int(sys.argv[2])
    target, examples = parsers.GUIDED[name]

    def use(data: bytes) -> None:
        with suppress(VarcalError):
            target(data)

    with tempfile.TemporaryDirectory() as folder:
        for k, example in enumerate(examples):
            Path(folder, str(k)).write_bytes(example)
        limits = [f"-max_total_time={seconds}", "-max_len=400", "-rss_limit_mb=0"]
        atheris.Setup(["varcal", *limits, folder], use)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
