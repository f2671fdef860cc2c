r"""Whether the predictor of a fitted logistic model should be steeper or flatter.

Shrinkage and moderation flatten, overfitting makes steep. What is left is seen on rows that did
not fit: with the posterior covariance V, leaving row i out moves its predictor by about

.. math:: \eta_{-i} - \eta_i = - \frac{v_i (y_i - \mu_i)}{1 - w_i v_i}, \qquad
          v_i = x_i^\top V x_i,\; w_i = \mu_i (1 - \mu_i),

and a logistic regression of y on :math:`\eta_{-i}` has the slope s with standard error e. The
stretch is :math:`1 + (s - 1) \max(0, 1 - e^2 / (s - 1)^2)`, James and Stein's shrinkage to 1.

References
----------
K. R. Rad, A. Maleki (2020), A scalable estimate of the out-of-sample prediction error via
approximate leave-one-out cross-validation, JRSS B 82.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

__all__ = ["left_out", "stretch_of"]

Floats = NDArray[np.float64]

#: The stretch stays within these bounds.
_BOUNDS = (0.5, 2.0)
#: A row may not carry more than this share of its own prediction.
_LEAST = 0.05


def left_out(eta: Floats, variance: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the predictor of every row without that row, and its variance."""
    mean = expit(eta)
    rest = np.maximum(1.0 - mean * (1.0 - mean) * variance, _LEAST)
    return eta - variance * (y - mean) / rest, variance / rest


def stretch_of(eta: Floats, y: Floats, weight: Floats) -> float:
    """Return the factor for predictors, given those of left-out rows.

    >>> rng = np.random.default_rng(0)
    >>> eta = rng.normal(size=5000)
    >>> y = (rng.random(5000) < expit(2 * eta)).astype(float)
    >>> round(stretch_of(eta, y, np.ones(5000)), 1)
    2.0
    """
    level, slope = 0.0, 1.0
    H = np.eye(2)
    for _ in range(30):
        mean = expit(level + slope * eta)
        residual, work = weight * (y - mean), weight * mean * (1.0 - mean)
        cross = float(work @ eta)
        H = np.array([[work.sum(), cross], [cross, float(work @ eta**2)]]) + 1e-9 * np.eye(2)
        step = np.linalg.solve(H, [residual.sum(), residual @ eta])
        step = np.clip(step, -1.0, 1.0)
        level, slope = level + float(step[0]), slope + float(step[1])
        if np.abs(step).max() < 1e-9:
            break
    beyond, error = slope - 1.0, float(np.linalg.inv(H)[1, 1])
    kept = max(0.0, 1.0 - error / beyond**2) if beyond else 0.0
    return float(np.clip(1.0 + kept * beyond, *_BOUNDS))
