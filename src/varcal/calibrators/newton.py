"""Damped Newton steps for smooth convex losses, down to the rounding of the gradient."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from varcal._arrays import Floats

Evaluate = Callable[[Floats], tuple[Floats, Callable[[], Floats]]]
LossFunction = Callable[[Floats], float]

# Numerical limits of the search; the optimum does not depend on them.

#: The longest step in any coordinate: where the loss is flat, a Newton step could be infinite.
LONGEST_STEP = 8.0
#: A step is checked against the loss if the slope at its end rises by more than this share of the
#: slope at its start.
TURNED = 0.1
#: Below this gradient, steps are no longer checked against the loss, whose rounding is larger.
CHECKED_GRADIENT = 1e-6
#: Below this gradient, the search ends as soon as the gradient no longer shrinks.
STALLED_GRADIENT = 1e-9
#: Of the expected decrease, the share that a step must reach (Armijo's rule), the rounding of the
#: loss, and the shortest step.
SUFFICIENT_DECREASE, LOSS_ROUNDING, SHORTEST_STEP = 1e-4, 1e-13, 1e-9
#: The first relative ridge of a Hessian that cannot be factored, and how often it is raised.
FIRST_RIDGE, MOST_RIDGES = 1e-14, 30
#: Conjugate gradients: relative accuracy, iterations, and the least relative diagonal.
CG_ACCURACY, MOST_PRODUCTS, LEAST_DIAGONAL = 0.05, 500, 1e-12
_TINY = 1e-300


def minimize_convex(
    evaluate: Evaluate,
    loss: LossFunction,
    start: Floats,
    *,
    tol: float,
    max_iter: int,
    last_step: float = 0.0,
) -> tuple[Floats, float, int]:
    """Take Newton steps until the largest component of the gradient is below `tol`.

    If a convex loss still falls at the end of a step, the step has lowered it. If it clearly rises
    there, the step is halved until the loss is lower than at its start.

    Parameters
    ----------
    evaluate : callable
        theta → (gradient, solve), where ``solve()`` gives H⁻¹·gradient.
    loss : callable
        theta → loss.
    start : ndarray
        Where to begin.
    tol : float
        The bound of the gradient; one below 1e-9 that no longer shrinks also ends the search.
    max_iter : int
        Newton steps at most.
    last_step : float
        A step that is shorter than this in every coordinate is taken without a look at its end:
        the gradient there is about the square of its length. Only for exact Newton steps.

    Returns
    -------
    theta, gradient, n_iter : tuple
        The optimum, the largest component of the gradient where it was last evaluated, the steps
        taken.
    """
    theta = start
    gradient, solve = evaluate(theta)
    size = float(np.abs(gradient).max(initial=0.0))
    n_iter = 0
    while n_iter < max_iter and size > (0.0 if last_step else tol):
        step = -solve()
        longest = float(np.abs(step).max())
        if longest < last_step:
            return theta + step, size, n_iter + 1
        if size <= tol:
            break
        if longest > LONGEST_STEP:
            step *= LONGEST_STEP / longest
        slope = float(step @ gradient)
        if slope >= 0:
            break
        trial = evaluate(theta + step)
        if size > CHECKED_GRADIENT and float(step @ trial[0]) > TURNED * -slope:
            length = _lowering(loss, theta, step, slope)
            if length == 0.0:
                break
            step *= length
            trial = evaluate(theta + step)
        trial_size = float(np.abs(trial[0]).max())
        if size < STALLED_GRADIENT and trial_size >= size:
            break
        theta = theta + step
        (gradient, solve), size = trial, trial_size
        n_iter += 1
    return theta, size, n_iter


def _lowering(loss: LossFunction, theta: Floats, step: Floats, slope: float) -> float:
    """Return the first of 1, ½, ¼, … that lowers the loss enough (Armijo's rule), or 0."""
    here = loss(theta)
    slack = LOSS_ROUNDING * abs(here)
    length = 1.0
    while length > SHORTEST_STEP:
        if loss(theta + length * step) <= here + SUFFICIENT_DECREASE * length * slope + slack:
            return length
        length *= 0.5
    return 0.0


def solve_dense(hessian: Floats, gradient: Floats) -> Floats:
    """Solve the Newton system from the upper triangle of the Hessian.

    A ridge that is too small to change the step keeps a singular system solvable.
    """
    from scipy.linalg.lapack import dposv  # noqa: PLC0415  only a fit needs it

    ridge = FIRST_RIDGE
    for _ in range(MOST_RIDGES):
        damped = hessian.copy()
        diagonal = damped.ravel()[:: len(damped) + 1]
        diagonal *= 1.0 + ridge
        diagonal += _TINY
        _, solution, info = dposv(damped, gradient)
        if info == 0 and np.isfinite(solution).all():
            return np.asarray(solution)
        ridge *= 10.0
    return gradient


def solve_by_products(
    product: Callable[[Floats], Floats], diagonal: Floats, gradient: Floats
) -> Floats:
    """Solve the Newton system by conjugate gradients, where the Hessian is too large for memory."""
    norm = float(np.linalg.norm(gradient))
    target = min(CG_ACCURACY, norm**0.5) * norm
    scale = 1.0 / np.maximum(diagonal, LEAST_DIAGONAL * float(diagonal.max()) + _TINY)
    solution, residual = np.zeros_like(gradient), gradient.copy()
    direction = scale * residual
    inner = float(residual @ direction)
    for _ in range(min(gradient.size, MOST_PRODUCTS)):
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
