"""How far a larger model is trusted over a smaller one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from varcal.calibrators._additive_model import Fitted, Sample
from varcal.calibrators._interactions import Gain, gain_of

__all__ = ["held_out_predictor", "paired_gain", "share_of"]

Floats = NDArray[np.float64]

#: Held-out gains, in standard errors, between which the share goes from 0 to 1.
_RAMP = (0.25, 1.25)


def share_of(gain: Gain) -> float:
    """Return the share of the larger model: 0 without evidence, 1 with enough of it.

    >>> share_of(Gain(0.0, 1.0)), share_of(Gain(0.75, 1.0)), share_of(Gain(2.0, 1.0))
    (0.0, 0.5, 1.0)
    """
    low, high = _RAMP
    return float(np.clip((gain.ratio - low) / (high - low), 0.0, 1.0))


def held_out_predictor(rows: Sample, fit: Callable[[Sample], Fitted]) -> tuple[Floats, Floats]:
    """Return the predictor of every row, and its variance, from models of the other folds."""
    eta, variance = np.empty(len(rows)), np.empty(len(rows))
    for fold in np.unique(rows.folds):
        out = rows.folds == fold
        held = rows.take(out)
        eta[out], variance[out] = fit(rows.take(~out)).model.predictor(held.z, held.columns)
    return eta, variance


def paired_gain(rows: Sample, small: Floats, large: Floats) -> Gain:
    """Return the mean loss that the larger model saves, with its standard error."""
    return gain_of(rows.loss.rows(small) - rows.loss.rows(large), rows.loss.mass())
