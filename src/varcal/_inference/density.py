"""Density of a variable from its cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from varcal._arrays import Floats

#: Silverman's rule: factor of the bandwidth, and the interquartile range of a normal law whose
#: standard deviation is 1.
SILVERMAN, NORMAL_IQR = 0.9, 1.34
#: The least bandwidth, as a part of the range of the cells, so that ties cannot make it 0.
LEAST_WIDTH = 1e-3
#: A cell narrower than this part of the bandwidth is treated as a single value.
SINGLE_VALUE = 1e-9
#: Values are scaled if the largest is beyond this, or below its inverse.
EXTREME = 1e100
#: The least probability inside the range that a density is divided by, far beyond its ends.
LEAST_INSIDE = 1e-3


def density(x: ArrayLike, weight: ArrayLike, at: ArrayLike, *, rows: float) -> Floats:
    r"""Estimate the density of a variable.

    The mass of each cell is spread evenly up to the midpoints between it and its neighbours, and
    then smoothed by a normal kernel with Silverman's bandwidth
    :math:`0.9 \min(sd, IQR / 1.34)\, n^{-1/5}`, renormalized to the range of the cells.

    Parameters
    ----------
    x : array-like of shape (k,)
        Means of the cells, strictly ascending.
    weight : array-like of shape (k,)
        Σw of each cell.
    at : array-like of shape (m,)
        Where to evaluate the density.
    rows : float
        Number of rows in all cells.

    References
    ----------
    Silverman, B. W. (1986). Density Estimation for Statistics and Data Analysis.

    Examples
    --------
    >>> x = np.linspace(0, 1, 101)
    >>> density(x, np.ones(101), [0.0, 0.5], rows=1000).round(2).tolist()
    [0.99, 0.99]
    """
    x, at = np.asarray(x, float), np.atleast_1d(np.asarray(at, float))
    far = float(np.abs(x).max())
    if len(x) > 1 and not 1 / EXTREME < far < EXTREME:
        # By a power of two, which is exact; squares of the values then neither overflow nor vanish.
        power = int(np.frexp(far)[1])
        scaled = density(np.ldexp(x, -power), weight, np.ldexp(at, -power), rows=rows)
        with np.errstate(over="ignore", under="ignore"):
            return np.minimum(np.ldexp(scaled, -power), np.finfo(float).max)
    mass = np.asarray(weight, float) / np.sum(weight)
    if len(x) == 1:
        edges = np.array([x[0] - 0.5, x[0] + 0.5])
    else:
        middle = (x[1:] + x[:-1]) / 2
        edges = np.concatenate([[2 * x[0] - middle[0]], middle, [2 * x[-1] - middle[-1]]])
    below = np.concatenate([[0.0], np.cumsum(mass)])
    low, high = np.interp([0.25, 0.75], below, edges)
    centre = mass @ x
    sd = np.sqrt(mass @ (x - centre) ** 2)
    spread = min(sd, (high - low) / NORMAL_IQR) or sd or 1.0
    width = max(SILVERMAN * spread * rows**-0.2, (edges[-1] - edges[0]) * LEAST_WIDTH)
    reach = ndtr((at[:, None] - edges) / width)
    inside = reach[:, 0] - reach[:, -1]
    slab = np.diff(edges)
    thin = slab < SINGLE_VALUE * width
    blurred = (reach[:, :-1] - reach[:, 1:])[:, ~thin] @ (mass / np.where(thin, 1.0, slab))[~thin]
    bell = np.exp(-(((at[:, None] - x[thin]) / width) ** 2) / 2) / (np.sqrt(2 * np.pi) * width)
    blurred = blurred + bell @ mass[thin]
    out: Floats = blurred / np.maximum(inside, LEAST_INSIDE)
    return out
