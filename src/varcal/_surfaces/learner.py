"""Learners of a gap: what the variables and the score predict of hit − score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._arrays import Bools, Floats
from varcal._input.variables import Variable

#: Trees, their depth, the learning rate and the least share of rows in a leaf. Gaps are small
#: beside the noise of outcomes: with 60 trees or depth 4 the value was a tenth to a quarter lower
#: on planted slices and additive gaps of 5,000 rows.
TREES, DEPTH, RATE, LEAF = 30, 3, 0.06, 0.02
#: A leaf has at least so many rows.
LEAST_LEAF = 20
#: Levels with a code of their own; scikit-learn allows 255 categories.
MOST_LEVELS = 250


@dataclass(frozen=True, eq=False)
class Features:
    """Variables as numbers, with which of them are categories.

    Attributes
    ----------
    columns : ndarray of shape (n, k)
        One column per variable, NaN where it is missing; levels as codes.
    categories : ndarray of bool
        Which columns are codes of levels.
    """

    columns: Floats
    categories: Bools

    @classmethod
    def of(cls, variables: tuple[Variable, ...], n_rows: int) -> Features:
        """Read variables.

        >>> grade = Variable.of(["b", "a", None], "grade")
        >>> Features.of((grade,), 3).columns.ravel()
        array([ 1.,  0., nan])
        """
        columns = np.empty((n_rows, len(variables)))
        for k, variable in enumerate(variables):
            if variable.kind == "levels":
                columns[:, k] = _codes(variable)
            else:
                columns[:, k] = variable.values
        kinds = np.array([variable.kind == "levels" for variable in variables], dtype=bool)
        return cls(columns, kinds)

    def with_scores(self, scores: Floats) -> Features:
        """Add columns of numbers."""
        more = scores.reshape(len(scores), -1)
        return Features(
            np.column_stack([self.columns, more]),
            np.concatenate([self.categories, np.zeros(more.shape[1], dtype=bool)]),
        )


def predicted_errors(
    features: Features,
    error: Floats,
    weight: Floats | None,
    learn: Bools,
    judge: Bools,
    random_state: int,
) -> Floats:
    """Learn hit − score from some rows, and predict it for others."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415  loads when needed

    kinds: Any = features.categories if features.categories.any() else None
    model = HistGradientBoostingRegressor(
        max_iter=TREES,
        max_depth=DEPTH,
        learning_rate=RATE,
        min_samples_leaf=max(LEAST_LEAF, int(LEAF * learn.sum())),
        early_stopping=False,
        categorical_features=kinds,
        random_state=random_state,
    )
    columns = features.columns
    model.fit(columns[learn], error[learn], None if weight is None else weight[learn])
    found: Floats = model.predict(columns[judge])
    return found


def _codes(variable: Variable) -> Floats:
    """Number the levels, the frequent ones first where there are many; the rest share a code."""
    codes = variable.values
    if len(variable.levels) > MOST_LEVELS:
        counts = np.bincount(codes[codes >= 0], minlength=len(variable.levels))
        rank = np.empty(len(counts), dtype=np.intp)
        rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
        codes = np.where(codes < 0, -1, np.minimum(rank[codes], MOST_LEVELS))
    return np.where(codes < 0, np.nan, codes.astype(np.float64))


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
