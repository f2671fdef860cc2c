"""Lines: the points of a curve that are drawn, none of which shows a single row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from varcal._measures.curve import Curve
from varcal._measures.regions import value_label
from varcal._text.numbers import percent
from varcal.report.audit.summary import Line
from varcal.report.html.axes import number_text
from varcal.report.words import Wording

Array = NDArray[np.float64]

#: The largest number of points of a curve, and of rows in a chart of levels.
MOST_POINTS = 120
MOST_LEVELS = 30
#: A curve with fewer rows per point than this is drawn at evenly spaced points instead.
ROWS_PER_POINT, EVEN_POINTS = 5, 60
#: Dates that span more seconds than this (ten days) are written without the time of day.
MANY_DAYS = 864_000


def curve_line(
    curve: Curve, within: tuple[float, float] | None, words: Wording
) -> tuple[Line, int]:
    """Return the points of a curve that are drawn, and the position of the one nearest v*."""
    error, predicted = centre(curve)
    ends = [curve.error_low, curve.error_high]
    series = [error, *(ends[::-1] if words.risk else ends), predicted]
    n: tuple[int, ...] = ()
    if curve.kind == "levels":
        rows = curve.counts
        keep = np.sort(np.argsort(-rows, kind="stable")[:MOST_LEVELS])
        x, series = curve.x[keep], [one[keep] for one in series]
        n = tuple(rows[keep].tolist())
    else:
        x, series = _drawn(curve, within, series)
    actual, low, high, expected = (_rates(one, complement=words.risk) for one in series)
    line = Line(
        kind="levels" if len(x) == 1 else curve.kind,
        x=tuple(x.tolist()),
        labels=tuple(value_text(curve, float(value)) for value in x),
        actual=actual,
        actual_low=low,
        actual_high=high,
        predicted=expected,
        n=n,
        left_out=len(curve.x) - len(x) if n else 0,
    )
    return line, int(np.abs(x - curve.worst).argmin())


def score_line(curve: Curve) -> Line:
    """Return the points of the hit rate along the score that are drawn."""
    x, series = _drawn(curve, None, [centre(curve)[0], curve.error_high, curve.error_low])
    actual, low, high = (_rates(one, complement=True) for one in series)
    return Line(
        kind="numeric",
        x=tuple(x.tolist()),
        labels=tuple(percent(value) for value in x),
        actual=actual,
        actual_low=low,
        actual_high=high,
        predicted=tuple(x.tolist()),
    )


def centre(curve: Curve) -> tuple[Array, Array]:
    """Return the estimates at the centre of the bands, from which v*, VCE and regions come."""
    low, high = curve.predicted_error_low, curve.predicted_error_high
    clipped = (low <= 0) | (high >= 1)
    predicted = np.where(clipped, curve.predicted_error, (low + high) / 2)
    gap = (curve.band_low + curve.band_high) / 2
    return np.clip(predicted + gap, curve.error_low, curve.error_high), predicted


def value_text(curve: Curve, value: float) -> str:
    """Write a value of a variable; dates that span many days have no time of day."""
    text = value_label(value, curve.kind, curve.labels, curve.zone)
    if curve.kind == "numeric":
        return number_text(float(f"{value:.4g}") if abs(value) < 1e4 else round(value))
    if curve.kind == "datetime" and curve.x[-1] - curve.x[0] > MANY_DAYS:
        return text.split(" ")[0]
    return text


def _drawn(
    curve: Curve, within: tuple[float, float] | None, series: list[Array]
) -> tuple[Array, list[Array]]:
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


def _rates(values: Array, *, complement: bool) -> tuple[float, ...]:
    rates = np.clip(1 - values if complement else values, 0.0, 1.0)
    return tuple(rates.tolist())
