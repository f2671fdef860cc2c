"""Folds that depend on what a row says, not on where it stands.

Equal rows share a fold, so that a weight of 2 is the same as writing the row twice, the order of
rows does not matter, and no random state is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["n_folds_of", "row_folds", "row_hashes"]

_STEPS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def row_hashes(score: NDArray[Any], *columns: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a well-mixed number for every row of a score and numeric columns.

    Of the score four decimals count: rounding elsewhere must not deal the rows out anew.

    >>> a = row_hashes(np.array([1.0, 2.0, 1.0]))
    >>> bool(a[0] == a[2] != a[1])
    True
    """
    total = np.zeros(len(score), dtype=np.uint64)
    for column in (np.round(score, 4), *columns):
        # Adding 0 turns −0 into 0, which equals it.
        bits = (np.asarray(column, dtype=np.float64) + 0.0).view(np.uint64)
        total = _mixed(total * _GOLDEN + bits + _GOLDEN)
    return total


def n_folds_of(n_rows: int) -> int:
    """Return 5, or 3 where many rows leave enough to fit on."""
    return 5 if n_rows <= 10_000 else 3


def row_folds(n_folds: int, score: NDArray[Any], *columns: NDArray[Any]) -> NDArray[np.intp]:
    """Return a fold for every row; distinct rows are dealt out evenly.

    >>> np.bincount(row_folds(5, np.arange(100.0)))
    array([20, 20, 20, 20, 20])
    """
    _, place = np.unique(row_hashes(score, *columns), return_inverse=True)
    return np.asarray(place % n_folds, dtype=np.intp)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        for shift, factor in _STEPS:
            x = (x ^ (x >> shift)) * factor
        return x ^ (x >> np.uint64(31))
