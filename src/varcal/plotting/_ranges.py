"""Ranges that curves drawn on the same axes share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._measures.curve import Curve
from varcal.plotting._words import sides


@dataclass(frozen=True)
class Frame:
    """The ranges of both axes, and which texts are drawn."""

    low: float
    high: float
    top: float
    labels: bool = True
    notes: bool = True


def frame_of(curves: list[Curve]) -> Frame:
    """Return the ranges that hold all of the curves."""
    low = min(float(curve.histogram.edges[0]) for curve in curves)
    high = max(float(curve.histogram.edges[-1]) for curve in curves)
    tops = []
    for curve in curves:
        drawn = sides(curve)
        seen = (curve.x >= low) & (curve.x <= high)
        seen |= not seen.any()
        tops += [drawn.actual[seen].max(), drawn.predicted[seen].max()]
        tops.append(np.quantile(drawn.high[seen], 0.98))
    # Levels need room for a word beside the dot furthest to the right.
    space = 1.4 if curves[0].kind == "levels" else 1.08
    return Frame(low, high, min(max(space * max(tops), 0.01), 1.0))
