"""Reading and checking of probabilities and log-odds."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats
from varcal._input.frames import Table, column_names, column_of, is_frame, numbers_of
from varcal._input.labels import position_of
from varcal._input.variables import as_series, extremes
from varcal.exceptions import InputError

#: How far the sum of a row's probabilities may be from 1, besides the rounding of their dtype.
SUM_TOLERANCE = 1e-6
#: Values further than this outside [0, 1] are taken for logits or percentages, others for
#: rounding errors; only the hint depends on it.
FAR_OUTSIDE = 0.5


def probabilities(p: object, table: Table | None) -> tuple[AnyArray, tuple[str, ...], str | None]:
    """Return p in its own dtype, the names of its columns, and the library of its frame."""
    names = column_names(p, table)
    if names is not None and table is not None:
        if len(set(names)) < len(names):
            raise InputError(
                f"p names a column twice: {names}", "name one column per class", argument="p"
            )
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
    bad = ~np.isfinite(logits)
    if bad.any():
        _raise_at(logits, bad, "is not finite", "logits are finite numbers")
    if logits.ndim == 1:
        small = np.exp(-np.abs(logits))
        return np.where(logits >= 0, 1.0, small) / (1.0 + small)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _shaped(p: AnyArray) -> AnyArray:
    if p.ndim == 2 and p.shape[1] == 1:
        p = p[:, 0]
    if p.ndim not in (1, 2) or 0 in p.shape[1:]:
        raise InputError(
            f"p has shape {p.shape}",
            "give (n,) for P(y = pos_label), or (n, K) with one column per class",
            argument="p",
        )
    return p


def check_probabilities(p: Floats, given: np.dtype[Any]) -> None:
    """Refuse values outside [0, 1] and rows that do not sum to 1; `given` is the input's dtype."""
    low, high = extremes(p)
    if not (low >= 0 and high <= 1):  # also true when either is NaN
        missing = np.isnan(p)
        if missing.any():
            _raise_at(p, missing, "is missing", "drop such rows or fill them in first")
        outside = (p < 0) | (p > 1)
        if low < -FAR_OUTSIDE or high > 1 + FAR_OUTSIDE:
            hint = "if these are logits, pass {from_logits}; divide percentages by 100"
        else:
            hint = "probabilities lie in [0, 1]; if this is a rounding error, clip them first"
        _raise_at(p, outside, "is outside [0, 1]", hint)
    if p.ndim == 2:
        rounding = float(np.finfo(given).eps) if given.kind == "f" else 0.0
        tolerance = SUM_TOLERANCE + p.shape[1] * rounding
        off = np.abs(p.sum(axis=1) - 1.0) > tolerance
        if off.any():
            row = int(off.argmax())
            raise InputError.at_row(
                "p",
                f"must sum to 1 in each row (within {tolerance:.3g}), but sums to",
                float(p[row].sum()),
                row,
                int(off.sum()),
                "give one column for every class, or divide each row by its sum",
            )


def _raise_at(p: Floats, bad: Bools, problem: str, hint: str) -> None:
    rows = bad if bad.ndim == 1 else bad.any(axis=1)
    row = int(rows.argmax())
    column = None if bad.ndim == 1 else int(bad[row].argmax())
    value = float(p[row] if column is None else p[row, column])
    raise InputError.at_row(
        "p",
        problem,
        value,
        row,
        int(rows.sum()),
        hint,
        column=column,
        settings={"from_logits": True},
    )


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
        argument="p",
        settings={"classes": order},
    )
