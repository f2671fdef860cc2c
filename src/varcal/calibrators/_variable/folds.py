"""Folds and samples that depend on the contents of rows, not on their order.

No random state is needed. Few equal rows share a fold, so that a weight of 2 is the same as
repeating the row. Many rows that are equal but for their outcome are spread over all folds, because
holding out everything that is known about a score would tell nothing. The rows of a group share a
fold. With time, folds are stretches of it, and a model that is judged on one was fitted on earlier
rows only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import AnyArray, Bools, Floats, Ints

# SplitMix64's constants.
_STEPS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# Tuned constants; README.md shows what changes at half and at twice each value.

#: Beyond this number of rows, penalties, pairs, trust and confusions are learned on a sample of
#: this size, and only coefficients on all rows.
MOST_ROWS = 20_000
#: The number of folds, and the number where there are many rows, by their weight.
N_FOLDS = 5
N_FOLDS_OF_MANY = 3
MANY_ROWS = 10_000
#: Stretches of time with about equal numbers of rows; the first is never held out.
N_STRETCHES = 6
#: Shorter stretches that count as one observation each of how much a model helps.
N_PERIODS = 60
#: Decimals of the score that a fold depends on: rounding on another machine must not change it.
SCORE_DECIMALS = 4


def row_hashes(score: AnyArray, *columns: AnyArray) -> NDArray[np.uint64]:
    """Return a hash for each row of a score and numeric columns.

    The score is rounded to four decimals, so that rounding errors do not change folds.

    >>> a = row_hashes(np.array([1.0, 2.0, 1.0]))
    >>> bool(a[0] == a[2] != a[1])
    True
    """
    return _hashed((np.round(score, SCORE_DECIMALS), *columns))


def n_folds_of(mass: float) -> int:
    """Return the number of folds: 5, or 3 for more than 10,000 rows (counted by weight)."""
    return N_FOLDS if mass <= MANY_ROWS else N_FOLDS_OF_MANY


def row_folds(n_folds: int, score: AnyArray, *columns: AnyArray) -> Ints:
    """Return a fold for each row; equal rows share one, distinct ones are spread evenly.

    >>> np.bincount(row_folds(5, np.arange(100.0)))
    array([20, 20, 20, 20, 20])
    """
    _, place = np.unique(row_hashes(score, *columns), return_inverse=True)
    return np.asarray(place % n_folds, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Folds:
    """Which rows are held out together, and which may fit the model that is judged on them.

    Attributes
    ----------
    fold : ndarray of int
        The fold of each row, from 0 to k − 1; −1 for rows that are never held out.
    k : int
        The number of folds.
    forward : bool
        Whether only rows of earlier folds may fit: folds are then stretches of time.
    units : ndarray of int or None
        With `forward`, the group of each row: those of held-out rows do not fit either.

    Examples
    --------
    >>> folds = Folds(np.array([-1, 0, 1, 1]), 2, forward=True)
    >>> folds.train(1), folds.held(1)
    (array([ True,  True, False, False]), array([False, False,  True,  True]))
    >>> Folds(np.array([0, 1, 2, 2]), 3).train(1)
    array([ True, False,  True,  True])
    """

    fold: Ints
    k: int
    forward: bool = False
    units: Ints | None = None

    def held(self, j: int) -> Bools:
        """Return the rows of fold j."""
        return np.asarray(self.fold == j)

    def train(self, j: int) -> Bools:
        """Return the rows that may fit the model that is judged on fold j."""
        if not self.forward:
            return np.asarray(self.fold != j)
        earlier = np.asarray(self.fold < j)
        if self.units is None:
            return earlier
        return earlier & ~np.isin(self.units, self.units[self.held(j)])

    def judged(self) -> Bools:
        """Return the rows that are held out from a model."""
        held = np.zeros(len(self.fold), dtype=bool)
        for _, out in self.splits():
            held |= out
        return held

    def splits(self) -> Iterator[tuple[Bools, Bools]]:
        """Yield, for each fold that has both, the rows that fit and those that judge."""
        for j in range(self.k):
            train, held = self.train(j), self.held(j)
            if held.any() and train.any():
                yield train, held

    def take(self, rows: Ints | Bools | slice) -> Folds:
        """Return the folds of some of the rows."""
        return Folds(
            self.fold[rows], self.k, self.forward, None if self.units is None else self.units[rows]
        )


def make_folds(
    keys: RowKeys, *, groups: AnyArray | None = None, time: Floats | None = None
) -> Folds:
    """Return the folds of rows.

    Parameters
    ----------
    keys : RowKeys
        The rows.
    groups : ndarray, optional
        The number of the group of each row; rows of a group share a fold.
    time : ndarray of float, optional
        When each row was made. Rows of the same time share a fold.

    Examples
    --------
    >>> p = np.linspace(0.1, 0.9, 12)
    >>> keys = RowKeys.of(p, np.arange(12) % 2, None, p, [])
    >>> make_folds(keys, time=np.arange(12.0)).fold
    array([-1, -1,  0,  0,  1,  1,  2,  2,  3,  3,  4,  4])
    """
    if time is not None:
        block = stretches(time, keys.mass, N_STRETCHES)
        units = None if groups is None else np.asarray(groups)
        return Folds(block - 1, int(block.max()), forward=True, units=units)
    k = n_folds_of(float(keys.mass.sum()))
    return Folds(keys.folds(k) if groups is None else row_folds(k, groups), k)


def folds_and_units(
    keys: RowKeys, groups: Ints | None, time: Floats | None
) -> tuple[Folds, Ints | None]:
    """Return the folds of rows, and which rows count as one observation of how a model does.

    With time alone the latter are short stretches of it: rows of the same days are not independent.
    """
    units = groups
    if time is not None and groups is None:
        units = stretches(time, keys.mass, N_PERIODS)
    return make_folds(keys, groups=groups, time=time), units


def stretches(time: Floats, mass: Floats, most: int) -> Ints:
    """Return the number of the stretch of time of each row; all have about equal mass.

    Rows of the same time are in the same stretch.

    >>> stretches(np.array([5.0, 1.0, 1.0, 9.0]), np.ones(4), 2)
    array([1, 0, 0, 1])
    """
    instants, place = np.unique(time, return_inverse=True)
    each = np.bincount(place, mass, minlength=len(instants))
    middle = np.cumsum(each) - each / 2
    number = np.floor(most * middle / each.sum()).astype(np.intp)
    # Many rows at one time leave numbers without a row.
    return np.asarray(np.unique(number, return_inverse=True)[1][place], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class RowKeys:
    """Hashes of rows, by which they are distinguished.

    Attributes
    ----------
    row : ndarray of uint64
        A hash of the score and the variables; rows with equal hashes are tied.
    y : ndarray
        The outcome.
    whole : ndarray of uint64
        A hash of the probabilities of all classes.
    mass : ndarray of float
        The number of rows that each row stands for.
    """

    row: NDArray[np.uint64]
    y: AnyArray
    whole: NDArray[np.uint64]
    mass: Floats

    @classmethod
    def of(
        cls,
        p: AnyArray,
        y: AnyArray,
        mass: Floats | None,
        score: AnyArray,
        columns: list[AnyArray],
    ) -> RowKeys:
        """Hash rows of probabilities, outcomes, weights, the score made from p, and variables."""
        row = row_hashes(score, *columns)
        every = p.reshape(len(p), -1).T
        return cls(row, y, _hashed(every), np.ones(len(row)) if mass is None else mass)

    def folds(self, n_folds: int) -> Ints:
        """Return a fold for each row.

        >>> p, y = np.full(10, 0.5), np.arange(10) % 2
        >>> keys = RowKeys.of(p, y, None, p, [])
        >>> np.bincount(keys.folds(5)), np.bincount(keys.folds(5)[y == 1])
        (array([2, 2, 2, 2, 2]), array([1, 1, 1, 1, 1]))
        """
        _, place = np.unique(self.row, return_inverse=True)
        folds = np.asarray(place % n_folds, dtype=np.intp)
        order, first = self._ties(place)
        if not len(order):
            return folds
        begins = np.flatnonzero(first)
        many = np.add.reduceat(self.mass[order], begins) >= n_folds
        y = self.y[order]
        many &= np.maximum.reduceat(y, begins) > np.minimum.reduceat(y, begins)
        tie = np.cumsum(first) - 1
        before = np.cumsum(self.mass[order]) - self.mass[order]
        # A weight counts as that many rows, as if the row were repeated.
        rank = np.floor(before - before[begins][tie] + 1e-9).astype(np.intp)
        spread = many[tie]
        folds[order[spread]] = (folds[order] + rank)[spread] % n_folds
        return folds

    def repeats(self, rows: Ints) -> float:
        """Return the mean number of rows, among those given, that equal a row (itself included).

        A weight counts as that many rows.

        >>> p, y = np.array([0.1, 0.1, 0.2, 0.3]), np.zeros(4)
        >>> RowKeys.of(p, y, np.array([1.0, 1.0, 2.0, 1.0]), p, []).repeats(np.arange(4))
        1.8
        """
        equal = _hashed([self.y[rows]], self.row[rows])
        _, place = np.unique(equal, return_inverse=True)
        mass = np.bincount(place, self.mass[rows])
        return float(mass @ mass / mass.sum())

    def fitting_rows(self) -> Ints:
        """Return the rows on which penalties, pairs and trust are learned."""
        return self.sample(MOST_ROWS)

    def sample(self, most: int) -> Ints:
        """Return a sample of at most `most` rows; tied rows keep their share in it.

        >>> p = np.repeat([0.2, 0.8], [300, 700])
        >>> keys = RowKeys.of(p, np.zeros(1000), None, p, [])
        >>> bool(abs((p[keys.sample(400)] == 0.8).mean() - 0.7) < 0.06)
        True
        """
        if len(self.row) <= most:
            return np.arange(len(self.row))
        _, place = np.unique(self.row, return_inverse=True)
        order, first = self._ties(place)
        rank = np.zeros(len(self.row))
        count = np.arange(len(order))
        rank[order] = count - np.maximum.accumulate(np.where(first, count, 0))
        key = _hashed([rank], self.row)
        return np.asarray(np.argsort(key, kind="stable")[:most], dtype=np.intp)

    def _ties(self, place: Ints) -> tuple[Ints, Bools]:
        """Return the tied rows, sorted by their contents, and which of them begin a tie."""
        tied = np.flatnonzero(np.bincount(place)[place] > 1)
        keys = (self.mass, self.whole, self.y, place)
        order = tied[np.lexsort([key[tied] for key in keys])]
        return order, np.diff(place[order], prepend=-1) > 0


def content_order(p: AnyArray, y: AnyArray, columns: Iterable[AnyArray | None]) -> Ints:
    """Return an order of rows that depends on their contents alone.

    Sums of rows in this order are the same to the last bit, however the rows were given. Rows
    that are not told apart are equal.

    Parameters
    ----------
    p, y : ndarray
        Probabilities and outcomes.
    columns : iterable of ndarray or None
        Everything else that a row consists of: variables, weights, groups.

    Examples
    --------
    >>> p, y, turned = np.array([0.1, 0.2, 0.3]), np.zeros(3), np.array([2, 0, 1])
    >>> first, again = (r[content_order(r, y, [])] for r in (p, p[turned]))
    >>> bool((first == again).all())
    True
    """
    every = p.reshape(len(p), -1).T
    # A column that does not tell rows apart must not change their order either.
    rest = (column for column in columns if column is not None and _varies(column))
    return np.asarray(np.argsort(_hashed([*every, y, *rest])), dtype=np.intp)


def _varies(column: AnyArray) -> bool:
    return not ((column == column[:1]).all() or (column != column).all())


def _hashed(
    columns: Iterable[AnyArray], begin: NDArray[np.uint64] | None = None
) -> NDArray[np.uint64]:
    """Return a hash for each row of numeric columns."""
    total = begin
    for column in columns:
        # Adding 0 turns −0 into 0, which must have the same hash.
        bits = (np.asarray(column, dtype=np.float64) + 0.0).view(np.uint64)
        total = np.zeros_like(bits) if total is None else total
        total = _mixed(total * _GOLDEN + bits + _GOLDEN)
    return np.empty(0, dtype=np.uint64) if total is None else total


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    with np.errstate(over="ignore"):
        for shift, factor in _STEPS:
            x = (x ^ (x >> shift)) * factor
        return x ^ (x >> np.uint64(31))
