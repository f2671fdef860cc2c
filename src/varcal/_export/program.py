"""Program: the steps of a fitted calibrator, with the names and kinds of what they read."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from varcal._arrays import Floats
from varcal._input.predictions import SUM_TOLERANCE
from varcal._input.variables import Variable
from varcal.calibrators import Calibrator
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.schema import Schema
from varcal.calibrators.steps import Step, sorted_steps
from varcal.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Program:
    """What every target is made from.

    Attributes
    ----------
    fitted : Calibrator
        The calibrator.
    outputs : tuple of Step
        The steps to the calibrated probability of each class.
    """

    fitted: Calibrator
    outputs: tuple[Step, ...]

    @classmethod
    def of(cls, calibrator: Calibrator) -> Program:
        """Take the steps of a fitted calibrator."""
        calibrator._check_fitted()
        return cls(calibrator, calibrator._outputs)

    @property
    def kind(self) -> str:
        """The class of the calibrator."""
        return type(self.fitted).__name__

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The labels, in the order of the outputs."""
        return tuple(self.fitted.classes_.tolist())

    @property
    def binary(self) -> bool:
        """Whether there are two classes."""
        return len(self.outputs) == 2

    @property
    def sum_tolerance(self) -> float:
        """How far the sum of the probabilities of many classes may be from 1."""
        return SUM_TOLERANCE + len(self.outputs) * float(np.finfo(np.float64).eps)

    @property
    def schema(self) -> Schema:
        """The variables of the fit; none for calibrators of the score alone."""
        return self.fitted._schema

    @cached_property
    def used(self) -> tuple[int, ...]:
        """The positions of the variables that the steps read."""
        read = {step.data for step in sorted_steps(self.outputs) if step.op in ("number", "code")}
        return tuple(sorted(read))

    def expected(self, p: Floats, variables: tuple[Variable, ...]) -> Floats:
        """Return what `predict_proba` gives for rows."""
        scores = p[:, 1] if self.binary else p
        nothing = np.empty(0, dtype=np.intp)
        k = tuple(range(len(self.outputs)))
        return self.fitted._answer(CalibrationRows(scores, k, nothing, None, variables))

    def level_texts(self, k: int) -> list[str]:
        """Return the levels of variable k as texts, which must differ."""
        found: list[str] = []
        name = self.schema.names[k]
        for level in self.schema.levels[k]:
            if not isinstance(level, str | bool | int):
                raise InputError(
                    f"variable {name!r} has the level {level!r}, which is neither text, a truth "
                    "value nor a whole number",
                    "convert the column to text before fit",
                )
            text = level_text(level)
            if text in found:
                raise InputError(
                    f"variable {name!r} has two levels that are written {text!r}",
                    "convert the column to text before fit",
                )
            found.append(text)
        return found


def level_text(level: object) -> str:
    """Return a level as text; truth values are "true" and "false"."""
    return str(level).lower() if isinstance(level, bool) else str(level)
