"""The two-class logistic fit under every calibrator that has coefficients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from varcal.calibrators._newton import minimize_convex, solve_dense

__all__ = ["LogisticFit", "fit_logistic", "two_columns"]

Floats = NDArray[np.float64]

BLOCK = 16_384
WARM_START_ROWS = 20_000
#: A gradient above this after all steps: the coefficients were still on their way to infinity.
UNSETTLED = 1e-6


@dataclass(frozen=True)
class LogisticFit:
    """Coefficients, and how the optimizer arrived at them.

    `gradient` is the largest component of the mean gradient, per standardized feature;
    `separated` says that the coefficients have no finite optimum, as without a penalty happens
    where the features tell the classes apart with certainty.
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
    nonnegative: NDArray[np.bool_] | None = None,
    intercept: bool = True,
    tol: float = 1e-11,
    max_iter: int = 200,
) -> LogisticFit:
    r"""Minimize the penalized logistic loss to the limits of the machine.

    .. math:: \sum_i w_i [\ln(1 + e^{\eta_i}) - y_i \eta_i] + \tfrac12 \sum_j \lambda_j \beta_j^2,
              \qquad \eta_i = \beta_0 + \sum_j \beta_j x_{ji}

    by damped Newton steps on standardized features.

    Parameters
    ----------
    features : ndarray of shape (k, n)
        One row a feature.
    y : ndarray of shape (n,)
        Targets in [0, 1].
    weight : ndarray of shape (n,), optional
        Row weights.
    l2 : float or ndarray of shape (k,)
        The penalties λ; scikit-learn's ``1 / C``. The intercept is free.
    nonnegative : ndarray of bool of shape (k,), optional
        Coefficients that must not fall below 0, met by an active set.
    intercept : bool
        Whether β₀ is fitted or held at 0.
    tol : float
        Bound of the mean gradient.
    max_iter : int
        Newton steps at most.
    """
    k, n = features.shape
    total = float(n) if weight is None else float(weight.sum())
    penalty = np.broadcast_to(np.asarray(l2, dtype=float), (k,))
    centre, scale = _moments(features, weight, total, centred=intercept)
    moving = scale > 0
    safe = np.where(moving, scale, 1.0)
    design = np.empty((k + 1, n))
    design[0] = 1.0
    np.subtract(features, centre[:, None], out=design[1:])
    design[1:] /= safe[:, None]
    problem = _Problem(design, y, weight, np.append(0.0, penalty / safe**2), total)

    start = np.zeros(k + 1)
    if intercept:
        mean = float(y.mean() if weight is None else y @ weight / total)
        start[0] = _logit(min(max(mean, 1e-12), 1 - 1e-12))
    free = np.append(intercept, moving)
    if n > 4 * WARM_START_ROWS:
        rows = slice(None, None, n // WARM_START_ROWS)
        sample = _Problem(
            np.ascontiguousarray(design[:, rows]),
            y[rows],
            None if weight is None else weight[rows],
            problem.penalty * (WARM_START_ROWS / n),
            total * WARM_START_ROWS / n,
        )
        warm = _free_newton(sample, start, free, 1e-6, 50)[0]
        start = warm if np.abs(warm).max() < 50 else start

    bounded = np.append(False, np.zeros(k, bool) if nonnegative is None else nonnegative)
    theta, gradient, n_iter = _active_set(problem, start, free, bounded, tol, max_iter)
    coef = np.where(moving, theta[1:] / safe, 0.0)
    return LogisticFit(
        coef=coef,
        intercept=float(theta[0] - coef @ centre),
        gradient=gradient,
        n_iter=n_iter,
        separated=problem.certain() or gradient > UNSETTLED,
    )


def two_columns(score: Floats, log_odds: Callable[[Floats], Floats]) -> Floats:
    """Return ``[expit(-η), expit(η)]`` of ``η = log_odds(score)``, exact in both tails.

    Block by block, so that a block stays in cache, and with one exp a row.
    """
    out = np.empty((score.size, 2))
    for rows in _blocks(score.size):
        eta = log_odds(score[rows])
        tail = np.exp(-np.abs(eta))
        large = 1.0 / (1.0 + tail)
        tail *= large
        upper = eta >= 0
        out[rows, 1] = np.where(upper, large, tail)
        out[rows, 0] = np.where(upper, tail, large)
    return out


class _Problem:
    """Loss, gradient and Hessian of one fit, gathered in blocks that stay in cache."""

    def __init__(
        self, design: Floats, y: Floats, weight: Floats | None, penalty: Floats, total: float
    ) -> None:
        self.design, self.y, self.weight = design, y, weight
        self.penalty, self.total = penalty, total
        self.worst_residual = 1.0
        self.least_certain = 0.5

    def certain(self) -> bool:
        """Tell whether at the last theta every row was right, and sure of it."""
        return max(self.worst_residual, self.least_certain) < 1e-4

    def at(self, theta: Floats) -> tuple[float, Floats, Floats]:
        """Return the mean loss, its gradient and its Hessian at theta."""
        m, n = self.design.shape
        loss, gradient, hessian = 0.0, np.zeros(m), np.zeros((m, m))
        worst = unsure = 0.0
        for rows in _blocks(n):
            block = self.design[:, rows]
            eta = theta @ block
            tail = np.exp(-np.abs(eta))
            large = 1.0 / (1.0 + tail)
            small = tail * large
            residual = np.where(eta >= 0, large, small) - self.y[rows]
            curvature = large * small
            unsure = max(unsure, float(small.max()))
            losses = np.maximum(eta, 0.0) - self.y[rows] * eta - np.log(large)
            if self.weight is None:
                loss += float(losses.sum())
                worst = max(worst, float(residual.max()), -float(residual.min()))
            else:
                weight = self.weight[rows]
                loss += float(losses @ weight)
                worst = max(worst, float(np.abs(residual[weight > 0]).max(initial=0.0)))
                residual *= weight
                curvature *= weight
            gradient += block @ residual
            hessian += (block * curvature) @ block.T
        self.worst_residual, self.least_certain = worst, unsure
        loss += 0.5 * float(self.penalty @ theta**2)
        gradient += self.penalty * theta
        hessian[np.diag_indices(m)] += self.penalty
        return loss / self.total, gradient / self.total, hessian / self.total


def _free_newton(
    problem: _Problem, theta: Floats, free: NDArray[np.bool_], tol: float, max_iter: int
) -> tuple[Floats, float, int]:
    """Minimize over the free coordinates, the others held where they are."""
    index = np.flatnonzero(free)

    def evaluate(values: Floats) -> tuple[float, Floats, Callable[[], Floats]]:
        full = theta.copy()
        full[index] = values
        loss, gradient, hessian = problem.at(full)
        part = gradient[index]
        return loss, part, lambda: solve_dense(hessian[np.ix_(index, index)], part)

    values, size, n_iter = minimize_convex(evaluate, theta[index], tol=tol, max_iter=max_iter)
    full = theta.copy()
    full[index] = values
    return full, size, n_iter


def _active_set(
    problem: _Problem,
    theta: Floats,
    free: NDArray[np.bool_],
    bounded: NDArray[np.bool_],
    tol: float,
    max_iter: int,
) -> tuple[Floats, float, int]:
    """Hold the most negative bounded coefficient at 0, refit, let go of those that want to rise."""
    held = np.zeros_like(free)
    steps, start = 0, theta
    for _ in range(4 * int(bounded.sum()) + 1):
        # Coefficients that ran off to infinity are no place to begin the next fit from.
        origin = theta if np.abs(theta).max() < 20 else start
        origin = np.where(held, 0.0, origin)
        theta, size, n_iter = _free_newton(problem, origin, free & ~held, tol, max_iter)
        steps += n_iter
        negative = bounded & free & ~held & (theta < 0)
        if negative.any():
            held[np.argmin(np.where(negative, theta, np.inf))] = True
            continue
        if not held.any():
            break
        gradient = problem.at(theta)[1]
        rising = held & (gradient < -1e-9)
        if not rising.any():
            break
        held[np.argmin(np.where(rising, gradient, np.inf))] = False
    return np.where(bounded & (theta < 0), 0.0, theta), size, steps


def _moments(
    features: Floats, weight: Floats | None, total: float, *, centred: bool
) -> tuple[Floats, Floats]:
    """Return the weighted centre and spread of every feature; a constant has spread 0."""
    k = features.shape[0]
    centre, scale = np.zeros(k), np.zeros(k)
    for j, row in enumerate(features):
        mean = float(row.mean() if weight is None else row @ weight / total)
        shifted = row - mean if centred else row
        square = shifted @ (shifted if weight is None else shifted * weight)
        spread = float(np.sqrt(square / total))
        # Rounding alone gives a constant column a spread of about 1e-16 of its size.
        if spread > 1e-13 * abs(mean):
            centre[j], scale[j] = (mean if centred else 0.0), spread
    return centre, scale


def _blocks(n: int) -> Iterator[slice]:
    for first in range(0, n, BLOCK):
        yield slice(first, min(first + BLOCK, n))


def _logit(p: float) -> float:
    return float(np.log(p) - np.log1p(-p))
