"""The table of sums that every number is computed from, and the kernel that sums rows into it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import AnyArray, Floats, Ints, ratio_or_nan
from varcal._input.variables import Variable
from varcal._sums.bins import Bins, NumericBins, coarse_index, joint_index
from varcal.exceptions import InputError

#: The sums of a bin, in the order of `BinnedStats.sums`: the power of the weight w and the term
#: that it multiplies, of hit h and score s with e = h − s and u = s(1 − s), and of the variable x.
#: This is the only place where they are declared.
_SUMMED = {
    "n": (0, "one"),
    "weight": (1, "one"),
    "weight2": (2, "one"),
    "hit": (1, "h"),
    "score": (1, "s"),
    "hit2": (2, "h"),
    "score2": (2, "s"),
    "square": (1, "e²"),
    "square2": (2, "e²"),
    "null": (1, "u"),
    "null2": (2, "u"),
    "fourth": (4, "u(1 − 6u)"),  # the fourth cumulant of Σ w e under calibration
    "x": (1, "x"),
}
FIELDS = tuple(_SUMMED)
#: The sums that a plain metric needs.
_PLAIN = ("n", "weight", "hit", "score")

#: Rows summed at a time: their temporary arrays stay in the processor's cache.
CHUNK = 65_536
#: From this many terms of rows on, a sparse product replaces one `numpy.bincount` per term if there
#: are several tables: it takes 2.2 ns instead of 6.1 for six terms of a row, but scipy.sparse must
#: be loaded, and the terms copied.
_FEW_TERMS = 4 * CHUNK

#: The variance of a bin is shrunk towards its value under calibration, which has the weight of
#: this many rows: a bin with few rows would otherwise have a variance near 0 by chance.
PRIOR_ROWS = 5


@dataclass(frozen=True, eq=False)
class BinnedStats:
    """The sums of each bin over a batch of rows; `a + b` merges batches over the same bins.

    Attributes
    ----------
    bins : Bins
        The bins.
    sums : ndarray of shape (len(FIELDS), G, B)
        The sums named in `FIELDS`, by bucket of groups (G = 1 without groups) and bin.
    """

    bins: Bins
    sums: Floats
    #: The names of the sums.
    fields: ClassVar[tuple[str, ...]] = FIELDS

    @classmethod
    def empty(cls, bins: Bins, n_buckets: int = 1) -> BinnedStats:
        """Return the sums of no rows."""
        return cls(bins, np.zeros((len(FIELDS), n_buckets, bins.size)))

    def __add__(self, other: BinnedStats) -> BinnedStats:
        if not isinstance(other, BinnedStats):
            return NotImplemented
        if self.bins != other.bins or self.sums.shape != other.sums.shape:
            raise InputError(
                f"two tables over different bins of {self.bins.name!r} cannot be merged",
                "collect both over the same bins and with the same grouping",
            )
        with np.errstate(over="ignore"):  # Σwx of values near 1e308
            return replace(self, sums=self.sums + other.sums)

    def coarsen(self, bins: Bins) -> BinnedStats:
        """Return the table over coarser bins, whose cuts must be among the cuts of this table."""
        starts = np.searchsorted(coarse_index(self.bins, bins), np.arange(bins.size))
        with np.errstate(over="ignore"):  # Σwx of values near 1e308
            return replace(self, bins=bins, sums=np.add.reduceat(self.sums, starts, axis=-1))

    @property
    def edges(self) -> str:
        """Whether bins were chosen from all rows ("exact") or from a sample ("sampled")."""
        return "sampled" if self.bins.sampled else "exact"

    def field(self, name: str) -> Floats:
        """Return one sum by bucket of groups and bin, shape (G, B)."""
        return self.sums[self.fields.index(name)]

    def total(self, name: str) -> Floats:
        """Return one sum of each bin, over all buckets."""
        summed: Floats = self.field(name).sum(axis=0)
        return summed

    @property
    def n(self) -> NDArray[np.int64]:
        """Rows of each bin."""
        return self.total("n").astype(np.int64)

    @property
    def share(self) -> Floats:
        """Each bin's share of the weight."""
        weight = self.total("weight")
        return weight / weight.sum()

    @property
    def confidence(self) -> Floats:
        """Mean score of each bin, NaN where it is empty."""
        return ratio_or_nan(self.total("score"), self.total("weight"))

    @property
    def accuracy(self) -> Floats:
        """Hit rate of each bin, NaN where it is empty."""
        return ratio_or_nan(self.total("hit"), self.total("weight"))

    @property
    def gap(self) -> Floats:
        """Mean score minus hit rate of each bin: positive is overconfident."""
        return ratio_or_nan(self.total("score") - self.total("hit"), self.total("weight"))

    @property
    def gap_se(self) -> Floats:
        r"""Standard error of each bin's gap.

        The sandwich variance, shrunk towards the variance under calibration with the weight of
        five rows:
        :math:`[n_b \sum_b w^2 (e - d_b)^2 + 5 \sum_b w^2 s(1-s)] / [(n_b + 4) W_b^2]` with
        :math:`d_b` the mean of :math:`e` in bin b.
        """
        d = -self.gap
        n = self.total("n")
        error2 = self.total("hit2") - self.total("score2")
        spread = self.total("square2") - 2 * d * error2 + d**2 * self.total("weight2")
        null = self.total("null2")
        shrunk = (n * np.maximum(spread, 0.0) + PRIOR_ROWS * null) / (n + PRIOR_ROWS - 1)
        return np.sqrt(ratio_or_nan(shrunk, self.total("weight") ** 2))


#: A table to add rows to, the variables of its bins, and the bucket of each row, if there are any.
Filling = tuple[BinnedStats, Sequence[Variable], AnyArray | None]
#: What rows add: one array per term, or an array of shape (rows, terms).
Terms = list[Floats | None] | Floats
#: `map`, or that of a pool of threads.
Run = Callable[[Any, Iterable[Any]], Iterable[Any]]


def bin_rows(
    bins: Bins,
    variables: Sequence[Variable],
    score: AnyArray,
    hit: AnyArray,
    weight: Floats | None = None,
    bucket: Ints | None = None,
    n_buckets: int = 1,
    *,
    moments: bool = True,
) -> BinnedStats:
    """Sum rows into one table.

    The binning variables, the score and the hit are separate arguments because the paper's
    protocol bins by the score of one model and evaluates another.

    Parameters
    ----------
    bins : Bins
        The bins.
    variables : sequence of Variable
        The variables to bin by, in the order of the parts of `bins`.
    bucket : ndarray of int, optional
        The bucket of groups that each row belongs to, below `n_buckets`.
    score, hit, weight, moments
        As in `add_rows`.
    """
    stats = BinnedStats.empty(bins, n_buckets)
    add_rows([(stats, variables, bucket)], score, hit, weight, moments=moments)
    return stats


def add_rows(
    tables: Sequence[Filling],
    score: AnyArray,
    hit: AnyArray,
    weight: Floats | None = None,
    *,
    moments: bool = True,
    run: Run = map,
) -> None:
    """Add rows to tables; what a row adds is computed once for all of them.

    Parameters
    ----------
    tables : sequence of Filling
        The tables, all of the same claim.
    score, hit : AnyArray
        The prediction of each row, and its outcome: for events, a probability, and 1 or True
        where the event occurred.
    weight : ndarray, optional
        Sampling weights.
    moments : bool
        Whether to sum all fields. Otherwise only rows, weight, hit and score, which are all
        that a plain metric needs; the other fields are NaN.
    run : callable
        What adds the rows to each table.
    """
    # Adding the sums of a chunk costs as much as some rows.
    step = max(CHUNK, *(2 * stats.sums[0].size for stats, _, _ in tables))
    for start in range(0, len(score), step):
        rows = slice(start, start + step)
        w = None if weight is None else weight[rows]
        names, columns = _terms(score[rows], hit[rows], w, moments)
        terms: Terms = columns
        n = min(step, len(score) - start)
        if len(tables) > 1 and n * len(columns) >= _FEW_TERMS:
            terms = np.stack([np.ones(n) if one is None else one for one in columns], axis=1)
        work = partial(_add_chunk, rows=rows, names=names, terms=terms, weight=w)
        for _ in run(work, tables):
            pass
    if not moments:
        unknown = [name not in _PLAIN for name in FIELDS]
        for stats, _, _ in tables:
            stats.sums[unknown] = np.nan


def _terms(
    s: Floats, h: AnyArray, w: Floats | None, moments: bool
) -> tuple[list[tuple[str, ...]], list[Floats | None]]:
    """Return the sums that each term is added to, and the terms; None stands for ones.

    Without weights several sums are the same.
    """
    h = h.astype(np.float64)
    values: dict[str, Any] = {"one": None, "h": h, "s": s}
    if moments:
        u = s * (1.0 - s)
        values |= {"e²": (h - s) ** 2, "u": u, "u(1 − 6u)": u * (1.0 - 6.0 * u)}
    names: dict[tuple[int, str], tuple[str, ...]] = {}
    for name in FIELDS if moments else _PLAIN:
        power, term = _SUMMED[name]
        if term in values:
            slot = (0 if w is None else power, term)
            names[slot] = (*names.get(slot, ()), name)
    powers = {0: None} if w is None else {0: None, 1: w, 2: w * w, 4: (w * w) ** 2}
    return list(names.values()), [_product(powers[power], values[term]) for power, term in names]


def _product(factor: Floats | None, value: Floats | None) -> Floats | None:
    if factor is None or value is None:
        return value if factor is None else factor
    return factor * value


def _add_chunk(
    table: Filling,
    rows: slice,
    names: Sequence[tuple[str, ...]],
    terms: Terms,
    weight: Floats | None,
) -> None:
    """Add what some rows add to one table."""
    stats, variables, _ = table
    sums = stats.sums.reshape(len(FIELDS), -1)
    cell = _cells(table, rows)
    for several, added in zip(names, _summed(cell, terms, sums.shape[1]), strict=True):
        for name in several:
            sums[FIELDS.index(name)] += added
    if len(names) > len(_PLAIN) and isinstance(stats.bins, NumericBins):
        x = variables[0].values[rows].astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):  # values near 1e308, as in their sums
            added = np.bincount(cell, _product(weight, x), sums.shape[1])
            if not np.isfinite(added).all():  # values that are not finite count as 0
                x = np.where(np.isfinite(x), x, 0.0)
                added = np.bincount(cell, _product(weight, x), sums.shape[1])
            sums[FIELDS.index("x")] += added


def _summed(cell: Ints, terms: Terms, size: int) -> Iterable[AnyArray]:
    """Return the sum of each term over the rows of each cell, to the bit the same either way."""
    if isinstance(terms, list):
        return (np.bincount(cell, term, size) for term in terms)
    from scipy.sparse import csc_array  # noqa: PLC0415  slow to load

    n = len(cell)
    rows = np.arange(n + 1, dtype=np.int32)  # conversions of longer integers take most of the time
    membership = csc_array((np.ones(n), cell.astype(np.int32), rows), shape=(size, n))
    return (membership @ terms).T


def _cells(table: Filling, rows: slice) -> Ints:
    """Return the cell of each row: its bin, and its bucket."""
    stats, variables, bucket = table
    cell = joint_index(stats.bins, variables, rows)
    if bucket is not None:
        cell += stats.bins.size * bucket[rows]
    return cell


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
#: Engines and files treat all tables alike: a cell has room for this many sums.
MOST_FIELDS = max(len(FIELDS), len(BET_FIELDS))


def log_gains(score: Floats, hit: AnyArray, size: Floats | None, limit: float) -> Floats:
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


def add_bets(
    tables: Sequence[Filling],
    score: AnyArray,
    hit: AnyArray,
    size: Floats | None,
    limit: float,
) -> None:
    """Add the bets on one claim to tables, whose sums are those of `BET_FIELDS`.

    The gains of a row are computed once for all tables; arguments are as in `log_gains`.
    """
    totals = [np.zeros((stats.sums[0].size, len(BET_FIELDS))) for stats, _, _ in tables]
    for start in range(0, len(score), _BET_CHUNK):
        rows = slice(start, start + _BET_CHUNK)
        part = None if size is None else size[rows]
        gains = log_gains(score[rows], hit[rows], part, limit)
        values = np.concatenate([np.ones((len(gains), 1)), gains], axis=1)
        for table, total in zip(tables, totals, strict=True):
            place = _cells(table, rows)[:, None] * len(BET_FIELDS) + np.arange(len(BET_FIELDS))
            added = np.bincount(place.ravel(), values.ravel(), total.size)
            total += added.reshape(total.shape)
    for (stats, _, _), total in zip(tables, totals, strict=True):
        stats.sums[...] += total.T.reshape(stats.sums.shape)
