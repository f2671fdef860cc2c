"""The steps of a calibrator as operations on single numbers, which SQL consists of.

Vectors are taken apart, equal operations are made one, and what is constant is computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._arrays import Floats
from varcal.calibrators.steps import Curve, Forest, Step, sorted_steps

_ARITHMETIC = ("add", "subtract", "multiply", "divide", "minimum", "maximum")


@dataclass(eq=False)
class Scalar:
    """An operation on numbers that gives one number, a position or a condition.

    Attributes
    ----------
    op : str
        As in `Step`, with "element" for one column of the row of a table, "sum" and "largest" of
        any number of arguments, and "tree" for the leaf of one tree.
    args : tuple of Scalar
        What it is applied to.
    data : object
        Its constants.
    name : str
        What it may be called.
    """

    op: str
    args: tuple[Scalar, ...] = ()
    data: Any = None
    name: str = ""

    @property
    def constant(self) -> float | None:
        """The value of a constant number."""
        return self.data if self.op == "constant" and isinstance(self.data, float) else None


class Scalars:
    """Takes steps apart; `made` has all operations, each after its arguments."""

    def __init__(self) -> None:
        self.made: dict[Any, Scalar] = {}
        self._of_step: dict[int, list[Scalar]] = {}

    def of(self, outputs: Sequence[Step]) -> list[Scalar]:
        """Return the operations of outputs that are numbers."""
        for step in sorted_steps(outputs):
            cells = self._cells(step, [self._of_step[id(arg)] for arg in step.args])
            for k, cell in enumerate(cells):
                cell.name = cell.name or (f"{step.name}_{k + 1}" if step.width else step.name)
            self._of_step[id(step)] = cells
        return [self._of_step[id(step)][0] for step in outputs]

    def _make(self, op: str, args: Iterable[Scalar] = (), data: Any = None) -> Scalar:
        args = tuple(args)
        held = data if isinstance(data, int | float | None) else id(data)
        if op == "find":  # several tables may have the same knots
            held = data.tobytes()
        key = (op, tuple(map(id, args)), type(data), held)
        if key not in self.made:
            self.made[key] = Scalar(op, args, data)
        return self.made[key]

    def _number(self, value: float) -> Scalar:
        return self._make("constant", (), float(value))

    def _cells(self, step: Step, args: list[list[Scalar]]) -> list[Scalar]:
        match step.op:
            case "constant":
                if isinstance(step.data, int):
                    return [self._make("constant", (), step.data)]
                return [self._number(value) for value in np.atleast_1d(step.data)]
            case "take":
                return self._row(args[0][0], step.data.reshape(len(step.data), -1), step.labels)
            case "join":
                return [cell for cells in args for cell in cells]
            case "part":
                return args[0][step.data[0] : step.data[1]]
            case "item":
                return [args[0][step.data]]
            case "arrange":
                return [args[0][k] for k in step.data.tolist()]
            case "dot":
                return [
                    self._sum([self._with("multiply", pair) for pair in self._pairs(args[0], each)])
                    for each in step.data.T
                ]
            case "total":
                return [self._sum(args[0])]
            case "largest" | "top":
                return [self._make(step.op, args[0])]
            case "choose":
                options = zip(*args[1:], strict=True)
                return [self._make("choose", (args[0][0], *each)) for each in options]
            case "trees":
                forest: Forest = step.data
                numbers = [cells[0] for cells in args]
                every = zip(forest.variable, forest.cut, forest.value, strict=True)
                return [self._sum([self._make("tree", numbers, tree) for tree in every])]
            case "find" if not len(step.data):
                return [self._make("constant", (), 0)]
            case "curve":
                return self._curve(args[0][0], step.data)
            case "score" | "number" | "code" | "find" | "among" | "missing":
                return [self._make(step.op, [cells[0] for cells in args], step.data)]
        columns = [
            cells if len(cells) == (step.width or 1) else cells * step.width for cells in args
        ]
        return [self._with(step.op, row) for row in zip(*columns, strict=True)]

    def _pairs(self, cells: list[Scalar], weights: Floats) -> list[tuple[Scalar, Scalar]]:
        weighted = zip(cells, weights.tolist(), strict=True)
        return [(cell, self._number(weight)) for cell, weight in weighted if weight]

    def _row(self, position: Scalar, table: Floats, labels: tuple[str, ...]) -> list[Scalar]:
        """Return the columns of the row of a table at a position."""
        found = []
        for k, column in enumerate(table.T):
            if (column == column[0]).all():
                found.append(self._number(column[0]))
            else:
                element = self._make("element", (position,), np.ascontiguousarray(column))
                element.name = labels[k] if labels else "value"
                found.append(element)
        return found

    def _curve(self, x: Scalar, shape: Curve) -> list[Scalar]:
        """Return curves as straight lines, which are found by a table."""
        low, high = (self._number(shape.knots[k]) for k in (0, -1))
        inside = self._with("minimum", (self._with("maximum", (x, low)), high))
        inside.name = "inside"
        cuts = shape.knots[1:-1]
        position = (
            self._make("find", (inside,), cuts) if len(cuts) else self._make("constant", (), 0)
        )
        width = (shape.lines.shape[1] - 1) // 2
        labels = ("from_value", *["height"] * width, *["slope"] * width)
        begin, *lines = self._row(position, shape.lines, labels)
        apart = self._with("subtract", (inside, begin))
        rises = [self._with("multiply", (slope, apart)) for slope in lines[width:]]
        return [self._with("add", pair) for pair in zip(lines[:width], rises, strict=True)]

    def _sum(self, cells: list[Scalar]) -> Scalar:
        kept = [cell for cell in cells if cell.constant != 0]
        if len(kept) < 2:
            return kept[0] if kept else self._number(0.0)
        return self._make("sum", kept)

    def _with(self, op: str, args: tuple[Scalar, ...]) -> Scalar:
        """Return an operation on numbers, unless it changes nothing or is constant."""
        if op in _ARITHMETIC:
            (a, b), (left, right) = args, (arg.constant for arg in args)
            if left is not None and right is not None:
                return self._number(getattr(np, op)(left, right))
            if op == "multiply" and 0 in (left, right):
                return self._number(0.0)
            neutral = {"add": 0, "multiply": 1}.get(op)
            if neutral is not None and left == neutral:
                return b
            if right == {"add": 0, "subtract": 0, "multiply": 1, "divide": 1}.get(op, np.nan):
                return a
        return self._make(op, args)
