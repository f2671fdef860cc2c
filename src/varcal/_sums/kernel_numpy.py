"""The kernel: sums rows into bins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from varcal._input.events import SlicedColumn
from varcal._input.variables import Variable
from varcal._sums.bins import Bins, NumericBins, joint_index
from varcal._sums.stats import FIELDS, BinnedStats

#: Rows summed at a time: their temporary arrays stay in the processor's cache.
_CHUNK = 65_536


def bin_rows(
    bins: Bins,
    variables: Sequence[Variable],
    score: SlicedColumn,
    hit: SlicedColumn,
    weight: NDArray[np.float64] | None = None,
    bucket: NDArray[np.intp] | None = None,
    n_buckets: int = 1,
    *,
    moments: bool = True,
) -> BinnedStats:
    """Sum rows into bins.

    The binning variables, the score and the hit are separate arguments because the paper's
    protocol bins by the score of one model and evaluates another.

    Parameters
    ----------
    bins : Bins
        The bins.
    variables : sequence of Variable
        The variables to bin by, in the order of the parts of `bins`.
    score, hit : ndarray
        The predicted probability of the event in each row, and whether it occurred.
    weight : ndarray, optional
        Sampling weights.
    bucket : ndarray of int, optional
        The bucket of groups that each row belongs to, below `n_buckets`.
    moments : bool
        Whether to sum all fields. Otherwise only rows, weight, hit and score, which are all
        that a plain metric needs; the other fields are NaN.
    """
    size = n_buckets * bins.size
    step = max(_CHUNK, 2 * size)  # adding the sums of a chunk costs as much as some rows
    table = _sum_rows(bins, variables, score, hit, weight, bucket, size, moments=moments, step=step)
    if weight is None:
        for target, source in _UNWEIGHTED.items():
            table[FIELDS.index(target)] = table[FIELDS.index(source)]
    if not moments:
        table[[name not in _PLAIN for name in FIELDS]] = np.nan
    return BinnedStats(bins, table.reshape(len(FIELDS), n_buckets, bins.size))


def _sum_rows(
    bins: Bins,
    variables: Sequence[Variable],
    score: SlicedColumn,
    hit: SlicedColumn,
    weight: NDArray[np.float64] | None,
    bucket: NDArray[np.intp] | None,
    size: int,
    *,
    moments: bool,
    step: int,
) -> NDArray[np.float64]:
    """Return the sums, fields × cells; without weights, fields equal to others are left at 0."""
    table = np.zeros((len(FIELDS), size))
    for start in range(0, len(score), step):
        rows = slice(start, start + step)
        cell = joint_index(bins, variables, rows)
        if bucket is not None:
            cell += bins.size * bucket[rows]
        x = None
        if moments and isinstance(bins, NumericBins):
            x = variables[0].values[rows].astype(np.float64, copy=False)
        s, h, w = score[rows], hit[rows], None if weight is None else weight[rows]
        for name, value in _terms(x, s, h, w, moments).items():
            table[FIELDS.index(name)] += np.bincount(cell, value, minlength=size)
        if weight is None:
            cell *= 2
            cell += h
            counts = np.bincount(cell, minlength=2 * size).reshape(size, 2)
            table[FIELDS.index("n")] += counts.sum(axis=1)
            table[FIELDS.index("hit")] += counts[:, 1]
        else:
            table[FIELDS.index("n")] += np.bincount(cell, minlength=size)
    return table


#: Without weights, the sums of each of these fields equal those of the other.
_UNWEIGHTED = {
    "weight": "n",
    "weight2": "n",
    "hit2": "hit",
    "score2": "score",
    "square2": "square",
    "null2": "null",
}

#: The fields that a plain metric needs.
_PLAIN = ("n", "weight", "hit", "score")


def _terms(
    x: NDArray[np.float64] | None,
    s: NDArray[np.float64],
    h: NDArray[np.bool_],
    w: NDArray[np.float64] | None,
    moments: bool,
) -> dict[str, NDArray[np.float64]]:
    """Return what each row adds to each field, except to plain counts."""
    if not moments:
        return {"score": s} if w is None else {"weight": w, "hit": w * h, "score": w * s}
    u = s * (1.0 - s)
    values = {"score": s, "square": (h - s) ** 2, "null": u}
    fourth = u * (1.0 - 6.0 * u)
    if w is None:
        terms = values | {"fourth": fourth}
    else:
        w2 = w * w
        terms = {"weight": w, "weight2": w2, "fourth": w2 * w2 * fourth}
        for name, value in (values | {"hit": h}).items():
            terms |= {name: w * value, f"{name}2": w2 * value}
    if x is not None:
        at = np.where(np.isfinite(x), x, 0.0)
        with np.errstate(over="ignore"):  # values near 1e308, as in their sums
            terms["x"] = at if w is None else w * at
    return terms
