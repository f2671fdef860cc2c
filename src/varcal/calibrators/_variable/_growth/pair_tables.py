r"""Fine tables of two variables: what is left in each cell where both meet.

The residuals of a predictor that has not seen the row are summed in the cells of every pair of
variables, and the table adds

.. math:: e_c = \frac{\sum_{i \in c} (y_i - \mu_i)}{\sum_{i \in c} \mu_i (1 - \mu_i) + \lambda}.

How much it lowers the loss of held-out rows follows, to second order, from the sums of cells alone:
a fold with sums R and W gains :math:`\sum_c (R_c e_c - W_c e_c^2 / 2)` by a table e of the rows that
may fit it. The best pair is admitted while its gain is several standard errors large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from varcal._arrays import Bools, Floats, Ints
from varcal.calibrators._variable._growth.blend import Held, held_out_gain
from varcal.calibrators._variable.folds import Folds

__all__ = ["CoarseCells", "PairTable", "fit_tables"]

# Tuned constants; ../README.md tells how they were chosen.

#: λ of a table.
PENALTIES = (3.0, 10.0, 30.0, 100.0)
#: The held-out gain, in standard errors, from which a pair gets a table.
LEAST_RATIO = 4.0
#: Tables at most.
MOST_TABLES = 6
#: Pairs at most; variables beyond those of which so many pairs can be made are left out.
MOST_PAIRS = 500


@dataclass(frozen=True, eq=False)
class PairTable:
    """What is added to the predictor in each cell of two variables.

    Attributes
    ----------
    pair : tuple of (int, int)
        Positions among the cells; 0 is the score.
    added : ndarray of shape (cells of the first, cells of the second)
        What is added, by coarse cells.
    gain, error : float
        How much the table lowers the log-loss of held-out rows, and its standard error.
    """

    pair: tuple[int, int]
    added: Floats
    gain: float
    error: float


@dataclass(frozen=True, eq=False)
class CoarseCells:
    """The cells of rows that tables use.

    Attributes
    ----------
    codes : sequence of ndarray or None
        The coarse cells of the score and of every variable; None where nothing varies.
    sizes : sequence of int
        The numbers of these cells.
    """

    codes: Sequence[NDArray[np.uint8] | None]
    sizes: Sequence[int]

    def pairs(self) -> list[tuple[int, int]]:
        """Return all pairs."""
        live = [k for k, codes in enumerate(self.codes) if codes is not None]
        return list(combinations(live, 2))[:MOST_PAIRS]

    def place(self, pair: tuple[int, int]) -> Ints:
        """Return the cell of each row in the table of a pair."""
        first, second = (self.codes[k] for k in pair)
        assert first is not None and second is not None
        return first.astype(np.intp) * self.sizes[pair[1]] + second

    def shape(self, pair: tuple[int, int]) -> tuple[int, int]:
        """Return the shape of the table of a pair."""
        return self.sizes[pair[0]], self.sizes[pair[1]]


def fit_tables(
    cells: CoarseCells, rows: Held, eta: Floats
) -> tuple[tuple[PairTable, ...], Floats]:
    """Return the tables that help, and the predictor of held-out rows with them.

    Parameters
    ----------
    cells : CoarseCells
        The cells of the rows.
    rows : Held
        Their outcomes and folds.
    eta : ndarray
        The predictor of each row by a model that has not seen it.
    """
    pairs, tables = cells.pairs(), []
    while pairs and len(tables) < MOST_TABLES:
        mean = expit(eta)
        residual, weight = rows.mass * (rows.y - mean), rows.mass * mean * (1.0 - mean)
        trials = [_trial(cells, rows.folds, pair, residual, weight) for pair in pairs]
        # A pair that shows nothing is not tried again.
        tried = [(trial, pair) for trial, pair in zip(trials, pairs, strict=True) if trial[0] > 0]
        pairs = [pair for _, pair in tried]
        (gain, error, penalty), pair = max(tried, key=lambda each: each[0][0], default=_NOTHING)
        if gain < LEAST_RATIO * error:
            break
        pairs.remove(pair)
        place, shape = cells.place(pair), cells.shape(pair)
        after = eta.copy()
        for train, held in rows.folds.splits():
            effect = _effect(place[train], residual[train], weight[train], shape, penalty)
            after[held] += effect.ravel()[place[held]]
        found = held_out_gain(rows, eta, after)
        if found.ratio < LEAST_RATIO:
            break
        effect = _effect(place, residual, weight, shape, penalty)
        tables.append(PairTable(pair, effect, found.value, found.error))
        # Rows that are never held out have residuals of a model that has seen them.
        eta = np.where(rows.folds.judged(), after, eta + effect.ravel()[place])
    return tuple(tables), eta


_NOTHING = ((-np.inf, 1.0, 1.0), (0, 0))


def _effect(
    place: Ints, residual: Floats, weight: Floats, shape: tuple[int, int], penalty: float
) -> Floats:
    size = shape[0] * shape[1]
    sums = np.bincount(place, residual, minlength=size)
    found = sums / (np.bincount(place, weight, minlength=size) + penalty)
    return np.asarray(found.reshape(shape))


def _trial(
    cells: CoarseCells, folds: Folds, pair: tuple[int, int], residual: Floats, weight: Floats
) -> tuple[float, float, float]:
    """Return the largest gain of a pair, its standard error without effects, and λ."""
    place, (rows, columns) = cells.place(pair), cells.shape(pair)
    size = rows * columns

    def sums(some: Bools) -> list[Floats]:
        return [np.bincount(place[some], x[some], minlength=size) for x in (residual, weight)]

    if folds.forward:
        R, W = np.array([sums(held) for _, held in folds.splits()]).swapaxes(0, 1)
        rest_R, rest_W = np.array([sums(train) for train, _ in folds.splits()]).swapaxes(0, 1)
    else:
        own, size = place + size * (folds.fold + 1), size * (folds.k + 1)
        R, W = (
            np.bincount(own, x, minlength=size).reshape(folds.k + 1, -1) for x in (residual, weight)
        )
        rest_R, rest_W = (x.sum(axis=0) - x[1:] for x in (R, W))
        R, W = R[1:], W[1:]
    trials = []
    for penalty in PENALTIES:
        effect = rest_R / (rest_W + penalty)
        squares = float((W * effect**2).sum())
        trials.append((float((R * effect).sum()) - squares / 2, float(np.sqrt(squares)), penalty))
    return max(trials)
