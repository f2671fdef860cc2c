"""Weighted sums of squares of columns, XᵀWX, and their inverse under a ridge penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from varcal._arrays import Floats
from varcal.calibrators._variable._reml.losses import Loss

#: Rows from which curvature and variance are summed in single precision.
SINGLE_PRECISION_ROWS = 1_000


def quadratic_form(X: Floats, V: Floats) -> Floats:
    """Return xᵀVx of every row x.

    >>> quadratic_form(np.array([[1.0, 2.0]]), np.eye(2))
    array([5.])
    """
    short = in_short_precision(X)
    product = short @ V.astype(short.dtype)
    return np.asarray(np.einsum("ij,ij->i", product, short), dtype=np.float64)


def in_short_precision(X: Floats) -> NDArray[np.floating[Any]]:
    """Return many rows in single precision, which is faster; few rows stay as they are."""
    return X.astype(np.float32) if len(X) >= SINGLE_PRECISION_ROWS else X


def gram(X: NDArray[np.floating[Any]], weight: Floats) -> Floats:
    """Return XᵀWX, as an array times itself, which costs numpy half the work."""
    scaled = X * np.sqrt(weight).astype(X.dtype)[:, None]
    return np.asarray(scaled.T @ scaled, dtype=np.float64)


def with_certain_rows(H: Floats, X: NDArray[np.floating[Any]], extra: Floats) -> Floats:
    """Return XᵀWX with extra weight on some rows."""
    some = extra > 0
    return H + gram(X[some], extra[some]) if some.any() else H


def inverse_root(H: Floats, ridge: Floats) -> Floats:
    """Return R with RᵀR = (H + diag(ridge))⁻¹; a diagonal is added until it exists."""
    if not len(H):
        return H
    extra = 0.0
    while True:
        A = H.copy()
        A.flat[:: len(A) + 1] += ridge + extra
        # A is symmetric, and its transpose has the column order that LAPACK expects.
        factor, failed = lapack.dpotrf(A.T, lower=1, overwrite_a=1)
        if not failed:
            return np.asarray(lapack.dtrtri(factor, lower=1, overwrite_c=1)[0])
        extra = max(10.0 * extra, 1e-10 * float(np.trace(H)) / len(H) + 1e-12)


def inverse(H: Floats, ridge: Floats) -> Floats:
    """Return (H + diag(ridge))⁻¹."""
    root = inverse_root(H, ridge)
    return np.asarray(root.T @ root)


#: A step is halved down to this share of itself while the loss rises by more than the slack.
SHORTEST_STEP = 1e-3
LOSS_SLACK = 1e-7
#: The guard of steps on more rows than fit into one matrix: one of so many rows is looked at, by
#: how much their loss may rise, and the least part of a step.
GUARD_STRIDE = 16
GUARD_TOLERANCE = 0.01
GUARD_LEAST_SHARE = 1e-3


def descent(
    loss: Loss, eta: Floats, shift: Floats, ridge: Floats, now: Floats, goal: Floats
) -> float:
    """Return the first of 1, ½, ¼, … of the way to the goal that lowers the penalized loss."""

    def penalized(share: float) -> float:
        beta = now + share * (goal - now)
        return loss.value(eta + share * shift) + 0.5 * float(ridge @ beta**2)

    before, share = penalized(0.0), 1.0
    while share > SHORTEST_STEP and not penalized(share) <= before + LOSS_SLACK:
        share /= 2.0
    return share


def not_worse(beta: Floats, step: Floats, ridge: Floats, rows: list[tuple[Floats, Loss]]) -> Floats:
    """Return coefficients after a step, or after a part of it if the whole raises the loss.

    Where outcomes are nearly separated, few rows have weight in a Newton step, and it may go far
    beyond the least loss.
    """

    def loss_at(beta: Floats) -> float:
        return (
            sum(loss.value(X @ beta) for X, loss in rows)
            + 0.5 * float(ridge @ beta**2) / GUARD_STRIDE
        )

    before, share = loss_at(beta), 1.0
    # Another sample of rows may have a slightly larger loss after a step of all rows.
    least = before * (1.0 + GUARD_TOLERANCE)
    while not loss_at(beta + share * step) <= least and share > GUARD_LEAST_SHARE:
        share /= 2
    return beta + share * step
