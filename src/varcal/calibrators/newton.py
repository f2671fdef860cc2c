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
#: slope at its start; not below this gradient, where the rounding of the loss is larger.
TURNED, CHECKED_GRADIENT = 0.1, 1e-6
#: Below this gradient, the search ends as soon as the gradient no longer shrinks.
STALLED_GRADIENT = 1e-9
#: Of the expected decrease, the share that a step must reach (Armijo's rule), the rounding of the
#: loss, and the most times that a step is halved.
SUFFICIENT_DECREASE, LOSS_ROUNDING, MOST_HALVINGS = 1e-4, 1e-13, 30
#: The first relative ridge of a Hessian that cannot be factored, and how often it is raised.
FIRST_RIDGE, MOST_RIDGES = 1e-14, 30


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
        the gradient there is about the square of its length.

    Returns
    -------
    theta, gradient, n_iter : tuple
        The optimum, the largest component of the gradient where it was last evaluated, the steps
        taken.
    """
    theta = start
    gradient, solve = evaluate(theta)
    size = float(np.abs(gradient).max(initial=0.0))
    for n_iter in range(max_iter):
        if size <= (0.0 if last_step else tol):
            return theta, size, n_iter
        step = -solve()
        longest = float(np.abs(step).max())
        if longest < last_step:
            return theta + step, size, n_iter + 1
        step *= min(1.0, LONGEST_STEP / longest)
        slope = float(step @ gradient)
        if size <= tol or slope >= 0:
            return theta, size, n_iter
        trial = evaluate(theta + step)
        if size > CHECKED_GRADIENT and float(step @ trial[0]) > TURNED * -slope:
            length = _lowering(loss, theta, step, slope)
            if length == 0.0:
                return theta, size, n_iter
            step *= length
            trial = evaluate(theta + step)
        trial_size = float(np.abs(trial[0]).max())
        if size < STALLED_GRADIENT and trial_size >= size:
            return theta, size, n_iter
        theta, (gradient, solve), size = theta + step, trial, trial_size
    return theta, size, max_iter


def _lowering(loss: LossFunction, theta: Floats, step: Floats, slope: float) -> float:
    """Return the first of 1, ½, ¼, … that lowers the loss enough (Armijo's rule), or 0."""
    here = loss(theta)
    slack = LOSS_ROUNDING * abs(here)
    for length in 0.5 ** np.arange(MOST_HALVINGS):
        if loss(theta + length * step) <= here + SUFFICIENT_DECREASE * length * slope + slack:
            return float(length)
    return 0.0


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
