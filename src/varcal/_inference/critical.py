"""Critical values that hold for all points of an estimated curve at once.

The errors of a curve are a Gaussian process. Its covariance is ``factor @ factor.T``, where the
*factor* has one row per point of the curve.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from varcal._arrays import Bools, Floats

#: Bisections of the tube formula: more than enough for the last bit of a double.
BISECTIONS = 60


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
    :math:`\kappa_0 = \int \|T'(x)\| dx`, here the sum of the angles between neighbours. The angle
    between independent points is :math:`\pi / 2`.

    Examples
    --------
    >>> round(path_length(np.eye(3)) / np.pi, 6)
    1.0
    """
    norm = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    return float(path_angles(factor[norm > 0]).sum())


def path_angles(factor: Floats) -> Floats:
    """Return the angles between neighbouring points, none of which may have variance 0."""
    norm = np.sqrt(np.einsum("ij,ij->i", factor, factor))
    # For small angles the chord is more accurate than the cosine.
    step = np.diff(factor / norm[:, None], axis=0)
    chord = np.sqrt(np.einsum("ij,ij->i", step, step))
    angles: Floats = 2 * np.arcsin(np.minimum(chord / 2, 1.0))
    return angles


def simultaneous_critical(
    factor: Floats, *, length: float | None = None, level: float = 0.95, dof: float = math.inf
) -> float:
    r"""Critical value c with :math:`P(\sup_x |\hat g(x) - g(x)| / se(x) \le c) \ge level`.

    The smaller of two bounds. The tube formula solves

    .. math:: \frac{\kappa_0}{\pi}\left(1 + \frac{c^2}{\nu}\right)^{-\nu/2}
              + P(|t_\nu| > c) = 1 - level;

    Šidák's inequality treats the points as independent, which suits levels of a category.

    Parameters
    ----------
    factor : ndarray of shape (k, r)
        Factor of the covariance along the curve.
    length : float, optional
        Its :func:`path_length`, where that is known.
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
    share = (path_length(factor) if length is None else length) / math.pi
    alpha = 1 - level
    low, high = student_quantile(0.5 + level / 2, dof), sidak
    for _ in range(BISECTIONS):
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
    independent_points: float | None = None,
    margin: float = 0.0,
    level: float = 0.95,
    dof: float = math.inf,
) -> tuple[int, Bools]:
    r"""Find the point with the largest absolute gap, and all points that could be it.

    Every v with :math:`|\hat g(\hat v^*)| - |\hat g(v)| \le z \cdot sd` of that difference is
    kept. The largest of `independent_points` independent differences exceeds z in 1 − level of
    all samples.

    Parameters
    ----------
    gap : ndarray of shape (k,)
        Estimates.
    factor : ndarray of shape (k, r)
        Factor of their covariance.
    inside : ndarray of bool, shape (k,), optional
        The points to search.
    independent_points : float, optional
        The number of points that vary independently, by default :math:`\kappa_0 / \pi`, which
        suits a smooth curve.
    margin : float
        Standard errors that are subtracted from the absolute gaps before the largest is taken, so
        that a noisy end of a curve is not the worst point for its noise.
    level, dof
        As in :func:`simultaneous_critical`.

    Returns
    -------
    int, ndarray of bool
        The worst point, and a confidence set for the true one.

    Examples
    --------
    >>> worst, kept = worst_candidates(np.array([0.1, -0.5, 0.45]), 0.05 * np.eye(3))
    >>> worst, kept.tolist()
    (1, [False, True, True])
    """
    if inside is None or not inside.any():
        inside = np.ones(len(gap), bool)
    size = np.abs(gap)
    sure = size - margin * np.sqrt(np.einsum("ij,ij->i", factor, factor))
    worst = int(np.argmax(np.where(inside, sure, -np.inf)))
    signed = np.where(gap < 0, -1.0, 1.0)[:, None] * factor
    apart = signed[worst] - signed
    sd = np.sqrt(np.einsum("ij,ij->i", apart, apart))
    most = max(np.count_nonzero(inside) - 1.0, 1.0)
    if independent_points is None:
        independent_points = path_length(factor[inside]) / math.pi
    z = student_quantile(level ** (1 / min(max(independent_points, 1.0), most)), dof)
    return worst, inside & (size[worst] - size <= z * sd)
