"""Choice of a smoother's span by cross-validation on cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from varcal._smoothing.local_polynomial import smoother_weights

__all__ = ["SpanChoice", "select_span"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SpanChoice:
    """The span with the least cross-validated error, and the whole grid."""

    span: float
    spans: Floats
    score: Floats


def select_span(
    x: ArrayLike,
    y: ArrayLike,
    weight: ArrayLike | None = None,
    *,
    spans: Sequence[float] = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75, 0.9),
    degree: int = 2,
    counts: ArrayLike | None = None,
    leave_one_out: bool = False,
) -> SpanChoice:
    r"""Choose a span by cross-validation on the cells.

    Generalized: :math:`\sum w r^2 / (1 - tr L / k)^2`; leave-one-out:
    :math:`\sum w (r / (1 - L_{jj}))^2`. Spans that leave no residual degrees of freedom are out.

    Parameters
    ----------
    x, y, weight, degree, counts
        As in :func:`local_polynomial`. A few hundred cells suffice, and cost a few milliseconds
        a span.
    spans : sequence of float
        Candidates.
    leave_one_out : bool
        Leave each cell out in turn, in place of the generalized criterion.

    References
    ----------
    Craven, P. and Wahba, G. (1979). Smoothing noisy data with spline functions.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 200)
    >>> noise = np.random.default_rng(0).normal(size=200)
    >>> select_span(x, np.sin(20 * x) + 0.2 * noise).span
    0.15
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if weight is None:
        weight = counts
    share = np.ones(len(x)) if weight is None else np.asarray(weight, float)
    scores = np.full(len(spans), np.inf)
    for i, span in enumerate(spans):
        hat = smoother_weights(x, x, span=span, degree=degree, weight=share, counts=counts)
        diagonal = np.diag(hat)
        squares = share * (y - hat @ y) ** 2
        free = 1 - (diagonal if leave_one_out else np.full(len(x), diagonal.mean()))
        if free.min() > 1e-6:
            scores[i] = np.sum(squares / free**2)
    best = int(np.argmin(scores)) if np.isfinite(scores).any() else len(spans) - 1
    return SpanChoice(float(spans[best]), np.asarray(spans, float), scores)
