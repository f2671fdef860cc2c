"""The lines that `varcal audit` prints."""

from __future__ import annotations

import sys

from varcal._audit.result import Audit
from varcal._report.audit.terminal import audit_lines as report_lines

#: Characters that some encodings lack, and what is written instead.
PLAIN = str.maketrans({"−": "-", "–": "-", "…": ".", "·": "|", "“": '"', "”": '"', "’": "'"})


def audit_lines(found: Audit, encoding: str | None = None) -> list[str]:
    """Return the first screen, the ranking and what to do next.

    Parameters
    ----------
    found : Audit
        The results.
    encoding : str, optional
        The encoding of the output, that of standard output by default; signs that it lacks are
        written in ASCII.
    """
    encoding = encoding or sys.stdout.encoding or "utf-8"
    return [encodable(line, encoding) for line in report_lines(found, commands=True)]


def encodable(line: str, encoding: str) -> str:
    """Write signs that an encoding lacks in ASCII.

    >>> encodable("−0.2 … ▲", "ascii")
    '-0.2 . ?'
    """
    try:
        line.encode(encoding)
    except UnicodeEncodeError:
        return line.translate(PLAIN).encode(encoding, "replace").decode(encoding)
    return line
