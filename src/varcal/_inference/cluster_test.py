"""The calibration test for rows in groups, such as patients, customers or shops."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np
from scipy.special import fdtrc

from varcal._arrays import Bools, Floats, Ints
from varcal._binning.stats import BinnedStats
from varcal._inference.multiplicity import cauchy
from varcal._inference.quadratic_forms import legendre
from varcal._text.numbers import count
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
    coarse: BinnedStats,
    fine: BinnedStats,
    placed: Bools | None,
    *,
    constant: bool = False,
    seed: int = 0,
) -> float:
    r"""Return the p-value of "calibrated with respect to v" for rows in groups.

    Two Hotelling tests on the sums of the groups, over the bins and on the Legendre polynomials
    0, 1, 2 of the rank of v, are combined by the Cauchy mean. The sums of a group are one
    observation, so that the rows of a group may depend on each other in any way. With k terms
    and G groups (or buckets of groups), :math:`T^2 (G - k) / (k (G - 1))` is compared with
    F(k, G − k). With fewer than 100 groups, the null distribution comes from random signs of the
    groups instead.

    Parameters
    ----------
    coarse, fine : BinnedStats
        Tables by bucket of groups.
    placed : array of bool or None
        Which fine cells are ordered along v; None if v has no order.
    constant : bool
        Whether to test that the gap is constant instead of zero.
    seed : int
        Seed of the random signs.
    """
    parts = [_contributions(coarse, None, constant)]
    if placed is not None:
        parts.append(_contributions(fine, placed, constant))
    return hotelling_test(parts, seed)


def hotelling_test(contributions: list[Floats], seed: int = 0) -> float:
    """Test that the sums of groups, shape (G, k) for each set of terms, have mean 0."""
    return hotelling_tests(contributions, [range(len(contributions))], seed)[0]


def hotelling_tests(
    contributions: Sequence[Floats], choices: Iterable[Sequence[int]], seed: int = 0
) -> list[float]:
    """Test several choices of sets of terms; what they have in common is computed once.

    Parameters
    ----------
    contributions : sequence of ndarray of shape (G, k)
        The sums of groups for each set of terms.
    choices : iterable of sequence of int
        The sets that are tested together, by their places.
    seed : int
        Seed of the random signs.
    """
    n_groups = len(contributions[0])

    @cache
    def p_values(place: int, most: int) -> tuple[Floats, Floats]:
        """Return the p-value of a set of terms, and those with random signs of the groups."""
        part = contributions[place][:, :most]
        null = np.empty(0) if n_groups >= FEW_GROUPS else _hotelling(part * signs())
        return _hotelling(part[None])[0], null

    @cache
    def signs() -> Floats:
        return np.random.default_rng(seed).choice([-1.0, 1.0], size=(DRAWS, n_groups, 1))

    return [_tested(contributions, choice, p_values) for choice in choices]


def _tested(
    contributions: Sequence[Floats],
    choice: Sequence[int],
    p_values: Callable[[int, int], tuple[Floats, Floats]],
) -> float:
    n_groups = len(contributions[choice[0]])
    sizes = {place: contributions[place].shape[1] for place in choice}
    most = n_groups // GROUPS_PER_TERM
    used = [place for place, size in sizes.items() if 0 < size <= most]
    if not used:
        if not any(sizes.values()):
            return 1.0  # a single value: the gap cannot change along it
        if n_groups < LEAST_GROUPS:
            raise InputError(
                f"groups has {count(n_groups, 'group')} with weight",
                f"a test needs at least {LEAST_GROUPS}",
                argument="groups",
            )
        # More levels than groups can tell apart: the most frequent ones.
        used = [place for place, size in sizes.items() if size]
    found = [p_values(place, most) for place in used]
    observed = float(cauchy([own for own, _ in found]))
    if n_groups >= FEW_GROUPS:
        return observed
    null = cauchy([drawn for _, drawn in found])
    return float((1 + (null <= observed * (1 + SAME_P)).sum()) / (1 + DRAWS))


def n_groups(stats: BinnedStats) -> int:
    """Return the number of groups (or buckets of groups) with weight."""
    return int((stats.field("weight").sum(axis=1) > 0).sum())


def enough_groups(stats: BinnedStats) -> bool:
    """Tell whether there are enough groups for a test along any variable."""
    return n_groups(stats) >= LEAST_GROUPS


def _contributions(stats: BinnedStats, placed: Bools | None, constant: bool) -> Floats:
    """Return the sums of w(h − s) of each group for the terms of a test, shape (G, k)."""
    weight = stats.field("weight")
    error = stats.field("hit") - stats.field("score")
    total = weight.sum(axis=0)
    if constant:
        error = error - weight * (error.sum() / weight.sum())
    if placed is None:
        filled = by_weight(total)
        terms = np.eye(len(total))[:, filled[:-1] if constant else filled]
    else:
        terms = legendre(total, placed)
    if constant:
        terms = terms[:, 1:] if placed is not None else terms
        terms = terms - total @ terms / total.sum()
    return (error @ independent(terms, total))[weight.sum(axis=1) > 0]


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
