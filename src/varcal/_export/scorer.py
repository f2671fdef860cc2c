"""scorer: a fitted calibrator as a fast function of one row, the one that `to_python` writes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from varcal._export.program import Program
from varcal._export.python_source import function_lines
from varcal._input.variables import Variable
from varcal.calibrators.rows import score_rows
from varcal.calibrators.schema import Schema
from varcal.exceptions import InputError

if TYPE_CHECKING:
    from varcal.calibrators import Calibrator

#: A function of one row: a score and variables by name.
Score = Callable[..., Any]
#: Stands for the variables that are not looked at.
_ABSENT = Variable("", "numeric", np.zeros(0))


def scorer(calibrator: Calibrator) -> Score:
    """Return a fast function of one row; see `Calibrator.scorer`."""
    program = Program.of(calibrator)
    names: dict[str, Any] = {"__name__": "calibrator"}
    exec(compile("\n".join(function_lines(program)), "<calibrator>", "exec"), names)
    computed: Any = names["calibrate"]
    # Values are read as predict_proba reads them, with the same errors.
    names["_number"] = lambda value, name, kind: _number(program.schema, value, name, kind)
    for k in program.used:
        if program.schema.kinds[k] == "levels":
            names[f"L{k}"] = _level_codes(program.schema.levels[k])
    known = [program.schema.names[k] for k in program.used]
    type_name = type(calibrator).__name__

    def score(p: float | Sequence[float], v: Mapping[str, object] | None = None) -> Any:
        try:
            return computed(p, v)
        except (KeyError, TypeError):
            _explain(v, known)
            raise
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            raise InputError(str(error), "give the row of one prediction", "p") from None

    score.__doc__ = f"""Return the calibrated probability of one row by a {type_name}.

    Parameters
    ----------
    p : float, or a sequence of one probability per class
        The uncalibrated probability: of the second of two classes, or of every class.
    v : mapping, optional
        The variables by name: {", ".join(known) or "none are needed"}.

    Returns
    -------
    float, or a tuple with one per class
    """
    return score


def _level_codes(levels: tuple[Any, ...]) -> Callable[[Any], int]:
    codes = {level: k for k, level in enumerate(levels)} | {None: len(levels) + 1}
    only_texts = all(isinstance(level, str) for level in levels)

    def found(value: Any) -> int:
        try:
            return codes[value]
        except (KeyError, TypeError):
            if value.__class__ is str and value:
                return len(levels)
            variable = Variable.of([value], "v")
        if variable.missing()[0]:
            return len(levels) + 1
        if only_texts and variable.kind != "levels" and not isinstance(value, str):
            raise InputError(
                f"v holds {value!r} where the calibrator was fitted on categories",
                "convert it to the type that it had in fit",
                argument="v",
            )
        return len(levels)

    return found


def _number(schema: Schema, value: Any, name: str, kind: str) -> float:
    """Return a value of a variable as a number: seconds for dates, NaN where it is missing."""
    if value is None:
        return math.nan
    if kind == "numeric" and value.__class__ is int:
        return float(value)
    k = schema.names.index(name)
    if kind == "datetime" and value.__class__ is datetime:
        zoned = value.tzinfo is not None
        if not schema.zoned or zoned == schema.zoned[k]:
            return (value if zoned else value.replace(tzinfo=UTC)).timestamp()
    if kind == "datetime" and isinstance(value, str):
        own = Schema((name,), ("datetime",), ((),), schema.date_formats[k : k + 1])
        (seconds,) = own.align(score_rows([0.5], {name: [value]}, 2).variables)
        return float(seconds[0])
    variable = Variable.of([value], name)
    if variable.kind != kind and not variable.missing()[0]:
        wanted = "a date" if kind == "datetime" else "a number"
        raise InputError(
            f"variable {name!r} must be {wanted}, as in the fit; got {value!r}",
            "convert it to the type that it had in fit",
            argument="v",
        )
    schema.check_zones(tuple(variable if name == one else _ABSENT for one in schema.names))
    return math.nan if variable.missing()[0] else float(variable.values[0])


def _explain(v: object, known: list[str]) -> None:
    """Raise a better error about variables of the wrong kind."""
    if known and not isinstance(v, Mapping):
        raise InputError(
            f"v must be a mapping of the variables {', '.join(map(repr, known))}; got {v!r}",
            "call scorer(p, {name: value})",
            argument="v",
        ) from None
    if isinstance(v, Mapping):
        for name in known:
            if name not in v:
                raise InputError.no_column(name, [str(each) for each in v], "v") from None
