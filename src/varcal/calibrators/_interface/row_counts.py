"""Weights as the numbers of rows that rows stand for."""

from __future__ import annotations

import warnings

import numpy as np

from varcal._arrays import Floats
from varcal.exceptions import VarcalWarning

__all__ = ["are_sampling_weights", "row_counts", "warn_of_sampling_weights"]


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
