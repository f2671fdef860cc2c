"""Steps without vectors: what a query, and a function of one row, consist of.

Vectors are taken apart, equal operations are made one, and what is constant is computed. The
operations are those of `calibrators.steps` on numbers, positions and conditions, with these
instead of the ones on vectors and tables:

======================================= =======================================================
operation                               result
======================================= =======================================================
sum, largest, top                       of any number of arguments
element (data: an array)                its element at a position
find (data: an array, begin, end)       how many of its elements from begin to end are below a
                                        finite number
fraction (data: knots)                  how far a number, the second argument, is on the way from
                                        the knot at a position to the next
between (data: heights)                 a height that far on the way
tree (data: a leaf or a split)          the leaf that the arguments lead to; a split has the
                                        position of an argument, a cut, and what is left and right
floor, clock (data: a time zone)        see `Program`
choose (data: a list of such steps)     as in `calibrators.steps`; the list has the elements of
                                        one vector
======================================= =======================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats
from varcal.calibrators.steps import Curve, Forest, Step, sorted_steps

#: A leaf, or the position of an argument, a cut, and what is left and right of it.
Tree = float | tuple[int, float, Any, Any]

#: Operations that Python and SQL write alike.
ARITHMETIC = {
    "add": "({} + {})", "subtract": "({} - {})", "multiply": "({} * {})", "divide": "({} / {})",
    "less": "({} < {})", "at_most": "({} <= {})",
}  # fmt: skip
#: What changes nothing on the right side of an operation.
_NEUTRAL = {"add": 0.0, "subtract": 0.0, "multiply": 1.0, "divide": 1.0}


class Scalars:
    """Takes steps apart, with a step of its own for each element of a vector."""

    def __init__(self) -> None:
        self._made: dict[Any, Step] = {}
        self._name = ""

    def of(self, outputs: Sequence[Step]) -> list[Step]:
        """Return the scalar steps of outputs that are numbers."""
        cells: dict[int, list[Step]] = {}
        for step in sorted_steps(outputs):
            self._name = step.name
            cells[id(step)] = self._cells(step, [cells[id(arg)] for arg in step.args])
        return [cells[id(step)][0] for step in outputs]

    def _make(self, op: str, args: Iterable[Step] = (), data: Any = None) -> Step:
        args = tuple(args)
        key = (op, tuple(map(id, args)), type(data), _key(data))
        if key not in self._made:
            self._made[key] = Step(op, args, data, name=self._name)
        return self._made[key]

    def _number(self, value: float) -> Step:
        return self._make("constant", (), float(value))

    def _cells(self, step: Step, args: list[list[Step]]) -> list[Step]:
        firsts = [cells[0] for cells in args]
        match step.op:
            case "constant" if not isinstance(step.data, int):
                return [self._number(value) for value in np.atleast_1d(step.data)]
            case "take":
                table = step.data.reshape(len(step.data), -1)
                return [self._element(firsts[0], column) for column in table.T]
            case "join":
                return [cell for cells in args for cell in cells]
            case "part":
                return args[0][slice(*step.data)]
            case "item":
                return [args[0][step.data]]
            case "arrange":
                return [args[0][k] for k in step.data.tolist()]
            case "dot":
                return [self._weighted(args[0], each) for each in step.data.T.tolist()]
            case "total":
                return [self._sum(args[0])]
            case "largest" | "top":
                return [self._make(step.op, args[0])]
            case "choose":
                group: list[Step] = []
                options = zip(*args[1:], strict=True)
                group += [self._make("choose", (firsts[0], *each), group) for each in options]
                return group
            case "trees":
                trees = _pruned_trees(step.data, step.args)
                return [self._sum([self._make("tree", firsts, tree) for tree in trees])]
            case "find":
                return [self._find(firsts[0], step.data, 0, len(step.data))]
            case "curve":
                return self._curve(firsts[0], step.data)
            case "constant" | "score" | "number" | "code" | "among" | "missing" | "clock":
                return [self._make(step.op, firsts, step.data)]
        width = step.width or 1
        columns = [cells * (width // len(cells)) for cells in args]
        return [self._with(step.op, *row) for row in zip(*columns, strict=True)]

    def _element(self, position: Step, column: Floats) -> Step:
        if (column == column[0]).all():
            return self._number(column[0])
        return self._make("element", (position,), np.ascontiguousarray(column))

    def _find(self, x: Step, array: Floats, begin: int, end: int) -> Step:
        if begin >= end:
            return self._make("constant", (), 0)
        return self._make("find", (x,), (array, begin, end))

    def _curve(self, x: Step, shape: Curve) -> list[Step]:
        knots, columns = shape.knots, shape.heights.reshape(len(shape.knots), -1).T
        if len(knots) == 1:
            return [self._number(column[0]) for column in columns]
        low, high = (self._number(knots[k]) for k in (0, -1))
        inside = self._with("minimum", self._with("maximum", x, low), high)
        at = self._find(inside, knots, 1, len(knots) - 1)
        way = self._make("fraction", (at, inside), knots)
        with np.errstate(all="ignore"):
            steep = ~np.isfinite(np.diff(columns) / np.diff(knots))
        return [self._between(at, way, *each) for each in zip(columns, steep, strict=True)]

    def _between(self, at: Step, way: Step, heights: Floats, steep: Bools) -> Step:
        if (heights == heights[0]).all():
            return self._number(heights[0])
        if steep.any():  # where a slope overflows, the height before holds up to the next knot
            zero, one = self._number(0.0), self._number(1.0)
            jump = self._make("where", (self._make("at_most", (one, way)), one, zero))
            is_steep = self._make("equal", (self._element(at, steep.astype(np.float64)), one))
            way = self._make("where", (is_steep, jump, way))
        return self._make("between", (at, way), np.ascontiguousarray(heights))

    def _weighted(self, cells: list[Step], weights: list[float]) -> Step:
        pairs = zip(cells, weights, strict=True)
        return self._sum([self._with("multiply", x, self._number(w)) for x, w in pairs])

    def _sum(self, cells: list[Step]) -> Step:
        kept = [cell for cell in cells if _constant(cell) != 0]
        if len(kept) < 2:
            return kept[0] if kept else self._number(0.0)
        return self._make("sum", kept)

    def _with(self, op: str, *args: Step) -> Step:
        """Return an operation on numbers, unless it changes nothing or is constant."""
        numbers = [_constant(arg) for arg in args]
        if op in ("minimum", "maximum", *_NEUTRAL):
            if None not in numbers:
                return self._number(getattr(np, op)(*numbers))
            if op == "multiply" and 0.0 in numbers:
                return self._number(0.0)
            if numbers[1] is not None and numbers[1] == _NEUTRAL.get(op):
                return args[0]
        return self._make(op, args)


def _key(data: Any) -> Any:
    """Return what is equal for equal data; that of options is only equal to itself."""
    if isinstance(data, np.ndarray):
        return data.tobytes()
    if isinstance(data, list):
        return id(data)
    return tuple(map(_key, data)) if isinstance(data, tuple) else data


def _constant(step: Step) -> float | None:
    return step.data if step.op == "constant" and isinstance(step.data, float) else None


def _pruned_trees(forest: Forest, numbers: Sequence[Step]) -> list[Tree]:
    """Return trees without the splits that no number can pass."""
    ranges = [
        (float(each.data.min()), float(each.data.max())) if each.op == "take" else (-np.inf, np.inf)
        for each in numbers
    ]

    def node(k: int, tree: tuple[AnyArray, ...], held: list[tuple[float, float]]) -> Tree:
        variable, cut, value = tree
        if k >= len(cut):
            return float(value[k - len(cut)])
        j, at = int(variable[k]), float(cut[k])
        low, high = held[j]
        if high <= at or low > at:
            return node(2 * k + 1 + (low > at), tree, held)
        left = node(2 * k + 1, tree, [*held[:j], (low, at), *held[j + 1 :]])
        right = node(2 * k + 2, tree, [*held[:j], (np.nextafter(at, np.inf), high), *held[j + 1 :]])
        return left if left == right else (j, at, left, right)

    every = zip(forest.variable, forest.cut, forest.value, strict=True)
    return [node(0, tree, ranges) for tree in every]
