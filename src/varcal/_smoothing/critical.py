"""How far an estimated curve may stray: critical values for all of its points at once.

A curve's errors are a Gaussian process given by a *factor* matrix, one row a point of the curve:
its covariance is ``factor @ factor.T``.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from varcal._arrays import Bools, Floats

__all__ = ["path_length", "simultaneous_critical", "student_quantile", "worst_candidates"]


def student_quantile(probability: float, dof: float = math.inf) -> float:
    """Quantile of Student's t; of the normal for infinite degrees of freedom."""
    if math.isinf(dof):
        return float(ndtri(probability))
    return float(stdtrit(dof, probability))


def _two_tails(c: float, dof: float) -> float:
    return 2 * float(ndtr(-c) if math.isinf(dof) else stdtr(dof, -c))


def path_length(factor: Floats) -> float:
    r"""Length of the curve's path on the unit sphere, :math:`\kappa_0`.

    With :math:`T(x)` the row of the factor at x divided by its length,
    :math:`\kappa_0 = \int \|T'(x)\| dx`, here the sum of the angles between neighbours. Points
    that are independent are :math:`\pi / 2` apart.

    Examples
    --------
    >>> round(path_length(np.eye(3)) / np.pi, 6)
    1.0
    """
    norm = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    unit = factor[norm > 0] / norm[norm > 0, None]
    if len(unit) < 2:
        return 0.0
    # An angle from its chord keeps its digits where one from its cosine would not.
    step = np.diff(unit, axis=0)
    chord = np.sqrt(np.einsum("ij,ij->i", step, step))
    return float(2 * np.arcsin(np.minimum(chord / 2, 1.0)).sum())


def simultaneous_critical(factor: Floats, *, level: float = 0.95, dof: float = math.inf) -> float:
    r"""Critical value c with :math:`P(\sup_x |\hat g(x) - g(x)| / se(x) \le c) \ge level`.

    The smaller of two bounds. The tube formula solves

    .. math:: \frac{\kappa_0}{\pi}\left(1 + \frac{c^2}{\nu}\right)^{-\nu/2}
              + P(|t_\nu| > c) = 1 - level;

    Šidák's inequality takes the points as if independent, which suits levels of a category.

    Parameters
    ----------
    factor : ndarray of shape (k, r)
        Factor of the covariance along the curve.
    level : float
        Confidence level.
    dof : float
        Degrees of freedom of the standard errors.

    References
    ----------
    Sun, J. and Loader, C. R. (1994). Simultaneous confidence bands for linear regression and
    smoothing. Annals of Statistics 22, 1328-1345.
    Šidák, Z. (1967). Rectangular confidence regions for the means of multivariate normal
    distributions. JASA 62, 626-633.

    Examples
    --------
    >>> round(simultaneous_critical(np.eye(1)), 4), round(simultaneous_critical(np.eye(10)), 4)
    (1.96, 2.7996)
    """
    points = max(1, int(np.count_nonzero(np.einsum("ij,ij->i", factor, factor))))
    sidak = student_quantile(0.5 + level ** (1 / points) / 2, dof)
    share = path_length(factor) / math.pi
    alpha = 1 - level
    low, high = student_quantile(0.5 + level / 2, dof), sidak
    for _ in range(60):
        c = (low + high) / 2
        tail = math.exp(-c * c / 2) if math.isinf(dof) else (1 + c * c / dof) ** (-dof / 2)
        if share * tail + _two_tails(c, dof) > alpha:
            low = c
        else:
            high = c
    return high


def worst_candidates(
    gap: Floats,
    factor: Floats,
    inside: Bools | None = None,
    *,
    rivals: float | None = None,
    level: float = 0.95,
    dof: float = math.inf,
) -> tuple[int, Bools]:
    r"""Find the point of the largest absolute gap, and all that cannot be told from it.

    Kept is every v with :math:`|\hat g(\hat v^*)| - |\hat g(v)| \le z \cdot sd` of that
    difference; z is the one-sided quantile that the largest of as many independent differences
    as there are rivals passes in 1 − level of all samples.

    Parameters
    ----------
    gap : ndarray of shape (k,)
        Estimates.
    factor : ndarray of shape (k, r)
        Factor of their covariance.
    inside : ndarray of bool, shape (k,), optional
        Where to look.
    rivals : float, optional
        Points that vary independently; :math:`\kappa_0 / \pi` along a smooth curve if left out.
    level, dof
        As in :func:`simultaneous_critical`.

    Returns
    -------
    int, ndarray of bool
        The worst point; the set that holds the true worst one.

    Examples
    --------
    >>> worst, kept = worst_candidates(np.array([0.1, -0.5, 0.45]), 0.05 * np.eye(3))
    >>> worst, kept.tolist()
    (1, [False, True, True])
    """
    if inside is None or not inside.any():
        inside = np.ones(len(gap), bool)
    size = np.abs(gap)
    worst = int(np.argmax(np.where(inside, size, -1.0)))
    signed = np.where(gap < 0, -1.0, 1.0)[:, None] * factor
    apart = signed[worst] - signed
    sd = np.sqrt(np.einsum("ij,ij->i", apart, apart))
    most = max(np.count_nonzero(inside) - 1.0, 1.0)
    if rivals is None:
        rivals = path_length(factor[inside]) / math.pi
    z = student_quantile(level ** (1 / min(max(rivals, 1.0), most)), dof)
    return worst, inside & (size[worst] - size <= z * sd)
