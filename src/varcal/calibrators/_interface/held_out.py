"""Calibrate checked rows with a calibrator that is learned from other checked rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from varcal._arrays import Floats
from varcal._input.predictions import Predictions
from varcal._input.variables import Variable, present_levels
from varcal._threads import one_blas_thread
from varcal.calibrators._interface.calibrator import Calibrator
from varcal.calibrators._interface.row_counts import are_sampling_weights
from varcal.calibrators._interface.rows import CalibrationRows, second_column

__all__ = ["calibrate_held_out"]


@one_blas_thread()
def calibrate_held_out(calibrator: Calibrator, learn: Predictions, held: Predictions) -> Floats:
    """Fit on some rows; return probabilities of others, in the shape of those that they have.

    Both have the same classes and variables, and `learn` has rows of two classes with weight.

    >>> from varcal.calibrators import PlattCalibrator
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.05, 0.95, 4000)
    >>> learn, held = (Predictions.of(rng.random(4000) < p**2, p) for _ in range(2))
    >>> q = calibrate_held_out(PlattCalibrator(), learn, held)
    >>> abs(float(q.mean() - held.y.mean())) < 0.02
    True
    """
    kept = np.ones(len(learn), dtype=bool) if learn.weight is None else learn.weight > 0
    calibrator._fit_rows(
        CalibrationRows(
            second_column(learn.p)[kept],
            learn.classes,
            learn.y[kept],
            None if learn.weight is None else _per_row(learn.weight[kept]),
            tuple(_present(variable.take(kept)) for variable in learn.variables),
            None if learn.groups is None else learn.groups[kept],
        )
    )
    answer = calibrator._answer(
        CalibrationRows(
            second_column(held.p),
            held.classes,
            np.empty(0, dtype=np.intp),
            variables=tuple(_present(variable) for variable in held.variables),
        )
    )
    return answer if held.p.ndim == 2 else answer[:, 1]


def _present(variable: Variable) -> Variable:
    """Return a variable without the levels that have no row, as if only these rows were known."""
    if variable.kind != "levels":
        return variable
    codes, levels = present_levels(variable.values, variable.levels)
    return replace(variable, values=codes, levels=tuple(levels))


def _per_row(weight: Floats) -> Floats:
    """Divide sampling weights by their mean, as the warning of `fit` advises.

    >>> _per_row(np.array([10.5, 31.5])), _per_row(np.array([2.0, 5.0]))
    (array([0.5, 1.5]), array([2., 5.]))
    """
    return weight / float(weight.mean()) if are_sampling_weights(weight) else weight
