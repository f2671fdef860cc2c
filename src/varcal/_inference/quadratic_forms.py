"""The quadratic forms of the calibration test, with their moments under the null."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from varcal._arrays import Floats, ratio_or_zero
from varcal._inference.error_sums import ErrorSums

#: Variance added to each bin, in mean squared weights of a row, so that scores near 0 or 1, whose
#: variance is almost 0, cannot dominate.
PRIOR = 0.5
#: The variance of a form is at least this part of its mean.
LEAST_VARIANCE = 0.02
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
    """A quadratic form in the sums of ``we``, with its null mean and variance.

    Parameters
    ----------
    loading : array, (..., cells, terms)
        The form is the sum of squares of ``we @ loading``.
    mean, variance : array
        Its moments.
    """

    loading: Floats
    mean: Floats
    variance: Floats

    def value(self, we: Floats) -> Floats:
        """Evaluate the form."""
        return np.asarray((np.einsum("...c,...ck->...k", we, self.loading) ** 2).sum(-1))

    def p_value(self, we: Floats) -> Floats:
        """Return the p-value of the form for the given sums."""
        return self.tail(self.value(we))

    def tail(self, value: Floats) -> Floats:
        """Return the tail of the scaled chi-square with this mean and variance at a value."""
        ratio = 2 * ratio_or_zero(self.mean, self.variance)
        p = chdtrc(np.maximum(ratio * self.mean, 1e-9), ratio * value)
        return np.asarray(np.where(self.mean > 0, np.maximum(p, 1e-300), 1.0))


def form_of(loading: Floats, v: Floats, k: Floats) -> Form:
    """Return a form with its null moments, from the variance and fourth cumulant of each cell."""
    gram = np.swapaxes(loading * v[..., None], -1, -2) @ loading
    variance = 2 * (gram**2).sum((-1, -2)) + (k * (loading**2).sum(-1) ** 2).sum(-1)
    mean = np.trace(gram, axis1=-2, axis2=-1)
    return Form(loading, mean, np.maximum(variance, LEAST_VARIANCE * mean))


def quadratic_forms(
    coarse: ErrorSums, fine: ErrorSums | None = None, *, placed: ArrayLike | None = None
) -> list[Form]:
    """Return the two forms of the tests of :func:`calibration_test`."""
    prior = PRIOR * ratio_or_zero(coarse.weight2, coarse.n)
    root = np.sqrt(ratio_or_zero(np.ones(()), coarse.null2 + prior))
    loading = root[..., None] * np.eye(root.shape[-1])
    cells = coarse if fine is None else fine
    functions = np.ones((*cells.n.shape, 1)) if fine is None else legendre(cells.weight, placed)
    total = cells.null2 + PRIOR * ratio_or_zero(cells.weight2, cells.n.sum(-1, keepdims=True))
    return [
        form_of(loading, coarse.null2, coarse.fourth),
        form_of(_orthonormal(functions, total), cells.null2, cells.fourth),
    ]


def _orthonormal(functions: Floats, v: Floats) -> Floats:
    """Orthonormalize functions of the cell (last axis) under the weights v."""
    columns: list[Floats] = []
    for j in range(functions.shape[-1]):
        f = functions[..., j]
        size = (f**2 * v).sum(-1, keepdims=True)
        for column in columns:
            f = f - column * (f * column * v).sum(-1, keepdims=True)
        norm = (f**2 * v).sum(-1, keepdims=True)
        columns.append(ratio_or_zero(f, np.sqrt(norm)) * (norm > DEPENDENT * size))
    return np.stack(columns, -1)


def legendre(weight: Floats, placed: ArrayLike | None = None) -> Floats:
    """Return Legendre polynomials 0, 1, 2 of the mid-rank of each cell, as columns.

    Cells that are not ordered (those not in `placed`) get 0 for the polynomials 1 and 2.
    """
    mask = np.ones_like(weight) if placed is None else weight * 0 + np.asarray(placed, float)
    ranked = weight * mask
    top = np.cumsum(ranked, -1)
    x = 2 * ratio_or_zero(top - ranked / 2, top[..., -1:]) - 1
    return np.stack([np.ones_like(x), x * mask, (1.5 * x**2 - 0.5) * mask], -1)


def constant_gap_moments(cells: ErrorSums, evidence: Floats | None = None) -> tuple[Floats, Floats]:
    r"""Return the variance and fourth cumulant of each cell's ``we`` if the gap is constant.

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
    v = weight * scatter + (1 - weight) * model
    x = np.minimum(ratio_or_zero(v, cells.weight2), 0.25)
    return v, ratio_or_zero(cells.weight2**2, rows) * x * (1 - 6 * x)
