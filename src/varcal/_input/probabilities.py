"""Reading and checking of probabilities, log-odds and sampling weights."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal._input.frames import Table, column_names, column_of, is_frame, numbers_of
from varcal._input.labels import Part, position_of
from varcal._input.variables import as_series, extremes, refuse_rows
from varcal.exceptions import InputError

#: How far the sum of a row's probabilities may be from 1, besides the rounding of their dtype.
SUM_TOLERANCE = 1e-6
#: Values further than this outside [0, 1] are taken for logits or percentages, others for
#: rounding errors; only the hint depends on it.
FAR_OUTSIDE = 0.5
#: Weights are scaled if the largest is above 2 to this power, or below 2 to minus this power.
MOST_EXPONENT = 200
#: Smaller weights in relation to the largest one are refused: their fourth powers, which variances
#: of variances need, would vanish. Doubles have 16 digits, so that such rows count for nothing.
LEAST_RATIO = 1e-60


def probabilities(p: object, table: Table | None) -> tuple[AnyArray, tuple[str, ...], str | None]:
    """Return p in its own dtype, the names of its columns, and the library of its frame."""
    names = column_names(p, table)
    if names is not None and table is not None:
        if len(set(names)) < len(names):
            raise InputError(f"p names a column twice: {names}", "name one column per class", "p")
        frame = table
    elif is_frame(p):
        frame = Table.of(p, "p")
        names = list(frame.columns)
    else:
        series = as_series(p)
        backend = None if series is None else str(series.implementation.value)
        return _shaped(numbers_of(column_of(p, table, "p"), "p")), (), backend
    columns = [numbers_of(frame.column(name, "p"), f"p {name!r}") for name in names]
    stacked = columns[0] if len(columns) == 1 else np.column_stack(columns or [np.empty((0, 0))])
    return _shaped(stacked), tuple(names), frame.backend


def from_log_odds(logits: Floats) -> Floats:
    """Convert logits to probabilities."""
    refuse_rows(~np.isfinite(logits), logits, "p", "is not finite", "logits are finite numbers")
    if logits.ndim == 1:
        small = np.exp(-np.abs(logits))
        return np.where(logits >= 0, 1.0, small) / (1.0 + small)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _shaped(p: AnyArray) -> AnyArray:
    if p.ndim == 2 and p.shape[1] == 1:
        p = p[:, 0]
    if p.ndim not in (1, 2) or 0 in p.shape[1:]:
        hint = "give (n,) for P(y = pos_label), or (n, K) with one column per class"
        raise InputError(f"p has shape {p.shape}", hint, "p")
    return p


def check_probabilities(p: Floats, given: np.dtype[Any]) -> None:
    """Refuse values outside [0, 1] and rows that do not sum to 1; `given` is the input's dtype."""
    low, high = extremes(p)
    if not (low >= 0 and high <= 1):  # also true when either is NaN
        refuse_rows(np.isnan(p), p, "p", "is missing", "drop such rows or fill them in first")
        hint = "probabilities lie in [0, 1]; if this is a rounding error, clip them first"
        if low < -FAR_OUTSIDE or high > 1 + FAR_OUTSIDE:
            hint = "if these are logits, pass {from_logits}; divide percentages by 100"
        outside = (p < 0) | (p > 1)
        refuse_rows(outside, p, "p", "is outside [0, 1]", hint, {"from_logits": True})
    if p.ndim == 2:
        rounding = float(np.finfo(given).eps) if given.kind == "f" else 0.0
        tolerance = SUM_TOLERANCE + p.shape[1] * rounding
        sums = p.sum(axis=1)
        problem = f"must sum to 1 in each row (within {tolerance:.3g}), but sums to"
        hint = "give one column for every class, or divide each row by its sum"
        refuse_rows(np.abs(sums - 1.0) > tolerance, sums, "p", problem, hint)


def in_class_order(p: Floats, classes: Sequence[Hashable], pos_label: Hashable) -> Floats:
    """Return p in the order of the classes: a vector of P(y = first class) as both columns.

    A vector is P(y = pos_label). That of the second class stays a vector, and nothing behind this
    function has to know which class a vector is about.

    >>> in_class_order(np.array([0.2, 0.9]), ("bad", "good"), "bad")
    array([[0.2, 0.8],
           [0.9, 0.1]])
    """
    if position_of(classes, pos_label) == 1 or p.ndim == 2:
        return p
    return np.column_stack([p, 1.0 - p])


def check_order(names: Sequence[str], classes: Sequence[Hashable]) -> None:
    """Refuse columns of p that are named after the labels, but in another order."""
    texts = [str(label) for label in classes]
    if list(names) == texts or sorted(names) != sorted(texts):
        return
    order = [classes[texts.index(name)] for name in names]
    raise InputError(
        f"p has columns named {list(names)!r}, but the classes are in the order {list(classes)!r}",
        "column names are ignored; state the order with {classes}",
        "p",
        {"classes": order},
    )


def weights(sample_weight: object, table: Table | None) -> AnyArray:
    """Return weights in their own dtype, before their values are checked."""
    return numbers_of(column_of(sample_weight, table, "sample_weight"), "sample_weight")


def checked_weights(given: AnyArray, part: Part | None) -> Floats:
    """Check the values of weights and scale them if they are extremely large or small."""
    weight: Floats = given.astype(np.float64, copy=False)
    if weight.ndim != 1:
        problem = f"sample_weight has shape {weight.shape}"
        raise InputError(problem, "give one weight per row", "sample_weight")
    bad = ~(np.isfinite(weight) & (weight >= 0))
    problem = "is negative" if (weight[bad][:1] < 0).any() else "is not a finite number"
    refuse_rows(bad, weight, "sample_weight", problem, "weights are finite and not negative")
    largest = float(weight.max(initial=0.0))
    faint = (weight > 0) & (weight < largest * LEAST_RATIO)
    problem = f"is less than {LEAST_RATIO:g} times the largest, {largest:g}"
    hint = "such a row could never matter: give it the weight 0, or correct the weights"
    refuse_rows(faint, weight, "sample_weight", problem, hint)
    if part is None and not largest:
        raise no_weight()
    exponent = weight_exponent(largest) if part is None else part.exponent
    # Scaling by a power of two keeps ratios exact.
    return np.ldexp(weight, -exponent) if exponent else weight


def no_weight() -> InputError:
    """Return the error for weights that are all 0."""
    hint = "at least one weight must be positive"
    return InputError("sample_weight is 0 at every row", hint, "sample_weight")


def weight_exponent(largest: float) -> int:
    """Return the power of two to divide weights by, so that fourth powers do not overflow."""
    exponent = int(np.frexp(largest)[1])
    return exponent if abs(exponent) >= MOST_EXPONENT else 0
