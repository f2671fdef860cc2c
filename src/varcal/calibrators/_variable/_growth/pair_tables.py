r"""Fine tables of two variables: what is left in each cell where both meet.

Residuals are summed in the cells of every pair of variables, and the table adds about

.. math:: e_c = \frac{\sum_{i \in c} (y_i - \mu_i)}{\sum_{i \in c} \mu_i (1 - \mu_i) + \lambda}.

How much it lowers the loss of held-out rows follows, to second order, from the sums of cells alone:
a fold with sums R and W gains :math:`\sum_c (R_c e_c - W_c e_c^2 / 2)` by a table e of the rows
that may fit it. The best pair is admitted while its gain is several standard errors large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from varcal._arrays import Bools, Floats, Ints
from varcal.calibrators._variable._growth.blend import Held, held_out, held_out_gain

# Tuned constants; ../README.md tells how they were chosen.

#: λ of a table.
PENALTIES = (3.0, 10.0, 30.0, 100.0)
#: The held-out gain, in standard errors, from which a pair gets a table.
LEAST_RATIO = 4.0
#: Tables at most.
MOST_TABLES = 6
#: Pairs at most; variables beyond those of which so many pairs can be made are left out.
MOST_PAIRS = 500


#: Newton steps of a table; a single one falls short of probabilities near 0 and 1.
STEPS = 4


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

    def _check_saved(self) -> None:
        """Raise ValueError unless the table holds numbers of two variables."""
        if self.added.ndim != 2 or not np.isfinite(self.added).all():
            raise ValueError("a table of two variables does not hold numbers")


@dataclass(frozen=True, eq=False)
class CoarseCells:
    """The cells of rows that tables use.

    Attributes
    ----------
    codes : sequence of ndarray
        The coarse cells of the score and of the variables.
    sizes : sequence of int
        The numbers of these cells.
    """

    codes: Sequence[NDArray[np.uint8]]
    sizes: Sequence[int]

    def pairs(self) -> list[tuple[int, int]]:
        """Return all pairs."""
        return list(combinations(range(len(self.codes)), 2))[:MOST_PAIRS]

    def place(self, pair: tuple[int, int]) -> Ints:
        """Return the cell of each row in the table of a pair."""
        first, second = (self.codes[k] for k in pair)
        return first.astype(np.intp) * self.sizes[pair[1]] + second

    def shape(self, pair: tuple[int, int]) -> tuple[int, int]:
        """Return the shape of the table of a pair."""
        return self.sizes[pair[0]], self.sizes[pair[1]]


def fit_tables(
    cells: CoarseCells, rows: Held, etas: Floats, whole: Floats, *, most: int = MOST_TABLES
) -> tuple[tuple[PairTable, ...], Floats]:
    """Return the tables that help, and the predictors of held-out rows with them.

    Parameters
    ----------
    cells : CoarseCells
        The cells of the rows.
    rows : Held
        Their outcomes and folds.
    etas : ndarray of shape (k, n)
        The predictor of each row by the model that is judged on each fold.
    whole : ndarray of shape (n,)
        The predictor of each row by the model of all rows.
    most : int
        Tables at most.
    """
    pairs = cells.pairs()
    tables: list[PairTable] = []
    splits = list(rows.folds.splits())
    while pairs and len(tables) < most:
        slopes = [_slopes(rows, eta) for eta in etas]
        trials = [_trial(cells, pair, splits, slopes) for pair in pairs]
        # A pair that shows nothing is not tried again.
        tried = [(trial, pair) for trial, pair in zip(trials, pairs, strict=True) if trial[0] > 0]
        pairs = [pair for _, pair in tried]
        (gain, error, penalty), pair = max(tried, key=lambda each: each[0][0], default=_NOTHING)
        if gain < LEAST_RATIO * error:
            break
        pairs.remove(pair)
        place, shape = cells.place(pair), cells.shape(pair)
        after = np.array(
            [
                eta + _effect(rows, eta, place, shape, penalty, train).ravel()[place]
                for eta, (train, _) in zip(etas, splits, strict=True)
            ]
        )
        found = held_out_gain(rows, held_out(splits, etas), held_out(splits, after))
        if found.ratio < LEAST_RATIO:
            break
        effect = _effect(rows, whole, place, shape, penalty)
        tables.append(PairTable(pair, effect, found.value, found.error))
        etas, whole = after, whole + effect.ravel()[place]
    return tuple(tables), held_out(splits, etas)


_NOTHING = ((-np.inf, 1.0, 1.0), (0, 0))


def _slopes(rows: Held, eta: Floats) -> tuple[Floats, Floats]:
    mean = expit(eta)
    return rows.mass * (rows.y - mean), rows.mass * mean * (1.0 - mean)


def _effect(
    rows: Held,
    eta: Floats,
    place: Ints,
    shape: tuple[int, int],
    penalty: float,
    some: Bools | slice = slice(None),
) -> Floats:
    """Return what to add in each cell: Newton steps of one parameter with the penalty λ each."""
    y, mass, eta, place = rows.y[some], rows.mass[some], eta[some], place[some]
    size = shape[0] * shape[1]
    effect = np.zeros(size)
    for _ in range(STEPS):
        mean = expit(eta + effect[place])
        slope = np.bincount(place, mass * (y - mean), minlength=size) - penalty * effect
        curvature = np.bincount(place, mass * mean * (1.0 - mean), minlength=size) + penalty
        effect += slope / curvature
    return np.asarray(effect.reshape(shape))


def _trial(
    cells: CoarseCells,
    pair: tuple[int, int],
    splits: list[tuple[Bools, Bools]],
    slopes: list[tuple[Floats, Floats]],
) -> tuple[float, float, float]:
    """Return the largest gain of a pair, its standard error without effects, and λ."""
    place, shape = cells.place(pair), cells.shape(pair)
    size = shape[0] * shape[1]
    gains, squares = np.zeros(len(PENALTIES)), np.zeros(len(PENALTIES))
    for (train, held), (residual, weight) in zip(splits, slopes, strict=True):
        inside, outside = place[train], place[held]
        rest_R = np.bincount(inside, residual[train], minlength=size)
        rest_W = np.bincount(inside, weight[train], minlength=size)
        R = np.bincount(outside, residual[held], minlength=size)
        W = np.bincount(outside, weight[held], minlength=size)
        for k, penalty in enumerate(PENALTIES):
            effect = rest_R / (rest_W + penalty)
            square = float(W @ effect**2)
            gains[k] += float(R @ effect) - square / 2
            squares[k] += square
    best = int(gains.argmax())
    return float(gains[best]), float(np.sqrt(squares[best])), PENALTIES[best]
