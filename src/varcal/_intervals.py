"""Debiased value and interval of a mean absolute gap, in closed form, without resampling.

Notation: bins b with share π_b of the weight, gap g_b with covariance Σ, standard errors se_b;
T = Σ π_b |g_b| is the plug-in. E|x + Z| = f(x) = x(2Φ(x) − 1) + 2φ(x), Var|x + Z| = q(x) =
x² + 1 − f(x)². A *shape* r ≥ 0 with Σ π r = 1 tells how an error of size θ spreads: |E g| = θ r.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, chndtrinc, ndtr, ndtri, stdtrit

Floats = NDArray[np.float64]

_NORMAL_MEAN = math.sqrt(2 / math.pi)  # E|Z|
_SMALLEST = 1e-12


@dataclass(frozen=True, eq=False)
class Gaps:
    """The gaps of bins that hold rows, and how they vary.

    Attributes
    ----------
    share, gap : ndarray of shape (B,)
        Share of the weight and gap of each bin.
    covariance, null : ndarray of shape (B, B)
        Covariance of the gaps, as estimated, and if the scores were right.
    effective_n : float
        (Σw)²/Σw², or the same over groups.
    dof : float
        Degrees of freedom of the covariance: infinite for independent rows.
    """

    share: Floats
    gap: Floats
    covariance: Floats
    null: Floats
    effective_n: float
    dof: float = math.inf

    def centred(self) -> Gaps:
        """Return the gaps less the overall gap, with the covariance that this induces."""
        project = np.eye(len(self.share)) - self.share
        return Gaps(
            self.share,
            project @ self.gap,
            project @ self.covariance @ project.T,
            project @ self.null @ project.T,
            self.effective_n,
            self.dof,
        )

    @property
    def plug_in(self) -> float:
        """The plug-in T = Σ π |g|."""
        return float(self.share @ np.abs(self.gap))


def debiased(gaps: Gaps) -> float:
    r"""Return the size θ whose plug-in would on average be the one observed.

    The shape is :math:`r_b \propto (|g_b| - se_b / 2)_+`; θ solves
    :math:`T = \sum \pi_b se_b f(\theta r_b / se_b)` and is 0 where T does not exceed noise.

    Examples
    --------
    >>> share, gap = np.full(10, 0.1), np.full(10, 0.02)
    >>> gaps = Gaps(share, gap, 0.02**2 * np.eye(10), 0.02**2 * np.eye(10), 5000)
    >>> round(gaps.plug_in, 4), round(debiased(gaps), 4)
    (0.02, 0.0142)
    """
    se = _se(gaps.covariance)
    shape = _shape(np.maximum(np.abs(gaps.gap) - se / 2, 0.0), gaps, se)
    return _solve(lambda theta: _mean(theta, shape, gaps.share, se) - gaps.plug_in)


def interval(gaps: Gaps, level: float = 0.95) -> tuple[float, float]:
    r"""Return the interval of the mean absolute gap by inverting the plug-in's distribution.

    Along a shape the plug-in has mean :math:`\mu = \sum \pi se f(\theta r / se)` and variance
    :math:`\sigma^2`, which adds to the scatter of the gaps that of the bins' shares,
    :math:`\theta^2 (\sum \pi r^2 - 1) / n_e`. The lower end solves :math:`T = \mu + z\sigma` on
    the shape :math:`(|g| - 2se)_+` and is 0 where T is within the noise of a calibrated model;
    the upper end solves :math:`T = \mu - z\sigma` on :math:`\max(|g|, 3se/4)`.

    Examples
    --------
    >>> share, gap = np.full(10, 0.1), np.full(10, 0.1)
    >>> gaps = Gaps(share, gap, 0.02**2 * np.eye(10), 0.02**2 * np.eye(10), 5000)
    >>> [round(end, 3) for end in interval(gaps)]
    [0.088, 0.112]
    """
    z = _quantile(0.5 + level / 2, gaps.dof)
    se = _se(gaps.covariance)
    size, plug_in = np.abs(gaps.gap), gaps.plug_in

    def end(shape: Floats, side: float) -> float:
        def excess(theta: float) -> float:
            mean = _mean(theta, shape, gaps.share, se)
            return mean + side * z * _sd(theta, shape, gaps, se) - plug_in

        return _solve(excess)

    low = 0.0
    if plug_in > noise(gaps, 0.5 + level / 2)[1]:
        low = end(_shape(np.maximum(size - 2 * se, 0.0), gaps, se), 1.0)
    high = end(_shape(np.maximum(size, 0.75 * se), gaps, se), -1.0)
    return min(low, plug_in), min(max(high, low), 1.0)


def noise(gaps: Gaps, quantile: float = 0.95) -> tuple[float, float]:
    r"""Return mean and quantile of the plug-in for a perfectly calibrated model.

    :math:`\sqrt{2/\pi} \sum \pi_b se_b` and a normal quantile above it.
    """
    se = _se(gaps.null)
    flat = Gaps(gaps.share, np.zeros_like(gaps.gap), gaps.null, gaps.null, gaps.effective_n)
    mean = _NORMAL_MEAN * float(gaps.share @ se)
    return mean, mean + float(ndtri(quantile)) * _sd(0.0, np.ones_like(se), flat, se)


def detectable(gaps: Gaps, level: float = 0.95, power: float = 0.8) -> float:
    """Return the gap that a test over the bins would find with the given power.

    A gap of the same size in every bin, in either direction, against a chi-square test at
    1 − level.
    """
    variance = np.diag(gaps.null)
    held = variance > 0
    if not held.any():
        return 0.0
    need = _noncentrality(int(held.sum()), level, power)
    return min(1.0, math.sqrt(need / float((1 / variance[held]).sum())))


def rows_needed(
    gap: float,
    *,
    n_bins: int = 10,
    accuracy: float = 0.5,
    level: float = 0.95,
    power: float = 0.8,
) -> int:
    r"""Return how many rows a test needs to find a gap.

    A gap of this size in every one of `n_bins` bins, in either direction, is found at level
    1 − `level` with probability `power` from
    :math:`n = \lambda a (1 - a) / g^2` rows, where λ is the noncentrality at which a chi-square
    variable with `n_bins` degrees of freedom passes its critical value as often, and a the
    accuracy (½ is the worst case).

    Parameters
    ----------
    gap : float
        The size of gap that matters, between 0 and 1.
    n_bins : int
        Bins of the variable.
    accuracy : float
        About how often the model is right (or, for ``event="positive"``, the positive rate).
    level, power : float
        1 − the type-I error, and the wanted power.

    Returns
    -------
    int

    Examples
    --------
    >>> import varcal as vc
    >>> vc.rows_needed(0.05), vc.rows_needed(0.05, accuracy=0.95)
    (1625, 309)
    """
    from varcal.exceptions import InputError  # noqa: PLC0415

    for name, value in (("gap", gap), ("accuracy", accuracy), ("level", level), ("power", power)):
        if not 0 < value < 1:
            raise InputError(f"{name} must lie between 0 and 1; got {value!r}", "try 0.05 for gap")
    if n_bins < 1:
        raise InputError(f"n_bins must be at least 1; got {n_bins!r}", "try 10")
    need = _noncentrality(n_bins, level, power)
    return math.ceil(need * accuracy * (1 - accuracy) / gap**2)


def _noncentrality(k: int, level: float, power: float) -> float:
    return float(chndtrinc(chdtri(k, 1 - level), k, 1 - power))


def _quantile(probability: float, dof: float) -> float:
    return float(ndtri(probability) if math.isinf(dof) else stdtrit(dof, probability))


def _se(covariance: Floats) -> Floats:
    return np.sqrt(np.maximum(np.diag(covariance), _SMALLEST**2))


def _shape(raw: Floats, gaps: Gaps, se: Floats) -> Floats:
    if not raw.any():
        raw = np.zeros_like(raw)
        raw[np.argmax(np.abs(gaps.gap) / se)] = 1.0
    return raw / float(gaps.share @ raw)


def _folded(x: Floats) -> Floats:
    """E|x + Z|."""
    return x * (2 * ndtr(x) - 1) + 2 * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _mean(theta: float, shape: Floats, share: Floats, se: Floats) -> float:
    return float(share @ (se * _folded(theta * shape / se)))


def _sd(theta: float, shape: Floats, gaps: Gaps, se: Floats) -> float:
    r"""Return the standard deviation of the plug-in at size θ of a shape.

    For normal x, y of correlation ρ, cov(|x|, |y|) is ρ c c′ plus terms in ρ², ρ⁴, …, with
    c = 2Φ(mean/sd) − 1; they are taken together as ρ² √(q − c²) √(q′ − c′²), which is exact
    for ρ = 0 and ±1.
    """
    x = theta * shape / se
    c = 2 * ndtr(x) - 1
    rest = np.sqrt(np.maximum(x * x + 1 - _folded(x) ** 2 - c * c, 0.0))
    side = np.where(gaps.gap < 0, -1.0, 1.0)
    rho = gaps.covariance / np.outer(se, se)
    a, b = gaps.share * se * c * side, gaps.share * se * rest
    scatter = a @ rho @ a + b @ rho**2 @ b
    shares = theta**2 * (float(gaps.share @ shape**2) - 1) / gaps.effective_n
    return math.sqrt(max(float(scatter), 0.0) + max(shares, 0.0))


def _solve(excess: Callable[[float], float]) -> float:
    """Find the θ in [0, 1] where an increasing function crosses zero, 0 if it starts above."""
    if excess(0.0) >= 0:
        return 0.0
    low, high = 0.0, 1.0
    if excess(high) <= 0:
        return 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    return (low + high) / 2
