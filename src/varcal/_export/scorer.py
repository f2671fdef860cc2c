"""scorer: a fitted calibrator as a fast function of one row."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from varcal._export.program import Program
from varcal._export.row_code import RowCode, input_lines, level_codes
from varcal._input.variables import Variable
from varcal.calibrators.rows import score_rows
from varcal.calibrators.schema import Schema
from varcal.exceptions import InputError

if TYPE_CHECKING:
    from varcal.calibrators import Calibrator


#: A function of one row: a score and variables by name.
Score = Callable[..., Any]


def scorer(calibrator: Calibrator) -> Score:
    """Return a fast function of one row; see `Calibrator.scorer`."""
    program = Program.of(calibrator)
    code = RowCode.of(program, with_numpy=True)
    names = {
        "np": np,
        "bisect_left": bisect_left,
        "log": math.log,
        "exp": math.exp,
        "sqrt": math.sqrt,
        "_sigmoid": _sigmoid,
        "_curve": _curve,
        "_trees": _trees,
        "_number": partial(_number, program.schema),
        "_score": _score,
        "_scores": _scores,
        "_refuse": _refuse,
    }
    names |= {name: _held(name, value) for name, value in code.constants.items()}
    names |= level_codes(program, _as_dict)
    body = [*input_lines(program), *code.lines, f"return {_results(program, code)}"]
    text = "\n".join(["def score(p, v):", *(f"    {line}" for line in body)])
    exec(compile(text, "<calibrator>", "exec"), names)
    computed: Any = names["score"]
    known = [program.schema.names[k] for k in program.used]
    type_name = type(calibrator).__name__

    def score(p: float | Sequence[float], v: Mapping[str, object] | None = None) -> Any:
        try:
            return computed(p, v)
        except (KeyError, TypeError):
            _explain(v, known)
            raise

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


def _results(program: Program, code: RowCode) -> str:
    return code.results[0] if program.binary else f"({', '.join(code.results)},)"


def _held(name: str, value: Any) -> Any:
    """Return a table in the form that is read fastest."""
    if name[0] in "ACP":
        return np.ascontiguousarray(value)
    return [tuple(row) for row in value.tolist()] if value.ndim == 2 else value.tolist()


def _as_dict(codes: dict[Any, int], n: int) -> Any:
    only_texts = all(isinstance(level, str) for level in codes if level is not None)

    def found(value: object) -> int:
        try:
            return codes[value]
        except (KeyError, TypeError):
            variable = Variable.of([value], "v")
        if variable.missing()[0]:
            return n + 1
        if only_texts and variable.kind != "levels" and not isinstance(value, str):
            raise InputError(
                f"v holds {value!r} where the calibrator was fitted on categories",
                "convert it to the type that it had in fit",
                argument="v",
            )
        return n

    return found


def _sigmoid(x: float) -> float:
    tail = math.exp(-abs(x))
    return 1.0 / (1.0 + tail) if x >= 0 else tail / (1.0 + tail)


def _curve(x: float, knots: list[float], heights: list[float], slopes: list[float]) -> float:
    at = bisect_right(knots, x) - 1
    if at < 0:
        return heights[0]
    return heights[at] + slopes[at] * (x - knots[at]) if at < len(knots) - 1 else heights[-1]


def _trees(
    numbers: tuple[float, ...],
    variables: list[list[int]],
    cuts: list[list[float]],
    values: list[list[float]],
) -> float:
    total = 0.0
    for variable, cut, value in zip(variables, cuts, values, strict=True):
        node, inner = 0, len(cut)
        while node < inner:
            node += node + (2 if numbers[variable[node]] > cut[node] else 1)
        total += value[node - inner]
    return total


#: Stands for the variables that are not looked at.
_ABSENT = Variable("", "numeric", np.zeros(0))


def _number(schema: Schema, value: object, name: str, kind: str) -> float:
    """Return a value of a variable as a number: seconds for dates, NaN where it is missing."""
    if value is None:
        return math.nan
    if kind == "datetime" and isinstance(value, str):
        return _written_date(schema, value, name)
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


def _written_date(schema: Schema, value: str, name: str) -> float:
    """Read a date from text, as `predict_proba` does."""
    k = schema.names.index(name)
    own = Schema((name,), ("datetime",), ((),), schema.date_formats[k : k + 1])
    (seconds,) = own.align(score_rows([0.5], {name: [value]}, 2).variables)
    return float(seconds[0])


def _score(p: Any) -> float:
    """Return a score of any type in double precision, so that it is computed with as such."""
    if not hasattr(p, "__float__") or getattr(p, "shape", ()) != ():
        raise InputError(f"p must be a number; got {p!r}", "give one row", argument="p")
    return float(p)


def _scores(p: Any, n: int) -> list[float]:
    if not hasattr(p, "__len__") or len(p) != n:
        raise InputError(
            f"p must be a sequence of {n} numbers; got {p!r}", "give one row", argument="p"
        )
    return [each if each.__class__ is float else _score(each) for each in p]


def _refuse(p: object) -> NoReturn:
    raise InputError(
        f"p must be between 0 and 1, and sum to 1 if there are several; got {p!r}",
        "give probabilities",
        argument="p",
    )


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
