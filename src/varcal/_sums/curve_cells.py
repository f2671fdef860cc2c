"""Cells: sums over neighbouring rows along a variable, from which curves are estimated."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from varcal._arrays import Floats

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

    @classmethod
    def from_rows(
        cls,
        x: ArrayLike,
        hit: ArrayLike,
        score: ArrayLike,
        weight: ArrayLike | None = None,
        group: ArrayLike | None = None,
        *,
        most: int | None = None,
    ) -> Self:
        """Sum rows with equal values into one cell; merge cells if there are more than `most`.

        Parameters
        ----------
        x, hit, score, weight : array-like of shape (n,)
            The variable, outcomes, scores and weights.
        group : array-like of int, shape (n,), optional
            Bucket of each row's group, 0 … G − 1.
        most : int, optional
            Largest number of cells.

        Examples
        --------
        >>> cells = Cells.from_rows([2.0, 1.0, 2.0], [1, 0, 0], [0.9, 0.2, 0.7])
        >>> cells.x.tolist(), cells.n.tolist(), cells.gap.round(6).tolist()
        ([1.0, 2.0], [1.0, 2.0], [0.2, 0.3])
        """
        value, cell = np.unique(np.asarray(x, float), return_inverse=True)
        h, s = np.asarray(hit, float), np.asarray(score, float)
        w = np.ones(len(h)) if weight is None else np.asarray(weight, float)
        terms = {"n": np.ones(len(w)), "weight": w, "hit": w * h, "score": w * s, "weight2": w * w}
        terms |= {"hit2": w * w * h, "score2": w * w * s}
        terms |= {"square2": w * w * (h - s) ** 2, "null2": w * w * s * (1 - s)}
        k = len(value)
        sums: dict[str, Any] = {
            name: np.bincount(cell.ravel(), term, k) for name, term in terms.items()
        }
        if group is not None:
            n_groups = int(np.max(group)) + 1
            key = cell.ravel() * n_groups + np.asarray(group, int)
            for name in ("weight", "hit", "score"):
                of_group = np.bincount(key, terms[name], k * n_groups)
                sums[f"group_{name}"] = of_group.reshape(k, n_groups)
        cells = cls(x=value, **sums)
        return cells if most is None else cells.coarsen(most)

    def filled(self) -> Self:
        """Return the cells with weight."""
        kept = self.weight > 0
        if kept.all():
            return self
        return type(self)(
            **{
                field.name: term[kept]
                for field in fields(self)
                if (term := getattr(self, field.name)) is not None
            }
        )

    def coarsen(self, most: int) -> Self:
        """Merge neighbours into at most `most` cells of about equal counts.

        If all counts are similar, equally many cells are merged each time. A frequent value
        keeps a cell of its own.

        Examples
        --------
        >>> cells = Cells.from_rows(range(1000), [0] * 1000, [0.5] * 1000)
        >>> set(cells.coarsen(300).n.tolist())
        {4.0}
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
            for name in (field.name for field in fields(self)[1:])
            if (term := getattr(self, name)) is not None
        }
        return type(self)(
            x=np.add.reduceat(self.weight * self.x, start) / merged["weight"], **merged
        )
