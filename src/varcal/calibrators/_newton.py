"""Damped Newton for smooth convex losses, to the last digits that a gradient carries."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

__all__ = ["Evaluate", "minimize_convex", "solve_by_products", "solve_dense"]

Floats = NDArray[np.float64]
Evaluate = Callable[[Floats], tuple[float, Floats, Callable[[], Floats]]]

#: The longest step in any coordinate: where a loss goes flat, Newton would jump to infinity.
LONGEST_STEP = 8.0


def minimize_convex(
    evaluate: Evaluate, start: Floats, *, tol: float, max_iter: int
) -> tuple[Floats, float, int]:
    """Follow Newton steps until the largest component of the gradient is below `tol`.

    A step is halved until it lowers the loss, where the loss can still tell; its rounding
    hides the last steps, and there the gradient alone decides.

    Parameters
    ----------
    evaluate : callable
        theta → (loss, gradient, solve), where ``solve()`` gives H⁻¹·gradient.
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
    loss, gradient, solve = evaluate(theta)
    size = float(np.abs(gradient).max(initial=0.0))
    n_iter = 0
    while size > tol and n_iter < max_iter:
        step = -solve()
        step *= min(1.0, LONGEST_STEP / float(np.abs(step).max()))
        slope = float(step @ gradient)
        if slope >= 0:
            break
        slack = 1e-13 * abs(loss)
        length = 1.0
        trial = evaluate(theta + step)
        while trial[0] > loss + 1e-4 * length * slope + slack and length > 1e-6:
            length *= 0.5
            trial = evaluate(theta + length * step)
        trial_size = float(np.abs(trial[1]).max())
        if trial[0] > loss + slack or (size < 1e-9 and trial_size >= size):
            break
        theta = theta + length * step
        (loss, gradient, solve), size = trial, trial_size
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
