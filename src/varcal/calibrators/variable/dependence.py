r"""Rows that are not independent: a search for blocks of correlated rows, and what follows.

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from varcal._arrays import AnyArray, Floats, Ints
from varcal._input.variables import Variable
from varcal._text import count
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.variable.additive import Design, Fitted, Tables
from varcal.calibrators.variable.shrinkage import (
    LEAST_UNITS,
    N_STRETCHES,
    Folds,
    Judge,
    Stage,
    hashed,
    make_folds,
    stretches,
)
from varcal.exceptions import VarcalWarning

# Tuned constants.

#: The share of a variable's variance between units from which it hardly varies within them; it
#: stays where its gain on held-out units is more than a standard error.
BETWEEN_UNITS = 0.8
#: Blocks are correlated below this p-value over the number of blockings that are tried, where
#: knowing their rates would save this much: on fifteen real tables it found only the dates of
#: flights and households.
SIGNIFICANT, LEAST_WORTH = 0.01, 0.004
#: The least number of blocks of one variable and of two, and the least mean number of rows in each:
#: with the smaller ones for both, one split of the cuts of diamonds lost .027.
LEAST_BLOCKS, LEAST_PAIR_BLOCKS, ROWS_EACH, PAIR_ROWS_EACH = 30, 100, 2.0, 3.0
#: Of several blockings the coarsest with at least this share of the largest worth is chosen.
COARSER_WORTH = 0.5
#: Blocks of neighbouring rows, and the p-value of their test.
ORDER_BLOCKS, ORDER_SIGNIFICANT = 50, 1e-4

#: The most values of a variable that is crossed with another, and the most crossed variables.
MOST_CROSSED, CROSSED_VARIABLES = 100, 12
DAY, WEEK, MONDAY = 86_400.0, 604_800.0, 345_600.0
#: Decimals of the score that a fold depends on: rounding on another machine must not change it.
SCORE_DECIMALS = 4


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
    variables : tuple of Variable
        The variables in which to look for blocks of correlated rows; empty if not at all.
    position : ndarray of int
        The order in which rows were given.
    """

    p: Floats
    y: Ints
    mass: Floats
    columns: list[AnyArray]
    n_levels: list[int]
    groups: Ints | None
    time: Floats | None
    variables: tuple[Variable, ...]
    position: Ints

    def key(self, logits: Floats, columns: list[AnyArray]) -> NDArray[np.uint64]:
        """Return a hash of each row, by its logits (classes × rows) and variables."""
        return hashed([*np.round(logits, SCORE_DECIMALS), *columns])


@dataclass(frozen=True, eq=False)
class Blocking:
    """A way to divide rows into blocks, the values of one or two variables, and what it is worth.

    Attributes
    ----------
    names : tuple of str
        The variables.
    values : tuple of ndarray
        Their values.
    n_blocks : int
        How many there are among the rows that were looked at.
    worth : float
        What knowing the rate of every block would save in log-loss per row.
    """

    names: tuple[str, ...]
    values: tuple[AnyArray, ...]
    n_blocks: int = 0
    worth: float = 0.0

    def numbers(self, rows: Ints | None = None) -> Ints:
        """Return the number of the block of each row, of all rows or some of them."""
        total = np.zeros(1, dtype=np.intp)
        for column in self.values:
            _, place = np.unique(column if rows is None else column[rows], return_inverse=True)
            total = total * (int(place.max()) + 1) + place
        return np.asarray(np.unique(total, return_inverse=True)[1], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Record:
    """What `describe` and `effects` tell of a fit.

    Attributes
    ----------
    found : Blocking or None
        Blocks whose rows are correlated.
    fallen : bool
        Whether less is applied because of them.
    neighbours : bool
        Whether rows that stand near one another are correlated.
    stages : tuple of Stage
        The corrections.
    fits : tuple of (Fitted, Tables, float)
        Additive fits, their tables, and how much of each is applied; later ones count.
    """

    found: Blocking | None = None
    fallen: bool = False
    neighbours: bool = False
    stages: tuple[Stage, ...] = ()
    fits: tuple[tuple[Fitted, Tables, float], ...] = ()


@dataclass(frozen=True, eq=False)
class Judged:
    """What held-out rows say of additive fits.

    Attributes
    ----------
    fits : tuple of Fitted
        Fits of the score (two classes), with variables, and with pairs: as many as rows allow.
    score, variables, pairs : Stage
        How much is applied of the score's correction, of variables, and of pairs of these.
    base, eta : ndarray
        The predictor of held-out rows by score alone, and by all.
    """

    fits: tuple[Fitted, ...]
    score: Stage
    variables: Stage
    pairs: Stage
    base: Floats
    eta: Floats

    @property
    def applied(self) -> float:
        """How much of any correction is applied at most."""
        return max(self.score.share, self.variables.share)


def within_units(
    judge: Judge, design: Design, columns: list[AnyArray], judged: Callable[[Design], Judged]
) -> Judged:
    """Return the judgement, without variables that hardly vary within units unless they help.

    What the rows of a unit share looks like an effect of such variables.
    """
    first, units = judged(design), judge.folds.units
    if units is None or not first.variables.share:
        return first
    live = [each.variable for each in design.variables]
    constant = {k for k in live if between_units(columns[k], units) >= BETWEEN_UNITS}
    if not constant:
        return first
    other = judged(design.without(constant))
    saved = judge.share("variables", other.eta, first.eta)
    return first if saved.share and saved.gain > saved.error else other


def between_units(column: AnyArray, units: Ints) -> float:
    """Return the share of variance between units, corrected for the number of units.

    >>> day = np.repeat(np.arange(50), 10)
    >>> between_units(day // 5, day), round(between_units(np.tile(np.arange(10), 50), day), 2)
    (1.0, -0.11)
    """
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


def judged_with_search(
    judged: Callable[[Judge], Judged], given: Given, key: NDArray[np.uint64], picked: Ints
) -> tuple[Judged, Folds, Record]:
    """Judge a model; where rows of a block are correlated, again on held-out blocks.

    Parameters
    ----------
    judged : callable
        Fits and judges, given the judge of picked rows.
    given : Given
        All rows.
    key : ndarray
        Their hashes.
    picked : ndarray of int
        The rows that the model is fitted on.
    """
    folds = make_folds(key, given.y, given.mass, given.groups, given.time)

    def judge(folds: Folds) -> Judge:
        return Judge(given.y[picked], given.mass[picked], folds.take(picked))

    first = judged(judge(folds))
    if not given.variables or not given.columns:
        return first, folds, Record()
    # Equal rows may be repetitions of one, as may be a row with a large weight.
    _, one, place = np.unique(key[picked], return_index=True, return_inverse=True)
    counts = np.bincount(place, given.mass[picked])
    residual, weight = (np.bincount(place, each) / counts for each in first.fits[-1].slopes())
    blockings = blockings_of(given.variables, picked)
    found = correlated_rows(blockings, picked[one], residual, weight)
    if found is None:
        near = _neighbours_correlated(given, picked[one], residual, weight)
        return first, folds, Record(neighbours=near)
    folds = make_folds(key, given.y, given.mass, found.numbers(), None)
    again = judged(judge(folds))
    fallen = max(first.applied - again.applied, first.variables.share - again.variables.share)
    return again, folds, Record(found, fallen >= 0.1)


def blockings_of(variables: Sequence[Variable], rows: Ints) -> list[Blocking]:
    """Return ways to divide rows into many blocks, each of several rows.

    Dates give days and weeks, numbers their values, and two numbers or categories their crossings.
    A category alone does not count: one that was not seen gets the mean effect.

    >>> rng = np.random.default_rng(0)
    >>> day, month, age = rng.integers(1, 29, 9000), rng.integers(1, 13, 9000), rng.random(9000)
    >>> columns = {"day": day, "month": month, "age": age}
    >>> variables = [Variable.of(each, name) for name, each in columns.items()]
    >>> [each.names for each in blockings_of(variables, np.arange(9000))]
    [('day', 'month')]
    """
    found, crossed = [], []
    for k, each in enumerate(variables):
        if each.kind == "datetime":
            for what, length, begin in (("week", WEEK, MONDAY), ("day", DAY, 0.0)):
                block = np.floor((each.values - begin) / length)
                found.append(Blocking((f"{what} of {each.name}",), (block,)))
            continue
        alone = Blocking((each.name,), (each.values,))
        number = alone.numbers(rows)
        if int(number.max(initial=0)) < MOST_CROSSED:
            crossed.append((int(number.max(initial=0)), k, alone, number))
        if each.kind != "levels":
            found.append(alone)
    found = [one for one in found if _many(one.numbers(rows), LEAST_BLOCKS, ROWS_EACH)]
    # Crossings of wide tables would be many, so only variables with the most values are crossed.
    crossed = sorted(crossed, key=lambda one: -one[0])[:CROSSED_VARIABLES]
    for (most, _, one, a), (size, _, other, b) in combinations(
        sorted(crossed, key=lambda one: one[1]), 2
    ):
        if _many(a * (size + 1) + b, max(LEAST_PAIR_BLOCKS, 1.5 * max(most, size)), PAIR_ROWS_EACH):
            found.append(Blocking(one.names + other.names, one.values + other.values))
    return found


def _many(number: Ints, least: float, each: float) -> bool:
    n_blocks = int(np.count_nonzero(np.bincount(number)))
    return n_blocks >= least and len(number) >= each * n_blocks


def correlated_rows(
    blockings: Sequence[Blocking], rows: Ints, residual: Floats, weight: Floats
) -> Blocking | None:
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
    for each in blockings:
        n_blocks, worth, p_value = _tested(residual, weight, each.numbers(rows))
        if p_value < SIGNIFICANT / len(blockings) and worth >= LEAST_WORTH:
            found.append(Blocking(each.names, each.values, n_blocks, worth))
    most = max((one.worth for one in found), default=0.0)
    coarse = [one for one in found if one.worth >= COARSER_WORTH * most]
    return min(coarse, key=lambda one: (one.n_blocks, one.names), default=None)


def _neighbours_correlated(given: Given, rows: Ints, residual: Floats, weight: Floats) -> bool:
    """Return whether rows that stand near one another are correlated; not if sorted by outcome."""
    y = np.empty_like(given.y)
    y[given.position] = given.y
    if len(rows) < 20 * ORDER_BLOCKS or np.count_nonzero(np.diff(y)) < ORDER_BLOCKS:
        return False
    number = np.asarray(given.position[rows] * ORDER_BLOCKS // len(y), dtype=np.intp)
    _, worth, p_value = _tested(residual, weight, number)
    return p_value < ORDER_SIGNIFICANT and worth >= LEAST_WORTH


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


def judgement_of(rows: CalibrationRows, found: Blocking | None) -> Judgement:
    """Return which rows were held out together."""
    if found is not None:
        return Judgement("blocks", " × ".join(found.names), found.n_blocks, found.worth)
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
