"""ScoredRows: the rows behind a table, where sums are not enough."""

from __future__ import annotations

from dataclasses import dataclass

from varcal._arrays import Floats, Ints


@dataclass(frozen=True)
class ScoredRows:
    """The rows behind some sums, for simulating hits.

    Parameters
    ----------
    score : array
        Scores.
    coarse, fine : array of int
        Bin of each row among the coarse and the fine cells.
    weight : array, optional
        Weights, 1 by default.
    """

    score: Floats
    coarse: Ints
    fine: Ints | None = None
    weight: Floats | None = None
