"""Slices found in past rows as a learner: regions where the gap was clear then."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Bools, Floats
from varcal._input.variables import Variable

#: Slices that are used at most, none sharing more than half of its rows with another.
MOST, SHARED = 3, 0.5
#: A slice counts by 1 − LEAST_T² / t², where t is its sum of errors in standard deviations: the
#: best of many regions has t of about 3 without any gap.
LEAST_T = 3.0
#: Rows that are searched at most.
SEARCH_ROWS = 50_000


class PastSlices:
    """Search past rows for slices, and predict the error of others by them.

    Parameters
    ----------
    variables : tuple of Variable
        The variables of all rows.
    score : ndarray
        The score of all rows; cells are chosen without outcomes.
    max_depth : int
        Variables of a slice at most.
    """

    def __init__(self, variables: tuple[Variable, ...], score: Floats, max_depth: int) -> None:
        from varcal._slices.cells import grid_of  # noqa: PLC0415
        from varcal._slices.condition import SCORE  # noqa: PLC0415

        own = Variable(SCORE, "numeric", score)
        self.grid = grid_of([*variables, own], score, [False] * len(variables) + [True])
        self.max_depth = min(max_depth, len(variables) + 1)

    def predict(self, error: Floats, null: Floats, weight: Floats, learn: Bools) -> Floats:
        """Return what slices of some rows predict for all rows.

        Parameters
        ----------
        error, null, weight : ndarray
            hit − score, its variance under calibration, and the weight of each row.
        learn : ndarray of bool
            The past rows.
        """
        from varcal._slices.cells import Grid  # noqa: PLC0415
        from varcal._slices.search import Rows, search  # noqa: PLC0415

        found = np.zeros(len(error))
        rows = np.flatnonzero(learn)[:SEARCH_ROWS]
        grid = Grid(self.grid.axes, np.ascontiguousarray(self.grid.fine[:, rows]))
        scaled = weight / weight[rows].mean()
        sums = np.column_stack([(scaled**2 * null)[rows], scaled[rows]])
        column = (scaled * error)[rows, None].astype(np.float32)
        (rules,) = search(Rows(grid, sums, 1, self.max_depth), column).rules
        whole = Rows(self.grid, np.zeros((len(error), 2)), 1, self.max_depth)
        kept: list[Bools] = []
        for rule in sorted(rules, key=lambda one: (-one.t, one.axes, one.ends)):
            inside = whole.inside(rule)
            shared = [(inside & one).sum() / (inside | one).sum() for one in kept]
            if len(kept) == MOST or any(share > SHARED for share in shared):
                continue
            kept.append(inside)
            past = inside & learn
            rest = float((weight * (error - found))[past].sum())
            spread = float((weight**2 * null)[past].sum())
            if rest**2 > LEAST_T**2 * spread:
                size = rest / float(weight[past].sum())
                found[inside] += size * (1 - LEAST_T**2 * spread / rest**2)
        return found
