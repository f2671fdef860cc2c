"""Calibrate checked rows with a calibrator that is learned from other checked rows."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from varcal._arrays import Floats
from varcal._input.predictions import Predictions
from varcal._input.variables import Variable, present_levels
from varcal._threads import one_blas_thread
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.rows import CalibrationRows, second_column
from varcal.exceptions import VarcalWarning


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


#: The mean from which weights that are not whole numbers are unlikely to be numbers of rows.
MOST_ROWS_EACH = 2.0


def are_sampling_weights(weight: Floats) -> bool:
    """Return whether weights are far above 1 and are not numbers of rows.

    >>> are_sampling_weights(np.array([10.5, 31.5])), are_sampling_weights(np.array([2.0, 5.0]))
    (True, False)
    """
    return float(weight.mean()) > MOST_ROWS_EACH and not (weight == np.rint(weight)).all()


def row_counts(weight: Floats) -> Floats:
    r"""Return weights as numbers of rows.

    Weights that are all below 1 are not counts: they are scaled to their effective number of
    rows, :math:`(\sum w)^2 / \sum w^2`.

    >>> row_counts(np.array([0.1, 0.1])), row_counts(np.array([1.0, 3.0]))
    (array([1., 1.]), array([1., 3.]))
    """
    if weight.max() >= 1:
        return weight
    # The squares of very small weights would underflow.
    scaled = weight / weight.max()
    return np.asarray(scaled * (scaled.sum() / (scaled**2).sum()))


def warn_of_sampling_weights(weight: Floats) -> None:
    """Warn of weights that are far above 1 and are not numbers of rows."""
    if not are_sampling_weights(weight):
        return
    mean = float(weight.mean())
    warnings.warn(
        "sample_weight is read as the number of rows that each row stands for: "
        f"{float(weight.sum()):,.0f} in total on {len(weight):,} rows, so the fit trusts them "
        f"{mean:,.1f} times as much as rows without weights; if these are sampling weights, "
        "divide them by their mean",
        VarcalWarning,
        stacklevel=5,
    )
