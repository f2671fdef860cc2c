"""Sums of bets over rows: one pass for the tables of all variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal._binning.bets import BET_FIELDS, log_gains
from varcal._binning.bins import Bins, joint_index
from varcal._input.events import SlicedColumn
from varcal._input.variables import Variable

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
