"""The calibration test when rows come in groups: patients, customers, shops."""

from __future__ import annotations

import numpy as np
from scipy.special import fdtrc

from varcal._arrays import Bools, Floats
from varcal._binning.stats import BinnedStats
from varcal._inference.multiplicity import cauchy
from varcal._inference.quadratic_forms import legendre
from varcal.exceptions import InputError

#: Below this many groups the reference distribution is drawn by flipping the groups' signs.
FEW_GROUPS = 100
#: Sign flips; the least p-value is then 0.001.
DRAWS = 999
#: A test with k terms needs at least this many times k groups.
GROUPS_PER_TERM = 2
#: A term with less than this part of the largest is a combination of the others.
DEPENDENT = 1e-6
#: Part of the mean variance added to each, so that the covariance can be inverted.
RIDGE = 1e-10


def cluster_test(
    coarse: BinnedStats,
    fine: BinnedStats,
    placed: Bools | None,
    *,
    constant: bool = False,
    seed: int = 0,
) -> float:
    r"""Return the p-value of "calibrated with respect to v" for rows in groups.

    The Cauchy mean of two Hotelling tests on the groups' sums: over the bins, and on Legendre
    polynomials 0, 1, 2 of the rank of v. Each group's sums are one observation, so that rows
    of a group may depend on each other in any way. With k terms and G groups (or buckets of
    groups), :math:`T^2 (G - k) / (k (G - 1))` is referred to F(k, G − k); with fewer than 100
    groups both are referred to what random signs of the groups would give.

    Parameters
    ----------
    coarse, fine : BinnedStats
        Tables by bucket of groups.
    placed : array of bool or None
        Fine cells with a place in the order of v; None if it has no order.
    constant : bool
        Test a constant gap instead of none.
    """
    parts = [_contributions(coarse, None, constant)]
    if placed is not None:
        parts.append(_contributions(fine, placed, constant))
    parts = [part for part in parts if 0 < part.shape[1] <= len(part) // GROUPS_PER_TERM]
    if not parts:
        if not _contributions(coarse, None, constant).shape[1]:
            return 1.0  # one value only: nothing can change along it
        raise InputError(
            f"groups has {int((coarse.field('weight').sum(axis=1) > 0).sum())} units with weight",
            "a test needs at least 6",
        )
    observed = float(cauchy([_hotelling(part[None])[0] for part in parts]))
    if len(parts[0]) >= FEW_GROUPS:
        return observed
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(DRAWS, len(parts[0]), 1))
    null = cauchy([_hotelling(part * signs) for part in parts])
    return float((1 + (null <= observed * (1 + 1e-9)).sum()) / (1 + DRAWS))


def _contributions(stats: BinnedStats, placed: Bools | None, constant: bool) -> Floats:
    """Return each group's sums of w(h − s) over the terms of a test, shape (G, k)."""
    weight = stats.field("weight")
    error = stats.field("hit") - stats.field("score")
    total = weight.sum(axis=0)
    if constant:
        error = error - weight * (error.sum() / weight.sum())
    if placed is None:
        held = np.flatnonzero(total > 0)
        terms = np.eye(len(total))[:, held[:-1] if constant else held]
    else:
        terms = legendre(total, placed)
    if constant:
        terms = terms[:, 1:] if placed is not None else terms
        terms = terms - total @ terms / total.sum()
    sums = (error @ terms)[weight.sum(axis=1) > 0]
    # Terms that are the same on all rows (a variable of two values has no quadratic) go.
    _, triangle = np.linalg.qr(terms * np.sqrt(total)[:, None])
    size = np.zeros(terms.shape[1])
    size[: len(triangle)] = np.abs(np.diag(triangle))
    return sums[:, size > DEPENDENT * max(size.max(initial=0.0), 1e-300)]


def _hotelling(sums: Floats) -> Floats:
    """Return p-values of "the mean of these rows is 0", for a stack of tables (draws, G, k)."""
    _, many, k = sums.shape
    mean = sums.mean(axis=1)
    centred = sums - mean[:, None]
    spread = np.einsum("dgi,dgj->dij", centred, centred) / (many - 1)
    scale = np.einsum("dii->d", spread)[:, None, None] / k
    spread = spread + RIDGE * np.maximum(scale, 1e-300) * np.eye(k)
    solved = np.linalg.solve(spread, mean[..., None])[..., 0]
    t2 = many * np.einsum("di,di->d", mean, solved)
    return np.asarray(fdtrc(k, many - k, t2 * (many - k) / (k * (many - 1))))
