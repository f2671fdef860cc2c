"""Is the gap zero, or constant, along a variable? Tests from sums, exact where sparse."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from varcal._arrays import Floats, Ints, Singles, ratio_or_zero
from varcal._inference.error_sums import ErrorSums

__all__ = [
    "Form",
    "Rows",
    "calibration_test",
    "cauchy",
    "constant_gap_moments",
    "draw_hits",
    "draws_for",
    "is_sparse",
    "legendre",
    "quadratic_forms",
    "simulate",
    "tail_p",
]

SPARSE = 5.0
"""Rows are simulated where a bin expects less variance than this (in rows' worth)."""
PRIOR = 0.5
"""Variance, in rows' worth, added to each bin so that saturated scores cannot dominate."""


@dataclass(frozen=True)
class Rows:
    """The rows behind cells, for simulating hits where sums are not enough.

    Parameters
    ----------
    score : array
        Scores.
    coarse, fine : array of int
        Bin of each row among the coarse and the fine cells.
    weight : array, optional
        Weights; 1 if left out.
    """

    score: Floats
    coarse: Ints
    fine: Ints | None = None
    weight: Floats | None = None


def calibration_test(
    coarse: ErrorSums,
    fine: ErrorSums | None = None,
    *,
    constant: bool = False,
    rows: Rows | None = None,
    placed: ArrayLike | None = None,
    seed: int = 0,
) -> Floats:
    r"""Return the p-value of "calibrated with respect to v".

    The Cauchy mean of two p-values: a chi-square test over the coarse bins,
    :math:`Q_1 = \sum_b (\sum_b we)^2 / V_b`, which sees any pattern, and a score test on the
    Legendre polynomials 0, 1, 2 of the mid-rank of v over the fine cells, which is stronger
    against smooth ones. Both are referred to a scaled chi-square with their exact mean and
    variance, :math:`2 \operatorname{tr}(AV)^2 + \sum_i \kappa_i a_i^2`, where :math:`\kappa_i`
    is the fourth cumulant of a Bernoulli row; sparse outcomes need that term.

    With ``constant=True`` the hypothesis is "the gap is the same everywhere along v": the
    overall gap is projected out of both statistics, and the variances allow for it
    (:func:`constant_gap_moments`).

    Parameters
    ----------
    coarse, fine : ErrorSums
        Bins of v. Without ``fine`` (v has no order) the second test is that of the overall
        gap, and drops out if ``constant``.
    constant : bool
        Test a constant gap instead of none.
    rows : Rows, optional
        If given (for cells without leading axes), and some bin is sparse, and the answer may
        matter (p < 0.2), hits are simulated from the scores and the p-value is the observed
        one's place among theirs. Not used if ``constant``: its moments hold up without.
    placed : array of bool, optional
        Which fine cells have a place in the order of v (the one of missing values has none).
    seed : int
        For the simulated hits.

    Returns
    -------
    array
        p-values in (0, 1], of the cells' leading shape.

    References
    ----------
    Liu and Xie (2020), "Cauchy combination test", JASA 115.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> v, s = rng.random(2000), rng.uniform(0.2, 0.8, 2000)
    >>> h = rng.random(2000) < s + 0.2 * (v - 0.5)
    >>> cells = ErrorSums.from_rows((10 * v).astype(int), s, h, n_bins=10)
    >>> bool(calibration_test(cells, cells) < 1e-4)
    True
    """
    forms = quadratic_forms(coarse, fine, constant=constant, placed=placed)
    sums = [coarse.error] + (
        [fine.error if fine is not None else coarse.error] if len(forms) > 1 else []
    )
    p = cauchy([form.p_value(we) for form, we in zip(forms, sums, strict=True)])
    if constant or rows is None or p >= 0.2 or not is_sparse(rows, coarse.n.shape[-1]):
        return p
    draws = draws_for(rows)
    if not draws:
        return p
    hits = draw_hits(rows.score, draws, seed)
    null = simulate(rows, forms, hits)
    return np.asarray(tail_p(-np.log(p), -np.log(null)))


def cauchy(p_values: list[Floats]) -> Floats:
    r"""Combine p-values, however dependent, by the mean of :math:`\cot(\pi p)`.

    p-values count as at most 0.99, lest one near 1 drown all others.

    >>> float(np.round(cauchy([np.array(0.01), np.array(0.5)]), 4))
    0.02
    """
    p = np.stack(np.broadcast_arrays(*p_values))
    mean = (1 / np.tan(np.pi * np.clip(p, 1e-300, 0.99))).mean(0)
    # The arc cotangent, by way of 1 / mean where that keeps the digits of small p-values.
    small = np.arctan(1 / np.maximum(mean, 1.0)) / np.pi
    combined = np.where(mean > 1, small, 0.5 - np.arctan(mean) / np.pi)
    return np.asarray(np.where(p.min(0) > 0.99, p.min(0), combined))


@dataclass(frozen=True)
class Form:
    """A quadratic form in the sums of ``we``, with its mean and variance under the null.

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
        """Evaluate the form and refer it to its null law."""
        return self.tail(self.value(we))

    def tail(self, value: Floats) -> Floats:
        """Refer a value to the scaled chi-square with this mean and variance."""
        ratio = 2 * ratio_or_zero(self.mean, self.variance)
        p = chdtrc(np.maximum(ratio * self.mean, 1e-9), ratio * value)
        return np.asarray(np.where(self.mean > 0, np.maximum(p, 1e-300), 1.0))


def _form(loading: Floats, v: Floats, k: Floats) -> Form:
    """Work out the null moments of a form from each cell's variance and fourth cumulant."""
    gram = np.swapaxes(loading * v[..., None], -1, -2) @ loading
    variance = 2 * (gram**2).sum((-1, -2)) + (k * (loading**2).sum(-1) ** 2).sum(-1)
    mean = np.trace(gram, axis1=-2, axis2=-1)
    return Form(loading, mean, np.maximum(variance, 0.02 * mean))


def quadratic_forms(
    coarse: ErrorSums,
    fine: ErrorSums | None = None,
    *,
    constant: bool = False,
    placed: ArrayLike | None = None,
) -> list[Form]:
    """Make the forms of the two tests of :func:`calibration_test`; the second may be absent."""
    v, k = constant_gap_moments(coarse) if constant else (coarse.null2, coarse.fourth)
    root = np.sqrt(ratio_or_zero(np.ones(()), v + PRIOR * ratio_or_zero(coarse.weight2, coarse.n)))
    loading = root[..., None] * np.eye(root.shape[-1])
    if constant:
        along = coarse.weight * root
        along = ratio_or_zero(along, np.sqrt((along**2).sum(-1, keepdims=True)))
        loading = root[..., None] * _complement(along)
    forms = [_form(loading, v, k)]
    if fine is None and constant:
        return forms
    cells = coarse if fine is None else fine
    functions = np.ones((*cells.n.shape, 1)) if fine is None else legendre(cells.weight, placed)
    if fine is not None:
        rows = cells.n.sum(-1, keepdims=True)
        v, k = constant_gap_moments(cells, rows) if constant else (cells.null2, cells.fourth)
    if constant:
        functions = functions[..., 1:]
        functions = functions - (cells.share[..., None] * functions).sum(-2, keepdims=True)
    total = v + PRIOR * ratio_or_zero(cells.weight2, cells.n.sum(-1, keepdims=True))
    return [*forms, _form(_orthonormal(functions, total), v, k)]


def _complement(unit: Floats) -> Floats:
    """Return B - 1 orthonormal columns orthogonal to a unit vector, by a reflection."""
    first = np.zeros_like(unit)
    first[..., 0] = np.where(unit[..., 0] < 0, 1.0, -1.0)
    mirror = unit - first
    size = (mirror**2).sum(-1, keepdims=True)[..., None]
    reflection = np.eye(unit.shape[-1]) - 2 * ratio_or_zero(
        mirror[..., :, None] * mirror[..., None, :], size
    )
    return np.asarray(reflection[..., 1:])


def _orthonormal(functions: Floats, v: Floats) -> Floats:
    """Orthonormalize functions of the cell (last axis) under the weights v."""
    columns: list[Floats] = []
    for j in range(functions.shape[-1]):
        f = functions[..., j]
        size = (f**2 * v).sum(-1, keepdims=True)
        for column in columns:
            f = f - column * (f * column * v).sum(-1, keepdims=True)
        norm = (f**2 * v).sum(-1, keepdims=True)
        columns.append(ratio_or_zero(f, np.sqrt(norm)) * (norm > 1e-9 * size))
    return np.stack(columns, -1)


def legendre(weight: Floats, placed: ArrayLike | None = None) -> Floats:
    """Return Legendre polynomials 0, 1, 2 of the mid-rank of each cell, as columns.

    ErrorSums without a place in the order get 0 for the polynomials 1 and 2.
    """
    mask = np.ones_like(weight) if placed is None else weight * 0 + np.asarray(placed, float)
    ranked = weight * mask
    top = np.cumsum(ranked, -1)
    x = 2 * ratio_or_zero(top - ranked / 2, top[..., -1:]) - 1
    return np.stack([np.ones_like(x), x * mask, (1.5 * x**2 - 0.5) * mask], -1)


def constant_gap_moments(cells: ErrorSums, evidence: Floats | None = None) -> tuple[Floats, Floats]:
    r"""Return variance and fourth cumulant of each cell's ``we`` under a constant gap g.

    The hits are then about Bernoulli(s - g), of variance
    :math:`s(1 - s) + g(2s - 1) - g^2`, which stays right where scores are heaped at 1 and
    :math:`s(1 - s)` is nearly 0. Hits need not be Bernoulli(s - g) row by row for the gap to
    be constant in v, so one factor makes the total equal to the observed scatter, and each
    cell's own scatter about the overall gap counts by its ``evidence`` in rows (those of the
    cell, unless told), against 50 rows' worth of variance for the model.
    """
    g = cells.overall[..., None]
    model = cells.null2 + g * (2 * cells.score2 - cells.weight2) - g**2 * cells.weight2
    model = np.maximum(model, 0.1 * cells.null2)
    scatter = np.maximum(cells.square2 + 2 * g * cells.error2 + g**2 * cells.weight2, 0.0)
    rows = cells.n.sum(-1, keepdims=True)
    scatter = scatter * ratio_or_zero(rows, rows - 1)
    model = model * ratio_or_zero(scatter.sum(-1, keepdims=True), model.sum(-1, keepdims=True))
    per_row = ratio_or_zero(model.sum(-1, keepdims=True), cells.weight2.sum(-1, keepdims=True))
    evidence = cells.n if evidence is None else evidence
    weight = ratio_or_zero(evidence * per_row, evidence * per_row + 50.0)
    v = weight * scatter + (1 - weight) * model
    x = np.minimum(ratio_or_zero(v, cells.weight2), 0.25)
    return v, ratio_or_zero(cells.weight2**2, cells.n) * x * (1 - 6 * x)


def is_sparse(rows: Rows, n_bins: int) -> bool:
    """Tell whether a bin that holds rows expects little variance."""
    v = np.bincount(rows.coarse, rows.score * (1 - rows.score), n_bins)
    return bool((v[np.bincount(rows.coarse, minlength=n_bins) > 0] < SPARSE).any())


def draws_for(rows: Rows) -> int:
    """Return how many simulations are worth their time: none beyond 10,000 rows."""
    draws = int(2_000_000 / max(len(rows.score), 1))
    return min(draws, 2_000) if draws >= 200 else 0


def draw_hits(probability: Floats, draws: int, seed: int) -> Iterator[Singles]:
    """Draw Bernoulli hits, in blocks of draws that stay small in memory."""
    rng = np.random.default_rng(seed)
    p = probability.astype(np.float32)
    block = max(1, 2**18 // max(len(p), 1))
    for start in range(0, draws, block):
        size = (min(block, draws - start), len(p))
        yield (rng.random(size, dtype=np.float32) < p).astype(np.float32)


def simulate(rows: Rows, forms: list[Form], hits: Iterable[Singles]) -> Floats:
    """Return the p-values that moment matching gives to simulated hits."""
    w = np.ones_like(rows.score) if rows.weight is None else rows.weight
    designs = []
    for form, index in zip(forms, (rows.coarse, rows.fine), strict=False):
        design = w[:, None] * form.loading[rows.coarse if index is None else index]
        designs.append((design.astype(np.float32), rows.score @ design))
    return np.concatenate(
        [
            cauchy(
                [
                    form.tail(((block @ design - center) ** 2).sum(-1))
                    for form, (design, center) in zip(forms, designs, strict=True)
                ]
            )
            for block in hits
        ]
    )


def tail_p(observed: Floats, null: Floats) -> Floats:
    """Return the place of an observed statistic among simulated ones, large being extreme.

    ``(1 + exceedances) / (1 + draws)``, but where fewer than 20 draws exceed it, an
    exponential tail fitted to the top tenth of them.
    """
    draws = len(null)
    exceed = int((null >= observed - 1e-3).sum())
    if exceed >= 20 or draws < 200:
        return np.asarray((1 + exceed) / (1 + draws))
    top = np.sort(null)[-(draws // 10) :]
    scale = max(float((top - top[0]).mean()), 1e-3)
    p = len(top) / draws * np.exp(-(observed - top[0]) / scale)
    return np.asarray(np.maximum(p, 1e-300))
