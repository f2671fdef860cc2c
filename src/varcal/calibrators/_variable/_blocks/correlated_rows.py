r"""Blocks of rows that are correlated: days, patients, stores.

Outcomes of the same day may differ together from what the model expects, for reasons that no
variable holds. A curve of the date then learns what happened, not what will happen. With residuals
r and working weights w of a fitted model, the variance component τ² of the logit between blocks b
has the score and the information

.. math:: U = \sum_b \Big[\big(\sum_{i \in b} r_i\big)^2 - \sum_{i \in b} r_i^2\Big], \qquad
          I = \sum_b \Big[\big(\sum_{i \in b} w_i\big)^2 - \sum_{i \in b} w_i^2\Big].

U has mean 0 and variance 2 I where rows are independent, and mean τ² I where they are
correlated. What the model learned of the blocks, as by a smooth curve of the date, is not in the
residuals. To know the rate of every block would save about ½ τ² w̄ of log-loss per row.

References
----------
X. Lin (1997), Variance component testing in generalised linear models with random effects,
Biometrika 84.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import chdtrc

from varcal._arrays import AnyArray, Floats, Ints
from varcal._input.variables import Variable
from varcal.calibrators._variable._reml.losses import Loss

# Tuned constants; README.md says how they were chosen.

#: The p-value below which blocks are correlated, divided by the number of blockings that are tried.
SIGNIFICANT = 0.01
#: The least log-loss per row that knowing the luck of all blocks would save: twice what a
#: calibrator may cost.
LEAST_WORTH = 0.004
#: The least number of blocks of one variable and of a pair of them. With fewer, new rows come from
#: the same blocks.
LEAST_BLOCKS = 30
LEAST_PAIR_BLOCKS = 100
#: The most values of a variable that is crossed with another.
MOST_CROSSED = 100
#: The least mean number of rows in a block, of one variable and of a pair.
LEAST_ROWS_EACH = 2.0
LEAST_PAIR_ROWS_EACH = 3.0
#: A coarser blocking is preferred if it has this share of the most luck.
COARSER_WORTH = 0.5
#: The blocks into which rows are divided by their order, the least number of rows in each, and the
#: p-value below which they are correlated. It changes nothing: a needless warning only disturbs.
ORDER_BLOCKS = 50
ORDER_ROWS_EACH = 20
ORDER_SIGNIFICANT = 1e-4

#: Seconds in a day and a week; weeks begin on Monday (1970 began on a Thursday).
DAY, WEEK, MONDAY = 86_400.0, 604_800.0, 345_600.0


@dataclass(frozen=True, eq=False)
class Blocking:
    """A way to divide rows into blocks: the values of a variable, or of two of them.

    Attributes
    ----------
    names : tuple of str
        The variables.
    values : tuple of ndarray
        A column per variable, one number per row.
    """

    names: tuple[str, ...]
    values: tuple[AnyArray, ...]

    def __str__(self) -> str:
        return " × ".join(self.names)

    def numbers(self, rows: Ints | None = None) -> Ints:
        """Return the number of the block of each row, of all rows or some of them."""
        total = np.zeros(1, dtype=np.intp)
        for column in self.values:
            _, place = np.unique(column if rows is None else column[rows], return_inverse=True)
            total = total * (int(place.max()) + 1) + place
        return np.asarray(np.unique(total, return_inverse=True)[1], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Search:
    """Where to look for blocks of rows that are correlated.

    Attributes
    ----------
    variables : tuple of Variable
        The variables of the rows.
    position : ndarray of int
        The place of each row in the order in which the rows were given.
    """

    variables: tuple[Variable, ...]
    position: Ints

    @classmethod
    def of(cls, variables: Sequence[Variable], order: Ints) -> Search:
        """Return it for rows that are put into another order."""
        return cls(tuple(each.take(order) for each in variables), order)


@dataclass(frozen=True, eq=False)
class Residuals:
    """What a fitted model leaves of some rows; rows with equal scores and variables count as one.

    They may be repetitions of one row, as may be a row with a large weight.

    Attributes
    ----------
    rows : ndarray of int
        Which rows these are: one of each set of equal ones.
    residual, weight : ndarray of float
        Means of minus the first, and of the expected second derivative of the loss.
    """

    rows: Ints
    residual: Floats
    weight: Floats

    @classmethod
    def of(cls, loss: Loss, eta: Floats, equal: AnyArray, rows: Ints) -> Residuals:
        """Average over equal rows.

        Parameters
        ----------
        loss : Loss
            The loss of some rows.
        eta : ndarray
            Their predictors in a fitted model.
        equal : ndarray
            Equal for rows with equal scores and variables.
        rows : ndarray of int
            Which rows they are.
        """
        residual, weight = loss.slopes(eta)
        _, first, place = np.unique(equal, return_index=True, return_inverse=True)
        mass = np.bincount(place, loss.mass())
        residual, weight = (np.bincount(place, each) / mass for each in (residual, weight))
        return cls(rows[first], residual, weight)


@dataclass(frozen=True, eq=False)
class Luck:
    """Luck that the rows of a block share.

    Attributes
    ----------
    blocking : Blocking
        The blocks.
    n_blocks : int
        How many blocks there are among the rows that were looked at.
    worth : float
        What knowing the luck of all blocks would save in log-loss per row.
    p_value : float
        How likely this much would be if rows were independent.
    """

    blocking: Blocking
    n_blocks: int
    worth: float
    p_value: float


def blockings_of(variables: Sequence[Variable], rows: Ints) -> list[Blocking]:
    """Return the ways to divide rows into blocks: many blocks, each of several rows.

    Dates give days and weeks, numbers their values, and two numbers or categories their crossings.
    A category alone does not count: one that was not seen gets the mean effect, so that the luck
    of others cannot harm it.

    Parameters
    ----------
    variables : sequence of Variable
        The variables of all rows.
    rows : ndarray of int
        The rows on which blocks are looked for.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> day, month, age = rng.integers(1, 29, 9000), rng.integers(1, 13, 9000), rng.random(9000)
    >>> columns = {"day": day, "month": month, "age": age}
    >>> variables = [Variable.of(each, name) for name, each in columns.items()]
    >>> [str(each) for each in blockings_of(variables, np.arange(9000))]
    ['day × month']
    """
    found, crossed = [], []
    for each in variables:
        if each.kind == "datetime":
            for what, length, begin in (("week", WEEK, MONDAY), ("day", DAY, 0.0)):
                block = np.floor((each.values - begin) / length)
                found.append(Blocking((f"{what} of {each.name}",), (block,)))
            continue
        number = np.unique(each.values[rows], return_inverse=True)[1]
        alone = Blocking((each.name,), (each.values,))
        if int(number.max(initial=0)) < MOST_CROSSED:
            crossed.append((alone, number))
        if each.kind != "levels":
            found.append(alone)
    found = [one for one in found if _many(one.numbers(rows), LEAST_BLOCKS, LEAST_ROWS_EACH)]
    for (one, a), (other, b) in combinations(crossed, 2):
        both = a * (int(b.max()) + 1) + b
        most = 1.5 * max(int(a.max()), int(b.max()))
        if _many(both, max(LEAST_PAIR_BLOCKS, most), LEAST_PAIR_ROWS_EACH):
            found.append(Blocking(one.names + other.names, one.values + other.values))
    return found


def _many(number: Ints, least: float, each: float) -> bool:
    """Return whether there are many blocks with several rows each."""
    n_blocks = int(np.count_nonzero(np.bincount(number)))
    return n_blocks >= least and len(number) >= each * n_blocks


def correlated_rows(blockings: Sequence[Blocking], residuals: Residuals) -> Luck | None:
    """Return the luck that rows of the same block share, None where there is none worth knowing.

    Of several blockings it is the one with the most luck, or a coarser one with half of it.

    Parameters
    ----------
    blockings : sequence of Blocking
        The blockings of all rows.
    residuals : Residuals
        Those of some of the rows.

    Examples
    --------
    >>> from varcal.calibrators._variable._reml.losses import LogisticLoss
    >>> rng = np.random.default_rng(0)
    >>> day = np.repeat(np.arange(100), 30)
    >>> y = (rng.random(3000) < 0.5 + 0.2 * rng.choice([-1, 1], 100)[day]).astype(float)
    >>> loss = LogisticLoss(y, np.ones(3000), np.zeros(3000))
    >>> rows = np.arange(3000)
    >>> left = Residuals.of(loss, np.zeros(3000), rows, rows)
    >>> luck = correlated_rows([Blocking(("day",), (day,))], left)
    >>> luck.n_blocks, round(luck.worth, 2)
    (100, 0.09)
    """
    found = []
    for blocking in blockings:
        n_blocks, worth, p_value = _tested(residuals, blocking.numbers(residuals.rows))
        if p_value < SIGNIFICANT / len(blockings) and worth >= LEAST_WORTH:
            found.append(Luck(blocking, n_blocks, worth, p_value))
    if not found:
        return None
    most = max(luck.worth for luck in found)
    return min(
        (luck for luck in found if luck.worth >= COARSER_WORTH * most),
        key=lambda luck: (luck.n_blocks, luck.blocking.names),
    )


def luck_of_order(position: Ints, residuals: Residuals, y: AnyArray) -> bool:
    """Return whether rows that stand near one another are correlated.

    Parameters
    ----------
    position : ndarray of int
        The place of every row in the order in which rows were given.
    residuals : Residuals
        Those of some of the rows.
    y : ndarray
        The outcomes of all rows. Where they are sorted, neighbours share nothing but that.
    """
    given = np.empty_like(y)
    given[position] = y
    rows = residuals.rows
    if len(rows) < ORDER_ROWS_EACH * ORDER_BLOCKS:
        return False
    if np.count_nonzero(np.diff(given)) < ORDER_BLOCKS:
        return False
    number = np.asarray(position[rows] * ORDER_BLOCKS // len(y), dtype=np.intp)
    _, worth, p_value = _tested(residuals, number)
    return p_value < ORDER_SIGNIFICANT and worth >= LEAST_WORTH


def _tested(residuals: Residuals, number: Ints) -> tuple[int, float, float]:
    """Return the number of blocks, what their luck is worth, and the p-value.

    U + Σ w is compared with a χ² of the same mean and variance.
    """
    residual, weight = residuals.residual, residuals.weight
    sums, weights = np.bincount(number, residual), np.bincount(number, weight)
    score = float((sums**2).sum() - (residual**2).sum())
    information = float((weights**2).sum() - (weight**2).sum())
    n_blocks, total = int(np.count_nonzero(np.bincount(number))), float(weight.sum())
    if information <= 0:
        return n_blocks, 0.0, 1.0
    freedom = total**2 / information
    p_value = float(chdtrc(freedom, max(freedom * (1.0 + score / total), 0.0)))
    return n_blocks, 0.5 * score / information * total / len(weight), p_value
