"""Program: the steps of a fitted calibrator, with the names and kinds of what they read."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from varcal._arrays import Floats
from varcal._edge_texts import zone_offset
from varcal._input.predictions import SUM_TOLERANCE
from varcal._input.variables import Variable
from varcal.calibrators import Calibrator
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.schema import Schema
from varcal.calibrators.steps import Step, elementwise, number, sorted_steps
from varcal.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Program:
    """What every target is made from.

    Attributes
    ----------
    fitted : Calibrator
        The calibrator.
    outputs : tuple of Step
        The steps to the calibrated probability of each class. Parts of dates are computed from the
        dates by two more operations: floor, and clock (data: a time zone), the seconds that a
        clock of this zone shows at an instant.
    """

    fitted: Calibrator
    outputs: tuple[Step, ...]

    @classmethod
    def of(cls, calibrator: Calibrator) -> Program:
        """Take the steps of a fitted calibrator."""
        calibrator._check_fitted()
        return cls(calibrator, _from_dates(calibrator._outputs, calibrator._schema))

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


def _from_dates(outputs: tuple[Step, ...], schema: Schema) -> tuple[Step, ...]:
    """Return steps that compute parts of dates from the dates."""
    if len(schema.columns) == len(schema.names):
        return outputs
    read, made = [number(k) for k in range(len(schema.columns))], dict[int, Step]()
    for column in schema.variables:
        if column.part is not None:
            name, kind, zone = column.part
            read.append(_part(read[schema.names.index(name)], kind, zone))
    for step in sorted_steps(outputs):
        if step.op == "number":
            made[id(step)] = read[step.data]
        else:
            made[id(step)] = replace(step, args=tuple(made[id(arg)] for arg in step.args))
    return tuple(made[id(step)] for step in outputs)


def _part(dates: Step, kind: str, zone: str) -> Step:
    """Return the hour (from 0), weekday (from 1, Monday) or month (from 1) of instants."""
    local = dates + zone_offset(zone)
    if zone and zone != "UTC" and zone[0] not in "+-":
        local = Step("clock", (dates,), zone, name="clock")
    day = _floor(local / 86_400.0).named("day")
    if kind == "hour":
        return _floor((local - day * 86_400.0) / 3_600.0).named("hour")
    if kind == "weekday":  # 1970 began on a Thursday
        return (_remainder(day + 3.0, 7.0) + 1.0).named("weekday")
    # Years begin in March and repeat after 146,097 days (Hinnant, days and civil dates).
    of_era = _remainder(day + 719_468.0, 146_097.0).named("day_of_era")
    leap_days = _floor(of_era / 1_460.0) - _floor(of_era / 36_524.0) + _floor(of_era / 146_096.0)
    year = _floor((of_era - leap_days) / 365.0).named("year")
    begin = year * 365.0 + _floor(year / 4.0) - _floor(year / 100.0)
    month = _floor(((of_era - begin) * 5.0 + 2.0) / 153.0)
    return (_remainder(month + 2.0, 12.0) + 1.0).named("month")


def _floor(x: Step) -> Step:
    return elementwise("floor", x)


def _remainder(x: Step, cycle: float) -> Step:
    return x - _floor(x / cycle) * cycle


def level_text(level: object) -> str:
    """Return a level as text; truth values are "true" and "false"."""
    return str(level).lower() if isinstance(level, bool) else str(level)
