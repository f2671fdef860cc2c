"""The test and the law of gaps by predicted side, for rows in groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from varcal._arrays import Bools, Floats, ratio_or_zero
from varcal._binning.stats import BinnedStats
from varcal._inference.cluster_test import hotelling_test, independent
from varcal._inference.gap_law import GapLaw
from varcal._inference.measured import check_two_buckets, error_sums_of, lifted
from varcal._inference.quadratic_forms import legendre
from varcal._inference.sided_law import sided_law


def sided_cluster_test(
    coarse: Sequence[BinnedStats],
    fine: Sequence[BinnedStats],
    signs: Floats,
    placed: Bools | None,
    *,
    seed: int = 0,
) -> float:
    r"""Return the p-value of "the gap is constant within each predicted side" for rows in groups.

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
    """
    parts = []
    for sign in signs:
        parts.append(_contributions(coarse, sign, None))
        if placed is not None:
            parts.append(_contributions(fine, sign, placed))
    return hotelling_test(parts, seed)


def _contributions(tables: Sequence[BinnedStats], signs: Floats, placed: Bools | None) -> Floats:
    """Return the sums of each group for the terms of a claim, shape (G, k)."""
    total = np.stack([stats.total("weight") for stats in tables])
    everywhere = total.sum(axis=0)
    if placed is None:
        filled = np.flatnonzero(everywhere > 0)
        functions = np.eye(total.shape[1])[:, filled[:-1]]
    else:
        functions = legendre(everywhere, placed)[:, 1:]
    means = ratio_or_zero(total @ functions, total.sum(axis=-1, keepdims=True))
    terms = np.concatenate([functions - mean for mean in means])
    keep = independent(terms, total.ravel())
    sums = sum(
        sign * (_errors(stats)[0] @ part)
        for stats, sign, part in zip(tables, signs, np.split(keep, len(tables)), strict=True)
    )
    by_group = sum(stats.field("weight").sum(axis=1) for stats in tables)
    return np.asarray(sums)[np.asarray(by_group) > 0]


def _errors(stats: BinnedStats) -> tuple[Floats, float]:
    """Return the errors by group and bin about the mean of the side, and this mean."""
    weight = stats.field("weight")
    error = stats.field("hit") - stats.field("score")
    mean = float(ratio_or_zero(error.sum(), np.asarray(weight.sum())))
    return error - mean * weight, mean


def sided_cluster_law(tables: Sequence[BinnedStats], signs: Floats) -> GapLaw:
    """Return the law of `sided_law` with the covariance of the sums of groups."""
    rows = sided_law(error_sums_of(tables), signs)
    n_buckets = check_two_buckets(sum(stats.field("weight").sum(axis=1) for stats in tables))
    by_group = np.sum([stats.field("weight") for stats in tables], axis=0)
    weight = by_group.sum(axis=0)
    inverse = ratio_or_zero(np.ones_like(weight), weight)

    def influence(gap: Floats) -> Floats:
        """Return how much each group moves the gap of each bin, shape (G, B)."""
        moved = by_group * gap * inverse
        for stats, sign in zip(tables, signs, strict=True):
            error, _ = _errors(stats)
            own = stats.field("weight")
            part = ratio_or_zero(own.sum(axis=0) * inverse, np.asarray(own.sum()))
            moved = moved + sign * (error * inverse - error.sum(axis=1, keepdims=True) * part)
        return moved

    correction = n_buckets / (n_buckets - 1)
    spread = by_group / weight.sum() - rows.share * by_group.sum(axis=1)[:, None] / weight.sum()
    about_gap, about_zero = influence(rows.gap), influence(np.zeros_like(rows.gap))
    return replace(
        rows,
        cov=lifted(correction * about_gap.T @ about_gap, rows.cov),
        null_cov=lifted(correction * about_zero.T @ about_zero, rows.null_cov),
        share_cov=correction * spread.T @ spread,
        df=n_buckets - 1,
    )
