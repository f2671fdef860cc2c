"""What every export has: random rows with what `predict_proba` gives for them, and a check.

Scores and numbers are drawn at, between and beyond the cuts of the fitted tables, with missing
and infinite ones among them; levels are fitted, unseen and missing ones. All are drawn
independently of one another, so that no row of the calibration set is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal._export.program import Program
from varcal._input.variables import Variable
from varcal._text import count
from varcal._version import __version__
from varcal.calibrators.steps import sorted_steps
from varcal.exceptions import InputError, VarcalError

#: How far an exact export may be from `predict_proba`.
TOLERANCE = 1e-8
#: Rows that an export carries.
CARRIED = 200
#: A level that no calibrator was fitted on, with what may be misread in SQL.
UNSEEN = "an 'unseen' \"level\" \\"
#: Shares of numbers between cuts, missing, infinite, beyond the cuts, and at a cut.
SHARES = (0.6, 0.06, 0.04, 0.1, 0.2)
#: Dates that are drawn between: 2001 and 2033.
SOME_DATES = (1e9, 2e9)


class ExportError(VarcalError):
    """An export does not give what `predict_proba` gives."""


@dataclass(frozen=True, eq=False)
class RandomRows:
    """Rows and what `predict_proba` gives for them.

    Attributes
    ----------
    p : ndarray of shape (n, K)
        The scores.
    variables : tuple of Variable
        The variables.
    expected : ndarray of shape (n, K)
        The calibrated probabilities.
    """

    p: Floats
    variables: tuple[Variable, ...]
    expected: Floats

    @classmethod
    def of(cls, program: Program, n: int = CARRIED) -> RandomRows:
        """Make up rows."""
        for k in program.used:
            program.level_texts(k)  # refuses levels that cannot be written
        rng = np.random.default_rng(n)
        p = _scores(program, n, rng)
        variables = tuple(_variable(program, k, n, rng) for k in range(len(program.schema.columns)))
        return cls(p, variables, program.expected(p, variables))

    def values(self, k: int) -> list[Any]:
        """Return variable k as plain values, None where they are missing."""
        variable = self.variables[k]
        if variable.kind == "levels":
            return [None if j < 0 else variable.levels[j] for j in variable.values.tolist()]
        return [None if value != value else value for value in variable.values.tolist()]


@dataclass(frozen=True, eq=False, repr=False)
class Export:
    """A fitted calibrator, written for use elsewhere.

    Attributes
    ----------
    rows : RandomRows
        Random rows, with what `predict_proba` gives for them.
    """

    rows: RandomRows
    _program: Program

    @property
    def _size(self) -> int:
        """The size in bytes."""
        raise NotImplementedError

    def __repr__(self) -> str:
        reads = count(len(self._program.used), "variable")
        shown = f"{self._program.kind} of the score and {reads}, {self._size / 1000:,.0f} kB"
        return f"{type(self).__name__}: {shown}"


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
    return [
        f"{program.kind}, exported by varcal {__version__}.",
        "It gives what predict_proba gives, within 1e-8.",
    ]


# Random rows.


def _scores(program: Program, n: int, rng: np.random.Generator) -> Floats:
    k = len(program.outputs)
    p = rng.dirichlet(np.full(k, 0.6), n)
    certain = rng.random(n) < 0.1
    p[certain] = np.eye(k)[rng.integers(0, k, int(certain.sum()))]
    if program.binary:
        known = np.append([0.5], _cuts(program, "score", 1))
        some = rng.random(n) < 0.15
        p[some, 1] = rng.choice(known[(known >= 0) & (known <= 1)], int(some.sum()))
        p[:, 0] = 1.0 - p[:, 1]
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _variable(program: Program, k: int, n: int, rng: np.random.Generator) -> Variable:
    schema = program.schema
    name, kind, levels = schema.names[k], schema.kinds[k], schema.levels[k]
    if kind == "levels":
        codes, odd = rng.integers(0, len(levels), n), rng.random(n)
        codes[odd < 0.1] = -1
        if levels != (False, True):  # there is no third truth value
            codes[odd > 0.9] = len(levels)
        return Variable(name, "levels", codes, (*levels, UNSEEN))
    if kind == "missing":
        return Variable(name, "numeric", np.full(n, np.nan))
    if kind == "duration":
        raise InputError(
            f"variable {name!r} holds durations, which other engines count differently",
            "fit the calibrator on a number instead, such as the seconds or days",
        )
    cuts = _cuts(program, "number", k)
    if kind == "datetime":
        values = _numbers(np.append(cuts, SOME_DATES), n, rng)
        # Instants are whole microseconds, not infinite.
        values = np.where(np.isfinite(values), np.round(values, 3), np.nan)
        zone = "UTC" if schema.variables[k].zoned else ""
        return Variable(name, "datetime", np.clip(values, 0.0, 4e9), zone=zone)
    return Variable(name, "numeric", _numbers(cuts, n, rng))


def _numbers(cuts: Floats, n: int, rng: np.random.Generator) -> AnyArray:
    """Return numbers at, between and beyond cuts, missing and infinite ones."""
    cuts = np.unique(cuts) if len(cuts) else np.array([0.0, 1.0])
    low, high = float(cuts[0]), float(cuts[-1])
    reach = min(max(high - low, abs(high), 1.0), 1e100)
    # Between two neighbouring cuts, each pair as likely as another.
    at = rng.integers(0, max(len(cuts) - 1, 1), n)
    later = cuts[np.minimum(at + 1, len(cuts) - 1)]
    kinds = (
        cuts[at] + rng.random(n) * (later - cuts[at]),
        np.full(n, np.nan),
        rng.choice([-np.inf, np.inf], n),
        rng.choice([low - reach, high + reach], n),
        rng.choice(cuts, n),
    )
    return np.asarray(np.choose(rng.choice(len(kinds), n, p=SHARES), kinds))


def _cuts(program: Program, op: str, k: int) -> Floats:
    """Return the numbers at which steps that read a score or a variable may change what they do."""
    found, read = [np.empty(0)], set()
    for step in sorted_steps(program.outputs):
        if step.op == op and step.data == k:
            read.add(id(step))
        elif read & {id(arg) for arg in step.args}:
            if step.op in ("where", "minimum", "maximum"):  # moved into a range
                read.add(id(step))
            data = {"find": step.data, "curve": getattr(step.data, "knots", None)}
            held = [arg.data for arg in step.args if arg.op == "constant"]
            found += map(np.ravel, [data[step.op]] if step.op in data else held)
    return np.concatenate(found)
