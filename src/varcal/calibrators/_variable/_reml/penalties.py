"""The penalties of groups of columns: the Fellner–Schall update, and EM where it fails."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Floats, Ints
from varcal.calibrators._variable._reml.curvature import inverse_root

# Tuned constants; README.md shows what changes at half and at twice each value.

#: a, the effective degrees of freedom that a group keeps where the data say nothing about it.
PRIOR_EDF = 0.1
#: Where penalties start: stiff, because from soft starts the iteration ends in worse optima.
FIRST_PENALTY = 100.0


# Limits of the iteration. They bound time and rounding; the optimum does not depend on them.

#: The rounds within a step end when log λ changes by less than this.
ROUND_TOLERANCE = 0.01
#: The range of λ.
LEAST_PENALTY = 1e-7
LARGEST_PENALTY = 1e7
#: The largest change of log λ in a round, and the largest factor of λ in a Newton step.
LARGEST_MOVE = 5.0
LARGEST_FACTOR = 20.0
#: Below this multiple of `PRIOR_EDF` the update has no reliable fixed point: EM steps, raised to a
#: power since single ones are short, take its place.
EM_BELOW = 3.0
EM_POWER = 3
#: The largest ratio of successive changes of log λ that is extrapolated to its limit.
LARGEST_RATIO = 0.8
#: A ridge on every coefficient, also on those without a penalty.
SMALLEST_RIDGE = 1e-8
#: The least sum of squares of a group.
LEAST_SQUARES = 1e-10


def ridge_of(lam: Floats, own: Ints) -> Floats:
    """Return the penalty of every coefficient."""
    if not len(lam):
        return np.full(len(own), SMALLEST_RIDGE)
    return np.where(own >= 0, lam[np.maximum(own, 0)], 0.0) + SMALLEST_RIDGE


def learn_penalties(
    H: Floats,
    right: Floats,
    own: Ints,
    size: Floats,
    lam: Floats,
    least: float,
    *,
    rounds: int,
) -> tuple[Floats, Floats]:
    """Iterate the penalties on the quadratic approximation; return λ and β.

    Every other round extrapolates the last two, as in Aitken's method.
    """
    first, penalized = lam, own >= 0
    beta = np.zeros(len(own))
    moved = np.zeros(len(lam))
    for turn in range(rounds):
        root = inverse_root(H, ridge_of(lam, own))
        beta = root.T @ (root @ right)
        if not len(lam):
            break
        spread = np.einsum("ij,ij->j", root, root)
        traces = np.bincount(own[penalized], spread[penalized], minlength=len(lam))
        squares = np.bincount(own[penalized], beta[penalized] ** 2, minlength=len(lam))
        edf = size - lam * traces
        fellner_schall = (edf - PRIOR_EDF) / np.maximum(squares, LEAST_SQUARES)
        # Near `PRIOR_EDF` the Fellner–Schall update has no solution: take long EM steps instead.
        em = lam * ((size - PRIOR_EDF) / (squares + traces) / lam) ** EM_POWER
        move = np.log(np.where(edf > EM_BELOW * PRIOR_EDF, fellner_schall, em) / lam)
        if turn % 2:
            # The sum of steps that shrink geometrically.
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = np.nan_to_num(move / moved)
            move = move / (1.0 - np.clip(ratio, 0.0, LARGEST_RATIO))
        moved = move
        new = lam * np.exp(np.clip(move, -LARGEST_MOVE, LARGEST_MOVE))
        new = np.clip(new, first / LARGEST_FACTOR, first * LARGEST_FACTOR)
        new = new.clip(least, LARGEST_PENALTY)
        change = np.abs(np.log(new / lam)).max(initial=0.0)
        lam = new
        if change < ROUND_TOLERANCE:
            break
    return lam, beta
