r"""How much of a correction is applied: as much as held-out rows support.

A correction moves the logits of rows by Δ. The share w of it with the least loss of held-out rows
is applied as far as its gain is more than chance: multiplied by a ramp of the gain over its
standard error. Few rows, whose standard error is itself uncertain, need more.

Folds depend on the contents of rows, not on their order, and need no random state. The rows of a
group share a fold; with time, folds are stretches of it, and only earlier ones fit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal.calibrators.variable.losses import log_losses, means, outcomes

# Tuned constants.

#: Where ramps start, in standard errors; one standard error later a correction is fully applied.
#: Score: from 0 the curve cost more than .002 of log-loss in 3 % of draws of 1,000 calibrated
#: scores. Variables and the map between classes: shrunk by their penalties already. Pairs and
#: trees: many are tried; 1.25 to 3 was chosen on worlds with jumps, checkerboards and calibrated
#: scores, and from .5 to 2 tables of 1,000 rows were .0002 ± .0002 worse.
RAMPS = {"score": 0.5, "classes": 0.0, "variables": 0.0, "pairs": 1.5, "trees": 1.5}
#: The log-likelihood of held-out rows above which a correction of the score is beyond doubt, fully
#: at twice as much: a few extremely wrong scores make the standard error of savings as large as the
#: savings. Without it one of six models of a table lost .0049.
BEYOND_DOUBT = 10.0
#: Ramps start later by this over the number of independent savings.
FEW_SAVINGS = 50.0
#: Folds: half as many cost .0008 of log-loss with few rows.
N_FOLDS = 5
#: Stretches of time that count as one observation each: what they save is about independent.
N_PERIODS = 60

#: Groups, or rows, below which scores stay as they are.
LEAST_UNITS, LEAST_ROWS = 5, 20.0
#: Longer stretches of time of about equally many rows; the first is never held out.
N_STRETCHES = N_FOLDS + 1
#: Rows from which three folds judge, and from which one does: more take time and say the same.
FEWER_ROWS, FEWEST_ROWS = 3_000.0, 30_000.0
# SplitMix64's constants.
_STEPS = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def content_order(p: AnyArray, y: AnyArray, columns: Iterable[AnyArray | None]) -> Ints:
    """Return an order of rows that depends on their contents alone.

    Sums of rows in this order are the same to the last bit, however the rows were given. It is the
    order of a hash, so that the first rows are a random sample.

    >>> p, y, turned = np.array([0.1, 0.2, 0.3]), np.zeros(3), np.array([2, 0, 1])
    >>> first, again = (r[content_order(r, y, [])] for r in (p, p[turned]))
    >>> bool((first == again).all())
    True
    """
    every = p.reshape(len(p), -1).T
    # A column that does not tell rows apart must not change their order either.
    rest = (column for column in columns if column is not None and _varies(column))
    key = hashed([*every, y, *rest])
    order = np.argsort(key, kind="stable")
    # Equal rows are spread, so that the first rows of tied scores are a sample, too.
    count = np.arange(len(key))
    repeated = np.diff(key[order].astype(np.float64), prepend=-1.0) == 0
    rank = count - np.maximum.accumulate(np.where(repeated, 0, count))
    spread = np.argsort(hashed([rank, key[order].astype(np.float64)]), kind="stable")
    return np.asarray(order[spread], dtype=np.intp)


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

    def take(self, rows: AnyArray | slice) -> Folds:
        """Return the folds of some of the rows."""
        units = None if self.units is None else self.units[rows]
        return replace(self, fold=self.fold[rows], units=units)

    def without_few(self, mass: float) -> Folds:
        """Return no fold where there are too few rows, or units of rows, to learn anything."""
        few = self.units is not None and len(np.unique(self.units)) < LEAST_UNITS
        return replace(self, fold=self.fold * 0 - 1) if few or mass < LEAST_ROWS else self


def make_folds(
    key: NDArray[np.uint64], y: AnyArray, mass: Floats, groups: Ints | None, time: Floats | None
) -> Folds:
    """Return the folds of rows, by a hash of their scores and variables.

    Few equal rows share a fold, so that a weight of 2 is the same as repeating the row. Many rows
    that are equal but for their outcome are spread over all folds: holding out everything that is
    known about a score would tell nothing.

    >>> key = np.arange(30).astype(np.uint64)
    >>> make_folds(key, np.zeros(30), np.ones(30), None, np.arange(30.0)).fold[::3]
    array([-1, -1,  0,  0,  1,  2,  2,  3,  3,  4])
    """
    total = float(mass.sum())
    if time is not None:
        units = stretches(time, mass, N_PERIODS) if groups is None else groups
        fold = stretches(time, mass, N_STRETCHES) - 1
        return Folds(fold, units, forward=True, apart=groups is not None).without_few(total)
    if groups is not None:
        return Folds(_ranked(hashed([groups])) % N_FOLDS, groups).without_few(total)
    fold = _spread(key, y, mass)
    if total > FEWER_ROWS:
        fold = np.where(fold < (3 if total <= FEWEST_ROWS else 1), fold, -1)
    return Folds(fold).without_few(total)


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


@dataclass(frozen=True)
class Stage:
    """One correction: how much of it is applied, and what it saves on held-out rows.

    Attributes
    ----------
    name : str
        "score", "classes", "variables", "pairs" or "trees".
    share : float
        How much of it is applied, between 0 and 1.
    gain, error : float
        What it saves of the log-loss of held-out rows, per row, and the standard error.
    moved : float
        The mean absolute change of probabilities on held-out rows.
    """

    name: str = ""
    share: float = 0.0
    gain: float = 0.0
    error: float = 0.0
    moved: float = 0.0


NOTHING = Stage()


@dataclass(frozen=True, eq=False)
class Judge:
    """Rows that were held out, on which corrections are judged.

    Attributes
    ----------
    y : ndarray of int
        The classes of rows.
    mass : ndarray
        The number of rows that each row stands for.
    folds : Folds
        Which rows are held out together.
    """

    y: Ints
    mass: Floats
    folds: Folds

    def judged(self) -> Bools:
        """Return the rows that are held out."""
        return np.logical_or.reduce(
            [np.zeros(len(self.y), dtype=bool), *(out for _, out in self.folds.splits())]
        )

    def share(self, name: str, before: Floats, after: Floats, later: float = 0.0) -> Stage:
        """Return how much of the way between two predictors held-out rows support.

        Parameters
        ----------
        name : str
            The correction.
        before, after : ndarray of shape (n,) or (n, K)
            The logit of the second class, or logits of all classes.
        later : float
            How much later the ramp starts.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> z = rng.normal(size=400)
        >>> y = (rng.random(400) < 1 / (1 + np.exp(-2 * z))).astype(int)
        >>> judge = Judge(y, np.ones(400), Folds(np.arange(400) % 5))
        >>> judge.share("score", z, 2 * z).share > 0.9, judge.share("score", z, -z).share
        (True, 0.0)
        """
        judged = self.judged()
        if not judged.any():
            return Stage(name)
        y, mass, total = self.y[judged], self.mass[judged], float(self.mass[judged].sum())
        start = np.atleast_2d(before[judged].T)
        along = _Path(y, mass, start, np.atleast_2d(after[judged].T) - start)
        w = along.best()
        saved = mass * (log_losses(start, y) - log_losses(along.eta(w), y))
        gain = float(saved.sum()) / total
        apart = saved - gain * mass
        units = self.folds.units
        if units is None:
            error, count = float(np.sqrt((apart**2 / mass).sum())) / total, total
        else:
            sums = np.bincount(np.unique(units[judged], return_inverse=True)[1], apart)
            count = float(len(sums))
            error = float(np.sqrt((sums**2).sum() * count / max(count - 1, 1))) / total
        # At least the error that would hold if there were nothing to correct.
        error = max(error, w * float(np.sqrt(along.slopes(0.0)[1])) / total, 1e-300)
        part = gain / error - FEW_SAVINGS / count - later - RAMPS[name]
        if name == "score" and units is None:
            part = max(part, gain * total / BEYOND_DOUBT - 1.0)
        share = w * float(np.clip(part, 0.0, 1.0))
        moved = np.abs(means(along.eta(share)) - means(start)).sum(axis=0) / min(len(start), 2)
        return Stage(name, share, gain, error, float(mass @ moved) / total)


@dataclass(frozen=True, eq=False)
class _Path:
    """The way from one predictor of rows to another, of shape (outputs, n)."""

    y: Ints
    mass: Floats
    start: Floats
    move: Floats

    def eta(self, w: float) -> Floats:
        return np.asarray(self.start + w * self.move)

    def slopes(self, w: float) -> tuple[float, float]:
        """Return minus the first derivative of the loss by w, and the expected second one."""
        q = means(self.eta(w))
        mean = (q * self.move).sum(axis=0)
        own = (outcomes(self.y, len(q)) * self.move).sum(axis=0)
        spread = (q * self.move**2).sum(axis=0) - mean**2
        return float(self.mass @ (own - mean)), float(self.mass @ spread)

    def best(self) -> float:
        """Return the w in [0, 1] with the least loss."""
        w = 0.5
        for _ in range(30):
            slope, curvature = self.slopes(w)
            new = float(np.clip(w + slope / max(curvature, 1e-12), 0.0, 1.0))
            done, w = abs(new - w) < 1e-6, new
            if done:
                break
        # Shares next to 1 are not told from it.
        return 1.0 if w > 0.9 else w
