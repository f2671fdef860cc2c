r"""Local polynomials over the cells of two variables.

The weights of neighbours are a product of two tricube kernels, one along each variable's ranks. A
level, and the cell of missing values, is a neighbour of itself only. One smoother therefore serves
a surface over two numbers, curves by level, and a table of levels.
"""

from __future__ import annotations

import numpy as np

from varcal._arrays import Floats
from varcal._surfaces.axis import Axis

#: Half-widths, as shares of the rows, from which cross-validation chooses.
HALF_WIDTHS = (0.06, 0.08, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.4)
#: Degree of the polynomials that choose the half-width, and of those of the surface. The bias of
#: the latter is small beside its standard error, so that coverage does not fall with more rows.
CHOICE_DEGREE, DEGREE = 1, 2
#: The surface's half-width as part of the chosen one. With 4/5, a jump along a diagonal was covered
#: in 8 of 10 samples of 50,000 rows, with 2/3 in all, at a band that is up to an eighth wider.
NARROWER = 0.67
#: It is not made narrower than this, which is little more than two cells.
NARROW = 0.1
#: The widest half-width of the surface. Without it, cross-validation smooths away a narrow bump
#: that few rows cannot show: 3 of 12 samples of 5,000 rows were covered, with it all of them.
WIDEST = 0.27
#: Cross-validation ignores half-widths with a smaller share of residual degrees of freedom.
LEAST_FREEDOM = 0.1
#: Smaller eigenvalues of a local fit, as part of the largest, count as 0: fewer distinct places
#: than coefficients.
_SINGULAR = 1e-8


def hat_matrix(first: Axis, second: Axis, weight: Floats, half_width: float, degree: int) -> Floats:
    """Return the weights of all cells in the fit at each cell, both in row-major order.

    Parameters
    ----------
    first, second : Axis
        The variables.
    weight : ndarray of shape (m1, m2)
        Weight of each cell.
    half_width : float
        Share of the rows to either side along each variable.
    degree : int
        Degree of the local polynomial.

    Examples
    --------
    >>> place = (np.arange(4) + 0.5) / 4
    >>> one = Axis("a", "numeric", ("",) * 4, np.arange(5.0), place, np.full(4, 4))
    >>> hat = hat_matrix(one, one, np.ones((4, 4)), 0.8, 1)
    >>> plane = np.add.outer(2 * place, -3 * place).ravel()
    >>> bool(np.allclose(hat @ plane, plane))
    True
    """
    across = [_kernel(axis, half_width) for axis in (first, second)]
    powers = [
        [kernel * distance**power for power in range(2 * degree + 1)] for kernel, distance in across
    ]
    terms = [(a, b) for a in range(degree + 1) for b in range(degree + 1 - a)]
    moments = {
        (a, b): powers[0][a] @ weight @ powers[1][b].T
        for a in range(2 * degree + 1)
        for b in range(2 * degree + 1 - a)
    }
    rows = [[moments[a + c, b + d] for c, d in terms] for a, b in terms]
    gram = np.moveaxis(np.array(rows), (0, 1), (2, 3))
    value, vector = np.linalg.eigh(gram)
    usable = value > _SINGULAR * value[..., -1:]
    inverse = np.where(usable, 1 / np.where(usable, value, 1.0), 0.0)
    # The fitted value is the constant term, the first coefficient.
    coefficient = np.einsum("ijk,ijtk,ijk->ijt", vector[:, :, 0], vector, inverse)
    shape = (*weight.shape, *weight.shape)
    hat = np.zeros(shape)
    for k, (a, b) in enumerate(terms):
        hat += (
            coefficient[:, :, k, None, None]
            * powers[0][a][:, None, :, None]
            * powers[1][b][None, :, None, :]
        )
    hat *= weight
    return hat.reshape(weight.size, weight.size)


def best_half_width(first: Axis, second: Axis, weight: Floats, response: Floats) -> float:
    """Choose the half-width of a surface by generalized cross-validation of local lines.

    Parameters
    ----------
    first, second, weight
        As in `hat_matrix`.
    response : ndarray of shape (m1 m2,)
        The mean of each cell; any number where the weight is 0.
    """
    mass = weight.ravel()
    filled = int((mass > 0).sum())
    scores = []
    for half_width in HALF_WIDTHS:
        hat = hat_matrix(first, second, weight, half_width, CHOICE_DEGREE)
        free = 1 - float(np.diag(hat).sum()) / filled
        loss = float((mass * (response - hat @ response) ** 2).sum())
        scores.append(loss / free**2 if free >= LEAST_FREEDOM else np.inf)
    best = HALF_WIDTHS[int(np.argmin(scores))]
    return min(max(NARROWER * best, min(best, NARROW)), WIDEST)


def _kernel(axis: Axis, half_width: float) -> tuple[Floats, Floats]:
    """Return tricube weights between cells, and distances in half-widths."""
    alone = axis.alone
    place = np.where(alone, 0.0, axis.position)
    distance = (place[None, :] - place[:, None]) / half_width
    kernel = np.clip(1 - np.abs(distance) ** 3, 0.0, None) ** 3
    apart = alone[:, None] | alone[None, :]
    kernel[apart] = distance[apart] = 0.0
    np.fill_diagonal(kernel, 1.0)
    return kernel, distance
