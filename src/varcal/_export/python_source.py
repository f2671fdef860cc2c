"""One file of plain Python that calibrates one row at a time.

It imports nothing but `bisect` and `math`, and checks itself when it is run.
"""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from varcal._export.exported import TOLERANCE, Checked, Export, compare, heading
from varcal._export.program import Program, level_texts
from varcal._export.random_rows import RandomRows
from varcal._export.row_code import RowCode
from varcal._files.atomic import write_whole

if TYPE_CHECKING:
    from varcal.calibrators import Calibrator


#: Characters in a line of numbers.
_LINE = 100

_FUNCTIONS = """
def _sigmoid(x):
    tail = exp(-abs(x))
    return 1.0 / (1.0 + tail) if x >= 0 else tail / (1.0 + tail)


def _score(p):
    if not hasattr(p, "__float__") or getattr(p, "shape", ()) != ():
        raise ValueError(f"p must be a number; got {p!r}")
    return float(p)


def _scores(p, n):
    if not hasattr(p, "__len__") or len(p) != n:
        raise ValueError(f"p must be a sequence of {n} numbers; got {p!r}")
    return [_score(each) for each in p]


def _is_missing(value):
    # pandas.NA cannot be compared.
    return value is None or value.__class__.__name__ == "NAType" or value != value


def _number(value, name, kind):
    if _is_missing(value):
        return nan
    kind_of_array = getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "datetime" and kind_of_array == "M":
        value = value.astype("datetime64[us]").item()
    if kind == "datetime" and hasattr(value, "toordinal"):
        # Seconds since 1970; a date without a time zone is in UTC.
        if getattr(value, "tzinfo", None) is not None:
            return value.timestamp()
        return (value - value.__class__(1970, 1, 1)).total_seconds()
    if isinstance(value, (bool, str)) or kind_of_array in ("b", "M"):
        wanted = "a date, or seconds since 1970" if kind == "datetime" else "a number"
        raise ValueError(f"{name} must be {wanted}; got {value!r}")
    return float(value)


def _levels(codes, n):
    def found(value):
        return codes[value] if value in codes else n + 1 if _is_missing(value) else n

    return found


def _refuse(p):
    raise ValueError(f"p must be between 0 and 1, and sum to 1 if there are several; got {p!r}")
"""
_CHECK = '''
def check():
    """Return the largest difference from predict_proba on the random rows."""
    largest = 0.0
    for p, v, wanted in RANDOM_ROWS:
        found = calibrate(p, v)
        found = found if isinstance(found, tuple) else (found,)
        differences = [abs(a - b) for a, b in zip(found, wanted)]
        if not all(each <= {tolerance!r} for each in differences):
            raise AssertionError(f"calibrate({{p!r}}, {{v!r}}) gives {{found}}, not {{wanted}}")
        largest = max(largest, *differences)
    return largest


if __name__ == "__main__":
    print(f"{{len(RANDOM_ROWS)}} random rows agree; largest difference {{check():.1e}}")
'''


@dataclass(frozen=True, eq=False, repr=False)
class PythonExport(Export):
    """A fitted calibrator as the source of a Python module.

    Attributes
    ----------
    text : str
        The source. It defines ``calibrate(p, v)``, and ``check()``, which compares the random
        rows that the module carries with what `predict_proba` gave for them.
    rows : RandomRows
        These rows.
    """

    text: str

    def _what(self) -> tuple[str, int, str]:
        return "a Python module", len(self.text.encode()), "text"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the file, completely or not at all."""
        write_whole(path, self.text)

    def check(self) -> Checked:
        """Run the source on its random rows."""
        names: dict[str, Any] = {"__name__": "calibrator"}
        exec(compile(self.text, "<calibrator>", "exec"), names)
        found = np.array([names["calibrate"](p, v) for p, v, _ in names["RANDOM_ROWS"]])
        wanted = self.rows.expected
        return compare(found if found.ndim == 2 else found[:, None], wanted[:, -_width(wanted) :])


def _width(expected: Any) -> int:
    """Return the number of probabilities that a row gives: one for two classes."""
    return 1 if expected.shape[1] == 2 else int(expected.shape[1])


def to_python(calibrator: Calibrator) -> PythonExport:
    """Export a calibrator as Python; see `Calibrator.to_python`."""
    program = Program.of(calibrator)
    for k in program.used:
        level_texts(program, k)  # refuses levels that cannot be written
    rows = RandomRows.of(program)
    text = "\n".join(
        [
            f'"""{" ".join(heading(program))}',
            "",
            "calibrate(p, v) returns the calibrated probability of one row. Run this file to",
            f"compare {len(rows.p)} random rows with what predict_proba gave for them.",
            '"""',
            "",
            *function_lines(program),
            "",
            "",
            "# Rows that were made up: p, v and the calibrated probabilities.",
            "RANDOM_ROWS = [",
            *(f"    {row}," for row in _row_texts(program, rows)),
            "]",
            "",
            _CHECK.format(tolerance=TOLERANCE).rstrip(),
            "",
        ]
    )
    return PythonExport(rows, program, text)


def function_lines(program: Program) -> list[str]:
    """Return the lines that define ``calibrate``, and all that it needs."""
    code = RowCode.of(program)
    result = code.results[0] if program.binary else f"({', '.join(code.results)},)"
    given = "the probability of the second class" if program.binary else "those of all classes"
    return [
        "from bisect import bisect_left",
        "from math import exp, log, nan, sqrt",
        "",
        f"CLASSES = {_plain(list(program.classes))}",
        f"VARIABLES = {_plain([program.schema.names[k] for k in program.used])}",
        _FUNCTIONS,
        *(_assigned(name, value) for name, value in code.constants.items()),
        *_level_lines(program),
        "",
        "",
        "def calibrate(p, v=None):",
        f'    """Return the calibrated probability of one row; p is {given}."""',
        *(f"    {line}" for line in [*_input_lines(program), *code.lines, f"return {result}"]),
    ]


def _input_lines(program: Program) -> list[str]:
    """Return the lines that read the arguments of a row."""
    if program.binary:
        lines = ["s1 = p if p.__class__ is float else _score(p)", "if not 0 <= s1 <= 1:"]
    else:
        names = [f"s{k}" for k in range(len(program.outputs))]
        outside = " and ".join(f"0 <= {name} <= 1" for name in names)
        lines = [
            f"{', '.join(names)} = _scores(p, {len(names)})",
            f"if not ({outside}) or abs({' + '.join(names)} - 1.0) > {program.sum_tolerance!r}:",
        ]
    lines.append("    _refuse(p)")
    for k in program.used:
        name, kind = program.schema.names[k], program.schema.kinds[k]
        if kind == "levels":
            lines.append(f"x{k} = L{k}(v[{name!r}])")
            continue
        read = f"x{k} = _number(x{k}, {name!r}, {kind!r})"
        # A date is never a number of Python.
        plain = kind != "datetime"
        lines += [f"x{k} = v[{name!r}]", *[f"if x{k}.__class__ is not float:"] * plain]
        lines.append("    " * plain + read)
    return lines


def _level_lines(program: Program) -> list[str]:
    """Return the lines that define what gives the code of a level."""
    lines = []
    for k in program.used:
        if program.schema.kinds[k] == "levels":
            levels = program.schema.levels[k]
            codes = {level: j for j, level in enumerate(levels)} | {None: len(levels) + 1}
            lines.append(f"L{k} = _levels({codes!r}, {len(levels)})")
    return lines


def _assigned(name: str, value: Any) -> str:
    """Write a table as tuples, in lines of readable length."""
    rows = value.tolist()
    cells = [_tuple(row) for row in rows] if value.ndim == 2 else [repr(each) for each in rows]
    body = textwrap.fill(
        ", ".join(cells) + ",",
        _LINE,
        initial_indent="    ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"{name} = (\n{body}\n)"


def _tuple(row: list[float]) -> str:
    return f"({', '.join(map(repr, row))},)"


def _row_texts(program: Program, rows: RandomRows) -> list[str]:
    names = program.schema.names
    columns = {names[k]: rows.values(k) for k in program.used}
    found = []
    for i, (p, wanted) in enumerate(zip(rows.p.tolist(), rows.expected.tolist(), strict=True)):
        v = {name: values[i] for name, values in columns.items()}
        shown = (p[1], v, wanted[1:]) if program.binary else (p, v, wanted)
        found.append(_plain(shown))
    return found


def _plain(value: Any) -> str:
    """Write a value as Python source."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key!r}: {_plain(each)}' for key, each in value.items())}}}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_plain, value))})"
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    return repr(value)
