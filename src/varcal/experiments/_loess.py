"""LOESS as the paper uses it: the curve behind VCE(v*), and the lines and bands of its plots.

VCE(v*) was published with a curve that is fitted at a few vertices and interpolated between them
(`interpolated_loess`). The plots show a direct fit with the pointwise band of its standard error
(`loess_line`). For anything else, use the local polynomials of :mod:`varcal._smoothing`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from varcal._arrays import Floats
from varcal._smoothing.local_polynomial import smoother_weights

__all__ = [
    "LoessLine",
    "ResidualScale",
    "interpolated_loess",
    "loess_line",
    "loess_vertices",
    "residual_scale",
]

#: A plotted line is fitted on at most about twice this many cells of rows.
MOST_CELLS = 500


def loess_vertices(x: ArrayLike, *, span: float, cell: float = 0.2) -> Floats:
    r"""Return the vertices at which interpolated LOESS is fitted.

    The box is the range of the data, widened by half a percent on each side. A cell of more than
    :math:`\lfloor n \cdot span \cdot cell \rfloor` rows is split at its median row. If that row
    is tied with its successor, the cell is split at the first untied row at +1, -1, +2, -2, …
    from it.

    Parameters
    ----------
    x : array-like of shape (n,)
        The positions of the rows, ascending.
    span : float
        The share of the rows in a neighbourhood.
    cell : float
        The size of the largest cell, as a share of a neighbourhood.

    Returns
    -------
    ndarray
        The vertices, ascending.

    References
    ----------
    Cleveland, W. S. and Grosse, E. (1991). Computational methods for local regression.
    Statistics and Computing 1, 47-62.

    Examples
    --------
    >>> loess_vertices([0.0, 1.0, 2.0, 3.0, 10.0], span=1.0, cell=0.5).tolist()
    [-0.05, 1.0, 2.0, 10.05]
    """
    x = np.asarray(x, float)
    n = len(x)
    most = int(np.floor(n * span * cell))
    margin = 0.005 * max(x[-1] - x[0], 1e-10 * max(abs(x[0]), abs(x[-1])) + 1e-30)
    box = (x[0] - margin, x[-1] + margin)
    vertices = list(box)
    cells = deque([(0, n - 1, *box)])
    while cells:
        first, last, left, right = cells.popleft()
        if last - first + 1 <= most:
            continue
        cut = _untied_median(x, first, last)
        if x[cut] in (left, right):
            continue
        vertices.append(float(x[cut]))
        cells.append((first, cut, left, float(x[cut])))
        cells.append((cut + 1, last, float(x[cut]), right))
    return np.unique(vertices)


def _untied_median(x: Floats, first: int, last: int) -> int:
    """Return the row nearest the median that differs from its successor, else the median."""
    # The original code counts rows from one, hence the two.
    median = (first + last + 2) // 2 - 1
    offset = 0
    while first <= median + offset < last:
        if x[median + offset] != x[median + offset + 1]:
            return median + offset
        offset = -offset if offset > 0 else -offset + 1
    return median


def interpolated_loess(
    x: ArrayLike,
    y: ArrayLike,
    at: ArrayLike,
    *,
    span: float,
    degree: int = 2,
    cell: float = 0.2,
) -> Floats:
    """Evaluate LOESS by cubic Hermite interpolation between its vertices.

    Parameters
    ----------
    x : array-like of shape (n,)
        The positions of the rows, ascending.
    y : array-like of shape (n,) or (n, r)
        One response, or one per column.
    at : array-like of shape (m,)
        The points to evaluate at. Points outside the box are clipped to it.
    span, degree, cell
        As in :func:`loess_vertices`; `degree` is that of the local polynomial.

    Returns
    -------
    ndarray of shape (m,) or (m, r)
        The curve.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 50)
    >>> np.round(interpolated_loess(x, x**2, [0.25, 0.5], span=0.9), 6)
    array([0.0625, 0.25  ])
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    knots = loess_vertices(x, span=span, cell=cell)
    where: Floats = np.clip(np.asarray(at, float), knots[0], knots[-1])
    value = smoother_weights(x, knots, span=span, degree=degree) @ y
    slope = smoother_weights(x, knots, span=span, degree=degree, derivative=True) @ y
    left = np.clip(np.searchsorted(knots, where, side="right") - 1, 0, len(knots) - 2)
    wide = knots[left + 1] - knots[left]
    t = (where - knots[left]) / wide
    if y.ndim == 2:
        t, wide = t[:, None], wide[:, None]
    rise = t * t * (3 - 2 * t)
    out: Floats = (
        (1 - rise) * value[left]
        + rise * value[left + 1]
        + wide * t * (1 - t) * ((1 - t) * slope[left] - t * slope[left + 1])
    )
    return out


@dataclass(frozen=True, eq=False)
class LoessLine:
    """A local quadratic fit with the pointwise band of its standard error."""

    x: Floats
    fit: Floats
    low: Floats
    high: Floats


def loess_line(x: Floats, y: Floats, at: Floats, *, span: float) -> LoessLine:
    """Fit y on x, and return the line with its 95 % band at some points.

    Rows with the same value of x are merged into one cell, which is exact and much faster. If
    there are very many values, neighbouring ones are merged too, which moves the fit by about
    1e-4.

    Examples
    --------
    >>> x = np.repeat(np.arange(20.0), 5)
    >>> line = loess_line(x, x**2, np.array([4.0, 10.0]), span=0.9)
    >>> line.fit.round(6)
    array([ 16., 100.])
    """
    values, place = np.unique(x, return_inverse=True)
    if len(values) > MOST_CELLS:
        # Cells are narrow in both rows and x: few rows per cell, and no wide cells in the tails.
        by_rank = MOST_CELLS * np.cumsum(np.bincount(place)) // len(x)
        by_width = (MOST_CELLS * (values - values[0])) // (values[-1] - values[0])
        place = np.unique(by_rank + by_width, return_inverse=True)[1][place]
    counts = np.bincount(place)
    cells = np.bincount(place, x) / counts
    mean = np.bincount(place, y) / counts
    within = np.bincount(place, (y - mean[place]) ** 2)
    scale = residual_scale(cells, mean, counts=counts, within=within, span=span)
    weights = smoother_weights(cells, at, span=span, counts=counts)
    fit = weights @ mean
    reach = stdtrit(scale.dof, 0.975) * scale.standard_error(weights, counts)
    return LoessLine(at, fit, fit - reach, fit + reach)


@dataclass(frozen=True)
class ResidualScale:
    r"""Scale of the residuals and its degrees of freedom, as LOESS defines them.

    With the hat matrix :math:`L` and :math:`A = (I - L)(I - L)^T`, :math:`\delta_1 = tr\,A`,
    :math:`\delta_2 = tr\,A^2`, :math:`s^2 = \sum w r^2 / \delta_1`; the standard error at x is
    :math:`s \sqrt{\sum_j l_j(x)^2 / w_j}`, referred to Student's t with
    :math:`\delta_1^2 / \delta_2` degrees of freedom.

    References
    ----------
    Cleveland, W. S. and Devlin, S. J. (1988). Locally weighted regression. JASA 83, 596-610.
    """

    sigma: float
    delta1: float
    delta2: float
    trace: float

    @property
    def dof(self) -> float:
        r"""Degrees of freedom of the t interval, :math:`\delta_1^2 / \delta_2`."""
        return self.delta1**2 / self.delta2 if self.delta2 > 0 else np.inf

    def standard_error(self, weights: Floats, weight: ArrayLike | None = None) -> Floats:
        """Return the standard error of the fits with these smoother weights.

        Parameters
        ----------
        weights : ndarray of shape (m, k)
            Smoother weights from :func:`smoother_weights`.
        weight : array-like of shape (k,), optional
            The sum of the row weights in each cell, 1 by default.
        """
        squared = weights**2
        inverse = np.ones(weights.shape[1]) if weight is None else 1 / np.asarray(weight, float)
        out: Floats = self.sigma * np.sqrt(squared @ inverse)
        return out


def residual_scale(
    x: ArrayLike,
    y: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    span: float,
    degree: int = 2,
    counts: ArrayLike | None = None,
    within: ArrayLike | float = 0.0,
) -> ResidualScale:
    """Return the residual scale of a local polynomial, with exact deltas.

    Parameters
    ----------
    x, y, weight, span, degree, counts
        As in :func:`local_polynomial`; one response.
    within : array-like of shape (k,)
        For each cell, the sum of squares of its rows around their mean; 0 for single rows.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(30.0)
    >>> y = (-1.0) ** np.arange(30)
    >>> scale = residual_scale(x, y, span=0.7)
    >>> round(scale.sigma, 2), round(scale.dof, 1)
    (1.1, 24.7)
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    many = np.ones(len(x)) if counts is None else np.asarray(counts, float)
    prior = many if weight is None else np.asarray(weight, float)
    hat = smoother_weights(x, x, span=span, degree=degree, weight=prior, counts=counts)
    squares = prior / many * (np.asarray(within) + many * (y - hat @ y) ** 2)
    trace = float(np.trace(hat))
    # The rows of a cell share one fit, so I - L changes only their mean.
    rest = np.eye(len(x)) - hat * (np.sqrt(many)[:, None] / np.sqrt(many))
    gram = rest @ rest.T
    inner = float(many.sum() - len(x))
    delta1 = inner + float(np.trace(gram))
    delta2 = inner + float(np.einsum("ij,ij->", gram, gram))
    sigma = float(np.sqrt(squares.sum() / delta1)) if delta1 > 1e-9 else 0.0
    return ResidualScale(sigma, delta1, delta2, trace)
