"""Standard errors of a local polynomial as LOESS has them: one scale for all residuals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from varcal._smoothing.local_polynomial import smoother_weights

__all__ = ["ResidualScale", "residual_scale"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ResidualScale:
    r"""Scale of the residuals and its degrees of freedom, as LOESS has them.

    With rows' hat matrix :math:`L` and :math:`A = (I - L)(I - L)^T`, :math:`\delta_1 = tr\,A`,
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
        """Return the standard error of the fits that these smoother weights make.

        Parameters
        ----------
        weights : ndarray of shape (m, k)
            Smoother weights, as :func:`smoother_weights` gives them.
        weight : array-like of shape (k,), optional
            Sum of row weights in each cell; ones if left out.
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
    """Residual scale of a local polynomial by its exact deltas.

    Parameters
    ----------
    x, y, weight, span, degree, counts
        As in :func:`local_polynomial`; one response.
    within : array-like of shape (k,)
        Sum of squares of the rows of each cell around the cell's mean; nothing for single rows.

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
    # Rows of a cell share a fit: beyond their mean, I - L leaves them as they are.
    rest = np.eye(len(x)) - hat * (np.sqrt(many)[:, None] / np.sqrt(many))
    gram = rest @ rest.T
    inner = float(many.sum() - len(x))
    delta1 = inner + float(np.trace(gram))
    delta2 = inner + float(np.einsum("ij,ij->", gram, gram))
    sigma = float(np.sqrt(squares.sum() / delta1)) if delta1 > 1e-9 else 0.0
    return ResidualScale(sigma, delta1, delta2, trace)
