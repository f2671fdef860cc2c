"""The steps of a calibrator, computed with numpy for many rows: what `predict_proba` does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal._threads import one_blas_thread
from varcal.calibrators.steps import Curve, Forest, Step, is_lazy, sorted_steps

#: Numbers in a block of rows, and its least rows, so that what is computed stays in cache.
BLOCK_CELLS, LEAST_BLOCK = 100_000, 256


@dataclass(frozen=True, eq=False)
class _Rows:
    scores: Floats
    variables: Sequence[AnyArray] | Mapping[int, AnyArray]
    n_levels: Sequence[int] | Mapping[int, int]
    at: slice | Ints
    size: int

    def among(self, places: Ints) -> _Rows:
        at = places + self.at.start if isinstance(self.at, slice) else self.at[places]
        return replace(self, at=at, size=len(places))


def evaluate(
    outputs: Sequence[Step],
    scores: Floats,
    variables: Sequence[AnyArray] | Mapping[int, AnyArray] = (),
    n_levels: Sequence[int] | Mapping[int, int] = (),
) -> Floats:
    """Return the outputs of rows, one column each.

    Parameters
    ----------
    outputs : sequence of Step
        The steps.
    scores : ndarray of shape (n,) or (n, K)
        The probability of the second of two classes, or those of all classes.
    variables : sequence of ndarray
        Numbers with NaN, or codes with −1 where they are missing and −2 where they are unseen.
    n_levels : sequence of int
        The number of fitted levels of each variable.

    Examples
    --------
    >>> from varcal.calibrators.steps import score
    >>> evaluate([score(1) * 0.5], np.array([[0.2, 0.8]]))
    array([[0.4]])
    """
    n, outputs = len(scores), tuple(outputs)
    found = np.empty((n, len(outputs)))
    block = n
    if n > LEAST_BLOCK:
        widest = max(step.width for step, *_ in _ordered(outputs))
        block = max(LEAST_BLOCK, BLOCK_CELLS // (4 + widest))
    products = any(step.op == "dot" for step, *_ in _ordered(outputs))
    with one_blas_thread() if products else nullcontext():
        for begin in range(0, n, max(block, 1)):
            at = slice(begin, min(begin + block, n))
            rows = _Rows(scores, variables, n_levels, at, at.stop - begin)
            for k, column in enumerate(_values(outputs, rows)):
                found[at, k] = column
    return found


@lru_cache(maxsize=256)
def _ordered(outputs: tuple[Step, ...]) -> list[tuple[Step, str, list[int], bool]]:
    """Return steps, how they are computed, where their arguments are, and whether one is wide."""
    places: dict[int, int] = {}
    found: list[tuple[Step, str, list[int], bool]] = []
    for step in sorted_steps(outputs, lazy=True):
        places[id(step)] = len(found)
        how = "read" if step.op in _READ else "lazy" if is_lazy(step) else "computed"
        args = [places[id(arg)] for arg in step.args[: 1 if how == "lazy" else None]]
        found.append((step, how, args, any(arg.width for arg in step.args)))
    return found


def _values(outputs: tuple[Step, ...], rows: _Rows) -> list[AnyArray]:
    found: list[AnyArray] = []
    at = {}
    with np.errstate(all="ignore"):
        for step, how, places, wide in _ordered(outputs):
            at[id(step)] = len(found)
            if how == "read":
                found.append(_READ[step.op](step, rows))
            elif how == "lazy":
                found.append(_chosen(step, found[places[0]], rows))
            elif step.op in _OTHERS:
                found.append(_OTHERS[step.op](step, *[found[k] for k in places]))
            else:
                args = [found[k] for k in places]
                if wide:  # a number is combined with every element of a vector
                    args = [each if each.ndim == 2 else each[:, None] for each in args]
                found.append(_ELEMENTWISE[step.op](*args))
    return [found[at[id(step)]] for step in outputs]


def _chosen(step: Step, position: AnyArray, rows: _Rows) -> AnyArray:
    """Compute every option for the rows that choose it."""
    found = np.empty((rows.size, step.width) if step.width else rows.size)
    for k in np.unique(position):
        places = np.flatnonzero(position == k)
        (found[places],) = _values(step.args[1 + int(k) :][:1], rows.among(places))
    return found


def _constant(step: Step, rows: _Rows) -> AnyArray:
    return np.broadcast_to(step.data, (rows.size, *np.shape(step.data)))


def _score(step: Step, rows: _Rows) -> AnyArray:
    if rows.scores.ndim == 2:
        return np.asarray(rows.scores[rows.at, step.data])
    return np.asarray(rows.scores[rows.at] if step.data else 1.0 - rows.scores[rows.at])


def _code(step: Step, rows: _Rows) -> AnyArray:
    codes, size = np.asarray(rows.variables[step.data])[rows.at], rows.n_levels[step.data]
    return np.where(codes < 0, size + 2 + codes, codes)


_READ: dict[str, Callable[[Step, _Rows], AnyArray]] = {
    "score": _score,
    "number": lambda step, rows: np.asarray(rows.variables[step.data], np.float64)[rows.at],
    "code": _code,
    "constant": _constant,
}


def _sigmoid(x: Floats) -> Floats:
    # Each of these operations is monotone after rounding, too.
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


#: Operations that numpy has under the same name, and two others.
_OF_NUMPY = "add subtract multiply divide minimum maximum log exp sqrt abs less equal where"
_ELEMENTWISE: dict[str, Callable[..., AnyArray]] = {
    **{name: getattr(np, name) for name in _OF_NUMPY.split()},
    "sigmoid": _sigmoid,
    "at_most": np.less_equal,
}


def _curve(step: Step, x: Floats) -> Floats:
    shape: Curve = step.data
    if not step.width:
        return interpolated(x, shape.knots, shape.heights)
    inside = np.clip(x, shape.knots[0], shape.knots[-1])
    at = np.searchsorted(shape.knots[1:-1], inside, side="left")
    apart = (inside - shape.knots[at])[:, None]
    return np.asarray(shape.heights[at] + shape.slopes[at] * apart)


def interpolated(x: Floats, knots: Floats, heights: Floats) -> Floats:
    """Return straight lines between knots; where a slope overflows, the height before x."""
    found = np.interp(x, knots, heights)
    lost = ~np.isfinite(found) & ~np.isnan(x)
    if lost.any():
        found[lost] = heights[np.searchsorted(knots, x[lost], side="right").clip(1) - 1]
    return found


def _choose(step: Step, position: AnyArray, *options: AnyArray) -> AnyArray:
    return np.asarray(np.stack(options)[position.astype(np.intp), np.arange(len(position))])


def _trees(step: Step, *numbers: Floats) -> Floats:
    forest: Forest = step.data
    n = len(numbers[0])
    flat, rows, total = np.concatenate(numbers), np.arange(n), np.zeros(n)
    for variable, cut, value in zip(forest.variable, forest.cut, forest.value, strict=True):
        begin, node = variable * n, np.zeros(n, dtype=np.intp)
        for _ in range(forest.depth):
            right = flat.take(begin.take(node) + rows) > cut.take(node)
            node += node + 1 + right
        total += value.take(node - len(cut))
    return total


_OTHERS: dict[str, Callable[..., Any]] = {
    "missing": lambda step, x: np.isnan(x),
    "among": lambda step, x: np.isin(x, step.data),
    "find": lambda step, x: np.searchsorted(step.data, x, side="left"),
    "take": lambda step, at: step.data[at.astype(np.intp)],
    "curve": _curve,
    "choose": _choose,
    "trees": _trees,
    "join": lambda step, *parts: np.column_stack(parts),
    "part": lambda step, x: x[:, step.data[0] : step.data[1]],
    "item": lambda step, x: x[:, step.data],
    "dot": lambda step, x: x @ step.data,
    "arrange": lambda step, x: x[:, step.data],
    "total": lambda step, x: x.sum(axis=1),
    "largest": lambda step, x: x.max(axis=1),
    "top": lambda step, x: x.argmax(axis=1),
}
