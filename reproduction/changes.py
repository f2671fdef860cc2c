"""Changes of the paper's figures from one calibrator to another, on the same rows.

The paper's claim is the confidence in the predicted class. Audits and comparisons of varcal judge
the probability of a class instead, so these changes have a bootstrap of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import varcal as vc

#: Samples of the rows.
DRAWS = 200


def change_interval(
    y: np.ndarray,
    old: np.ndarray,
    new: np.ndarray,
    v: np.ndarray | None = None,
    *,
    classes: Sequence[int] | None = None,
    seed: int = 0,
) -> tuple[float, float]:
    """Return a 95 % interval of the change of ECE, or of VECE along v.

    The ends are those of the basic bootstrap: twice the change minus the quantiles of the changes
    in samples of the rows.
    """
    rng = np.random.default_rng(seed)

    def change(rows: np.ndarray | slice) -> float:
        along = None if v is None else v[rows]
        first, second = (
            vc.ece(y[rows], p[rows], event="correct", classes=classes)
            if along is None
            else vc.vece(y[rows], p[rows], along, event="correct", classes=classes)
            for p in (old, new)
        )
        return second - first

    drawn = [change(rng.integers(0, len(y), len(y))) for _ in range(DRAWS)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    middle = change(slice(None))
    return 2 * middle - high, 2 * middle - low
