"""Logistic regression for the calibrators of two classes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from varcal._arrays import Bools, Floats
from varcal.calibrators.newton import minimize_convex, solve_dense
from varcal.calibrators.steps import Step, sigmoid

# Limits of time and rounding; the optimum does not depend on them.

#: Rows that stay in cache together; not a power of 2, by which arrays would compete for its lines.
BLOCK = 10_000
#: From this number of rows on, the first steps are taken on a sample: every eighth row, the first
#: steps on which are taken on a sample, too.
WARM_START_FROM, STRIDE = 12_000, 8
#: The gradient at which a sample's fit ends, times √rows: that of all rows differs by as much.
#: Its steps, and the largest coefficient that is a useful start.
WARM_TOLERANCE, WARM_STEPS, LARGEST_START = 0.5, 50, 50.0
#: If the gradient is above this after all steps, the coefficients were going to infinity.
UNSETTLED = 1e-6
#: The logit, and the largest error, from which a row counts as predicted with certainty.
CERTAIN_LOGIT, CERTAIN_ERROR = 9.2, 1e-4
#: A coefficient beyond this is not a useful start for the next active set.
LARGEST_RESTART = 20.0
#: The gradient below which a coefficient held at 0 is released.
RELEASE_GRADIENT = 1e-9
#: A Newton step shorter than this leaves a gradient of rounding, which need not be evaluated.
LAST_STEP = 3e-6
#: The least mean outcome, and the relative spread that is rounding.
_LEAST_MEAN, _ROUNDING = 1e-12, 1e-13


@dataclass(frozen=True)
class LogisticFit:
    """Coefficients, and how the optimizer arrived at them.

    `gradient` bounds the components of the mean gradient, per standardized feature;
    `separated` says that the coefficients have no finite optimum, which happens without a penalty
    where the features separate the classes.
    """

    coef: Floats
    intercept: float
    gradient: float
    n_iter: int
    separated: bool


def fit_logistic(
    features: Floats,
    y: Floats,
    weight: Floats | None = None,
    *,
    l2: Floats | float = 0.0,
    nonnegative: Bools | None = None,
    intercept: bool = True,
    tol: float = 1e-10,
    max_iter: int = 200,
) -> LogisticFit:
    r"""Minimize the penalized logistic loss to the limits of the machine.

    .. math:: \sum_i w_i [\ln(1 + e^{\eta_i}) - y_i \eta_i] + \tfrac12 \sum_j \lambda_j \beta_j^2,
              \qquad \eta_i = \beta_0 + \sum_j \beta_j x_{ji}

    by damped Newton steps on standardized features.

    Parameters
    ----------
    features : ndarray of shape (k, n)
        One row per feature; standardized in place.
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
    tol : float
        The bound of the mean gradient.
    max_iter : int
        Newton steps at most.
    """
    m, n = 1 + len(features), y.size
    total = float(n) if weight is None else float(weight.sum())
    centre, scale = _standardize(features, weight, total, centred=intercept)
    moving = scale > 0
    safe = np.where(moving, scale, 1.0)
    penalty = np.zeros(m)
    penalty[1:] = l2 / (safe * safe)
    problem = _Problem(features, y, weight, penalty / total, total)

    start = np.zeros(m)
    free = np.ones(m, dtype=bool)
    free[0], free[1:] = intercept, moving
    if intercept:
        mean = min(max(float(problem.pull[0]), _LEAST_MEAN), 1 - _LEAST_MEAN)
        start[0] = math.log(mean) - math.log1p(-mean)
    bounded = np.zeros(m, dtype=bool)
    if nonnegative is not None:
        bounded[1:] = nonnegative
    with np.errstate(over="ignore"):  # exp of a large −η, whose probability is then 0
        start = _warm_start(problem, start, free)
        theta, gradient, n_iter = _active_set(problem, start, free, bounded, tol, max_iter)
    coef = np.where(moving, theta[1:] / safe, 0.0)
    return LogisticFit(
        coef=coef,
        intercept=float(theta[0] - coef @ centre),
        gradient=gradient,
        n_iter=n_iter,
        separated=gradient > UNSETTLED or problem.is_certain(theta),
    )


def two_columns(score: Floats, log_odds: Callable[[Floats], Floats]) -> Floats:
    """Return ``[expit(-η), expit(η)]`` of ``η = log_odds(score)``, exact in both tails.

    Computed in blocks that stay in cache, with one exp per row.
    """
    out = np.empty((score.size, 2))
    for rows in blocks_of_rows(score.size):
        eta = log_odds(score[rows])
        tail = np.exp(-np.abs(eta))
        large = 1.0 / (1.0 + tail)
        tail *= large
        upper = eta >= 0
        out[rows, 1] = np.where(upper, large, tail)
        out[rows, 0] = np.where(upper, tail, large)
    return out


def logistic_steps(eta: Step) -> tuple[Step, Step]:
    """Return the steps of `two_columns`, for one row."""
    eta = eta.named("log_odds")
    return sigmoid(-eta), sigmoid(eta)


class _Problem:
    """Mean loss, gradient and Hessian of one fit, summed over blocks that stay in cache.

    The first coefficient is the intercept. With ``p = 1 / (1 + exp(-η))`` the gradient of a row
    is ``p·x - y·x``; the terms in y are sums that do not change and are held in `pull`.
    """

    def __init__(
        self, features: Floats, y: Floats, weight: Floats | None, penalty: Floats, total: float
    ) -> None:
        self.features, self.y, self.weight = features, y, weight
        self.penalty, self.total = penalty, total
        mass = y if weight is None else y * weight
        self.pull = np.append(mass.sum(), features @ mass) / total

    def sample(self) -> _Problem:
        """Return the same problem on every eighth row."""
        weight = None if self.weight is None else self.weight[::STRIDE]
        y = np.ascontiguousarray(self.y[::STRIDE])
        total = float(y.size) if weight is None else float(weight.sum())
        features = np.ascontiguousarray(self.features[:, ::STRIDE])
        return _Problem(features, y, weight, self.penalty, total)

    def derivatives(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the Hessian at theta, from one pass over the rows."""
        k, n = self.features.shape
        gradient, hessian = np.zeros(1 + k), np.zeros((1 + k, 1 + k))
        room, ones = np.empty((1 + k, min(n, BLOCK))), np.ones(min(n, BLOCK))
        for rows in blocks_of_rows(n):
            block = self.features[:, rows]
            p = _expit_of_negative(-theta[1:] @ block, -theta[0])
            curvature, *scaled = room[:, : p.size]
            np.multiply(p, p, out=curvature)
            np.subtract(p, curvature, out=curvature)
            if self.weight is not None:
                p *= self.weight[rows]
                curvature *= self.weight[rows]
            for feature, out in zip(block, scaled, strict=True):
                np.multiply(feature, curvature, out=out)
            # A product with ones is faster than a sum.
            gradient[0] += ones[: p.size] @ p
            gradient[1:] += block @ p
            hessian[0, 0] += ones[: p.size] @ curvature
            hessian[1:] += block @ room[:, : p.size].T
        gradient /= self.total
        gradient -= self.pull
        gradient += self.penalty * theta
        hessian[0, 1:] = hessian[1:, 0]
        hessian /= self.total
        hessian.ravel()[:: k + 2] += self.penalty
        return gradient, hessian

    def loss(self, theta: Floats) -> float:
        """Return the mean loss at theta, ln(1 + exp(η)) - y·η of a row."""
        value = 0.0
        for rows in blocks_of_rows(self.y.size):
            eta = theta[1:] @ self.features[:, rows] + theta[0]
            # np.logaddexp(0, -eta) takes several times as long.
            losses = np.log1p(np.exp(-np.abs(eta)))
            losses += np.maximum(eta, 0.0) - self.y[rows] * eta
            value += float(losses.sum() if self.weight is None else losses @ self.weight[rows])
        return value / self.total + 0.5 * float(self.penalty @ theta**2)

    def is_certain(self, theta: Floats) -> bool:
        """Return whether every row is predicted correctly and with near certainty."""
        for rows in blocks_of_rows(self.y.size):
            eta = theta[1:] @ self.features[:, rows] + theta[0]
            wrong = np.abs((eta > 0) - self.y[rows]) > CERTAIN_ERROR
            if np.abs(eta).min() < CERTAIN_LOGIT or wrong.any():
                return False
        return True


def _expit_of_negative(minus_eta: Floats, shift: float) -> Floats:
    """Turn −η, given up to a shift, into ``1 / (1 + exp(-η))``, in place."""
    minus_eta += shift
    np.exp(minus_eta, out=minus_eta)
    minus_eta += 1.0
    return np.divide(1.0, minus_eta, out=minus_eta)


def _warm_start(problem: _Problem, start: Floats, free: Bools) -> Floats:
    """Return a start from which three steps suffice: with many rows, the optimum of a sample."""
    if problem.y.size <= WARM_START_FROM:
        return start
    sample = problem.sample()
    origin = _warm_start(sample, start, free)
    tol = WARM_TOLERANCE / math.sqrt(sample.y.size)
    theta = _free_newton(sample, origin, free, tol, WARM_STEPS)[0]
    return theta if np.abs(theta).max() < LARGEST_START else start


def _free_newton(
    problem: _Problem, theta: Floats, free: Bools, tol: float, max_iter: int
) -> tuple[Floats, float, int]:
    """Minimize over the free coordinates, the others held where they are."""
    index = np.flatnonzero(free)
    square = np.ix_(index, index)
    full = theta.copy()

    def evaluate(values: Floats) -> tuple[Floats, Callable[[], Floats]]:
        full[index] = values
        gradient, hessian = problem.derivatives(full)
        part = gradient[index]
        return part, lambda: solve_dense(hessian[square], part)

    def loss(values: Floats) -> float:
        full[index] = values
        return problem.loss(full)

    values, size, n_iter = minimize_convex(
        evaluate, loss, theta[index], tol=tol, max_iter=max_iter, last_step=LAST_STEP
    )
    full[index] = values
    return full, size, n_iter


def _active_set(
    problem: _Problem,
    theta: Floats,
    free: Bools,
    bounded: Bools,
    tol: float,
    max_iter: int,
) -> tuple[Floats, float, int]:
    """Fix the most negative bounded coefficient at 0, refit, and release those that would rise."""
    held = np.zeros_like(free)
    steps, start = 0, theta
    for _ in range(4 * int(bounded.sum()) + 1):
        # Coefficients that went to infinity are not a useful start.
        origin = theta if np.abs(theta).max() < LARGEST_RESTART else start
        origin = np.where(held, 0.0, origin)
        theta, size, n_iter = _free_newton(problem, origin, free & ~held, tol, max_iter)
        steps += n_iter
        negative = bounded & free & ~held & (theta < 0)
        if negative.any():
            held[np.argmin(np.where(negative, theta, np.inf))] = True
            continue
        if not held.any():
            break
        gradient = problem.derivatives(theta)[0]
        rising = held & (gradient < -RELEASE_GRADIENT)
        if not rising.any():
            break
        held[np.argmin(np.where(rising, gradient, np.inf))] = False
    return np.where(bounded & (theta < 0), 0.0, theta), size, steps


def _standardize(
    features: Floats, weight: Floats | None, total: float, *, centred: bool
) -> tuple[Floats, Floats]:
    """Centre and scale every feature in place; a constant one becomes 0, with scale 0."""
    mean = (features.sum(axis=1) if weight is None else features @ weight) / total
    if centred:
        features -= mean[:, None]
    if weight is None:
        square = np.einsum("ij,ij->i", features, features)
    else:
        square = np.einsum("ij,ij,j->i", features, features, weight)
    spread = np.sqrt(square / total)
    # By rounding, a constant column has a spread of about 1e-16 of its size.
    moving = spread > _ROUNDING * np.abs(mean)
    if not moving.all():
        features[~moving] = 0.0
    features /= np.where(moving, spread, 1.0)[:, None]
    return np.where(moving & centred, mean, 0.0), np.where(moving, spread, 0.0)


def blocks_of_rows(n: int) -> Iterator[slice]:
    """Yield slices of rows that stay in cache."""
    for first in range(0, n, BLOCK):
        yield slice(first, min(first + BLOCK, n))
