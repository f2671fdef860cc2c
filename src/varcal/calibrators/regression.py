"""Logistic and softmax regression with penalties, by damped Newton steps to the last digit."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np

from varcal._arrays import Bools, Floats, Ints

Evaluate = Callable[[Floats], tuple[Floats, Callable[[], Floats]]]
LossFunction = Callable[[Floats], float]

# Limits of time and rounding; the optimum does not depend on them.

#: The longest step in any coordinate: where the loss is flat, a Newton step could be infinite.
LONGEST_STEP = 8.0
#: Below this gradient, the search ends as soon as the gradient no longer shrinks.
STALLED_GRADIENT = 1e-9
#: Of the expected decrease, the share that a step must reach (Armijo's rule), the rounding of the
#: loss, and the most times that a step is halved.
SUFFICIENT_DECREASE, LOSS_ROUNDING, MOST_HALVINGS = 1e-4, 1e-13, 30
#: The first relative ridge of a Hessian that cannot be factored, and how often it is raised.
FIRST_RIDGE, MOST_RIDGES = 1e-14, 30
#: The bound of the mean gradient of logistic and of softmax regression, and Newton steps at most.
LOGISTIC_GRADIENT, SOFTMAX_GRADIENT, MOST_STEPS = 1e-10, 1e-11, 200
#: A Newton step shorter than this leaves a gradient of rounding, which need not be evaluated.
LAST_STEP = 3e-6
#: If the gradient is above this after all steps, the coefficients were going to infinity.
UNSETTLED = 1e-6
#: The logit, and the largest error, from which a row counts as predicted with certainty.
CERTAIN_LOGIT, CERTAIN_ERROR = 9.2, 1e-4
#: The least mean outcome, and the relative spread that is rounding.
_LEAST_MEAN, _ROUNDING = 1e-12, 1e-13


def minimize_convex(
    evaluate: Evaluate,
    loss: LossFunction,
    start: Floats,
    *,
    tol: float,
    max_iter: int,
    last_step: float = 0.0,
) -> tuple[Floats, float, int]:
    """Take Newton steps, halved until the loss is lower, until the gradient is at most `tol`.

    Parameters
    ----------
    evaluate : callable
        theta → (gradient, solve), where ``solve()`` gives H⁻¹·gradient.
    loss : callable
        theta → loss, which is convex.
    start : ndarray
        Where to begin.
    tol : float
        The bound of the gradient; one below 1e-9 that no longer shrinks also ends the search.
    max_iter : int
        Newton steps at most.
    last_step : float
        A step that is shorter than this in every coordinate is the last one: the gradient at its
        end is about the square of its length. The bound of the gradient is then not needed.

    Returns
    -------
    theta, gradient, n_iter : tuple
        The optimum, the largest component of the gradient where it was last evaluated, the steps
        taken.
    """
    theta, value, size, before = start, loss(start), 0.0, np.inf
    for n_iter in range(max_iter):
        gradient, solve = evaluate(theta)
        size = float(np.abs(gradient).max(initial=0.0))
        stalled = before < STALLED_GRADIENT and size >= before
        if stalled or size <= (0.0 if last_step else tol):
            return theta, size, n_iter
        step = -solve()
        longest = float(np.abs(step).max())
        if longest < last_step:
            return theta + step, size, n_iter + 1
        step *= min(1.0, LONGEST_STEP / longest)
        least = SUFFICIENT_DECREASE * float(step @ gradient)
        allowed = value + LOSS_ROUNDING * abs(value)
        for length in 0.5 ** np.arange(MOST_HALVINGS):
            now = loss(theta + length * step)
            if now <= allowed + length * least:
                break
        else:
            return theta, size, n_iter
        theta, value, before = theta + length * step, now, size
    return theta, size, max_iter


def solve_dense(hessian: Floats, gradient: Floats) -> Floats:
    """Solve the Newton system from the upper triangle of the Hessian.

    A ridge that is too small to change the step keeps a singular system solvable.
    """
    from scipy.linalg.lapack import dposv  # noqa: PLC0415  only a fit needs it

    own = np.diag(hessian)
    for ridge in FIRST_RIDGE * 10.0 ** np.arange(MOST_RIDGES):
        damped = hessian + np.diag(ridge * own + np.finfo(np.float64).tiny)
        _, solution, info = dposv(damped, gradient)
        if info == 0 and np.isfinite(solution).all():
            return np.asarray(solution)
    return gradient


class LogisticFit(NamedTuple):
    """Coefficients, and whether they have no finite optimum: the features separate the classes."""

    coef: Floats
    intercept: float
    separated: bool


def fit_logistic(
    features: Floats,
    y: Floats,
    weight: Floats | None = None,
    *,
    l2: Floats | float = 0.0,
    n_nonnegative: int = 0,
    intercept: bool = True,
) -> LogisticFit:
    r"""Minimize the penalized logistic loss to the limits of the machine.

    .. math:: \sum_i w_i [\ln(1 + e^{\eta_i}) - y_i \eta_i] + \tfrac12 \sum_j \lambda_j \beta_j^2,
              \qquad \eta_i = \beta_0 + \sum_j \beta_j x_{ji}

    by damped Newton steps on standardized features.

    Parameters
    ----------
    features : ndarray of shape (k, n)
        One row per feature.
    y : ndarray of shape (n,)
        Targets in [0, 1].
    weight : ndarray of shape (n,), optional
        Row weights.
    l2 : float or ndarray of shape (k,)
        The penalties λ, scikit-learn's ``1 / C``. The intercept has none.
    n_nonnegative : int
        How many coefficients, the first ones, must not be negative; one or two.
    intercept : bool
        Whether β₀ is fitted or held at 0.
    """
    mass = np.ones(y.size) if weight is None else weight
    total = float(mass.sum())
    mass = mass / total
    mean = features @ mass
    spread = np.sqrt((features - mean[:, None] * intercept) ** 2 @ mass)
    # By rounding, a constant column has a spread of about 1e-16 of its size.
    moving = spread > _ROUNDING * np.abs(mean)
    centre, scale = np.where(moving & intercept, mean, 0.0), np.where(moving, spread, 1.0)
    x = np.vstack([np.ones(y.size), (features - centre[:, None]) / scale[:, None]])
    penalty = np.append(0.0, l2 / (scale * scale) / total)
    free = np.append(intercept, moving)
    best = np.zeros(len(x)), math.inf, math.inf
    with np.errstate(over="ignore"):  # exp of a large −η, whose probability is then 0
        for held in _subsets(n_nonnegative):
            found = _fit_free(x, y, mass, penalty, free & ~np.isin(np.arange(len(x)), held))
            if (found[0][1 : n_nonnegative + 1] >= 0).all():
                best = min(best, found, key=lambda each: each[2])
                if not held:  # the optimum without bounds is within them
                    break
        theta, gradient, _ = best
        eta = theta @ x
    certain = np.abs(eta).min() > CERTAIN_LOGIT and np.abs((eta > 0) - y).max() < CERTAIN_ERROR
    coef = theta[1:] / scale
    separated = gradient > UNSETTLED or bool(certain)
    return LogisticFit(coef, float(theta[0] - coef @ centre), separated)


def _subsets(n: int) -> list[tuple[int, ...]]:
    """Return the sets of the first n features that bounds may hold at 0, the smallest first."""
    return [held for size in range(n + 1) for held in combinations(range(1, n + 1), size)]


def _fit_free(
    x: Floats, y: Floats, mass: Floats, penalty: Floats, free: Bools
) -> tuple[Floats, float, float]:
    """Return the best coefficients, 0 where they are not free, the gradient and the loss."""
    own, penalty = x[free], penalty[free]

    def evaluate(theta: Floats) -> tuple[Floats, Callable[[], Floats]]:
        p = 1.0 / (1.0 + np.exp(-(theta @ own)))
        gradient = own @ (mass * (p - y)) + penalty * theta
        return gradient, lambda: solve_dense(
            (own * (mass * p * (1.0 - p))) @ own.T + np.diag(penalty), gradient
        )

    def loss(theta: Floats) -> float:
        eta = theta @ own
        losses = np.log1p(np.exp(-np.abs(eta))) + np.maximum(eta, 0.0) - y * eta
        return float(losses @ mass + 0.5 * penalty @ theta**2)

    start = np.zeros(len(own))
    if free[0]:
        mean = min(max(float(mass @ y), _LEAST_MEAN), 1 - _LEAST_MEAN)
        start[0] = math.log(mean) - math.log1p(-mean)
    values, size = minimize_convex(
        evaluate, loss, start, tol=LOGISTIC_GRADIENT, max_iter=MOST_STEPS, last_step=LAST_STEP
    )[:2]
    theta = np.zeros(len(x))
    theta[free] = values
    return theta, size, loss(values)


def fit_softmax(
    logs: Floats,
    y: Ints | Floats,
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
    y : ndarray of int, or ndarray of shape (n, K)
        The class of each row, or the share of each class.
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
    truth = np.eye(logs.shape[1])[y] if y.ndim == 1 else y
    shares = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    begin = target if start is None else start

    def whole(values: Floats) -> Floats:
        theta = begin.copy()
        theta[free] = values
        return theta

    def loss(values: Floats) -> float:
        theta = whole(values)
        logits = x @ theta.T
        logits -= logits.max(axis=1, keepdims=True)
        surprise = np.log(np.exp(logits).sum(axis=1)) - np.einsum("ij,ij->i", truth, logits)
        return float(shares @ surprise + (penalty * (theta - target) ** 2).sum())

    def evaluate(values: Floats) -> tuple[Floats, Callable[[], Floats]]:
        theta = whole(values)
        q = softmax(x @ theta.T)
        apart = (q - truth) * shares[:, None]
        slope = np.asarray((apart.T @ x + 2.0 * penalty * (theta - target))[free])
        return slope, lambda: _newton_step(slope, x, q, shares, penalty, free)

    values = minimize_convex(
        evaluate, loss, begin[free], tol=SOFTMAX_GRADIENT, max_iter=MOST_STEPS
    )[0]
    theta = whole(values)
    return theta, bool((softmax(x @ theta.T) * truth).sum(axis=1).min() > 1 - CERTAIN_ERROR)


def _newton_step(
    slope: Floats, x: Floats, q: Floats, shares: Floats, penalty: Floats, free: Bools
) -> Floats:
    """Solve the Newton system by conjugate gradients."""
    from scipy.sparse.linalg import LinearOperator, cg  # noqa: PLC0415  only a fit needs it

    def product(direction: Floats) -> Floats:
        moved = np.zeros_like(penalty)
        moved[free] = direction
        move = x @ moved.T
        move -= np.einsum("ij,ij->i", q, move)[:, None]
        move *= q * shares[:, None]
        return np.asarray((move.T @ x + 2.0 * penalty * moved)[free])

    # The nearer the optimum, the more accurate.
    accuracy = min(0.05, float(np.linalg.norm(slope)) ** 0.5)
    spread = (shares[:, None] * q * (1.0 - q)).T @ x**2 + 2.0 * penalty
    scale = 1.0 / np.maximum(spread[free], 1e-12 * spread.max())
    size = (len(slope), len(slope))
    operator = LinearOperator(size, product)
    preconditioner = LinearOperator(size, lambda v: scale * v.ravel())
    with np.errstate(all="ignore"):  # where nothing is left to solve
        step, _ = cg(operator, slope, rtol=accuracy, maxiter=MOST_STEPS, M=preconditioner)
    return np.asarray(step) if np.isfinite(step).all() and step.any() else scale * slope


def softmax(logits: Floats) -> Floats:
    """Return probabilities, row by row, without overflow."""
    cells = logits - logits.max(axis=1, keepdims=True)
    np.exp(cells, out=cells)
    cells /= cells.sum(axis=1, keepdims=True)
    return np.asarray(cells)
