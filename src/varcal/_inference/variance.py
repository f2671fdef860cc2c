"""Variance of cell means around a fitted curve, for independent rows and for groups."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Floats
from varcal._sums.curve_cells import Cells

ERROR, PREDICTED_ERROR, GAP = range(3)
#: Rows, half of them hits, that are added to the observed ones (Agresti and Coull).
PRIOR_ROWS = 4.0
#: The least share of a row's variance that is left in its residual.
LEAST_FREEDOM = 0.1
#: The least variance under the fitted gap, as part of the variance of calibrated scores.
LEAST_MODEL = 0.1
#: The least variance of a row whose score is 0 or 1. Only its ratio to other variances counts; the
#: product with the square of the smallest weight (1e-241) is still a number.
LEAST_NULL = 1e-30
#: The least sum of fourth powers, to avoid division by 0.
TINY = 1e-300


def _squares(cells: Cells, fit: Floats, response: int) -> Floats:
    """Return Σw²(response − fit)² over the rows of each cell."""
    if response == GAP:
        first, second = cells.score2 - cells.hit2, cells.square2
    elif response == ERROR:
        first = second = cells.weight2 - cells.hit2
    else:
        first = cells.weight2 - cells.score2
        second = first - cells.null2
    out: Floats = np.maximum(second - 2 * fit * first + fit**2 * cells.weight2, 0.0)
    return out


def _freedom(hat: Floats, n: Floats) -> Floats:
    """Return the share of a row's variance that is left in its residual."""
    used = (2 * np.diag(hat) - np.einsum("ij,ij->i", hat, hat)) / n
    out: Floats = np.maximum(1 - used, LEAST_FREEDOM)
    return out


def _fitted_variance(cells: Cells, fit: Floats, response: int) -> Floats:
    """Return the variance of a row's outcome if the fit is right: of a hit, or of the gap."""
    null = np.maximum(cells.null2 / cells.weight2, LEAST_NULL)
    if response == ERROR:
        return np.maximum(fit * (1 - fit), LEAST_MODEL * null)
    middle = cells.score2 / cells.weight2
    return np.maximum(null + fit * (2 * middle - 1) - fit**2, LEAST_MODEL * null)


def cell_variance(cells: Cells, fit: Floats, hat: Floats, window: Floats, response: int) -> Floats:
    r"""Return the variance of the cell means of a response for independent rows.

    The squared residuals of the rows are averaged over a window of cells. Where the gap changes
    within a window, so does the variance of hits: scores of .99 with hit rates of .85 at the end
    of a variable vary thirteen times as much as the calibrated scores beside them. The variances
    of error and gap are therefore at least those of the fitted curve, scaled to the squared
    residuals of the window. They are also at least those of calibrated scores,
    :math:`s(1 - s)`, and four rows, half of them hits, are added; otherwise the variance would be
    0 in a window that contains only hits.

    Parameters
    ----------
    cells : Cells
        The sums.
    fit : ndarray of shape (k,)
        Fitted response at the cells.
    hat : ndarray of shape (k, k)
        The weights of its smoother.
    window : ndarray of shape (k, k)
        Weights of the average, rows summing to one; the identity for levels.
    response : int
        ``ERROR``, ``PREDICTED_ERROR`` or ``GAP``.

    References
    ----------
    Agresti, A. and Coull, B. A. (1998). Approximate is better than "exact" for interval
    estimation of binomial proportions. American Statistician 52, 119-126.
    """
    outcome = response != PREDICTED_ERROR
    squares = _squares(cells, fit, response)
    scale = window @ cells.weight2
    around = window @ (squares / _freedom(hat, cells.n))
    unit = around / scale
    if outcome:
        model = _fitted_variance(cells, fit, response)
        unit = np.maximum(unit, model * around / (window @ (model * cells.weight2)))
        unit = np.maximum(unit, window @ cells.null2 / scale)
        rows = (window @ cells.n) / np.einsum("ij,ij->i", window, window)
        unit = (rows * unit + PRIOR_ROWS / 4) / (rows + PRIOR_ROWS)
    return unit * cells.weight2 / cells.weight**2


def group_factor(
    cells: Cells, fit: Floats, hat: Floats, response: int, independent: Floats
) -> Floats:
    r"""Return a factor of the covariance of the fit if rows of a group depend on each other.

    It has one column per bucket of groups, :math:`u_b(x) = \sum_j l_j(x) R_{jb} / W_j`, where
    :math:`R_{jb}` is the sum of the bucket's weighted residuals in cell j. If the resulting
    variance is below that of independent rows, further columns add the difference.

    Parameters
    ----------
    cells, fit, hat, response
        As in :func:`cell_variance`; the cells must have sums by bucket.
    independent : ndarray of shape (k, k)
        Factor under independent rows.
    """
    w, hit, score = cells.group_weight, cells.group_hit, cells.group_score
    assert w is not None and hit is not None and score is not None
    total = {ERROR: lambda: w - hit, PREDICTED_ERROR: lambda: w - score, GAP: lambda: score - hit}
    residual = total[response]() - fit[:, None] * w
    residual /= (cells.weight * np.sqrt(_freedom(hat, cells.n)))[:, None]
    filled = w.sum(0) > 0
    n_groups = int(np.count_nonzero(filled))
    factor = hat @ residual[:, filled] * np.sqrt(n_groups / max(n_groups - 1, 1))
    least = np.einsum("ij,ij->i", independent, independent)
    variance = np.einsum("ij,ij->i", factor, factor)
    shortfall = np.sqrt(np.maximum(1 - variance / np.where(least > 0, least, 1.0), 0.0))
    return np.hstack([factor, shortfall[:, None] * independent])


def effective_groups(group_w: Floats, w: Floats, hat: Floats) -> float:
    r"""Return the effective number of groups in the fit at a typical point.

    With :math:`a_b(x) = \sum_j l_j(x) W_{jb} / W_j` the share of bucket b,
    the median over x of :math:`(\sum_b a_b^2)^2 / \sum_b a_b^4`.

    Examples
    --------
    >>> effective_groups(np.ones((2, 5)), np.full(2, 5.0), np.eye(2))
    5.0
    """
    share = (hat @ (group_w / w[:, None])) ** 2
    return float(np.median(share.sum(1) ** 2 / np.maximum((share**2).sum(1), TINY)))
