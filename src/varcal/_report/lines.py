"""Lines: the points of a curve that are drawn, none of which shows a single row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import Floats
from varcal._measures.curve_result import Curve
from varcal._measures.regions import value_label
from varcal._text.numbers import percent

#: The largest number of points of a curve, and of rows in a table of levels.
MOST_POINTS = 120
MOST_LEVELS = 30
#: A curve with fewer rows per point than this is drawn at evenly spaced points instead.
ROWS_PER_POINT, EVEN_POINTS = 5, 60
#: Dates that span more seconds than this (ten days) are written without the time of day.
MANY_DAYS = 864_000


@dataclass(frozen=True)
class Line:
    """A curve as it is drawn: fewer points, within the range of the chart.

    Attributes
    ----------
    kind : {"numeric", "datetime", "duration", "levels"}
        What x is: numbers, seconds since 1970, seconds, or 0, 1, … for levels.
    x, labels
        The values, and the same as text.
    actual, actual_low, actual_high, predicted : tuple of float
        The rate that happened with its simultaneous band, and the rate that the model said.
    n : tuple of int
        Rows of each level; none for numbers and dates.
    left_out : int
        Levels beyond those shown.
    """

    kind: str
    x: tuple[float, ...]
    labels: tuple[str, ...]
    actual: tuple[float, ...]
    actual_low: tuple[float, ...]
    actual_high: tuple[float, ...]
    predicted: tuple[float, ...]
    n: tuple[int, ...] = ()
    left_out: int = 0


def curve_line(curve: Curve, within: tuple[float, float] | None) -> tuple[Line, int]:
    """Return the points of a curve that are drawn, and the position of the one nearest v*."""
    series = _rates(curve)
    n: tuple[int, ...] = ()
    if curve.kind == "levels":
        rows = curve.counts
        keep = np.sort(np.argsort(-rows, kind="stable")[:MOST_LEVELS])
        x, series = curve.x[keep], [one[keep] for one in series]
        n = tuple(rows[keep].tolist())
    else:
        x, series = _drawn(curve, within, series)
    actual, low, high, predicted = (tuple(one.tolist()) for one in series)
    line = Line(
        kind="levels" if len(x) == 1 else curve.kind,
        x=tuple(x.tolist()),
        labels=tuple(value_text(curve, float(value)) for value in x),
        actual=actual,
        actual_low=low,
        actual_high=high,
        predicted=predicted,
        n=n,
        left_out=len(curve.x) - len(x) if n else 0,
    )
    return line, int(np.abs(x - curve.worst).argmin())


def score_line(curve: Curve) -> Line:
    """Return the points of the hit rate along the score that are drawn."""
    x, series = _drawn(curve, None, _rates(curve)[:3])
    actual, low, high = (tuple(one.tolist()) for one in series)
    return Line(
        kind="numeric",
        x=tuple(x.tolist()),
        labels=tuple(percent(value) for value in x),
        actual=actual,
        actual_low=low,
        actual_high=high,
        predicted=tuple(x.tolist()),
    )


def _rates(curve: Curve) -> list[Floats]:
    """Return the rate that happened, its band and the rate that was said.

    The line is the centre of the simultaneous band of the gap, from which v*, VCE and regions
    come, so that the band excludes the prediction exactly in the regions.
    """
    predicted = _predicted(curve)
    banded = np.isfinite(curve.band_low) & np.isfinite(curve.band_high)
    low = np.where(banded, curve.band_low, curve.gap)
    high = np.where(banded, curve.band_high, curve.gap)
    actual = predicted - (low + high) / 2
    return [
        np.clip(one, 0.0, 1.0) for one in (actual, predicted - high, predicted - low, predicted)
    ]


def _predicted(curve: Curve) -> Floats:
    low, high = curve.predicted_low, curve.predicted_high
    clipped = ~((low > 0) & (high < 1))
    return np.where(clipped, curve.predicted, (low + high) / 2)


def value_text(curve: Curve, value: float) -> str:
    """Write a value of a variable; dates that span many days have no time of day."""
    text = value_label(value, curve.kind, curve.labels, curve.zone)
    if curve.kind == "datetime" and curve.x[-1] - curve.x[0] > MANY_DAYS:
        return text.split(" ")[0]
    return text


def _drawn(
    curve: Curve, within: tuple[float, float] | None, series: list[Floats]
) -> tuple[Floats, list[Floats]]:
    """Keep to the range of the chart, and to points that rest on several rows."""
    x = curve.x
    inside = np.arange(len(x))
    if within is not None:
        inside = np.flatnonzero((x >= within[0]) & (x <= within[1]))
        inside = inside if len(inside) > 1 else np.arange(len(x))
    if len(x) > 1 and curve.n_rows < ROWS_PER_POINT * len(x):
        even = np.linspace(x[inside[0]], x[inside[-1]], EVEN_POINTS)
        return even, [np.interp(even, x, one) for one in series]
    if len(inside) > MOST_POINTS:
        even = np.linspace(x[inside[0]], x[inside[-1]], MOST_POINTS)
        nearest = inside[np.abs(x[inside][:, None] - even).argmin(axis=0)]
        worst = inside[np.abs(x[inside] - curve.worst).argmin()]
        inside = np.unique([*nearest, worst])
    return x[inside], [one[inside] for one in series]
