"""One Newton step on more rows than fit into one matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from varcal._arrays import Floats
from varcal.calibrators._variable._reml.curvature import (
    gram,
    in_short_precision,
    inverse,
    with_certain_rows,
)
from varcal.calibrators._variable._reml.losses import Loss
from varcal.calibrators._variable._reml.step_size import GUARD_STRIDE, not_worse

__all__ = ["refine"]


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
