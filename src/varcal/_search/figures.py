"""Figures of slices on all rows: sums that batches of rows add up to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from varcal._arrays import Bools, Floats
from varcal._input.events import claim_of
from varcal._input.groups import N_BUCKETS, buckets
from varcal._input.labels import Part
from varcal._input.predictions import Predictions
from varcal._input.variables import Variable
from varcal._search.condition import Condition
from varcal._sums.sources import LazyRows, batch_columns
from varcal._sums.stream import Roles
from varcal.exceptions import rows_numbered_from

#: Rows that count as if they had been seen in addition, with the variance of calibrated scores.
PRIOR_ROWS = 4.0
#: The least share of a slice outside one bucket of groups that a variance is corrected for.
_LEAST_REST = 1e-3


@dataclass(frozen=True, eq=False)
class Figures:
    """Sums of the rows of a slice, or of the rows that join it if a condition is dropped.

    Attributes
    ----------
    sums : ndarray
        Rows; sums of w, w·score and w·hit; of w²·e², w²·e, w² and w²·score·(1 − score), where
        e = hit − score.
    clusters : ndarray of shape (2, buckets)
        Sums of w·e and w by bucket of groups; without groups there are no buckets.
    """

    sums: Floats
    clusters: Floats

    def __add__(self, other: Figures) -> Figures:
        return Figures(self.sums + other.sums, self.clusters + other.clusters)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return int(self.sums[0])

    @property
    def weight(self) -> float:
        """The weight of the rows."""
        return float(self.sums[1])

    @property
    def predicted(self) -> float:
        """What the model says on average."""
        return float(self.sums[2] / self.sums[1])

    @property
    def observed(self) -> float:
        """How often it happens."""
        return float(self.sums[3] / self.sums[1])

    @property
    def gap(self) -> float:
        """The mean score minus the hit rate."""
        return self.predicted - self.observed

    @property
    def standard_error(self) -> float:
        """The standard error of the gap, shrunk towards that of calibrated scores."""
        n, W, _, _, e2, e1, w2, null = self.sums
        mean = -self.gap
        scatter = e2 - 2 * mean * e1 + mean * mean * w2
        error = shrunk_error(n, scatter, null, W)
        if self.clusters.size:
            residual = self.clusters[0] - mean * self.clusters[1]
            share = self.clusters[1] / W
            between = (residual**2 / np.maximum(1 - share, _LEAST_REST)).sum()
            error = max(error, float(np.sqrt(between) / W))
        return error


def shrunk_error(n: float, scatter: float, null: float, weight: float) -> float:
    """Return the standard error of a gap, shrunk towards that of calibrated scores.

    Parameters
    ----------
    n, weight : float
        The number of rows, and their weight.
    scatter, null : float
        The sums of w²·(e − mean)² and of w²·score·(1 − score).

    >>> round(shrunk_error(100, 20.0, 24.0, 100.0), 4)
    0.0451
    """
    variance = (n * scatter + (PRIOR_ROWS + 1) * null) / (n + PRIOR_ROWS)
    return float(np.sqrt(variance) / weight)


@dataclass(frozen=True)
class Wanted:
    """A slice whose figures are wanted: its conditions and its claim."""

    conditions: tuple[Condition, ...]
    key: int


@dataclass(frozen=True, eq=False)
class FiguresOfAll:
    """Figures of several slices and of the rows that join each if a condition is dropped.

    Attributes
    ----------
    n_rows, n_dropped : int
        Rows, and rows dropped because their outcome is missing.
    weight : float
        The weight of all rows.
    own : tuple of Figures
        The slices.
    joining : tuple of tuple of Figures
        For each slice and each of its conditions the rows that meet the other ones only.
    """

    n_rows: int
    n_dropped: int
    weight: float
    own: tuple[Figures, ...]
    joining: tuple[tuple[Figures, ...], ...]

    def __add__(self, other: FiguresOfAll) -> FiguresOfAll:
        return FiguresOfAll(
            self.n_rows + other.n_rows,
            self.n_dropped + other.n_dropped,
            self.weight + other.weight,
            tuple(a + b for a, b in zip(self.own, other.own, strict=True)),
            tuple(
                tuple(a + b for a, b in zip(one, two, strict=True))
                for one, two in zip(self.joining, other.joining, strict=True)
            ),
        )


def figures_of(rows: Predictions, wanted: Sequence[Wanted], *, hashed: bool) -> FiguresOfAll:
    """Sum up rows in memory.

    Parameters
    ----------
    rows : Predictions
        The rows.
    wanted : sequence of Wanted
        The slices.
    hashed : bool
        Whether groups are hashed into buckets, so that batches can be added.
    """
    w = np.ones(len(rows)) if rows.weight is None else rows.weight
    bucket, n_buckets = None, 0
    if rows.unit is not None:
        bucket, n_buckets = buckets(rows.unit, () if hashed else None)
    variables = {variable.name: variable for variable in rows.variables}
    own, joining = [], []
    for one in wanted:
        claim = claim_of(rows, one.key)
        score, hit = claim.score, claim.hit.astype(np.float64)
        masks = []
        for condition in one.conditions:
            variable = variables.get(condition.variable)
            if condition.is_score or variable is None:
                variable = Variable(condition.variable, "numeric", score)
            masks.append(condition.mask(variable))
        whole = np.logical_and.reduce(masks) if masks else np.ones(len(rows), dtype=bool)

        def summed(inside: Bools, score: Floats = score, hit: Floats = hit) -> Figures:
            return _summed(inside, score, hit, w, bucket, n_buckets)

        own.append(summed(whole))
        others = []
        for k, mask in enumerate(masks):
            rest = [m for i, m in enumerate(masks) if i != k]
            others.append(summed(np.logical_and.reduce([~mask, *rest])))
        joining.append(tuple(others))
    return FiguresOfAll(len(rows), rows.n_dropped, float(w.sum()), tuple(own), tuple(joining))


def lazy_figures(
    rows: LazyRows, roles: Roles, part: Part, wanted: Sequence[Wanted]
) -> FiguresOfAll:
    """Sum up lazy rows in one pass."""
    work = _FiguresWork(roles, part, tuple(wanted), rows.row_numbers_known)
    return reduce(add, rows.map(roles.columns, work))


@dataclass(frozen=True)
class _FiguresWork:
    """Sum up a batch."""

    roles: Roles
    part: Part
    wanted: tuple[Wanted, ...]
    row_numbers_known: bool

    def __call__(self, frame: Any, start: int) -> FiguresOfAll:
        with rows_numbered_from(start if self.row_numbers_known else None):
            batch = self.roles.read(batch_columns(frame), part=self.part)
        if len(batch):
            return figures_of(batch, self.wanted, hashed=True)
        n_buckets = N_BUCKETS if self.roles.groups is not None else 0
        nothing = Figures(np.zeros(8), np.zeros((2, n_buckets)))
        joining = tuple((nothing,) * len(one.conditions) for one in self.wanted)
        return FiguresOfAll(0, batch.n_dropped, 0.0, (nothing,) * len(self.wanted), joining)


def _summed(
    inside: Bools, score: Floats, hit: Floats, w: Floats, bucket: Any, n_buckets: int
) -> Figures:
    s, h, w = score[inside], hit[inside], w[inside]
    e, w2 = h - s, w * w
    terms = (w, w * s, w * h, w2 * e * e, w2 * e, w2, w2 * s * (1 - s))
    sums = np.array([float(inside.sum()), *(float(term.sum()) for term in terms)])
    clusters = np.zeros((2, n_buckets))
    if bucket is not None:
        place = bucket[inside]
        clusters[0] = np.bincount(place, w * e, n_buckets)
        clusters[1] = np.bincount(place, w, n_buckets)
    return Figures(sums, clusters)
