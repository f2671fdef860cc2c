"""Variance of cell means around a fitted curve: of independent rows, and of groups."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Floats
from varcal._smoothing.cells import Cells

__all__ = ["cell_variance", "effective_groups", "group_factor"]

ERROR, PREDICTED_ERROR, GAP = range(3)
#: Rows, half of them hits, that are added to those seen (Agresti and Coull).
PRIOR_ROWS = 4.0
#: The share of a row's variance that its residual is taken to keep, at least.
LEAST_FREEDOM = 0.1


def _squares(cells: Cells, fit: Floats, response: int) -> Floats:
    """Σw²(row's response − fit)² in each cell."""
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
    """Share of a row's variance that is left in its residual."""
    used = (2 * np.diag(hat) - np.einsum("ij,ij->i", hat, hat)) / n
    out: Floats = np.maximum(1 - used, LEAST_FREEDOM)
    return out


def cell_variance(cells: Cells, fit: Floats, hat: Floats, window: Floats, response: int) -> Floats:
    r"""Variance of the cell means of a response, under independent rows.

    Rows' squared residuals from the fit, averaged over a window of cells. Error and gap vary at
    least as much as calibrated scores do, :math:`s(1 - s)`, and as if four more rows, half of
    them hits, had been seen, without which a window of hits only would claim to know for sure.

    Parameters
    ----------
    cells : Cells
        The sums.
    fit : ndarray of shape (k,)
        Fitted response at the cells.
    hat : ndarray of shape (k, k)
        The smoother that made it.
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
    unit = window @ (squares / _freedom(hat, cells.n)) / scale
    if outcome:
        unit = np.maximum(unit, window @ cells.null2 / scale)
        rows = (window @ cells.n) / np.einsum("ij,ij->i", window, window)
        unit = (rows * unit + PRIOR_ROWS / 4) / (rows + PRIOR_ROWS)
    return unit * cells.weight2 / cells.weight**2


def group_factor(
    cells: Cells, fit: Floats, hat: Floats, response: int, independent: Floats
) -> Floats:
    r"""Factor of the fit's covariance when rows of a group go together.

    One column a bucket of groups: :math:`u_b(x) = \sum_j l_j(x) R_{jb} / W_j`, where
    :math:`R_{jb}` is the sum of the bucket's weighted residuals in cell j. Where that falls
    short of the variance of independent rows, further columns make up for it.

    Parameters
    ----------
    cells, fit, hat, response
        As in :func:`cell_variance`; the cells carry buckets.
    independent : ndarray of shape (k, k)
        Factor under independent rows.
    """
    w, hit, score = cells.group_weight, cells.group_hit, cells.group_score
    assert w is not None and hit is not None and score is not None
    total = {ERROR: lambda: w - hit, PREDICTED_ERROR: lambda: w - score, GAP: lambda: score - hit}
    residual = total[response]() - fit[:, None] * w
    residual /= (cells.weight * np.sqrt(_freedom(hat, cells.n)))[:, None]
    filled = w.sum(0) > 0
    many = int(np.count_nonzero(filled))
    factor = hat @ residual[:, filled] * np.sqrt(many / max(many - 1, 1))
    least = np.einsum("ij,ij->i", independent, independent)
    got = np.einsum("ij,ij->i", factor, factor)
    short = np.sqrt(np.maximum(1 - got / np.where(least > 0, least, 1.0), 0.0))
    return np.hstack([factor, short[:, None] * independent])


def effective_groups(group_w: Floats, w: Floats, hat: Floats) -> float:
    r"""Count the groups that weigh in on the fit at a typical point.

    With :math:`a_b(x) = \sum_j l_j(x) W_{jb} / W_j` the share of bucket b,
    the median over x of :math:`(\sum_b a_b^2)^2 / \sum_b a_b^4`.

    Examples
    --------
    >>> effective_groups(np.ones((2, 5)), np.full(2, 5.0), np.eye(2))
    5.0
    """
    share = (hat @ (group_w / w[:, None])) ** 2
    return float(np.median(share.sum(1) ** 2 / np.maximum((share**2).sum(1), 1e-300)))
