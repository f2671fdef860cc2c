"""The test and the law of gaps by predicted side, for rows in groups."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from varcal._arrays import Bools, Floats, ratio_or_zero
from varcal._binning.stats import BinnedStats
from varcal._inference.cluster_law import cluster_law
from varcal._inference.cluster_test import by_weight, hotelling_tests, independent
from varcal._inference.error_sums import ErrorSums
from varcal._inference.gap_law import GapLaw
from varcal._inference.measured import error_sums_by_bucket
from varcal._inference.quadratic_forms import legendre


def sided_cluster_tests(
    coarse: Sequence[BinnedStats],
    fine: Sequence[BinnedStats],
    signs: Floats,
    placed: Bools | None,
    *,
    seed: int = 0,
) -> list[float]:
    r"""Return p-values of "the gap is constant within each predicted side" for rows in groups.

    As in `cluster_test`, the sums of a group are one observation. Those of a claim are
    :math:`\sum w \sigma \phi (e - \hat c_\text{side})` with the columns of `sided_test`.

    Parameters
    ----------
    coarse, fine : sequences of BinnedStats
        The tables of each side, by bucket of groups.
    signs : ndarray of shape (claims, sides)
        The sign of each side in each claim.
    placed : array of bool or None
        Which fine cells are ordered along v; None if v has no order.
    seed : int
        Seed of the random signs.

    Returns
    -------
    list of float
        The p-value of all claims together, and of each.
    """
    parts: list[Floats] = []
    own: list[range] = []
    for sign in signs:
        begin = len(parts)
        parts.append(_contributions(coarse, sign, None))
        if placed is not None:
            parts.append(_contributions(fine, sign, placed))
        own.append(range(begin, len(parts)))
    return hotelling_tests(parts, [range(len(parts)), *own], seed)


def _contributions(tables: Sequence[BinnedStats], signs: Floats, placed: Bools | None) -> Floats:
    """Return the sums of each group for the terms of a claim, shape (G, k)."""
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


def sided_cluster_law(tables: Sequence[BinnedStats], signs: Floats) -> GapLaw:
    """Return the law of `sided_law` with the variance between groups (`cluster_law`).

    The mean error of each side is taken off first; the rest is the law of one table.
    """
    parts = [error_sums_by_bucket(stats) for stats in tables]
    summed: dict[str, Floats] = {}
    for cells, sign in zip(parts, signs, strict=True):
        mean = float(ratio_or_zero(cells.error.sum(), np.asarray(cells.weight.sum())))
        own = vars(cells) | {
            "error": sign * (cells.error - mean * cells.weight),
            "error2": sign * (cells.error2 - mean * cells.weight2),
            "square2": cells.square2 - 2 * mean * cells.error2 + mean**2 * cells.weight2,
        }
        summed = {name: value + summed.get(name, 0.0) for name, value in own.items()}
    return cluster_law(ErrorSums(**summed), center=True)
