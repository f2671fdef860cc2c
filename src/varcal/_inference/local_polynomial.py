"""Local polynomials on cells, as the weights of a linear smoother.

A *cell* is a mean over some rows that lie close together on the axis; a single row is also a cell.
The smoother is given by its matrix of weights: the fit is ``weights @ y`` for any response, and its
variance is ``weights**2 @ variance``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from varcal._arrays import Floats

#: Numbers in one working array, which then stays in the processor's cache.
_BLOCK = 1 << 15
#: A polynomial with a smaller norm depends on rows with almost no weight, and is dropped.
_RANK = 1e-4
#: Added before the number of nearest rows is rounded down, as in the LOESS programs.
_ROUNDING = 1e-5
#: If a kernel reaches no cell, it is widened to this many times the distance to the nearest.
_BEYOND_NEAREST = 1.01
#: The least half-width of a kernel, to avoid division by 0.
_LEAST_REACH = 1e-300


def nearest_bandwidth(
    x: ArrayLike, at: ArrayLike, span: float, *, counts: ArrayLike | None = None
) -> Floats:
    r"""Distance from each point to its :math:`\lfloor n\,span + 10^{-5}\rfloor`-th nearest row.

    For a span above 1 it is the distance to the farthest row times :math:`\sqrt{span}`, as in the
    LOESS programs.

    Parameters
    ----------
    x : array-like of shape (k,)
        Positions of the cells, ascending.
    at : array-like of shape (m,)
        Points.
    span : float
        Share of the rows in a neighbourhood.
    counts : array-like of int, shape (k,), optional
        Rows in each cell, 1 by default.

    Examples
    --------
    >>> nearest_bandwidth([0.0, 1.0, 2.0, 10.0], [0.0, 9.0], 0.5)
    array([1., 7.])
    """
    x = np.asarray(x, float)
    at = np.asarray(at, float)
    rows = np.ones(len(x), np.int64) if counts is None else np.asarray(counts).astype(np.int64)
    ends = np.cumsum(rows)
    n = int(ends[-1])
    near = min(n, max(1, int(np.floor(n * span + _ROUNDING))))
    flat = np.repeat(x, rows) if n <= _BLOCK else None

    def row(index: NDArray[np.int64]) -> Floats:
        if flat is not None:
            return flat[index]
        return x[np.searchsorted(ends, index, side="right")]

    # The nearest rows are consecutive: find the first of them by bisection.
    start = np.zeros(len(at), np.int64)
    left = n - near
    while left > 0:
        half = (left + 1) // 2
        probe = start + half - 1
        beyond = row(probe) + row(probe + near) < 2 * at
        start = np.where(beyond, start + half, start)
        left -= half
    reach = np.maximum(at - row(start), row(start + near - 1) - at)
    out: Floats = reach * np.sqrt(max(1.0, span))
    return out


def smoother_weights(
    x: ArrayLike,
    at: ArrayLike,
    *,
    span: float | None = None,
    bandwidth: ArrayLike | None = None,
    degree: int = 2,
    weight: ArrayLike | None = None,
    counts: ArrayLike | None = None,
    transform: Callable[[Floats], Floats] | None = None,
) -> Floats:
    r"""Return the weights of the local polynomial: the fit at ``at[i]`` is ``weights[i] @ y``.

    In :math:`u = (x - x_0)/h` with tricube weights :math:`k = w (1 - |u|^3)^3`, and polynomials
    :math:`p_0, p_1, \dots` orthonormal under k, :math:`l_j = k_j \sum_d p_d(0)\,p_d(u_j)`. The
    polynomials come from their three-term recurrence, which is more stable than normal
    equations. If a neighbourhood has too few distinct values, the degree is lowered there.

    Parameters
    ----------
    x : array-like of shape (k,)
        Positions of the cells, ascending.
    at : array-like of shape (m,)
        Where to fit.
    span : float, optional
        Share of the rows in a neighbourhood. Give either this or `bandwidth`.
    bandwidth : float or array-like of shape (m,), optional
        Half-width of the kernel.
    degree : int
        Degree of the polynomial.
    weight : array-like of shape (k,), optional
        Sum of weights in each cell, `counts` by default.
    counts : array-like of int, shape (k,), optional
        Rows in each cell, 1 by default.
    transform : function, optional
        Increasing function of the positions in which the polynomial is taken. Neighbourhoods and
        kernel weights stay those of `x`.

    References
    ----------
    Cleveland, W. S. (1979). Robust locally weighted regression and smoothing scatterplots.
    JASA 74, 829-836.
    Forsythe, G. E. (1957). Generation and use of orthogonal polynomials for data-fitting.
    Fan, J. and Gijbels, I. (1996). Local Polynomial Modelling and Its Applications.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(9.0)
    >>> weights = smoother_weights(x, [2.0, 3.5], span=0.9)
    >>> np.round(weights @ x**2, 10)
    array([ 4.  , 12.25])
    """
    x = np.asarray(x, float)
    at = np.atleast_1d(np.asarray(at, float))
    reach = _bandwidth(x, at, span, bandwidth, counts)
    if weight is None:
        weight = counts
    root = None if weight is None else np.sqrt(np.asarray(weight, float))
    axis, here_on_axis = (x, at) if transform is None else (transform(x), transform(at))
    out = np.zeros((len(at), len(x)))
    step = max(1, min(max(32, _BLOCK // 4 // len(x)), _BLOCK // len(x)))
    for start in range(0, len(at), step):
        rows = slice(start, start + step)
        here, wide = at[rows], reach[rows]
        cells = slice(
            np.searchsorted(x, (here - wide).min()),
            np.searchsorted(x, (here + wide).max(), side="right"),
        )
        share = None if root is None else root[cells]
        with np.errstate(over="ignore"):
            u = np.clip((x[cells] - here[:, None]) / wide[:, None], -1.0, 1.0)
        t = u
        if transform is not None:
            apart = axis[cells] - here_on_axis[rows, None]
            unit = np.max(np.abs(apart), axis=1, where=np.abs(u) < 1, initial=0.0)[:, None]
            t = apart / np.where(unit > 0, unit, 1.0)
        out[rows, cells] = _block(u, t, share, degree)
    return out


def _bandwidth(
    x: Floats,
    at: Floats,
    span: float | None,
    bandwidth: ArrayLike | None,
    counts: ArrayLike | None,
) -> Floats:
    """Return half-widths that are positive and reach at least one cell each."""
    if span is not None:
        reach = nearest_bandwidth(x, at, span, counts=counts)
    else:
        reach = np.broadcast_to(np.asarray(bandwidth, float), at.shape).copy()
    right = np.searchsorted(x, at)
    before, after = x[np.maximum(right - 1, 0)], x[np.minimum(right, len(x) - 1)]
    nearest = np.minimum(np.abs(at - before), np.abs(at - after))
    alone = reach <= nearest
    if np.any(alone):
        # At a tied value only that value counts; between tied values, the nearest cells do.
        reach[alone] = _BEYOND_NEAREST * nearest[alone]
        for i in np.flatnonzero(alone & (nearest == 0)):
            distance = np.abs(x - at[i])
            reach[i] = np.min(distance[distance > 0], initial=1.0)
    out: Floats = np.maximum(reach, _LEAST_REACH)
    return out


def _block(u: Floats, t: Floats, root: Floats | None, degree: int) -> Floats:
    """Return the smoother weights of a few points, one row per point.

    The kernel is a function of u, the polynomial one of t.
    """
    size = np.abs(u)
    kernel = 1.0 - size * size * size
    root_kernel = kernel * np.sqrt(kernel)
    if root is not None:
        root_kernel *= root
    # `now` and `before` are polynomials on the cells times the root of the kernel;
    # `value` and `value_before` are the same polynomials at t = 0.
    norm = np.sqrt(np.einsum("ij,ij->i", root_kernel, root_kernel))[:, None]
    now, before = root_kernel / norm, np.zeros_like(u)
    value, value_before = 1.0 / norm, np.zeros_like(norm)
    total: Floats = value * now
    back = np.zeros_like(norm)
    for _ in range(degree):
        ahead = t * now
        mean = np.einsum("ij,ij->i", ahead, now)[:, None]
        ahead -= mean * now
        ahead -= back * before
        norm = np.sqrt(np.einsum("ij,ij->i", ahead, ahead))[:, None]
        inverse = np.where(norm > _RANK, 1.0 / np.maximum(norm, _RANK), 0.0)
        if not np.any(inverse):
            break
        ahead *= inverse
        value_ahead = (-mean * value - back * value_before) * inverse
        total += value_ahead * ahead
        before, now, back = now, ahead, norm
        value_before, value = value, value_ahead
    total *= root_kernel
    return total
