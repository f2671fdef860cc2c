"""The charts of a monitor: evidence over time, rates of one cell, a strip per cell."""

from __future__ import annotations

import math

import numpy as np

from varcal._monitor.status import evidence_text
from varcal._monitor.view import FULL_COLOUR, HeatRow, MonitorView
from varcal._report.claim_words import claim_words
from varcal._report.html.axes import Axis, share_axis
from varcal._report.html.chart_parts import band, box, path, svg, y_ticks
from varcal._report.html.markup import Markup, el
from varcal._text.numbers import number_text

#: The height of the plots, in pixels.
HEIGHT = 210
#: The longest id under an axis.
_LONGEST = 12


def time_axis(view: MonitorView, many: int = 3) -> Axis:
    """Return the axis of batches, with as many of their ids as a phone has room for."""
    low, high = float(view.columns[0]), max(float(view.columns[-1]), 1.0)
    if not len(view.x):
        return Axis(low, high, ())
    which = np.unique(np.linspace(0, len(view.x) - 1, many).round().astype(int))
    return Axis(low, high, tuple((float(view.x[k]), _short(view.ids[k])) for k in which))


def _short(id: str) -> str:
    """Return an id that fits under an axis."""
    return id if len(id) <= _LONGEST else f"{id[: _LONGEST - 1]}…"


def _times(x: Axis) -> Markup:
    """Write the ids under the plot; those at its ends do not stick out."""
    made = []
    for at, text in x.ticks:
        place = x.place(at)
        anchor = " end" if place > 0.85 else " middle" if place > 0.15 else ""
        made.append(
            el("line", x1=x.percent(at), x2=x.percent(at), y1=0, y2=HEIGHT, class_="grid faint")
        )
        made.append(el("text", text, x=x.percent(at), y=HEIGHT, dy="1.3em", class_=f"tick{anchor}"))
    return Markup("".join(made))


def evidence_chart(view: MonitorView) -> Markup:
    """Draw the evidence against its threshold."""
    x, alarm_at = time_axis(view), view.status.alarm_at
    low, high = view.evidence_ends
    ticks = tuple((float(k), number_text(10.0**k)) for k in view.evidence_powers)
    y = Axis(math.log10(low), math.log10(high), ticks)
    logs = np.log10(np.maximum(view.evidence, low)).tolist()
    at = f"{HEIGHT * (1 - y.place(math.log10(alarm_at))):.1f}"
    return svg(
        y_ticks(y, height=HEIGHT),
        _times(x),
        _marks(view, x),
        box(path(x, y, view.x.tolist(), logs, "gap"), y=0, height=HEIGHT),
        el("line", x1=0, x2="100%", y1=at, y2=at, class_="limit"),
        el("text", "alarm", x=4, y=at, dy="-0.4em", class_="name bad"),
        number="evidence",
        title="Evidence over time",
        text=f"Evidence is now {evidence_text(view.status.evidence)}; an alarm is raised at "
        f"{evidence_text(alarm_at)}.",
        class_="time",
    )


def rate_chart(view: MonitorView) -> Markup:
    """Draw what the model says and what happens in the cell with the most evidence."""
    assert view.shown is not None
    words = claim_words(view.shown.claim)
    x = time_axis(view)
    stretches = [one for one in (view.before, view.after) if one is not None]
    _, _, dots = view.rates
    held = dots[np.isfinite(dots)]
    ends = np.quantile(held, [0.02, 0.98]).tolist() if held.size else [0.0, 1.0]
    for one in stretches:
        ends += [*_finite(one.predicted), *_finite(one.observed), one.low[-1], one.high[-1]]
    y = share_axis(min(max(ends), 1.0), max(min(ends), 0.0), many=4)
    shapes, names = [], []
    for one in stretches:
        xs = one.x.tolist()
        shapes.append(band(x, y, xs, one.low.tolist(), one.high.tolist(), "band"))
        shapes.append(path(x, y, xs, one.observed.tolist(), "actual"))
        shapes.append(path(x, y, xs, one.predicted.tolist(), "predicted"))
    points = [
        el("circle", cx=x.percent(a), cy=f"{HEIGHT * (1 - y.place(b)):.1f}", r=1.8, class_="speck")
        for a, b in zip(view.rates[0].tolist(), dots.tolist(), strict=True)
        if b == b and y.low <= b <= y.high
    ]
    if stretches:
        last = stretches[-1]
        pairs = [
            (float(last.predicted[-1]), words.predicted, "predicted"),
            (float(last.observed[-1]), words.actual, "actual"),
        ]
        pairs.sort(reverse=True)
        places = [HEIGHT * (1 - y.place(value)) for value, _, _ in pairs]
        if places[1] - places[0] < 34:
            places = [places[0] - 8, places[1] + 22]
        else:
            places = [places[0] - 8, places[1] + 16]
        for place, (_, text, look) in zip(places, pairs, strict=True):
            names.append(el("text", text, x="100%", y=f"{place:.0f}", class_=f"name end {look}"))
    return svg(
        y_ticks(y, height=HEIGHT),
        _times(x),
        _marks(view, x),
        Markup("".join(points)),
        box(*shapes, y=0, height=HEIGHT),
        Markup("".join(names)),
        number="rates",
        title=f"{words.actual} and {words.predicted} where {view.shown.label}",
        text="Dots are single batches, lines are means so far, the band is their interval.",
        class_="time",
    )


def _finite(values: np.ndarray) -> list[float]:
    held = values[np.isfinite(values)]
    return [float(held.min()), float(held.max())] if held.size else []


def _marks(view: MonitorView, x: Axis) -> Markup:
    """Mark where the change began, and resets."""
    made = [
        el("line", x1=x.percent(at), x2=x.percent(at), y1=0, y2=HEIGHT, class_="axis faint")
        for at in view.resets
    ]
    if view.since is not None:
        place = x.percent(view.since)
        late = x.place(view.since) > 0.6
        made.append(el("line", x1=place, x2=place, y1=-12, y2=HEIGHT, class_="since"))
        made.append(
            el(
                "text",
                "change began",
                x=place,
                y=-4,
                dx=-5 if late else 5,
                class_=f"name bad{' end' if late else ''}",
            )
        )
    return Markup("".join(made))


def heat_strip(row: HeatRow, view: MonitorView) -> Markup:
    """Draw the gaps of one cell over time: the larger, the stronger; pale what may be chance."""
    x = time_axis(view)
    shapes = []
    for k, (gap, clear) in enumerate(zip(row.gap.tolist(), row.clear.tolist(), strict=True)):
        if gap != gap:
            continue
        left, right = x.place(float(view.columns[k])), x.place(float(view.columns[k + 1]))
        strength = min(abs(gap) / FULL_COLOUR, 1.0) * (1.0 if clear else 0.25)
        shapes.append(
            el(
                "rect",
                x=f"{100 * left:.2f}%",
                y=0,
                width=f"{100 * (right - left):.2f}%",
                height=18,
                fill_opacity=f"{strength:.2f}",
                class_="over" if gap > 0 else "under",
            )
        )
    if view.since is not None:
        place = x.percent(view.since)
        shapes.append(el("line", x1=place, x2=place, y1=-3, y2=21, class_="since"))
    return el("svg", shapes, class_="heat", aria_hidden="true")
