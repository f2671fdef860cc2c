"""Profile: one claim along one variable, in fine cells for curves and coarse bins for metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import Self

import numpy as np

from varcal._arrays import Bools, Floats
from varcal._input.variables import Kind
from varcal._sums.bins import Bins, NumericBins
from varcal._sums.stats import FIELDS, BinnedStats

#: Cells count as even if the largest has at most this many times the rows of the smallest.
EVEN_COUNTS = 2


@dataclass(frozen=True)
class Cells:
    """Sums over k cells in ascending order of the variable, or over k levels.

    Attributes
    ----------
    x : ndarray of shape (k,)
        Mean of the variable in each cell; for levels, the number of the level.
    n, weight, weight2, hit, score, hit2, score2, square2, null2 : ndarray of shape (k,)
        The sums of the same names as in `varcal._sums.stats.FIELDS`.
    group_weight, group_hit, group_score : ndarray of shape (k, G), optional
        Σw, Σw·hit and Σw·score by cell and bucket of groups.
    """

    x: Floats
    n: Floats
    weight: Floats
    weight2: Floats
    hit: Floats
    score: Floats
    hit2: Floats
    score2: Floats
    square2: Floats
    null2: Floats
    group_weight: Floats | None = None
    group_hit: Floats | None = None
    group_score: Floats | None = None

    def __len__(self) -> int:
        return len(self.x)

    @property
    def hit_rate(self) -> Floats:
        """Hit rate in each cell."""
        return self.hit / self.weight

    @property
    def mean_score(self) -> Floats:
        """Mean score in each cell."""
        return self.score / self.weight

    @property
    def gap(self) -> Floats:
        """Mean score minus hit rate: positive is overconfident."""
        return (self.score - self.hit) / self.weight

    def filled(self) -> Self:
        """Return the cells with weight."""
        kept = self.weight > 0
        if kept.all():
            return self
        return type(self)(
            **{name: term[kept] for name, term in vars(self).items() if term is not None}
        )

    def coarsen(self, most: int) -> Self:
        """Merge neighbours into at most `most` cells of about equal counts.

        If all counts are similar, equally many cells are merged each time. A frequent value
        keeps a cell of its own.
        """
        k = len(self)
        if k <= most:
            return self
        n_merged = k // -(-k // most)
        if self.n.max() <= EVEN_COUNTS * self.n.min():
            slot = np.arange(k) * n_merged // k
        else:
            ends = np.cumsum(self.n)
            middle = (ends - self.n / 2) / ends[-1]
            slot = np.minimum((middle * n_merged).astype(int), n_merged - 1)
        start = np.flatnonzero(np.diff(slot, prepend=-1))
        merged = {
            name: np.add.reduceat(term, start, axis=0)
            for name, term in vars(self).items()
            if name != "x" and term is not None
        }
        return type(self)(
            x=np.add.reduceat(self.weight * self.x, start) / merged["weight"], **merged
        )


#: The sums that differ for 1 − score and 1 − hit, and what they are subtracted from.
_TURNED = {"hit": "weight", "score": "weight", "hit2": "weight2", "score2": "weight2"}

# The sums that `Cells` has as well.
_CELL_FIELDS = tuple(name for name in Cells.__dataclass_fields__ if name in FIELDS)


@dataclass(frozen=True, eq=False)
class Profile:
    """The binned statistics of one claim along one variable.

    Attributes
    ----------
    name, kind : str
        The variable and its kind.
    fine : BinnedStats
        About a thousand cells of equal support; levels.
    bins : Bins
        The bins of the metrics.
    """

    name: str
    kind: Kind
    fine: BinnedStats
    bins: Bins

    @cached_property
    def coarse(self) -> BinnedStats:
        """The bins of the metrics."""
        return self.fine.coarsen(self.bins)

    @property
    def missing(self) -> bool:
        """Whether the last bin has the missing values."""
        return bool(getattr(self.fine.bins, "missing", False))

    @property
    def placed(self) -> Bools | None:
        """Which fine cells are ordered along the variable; None for levels."""
        if self.kind == "levels":
            return None
        placed = np.ones(self.fine.bins.size, dtype=bool)
        placed[-1] = not self.missing
        return placed

    def cells(self) -> Cells:
        """Return the cells with weight in the order of the variable, without missing values."""
        stats = self.fine
        keep = stats.total("weight") > 0
        if self.missing:
            keep[-1] = False
        x = np.flatnonzero(keep).astype(float)
        if isinstance(stats.bins, NumericBins):
            edges = np.array([stats.bins.low, *stats.bins.cuts, stats.bins.high])
            # Infinite values count as 0 in Σwx; the mean must stay inside its cell.
            inside = keep[: len(edges) - 1]
            low, high = edges[:-1][inside], edges[1:][inside]
            mean = stats.total("x")[keep] / stats.total("weight")[keep]
            # The sum of values near 1e308 overflows; the middle of the cell stands for its mean.
            if not np.isfinite(mean).all():
                middle = np.nan_to_num(low) / 2 + np.nan_to_num(high) / 2
                mean = np.where(np.isfinite(mean), mean, middle)
            x = np.clip(mean, low, high)
        return cells_of(stats, keep, x)


def cells_of(stats: BinnedStats, keep: Bools, x: Floats) -> Cells:
    """Return some bins of a table as cells at the positions x, by bucket if there are groups."""
    total = {name: stats.total(name)[keep] for name in _CELL_FIELDS}
    grouped: dict[str, Floats] = {}
    if stats.sums.shape[1] > 1:
        grouped = {
            f"group_{name}": stats.field(name)[:, keep].T for name in ("weight", "hit", "score")
        }
    return Cells(**total | {"x": x}, **grouped)


@dataclass(frozen=True, eq=False)
class SidedProfile:
    """The claim about a class, where the class is not the predicted one and where it is.

    The claim "the prediction is correct" follows from the same sums: where the class is the
    predicted one both claims are the same; where it is not, and there are two classes, score and
    hit are one minus those of the other.

    Attributes
    ----------
    key : int
        The claim.
    others, own : Profile
        The rows that are predicted to be of another class, and those predicted to be of this one.
    """

    key: int
    others: Profile
    own: Profile

    @classmethod
    def of(cls, key: int, found: Profile) -> SidedProfile:
        """Split a profile whose table has the buckets of one side, then those of the other."""
        sides = np.split(found.fine.sums, 2, axis=1)
        bins = found.fine.bins
        return cls(key, *(replace(found, fine=BinnedStats(bins, sums)) for sums in sides))

    @property
    def name(self) -> str:
        """The variable."""
        return self.own.name

    @property
    def claim(self) -> Profile:
        """The claim about the class, of all rows."""
        return merged([self.others, self.own])


def correct_of(profiles: Sequence[SidedProfile]) -> Profile:
    """Return the claim "the prediction is correct", from all classes or from either of two."""
    if len(profiles) > 1:
        return merged([one.own for one in profiles])
    (one,) = profiles
    # Sums of the opposite claim differ from those of its own scores by rounding only.
    stats = one.others.fine
    sums = stats.sums.copy()
    for name, whole in _TURNED.items():
        sums[FIELDS.index(name)] = stats.field(whole) - stats.field(name)
    return merged([replace(one.others, fine=BinnedStats(stats.bins, sums)), one.own])


def merged(profiles: Sequence[Profile]) -> Profile:
    """Return the profile of the rows of several."""
    return replace(profiles[0], fine=reduce(add, [one.fine for one in profiles]))
