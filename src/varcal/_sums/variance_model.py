"""The variance of an outcome around its predicted mean: V(μ), up to a factor."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from varcal._arrays import Floats

#: A count, the product of a rate and an exposure, is whole up to this.
WHOLE = 1e-6
#: Marks the variance of soft labels, μ(1 − μ); other models are powers of μ.
SHARES = -1.0


def variance_power(y: ArrayLike, mu: ArrayLike, exposure: ArrayLike | None = None) -> float:
    """Return the power p of the model V(μ) = μᵖ, or `SHARES` for μ(1 − μ).

    0 where amounts may be negative, 1 for counts, 1.5 for amounts with zeros, 2 for positive
    amounts; μ(1 − μ) if outcomes and predictions lie in [0, 1].

    >>> variance_power([0, 2, 1], [0.5, 1.5, 1.0]), variance_power([0.0, 2.5], [1.0, 1.0])
    (1.0, 1.5)
    """
    y, mu = np.asarray(y, float), np.asarray(mu, float)
    if y.min(initial=0.0) < 0 or mu.min(initial=1.0) <= 0:
        return 0.0
    counts = y if exposure is None else y * np.asarray(exposure, float)
    whole = np.allclose(counts, np.round(counts), rtol=0.0, atol=WHOLE)
    if not whole and max(y.max(initial=0.0), mu.max(initial=0.0)) <= 1.0 and (mu < 1).all():
        return SHARES
    if whole:
        return 1.0
    return 1.5 if (y == 0).any() else 2.0


def model_variance(mu: Floats, power: float) -> Floats:
    """Return V(μ)."""
    return np.asarray(mu * (1 - mu) if power == SHARES else mu**power)
