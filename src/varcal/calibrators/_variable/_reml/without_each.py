"""Fits without each part of the rows, from the fit of all rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal.calibrators._variable._reml.curvature import (
    GUARD_STRIDE,
    descent,
    gram,
    in_short_precision,
    inverse,
    not_worse,
    with_certain_rows,
)
from varcal.calibrators._variable._reml.losses import Loss
from varcal.calibrators._variable._reml.penalties import LEAST_PENALTY, learn_penalties, ridge_of

#: Rounds of the penalty update at most; they start at the penalties of all rows.
HELD_OUT_ROUNDS = 4


def without_each(
    X: Floats,
    loss: Loss,
    groups: Ints,
    beta: Floats,
    penalties: Floats,
    splits: Iterable[Bools],
) -> Iterator[Floats]:
    """Yield, for each split, the linear predictor of all rows by a fit of the split's rows.

    Penalties are learned again and one Newton step is taken, both on the quadratic approximation
    at the fit of all rows, from which the rows that take no part are subtracted.

    Parameters
    ----------
    X, loss, groups
        As for `fit_gam`, for all rows.
    beta, penalties : ndarray
        Coefficients and λ of the fit of all rows.
    splits : iterable of ndarray of bool
        Which rows take part.
    """
    size = np.bincount(groups[groups >= 0], minlength=len(penalties)).astype(np.float64)
    eta, short = X @ beta, in_short_precision(X)
    residual, weight = loss.slopes(eta)
    H = gram(short, weight)
    right = H @ beta + X.T @ residual
    for train in splits:
        out = np.flatnonzero(~train)
        part = gram(short[out], weight[out])
        lam, goal = learn_penalties(
            H - part,
            right - part @ beta - X[out].T @ residual[out],
            groups,
            size,
            penalties,
            LEAST_PENALTY,
            rounds=HELD_OUT_ROUNDS,
        )
        shift = X @ (goal - beta)
        ridge = ridge_of(lam, groups)
        share = descent(loss.take(train), eta[train], shift[train], ridge, beta, goal)
        yield eta + share * shift


def refine(
    beta: Floats,
    ridge: Floats,
    chunks: Callable[[], Iterator[tuple[Floats, Loss]]],
) -> tuple[Floats, Floats, float]:
    """Take one Newton step on more rows than fit into one matrix.

    Returns coefficients, their covariance and the sum of the working weights.

    Parameters
    ----------
    beta, ridge : ndarray of shape (p,)
        Coefficients and penalties learned on a sample.
    chunks : callable
        Yields (design, loss) for one chunk of rows after another.
    """
    size = len(beta)
    H, raised = np.zeros((size, size)), np.zeros((size, size))
    right, mass = np.zeros(size), 0.0
    kept: list[tuple[Floats, Loss]] = []
    for X, loss in chunks():
        kept.append((X[::GUARD_STRIDE].copy(), loss.take(slice(None, None, GUARD_STRIDE))))
        residual, weight = loss.slopes(X @ beta)
        short = in_short_precision(X)
        part = gram(short, weight)
        H += part
        extra = loss.extra_weight(weight)
        raised += with_certain_rows(part, short, extra)
        right += X.T @ residual
        mass += float((weight + extra).sum())
    beta = not_worse(beta, inverse(H, ridge) @ (right - ridge * beta), ridge, kept)
    return beta, inverse(raised, ridge), mass
