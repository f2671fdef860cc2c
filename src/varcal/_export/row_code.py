"""The steps of a calibrator as the lines of a Python function of one row.

Vectors of a few elements are written out element by element; longer ones are lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

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
_CALLS = {"minimum": "min", "maximum": "max", "sigmoid": "_sigmoid"}


@dataclass
class RowCode:
    """Lines of code that compute the outputs of one row.

    Attributes
    ----------
    lines : list of str
        The lines, without indentation. They read scores as ``s0``, ``s1``, … and variables as
        ``x0``, ``x1``, ….
    constants : dict of str to object
        The tables that they read, by their names in the code.
    results : list of str
        The expressions of the outputs; of two classes only the second is returned.
    """

    lines: list[str] = field(default_factory=list)
    constants: dict[str, Any] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    _found: dict[Any, str | list[str]] = field(default_factory=dict)
    _tables: dict[Any, str] = field(default_factory=dict)
    _count: int = 0

    @classmethod
    def of(cls, program: Program) -> RowCode:
        """Write the lines."""
        code = cls()
        outputs = program.outputs[1:] if program.binary else program.outputs
        code._add(outputs)
        code.results = [code._name(step) for step in outputs]
        return code

    def _add(self, outputs: tuple[Step, ...]) -> None:
        for step in sorted_steps(outputs, lazy=True):
            if id(step) not in self._found:
                rule: Callable[[Step], str | list[str]] = getattr(
                    self, f"_of_{step.op}", self._elementwise
                )
                self._found[id(step)] = rule(step)

    # The values of steps: the name of a number or a long vector, or a list of expressions.

    def _name(self, step: Step) -> str:
        """Return the name of a number, or of a vector as a list."""
        found = self._found[id(step)]
        return found if isinstance(found, str) else self._assigned(f"[{', '.join(found)}]")

    def _elements(self, step: Step) -> list[str]:
        """Return a number or a vector element by element."""
        found = self._found[id(step)]
        if isinstance(found, list):
            return found
        return [f"{found}[{k}]" for k in range(step.width)] if step.width else [found]

    def _assigned(self, expression: str) -> str:
        self._count += 1
        self.lines.append(f"t{self._count} = {expression}")
        return f"t{self._count}"

    def _table(self, value: AnyArray) -> str:
        key = (value.shape, value.dtype.kind, value.tobytes())
        if key not in self._tables:
            self._tables[key] = f"K{len(self.constants)}"
            self.constants[self._tables[key]] = value
        return self._tables[key]

    def _elementwise(self, step: Step) -> str | list[str]:
        if not step.width:
            return self._assigned(_expression(step.op, [self._name(arg) for arg in step.args]))
        if step.width <= SHORT:
            cells = [self._elements(arg) * (1 if arg.width else step.width) for arg in step.args]
            rows = zip(*cells, strict=True)
            return [self._assigned(_expression(step.op, list(row))) for row in rows]
        names = [self._name(arg) for arg in step.args]
        wide = [k for k, arg in enumerate(step.args) if arg.width]
        own = [f"e{k}" if k in wide else name for k, name in enumerate(names)]
        elements, lists = ", ".join(own[k] for k in wide), ", ".join(names[k] for k in wide)
        source = lists if len(wide) == 1 else f"zip({lists})"
        return self._assigned(f"[{_expression(step.op, own)} for {elements} in {source}]")

    # Operations with rules of their own.

    def _of_score(self, step: Step) -> str:
        return f"s{step.data}"

    def _of_number(self, step: Step) -> str:
        return f"x{step.data}"

    _of_code = _of_number

    def _of_constant(self, step: Step) -> str | list[str]:
        if step.width > SHORT:
            return self._table(step.data)
        values = step.data.tolist() if step.width else [step.data]
        shown = [f"({value!r})" if value < 0 else repr(value) for value in values]
        return shown if step.width else shown[0]

    def _of_missing(self, step: Step) -> str:
        name = self._name(step.args[0])
        return f"({name} != {name})"

    def _of_among(self, step: Step) -> str:
        return f"({self._name(step.args[0])} in {{{', '.join(map(str, step.data))}}})"

    def _of_find(self, step: Step) -> str:
        return self._assigned(f"bisect_left({self._table(step.data)}, {self._name(step.args[0])})")

    def _of_take(self, step: Step) -> str | list[str]:
        row = self._assigned(f"{self._table(step.data)}[{self._name(step.args[0])}]")
        return [f"{row}[{k}]" for k in range(step.width)] if 0 < step.width <= SHORT else row

    def _of_curve(self, step: Step) -> str | list[str]:
        shape: Curve = step.data
        at, apart = self._spot(self._name(step.args[0]), shape.knots)
        if not step.width:
            return self._assigned(
                f"{self._table(shape.heights)}[{at}] + {self._table(shape.slopes)}[{at}] * {apart}"
            )
        heights, slopes = (
            self._assigned(f"{self._table(each)}[{at}]") for each in (shape.heights, shape.slopes)
        )
        return [f"({heights}[{k}] + {slopes}[{k}] * {apart})" for k in range(step.width)]

    def _spot(self, x: str, knots: AnyArray) -> list[str]:
        """Return the names of the knot before x, and of how far x is from it."""
        key = (x, self._table(knots))
        if key not in self._found:
            low, high = knots[[0, -1]].tolist()
            inside = self._assigned(f"min(max({x}, {low!r}), {high!r})")
            last = max(len(knots) - 1, 1)
            at = self._assigned(f"bisect_left({key[1]}, {inside}, 1, {last}) - 1")
            self._found[key] = [at, self._assigned(f"{inside} - {key[1]}[{at}]")]
        return cast("list[str]", self._found[key])

    def _of_choose(self, step: Step) -> str | list[str]:
        at, options = self._name(step.args[0]), step.args[1:]
        if not is_lazy(step):
            return self._assigned(f"({', '.join(map(self._name, options))},)[{at}]")
        lines, found = self.lines, self._found
        names = [self._assigned("None") for _ in range(step.width or 1)]
        del lines[len(lines) - len(names) :]
        for k, option in enumerate(options):
            # What only this option needs is computed in its branch.
            self.lines, self._found = [], dict(found)
            self._add((option,))
            results = ", ".join(self._elements(option))
            branch = [*self.lines, f"{', '.join(names)} = {results}"]
            lines += [f"{'elif' if k else 'if'} {at} == {k}:", *(f"    {line}" for line in branch)]
        self.lines, self._found = lines, found
        return names if step.width else names[0]

    def _of_trees(self, step: Step) -> str:
        forest: Forest = step.data
        names = [self._name(arg) for arg in step.args]
        every = zip(forest.variable, forest.cut.tolist(), forest.value.tolist(), strict=True)
        leaves = [_tree(names, *tree) for tree in every]
        parts = [
            self._assigned(" + ".join(leaves[k : k + SHORT]) or "0.0")
            for k in range(0, max(len(leaves), 1), SHORT)
        ]
        return self._assigned(" + ".join(parts))

    def _of_join(self, step: Step) -> str | list[str]:
        if step.width <= SHORT:
            return [name for arg in step.args for name in self._elements(arg)]
        parts = [f"*{self._name(arg)}" if arg.width else self._name(arg) for arg in step.args]
        return self._assigned(f"[{', '.join(parts)}]")

    def _of_part(self, step: Step) -> str | list[str]:
        return self._elements(step.args[0])[slice(*step.data)]

    def _of_item(self, step: Step) -> str:
        return self._elements(step.args[0])[step.data]

    def _of_arrange(self, step: Step) -> str | list[str]:
        elements = self._elements(step.args[0])
        return [elements[k] for k in step.data.tolist()]

    def _of_dot(self, step: Step) -> str | list[str]:
        vector, columns = self._name(step.args[0]), self._table(step.data.T)
        return self._assigned(f"[sum([a * b for a, b in zip({vector}, e)]) for e in {columns}]")

    def _of_total(self, step: Step) -> str:
        return self._assigned(f"sum({self._name(step.args[0])})")

    def _of_largest(self, step: Step) -> str:
        return self._assigned(f"max({self._name(step.args[0])})")

    def _of_top(self, step: Step) -> str:
        elements = self._name(step.args[0])
        return self._assigned(f"{elements}.index(max({elements}))")


def _tree(names: list[str], variable: AnyArray, cut: list[float], value: list[float]) -> str:
    """Write a complete tree as nested conditions."""

    def node(k: int) -> str:
        if k >= len(cut):
            return f"({value[k - len(cut)]!r})"
        left, right = node(2 * k + 1), node(2 * k + 2)
        return (
            left if left == right else f"({right} if {names[variable[k]]} > {cut[k]!r} else {left})"
        )

    return node(0)


def _expression(op: str, args: list[str]) -> str:
    if op in _SIGNS:
        return f"({args[0]} {_SIGNS[op]} {args[1]})"
    if op == "where":
        return f"({args[1]} if {args[0]} else {args[2]})"
    return f"{_CALLS.get(op, op)}({', '.join(args)})"
