"""The steps of a calibrator, computed with numpy for many rows.

This is the reference that other targets can be compared with step by step, and measures how far
an approximation is from a prediction. `predict_proba` does not use it: its look-up reads the same
tables in blocks that stay in cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal.calibrators._neutral.steps import Curve, Forest, Step, sorted_steps


def evaluate(
    outputs: Iterable[Step],
    scores: Floats,
    variables: dict[int, AnyArray],
    n_levels: dict[int, int],
) -> Floats:
    """Return the outputs of rows, one column each.

    Parameters
    ----------
    outputs : iterable of Step
        The steps.
    scores : ndarray of shape (n, K)
        The probabilities of all classes.
    variables : dict of int to ndarray
        Numbers with NaN, or codes with −1 where they are missing and −2 where they are unseen.
    n_levels : dict of int to int
        The number of fitted levels of categories.
    """
    outputs = tuple(outputs)
    found: dict[int, AnyArray] = {}
    for step in sorted_steps(outputs):
        args = [found[id(arg)] for arg in step.args]
        wide = any(arg.width for arg in step.args)
        if step.op in _ELEMENTWISE:
            # A number is combined with every element of a vector.
            lifted = [
                value[:, None] if wide and not arg.width else value
                for arg, value in zip(step.args, args, strict=True)
            ]
            with np.errstate(all="ignore"):
                found[id(step)] = _ELEMENTWISE[step.op](*lifted)
        elif step.op == "score":
            found[id(step)] = scores[:, step.data]
        elif step.op == "number":
            found[id(step)] = np.asarray(variables[step.data], dtype=np.float64)
        elif step.op == "code":
            codes = np.asarray(variables[step.data])
            size = n_levels[step.data]
            found[id(step)] = np.where(codes < 0, size + 2 + codes, codes)
        elif step.op == "constant":
            found[id(step)] = np.broadcast_to(step.data, (len(scores), *np.shape(step.data)))
        else:
            found[id(step)] = _OTHERS[step.op](step, *args)
    return np.column_stack([found[id(step)] for step in outputs])


#: Rows that are computed at once, so that they stay in cache.
BLOCK = 16_384


def in_blocks(
    outputs: Iterable[Step], p: Floats, columns: list[AnyArray], n_levels: Sequence[int]
) -> Floats:
    """Return the outputs of rows, some rows after the others.

    Parameters
    ----------
    outputs : iterable of Step
        The steps.
    p : ndarray of shape (n,) or (n, K)
        The probability of the second class, or those of all classes.
    columns : list of ndarray
        The variables, as for `evaluate`.
    n_levels : sequence of int
        The number of fitted levels of each variable.
    """
    outputs, levels = tuple(outputs), dict(enumerate(n_levels))
    found = np.empty((len(p), len(outputs)))
    for begin in range(0, len(p), BLOCK):
        rows = slice(begin, begin + BLOCK)
        scores = p[rows] if p.ndim == 2 else np.column_stack([1.0 - p[rows], p[rows]])
        variables = {k: column[rows] for k, column in enumerate(columns)}
        found[rows] = evaluate(outputs, scores, variables, levels)
    return found


def _sigmoid(x: Floats) -> Floats:
    # Each of these operations is monotone after rounding, too.
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


_ELEMENTWISE: dict[str, Callable[..., AnyArray]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "minimum": np.minimum,
    "maximum": np.maximum,
    "log": np.log,
    "exp": np.exp,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "sigmoid": _sigmoid,
    "less": np.less,
    "at_most": np.less_equal,
    "equal": np.equal,
    "where": np.where,
}


def _curve(step: Step, x: Floats) -> Floats:
    shape: Curve = step.data
    return interpolated(x, shape.knots, shape.heights)


def interpolated(x: Floats, knots: Floats, heights: Floats) -> Floats:
    """Return straight lines between knots, also where slopes between subnormal ones overflow."""
    found = np.interp(x, knots, heights)
    lost = ~np.isfinite(found) & ~np.isnan(x)
    if lost.any():
        found[lost] = heights[np.searchsorted(knots, x[lost], side="right").clip(1) - 1]
    return found


def _choose(step: Step, position: AnyArray, *options: AnyArray) -> AnyArray:
    cells = np.stack(options)
    return np.asarray(cells[position.astype(np.intp), np.arange(len(position))])


def _trees(step: Step, *numbers: Floats) -> Floats:
    forest: Forest = step.data
    n, inner = len(numbers[0]), forest.variable.shape[1]
    flat, rows = np.concatenate(numbers), np.arange(n)
    total = np.zeros(n)
    for variable, cut, value in zip(forest.variable, forest.cut, forest.value, strict=True):
        begin, node = variable * n, np.zeros(n, dtype=np.intp)
        for _ in range(forest.depth):
            right = flat.take(begin.take(node) + rows) > cut.take(node)
            node += node
            node += 1
            node += right
        total += value.take(node - inner)
    return total


def _join(step: Step, *parts: AnyArray) -> AnyArray:
    return np.column_stack(parts)


_OTHERS: dict[str, Callable[..., Any]] = {
    "missing": lambda step, x: np.isnan(x),
    "among": lambda step, x: np.isin(x, step.data),
    "find": lambda step, x: np.searchsorted(step.data, x, side="left"),
    "take": lambda step, at: step.data[at.astype(np.intp)],
    "curve": _curve,
    "choose": _choose,
    "trees": _trees,
    "join": _join,
    "part": lambda step, x: x[:, step.data[0] : step.data[1]],
    "item": lambda step, x: x[:, step.data],
    "dot": lambda step, x: x @ step.data,
    "arrange": lambda step, x: x[:, step.data],
    "total": lambda step, x: x.sum(axis=1),
    "largest": lambda step, x: x.max(axis=1),
    "top": lambda step, x: x.argmax(axis=1),
}
