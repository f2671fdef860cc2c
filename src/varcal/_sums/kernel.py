"""The kernel: sums rows into bins, and bets on rows for monitors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal._input.variables import Variable
from varcal._sums.bins import Bins, NumericBins, joint_index
from varcal._sums.stats import FIELDS, BinnedStats

#: Rows summed at a time: their temporary arrays stay in the processor's cache.
_CHUNK = 65_536


def bin_rows(
    bins: Bins,
    variables: Sequence[Variable],
    score: AnyArray,
    hit: AnyArray,
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
    if weight is None:
        for target, source in _UNWEIGHTED.items():
            table[FIELDS.index(target)] = table[FIELDS.index(source)]
    if not moments:
        table[[name not in _PLAIN for name in FIELDS]] = np.nan
    return BinnedStats(bins, table.reshape(len(FIELDS), n_buckets, bins.size))


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


#: The stakes: the share of its evidence that each bet risks on a row. They span the gaps that
#: matter: 0.025 is best for a gap of half a point, 0.7 for one of twenty points and more.
STAKES = (0.025, 0.05, 0.1, 0.2, 0.4, 0.7)
#: The sums of a table of bets: rows, then the logarithms of what each stake gained by betting
#: that outcomes are more frequent than the scores say, then the same for less frequent.
BET_FIELDS = (
    "n",
    *(f"more {stake:g}" for stake in STAKES),
    *(f"less {stake:g}" for stake in STAKES),
)
# Engines and files treat all tables alike, so they must have the same number of sums.
assert len(BET_FIELDS) == len(FIELDS)


def log_gains(score: Floats, hit: Bools, size: Floats | None, limit: float) -> Floats:
    r"""Return the logarithm of what each bet gains from each row, shape (rows, 2 × stakes).

    With the error :math:`x = h - s` and the limit :math:`\tau`, a row multiplies a bet by
    :math:`1 + \lambda (\pm x - \tau) / (1 + \tau)`. Its mean is at most 1 while the gap is within
    the limit.

    Parameters
    ----------
    score, hit : ndarray
        The claimed probabilities, and whether the event occurred.
    size : ndarray, optional
        Sampling weights as parts of the largest one that is allowed: a row of weight 0.5 risks
        half of the stake.
    limit : float
        The gap that does not count as a fault.

    Examples
    --------
    >>> gains = log_gains(np.array([0.25]), np.array([True]), None, 0.0)
    >>> bool(np.isclose(gains[0, 0], np.log(1 + 0.025 * 0.75)))
    True
    """
    error = hit - score
    sides = np.stack([error, -error], axis=1)
    part = (sides - limit) / (1.0 + limit)
    if size is not None:
        part *= size[:, None]
    gains: Floats = np.log1p(part[:, :, None] * np.array(STAKES))
    return gains.reshape(len(error), -1)


#: Rows at a time: the gains of their bets stay in the processor's cache.
_BET_CHUNK = 8_192


@dataclass(frozen=True, eq=False)
class BetTable:
    """One table of bets: the bins of a variable, by predicted side if there is one.

    Attributes
    ----------
    bins : Bins
        The bins.
    variable : Variable
        The variable.
    side : ndarray of bool or None
        The predicted side of each row.
    """

    bins: Bins
    variable: Variable
    side: Bools | None = None

    @property
    def n_sides(self) -> int:
        """The number of sides."""
        return 1 if self.side is None else 2


def sum_bets(
    tables: Sequence[BetTable],
    score: AnyArray,
    hit: AnyArray,
    size: Floats | None,
    limit: float,
) -> list[Floats]:
    """Sum the bets on one claim into tables of shape (fields, sides, bins).

    Parameters
    ----------
    tables : sequence of BetTable
        The tables; the gains of a row are computed once for all of them.
    score, hit, size, limit
        As in `log_gains`.
    """
    sums = [np.zeros((table.n_sides * table.bins.size, len(BET_FIELDS))) for table in tables]
    for start in range(0, len(score), _BET_CHUNK):
        rows = slice(start, start + _BET_CHUNK)
        part = None if size is None else size[rows]
        gains = log_gains(score[rows], hit[rows], part, limit)
        values = np.concatenate([np.ones((len(gains), 1)), gains], axis=1)
        for table, total in zip(tables, sums, strict=True):
            cell = joint_index(table.bins, [table.variable], rows)
            if table.side is not None:
                cell = cell + table.bins.size * table.side[rows]
            _add_rows(cell, values, total)
    return [
        total.T.reshape(len(BET_FIELDS), table.n_sides, table.bins.size)
        for table, total in zip(tables, sums, strict=True)
    ]


def _add_rows(cell: Ints, values: Floats, total: Floats) -> None:
    """Add rows of values to the rows of `total` that `cell` names."""
    width = values.shape[1]
    place = (cell[:, None] * width + np.arange(width)).ravel()
    added = np.bincount(place, values.ravel(), minlength=total.size)
    total += added.reshape(total.shape)
