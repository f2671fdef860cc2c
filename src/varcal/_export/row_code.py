"""The steps of a calibrator as the lines of a Python function of one row.

`python_source` and `scorer` share it. Vectors of a few elements are written out element by element;
longer ones are lists, or numpy arrays where numpy may be used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from varcal._arrays import AnyArray
from varcal._export.program import Program
from varcal.calibrators.steps import Curve, Forest, Step, is_lazy, sorted_steps

#: Elements of a vector that are written out one by one.
SHORT = 8
_SIGNS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "less": "<",
    "at_most": "<=",
    "equal": "==",
}
_UNARY = {"log": "log", "exp": "exp", "sqrt": "sqrt", "abs": "abs", "sigmoid": "_sigmoid"}
_ARRAY_UNARY = {"log": "np.log", "exp": "np.exp", "sqrt": "np.sqrt", "abs": "np.abs"}


@dataclass
class RowCode:
    """Lines of code that compute the outputs of one row.

    Attributes
    ----------
    program : Program
        The calibrator.
    with_numpy : bool
        Whether long vectors are numpy arrays.
    lines : list of str
        The lines, without indentation.
    constants : dict of str to object
        The tables that they read, by their names in the code.
    results : list of str
        The expressions of the outputs.
    """

    program: Program
    with_numpy: bool
    lines: list[str] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    _found: dict[int, str | list[str]] = field(default_factory=dict)
    _tables: dict[int, str] = field(default_factory=dict)
    _count: int = 0

    @classmethod
    def of(cls, program: Program, *, with_numpy: bool) -> RowCode:
        """Write the lines. Scores are ``s0``, ``s1``, …; variables ``x0``, ``x1``, …."""
        code = cls(program, with_numpy)
        # Of two classes only the second is returned.
        outputs = program.outputs[1:] if program.binary else program.outputs
        for step in sorted_steps(outputs, lazy=True):
            code._add(step)
        code.results = [code._name(step) for step in outputs]
        return code

    def _add(self, step: Step) -> None:
        handler: Callable[[Step], str | list[str]] | None = getattr(self, f"_of_{step.op}", None)
        if handler is not None:
            self._found[id(step)] = handler(step)
        elif step.width:
            self._found[id(step)] = self._vector(step)
        else:
            self._found[id(step)] = self._assigned(
                _expression(step.op, [self._name(arg) for arg in step.args])
            )

    # The values of steps: the name of a number or a long vector, or a list of expressions.

    def _name(self, step: Step) -> str:
        found = self._found[id(step)]
        assert isinstance(found, str)
        return found

    def _elements(self, step: Step) -> list[str]:
        """Return a number or a vector element by element."""
        found = self._found[id(step)]
        if isinstance(found, list):
            return found
        if not step.width:
            return [found]
        if self.with_numpy:
            found = self._assigned(f"{found}.tolist()")
        return [f"{found}[{k}]" for k in range(step.width)]

    def _array(self, step: Step) -> str:
        """Return the name of a vector as a list, or as a numpy array."""
        found = self._found[id(step)]
        if isinstance(found, str):
            return found
        shown = f"[{', '.join(found)}]"
        return self._assigned(f"np.array({shown})" if self.with_numpy else shown)

    def _assigned(self, expression: str) -> str:
        self._count += 1
        self.lines.append(f"t{self._count} = {expression}")
        return f"t{self._count}"

    def _constant_name(self, value: Any, letter: str) -> str:
        if id(value) not in self._tables:
            name = f"{letter}{len(self.constants)}"
            self._tables[id(value)] = name
            self.constants[name] = value
        return self._tables[id(value)]

    # Operations on numbers, or element by element.

    def _vector(self, step: Step) -> str | list[str]:
        short = step.width <= SHORT or all(
            isinstance(self._found[id(arg)], list) for arg in step.args if arg.width
        )
        if short and not (self.with_numpy and step.width > SHORT):
            cells = [
                self._elements(arg) if arg.width else self._elements(arg) * step.width
                for arg in step.args
            ]
            rows = zip(*cells, strict=True)
            return [self._assigned(_expression(step.op, list(row))) for row in rows]
        args = [self._array(arg) if arg.width else self._name(arg) for arg in step.args]
        if self.with_numpy:
            return self._assigned(_array_expression(step.op, args))
        own = [
            f"e{k}" if arg.width else name
            for k, (arg, name) in enumerate(zip(step.args, args, strict=True))
        ]
        wide = [(f"e{k}", args[k]) for k, arg in enumerate(step.args) if arg.width]
        body = _expression(step.op, own)
        if len(wide) == 1:
            return self._assigned(f"[{body} for {wide[0][0]} in {wide[0][1]}]")
        names, lists = (", ".join(each) for each in zip(*wide, strict=True))
        return self._assigned(f"[{body} for {names} in zip({lists})]")

    # Operations with rules of their own.

    def _of_score(self, step: Step) -> str:
        return f"s{step.data}"

    def _of_number(self, step: Step) -> str:
        return f"x{step.data}"

    def _of_code(self, step: Step) -> str:
        return f"x{step.data}"

    def _of_constant(self, step: Step) -> str | list[str]:
        if not step.width:
            return f"({step.data!r})" if step.data < 0 else repr(step.data)
        if step.width <= SHORT or not self.with_numpy:
            return [f"({v!r})" if v < 0 else repr(v) for v in step.data.tolist()]
        return self._constant_name(step.data, "C")

    def _of_missing(self, step: Step) -> str:
        name = self._name(step.args[0])
        return f"({name} != {name})"

    def _of_among(self, step: Step) -> str:
        held = ", ".join(map(str, step.data))
        return f"({self._name(step.args[0])} in {{{held}}})"

    def _of_find(self, step: Step) -> str:
        cuts = self._constant_name(step.data, "K")
        return self._assigned(f"bisect_left({cuts}, {self._name(step.args[0])})")

    def _of_take(self, step: Step) -> str | list[str]:
        at = self._name(step.args[0])
        table: AnyArray = step.data
        if not step.width:
            return self._assigned(f"{self._constant_name(table, 'T')}[{at}]")
        name, places = self._rows(table, as_array=self.with_numpy and step.width > SHORT)
        row = self._assigned(f"{name}[{places}[{at}]]" if places else f"{name}[{at}]")
        if step.width > SHORT:
            return row
        return [f"{row}[{k}]" for k in range(step.width)]

    def _rows(self, table: AnyArray, *, as_array: bool) -> tuple[str, str]:
        """Return the name of a table, and of the places of rows in it where many are equal."""
        if id(table) in self._tables:
            return self._tables[id(table)], self._tables.get(-id(table), "")
        distinct, places = np.unique(table, axis=0, return_inverse=True)
        # Rows of the same knot need not be written twice.
        if self.with_numpy or len(distinct) > 0.7 * len(table):
            return self._constant_name(table, "A" if as_array else "T"), ""
        name = f"T{len(self.constants)}"
        self.constants[name] = distinct
        self._tables[id(table)] = name
        where = f"P{len(self.constants)}"
        self.constants[where] = places.ravel()
        self._tables[-id(table)] = where
        return name, where

    def _of_curve(self, step: Step) -> str | list[str]:
        shape: Curve = step.data
        x, width = self._name(step.args[0]), step.width
        knots = self._constant_name(shape.knots, "K")
        if not width:
            tables = [self._constant_name(each, "K") for each in (shape.heights, shape.slopes)]
            return self._assigned(f"_curve({x}, {knots}, {', '.join(tables)})")
        low, high = shape.knots[[0, -1]].tolist()
        inside = self._assigned(f"min(max({x}, {low!r}), {high!r})")
        at = f"bisect_left({knots}, {inside}, 1, {max(len(shape.knots) - 1, 1)}) - 1"
        row = self._assigned(f"{self._constant_name(shape.lines, 'T')}[{at}]")
        apart = self._assigned(f"{inside} - {row}[0]")
        return [f"({row}[{1 + k}] + {row}[{1 + width + k}] * {apart})" for k in range(width)]

    def _of_choose(self, step: Step) -> str | list[str]:
        at, options = self._name(step.args[0]), step.args[1:]
        if not is_lazy(step):
            return self._assigned(f"({', '.join(map(self._name, options))},)[{at}]")
        lines, found, names = self.lines, self._found, []
        for _ in range(step.width or 1):
            self._count += 1
            names.append(f"t{self._count}")
        for k, option in enumerate(options):
            # What only this option needs is computed in its branch.
            self.lines, self._found = [], dict(found)
            for each in sorted_steps([option], lazy=True):
                if id(each) not in self._found:
                    self._add(each)
            results = ", ".join(self._elements(option))
            branch = [*self.lines, f"{', '.join(names)} = {results}"]
            lines += [f"{'elif' if k else 'if'} {at} == {k}:", *(f"    {line}" for line in branch)]
        self.lines, self._found = lines, found
        return names if step.width else names[0]

    def _of_trees(self, step: Step) -> str:
        forest: Forest = step.data
        tables = (forest.variable, forest.cut, forest.value)
        names = [self._constant_name(each, "T") for each in tables]
        numbers = ", ".join(self._name(arg) for arg in step.args)
        return self._assigned(f"_trees(({numbers},), {', '.join(names)})")

    def _of_join(self, step: Step) -> str | list[str]:
        if self.with_numpy and step.width > SHORT:
            parts = ", ".join(
                self._array(arg) if arg.width else f"({self._name(arg)},)" for arg in step.args
            )
            return self._assigned(f"np.concatenate(({parts}))")
        if all(isinstance(self._found[id(arg)], list) or not arg.width for arg in step.args):
            return [name for arg in step.args for name in self._elements(arg)]
        parts = ", ".join(
            f"*{self._array(arg)}" if arg.width else self._name(arg) for arg in step.args
        )
        return self._assigned(f"[{parts}]")

    def _of_part(self, step: Step) -> str | list[str]:
        begin, end = step.data
        found = self._found[id(step.args[0])]
        if isinstance(found, list):
            return found[begin:end]
        return self._assigned(f"{found}[{begin}:{end}]")

    def _of_item(self, step: Step) -> str:
        found = self._found[id(step.args[0])]
        if isinstance(found, list):
            return found[step.data]
        item = f".item({step.data})" if self.with_numpy else f"[{step.data}]"
        return self._assigned(f"{found}{item}")

    def _of_dot(self, step: Step) -> str | list[str]:
        vector = self._array(step.args[0])
        if self.with_numpy:
            return self._assigned(f"{vector} @ {self._constant_name(step.data, 'A')}")
        columns = self._constant_name(step.data.T, "T")
        body = f"[sum([a * b for a, b in zip({vector}, e)]) for e in {columns}]"
        return self._assigned(body)

    def _of_arrange(self, step: Step) -> str | list[str]:
        if self.with_numpy:
            vector = self._array(step.args[0])
            return self._assigned(f"{vector}[{self._constant_name(step.data, 'P')}]")
        elements = self._elements(step.args[0])
        return [elements[k] for k in step.data.tolist()]

    def _of_total(self, step: Step) -> str:
        found = self._found[id(step.args[0])]
        if isinstance(found, list):
            return self._assigned(" + ".join(found))
        return self._assigned(f"{found}.sum().item()" if self.with_numpy else f"sum({found})")

    def _of_largest(self, step: Step) -> str:
        found = self._found[id(step.args[0])]
        if isinstance(found, list):
            return self._assigned(f"max({', '.join(found)})")
        return self._assigned(f"{found}.max().item()" if self.with_numpy else f"max({found})")

    def _of_top(self, step: Step) -> str:
        elements = self._array(step.args[0])
        if self.with_numpy:
            return self._assigned(f"int({elements}.argmax())")
        return self._assigned(f"{elements}.index(max({elements}))")


def _expression(op: str, args: list[str]) -> str:
    if op in _SIGNS:
        return f"({args[0]} {_SIGNS[op]} {args[1]})"
    if op in ("minimum", "maximum"):
        return f"{op[:3]}({args[0]}, {args[1]})"
    if op == "where":
        return f"({args[1]} if {args[0]} else {args[2]})"
    return f"{_UNARY[op]}({args[0]})"


def _array_expression(op: str, args: list[str]) -> str:
    if op in _SIGNS:
        return f"{args[0]} {_SIGNS[op]} {args[1]}"
    if op in ("minimum", "maximum", "where"):
        return f"np.{op}({', '.join(args)})"
    return f"{_ARRAY_UNARY[op]}({args[0]})"


def input_lines(program: Program) -> list[str]:
    """Return the lines that read the arguments ``p`` and ``v`` of a row."""
    lines = []
    if program.binary:
        lines += ["s1 = p if p.__class__ is float else _score(p)"]
        lines += ["if not 0 <= s1 <= 1:", "    _refuse(p)"]
    else:
        names = [f"s{k}" for k in range(len(program.outputs))]
        lines.append(f"{', '.join(names)} = _scores(p, {len(names)})")
        off = f"abs({' + '.join(names)} - 1.0) > {program.sum_tolerance!r}"
        outside = " and ".join(f"0 <= {name} <= 1" for name in names)
        lines += [f"if not ({outside}) or {off}:", "    _refuse(p)"]
    for k in program.used:
        name, kind = program.schema.names[k], program.schema.kinds[k]
        if kind == "levels":
            lines.append(f"x{k} = L{k}(v[{name!r}])")
        else:
            lines.append(f"x{k} = v[{name!r}]")
            read = f"x{k} = _number(x{k}, {name!r}, {kind!r})"
            # A date is never a number of Python.
            plain = [] if kind == "datetime" else [f"if x{k}.__class__ is not float:"]
            lines += [*plain, f"    {read}" if plain else read]
    return lines


def level_codes(program: Program, function: Callable[[dict[Any, int], int], Any]) -> dict[str, Any]:
    """Return what gives the code of a level, by its name in the code, for each category."""
    found = {}
    for k in program.used:
        if program.schema.kinds[k] == "levels":
            levels = program.schema.levels[k]
            codes = {level: j for j, level in enumerate(levels)} | {None: len(levels) + 1}
            found[f"L{k}"] = function(codes, len(levels))
    return found
