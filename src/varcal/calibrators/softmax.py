"""Softmax regression on log-probabilities, with a penalty towards given coefficients."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Bools, Floats, Ints

#: The bound of the gradient, and steps at most.
TOLERANCE, MOST_STEPS = 1e-11, 200
#: The accuracy of the last step, and the largest one that is rounding.
LAST_ACCURACY, LAST_STEP = 1e-6, 1e-4
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

    by scipy's trust-region Newton steps, with conjugate gradients.

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
    from scipy.optimize import minimize  # noqa: PLC0415  only a fit needs it
    from scipy.sparse.linalg import LinearOperator, cg  # noqa: PLC0415

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

    def gradient(values: Floats) -> Floats:
        theta = whole(values)
        apart = softmax(x @ theta.T) * shares[:, None]
        apart[np.arange(n), y] -= shares
        return np.asarray((apart.T @ x + 2.0 * penalty * (theta - target)).ravel()[index])

    def product(values: Floats, direction: Floats) -> Floats:
        """Return the Hessian times a direction."""
        q = softmax(x @ whole(values).T)
        moved = np.zeros_like(begin)
        moved.flat[index] = direction
        move = x @ moved.T
        move -= np.einsum("ij,ij->i", q, move)[:, None]
        move *= q * shares[:, None]
        return np.asarray((move.T @ x + 2.0 * penalty * moved).ravel()[index])

    found = minimize(
        loss,
        begin.ravel()[index],
        jac=gradient,
        hessp=product,
        method="trust-ncg",
        options={"gtol": TOLERANCE, "maxiter": MOST_STEPS},
    )
    values = found.x
    # Where the rounding of the loss ended the search, one more step is that of the gradient.
    hessian = LinearOperator((len(index), len(index)), lambda v: product(values, v))
    last, _ = cg(hessian, gradient(values), rtol=LAST_ACCURACY, maxiter=MOST_STEPS)
    if np.abs(last).max() < LAST_STEP:
        values = values - last
    theta = whole(values)
    return theta, bool(softmax(x @ theta.T)[np.arange(n), y].min() > CERTAIN)


def softmax(logits: Floats) -> Floats:
    """Return probabilities, row by row, without overflow."""
    cells = logits - logits.max(axis=1, keepdims=True)
    np.exp(cells, out=cells)
    cells /= cells.sum(axis=1, keepdims=True)
    return np.asarray(cells)
