"""LOESS as its published programs evaluate it: fitted at a few vertices, interpolated between.

Needed only for figures that were published with it; the direct fit of
:mod:`varcal._smoothing.local_polynomial` is the better curve.
"""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import ArrayLike, NDArray

from varcal._smoothing.local_polynomial import smoother_weights

__all__ = ["interpolated_loess", "loess_vertices"]

Floats = NDArray[np.float64]


def loess_vertices(x: ArrayLike, *, span: float, cell: float = 0.2) -> Floats:
    r"""Where interpolated LOESS is fitted.

    The box is the data's range widened by half a percent on each side. A cell of more than
    :math:`\lfloor n \cdot span \cdot cell \rfloor` rows is split at its median row; if that row
    is tied with its successor, at the first untied row at +1, -1, +2, -2, … from it.

    Parameters
    ----------
    x : array-like of shape (n,)
        Rows' positions, ascending.
    span : float
        Share of the rows in a neighbourhood.
    cell : float
        Largest cell, as a share of a neighbourhood.

    Returns
    -------
    ndarray
        Ascending vertices.

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
    """Row nearest the median that differs from its successor; the median if none is found."""
    # Rows count from one in the rule of halves, hence the two.
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
        Rows' positions, ascending.
    y : array-like of shape (n,) or (n, r)
        Responses, one column each.
    at : array-like of shape (m,)
        Where; points outside the box are clipped to it.
    span, degree, cell
        As in :func:`loess_vertices`; degree of the local polynomial.

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
