"""Quadratic forms in sums of errors, which count as normal scores even with few events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, chdtrc, gammainc, ndtri

from varcal._arrays import Bools, Floats, ratio_or_zero
from varcal._inference.error_sums import ErrorSums

#: The least variance of a bin, in events: one event where scores say 0 is evidence, no proof.
LEAST_EVENTS = 0.01
#: A constant gap takes at most this part of the mean score of a cell, or of what is left to 1.
MOST_OF_SCORE = 0.5
#: Above this variance a normal score has the moments of a normal law.
DENSE_EVENTS = 10.0
#: Counts over which the moments of the score of a sparse bin are summed.
COUNTS = np.arange(40.0)
#: The least distance of the skewness of rows from 1 and -1: a binomial law has finite trials.
LEAST_APART = 1e-9
#: A sum with less skewness is normal.
LEAST_SKEW = 1e-6
#: The least p-value.
LEAST_P = 1e-300
#: The variance of a form is at least this part of its mean: that of a chi-square.
LEAST_VARIANCE = 2.0
#: Half-waves of the cosines. A sine of four periods has 8, and with 8 was found in 10 points fewer
#: of the samples.
MOST_WAVES = 10
#: A column is dropped if less than this part of its squared norm is left after projecting out
#: the columns before it.
DEPENDENT = 1e-9
#: Probabilities below this are not taken as one minus another.
ROUNDED = 1e-3


def row_skewness(cells: ErrorSums, gap: Floats) -> Floats:
    r"""Return the mean of 1 − 2q over the rows of each cell, weighted by their variance q(1 − q).

    It is the third cumulant of a cell divided by its variance, with q = s − gap. Sums have its
    mean square, :math:`1 - 4 \sum u^2 / \sum u`, which it cannot exceed.
    """
    mean = ratio_or_zero(cells.score2, cells.weight2) - gap
    unit2 = unit2_of(cells)
    fourth = ratio_or_zero(cells.fourth, unit2 * cells.null2)
    most = np.sqrt(np.clip(1 - 4 * (1 - fourth) / 6, 0.0, 1.0))
    return np.asarray(np.clip(1 - 2 * np.clip(mean, 0.0, 1.0), -most, most))


def normal_sums(cells: ErrorSums, v: Floats, gap: Floats) -> tuple[Floats, ...]:
    r"""Return the sums of errors of cells as if they were normal, and their moments.

    A cell with few events has a skewed, discrete law. Its sum :math:`\sum w(h - s + g)` is replaced
    by the normal quantile of its mid-p-value under the binomial law with the same variance and
    skewness, times its standard deviation. Where that law ends, the tail is that of a Poisson law
    with this variance, which is an upper bound for independent errors below 1 (Bennett, 1962).
    So a few events can say as much as they are worth, and a bin with few rows
    takes nothing from the others.

    Parameters
    ----------
    cells : ErrorSums
        Sums of cells.
    v : array
        The variance of each cell's sum under the hypothesis.
    gap : array
        The gap under the hypothesis, for all cells of a side.

    Returns
    -------
    tuple of arrays
        Sums, their squared scale, their variance (smaller in sparse cells, since scores are
        discrete) and their fourth cumulant.
    """
    mean = ratio_or_zero(cells.score2, cells.weight2)
    gap = np.clip(gap, -MOST_OF_SCORE * (1 - mean), MOST_OF_SCORE * mean)
    unit = np.sqrt(unit2_of(cells))
    events = np.maximum(ratio_or_zero(v, unit**2), LEAST_EVENTS * (cells.n > 0))
    skew = row_skewness(cells, gap)
    off = ratio_or_zero(cells.error + gap * cells.weight, unit)
    score = _score(off, events, skew)
    second, fourth = np.ones_like(score), np.full_like(score, 3.0)
    sparse = (events > 0) & (events < DENSE_EVENTS)
    second[sparse], fourth[sparse] = _moments(events[sparse], skew[sparse])
    scale2 = unit**2 * events
    return score * np.sqrt(scale2), scale2, scale2 * second, scale2**2 * (fourth - 3 * second**2)


def unit2_of(cells: ErrorSums) -> Floats:
    """Return the squared weight of a row of each cell."""
    mean = ratio_or_zero(cells.weight2, cells.n)
    return np.asarray(np.maximum(mean, ratio_or_zero(cells.fourth, cells.null2)))


def _law(events: Floats, skew: Floats) -> tuple[Floats, Floats, Floats]:
    """Return trials, chance and mean of the binomial law of the rarer outcome."""
    chance = np.maximum(1 - np.abs(skew), LEAST_APART) / 2
    trials = ratio_or_zero(events, chance * (1 - chance))
    return trials, chance, trials * chance


def _score(off: Floats, events: Floats, skew: Floats) -> Floats:
    """Return the normal quantile of the mid-p-value of a sum `off` its mean."""
    trials, chance, mean = _law(events, skew)
    rare = np.where(skew < 0, -off, off)
    count = mean + rare
    inside = (count > 0) & (count < trials)
    below, above = _tails(np.where(inside, count, 1.0), np.where(inside, trials, 2.0), chance)
    far = _poisson_above(events + np.abs(rare), events)
    zero = np.isclose(count, 0.0, atol=1e-9) & (mean > 0)
    below = np.where(zero, np.exp(trials * np.log1p(-chance)) / 2, np.where(inside, below, far))
    above = np.where(inside, above, far)
    lower = (below < above) & inside | (rare < 0) & ~inside
    z = np.where(lower, ndtri(np.clip(below, LEAST_P, 0.5)), -ndtri(np.clip(above, LEAST_P, 0.5)))
    return np.asarray(np.where(skew < 0, -z, z) * (events > 0))


def _tails(count: Floats, trials: Floats, chance: Floats) -> tuple[Floats, Floats]:
    """Return the mid-p-values below and above a count of a binomial law."""
    left = np.maximum(trials - count, 1e-12)
    above = (betainc(count, left + 1, chance) + betainc(count + 1, left, chance)) / 2
    below = 1 - above
    small = below < ROUNDED  # the difference would have too few digits
    a, b, rest = (one[small] for one in np.broadcast_arrays(left, count, 1 - chance))
    below[small] = (betainc(a, b + 1, rest) + betainc(a + 1, b, rest)) / 2
    return below, above


def _poisson_above(count: Floats, mean: Floats) -> Floats:
    """Return the mid-p-value above a count of a Poisson law."""
    count = np.maximum(count, 1e-12)
    return np.asarray((gammainc(count, mean) + gammainc(count + 1, mean)) / 2)


def _moments(events: Floats, skew: Floats) -> tuple[Floats, Floats]:
    """Return the second and fourth moments of the normal score of sparse cells."""
    trials, chance, mean = (each[:, None] for each in _law(events, skew))
    last = np.maximum(trials - COUNTS, 0.0)
    above = np.where(last > 0, betainc(COUNTS + 1, np.maximum(last, 1e-12), chance), 0.0)
    mass = -np.diff(above, axis=1, prepend=1.0)
    score = _score(COUNTS - mean, events[:, None] + 0 * mean, np.abs(skew)[:, None] + 0 * mean)
    return (mass * score**2).sum(1), (mass * score**4).sum(1)


def normalized(z: Floats, skew: Floats) -> Floats:
    r"""Return a standardized sum with this skewness as a normal score.

    :math:`\tfrac{3}{2\gamma}[(1 + \gamma z)^{2/3} - 1] + \tfrac{\gamma}{6}`, which is Anscombe's
    transformation of a Poisson count with the skewness :math:`\gamma`; in the short tail only its
    first terms, :math:`z - \tfrac{\gamma}{6}(z^2 - 1)`.
    """
    gamma = np.where(skew < 0, -1.0, 1.0) * np.clip(np.abs(skew), LEAST_SKEW, 1.0)
    bent = gamma * z
    power = np.cbrt(np.maximum(1 + bent, 1.0)) ** 2
    score = np.where(bent > 0, 1.5 * (power - 1) / gamma, z * (1 + np.minimum(-bent, 1.0) / 6))
    return np.asarray(np.where(np.abs(skew) > LEAST_SKEW, score + gamma / 6, z))


@dataclass(frozen=True)
class Form:
    """A quadratic form in sums of errors, with its mean and variance under the hypothesis.

    Parameters
    ----------
    loading : array, (cells, terms)
        The form is the sum of squares of ``sums @ loading``.
    spread, skew : array, (terms,)
        Standard deviation and skewness of the terms, which count as normal scores.
    mean, variance : float
        The moments of the form.
    """

    loading: Floats
    spread: Floats
    skew: Floats
    mean: float
    variance: float

    def value(self, sums: Floats) -> float:
        """Evaluate the form."""
        terms = ratio_or_zero(sums @ self.loading, self.spread)
        return float((self.spread**2 * normalized(terms, self.skew) ** 2).sum())

    def p_value(self, sums: Floats) -> float:
        """Return the p-value of the form for the given sums."""
        return chi_square_tail(self.value(sums), self.mean, self.variance)


def chi_square_tail(value: float, mean: float, variance: float) -> float:
    """Return the tail of the scaled chi-square with this mean and variance at a value."""
    if not mean > 0:
        return 1.0
    ratio = 2 * mean / max(variance, LEAST_VARIANCE * mean)
    return max(float(chdtrc(ratio * mean, max(ratio * value, 0.0))), LEAST_P)


def form_of(columns: Floats, scale: Floats, v: Floats, third: Floats, fourth: Floats) -> Form:
    """Return the form of the span of columns, from the cumulants of the sums of cells.

    Parameters
    ----------
    columns : array, (cells, k)
        Functions of the cells.
    scale : array, (cells,)
        The variances under which the terms are orthonormal.
    v, third, fourth : array, (cells,)
        The second, third and fourth cumulants.
    """
    loading = orthonormal_span(columns, scale)
    gram = (loading * v[:, None]).T @ loading
    variance = 2 * (gram**2).sum() + (fourth * (loading**2).sum(-1) ** 2).sum()
    spread = np.sqrt(np.diagonal(gram))
    skew = ratio_or_zero(third @ loading**3, spread**3)
    return Form(loading, spread, skew, float(gram.trace()), float(variance))


def orthonormal_span(columns: Floats, weight: Floats) -> Floats:
    """Return columns of the same span, orthonormal under weights, as by Gram–Schmidt.

    Where some are dependent, one after the other, so that rounding errors do not turn them; those
    drop.
    """
    root = np.sqrt(weight)[:, None]
    given = (root * columns).T
    if len(given) <= len(root):
        q, r = np.linalg.qr(given.T)
        ends = r.diagonal()
        if (ends**2 > DEPENDENT * (given**2).sum(1)).all():
            return ratio_or_zero(q * np.sign(ends), root)
    found = np.zeros_like(given)
    many = 0
    for column in given:
        size = column @ column
        for _ in range(2):
            column = column - (found[:many] @ column) @ found[:many]
        if column @ column > DEPENDENT * size > 0:
            found[many] = column / np.sqrt(column @ column)
            many += 1
    return ratio_or_zero(found[:many].T, root)


def trends(weight: Floats, placed: Bools) -> tuple[Floats, Floats]:
    """Return smooth functions of the mid-rank x of each cell, as columns.

    The first are the Legendre polynomials 0, 1, 2, the others cos(kπx) for k up to `MOST_WAVES`.
    Cells that are not ordered (those not in `placed`) have 1 for the polynomial 0, otherwise 0.
    """
    ranked = weight * placed
    top = np.cumsum(ranked)
    x = 2 * ratio_or_zero(top - ranked / 2, top[-1:]) - 1
    bends = np.stack([np.ones_like(x), x * placed, (1.5 * x**2 - 0.5) * placed], -1)
    waves = np.cos(np.pi * np.arange(1, MOST_WAVES + 1) * (x[:, None] + 1) / 2)
    return bends, waves * placed[:, None]
