"""Bets on rows, and their sums: one pass for the tables of all variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal._input.events import SlicedColumn
from varcal._input.variables import Variable
from varcal._sums.bins import Bins, joint_index
from varcal._sums.stats import FIELDS

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
_CHUNK = 8_192


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
    score: SlicedColumn,
    hit: SlicedColumn,
    size: Floats | None,
    limit: float,
) -> list[Floats]:
    """Sum the bets on one claim into tables of shape (fields, sides, bins).

    Parameters
    ----------
    tables : sequence of BetTable
        The tables; the gains of a row are computed once for all of them.
    score, hit, size, tolerance
        As in `log_gains`.
    """
    sums = [np.zeros((table.n_sides * table.bins.size, len(BET_FIELDS))) for table in tables]
    for start in range(0, len(score), _CHUNK):
        rows = slice(start, start + _CHUNK)
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
