"""What every export has: random rows with expected values, and a check against them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import Floats
from varcal._export.program import Program
from varcal._export.random_rows import RandomRows
from varcal._text import Shown
from varcal._version import __version__
from varcal.exceptions import VarcalError

#: How far an exact export may be from `predict_proba`.
TOLERANCE = 1e-8


class ExportError(VarcalError):
    """An export does not give what `predict_proba` gives."""


@dataclass(frozen=True, eq=False, repr=False)
class Export(Shown):
    """A fitted calibrator, written for use elsewhere.

    Attributes
    ----------
    rows : RandomRows
        Random rows, with what `predict_proba` gives for them.
    """

    rows: RandomRows
    _program: Program

    def _what(self) -> tuple[str, int, str]:
        """Return what it is, its size in bytes, and the name of the attribute that has it."""
        raise NotImplementedError

    def _shown(self) -> tuple[str, dict[str, list[str]], str]:
        program = self._program
        what, size, attribute = self._what()
        score = "probability of the second class" if program.binary else "one per class"
        columns = {
            "input": ["p", *(program.schema.names[k] for k in program.used)],
            "kind": [score, *(program.schema.kinds[k] for k in program.used)],
        }
        note = (
            f"save(path) writes it and .{attribute} has it; check() compares "
            f"{len(self.rows.p):,} random rows with predict_proba"
        )
        return f"{type(program.fitted).__name__} as {what}, {size / 1000:,.0f} kB", columns, note


@dataclass(frozen=True)
class Checked:
    """The result of a check.

    Attributes
    ----------
    n_rows : int
        The random rows that were compared.
    largest : float
        The largest difference.
    """

    n_rows: int
    largest: float

    def __str__(self) -> str:
        return (
            f"{self.n_rows:,} random rows agree with predict_proba "
            f"(largest difference {self.largest:.1e})"
        )


def compare(found: Floats, wanted: Floats) -> Checked:
    """Compare what random rows give with what they should give."""
    if found.shape != wanted.shape:
        raise ExportError(
            f"the export gives an array of shape {found.shape} instead of {wanted.shape}",
            "do not use this export, and report the error with the calibrator's file",
        )
    apart = np.abs(found - wanted)
    wrong = ~(apart <= TOLERANCE)  # also where a comparison is false because of NaN
    if wrong.any():
        row = int(wrong.any(axis=1).argmax())
        column = int(wrong[row].argmax())
        raise ExportError(
            f"the export gives {float(found[row, column])!r} instead of "
            f"{float(wanted[row, column])!r} at random row {row} "
            f"({int(wrong.any(axis=1).sum()):,} such rows)",
            "do not use this export, and report the error with the calibrator's file",
        )
    return Checked(len(wanted), float(apart.max()))


def heading(program: Program) -> list[str]:
    """Return the first lines of the comment at the top of a text."""
    kind = type(program.fitted).__name__
    return [
        f"{kind}, exported by varcal {__version__}.",
        "It gives what predict_proba gives, within 1e-8.",
    ]
