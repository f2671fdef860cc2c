"""Softmax regression on log-probabilities, with a penalty towards given coefficients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal.calibrators.newton import minimize_convex

#: The bound of the gradient, and steps at most.
TOLERANCE, MOST_STEPS = 1e-11, 200
#: The probability of the true class from which a row counts as predicted with certainty.
CERTAIN = 1 - 1e-4


def fit_softmax(
    logs: Floats,
    y: Ints,
    weight: Floats | None,
    *,
    penalty: Floats,
    target: Floats,
    free: Bools,
    start: Floats | None = None,
) -> tuple[Floats, bool]:
    r"""Fit the logits W·x + b by the mean cross-entropy plus a quadratic penalty.

    .. math:: -\frac{1}{\sum w}\sum_i w_i \ln \mathrm{softmax}(W x_i + b)_{y_i}
              + \sum_j \lambda_j (\theta_j - \theta^0_j)^2

    by damped Newton steps.

    Parameters
    ----------
    logs : ndarray of shape (n, K)
        x, the log-probabilities of each row.
    y : ndarray of int
        The class of each row.
    weight : ndarray, optional
        Row weights.
    penalty, target, free : ndarray of shape (K, K + 1)
        λ, θ⁰ and which entries are fitted; the columns are those of W, then b.
    start : ndarray of shape (K, K + 1), optional
        Where to begin, and what entries that are not fitted stay at; by default the target.

    Returns
    -------
    theta, separated : tuple
        W and b; whether every row is predicted with certainty.
    """
    n = len(logs)
    x = np.hstack([logs, np.ones((n, 1))])
    shares = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    begin = target if start is None else start
    index = np.flatnonzero(free)

    def whole(values: Floats) -> Floats:
        theta = begin.copy()
        theta.flat[index] = values
        return theta

    def loss(values: Floats) -> float:
        theta = whole(values)
        logits = x @ theta.T
        logits -= logits.max(axis=1, keepdims=True)
        surprise = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(n), y]
        return float(shares @ surprise + (penalty * (theta - target) ** 2).sum())

    def gradient(values: Floats, q: Floats) -> Floats:
        apart = q * shares[:, None]
        apart[np.arange(n), y] -= shares
        return np.asarray((apart.T @ x + 2.0 * penalty * (whole(values) - target)).ravel()[index])

    def evaluate(values: Floats) -> tuple[Floats, Callable[[], Floats]]:
        q = softmax(x @ whole(values).T)
        slope = gradient(values, q)
        return slope, lambda: _newton_step(slope, x, q, shares, penalty, index)

    start = begin.ravel()[index]
    values, _, _ = minimize_convex(evaluate, loss, start, tol=TOLERANCE, max_iter=MOST_STEPS)
    theta = whole(values)
    return theta, bool(softmax(x @ theta.T)[np.arange(n), y].min() > CERTAIN)


def _newton_step(
    slope: Floats, x: Floats, q: Floats, shares: Floats, penalty: Floats, index: Ints
) -> Floats:
    """Solve the Newton system by conjugate gradients."""
    from scipy.sparse.linalg import LinearOperator, cg  # noqa: PLC0415  only a fit needs it

    def product(direction: Floats) -> Floats:
        moved = np.zeros_like(penalty)
        moved.flat[index] = direction
        move = x @ moved.T
        move -= np.einsum("ij,ij->i", q, move)[:, None]
        move *= q * shares[:, None]
        return np.asarray((move.T @ x + 2.0 * penalty * moved).ravel()[index])

    # The nearer the optimum, the more accurate.
    accuracy = min(0.05, float(np.linalg.norm(slope)) ** 0.5)
    spread = (shares[:, None] * q * (1.0 - q)).T @ x**2 + 2.0 * penalty
    scale = 1.0 / np.maximum(spread.ravel()[index], 1e-12 * spread.max())
    size = (len(index), len(index))
    with np.errstate(all="ignore"):  # where nothing is left to solve
        step, _ = cg(
            LinearOperator(size, product),
            slope,
            rtol=accuracy,
            maxiter=MOST_STEPS,
            M=LinearOperator(size, lambda v: scale * v.ravel()),
        )
    return np.asarray(step) if np.isfinite(step).all() and step.any() else scale * slope


def softmax(logits: Floats) -> Floats:
    """Return probabilities, row by row, without overflow."""
    cells = logits - logits.max(axis=1, keepdims=True)
    np.exp(cells, out=cells)
    cells /= cells.sum(axis=1, keepdims=True)
    return np.asarray(cells)
