"""What a larger model saves on held-out rows, and how certain that is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from varcal._arrays import Floats, Ints

#: The least standard error, against division by 0.
LEAST_ERROR = 1e-300


@dataclass(frozen=True)
class Gain:
    """By how much a larger model lowers the loss of held-out rows.

    Attributes
    ----------
    value : float
        Mean log-loss of the smaller model minus that of the larger one.
    error : float
        The standard error of that.
    count : float
        The number of independent savings in that mean: rows, or groups of rows.
    """

    value: float
    error: float
    count: float = float("inf")

    @property
    def ratio(self) -> float:
        """Return the gain in standard errors."""
        return self.value / max(self.error, LEAST_ERROR)


def gain_of(saved: Floats, mass: Floats, units: Ints | None = None) -> Gain:
    """Return the mean of weighted savings, with its standard error.

    The rows of one unit count as one saving, because they are not independent. Of no rows the
    error is infinite.

    Parameters
    ----------
    saved, mass : ndarray
        Savings times weights, and weights.
    units : ndarray of int, optional
        The unit of every row.

    Examples
    --------
    >>> saved, mass = np.array([1.0, 1.0, 0.0, 0.0]), np.ones(4)
    >>> gain_of(saved, mass)
    Gain(value=0.5, error=0.25, count=4.0)
    >>> gain_of(saved, mass, np.array([0, 0, 1, 1]))
    Gain(value=0.5, error=0.5, count=2.0)
    """
    if not len(saved):
        return Gain(0.0, float("inf"), 1.0)
    total = float(mass.sum())
    mean = float(saved.sum() / total)
    apart = saved - mean * mass
    if units is None:
        return Gain(mean, float(np.sqrt((apart**2 / mass).sum())) / total, total)
    _, place = np.unique(units, return_inverse=True)
    sums = np.bincount(place, apart)
    count = len(sums)
    inflated = float(np.sqrt((sums**2).sum() * count / max(count - 1, 1)))
    return Gain(mean, inflated / total, float(count))


def cautious_gain(
    saved: Floats, mass: Floats, units: Ints | None, curvature: Floats, apart: Floats
) -> Gain:
    r"""Return the gain with a standard error of at least the one under the smaller model.

    To second order a row saves :math:`r \Delta - w \Delta^2 / 2` if its predictor moves by
    :math:`\Delta`, and if the smaller model is true, r has mean 0 and variance w. The standard
    error is therefore at least :math:`\sqrt{\sum w \Delta^2}` over the number of rows: savings
    that happen to be nearly equal are not evidence.

    Parameters
    ----------
    saved, mass, units
        As for `gain_of`.
    curvature : ndarray
        w times weights: the second derivative of the loss of each row under the smaller model.
    apart : ndarray
        :math:`\Delta`, the predictor of the larger model minus that of the smaller one.

    Examples
    --------
    >>> same, mass = np.full(4, 0.1), np.ones(4)
    >>> gain_of(same, mass).error
    0.0
    >>> cautious_gain(same, mass, None, np.full(4, 0.25), np.full(4, 0.2)).error
    0.05
    """
    gain = gain_of(saved, mass, units)
    least = float(np.sqrt(curvature @ apart**2) / mass.sum())
    return replace(gain, error=max(gain.error, least))
