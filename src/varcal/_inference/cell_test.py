"""The test of whether the gap is constant along a variable within each predicted side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from varcal._arrays import Bools, Floats, Ints, ratio_or_zero
from varcal._binning.bins import coarse_index
from varcal._binning.stats import BinnedStats
from varcal._inference.cluster_test import by_weight, hotelling_test, independent
from varcal._inference.error_sums import ErrorSums
from varcal._inference.measured import error_sums_of
from varcal._inference.multiplicity import cauchy
from varcal._inference.quadratic_forms import (
    DEPENDENT,
    LEAST_MODEL,
    PRIOR,
    Form,
    constant_gap_moments,
    form_of,
    legendre,
)
from varcal._inference.scored_rows import ScoredRows
from varcal._inference.simulated_null import (
    SPARSE_VARIANCE,
    draw_cells,
    draw_hits,
    draws_for,
    tail_p,
)

#: Hits are simulated only if the p-value from moments is below this.
SIMULATE_BELOW = 0.2
#: The number of draws if hits are drawn by cell.
CELL_DRAWS = 1_000
#: In simulated hits, the gap of a side counts as if this many rows without a gap were added.
PRIOR_ROWS = 5.0


def cell_test(
    coarse: Sequence[BinnedStats],
    fine: Sequence[BinnedStats],
    placed: Bools | None,
    rows: ScoredRows | None = None,
    *,
    shared: int = 1,
    seed: int = 0,
) -> float:
    r"""Return the p-value of "the gap is constant along v within each predicted side".

    The hypothesis is :math:`\mathrm{E}[y - p \mid v, \text{side}] = c_\text{side}`. For functions
    f of v (indicators of the bins; Legendre polynomials 1 and 2 of the mid-rank), the columns
    :math:`\phi = f - \bar f_\text{side}` find errors that both sides share, :math:`\pm\phi` with
    the sign of the side those that are opposite, and both together each side by itself. Each set
    of columns gives a quadratic form in the sums of :math:`w(y - p)` with known mean and variance;
    the Cauchy mean combines their p-values.

    If some bin is sparse and the p-value is below `SIMULATE_BELOW`, hits are simulated from the
    scores minus the gap of their side, for each row or, without rows or with many, for each cell.
    The result is the rank among those of the simulated hits. With groups the sums of a group are
    one observation (`hotelling_test`).

    Parameters
    ----------
    coarse, fine : sequences of BinnedStats
        The tables of each side, over bins and over fine cells.
    placed : array of bool or None
        Which fine cells are ordered along v; None if v has no order.
    rows : ScoredRows, optional
        The rows, whose cells are numbered side by side, for simulated hits.
    shared : int
        How many times the forms of errors that both sides share count among the others (without
        groups).
    seed : int
        Seed of simulations.
    """
    if coarse[0].sums.shape[1] > 1:
        parts = []
        for sign in _signs(len(coarse)):
            parts.append(_contributions(coarse, sign, None))
            if placed is not None:
                parts.append(_contributions(fine, sign, placed))
        return hotelling_test(parts, seed)
    tables = [error_sums_of(coarse), *([] if placed is None else [error_sums_of(fine)])]
    errors = [table.error.ravel() for table in tables]
    moments = [constant_gap_moments(tables[0])]
    if placed is not None:
        every = tables[1].effective_rows.sum(-1, keepdims=True)
        moments.append(constant_gap_moments(tables[1], every))
    p = _combined(_tails(_forms(tables, moments, placed), errors), shared)
    if p >= SIMULATE_BELOW or not _is_sparse(tables[0]):
        return float(p)
    # As in the moments, a row with most of the weight counts as one row.
    counted = tables[0].effective_rows
    gap = ratio_or_zero((counted * tables[0].gap).sum(-1), counted.sum(-1) + PRIOR_ROWS)
    forms = _forms(tables, [_model_moments(table, gap) for table in tables], placed)
    draws = 0 if rows is None else draws_for(rows)
    if rows is not None and draws:
        null = _drawn_by_row(tables, forms, rows, gap, draws, seed)
    else:
        merge = coarse_index(fine[0].bins, coarse[0].bins)
        null = _drawn_by_cell(tables, forms, merge, seed)
    observed = _combined(_tails(forms, errors), shared)
    return float(tail_p(-np.log(observed), -np.log(_combined(null, shared))))


def _signs(sides: int) -> Floats:
    """Return the signs of the sides: the same, and with two sides also opposite ones."""
    return np.array([[1.0, 1.0], [-1.0, 1.0]]) if sides == 2 else np.ones((1, sides))


def _forms(
    tables: Sequence[ErrorSums], moments: Sequence[tuple[Floats, Floats]], placed: Bools | None
) -> list[list[Form]]:
    """Return the forms over the bins and, for a variable with an order, over the fine cells."""
    found = []
    for k, (cells, (v, kappa)) in enumerate(zip(tables, moments, strict=True)):
        if k == 0:
            functions, n = np.eye(v.shape[-1]), cells.n
        else:
            functions = legendre(cells.weight.sum(0), placed)[:, 1:]
            n = cells.n.sum(-1, keepdims=True)
        phi = functions - (cells.share @ functions)[:, None, :]
        signs = _signs(len(cells.n))
        columns = [(sign[:, None, None] * phi).reshape(-1, functions.shape[1]) for sign in signs]
        columns += [np.hstack(pair) for pair in combinations(columns, 2)]
        total = (v + PRIOR * ratio_or_zero(cells.weight2, n)).ravel()
        found.append(
            [form_of(orthonormal_span(one, total), v.ravel(), kappa.ravel()) for one in columns]
        )
    return found


def orthonormal_span(columns: Floats, weight: Floats) -> Floats:
    """Return columns of the same span that are orthonormal under weights; dependent ones drop."""
    norm = np.sqrt((columns**2 * weight[:, None]).sum(0))
    columns = columns[:, norm > 0] / norm[norm > 0]
    size, turn = np.linalg.eigh(columns.T @ (weight[:, None] * columns))
    keep = size > DEPENDENT * max(size.max(initial=0.0), 1.0)
    return np.asarray(columns @ (turn[:, keep] / np.sqrt(size[keep])))


def _tails(forms: list[list[Form]], errors: list[Floats]) -> list[list[Floats]]:
    """Return the p-value of each form."""
    return [
        [form.p_value(error) for form in some] for some, error in zip(forms, errors, strict=True)
    ]


def _combined(tails: list[list[Floats]], shared: int) -> Floats:
    """Combine p-values; the first form of a table is that of errors that both sides share."""
    return cauchy([p for first, *others in tails for p in [*[first] * shared, *others]])


def _is_sparse(coarse: ErrorSums) -> bool:
    """Tell whether the expected variance of some bin with rows is small."""
    rows = coarse.n.sum(0)
    variance = rows * ratio_or_zero(coarse.null2.sum(0), coarse.weight2.sum(0))
    return bool((variance[rows > 0] < SPARSE_VARIANCE).any())


def _model_moments(cells: ErrorSums, gap: Floats) -> tuple[Floats, Floats]:
    """Return variance and fourth cumulant of each cell if hits are Bernoulli(s − gap)."""
    g = gap[:, None]
    v = cells.null2 + g * (2 * cells.score2 - cells.weight2) - g**2 * cells.weight2
    v = np.maximum(v, LEAST_MODEL * cells.null2)
    x = np.minimum(ratio_or_zero(v, cells.weight2), 0.25)
    return v, ratio_or_zero(cells.weight2**2, cells.n) * x * (1 - 6 * x)


def _drawn_by_row(
    tables: Sequence[ErrorSums],
    forms: list[list[Form]],
    rows: ScoredRows,
    gap: Floats,
    draws: int,
    seed: int,
) -> list[list[Floats]]:
    """Return the p-values that moments give to hits drawn for each row, for each form."""
    side = rows.coarse // tables[0].n.shape[-1]
    chance = np.clip(rows.score - gap[side], LEAST_MODEL * rows.score, 1.0)
    places = [rows.coarse, rows.fine]
    weight = np.ones_like(rows.score) if rows.weight is None else rows.weight
    flat = [form for some in forms for form in some]
    designs = [
        weight[:, None] * form.loading[place]
        for some, place in zip(forms, places, strict=False)
        for form in some
    ]
    ends = np.cumsum([design.shape[1] for design in designs])[:-1]
    design = np.hstack(designs)
    center = rows.score @ design
    design = design.astype(np.float32)
    tails: list[list[Floats]] = [[] for _ in flat]
    for block in draw_hits(chance, draws, seed):
        parts = np.split(block @ design - center, ends, axis=-1)
        for form, part, found in zip(flat, parts, tails, strict=True):
            found.append(form.tail((part**2).sum(-1)))
    flat_tails = iter([np.concatenate(found) for found in tails])
    return [[next(flat_tails) for _ in some] for some in forms]


def _drawn_by_cell(
    tables: Sequence[ErrorSums], forms: list[list[Form]], merge: Ints, seed: int
) -> list[list[Floats]]:
    """Return the p-values that moments give to sums drawn for each cell, for each form."""
    cells = tables[-1]
    each = [
        draw_cells(
            ErrorSums(**{name: x[side] for name, x in vars(cells).items()}),
            CELL_DRAWS,
            seed + side,
            constant=True,
        )
        for side in range(len(cells.n))
    ]
    drawn = [np.stack(each, axis=1)]
    if len(tables) > 1:
        inside = merge[:, None] == np.arange(tables[0].n.shape[-1])
        drawn = [drawn[0] @ inside, drawn[0]]
    return _tails(forms, [we.reshape(CELL_DRAWS, -1) for we in drawn])


def _contributions(tables: Sequence[BinnedStats], signs: Floats, placed: Bools | None) -> Floats:
    """Return the sums of each group for one sign of each side, shape (G, k)."""
    total = np.stack([stats.total("weight") for stats in tables])
    everywhere = total.sum(axis=0)
    if placed is None:
        filled = by_weight(everywhere)
        functions = np.eye(total.shape[1])[:, filled[:-1]]
    else:
        functions = legendre(everywhere, placed)[:, 1:]
    means = ratio_or_zero(total @ functions, total.sum(axis=-1, keepdims=True))
    terms = np.concatenate([functions - mean for mean in means])
    keep = independent(terms, total.ravel())
    sums = sum(
        sign * (_errors(stats) @ part)
        for stats, sign, part in zip(tables, signs, np.split(keep, len(tables)), strict=True)
    )
    by_group = sum(stats.field("weight").sum(axis=1) for stats in tables)
    return np.asarray(sums)[np.asarray(by_group) > 0]


def _errors(stats: BinnedStats) -> Floats:
    """Return the errors by group and bin about the mean of the side."""
    weight = stats.field("weight")
    error = stats.field("hit") - stats.field("score")
    return error - weight * ratio_or_zero(error.sum(), np.asarray(weight.sum()))
