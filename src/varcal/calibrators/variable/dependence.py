r"""Which rows are held out together: folds, groups, time, and a search for correlated rows.

Folds depend on the contents of rows, not on their order, and need no random state. The rows of a
group share a fold; with time, folds are stretches of it, and only earlier ones fit.

Outcomes of the same day may differ together from what the model expects, for reasons that no
variable holds. With residuals r and working weights w of a fitted model, the variance component τ²
of the logit between blocks b has the score and the information

.. math:: U = \sum_b \Big[\big(\sum_{i \in b} r_i\big)^2 - \sum_{i \in b} r_i^2\Big], \qquad
          I = \sum_b \Big[\big(\sum_{i \in b} w_i\big)^2 - \sum_{i \in b} w_i^2\Big].

U has mean 0 and variance 2 I where rows are independent, and mean τ² I where they are correlated.
To know the rate of every block would save about ½ τ² w̄ of log-loss per row.

References
----------
X. Lin (1997), Variance component testing in generalised linear models with random effects,
Biometrika 84.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal._input.variables import Variable
from varcal._text import count
from varcal.calibrators.rows import CalibrationRows
from varcal.exceptions import VarcalWarning

# Tuned constants.

#: Folds, and how many of them judge where rows are many: half as many cost .0008 of log-loss with
#: few rows; beyond 3,000 rows three judge as well as five.
N_FOLDS, FEWER_ROWS, FEWER, FEWEST_ROWS = 5, 3_000.0, 3, 30_000.0
#: Stretches of time with about equal numbers of rows; the first is never held out. Shorter ones
#: that count as one observation each.
N_STRETCHES, N_PERIODS = 6, 60
#: Groups, or rows, below which scores stay as they are.
LEAST_UNITS, LEAST_ROWS = 5, 20.0
#: The share of a variable's variance between units from which it hardly varies within them, and the
#: gain on held-out units, in standard errors, from which it stays nevertheless.
BETWEEN_UNITS, CLEAR_GAIN = 0.8, 1.0
#: Blocks are correlated below this p-value over the number of blockings that are tried, where
#: knowing their rates would save this much: on fifteen real tables it found only the dates of
#: flights and households.
SIGNIFICANT, LEAST_WORTH = 0.01, 0.004
#: The least number of blocks of one variable and of two, and the least mean number of rows in each.
LEAST_BLOCKS, LEAST_PAIR_BLOCKS, ROWS_EACH, PAIR_ROWS_EACH = 30, 100, 2.0, 3.0
#: The most values of a variable that is crossed with another, and the most crossed variables.
MOST_CROSSED, CROSSED_VARIABLES = 100, 12
#: Of several blockings the coarsest with at least this share of the largest worth is chosen.
COARSER_WORTH = 0.5
#: Blocks of neighbouring rows, rows in each, and the p-value of their test.
ORDER_BLOCKS, ORDER_ROWS_EACH, ORDER_SIGNIFICANT = 50, 20, 1e-4

DAY, WEEK, MONDAY = 86_400.0, 604_800.0, 345_600.0
#: Decimals of the score that a fold depends on: rounding on another machine must not change it.
SCORE_DECIMALS = 4
# SplitMix64's constants.
_STEPS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def content_order(p: AnyArray, y: AnyArray, columns: Iterable[AnyArray | None]) -> Ints:
    """Return an order of rows that depends on their contents alone.

    Sums of rows in this order are the same to the last bit, however the rows were given.

    >>> p, y, turned = np.array([0.1, 0.2, 0.3]), np.zeros(3), np.array([2, 0, 1])
    >>> first, again = (r[content_order(r, y, [])] for r in (p, p[turned]))
    >>> bool((first == again).all())
    True
    """
    every = p.reshape(len(p), -1).T
    # A column that does not tell rows apart must not change their order either.
    rest = (column for column in columns if column is not None and _varies(column))
    return np.asarray(np.argsort(hashed([*every, y, *rest])), dtype=np.intp)


def _varies(column: AnyArray) -> bool:
    return not ((column == column[:1]).all() or (column != column).all())


def hashed(columns: Iterable[AnyArray]) -> NDArray[np.uint64]:
    """Return a hash for each row of numeric columns."""
    total: Any = np.uint64(0)
    for column in columns:
        # Adding 0 turns −0 into 0, which must have the same hash.
        bits = (np.asarray(column, dtype=np.float64) + 0.0).view(np.uint64)
        with np.errstate(over="ignore"):
            total = total * _GOLDEN + bits + _GOLDEN
            for shift, factor in _STEPS:
                total = (total ^ (total >> shift)) * factor
            total = total ^ (total >> np.uint64(31))
    return np.asarray(total)


@dataclass(frozen=True, eq=False)
class Folds:
    """Which rows are held out together, and which may fit the model that is judged on them.

    Attributes
    ----------
    fold : ndarray of int
        The fold of each row; −1 for rows that are never held out.
    units : ndarray of int or None
        Rows of one unit count as one observation of how much a correction helps.
    forward : bool
        Whether only earlier folds may fit: folds are then stretches of time.
    apart : bool
        With `forward`, whether the units of held-out rows must not fit either.
    """

    fold: Ints
    units: Ints | None = None
    forward: bool = False
    apart: bool = False

    def splits(self) -> list[tuple[Bools, Bools]]:
        """Return, for each fold that has both, the rows that fit and those that judge."""
        found = []
        for j in range(int(self.fold.max(initial=-1)) + 1):
            held = self.fold == j
            train = self.fold < j if self.forward else ~held
            if self.apart and self.units is not None:
                train &= ~np.isin(self.units, self.units[held])
            if held.any() and train.any():
                found.append((np.asarray(train), np.asarray(held)))
        return found

    def judged(self) -> Bools:
        """Return the rows that are held out."""
        held = np.zeros(len(self.fold), dtype=bool)
        for _, out in self.splits():
            held |= out
        return held

    def take(self, rows: AnyArray) -> Folds:
        """Return the folds of some of the rows."""
        units = None if self.units is None else self.units[rows]
        return replace(self, fold=self.fold[rows], units=units)

    def too_few(self, mass: float) -> bool:
        """Return whether there are too few rows, or units of rows, to learn anything."""
        if mass < LEAST_ROWS:
            return True
        return self.units is not None and len(np.unique(self.units)) < LEAST_UNITS


def make_folds(
    key: NDArray[np.uint64], y: AnyArray, mass: Floats, groups: Ints | None, time: Floats | None
) -> Folds:
    """Return the folds of rows, by a hash of their scores and variables.

    Few equal rows share a fold, so that a weight of 2 is the same as repeating the row. Many rows
    that are equal but for their outcome are spread over all folds: holding out everything that is
    known about a score would tell nothing.

    >>> key = np.arange(10).astype(np.uint64)
    >>> make_folds(key, np.zeros(10), np.ones(10), None, np.arange(10.0)).fold
    array([-1, -1,  0,  1,  1,  2,  2,  3,  4,  4])
    """
    if time is not None:
        units = stretches(time, mass, N_PERIODS) if groups is None else groups
        fold = stretches(time, mass, N_STRETCHES) - 1
        return Folds(fold, units, forward=True, apart=groups is not None)
    total = float(mass.sum())
    if groups is not None:
        return Folds(fold_of_groups(groups), groups)
    fold = _spread(key, y, mass)
    if total > FEWER_ROWS:
        fold = np.where(fold < (FEWER if total <= FEWEST_ROWS else 1), fold, -1)
    return Folds(fold)


def fold_of_groups(groups: Ints) -> Ints:
    """Return a fold for each row; rows of a group share one."""
    return _ranked(hashed([groups])) % N_FOLDS


def _ranked(key: NDArray[np.uint64]) -> Ints:
    return np.asarray(np.unique(key, return_inverse=True)[1], dtype=np.intp)


def _spread(key: NDArray[np.uint64], y: AnyArray, mass: Floats) -> Ints:
    place = _ranked(key)
    fold = place % N_FOLDS
    tied = np.flatnonzero(np.bincount(place)[place] > 1)
    if not len(tied):
        return fold
    order = tied[np.lexsort([mass[tied], y[tied], place[tied]])]
    first = np.diff(place[order], prepend=-1) > 0
    begins, tie = np.flatnonzero(first), np.cumsum(first) - 1
    many = np.add.reduceat(mass[order], begins) >= N_FOLDS
    many &= np.maximum.reduceat(y[order], begins) > np.minimum.reduceat(y[order], begins)
    before = np.cumsum(mass[order]) - mass[order]
    # A weight counts as that many rows, as if the row were repeated.
    rank = np.floor(before - before[begins][tie] + 1e-9).astype(np.intp)
    spread = many[tie]
    fold[order[spread]] = (fold[order] + rank)[spread] % N_FOLDS
    return fold


def sample(key: NDArray[np.uint64], most: int) -> Ints:
    """Return a sample of rows, in their order; tied rows keep their share in it.

    >>> len(sample(np.zeros(30, dtype=np.uint64), 12))
    12
    """
    if len(key) <= most:
        return np.arange(len(key))
    place = _ranked(key)
    order = np.argsort(place, kind="stable")
    counts = np.arange(len(order))
    first = np.diff(place[order], prepend=-1) > 0
    rank = np.empty(len(order))
    rank[order] = counts - np.maximum.accumulate(np.where(first, counts, 0))
    picked = np.argsort(hashed([rank, key.astype(np.float64)]), kind="stable")[:most]
    return np.sort(picked)


def stretches(time: Floats, mass: Floats, most: int) -> Ints:
    """Return the number of the stretch of time of each row; all have about equal mass.

    >>> stretches(np.array([5.0, 1.0, 1.0, 9.0]), np.ones(4), 2)
    array([1, 0, 0, 1])
    """
    instants, place = np.unique(time, return_inverse=True)
    each = np.bincount(place, mass, minlength=len(instants))
    middle = np.cumsum(each) - each / 2
    number = np.floor(most * middle / each.sum()).astype(np.intp)
    # Many rows at one time leave numbers without a row.
    return np.asarray(np.unique(number, return_inverse=True)[1][place], dtype=np.intp)


def constant_within(columns: Sequence[AnyArray], units: Ints) -> set[int]:
    """Return the positions of columns that hardly vary within units.

    >>> rng = np.random.default_rng(0)
    >>> day = np.repeat(np.arange(50), 10)
    >>> constant_within([day // 5, rng.normal(size=500)], day)
    {0}
    """
    return {k for k, column in enumerate(columns) if _between(column, units) >= BETWEEN_UNITS}


def _between(column: AnyArray, units: Ints) -> float:
    """Return the share of variance between units, corrected for the number of units."""
    # Missing values are equal to one another and come last.
    rank = np.unique(column, return_inverse=True)[1].astype(np.float64)
    _, place = np.unique(units, return_inverse=True)
    counts = np.bincount(place)
    mean = np.bincount(place, rank) / counts
    left, total = len(rank) - len(counts), float(rank.var()) * len(rank)
    if left <= 0 or total <= 0:
        return 0.0
    within = float(((rank - mean[place]) ** 2).sum()) / left
    return 1.0 - within / (total / (len(rank) - 1))


@dataclass(frozen=True, eq=False)
class Blocking:
    """A way to divide rows into blocks: the values of one or two variables."""

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
    """Where to look for correlated rows: the variables, and the order in which rows were given."""

    variables: tuple[Variable, ...]
    position: Ints


@dataclass(frozen=True, eq=False)
class Given:
    """The rows of a fit.

    Attributes
    ----------
    p, y, mass : ndarray
        Probabilities, class numbers, and the number of rows that each row stands for.
    columns : list of ndarray
        The variables: numbers with NaN, or codes with −1, where values are missing.
    n_levels : list of int
        The number of levels of each variable, 0 for numbers.
    groups, time : ndarray or None
        Which rows are held out together, and when they were made.
    search : Search or None
        Where to look for blocks of correlated rows.
    """

    p: Floats
    y: Ints
    mass: Floats
    columns: list[AnyArray]
    n_levels: list[int]
    groups: Ints | None
    time: Floats | None
    search: Search | None


@dataclass(frozen=True, eq=False)
class Found:
    """Blocks whose rows are correlated.

    Attributes
    ----------
    blocking : Blocking
        The blocks.
    n_blocks : int
        How many there are among the rows that were looked at.
    worth : float
        What knowing the rate of every block would save in log-loss per row.
    """

    blocking: Blocking
    n_blocks: int
    worth: float


def blockings_of(variables: Sequence[Variable], rows: Ints) -> list[Blocking]:
    """Return ways to divide rows into many blocks, each of several rows.

    Dates give days and weeks, numbers their values, and two numbers or categories their crossings.
    A category alone does not count: one that was not seen gets the mean effect.

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
    found = [one for one in found if _many(one.numbers(rows), LEAST_BLOCKS, ROWS_EACH)]
    # Crossings of wide tables would be many, so only variables with the most values are crossed.
    crossed = sorted(crossed, key=lambda one: -int(one[1].max(initial=0)))[:CROSSED_VARIABLES]
    for (one, a), (other, b) in combinations(crossed, 2):
        both = a * (int(b.max()) + 1) + b
        most = 1.5 * max(int(a.max()), int(b.max()))
        if _many(both, max(LEAST_PAIR_BLOCKS, most), PAIR_ROWS_EACH):
            first, second = (
                (one, other) if _place(variables, one) < _place(variables, other) else (other, one)
            )
            found.append(Blocking(first.names + second.names, first.values + second.values))
    return found


def _place(variables: Sequence[Variable], one: Blocking) -> int:
    return [each.name for each in variables].index(one.names[0])


def _many(number: Ints, least: float, each: float) -> bool:
    n_blocks = int(np.count_nonzero(np.bincount(number)))
    return n_blocks >= least and len(number) >= each * n_blocks


def correlated_rows(
    blockings: Sequence[Blocking], rows: Ints, residual: Floats, weight: Floats
) -> Found | None:
    """Return the blocks whose rows are correlated, None where there are none worth knowing.

    Parameters
    ----------
    blockings : sequence of Blocking
        The blockings of all rows.
    rows : ndarray of int
        Some of the rows, one of each set of equal ones.
    residual, weight : ndarray
        Minus the first, and the expected second derivative of their loss in a fitted model.
    """
    found = []
    for blocking in blockings:
        n_blocks, worth, p_value = _tested(residual, weight, blocking.numbers(rows))
        if p_value < SIGNIFICANT / len(blockings) and worth >= LEAST_WORTH:
            found.append(Found(blocking, n_blocks, worth))
    most = max((one.worth for one in found), default=0.0)
    coarse = [one for one in found if one.worth >= COARSER_WORTH * most]
    return min(coarse, key=lambda one: (one.n_blocks, one.blocking.names), default=None)


def neighbours_correlated(
    position: Ints, rows: Ints, residual: Floats, weight: Floats, y: AnyArray
) -> bool:
    """Return whether rows that stand near one another are correlated; not if sorted by outcome."""
    given = np.empty_like(y)
    given[position] = y
    if (
        len(rows) < ORDER_ROWS_EACH * ORDER_BLOCKS
        or np.count_nonzero(np.diff(given)) < ORDER_BLOCKS
    ):
        return False
    number = np.asarray(position[rows] * ORDER_BLOCKS // len(y), dtype=np.intp)
    _, worth, p_value = _tested(residual, weight, number)
    return p_value < ORDER_SIGNIFICANT and worth >= LEAST_WORTH


def searched(
    search: Search,
    residual: Floats,
    weight: Floats,
    mass: Floats,
    key: NDArray[np.uint64],
    picked: Ints,
    y: AnyArray,
) -> tuple[Found | None, bool]:
    """Return blocks whose rows are correlated, and if there are none whether neighbours are.

    Parameters
    ----------
    search : Search
        Where to look.
    residual, weight, mass, key : ndarray
        Slopes of the loss of some rows, the number of rows that each stands for, and their hashes.
    picked : ndarray of int
        Which rows these are.
    y : ndarray
        The outcomes of all rows.
    """
    # Equal rows may be repetitions of one, as may be a row with a large weight.
    _, one, place = np.unique(key, return_index=True, return_inverse=True)
    counts = np.bincount(place, mass)
    residual, weight = (np.bincount(place, each) / counts for each in (residual, weight))
    blockings = blockings_of(search.variables, picked)
    found = correlated_rows(blockings, picked[one], residual, weight)
    if found is not None:
        return found, False
    return None, neighbours_correlated(search.position, picked[one], residual, weight, y)


def _tested(residual: Floats, weight: Floats, number: Ints) -> tuple[int, float, float]:
    """Return the number of blocks, their worth, and the p-value by a χ² of equal moments."""
    sums, weights = np.bincount(number, residual), np.bincount(number, weight)
    score = float((sums**2).sum() - (residual**2).sum())
    information = float((weights**2).sum() - (weight**2).sum())
    n_blocks, total = int(np.count_nonzero(np.bincount(number))), float(weight.sum())
    if information <= 0:
        return n_blocks, 0.0, 1.0
    freedom = total**2 / information
    p_value = float(chdtrc(freedom, max(freedom * (1.0 + score / total), 0.0)))
    return n_blocks, 0.5 * score / information * total / len(weight), p_value


#: The warning where rows that stand near one another are correlated.
ORDER_CAUTION = (
    "rows that stand near one another are correlated, which no variable explains: if they are in "
    "the order of time, pass time=…, so that it is judged on later rows; if they are sorted by "
    "patient, store or the like, pass groups=…; blocks=False if new rows come from the same places"
)


@dataclass(frozen=True)
class Judgement:
    """Which rows were held out together when corrections were judged.

    Attributes
    ----------
    how : {"random", "groups", "blocks", "time", "time and groups"}
        Any rows; those of a group; those of a block; or later ones than those that fitted.
    of : str
        With blocks, what they are, such as "month × day"; empty if they have no name.
    n_units : int
        The number of groups, blocks or periods; 0 for random rows.
    worth : float
        With blocks that the fit has found, what knowing the rate of each would save in log-loss
        per row; 0 if they were named by the user.
    """

    how: str
    of: str = ""
    n_units: int = 0
    worth: float = 0.0

    def __str__(self) -> str:
        """Return a sentence; nothing for random rows.

        >>> print(Judgement("time", n_units=5))
        Shrinkage was judged forward in time: on 5 periods, by models of earlier rows.
        >>> print(Judgement("blocks", "month × day", 365, 0.021))
        Shrinkage was judged on held-out blocks of month × day (365), whose rows are correlated.
        """
        if self.how == "random":
            return ""
        if self.how.startswith("time"):
            groups = ", and on other groups" if self.how == "time and groups" else ""
            return (
                f"Shrinkage was judged forward in time: on {count(self.n_units, 'period')}, by "
                f"models of earlier rows{groups}."
            )
        if self.how == "groups":
            return f"Shrinkage was judged on held-out groups ({self.n_units:,})."
        of = f" of {self.of}" if self.of else ""
        shared = ", whose rows are correlated" if self.worth else ""
        return f"Shrinkage was judged on held-out blocks{of} ({self.n_units:,}){shared}."

    def caution(self) -> str:
        """Return a warning about blocks that the fit has found."""
        return (
            f"rows of the same {self.of} are correlated: learning the rate of each of the "
            f"{self.n_units:,} would save about {self.worth:.3f} of log-loss per row, but says "
            "nothing about others, so only what helps in blocks that the fit has not seen is "
            "applied; pass blocks=False if new rows come from the same blocks, or time=… if they "
            "come later"
        )


def judgement_of(rows: CalibrationRows, found: Found | None) -> Judgement:
    """Return which rows were held out together."""
    if found is not None:
        return Judgement("blocks", str(found.blocking), found.n_blocks, found.worth)
    if rows.time is not None:
        mass = np.ones(len(rows)) if rows.weight is None else rows.weight
        n_periods = int(stretches(rows.time, mass, N_STRETCHES).max())
        return Judgement("time" if rows.groups is None else "time and groups", "", n_periods)
    if rows.groups is None:
        return Judgement("random")
    how, _, of = (rows.together or "groups").partition(" of ")
    return Judgement(how, of, len(np.unique(rows.groups)))


def warn_of_few_units(rows: CalibrationRows) -> None:
    """Warn if there are too few groups, or times, to learn from."""
    units, argument, noun = rows.groups, rows.together or "groups", "unit"
    if units is None and rows.time is not None:
        units, argument, noun = rows.time.astype(np.float64), "time", "instant"
    if units is None or (n_units := len(np.unique(units))) >= LEAST_UNITS:
        return
    warnings.warn(
        f"{argument} holds {n_units} {noun}{'s' * (n_units > 1)}; at least {LEAST_UNITS} are "
        "needed to learn anything about others, so the scores stay as they are",
        VarcalWarning,
        stacklevel=5,
    )
