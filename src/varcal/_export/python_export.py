"""A calibrator as a function of one row: a file of plain Python, and `scorer`, which runs it.

The file imports nothing but the standard library, and checks itself when it is run.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from varcal._export.exported import TOLERANCE, Checked, Export, RandomRows, compare, heading
from varcal._export.program import Program
from varcal._export.scalars import ARITHMETIC, Scalars, Tree
from varcal._files.atomic import write_whole
from varcal._input.dates import FORMATS, LINES, MONTHS, NAME_OF_MONTH, SINGLE_DIGIT
from varcal.calibrators.steps import Step, sorted_steps
from varcal.exceptions import InputError

if TYPE_CHECKING:
    from varcal.calibrators import Calibrator

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


def _number(name):
    def read(value):
        if value.__class__ is float:
            return value
        if _is_missing(value):
            return nan
        kind = getattr(getattr(value, "dtype", None), "kind", "f")
        odd = isinstance(value, (bool, str)) or not hasattr(value, "__float__")
        if odd or kind not in "iuf":
            raise ValueError(f"{name} must be a number; got {value!r}")
        return float(value)

    return read


def _duration(name):
    def read(value):
        if _is_missing(value):
            return nan
        if getattr(getattr(value, "dtype", None), "kind", "") == "m":
            value = value.astype("timedelta64[us]").item()
        if not hasattr(value, "total_seconds"):
            raise ValueError(f"{name} must be a duration, such as a timedelta; got {value!r}")
        return value.total_seconds()

    return read


def _instant(text, forms):
    # Months as m03, and numbers with two digits.
    plain = MONTH.sub(lambda found: f"m{MONTHS.index(found[1].lower()) + 1:02d}", text)
    plain = DIGIT.sub(lambda found: "0" + found[0], plain)
    for form in forms:
        found = form.fullmatch(text) or form.fullmatch(plain)
        if found:
            zone = (found["zone"] or "").upper()
            zone = "+00:00" if zone in ("Z", "UTC", "GMT") else zone
            day = "{year}-{month}-{day}".format_map(found.groupdict())
            return datetime.fromisoformat(f"{day}T{found['time'] or '00:00'}{zone}")
    return text


def _date(name, *forms):
    forms = [re.compile(form) for form in forms]

    def read(value):
        # Seconds since 1970; a date without a time zone is in UTC.
        if _is_missing(value):
            return nan
        if isinstance(value, str):
            with suppress(ValueError):  # such as the 30th of February
                value = _instant(value, forms)
        elif getattr(getattr(value, "dtype", None), "kind", "") == "M":
            value = value.astype("datetime64[us]").item()
        if not hasattr(value, "toordinal"):
            raise ValueError(f"{name} must be a date, or a text such as 2024-03-31; got {value!r}")
        if getattr(value, "tzinfo", None) is not None:
            return value.timestamp()
        return (value - value.__class__(1970, 1, 1)).total_seconds()

    return read


def _level(name, codes):
    n = len(codes)
    numbers = any(hasattr(level, "__float__") for level in codes)

    def read(value):
        if value in codes:
            return codes[value]
        if _is_missing(value):
            return n + 1
        # A numpy.str_ has __float__.
        if hasattr(value, "__float__") and not isinstance(value, str) and not numbers:
            raise ValueError(f"{name} must be a category; got {value!r}")
        return n

    return read


def _refuse(p):
    raise ValueError(f"p must be between 0 and 1, and sum to 1 if there are several; got {p!r}")
"""
#: How texts are read as dates.
_DATES = f"""
MONTHS = {[name[:3].lower() for name in MONTHS]!r}
MONTH = re.compile({NAME_OF_MONTH.pattern!r})
DIGIT = re.compile({SINGLE_DIGIT.pattern!r})
"""
_CLOCK = """
def _clock(zone):
    from datetime import timedelta, timezone
    from zoneinfo import ZoneInfo

    known, start = ZoneInfo(zone), datetime(1970, 1, 1, tzinfo=timezone.utc)

    def local(seconds):
        if seconds != seconds:
            return seconds
        try:
            offset = (start + timedelta(seconds=seconds // 1)).astimezone(known).utcoffset()
        except (ValueError, OverflowError, OSError):
            return seconds
        return seconds + offset.total_seconds()

    return local

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

#: Operations as expressions of their arguments; `{K}` is a table.
_EXPRESSIONS = ARITHMETIC | {
    "minimum": "min({}, {})", "maximum": "max({}, {})", "equal": "{} == {}", "log": "log({})",
    "exp": "exp({})", "sqrt": "sqrt({})", "abs": "abs({})", "sigmoid": "_sigmoid({})",
    "floor": "{} // 1.0", "missing": "{0} != {0}", "where": "{1} if {0} else {2}",
    "element": "{K}[{0}]",
    "fraction": "({1} - {K}[{0}]) / ({K}[{0} + 1] - {K}[{0}])",
    "between": "{K}[{0}] + {1} * ({K}[{0} + 1] - {K}[{0}])",
}  # fmt: skip


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

    @property
    def _size(self) -> int:
        return len(self.text.encode())

    def save(self, path: str | PathLike[str]) -> None:
        """Write the file, completely or not at all."""
        write_whole(path, self.text)

    def check(self) -> Checked:
        """Run the source on its random rows."""
        names = _run(self.text)
        found = np.array([names["calibrate"](p, v) for p, v, _ in names["RANDOM_ROWS"]])
        wanted = self.rows.expected
        return compare(*((found[:, None], wanted[:, 1:]) if found.ndim == 1 else (found, wanted)))


def to_python(calibrator: Calibrator) -> PythonExport:
    """Export a calibrator as Python; see `Calibrator.to_python`."""
    program = Program.of(calibrator)
    rows = RandomRows.of(program)
    columns = [_shown_values(program, rows, k) for k in program.used]
    names = [program.schema.names[k] for k in program.used]
    given = rows.p[:, 1].tolist() if program.binary else rows.p.tolist()
    wanted = (rows.expected[:, 1:] if program.binary else rows.expected).tolist()
    variables = [
        {name: column[i] for name, column in zip(names, columns, strict=True)}
        for i in range(len(given))
    ]
    shown = "".join(f"    {row!r},\n" for row in zip(given, variables, wanted, strict=True))
    text = (
        f'"""{" ".join(heading(program))}\n\n'
        "calibrate(p, v) returns the calibrated probability of one row. Run this file to\n"
        f'compare {len(rows.p)} random rows with what predict_proba gave for them.\n"""\n\n'
        f"{_function(program)}\n\n\n"
        "# Rows that were made up: p, v and the calibrated probabilities.\n"
        f"RANDOM_ROWS = [\n{shown}]\n\n{_CHECK.format(tolerance=TOLERANCE)}"
    )
    return PythonExport(rows, program, text)


def _shown_values(program: Program, rows: RandomRows, k: int) -> list[Any]:
    """Return the values of a variable, dates as text."""
    values = rows.values(k)
    if program.schema.kinds[k] != "datetime":
        return values
    form = program.schema.variables[k].date_format or FORMATS[0]
    return [x if x is None else _dated(datetime.fromtimestamp(x, UTC), form) for x in values]


def _dated(instant: datetime, form: str) -> str:
    """Write an instant in one of the ways in which dates are read."""
    month = MONTHS[instant.month - 1] if " " in form else f"{instant.month:02}"
    day = form.replace("day", f"{instant.day:02}").replace("year", f"{instant.year}")
    return f"{day.replace('month', month)}T{instant.timetz().isoformat()}"


def scorer(calibrator: Calibrator) -> Callable[..., Any]:
    """Return a fast function of one row; see `Calibrator.scorer`."""
    program = Program.of(calibrator)
    computed: Any = _run(_function(program))["calibrate"]
    columns = [program.schema.variables[k] for k in program.used]
    known = [column.name for column in columns]
    zoned = {column.name: column.zoned for column in columns if column.kind == "datetime"}

    def score(p: float | Sequence[float], v: Mapping[str, object] | None = None) -> Any:
        try:
            for name, zone in zoned.items():
                given = v[name]  # type: ignore[index]
                dated = isinstance(given, datetime) and given == given  # not pandas.NaT
                if dated and (given.tzinfo is not None) != zone:  # type: ignore[union-attr]
                    have, had = ("no", "a") if zone else ("a", "no")
                    raise ValueError(f"{name} has {have} time zone; in fit it had {had} time zone")
            return computed(p, v)
        except (KeyError, TypeError, ValueError) as error:
            if known and not isinstance(v, Mapping):
                problem = f"v must be a mapping of the variables {', '.join(map(repr, known))}"
                hint = "call scorer(p, {name: value})"
                raise InputError(f"{problem}; got {v!r}", hint, "v") from None
            for name in known:
                if name not in (v or ()):
                    raise InputError.no_column(name, [*map(str, v or ())], "v") from None
            raise InputError(str(error), "give the row of one prediction") from None

    score.__doc__ = f"""Return the calibrated probability of one row by a {program.kind}.

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


def _run(text: str) -> dict[str, Any]:
    """Return the names that a module defines."""
    names: dict[str, Any] = {"__name__": "calibrator"}
    exec(compile(text, "<calibrator>", "exec"), names)
    return names


# The source.


class _RowLines:
    """The lines that compute the outputs of a row, and the tables that they read.

    Scores are ``s0``, ``s1``, …, variables ``x0``, ``x1``, …, tables ``K0``, ``K1``, ….
    """

    def __init__(self, outputs: Sequence[Step]) -> None:
        self.lines: list[str] = []
        self.tables: dict[bytes, tuple[str, Any]] = {}
        self.clocks: dict[str, str] = {}
        self._names: dict[int, str] = {}
        self._count = 0
        steps = Scalars().of(outputs)
        self._used = {id(step) for step in sorted_steps(steps)}
        self.results = self._add(steps)

    def _add(self, outputs: Sequence[Step]) -> list[str]:
        for step in sorted_steps(outputs, lazy=True):
            if id(step) not in self._names:
                self._names[id(step)] = self._name(step)
        return [self._names[id(step)] for step in outputs]

    def _assigned(self, expression: str) -> str:
        self._count += 1
        self.lines.append(f"t{self._count} = {expression}")
        return f"t{self._count}"

    def _table(self, array: Any) -> str:
        return self.tables.setdefault(array.tobytes(), (f"K{len(self.tables)}", array))[0]

    def _name(self, step: Step) -> str:
        match step.op:
            case "constant":
                return f"({step.data!r})" if step.data < 0 else repr(step.data)
            case "score":
                return f"s{step.data}"
            case "number" | "code":
                return f"x{step.data}"
            case "choose":
                return self._choose(step)
        args = [self._names[id(arg)] for arg in step.args]
        match step.op:
            case "sum":
                return self._assigned(f"sum(({', '.join(args)}))")
            case "largest":
                return self._assigned(f"max({', '.join(args)})")
            case "top":
                every = self._assigned(f"({', '.join(args)})")
                return self._assigned(f"{every}.index(max({every}))")
            case "among":
                return f"({args[0]} in {{{', '.join(map(str, step.data))}}})"
            case "find":
                array, begin, end = step.data
                found = f"bisect_left({self._table(array)}, {args[0]}, {begin}, {end})"
                return self._assigned(f"{found} - {begin}" if begin else found)
            case "clock":
                clock = self.clocks.setdefault(step.data, f"clock{len(self.clocks)}")
                return self._assigned(f"{clock}({args[0]})")
            case "tree":
                return self._assigned(_tree(step.data, args))
        table = self._table(step.data) if step.data is not None else ""
        return self._assigned(_EXPRESSIONS[step.op].format(*args, K=table))

    def _choose(self, step: Step) -> str:
        """Write a branch for each option, with what only that option needs."""
        group = [each for each in step.data if id(each) in self._used]
        at, outer, known = self._names[id(step.args[0])], self.lines, self._names
        names = [f"c{self._count}_{k}" for k in range(len(group))]
        self._count += 1
        for k in range(1, len(step.args)):
            self.lines, self._names = [], dict(known)
            results = self._add([each.args[k] for each in group])
            branch = [*self.lines, f"{', '.join(names)} = {', '.join(results)}"]
            outer += [f"{'if' if k == 1 else 'elif'} {at} == {k - 1}:"]
            outer += [f"    {line}" for line in branch]
        self.lines, self._names = outer, known
        self._names.update(zip(map(id, group), names, strict=True))
        return self._names[id(step)]


def _tree(tree: Tree, args: list[str]) -> str:
    if not isinstance(tree, tuple):
        return f"({tree!r})"
    j, cut, left, right = tree
    return f"({_tree(right, args)} if {args[j]} > {cut:.17g} else {_tree(left, args)})"


def _function(program: Program) -> str:
    """Return the source of ``calibrate`` and of all that it needs."""
    code = _RowLines(program.outputs[1:] if program.binary else program.outputs)
    result = code.results[0] if program.binary else f"({', '.join(code.results)},)"
    given = "the probability of the second class" if program.binary else "those of all classes"
    body = [*_input_lines(program), *code.lines, f"return {result}"]
    return "\n".join(
        [
            "import re",
            "from bisect import bisect_left",
            "from contextlib import suppress",
            "from datetime import datetime",
            "from math import exp, inf, log, nan, sqrt",
            "",
            f"CLASSES = {list(program.classes)!r}",
            f"VARIABLES = {[program.schema.names[k] for k in program.used]!r}",
            _DATES + _FUNCTIONS,
            *(_table_text(name, array) for name, array in code.tables.values()),
            *([_CLOCK] if code.clocks else []),
            *(f"{name} = _clock({zone!r})" for zone, name in code.clocks.items()),
            *(f"read{k} = {_reader_text(program, k)}" for k in program.used),
            "",
            "",
            "def calibrate(p, v=None):",
            f'    """Return the calibrated probability of one row; p is {given}."""',
            *(f"    {line}" for line in body),
        ]
    )


def _input_lines(program: Program) -> list[str]:
    """Return the lines that read the arguments of a row."""
    if program.binary:
        lines = ["s1 = p if p.__class__ is float else _score(p)", "if not 0 <= s1 <= 1:"]
    else:
        scores = [f"s{k}" for k in range(len(program.outputs))]
        inside = " and ".join(f"0 <= {name} <= 1" for name in scores)
        lines = [
            f"{', '.join(scores)} = _scores(p, {len(scores)})",
            f"if not ({inside}) or abs({' + '.join(scores)} - 1.0) > {program.sum_tolerance!r}:",
        ]
    lines.append("    _refuse(p)")
    names = program.schema.names
    return [*lines, *(f"x{k} = read{k}(v[{names[k]!r}])" for k in program.used)]


def _reader_text(program: Program, k: int) -> str:
    """Return what makes the function that reads a value of variable k."""
    name, kind, levels = (getattr(program.schema, own)[k] for own in ("names", "kinds", "levels"))
    if kind == "datetime":
        forms = dict.fromkeys([program.schema.variables[k].date_format or FORMATS[0], FORMATS[0]])
        return f"_date({', '.join([repr(name), *(repr(LINES[form].pattern) for form in forms)])})"
    if kind != "levels":
        return f"{'_duration' if kind == 'duration' else '_number'}({name!r})"
    codes = {level: j for j, level in enumerate(levels)}
    return f"_level({name!r}, {codes!r})"


def _table_text(name: str, array: Any) -> str:
    return f"{name} = {textwrap.fill(repr(tuple(array.tolist())), 100, break_on_hyphens=False)}"
