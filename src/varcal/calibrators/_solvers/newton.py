"""Damped Newton for smooth convex losses, to the last digits that a gradient carries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dposv

from varcal._arrays import Floats

__all__ = ["Evaluate", "Loss", "minimize_convex", "solve_by_products", "solve_dense"]

Evaluate = Callable[[Floats], tuple[Floats, Callable[[], Floats]]]
Loss = Callable[[Floats], float]

#: The longest step in any coordinate: where a loss goes flat, Newton would jump to infinity.
LONGEST_STEP = 8.0
#: The share of the first slope, turned upwards, that needs a look at the loss.
TURNED = 0.1


def minimize_convex(
    evaluate: Evaluate, loss: Loss, start: Floats, *, tol: float, max_iter: int
) -> tuple[Floats, float, int]:
    """Follow Newton steps until the largest component of the gradient is below `tol`.

    Along a convex loss, a step at whose end the slope is still falling has lowered it. Where the
    slope has turned by more than a little, the step is halved until the loss itself is lower.

    Parameters
    ----------
    evaluate : callable
        theta → (gradient, solve), where ``solve()`` gives H⁻¹·gradient.
    loss : callable
        theta → loss.
    start : ndarray
        Where to begin.
    tol : float
        Bound of the gradient; a gradient below 1e-9 that no longer shrinks also ends the search.
    max_iter : int
        Steps at most.

    Returns
    -------
    theta, gradient, n_iter : tuple
        The optimum, the largest component of the gradient there, the steps taken.
    """
    theta = start
    gradient, solve = evaluate(theta)
    size = float(np.abs(gradient).max(initial=0.0))
    n_iter = 0
    while size > tol and n_iter < max_iter:
        step = -solve()
        longest = float(np.abs(step).max())
        if longest > LONGEST_STEP:
            step *= LONGEST_STEP / longest
        slope = float(step @ gradient)
        if slope >= 0:
            break
        trial = evaluate(theta + step)
        if size > 1e-6 and float(step @ trial[0]) > TURNED * -slope:
            length = _lowering(loss, theta, step, slope)
            if length == 0.0:
                break
            step *= length
            trial = evaluate(theta + step)
        trial_size = float(np.abs(trial[0]).max())
        if size < 1e-9 and trial_size >= size:
            break
        theta = theta + step
        (gradient, solve), size = trial, trial_size
        n_iter += 1
    return theta, size, n_iter


def _lowering(loss: Loss, theta: Floats, step: Floats, slope: float) -> float:
    """Return the first of 1, ½, ¼, … at which the step lowers the loss as it should, else 0."""
    here = loss(theta)
    slack = 1e-13 * abs(here)
    length = 1.0
    while length > 1e-9:
        if loss(theta + length * step) <= here + 1e-4 * length * slope + slack:
            return length
        length *= 0.5
    return 0.0


def solve_dense(hessian: Floats, gradient: Floats) -> Floats:
    """Solve the Newton system from the upper triangle of the Hessian.

    A ridge too small to bend the step keeps a flat one solvable.
    """
    ridge = 1e-14
    for _ in range(30):
        damped = hessian.copy()
        diagonal = damped.ravel()[:: len(damped) + 1]
        diagonal *= 1.0 + ridge
        diagonal += 1e-300
        _, solution, info = dposv(damped, gradient)
        if info == 0 and np.isfinite(solution).all():
            return np.asarray(solution)
        ridge *= 10.0
    return gradient


def solve_by_products(
    product: Callable[[Floats], Floats], diagonal: Floats, gradient: Floats
) -> Floats:
    """Solve the Newton system by conjugate gradients, where the Hessian is too large to hold."""
    norm = float(np.linalg.norm(gradient))
    target = min(0.05, norm**0.5) * norm
    scale = 1.0 / np.maximum(diagonal, 1e-12 * float(diagonal.max()) + 1e-300)
    solution, residual = np.zeros_like(gradient), gradient.copy()
    direction = scale * residual
    inner = float(residual @ direction)
    for _ in range(min(gradient.size, 500)):
        image = product(direction)
        curvature = float(direction @ image)
        if curvature <= 0:
            break
        length = inner / curvature
        solution += length * direction
        residual -= length * image
        if float(np.linalg.norm(residual)) <= target:
            break
        scaled = scale * residual
        previous, inner = inner, float(residual @ scaled)
        direction = scaled + (inner / previous) * direction
    return solution if solution.any() else gradient
