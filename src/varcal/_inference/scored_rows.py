"""ScoredRows: the rows behind a table, where sums are not enough."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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

    def ordered(self) -> ScoredRows:
        """Return the rows sorted by everything they have, so that draws do not depend on order."""
        keys = [self.weight, self.score, self.fine, self.coarse]
        order = np.lexsort([key for key in keys if key is not None])
        return ScoredRows(
            self.score[order],
            self.coarse[order],
            None if self.fine is None else self.fine[order],
            None if self.weight is None else self.weight[order],
        )
