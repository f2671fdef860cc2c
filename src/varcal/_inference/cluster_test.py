"""The calibration test for rows in groups, such as patients, customers or shops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import fdtrc

from varcal._arrays import Bools, Floats, Ints, ratio_or_zero
from varcal._inference.multiplicity import cauchy
from varcal._inference.quadratic_forms import legendre
from varcal._sums.stats import BinnedStats
from varcal._text import count
from varcal.exceptions import InputError

#: Below this many groups the null distribution is simulated by flipping the signs of groups.
FEW_GROUPS = 100
#: The number of sign flips; the smallest possible p-value is then 0.001.
DRAWS = 999
#: A test with k terms needs at least this many times k groups.
GROUPS_PER_TERM = 2
#: The groups that any test needs: that of smooth trends has three terms.
LEAST_GROUPS = 3 * GROUPS_PER_TERM
#: A term whose part not explained by the others is smaller than this, relative to the largest,
#: is dropped.
DEPENDENT = 1e-6
#: The part of the mean variance that is added to each variance, so that the covariance matrix
#: can be inverted.
RIDGE = 1e-10
#: p-values that differ by less than this, relatively, count as equal: rounding errors depend on
#: the signs.
SAME_P = 1e-9
#: The least scale, to avoid division by 0.
TINY = 1e-300


def cluster_test(
    coarse: Sequence[BinnedStats],
    fine: Sequence[BinnedStats],
    placed: Bools | None,
    *,
    constant: bool = False,
    seed: int = 0,
) -> float:
    r"""Return the p-value of the hypothesis of `calibration_test` for rows in groups.

    Hotelling tests on the sums of the groups, over the bins and on the Legendre polynomials
    0, 1, 2 of the rank of v, are combined by the Cauchy mean. The sums of a group are one
    observation, so that the rows of a group may depend on each other in any way. With k terms
    and G groups (or buckets of groups), :math:`T^2 (G - k) / (k (G - 1))` is compared with
    F(k, G − k). With fewer than 100 groups, the null distribution comes from random signs of the
    groups instead.

    Parameters
    ----------
    coarse, fine : sequences of BinnedStats
        Tables of each predicted side, by bucket of groups.
    placed : array of bool or None
        Which fine cells are ordered along v; None if v has no order.
    constant : bool
        Whether a gap that is constant within each side is part of the hypothesis.
    seed : int
        Seed of the random signs.
    """
    parts = []
    for sign in ([1.0, 1.0], [-1.0, 1.0])[: len(coarse)]:
        parts.append(_contributions(coarse, sign, None, constant))
        if placed is not None:
            parts.append(_contributions(fine, sign, placed, constant))
    return hotelling_test(parts, seed)


def hotelling_test(contributions: Sequence[Floats], seed: int = 0) -> float:
    """Test that the sums of groups, shape (G, k) for each set of terms, have mean 0."""
    n_groups = len(contributions[0])
    most = n_groups // GROUPS_PER_TERM
    used = [part for part in contributions if 0 < part.shape[1] <= most]
    if not used:
        # More levels than groups can tell apart: the most frequent ones.
        used = [part[:, :most] for part in contributions if part.shape[1]]
        if not used:
            return 1.0  # a single value: the gap cannot change along it
        if n_groups < LEAST_GROUPS:
            raise InputError(
                f"groups has {count(n_groups, 'group')} with weight",
                f"a test needs at least {LEAST_GROUPS}",
                argument="groups",
            )
    observed = float(cauchy([_hotelling(part[None])[0] for part in used]))
    if n_groups >= FEW_GROUPS:
        return observed
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(DRAWS, n_groups, 1))
    null = cauchy([_hotelling(part * signs) for part in used])
    return float((1 + (null <= observed * (1 + SAME_P)).sum()) / (1 + DRAWS))


def n_groups(stats: BinnedStats) -> int:
    """Return the number of groups (or buckets of groups) with weight."""
    return int((stats.field("weight").sum(axis=1) > 0).sum())


def enough_groups(stats: BinnedStats) -> bool:
    """Tell whether there are enough groups for a test along any variable."""
    return n_groups(stats) >= LEAST_GROUPS


def _contributions(
    tables: Sequence[BinnedStats], signs: Sequence[float], placed: Bools | None, constant: bool
) -> Floats:
    """Return the sums of w(h − s) of each group for the terms of a test, shape (G, k)."""
    total = np.stack([stats.total("weight") for stats in tables])
    everywhere = total.sum(axis=0)
    if placed is None:
        filled = by_weight(everywhere)
        functions = np.eye(len(everywhere))[:, filled[: len(filled) - constant]]
    else:
        functions = legendre(everywhere, placed)[:, int(constant) :]
    means = ratio_or_zero(total @ functions, total.sum(axis=-1, keepdims=True)) * constant
    keep = independent(np.concatenate([functions - mean for mean in means]), total.ravel())
    sums, by_group = np.zeros(()), np.zeros(())
    for stats, sign, part in zip(tables, signs, np.split(keep, len(tables)), strict=False):
        weight = stats.field("weight")
        error = stats.field("hit") - stats.field("score")
        mean = float(ratio_or_zero(error.sum(), np.asarray(weight.sum()))) * constant
        sums = sums + sign * ((error - weight * mean) @ part)
        by_group = by_group + weight.sum(axis=1)
    return np.asarray(sums)[np.asarray(by_group) > 0]


def by_weight(total: Floats) -> Ints:
    """Return the bins that have weight, the heaviest first."""
    return np.argsort(-total, kind="stable")[: int((total > 0).sum())]


def independent(terms: Floats, total: Floats) -> Floats:
    """Drop terms that depend on others, such as the quadratic of a variable with two values."""
    _, triangle = np.linalg.qr(terms * np.sqrt(total)[:, None])
    size = np.zeros(terms.shape[1])
    size[: len(triangle)] = np.abs(np.diag(triangle))
    return terms[:, size > DEPENDENT * max(size.max(initial=0.0), TINY)]


def _hotelling(sums: Floats) -> Floats:
    """Return p-values of "the mean over groups is 0" for tables of the shape (draws, G, k)."""
    _, n_groups, k = sums.shape
    mean = sums.mean(axis=1)
    centred = sums - mean[:, None]
    spread = np.einsum("dgi,dgj->dij", centred, centred) / (n_groups - 1)
    scale = np.einsum("dii->d", spread)[:, None, None] / k
    spread = spread + RIDGE * np.maximum(scale, TINY) * np.eye(k)
    solved = np.linalg.solve(spread, mean[..., None])[..., 0]
    t2 = n_groups * np.einsum("di,di->d", mean, solved)
    return np.asarray(fdtrc(k, n_groups - k, t2 * (n_groups - k) / (k * (n_groups - 1))))
