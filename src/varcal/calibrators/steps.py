"""Step: one operation on a row, and the functions that make them.

A fitted calibrator is a graph of steps from the scores and variables of a row to its calibrated
probabilities: `predict_proba` evaluates it with numpy (`evaluate`), exports write it in other
languages. A step gives a number, a vector of `width` numbers, a position in a table, or a
condition. These are all operations; a target (SQL, ONNX, …) translates each of them once:

======================================= =======================================================
operation                               result
======================================= =======================================================
score (data: k)                         the probability of class k
number (data: k)                        variable k as a number; it may be missing
code (data: k)                          the position of variable k among its n fitted levels; n
                                        for an unseen level, n + 1 for a missing value
constant (data: a number or vector)     itself; an int is a position
add, subtract, multiply, divide,        of two numbers, or element by element; a number is
minimum, maximum                        combined with every element of a vector
log, exp, sqrt, abs, sigmoid            of a number, or element by element
less, at_most, equal                    a condition on two numbers or positions, or on their
                                        elements; false for a missing value
missing                                 whether a number is missing
among (data: positions)                 whether a position is one of some
where                                   the second argument where the first, a condition, holds,
                                        otherwise the third
find (data: cuts)                       how many cuts are below a finite number
take (data: a table)                    one row of a table, by its position
curve (data: a `Curve`)                 straight lines between knots, at a number: a number, or
                                        a vector with one curve per element
choose                                  one of the arguments after the first, by its position;
                                        the others need not be computed
trees (data: a `Forest`)                the sum of the leaves that numbers lead to
join                                    numbers and vectors, as one vector
part (data: begin, end)                 some of a vector
item (data: k)                          one element of a vector
arrange (data: positions)               the elements of a vector at some positions, as a vector
dot (data: a matrix)                    a vector times a matrix
total, largest                          the sum, or the largest element, of a vector
top                                     the position of the largest element of a vector, the
                                        first one if tied
======================================= =======================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from varcal._arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class Step:
    """One operation.

    Attributes
    ----------
    op : str
        The operation; see the module.
    args : tuple of Step
        What it is applied to.
    data : object
        Its constants.
    width : int
        The length of the vector that it gives; 0 for a number, a position or a condition.
    name : str
        What it computes, for targets that people read; it may be empty.
    labels : tuple of str
        The names of the columns of a table; they may be left out.
    """

    op: str
    args: tuple[Step, ...] = ()
    data: Any = None
    width: int = 0
    name: str = ""
    labels: tuple[str, ...] = ()

    def named(self, name: str) -> Step:
        """Return the step with a name."""
        return replace(self, name=name)

    def part(self, begin: int, end: int) -> Step:
        """Return some elements of a vector."""
        return Step("part", (self,), (begin, end), end - begin)

    def item(self, k: int) -> Step:
        """Return one element of a vector."""
        return Step("item", (self,), k)

    def __add__(self, other: Step | float) -> Step:
        return elementwise("add", self, other)

    def __sub__(self, other: Step | float) -> Step:
        return elementwise("subtract", self, other)

    def __rsub__(self, other: Step | float) -> Step:
        return elementwise("subtract", other, self)

    def __mul__(self, other: Step | float) -> Step:
        return elementwise("multiply", self, other)

    def __truediv__(self, other: Step | float) -> Step:
        return elementwise("divide", self, other)

    def __neg__(self) -> Step:
        return elementwise("subtract", 0.0, self)


@dataclass(frozen=True, eq=False)
class Curve:
    """Straight lines between knots, constant beyond the first and the last.

    Attributes
    ----------
    knots : ndarray of shape (m,)
        Increasing numbers; m is at least 1.
    heights : ndarray of shape (m,) or (m, width)
        The curve at the knots, or one curve per column.
    """

    knots: Floats
    heights: Floats

    @cached_property
    def slopes(self) -> Floats:
        """The slopes after each knot; 0 after the last one."""
        rise = np.diff(self.heights, axis=0)
        gaps = np.diff(self.knots).reshape(-1, *(1,) * (rise.ndim - 1))
        with np.errstate(all="ignore"):
            found = np.concatenate([rise / gaps, 0.0 * self.heights[:1]])
        return np.where(np.isfinite(found), found, 0.0)

    @property
    def lines(self) -> Floats:
        """Knot, heights and slopes of each straight line, which a number between knots is on."""
        m = len(self.knots)
        rows = np.column_stack([self.knots, self.heights, self.slopes])
        return rows[: max(m - 1, 1)]


@dataclass(frozen=True, eq=False)
class Forest:
    """Complete binary trees of equal depth: node j has the children 2j + 1 and 2j + 2.

    Attributes
    ----------
    variable, cut : ndarray of shape (n_trees, 2**depth − 1)
        A row goes right where the number at this position is above the cut.
    value : ndarray of shape (n_trees, 2**depth)
        The leaves.
    """

    variable: Ints
    cut: Floats
    value: Floats

    @property
    def depth(self) -> int:
        """Splits on the way to a leaf."""
        return int(self.value.shape[1]).bit_length() - 1


def constant(value: float | Floats) -> Step:
    """Return a constant number or vector; a whole number is a position."""
    if isinstance(value, int):
        return Step("constant", (), value)
    array = np.asarray(value, dtype=np.float64)
    return Step(
        "constant", (), array if array.ndim else float(array), array.size if array.ndim else 0
    )


def _step(value: Step | float | Floats) -> Step:
    return value if isinstance(value, Step) else constant(value)


def elementwise(op: str, *values: Step | float | Floats) -> Step:
    """Return an operation on numbers, or on the elements of vectors of equal width."""
    steps = tuple(_step(value) for value in values)
    return Step(op, steps, None, max(step.width for step in steps))


def score(k: int) -> Step:
    """Return the probability of class k."""
    return Step("score", (), k)


def number(k: int) -> Step:
    """Return variable k, a number."""
    return Step("number", (), k)


def code(k: int) -> Step:
    """Return the position of variable k among its levels."""
    return Step("code", (), k)


log: Callable[[Step], Step] = partial(elementwise, "log")
exp: Callable[[Step], Step] = partial(elementwise, "exp")
sqrt: Callable[[Step], Step] = partial(elementwise, "sqrt")
sigmoid: Callable[[Step], Step] = partial(elementwise, "sigmoid")
# Whether a < b, a ≤ b and a = b.
less: Callable[[Step | float, Step | float], Step] = partial(elementwise, "less")
at_most: Callable[[Step | float, Step | float], Step] = partial(elementwise, "at_most")
equal: Callable[[Step | float, Step | float], Step] = partial(elementwise, "equal")


def clipped(x: Step, low: float, high: float) -> Step:
    """Return a number moved into a range; an infinite end limits nothing."""
    if low > -np.inf:
        x = elementwise("maximum", x, low)
    return elementwise("minimum", x, high) if high < np.inf else x


def missing(x: Step) -> Step:
    """Return whether a number is missing."""
    return Step("missing", (x,))


def among(position: Step, positions: Iterable[int]) -> Step:
    """Return whether a position is one of some."""
    return Step("among", (position,), tuple(positions))


def where(condition: Step, yes: Step | float | Floats, no: Step | float | Floats) -> Step:
    """Return `yes` where a condition holds, otherwise `no`."""
    steps = (_step(yes), _step(no))
    return Step("where", (condition, *steps), None, max(step.width for step in steps))


def find(x: Step, cuts: Floats) -> Step:
    """Return the number of cuts below x."""
    return Step("find", (x,), np.asarray(cuts, dtype=np.float64))


def take(position: Step, table: Floats, labels: Iterable[str] = ()) -> Step:
    """Return the row of a table at a position; a number if the table has one dimension."""
    table = np.asarray(table, dtype=np.float64)
    width = table.shape[1] if table.ndim == 2 else 0
    return Step("take", (position,), table, width, labels=tuple(labels))


def curve(x: Step, knots: Floats, heights: Floats) -> Step:
    """Return a curve of straight lines at x; several curves with one column of heights each."""
    heights = np.asarray(heights, dtype=np.float64)
    width = heights.shape[1] if heights.ndim == 2 else 0
    return Step("curve", (x,), Curve(np.asarray(knots, dtype=np.float64), heights), width)


def choose(position: Step, options: Iterable[Step]) -> Step:
    """Return the option at a position."""
    found = tuple(options)
    return Step("choose", (position, *found), None, found[0].width)


def trees(numbers: Iterable[Step], forest: Forest) -> Step:
    """Return the sum of the leaves of trees."""
    return Step("trees", tuple(numbers), forest)


def join(parts: Iterable[Step]) -> Step:
    """Return numbers and vectors as one vector."""
    found = tuple(parts)
    return Step("join", found, None, sum(part.width or 1 for part in found))


def dot(x: Step, matrix: Floats) -> Step:
    """Return a vector times a matrix of shape (width of x, width of the result)."""
    return Step("dot", (x,), np.asarray(matrix, dtype=np.float64), matrix.shape[1])


def arrange(x: Step, positions: Ints) -> Step:
    """Return the elements of a vector at some positions, in their order."""
    return Step("arrange", (x,), np.asarray(positions), len(positions))


def total(x: Step) -> Step:
    """Return the sum of a vector."""
    return Step("total", (x,))


def largest(x: Step) -> Step:
    """Return the largest element of a vector."""
    return Step("largest", (x,))


def top(x: Step) -> Step:
    """Return the position of the largest element of a vector."""
    return Step("top", (x,))


def softmax(logits: Step) -> Step:
    """Return exponentials divided by their sum, without overflow."""
    powers = exp(logits - largest(logits)).named("power")
    return powers / total(powers)


def logistic(log_odds: Step) -> tuple[Step, Step]:
    """Return the probabilities of "no" and "yes", both exact where they are small."""
    log_odds = log_odds.named("log_odds")
    return sigmoid(-log_odds), sigmoid(log_odds)


def items(vector: Step) -> tuple[Step, ...]:
    """Return the elements of a vector."""
    return tuple(vector.item(k) for k in range(vector.width))


def class_scores(n_classes: int) -> tuple[Step, ...]:
    """Return the probabilities of all classes; of two, only that of the second is read."""
    if n_classes == 2:
        return 1.0 - score(1), score(1)
    return tuple(score(k) for k in range(n_classes))


def is_lazy(step: Step) -> bool:
    """Return whether the options of a step are worth computing only where they are chosen."""
    return step.op == "choose" and any(
        each.op not in ("item", "constant") for each in step.args[1:]
    )


def sorted_steps(outputs: Iterable[Step], *, lazy: bool = False) -> Iterator[Step]:
    """Yield every step that the outputs depend on, each once and after its arguments.

    With `lazy`, not those that only the options of a lazy step depend on.
    """
    seen: set[int] = set()
    pending = [(step, False) for step in reversed(tuple(outputs))]
    while pending:
        step, ready = pending.pop()
        if ready:
            yield step
        elif id(step) not in seen:
            seen.add(id(step))
            pending.append((step, True))
            needed = step.args[:1] if lazy and is_lazy(step) else step.args
            pending += [(each, False) for each in reversed(needed) if id(each) not in seen]
