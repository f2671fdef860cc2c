"""The steps of a calibrator as operations on single numbers, which SQL consists of.

Vectors are taken apart, equal operations are made one, and what is constant is computed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from varcal.calibrators.steps import Curve, Forest, Step, sorted_steps

#: Products from which a sum of them is faster as an inner product.
_LONG = 24
_ARITHMETIC = {"add", "subtract", "multiply", "divide", "minimum", "maximum"}


@dataclass(frozen=True, eq=False)
class Scalar:
    """An operation on numbers that gives one number, a position or a condition.

    Attributes
    ----------
    op : str
        As in `Step`, with "element" for one column of the row of a table, "sum" and "greatest" of
        any number of arguments, "negative" of one, "list" of numbers, "inner" for the product of
        a list with constants, and "tree" for the leaf of one tree.
    args : tuple of Scalar
        What it is applied to.
    data : object
        Its constants.
    names : list of str
        What it may be called, the best name first.
    """

    op: str
    args: tuple[Scalar, ...] = ()
    data: Any = None
    names: list[str] = field(default_factory=list)

    @property
    def constant(self) -> float | None:
        """The value of a constant number."""
        return self.data if self.op == "constant" and isinstance(self.data, float) else None


class Scalars:
    """Takes steps apart.

    Parameters
    ----------
    most_pieces : float
        Straight lines of a curve beyond which it becomes a table.
    lists : bool
        Whether long sums of products with constants are inner products of lists.
    """

    def __init__(self, most_pieces: float, *, lists: bool) -> None:
        self._most_pieces, self._lists = most_pieces, lists
        self._known: dict[Any, Scalar] = {}
        self._of_step: dict[int, list[Scalar]] = {}
        # Data of operations must live as long as they are compared by identity.
        self._held: list[Any] = []

    def of(self, outputs: Iterable[Step]) -> list[Scalar]:
        """Return the operations of outputs that are numbers."""
        outputs = tuple(outputs)
        for step in sorted_steps(outputs):
            cells = self._cells(step)
            for k, cell in enumerate(cells):
                if step.name:
                    cell.names.append(f"{step.name}_{k + 1}" if step.width else step.name)
            self._of_step[id(step)] = cells
        return [self._of_step[id(step)][0] for step in outputs]

    def _make(self, op: str, args: tuple[Scalar, ...] = (), data: Any = None) -> Scalar:
        plain: Any = data if isinstance(data, int | float | str | None) else id(data)
        if isinstance(data, tuple):
            plain = tuple(each if isinstance(each, int | float) else id(each) for each in data)
        key = (op, tuple(id(arg) for arg in args), type(data), plain)
        if key not in self._known:
            self._known[key] = Scalar(op, args, data)
            self._held.append(data)
        return self._known[key]

    def _number(self, value: float) -> Scalar:
        return self._make("constant", (), value)

    def _cells(self, step: Step) -> list[Scalar]:
        args = [self._of_step[id(arg)] for arg in step.args]
        match step.op:
            case "constant":
                if step.width:
                    return [self._number(value) for value in step.data.tolist()]
                return [self._number(step.data)]
            case "take":
                return self._rows(args[0][0], step.data, step.labels)
            case "join":
                return [cell for cells in args for cell in cells]
            case "part":
                return args[0][step.data[0] : step.data[1]]
            case "item":
                return [args[0][step.data]]
            case "arrange":
                return [args[0][k] for k in step.data.tolist()]
            case "dot":
                if self._lists and len(args[0]) >= _LONG:
                    held = self._make("list", tuple(args[0]))
                    return [self._make("inner", (held,), column) for column in step.data.T]
                return [self._linear(args[0], column) for column in step.data.T]
            case "total":
                return [self._sum(args[0])]
            case "largest":
                return [self._make("greatest", tuple(args[0]))]
            case "top":
                return [self._make("top", tuple(args[0]))]
            case "choose":
                return [self._make("choose", tuple(cells[0] for cells in args))]
            case "trees":
                forest: Forest = step.data
                numbers = tuple(cells[0] for cells in args)
                every = zip(forest.variable, forest.cut, forest.value, strict=True)
                return [self._sum([self._make("tree", numbers, tree) for tree in every])]
            case "find" if not len(step.data):
                return [self._make("constant", (), 0)]
            case "curve" if len(step.data.knots) > self._most_pieces:
                return [self._long_curve(args[0][0], step.data)]
            case "score" | "number" | "code" | "find" | "curve" | "among" | "missing":
                return [self._make(step.op, tuple(cells[0] for cells in args), step.data)]
        width = step.width or 1
        columns = [cells if len(cells) == width else cells * width for cells in args]
        return [self._elementwise(step.op, row) for row in zip(*columns, strict=True)]

    def _rows(self, position: Scalar, table: Any, labels: tuple[str, ...] = ()) -> list[Scalar]:
        """Return the columns of the row of a table at a position."""
        columns = table.T if table.ndim == 2 else table[None, :]
        found = []
        for k, column in enumerate(columns):
            if (column == column[0]).all():
                found.append(self._number(float(column[0])))
            else:
                held = np.ascontiguousarray(column)
                element = self._make("element", (position,), held)
                element.names.append(labels[k] if labels else f"value_{k + 1}")
                found.append(element)
        return found

    def _long_curve(self, x: Scalar, shape: Curve) -> Scalar:
        """Return a curve as a table of straight lines."""
        low, high = (self._number(float(shape.knots[k])) for k in (0, -1))
        inside = self._make("minimum", (self._make("maximum", (x, low)), high))
        inside.names.append("inside")
        position = self._make("find", (inside,), shape.knots[1:-1])
        lines = np.column_stack([shape.knots, shape.heights, shape.slopes])[:-1]
        begin, height, slope = self._rows(position, lines, ("from_value", "height", "slope"))
        apart = self._elementwise("subtract", (inside, begin))
        return self._sum([height, self._elementwise("multiply", (slope, apart))])

    def _sum(self, cells: list[Scalar]) -> Scalar:
        kept = tuple(cell for cell in cells if cell.constant != 0)
        if not kept:
            return self._number(0.0)
        return kept[0] if len(kept) == 1 else self._make("sum", kept)

    def _linear(self, cells: list[Scalar], weights: Any) -> Scalar:
        terms = [
            self._elementwise("multiply", (cell, self._number(float(weight))))
            for cell, weight in zip(cells, weights, strict=True)
            if weight
        ]
        return self._sum(terms)

    def _elementwise(self, op: str, args: tuple[Scalar, ...]) -> Scalar:
        values = [arg.constant for arg in args]
        if op in _ARITHMETIC:
            a, b = args
            left, right = values
            if left is not None and right is not None:
                return self._number(float(getattr(np, op)(left, right)))
            if op == "add" and (left == 0 or right == 0):
                return b if left == 0 else a
            if op == "subtract" and right == 0:
                return a
            if op == "multiply" and (left == 0 or right == 0):
                return self._number(0.0)
            if op == "multiply" and (left == 1 or right == 1):
                return b if left == 1 else a
            if op == "multiply" and (left == -1 or right == -1):
                return self._make("negative", (b if left == -1 else a,))
            if op == "divide" and right == 1:
                return a
        return self._make(op, args)
