"""The test of whether the gap is zero, or the same everywhere, along a variable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from varcal._arrays import Bools, Floats, Ints, ratio_or_zero
from varcal._inference.cluster_test import cluster_test
from varcal._inference.error_sums import ErrorSums
from varcal._inference.finer_cells import finer_cells, merged_cells
from varcal._inference.measured import error_sums_of
from varcal._inference.multiplicity import cauchy
from varcal._inference.normal_scores import LEAST_EVENTS, normal_sums, row_skewness, unit2_of
from varcal._inference.quadratic_forms import (
    Form,
    chi_square_tail,
    constant_gap_variance,
    form_of,
    legendre,
)
from varcal._sums.bins import coarse_index
from varcal._sums.stats import BinnedStats

#: The weights of smooth trends, of bins, of finer cells (without them, those of bins), of bins with
#: few events and, if it is part of the hypothesis, of the overall gap.
TRENDS, BINS, FINER, SPARSE, OVERALL = 2.0, 1.2, 0.8, 0.6, 0.2
#: The variance of a cell with a constant gap is at least this part of that without one: a gap that
#: few events suggest may be larger than the scores of a cell.
LEAST_VARIANCE = 0.5
#: With few events in all, p-values are discrete: they are raised by this, divided by the events.
DISCRETE = 3.0
#: A bin with a smaller variance, in events, is sparse.
SPARSE_EVENTS = 5.0
#: The level at which the gap changes within bins, so that finer cells measure the error.
WITHIN = 0.02
#: With a constant gap, the gap of a side counts as if this many rows without a gap were added.
PRIOR_ROWS = 5.0


@dataclass(frozen=True)
class Tested:
    """The result of a test.

    Attributes
    ----------
    p_value : float
        The p-value in (0, 1].
    finer : array of int or None
        The finer cell of each fine one, if the gap changes within the bins.
    """

    p_value: float
    finer: Ints | None = None


def calibration_test(
    coarse: Sequence[BinnedStats],
    fine: Sequence[BinnedStats],
    placed: Bools | None,
    *,
    constant: bool = False,
    shared: int = 1,
    seed: int = 0,
) -> Tested:
    r"""Test "calibrated with respect to v", or "the gap is constant along v within each side".

    The weighted Cauchy mean combines the p-values of quadratic forms in the sums of w(h − s):

    - a chi-square over the bins, :math:`\sum_b (\sum_b we)^2 / V_b`, against any pattern;
    - the same over finer cells (`finer_cells`), against gaps that cancel inside bins;
    - the same over the bins with few events alone, if there are others;
    - a score test on the Legendre polynomials 0, 1, 2 of the mid-rank, against smooth trends;
    - the overall gap.

    Sums of bins count as normal scores (`normal_sums`), those of trends are corrected for their
    skewness, and each form is compared with a scaled chi-square distribution that has its mean and
    variance. So a bin with few rows or events neither rejects too often nor weakens the others.

    A constant gap is that of each predicted side,
    :math:`\mathrm{E}[h - s \mid v, \text{side}] = c_\text{side}`. With :math:`\phi = f -
    \bar f_\text{side}` for functions f of v, the columns :math:`\phi` find errors that both sides
    share, :math:`\pm\phi` with the sign of the side those that are opposite, and both together
    each side by itself. With groups the sums of a group are one observation (`cluster_test`).

    Parameters
    ----------
    coarse, fine : sequences of BinnedStats
        The tables of each side (one, if the gap is not constant) over bins and over fine cells.
    placed : array of bool or None
        Which fine cells are ordered along v; None if v has no order.
    constant : bool
        Whether a gap that is constant within each side is part of the hypothesis.
    shared : int
        How many times the forms of errors that both sides share count among the others.
    seed : int
        Seed of random signs of groups.

    References
    ----------
    Liu and Xie (2020), "Cauchy combination test", JASA 115.
    """
    if coarse[0].sums.shape[1] > 1:
        return Tested(cluster_test(coarse, fine, placed, constant=constant, seed=seed))
    bins, cells = error_sums_of(coarse), error_sums_of(fine)
    gap = np.zeros((len(bins.n), 1))
    if constant:  # a row with most of the weight counts as one row
        counted = bins.effective_rows
        gap[:, 0] = ratio_or_zero((counted * bins.gap).sum(-1), counted.sum(-1) + PRIOR_ROWS)
    normal = _normal(bins, gap, constant)
    over_bins = _over_cells(bins, normal, constant)
    found = [(over_bins, BINS + FINER)]
    finer = None
    if placed is not None:
        found.append((_over_trends(cells, legendre(cells.weight.sum(0), placed), constant), TRENDS))
        finer = finer_cells(cells, coarse_index(fine[0].bins, coarse[0].bins), placed)
    if finer is not None:
        parts = merged_cells(cells, finer)
        over_finer = _over_cells(parts, _normal(parts, gap, constant), constant)
        found[0] = (over_bins, BINS)
        found.append((over_finer, FINER))
        if _within(over_bins, over_finer) >= WITHIN:
            finer = None
    sparse = (_events(bins) < SPARSE_EVENTS) & (bins.n.sum(0) > 0)
    if sparse.any() and not sparse[bins.n.sum(0) > 0].all():
        found.append((_over_cells(bins, normal, constant, sparse), SPARSE))
    if not constant:
        ones = np.ones((bins.n.shape[-1], 1))
        found.append(
            (_over_trends(bins, ones, constant), OVERALL if placed is not None else TRENDS)
        )
    p_values, weights = [], []
    for (forms, sums), weight in found:
        p_values += [form.p_value(sums) for form in forms]
        weights += [weight * shared, *[weight] * (len(forms) - 1)]
    raised = 1 + DISCRETE / max(float(_events(bins).sum()), LEAST_EVENTS)
    return Tested(min(raised * float(cauchy(p_values, weights)), 1.0), finer)


def _events(bins: ErrorSums) -> Floats:
    """Return the variance of each bin over both sides, in events."""
    return ratio_or_zero(bins.null2.sum(0), unit2_of(bins).max(0))


def _variance(cells: ErrorSums, evidence: Floats | None = None) -> Floats:
    """Return the variance of each cell's sum if the gap is constant."""
    return np.maximum(constant_gap_variance(cells, evidence), LEAST_VARIANCE * cells.null2)


def _normal(cells: ErrorSums, gap: Floats, constant: bool) -> tuple[Floats, ...]:
    """Return the sums of cells as normal scores, with their scale, variance and cumulant."""
    v = _variance(cells) if constant else cells.null2
    return tuple(each.ravel() for each in normal_sums(cells, v, gap))


def _over_cells(
    cells: ErrorSums,
    normal: tuple[Floats, ...],
    constant: bool,
    chosen: Bools | slice = slice(None),
) -> tuple[list[Form], Floats]:
    """Return the forms over the indicators of chosen cells, and the sums of all cells."""
    sums, scale, v, fourth = normal
    columns = _columns(np.eye(cells.n.shape[-1])[:, chosen], cells, constant)
    return [form_of(one, scale, v, np.zeros_like(v), fourth) for one in columns], sums


def _over_trends(cells: ErrorSums, functions: Floats, constant: bool) -> tuple[list[Form], Floats]:
    """Return the forms over smooth functions of fine cells, and the sums of errors."""
    v = cells.null2
    if constant:
        v = _variance(cells, cells.effective_rows.sum(-1, keepdims=True))
        functions = functions[:, 1:]
    gap = (cells.share * cells.gap).sum(-1, keepdims=True) if constant else np.zeros(())
    third = row_skewness(cells, gap) * v * np.sqrt(unit2_of(cells))
    v, third = v.ravel(), third.ravel()
    columns = _columns(functions, cells, constant)
    return [form_of(one, v, v, third, np.zeros_like(v)) for one in columns], cells.error.ravel()


def _columns(functions: Floats, cells: ErrorSums, constant: bool) -> list[Floats]:
    """Return functions of cells for errors that sides share, for opposite ones, and for both."""
    sides = len(cells.n)
    phi = np.broadcast_to(functions, (sides, *functions.shape))
    if constant:
        phi = phi - (cells.share @ functions)[:, None, :]
    signs = np.array([[1.0, 1.0], [-1.0, 1.0]]) if sides == 2 else np.ones((1, sides))
    found = [(sign[:, None, None] * phi).reshape(-1, functions.shape[1]) for sign in signs]
    return found + [np.hstack(pair) for pair in combinations(found, 2)]


def _within(bins: tuple[list[Form], Floats], finer: tuple[list[Form], Floats]) -> float:
    """Return the p-value of "the gap is the same everywhere within each bin"."""
    rough, fine = bins[0][-1], finer[0][-1]
    return chi_square_tail(
        fine.value(finer[1]) - rough.value(bins[1]),
        fine.mean - rough.mean,
        fine.variance - rough.variance,
    )
