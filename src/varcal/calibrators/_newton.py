"""Damped Newton for smooth convex losses, to the last digits that a gradient carries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

__all__ = ["Evaluate", "minimize_convex", "solve_by_products", "solve_dense"]

Floats = NDArray[np.float64]
Evaluate = Callable[[Floats], tuple[Floats, Callable[[], Floats]]]


def minimize_convex(
    evaluate: Evaluate, start: Floats, *, tol: float, max_iter: int
) -> tuple[Floats, float, int]:
    """Follow Newton steps until the largest component of the gradient is below `tol`.

    The damping looks at the slope along the step, not at the loss, whose rounding would stop
    the search at half the digits.

    Parameters
    ----------
    evaluate : callable
        theta → (gradient, solve), where ``solve()`` gives H⁻¹·gradient.
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
        slope = float(step @ gradient)
        if slope >= 0:
            break
        length = 1.0
        for _ in range(60):
            trial = theta + length * step
            trial_gradient, trial_solve = evaluate(trial)
            # Along a convex loss a slope that is still falling, or has turned only a little,
            # has not overshot.
            if float(step @ trial_gradient) <= -0.5 * slope:
                break
            length *= 0.5
        trial_size = float(np.abs(trial_gradient).max())
        if size < 1e-9 and trial_size >= size:
            break
        theta, gradient, solve, size = trial, trial_gradient, trial_solve, trial_size
        n_iter += 1
    return theta, size, n_iter


def solve_dense(hessian: Floats, gradient: Floats) -> Floats:
    """Solve the Newton system; a ridge too small to bend the step keeps a flat one solvable."""
    diagonal = np.diag_indices_from(hessian)
    ridge = 1e-14 * float(hessian[diagonal].max(initial=0.0)) + 1e-300
    for _ in range(30):
        damped = hessian.copy()
        damped[diagonal] += ridge
        try:
            solution: Floats = cho_solve(cho_factor(damped, overwrite_a=True), gradient)
        except np.linalg.LinAlgError:
            solution = np.full_like(gradient, np.nan)
        if np.isfinite(solution).all():
            return solution
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
