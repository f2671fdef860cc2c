"""Calibrated probabilities of every row, from calibrators that have not seen it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal._input.predictions import Predictions
from varcal._input.variables import Variable, present_levels
from varcal._runtime.threads import one_blas_thread
from varcal.calibrators._interface.calibrator import Calibrator
from varcal.calibrators._interface.rows import CalibrationRows

__all__ = ["cross_fit", "folds_of"]

#: Weights with a mean above this that are not whole numbers are sampling weights, not numbers of
#: rows: they are divided by their mean, as the calibrator's own warning advises.
MOST_ROWS_EACH = 2.0


def folds_of(rows: Predictions, n_folds: int, random_state: int) -> Ints:
    """Return the fold of each row.

    The rows of a group share a fold; without groups every class is spread evenly over the folds.

    >>> rows = Predictions.of([0, 1] * 10, [0.5] * 20)
    >>> fold = folds_of(rows, 5, 0)
    >>> np.bincount(fold), np.bincount(fold[rows.y == 1])
    (array([4, 4, 4, 4, 4]), array([2, 2, 2, 2, 2]))
    """
    rng = np.random.default_rng(random_state)
    if rows.groups is None:
        mixed = rng.permutation(len(rows))
        order = mixed[np.argsort(np.asarray(rows.y)[mixed], kind="stable")]
        fold = np.empty(len(rows), dtype=np.intp)
        fold[order] = np.arange(len(rows)) % n_folds
        return fold
    size = np.bincount(rows.groups)
    mixed = rng.permutation(len(size))
    of_group = np.empty(len(size), dtype=np.intp)
    filled = np.zeros(n_folds)
    for group in mixed[np.argsort(-size[mixed], kind="stable")]:  # the largest groups first
        of_group[group] = filled.argmin()
        filled[of_group[group]] += size[group]
    return of_group[rows.groups]


@one_blas_thread
def cross_fit(calibrator: type[Calibrator], rows: Predictions, fold: Ints) -> Floats:
    """Return probabilities of the same shape as those of the rows.

    For each fold a calibrator with its default settings is fitted on the other folds. If those
    hold rows of a single class, the fold keeps its probabilities.

    >>> from varcal.calibrators import PlattCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 2000)
    >>> rows = Predictions.of(rng.random(2000) < p**2, p)
    >>> q = cross_fit(PlattCalibrator, rows, folds_of(rows, 5, 0))
    >>> abs(float(q.mean() - rows.y.mean())) < 0.005
    True
    """
    second = rows.p[:, 1] if rows.p.ndim == 2 and rows.p.shape[1] == 2 else rows.p
    answer = np.array(rows.p, dtype=np.float64)
    for k in np.unique(fold):
        held = fold == k
        known = ~held if rows.weight is None else ~held & (rows.weight > 0)
        if len(np.unique(rows.y[known])) < 2:
            continue
        learned = calibrator()._fit_rows(
            CalibrationRows(
                second[known],
                rows.classes,
                rows.y[known],
                None if rows.weight is None else _row_counts(rows.weight[known]),
                _taken(rows.variables, known),
                None if rows.groups is None else rows.groups[known],
            )
        )
        new = CalibrationRows(
            second[held],
            rows.classes,
            np.empty(0, np.intp),
            variables=_taken(rows.variables, held),
        )
        found = learned._answer(new)
        answer[held] = found if rows.p.ndim == 2 else found[:, 1]
    return answer


def _taken(variables: tuple[Variable, ...], rows: AnyArray) -> tuple[Variable, ...]:
    """Return variables on some rows, without the levels that have no row there."""
    taken = []
    for one in variables:
        part = one.take(rows)
        if one.kind == "levels":
            codes, levels = present_levels(part.values, one.levels)
            part = replace(part, values=codes, levels=tuple(levels))
        taken.append(part)
    return tuple(taken)


def _row_counts(weight: Floats) -> Floats:
    """Divide sampling weights by their mean; leave numbers of rows as they are.

    >>> _row_counts(np.array([10.5, 31.5])), _row_counts(np.array([2.0, 5.0]))
    (array([0.5, 1.5]), array([2., 5.]))
    """
    mean = float(weight.mean())
    if mean <= MOST_ROWS_EACH or (weight == np.rint(weight)).all():
        return weight
    return weight / mean
