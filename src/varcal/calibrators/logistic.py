"""Logistic regression with penalties and coefficients that must not be negative."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from varcal._arrays import Bools, Floats
from varcal.calibrators.newton import minimize_convex, solve_dense

# Limits of time and rounding; the optimum does not depend on them.

#: The bound of the mean gradient, and Newton steps at most.
TOLERANCE, MOST_STEPS = 1e-10, 200
#: A Newton step shorter than this leaves a gradient of rounding, which need not be evaluated.
LAST_STEP = 3e-6
#: If the gradient is above this after all steps, the coefficients were going to infinity.
UNSETTLED = 1e-6
#: The logit, and the largest error, from which a row counts as predicted with certainty.
CERTAIN_LOGIT, CERTAIN_ERROR = 9.2, 1e-4
#: A coefficient beyond this is not a useful start for the next active set.
LARGEST_RESTART = 20.0
#: The gradient below which a coefficient held at 0 is released.
RELEASE_GRADIENT = 1e-9
#: The least mean outcome, and the relative spread that is rounding.
_LEAST_MEAN, _ROUNDING = 1e-12, 1e-13


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
    nonnegative: Bools | None = None,
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
    nonnegative : ndarray of bool of shape (k,), optional
        Coefficients that must not be negative.
    intercept : bool
        Whether β₀ is fitted or held at 0.
    """
    mass = np.ones(y.size) if weight is None else weight
    mass = mass / mass.sum()
    centre, scale = _moments(features, mass, centred=intercept)
    moving = scale > 0
    safe = np.where(moving, scale, 1.0)
    x = np.vstack([np.ones(y.size), (features - centre[:, None]) / safe[:, None]])
    x[1:][~moving] = 0.0
    total = float(y.size) if weight is None else float(weight.sum())
    penalty = np.append(0.0, l2 / (safe * safe) / total)
    problem = _Problem(x, y, mass, penalty)
    start = np.zeros(len(x))
    if intercept:
        mean = min(max(float(mass @ y), _LEAST_MEAN), 1 - _LEAST_MEAN)
        start[0] = math.log(mean) - math.log1p(-mean)
    bounded = np.append(
        False, np.zeros(len(features), bool) if nonnegative is None else nonnegative
    )
    with np.errstate(over="ignore"):  # exp of a large −η, whose probability is then 0
        theta, gradient = _active_set(problem, start, np.append(intercept, moving), bounded)
        eta = theta @ x
    certain = np.abs(eta).min() > CERTAIN_LOGIT and np.abs((eta > 0) - y).max() < CERTAIN_ERROR
    coef = np.where(moving, theta[1:] / safe, 0.0)
    separated = gradient > UNSETTLED or bool(certain)
    return LogisticFit(coef, float(theta[0] - coef @ centre), separated)


class _Problem(NamedTuple):
    """The rows of a fit, with masses that sum to 1; the first feature is constant."""

    x: Floats
    y: Floats
    mass: Floats
    penalty: Floats

    def gradient(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the gradient at theta, and the probabilities."""
        p = 1.0 / (1.0 + np.exp(-(theta @ self.x)))
        return self.x @ (self.mass * (p - self.y)) + self.penalty * theta, p

    def hessian(self, p: Floats) -> Floats:
        """Return the second derivatives where rows have these probabilities."""
        return (self.x * (self.mass * p * (1.0 - p))) @ self.x.T + np.diag(self.penalty)

    def loss(self, theta: Floats) -> float:
        """Return the mean loss."""
        eta = theta @ self.x
        losses = np.log1p(np.exp(-np.abs(eta))) + np.maximum(eta, 0.0) - self.y * eta
        return float(losses @ self.mass + 0.5 * self.penalty @ theta**2)


def _free_newton(problem: _Problem, theta: Floats, free: Bools) -> tuple[Floats, float]:
    """Minimize over the free coordinates, the others held where they are."""
    index = np.flatnonzero(free)
    square = np.ix_(index, index)

    def whole(values: Floats) -> Floats:
        full = theta.copy()
        full[index] = values
        return full

    def evaluate(values: Floats) -> tuple[Floats, Callable[[], Floats]]:
        gradient, p = problem.gradient(whole(values))
        return gradient[index], lambda: solve_dense(problem.hessian(p)[square], gradient[index])

    values, size, _ = minimize_convex(
        evaluate,
        lambda values: problem.loss(whole(values)),
        theta[index],
        tol=TOLERANCE,
        max_iter=MOST_STEPS,
        last_step=LAST_STEP,
    )
    return whole(values), size


def _active_set(
    problem: _Problem, start: Floats, free: Bools, bounded: Bools
) -> tuple[Floats, float]:
    """Fix the most negative bounded coefficient at 0, refit, and release those that would rise."""
    held = np.zeros_like(free)
    theta, size = start, 0.0
    for _ in range(4 * int(bounded.sum()) + 1):
        # Coefficients that went to infinity are not a useful start.
        origin = theta if np.abs(theta).max() < LARGEST_RESTART else start
        theta, size = _free_newton(problem, np.where(held, 0.0, origin), free & ~held)
        negative = bounded & free & ~held & (theta < 0)
        if negative.any():
            held[np.argmin(np.where(negative, theta, np.inf))] = True
            continue
        gradient = problem.gradient(theta)[0]
        rising = held & (gradient < -RELEASE_GRADIENT)
        if not rising.any():
            break
        held[np.argmin(np.where(rising, gradient, np.inf))] = False
    return np.where(bounded & (theta < 0), 0.0, theta), size


def _moments(features: Floats, mass: Floats, *, centred: bool) -> tuple[Floats, Floats]:
    """Return centre and scale of every feature; a constant one has scale 0."""
    mean = features @ mass
    spread = np.sqrt((features - mean[:, None] * centred) ** 2 @ mass)
    # By rounding, a constant column has a spread of about 1e-16 of its size.
    moving = spread > _ROUNDING * np.abs(mean)
    return np.where(moving & centred, mean, 0.0), np.where(moving, spread, 0.0)
