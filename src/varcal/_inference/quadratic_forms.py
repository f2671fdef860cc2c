"""Quadratic forms in sums of errors, with their moments under the hypothesis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from varcal._arrays import Floats, ratio_or_zero
from varcal._inference.error_sums import ErrorSums
from varcal._inference.normal_scores import LEAST_P, normalized

#: The variance of a form is at least this part of its mean: that of a chi-square.
LEAST_VARIANCE = 2.0
#: The variance of a cell with a constant gap is at least this part of its variance without a gap.
LEAST_MODEL = 0.1
#: Weight of the model of a constant gap against the observed scatter, as a number of rows times
#: their variance.
MODEL_ROWS = 50.0
#: A column is dropped if less than this part of its squared norm is left after projecting out
#: the columns before it.
DEPENDENT = 1e-9


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
    """Return columns of the same span, orthonormal under weights, by the method of Gram–Schmidt.

    One after the other, so that rounding errors do not turn them; dependent ones drop.
    """
    root = np.sqrt(weight)[:, None]
    given = (root * columns).T
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


def legendre(weight: Floats, placed: ArrayLike | None = None) -> Floats:
    """Return Legendre polynomials 0, 1, 2 of the mid-rank of each cell, as columns.

    Cells that are not ordered (those not in `placed`) get 0 for the polynomials 1 and 2.
    """
    mask = np.ones_like(weight) if placed is None else weight * 0 + np.asarray(placed, float)
    ranked = weight * mask
    top = np.cumsum(ranked, -1)
    x = 2 * ratio_or_zero(top - ranked / 2, top[..., -1:]) - 1
    return np.stack([np.ones_like(x), x * mask, (1.5 * x**2 - 0.5) * mask], -1)


def constant_gap_variance(cells: ErrorSums, evidence: Floats | None = None) -> Floats:
    r"""Return the variance of each cell's ``we`` if the gap is constant.

    With a constant gap g the hits are approximately Bernoulli(s − g) with the variance
    :math:`s(1 - s) + g(2s - 1) - g^2`. This model also suits scores that are mostly near 1, for
    which :math:`s(1 - s)` is nearly 0. But the gap can be constant in v without each row being
    Bernoulli(s − g). Therefore the variances of the model are scaled so that their total equals
    the observed scatter, and each is averaged with the scatter of its own cell about g. The
    scatter has the weight of ``evidence`` rows (by default those of the cell) times the variance
    per row, the model the weight `MODEL_ROWS`.

    A cell counts by its effective number of rows, :math:`n_b = (\sum_b w)^2 / \sum_b w^2`: g is
    the mean of the cells' gaps with these weights, and scatter and model are compared per squared
    weight. A single row with most of the weight would otherwise determine both, and with its own
    error as g it has no scatter.
    """
    rows = cells.effective_rows
    total = rows.sum(-1, keepdims=True)
    g = (ratio_or_zero(rows, total) * cells.gap).sum(-1, keepdims=True)
    model = cells.null2 + g * (2 * cells.score2 - cells.weight2) - g**2 * cells.weight2
    model = np.maximum(model, LEAST_MODEL * cells.null2)
    scatter = np.maximum(cells.square2 + 2 * g * cells.error2 + g**2 * cells.weight2, 0.0)
    scatter = scatter * ratio_or_zero(total, total - 1)
    each = ratio_or_zero(rows, cells.weight2)
    observed, expected = ((sums * each).sum(-1, keepdims=True) for sums in (scatter, model))
    model = model * ratio_or_zero(observed, expected)
    per_row = ratio_or_zero(observed, total)
    evidence = rows if evidence is None else evidence
    weight = ratio_or_zero(evidence * per_row, evidence * per_row + MODEL_ROWS)
    return np.asarray(weight * scatter + (1 - weight) * model)
