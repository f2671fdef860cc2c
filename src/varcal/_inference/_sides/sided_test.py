"""Tests of whether the gap is constant along a variable within each predicted side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from varcal._arrays import Bools, Floats, ratio_or_zero
from varcal._inference.error_sums import ErrorSums
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


@dataclass(frozen=True)
class SidedSums:
    """The sums of errors by predicted side and cell, with the signs of each claim.

    Attributes
    ----------
    coarse : ErrorSums
        Sums of shape (sides, bins).
    fine : ErrorSums or None
        The same over fine cells; None if the variable has no order.
    signs : ndarray of shape (claims, sides)
        A claim's error is the error of the sums, times the sign of the side.
    placed : array of bool, optional
        Which fine cells are ordered along the variable.
    merge : array of int, optional
        The bin of each fine cell; needed with `fine`.
    same : tuple of int
        For each claim of the caller, the row of `signs` that it has.
    """

    coarse: ErrorSums
    fine: ErrorSums | None
    signs: Floats
    placed: ArrayLike | None = None
    merge: ArrayLike | None = None
    same: tuple[int, ...] = ()


def sided_test(sums: SidedSums, rows: ScoredRows | None = None, *, seed: int = 0) -> Floats:
    r"""Return p-values of "the gap is constant along v within each predicted side".

    With e = y − p and the sign σ of the predicted side (1 if the prediction is positive, else
    −1), the gap of the risk is the mean of −e and that of the confidence the mean of −σe. Both
    are judged by one hypothesis, :math:`\mathrm{E}[e \mid v, \text{side}] = c_\text{side}`. (A
    hypothesis for each claim, that its own gap is constant, would be wrong for the other claim
    as soon as v follows the score.)

    For functions f of v (indicators of the bins; Legendre polynomials 1 and 2 of the mid-rank),
    the columns :math:`\phi = f - \bar f_\text{side}` measure the risk, :math:`\sigma\phi` the
    confidence, and both together measure each side by itself. Each set of columns gives a
    quadratic form in the sums of we with known mean and variance; the Cauchy mean combines the
    p-values of all, six with two claims.

    If some bin is sparse and the p-value is below `SIMULATE_BELOW`, hits are simulated from the
    scores minus the gap of their side, for each row or, without rows or with many, for each
    cell. The result is the rank among those of the simulated hits.

    Parameters
    ----------
    sums : SidedSums
        Sums by side and cell.
    rows : ScoredRows, optional
        The rows, whose cells are numbered side by side, for simulated hits.
    seed : int
        Seed of the simulated hits.

    Returns
    -------
    ndarray
        The p-value for all claims together, and then those of each claim's own columns.
    """
    seen = sums.coarse.weight.sum(-1) > 0
    sums = _of_sides(sums, seen)
    errors = [sums.coarse.error, *([] if sums.fine is None else [sums.fine.error])]
    coarse, fine = sums.coarse, sums.fine
    moments = [constant_gap_moments(coarse)]
    if fine is not None:
        moments.append(constant_gap_moments(fine, fine.effective_rows.sum(-1, keepdims=True)))
    p = _combined(_tails(_forms(sums, moments), errors), sums.signs)
    if p[0] >= SIMULATE_BELOW or not _is_sparse(coarse):
        return _of_claims(p, sums.same)
    gap = coarse.overall * ratio_or_zero(coarse.n.sum(-1), coarse.n.sum(-1) + PRIOR_ROWS)
    tables = [coarse] if fine is None else [coarse, fine]
    forms = _forms(sums, [_model_moments(table, gap) for table in tables])
    draws = 0 if rows is None else draws_for(rows)
    if rows is not None and draws:
        null = _drawn_by_row(sums, forms, rows, gap, seen, draws, seed)
    else:
        null = _drawn_by_cell(sums, forms, seed)
    observed = _combined(_tails(forms, errors), sums.signs)
    p = np.array(
        [
            tail_p(-np.log(a), -np.log(b))
            for a, b in zip(observed, _combined(null, sums.signs), strict=True)
        ]
    )
    return _of_claims(p, sums.same)


def _of_sides(sums: SidedSums, seen: Bools) -> SidedSums:
    """Keep the given sides; claims that are the same on what is left become one."""
    signs = sums.signs[:, seen]
    _, first, same = np.unique(signs * signs[:, :1], axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    coarse, fine = (
        None if table is None else ErrorSums(**{k: v[seen] for k, v in vars(table).items()})
        for table in (sums.coarse, sums.fine)
    )
    assert coarse is not None
    place = np.argsort(order)[same.ravel()]
    return SidedSums(
        coarse, fine, signs[first[order]], sums.placed, sums.merge, tuple(place.tolist())
    )


def _of_claims(p: Floats, same: tuple[int, ...]) -> Floats:
    """Return the common p-value and that of each claim, where some claims were one."""
    return p[[0, *(1 + k for k in same)]]


def _forms(sums: SidedSums, moments: Sequence[tuple[Floats, Floats]]) -> list[list[Form]]:
    """Return the forms over the bins and, for a variable with an order, over the fine cells."""
    v, kappa = moments[0]
    prior = PRIOR * ratio_or_zero(sums.coarse.weight2, sums.coarse.n)
    forms = [_forms_over(sums.coarse, np.eye(v.shape[-1]), sums.signs, v, kappa, v + prior)]
    if sums.fine is not None:
        v, kappa = moments[1]
        functions = legendre(sums.fine.weight.sum(0), sums.placed)[:, 1:]
        rows = sums.fine.n.sum(-1, keepdims=True)
        prior = PRIOR * ratio_or_zero(sums.fine.weight2, rows)
        forms.append(_forms_over(sums.fine, functions, sums.signs, v, kappa, v + prior))
    return forms


def _forms_over(
    cells: ErrorSums, functions: Floats, signs: Floats, v: Floats, kappa: Floats, total: Floats
) -> list[Form]:
    """Return the form of each claim, and of two claims together."""
    mean = cells.share @ functions
    phi = functions - mean[:, None, :]
    columns = [(sign[:, None, None] * phi).reshape(-1, functions.shape[1]) for sign in signs]
    columns += [np.hstack(pair) for pair in combinations(columns, 2) if len(signs) == 2]
    return [
        form_of(orthonormal_span(one, total.ravel()), v.ravel(), kappa.ravel()) for one in columns
    ]


def orthonormal_span(columns: Floats, weight: Floats) -> Floats:
    """Return columns of the same span that are orthonormal under weights; dependent ones drop."""
    norm = np.sqrt((columns**2 * weight[:, None]).sum(0))
    columns = columns[:, norm > 0] / norm[norm > 0]
    size, turn = np.linalg.eigh(columns.T @ (weight[:, None] * columns))
    keep = size > DEPENDENT * max(size.max(initial=0.0), 1.0)
    return np.asarray(columns @ (turn[:, keep] / np.sqrt(size[keep])))


def _tails(forms: list[list[Form]], errors: list[Floats]) -> list[Floats]:
    """Return the p-value of each form."""
    pairs = zip(forms, errors, strict=True)
    return [form.p_value(error.ravel()) for some, error in pairs for form in some]


def _combined(p: list[Floats], signs: Floats) -> Floats:
    """Combine the p-values of all forms, and those of each claim's own forms."""
    n_claims = len(signs)
    each = n_claims + (n_claims == 2)  # and one for both
    own = [cauchy([p[k] for k in range(claim, len(p), each)]) for claim in range(n_claims)]
    return np.stack([cauchy(p), *own])


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
    sums: SidedSums,
    forms: list[list[Form]],
    rows: ScoredRows,
    gap: Floats,
    seen: Bools,
    draws: int,
    seed: int,
) -> list[Floats]:
    """Return the p-values that moments give to hits drawn for each row, for each form."""
    number = np.cumsum(seen) - 1  # of the sides that have rows
    size = sums.coarse.n.shape[-1]
    side = number[rows.coarse // size]
    chance = np.clip(rows.score - gap[side], LEAST_MODEL * rows.score, 1.0)
    places = [side * size + rows.coarse % size]
    if sums.fine is not None and rows.fine is not None:
        size = sums.fine.n.shape[-1]
        places.append(side * size + rows.fine % size)
    weight = np.ones_like(rows.score) if rows.weight is None else rows.weight
    flat = [form for some in forms for form in some]
    designs = [
        weight[:, None] * form.loading[place]
        for some, place in zip(forms, places, strict=True)
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
    return [np.concatenate(found) for found in tails]


def _drawn_by_cell(sums: SidedSums, forms: list[list[Form]], seed: int) -> list[Floats]:
    """Return the p-values that moments give to sums drawn for each cell, for each form."""
    coarse, fine = sums.coarse, sums.fine
    cells = coarse if fine is None else fine
    drawn = np.stack(
        [
            draw_cells(
                ErrorSums(**{name: x[side] for name, x in vars(cells).items()}),
                CELL_DRAWS,
                seed + side,
                constant=True,
            )
            for side in range(len(cells.n))
        ],
        axis=1,
    )
    tables = [drawn]
    if fine is not None:
        inside = np.asarray(sums.merge)[:, None] == np.arange(coarse.n.shape[-1])
        tables = [drawn @ inside, drawn]
    return [
        form.p_value(we.reshape(CELL_DRAWS, -1))
        for some, we in zip(forms, tables, strict=True)
        for form in some
    ]
