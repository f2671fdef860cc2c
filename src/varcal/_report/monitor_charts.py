"""The charts of a monitor: evidence over time, rates of one cell, a strip per cell."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

import numpy as np
from markupsafe import Markup

from varcal._monitor.history import FULL_COLOUR, HeatRow, MonitorView
from varcal._monitor.monitor import evidence_text
from varcal._report import svg
from varcal._text import number_text, percent, points, short

#: The height of the plots, in pixels.
HEIGHT = 210
#: The longest id under an axis, and in the text of a point.
_UNDER, _IN_TEXT = 12, 60


def evidence_chart(view: MonitorView) -> Markup:
    """Draw the evidence against its threshold."""
    x, alarm_at = _time_axis(view), view.status.alarm_at
    low, high = view.evidence_ends
    ticks = tuple((float(k), number_text(10.0**k)) for k in view.evidence_powers)
    y = svg.Axis(math.log10(low), math.log10(high), ticks)
    at = svg.level(y, math.log10(alarm_at), HEIGHT)
    texts = [f"evidence {evidence_text(value)}" for value in view.evidence.tolist()]
    return svg.chart(
        svg.y_ticks(y, HEIGHT),
        svg.x_ticks(x, HEIGHT),
        _marks(view, x),
        svg.box(
            svg.path(x, y, view.x, np.log10(np.maximum(view.evidence, low)), "gap"), height=HEIGHT
        ),
        svg.el("line", x1=0, x2="100%", y1=at, y2=at, class_="limit"),
        svg.el("text", "alarm", x=4, y=at, dy="-0.4em", class_="name bad"),
        _blocks(view, x, texts),
        key="evidence",
        title="Evidence over time",
        text=f"Evidence is now {evidence_text(view.status.evidence)}; an alarm is raised at "
        f"{evidence_text(alarm_at)}.",
        class_="time",
    )


def rate_chart(view: MonitorView, words: Mapping[str, str]) -> Markup:
    """Draw what the model says and what happens in the cell with the most evidence."""
    assert view.shown is not None
    place = short(view.shown.label, _IN_TEXT)
    x, stretches = _time_axis(view), [one for one in (view.before, view.after) if one is not None]
    middles, says, happens = view.rates
    held = happens[np.isfinite(happens)]
    ends = np.quantile(held, [0.02, 0.98]).tolist() if held.size else [0.0, 1.0]
    for one in stretches:
        rates = np.concatenate([one.predicted, one.observed, one.low[-1:], one.high[-1:]])
        ends += rates[np.isfinite(rates)].tolist()
    y = svg.share_axis(min(max(ends), 1.0), max(min(ends), 0.0), many=4)
    shapes, names = [], []
    for one in stretches:
        shapes.append(svg.band(x, y, one.x.tolist(), one.low.tolist(), one.high.tolist(), "band"))
        shapes.append(svg.path(x, y, one.x, one.observed, "actual"))
        shapes.append(svg.path(x, y, one.x, one.predicted, "predicted"))
        names = _names(one.predicted[-1], one.observed[-1], y, words)
    dots = [
        svg.el("circle", cx=x.percent(a), cy=svg.level(y, b, HEIGHT), r=1.8, class_="speck")
        for a, b in zip(middles.tolist(), happens.tolist(), strict=True)
        if y.low <= b <= y.high
    ]
    texts = [
        f"{words['predicted']} {percent(a)}, {words['actual']} {percent(b)}"
        for a, b in zip(says.tolist(), happens.tolist(), strict=True)
    ]
    return svg.chart(
        svg.y_ticks(y, HEIGHT),
        svg.x_ticks(x, HEIGHT),
        _marks(view, x),
        *dots,
        svg.box(*shapes, height=HEIGHT),
        *names,
        _blocks(view, x, texts),
        key="rates",
        title=f"{words['actual']} and {words['predicted']} where {place}",
        text="Dots are single batches, lines are means so far, the band is their interval.",
        class_="time",
    )


def heat_strip(row: HeatRow, view: MonitorView, words: Mapping[str, str]) -> Markup:
    """Draw the gaps of one cell over time: the larger, the stronger; pale what may be chance."""
    x, edges = _time_axis(view), view.columns.tolist()
    shapes = []
    for k, (gap, clear) in enumerate(zip(row.gap.tolist(), row.clear.tolist(), strict=True)):
        if gap != gap:
            continue
        side = "over" if gap > 0 else "under"
        strength = f"{min(abs(gap) / FULL_COLOUR, 1.0) * (1.0 if clear else 0.25):.2f}"
        look = {"height": 18, "fill_opacity": strength, "class_": side}
        shape = svg.bar(x, edges[k], edges[k + 1], **look)
        text = f"{points(abs(gap))} points {words[side]}{'' if clear else ', may be chance'}"
        shapes.append(svg.tip(shape, f"{_when(view, edges[k], edges[k + 1])}: {text}"))
    if view.since is not None:
        place = x.percent(view.since)
        shapes.append(svg.el("line", x1=place, x2=place, y1=-3, y2=21, class_="since"))
    return svg.el("svg", *shapes, class_="heat", aria_hidden="true")


def _time_axis(view: MonitorView, many: int = 3) -> svg.Axis:
    """Return the axis of batches, with as many of their ids as a phone has room for."""
    low, high = float(view.columns[0]), max(float(view.columns[-1]), 1.0)
    which = np.unique(np.linspace(0, max(len(view.x) - 1, 0), many).round().astype(int))
    ticks = tuple((float(view.x[k]), short(view.ids[k], _UNDER)) for k in which[: len(view.x)])
    return svg.Axis(low, high, ticks)


def _blocks(view: MonitorView, x: svg.Axis, texts: list[str]) -> Markup:
    """Lay a column over each block of batches that says what is drawn there."""
    edges = [float(view.columns[0]), *view.x.tolist()]
    whens = [_when(view, *ends) for ends in pairwise(edges)]
    shown = [f"{when}: {text}" for when, text in zip(whens, texts, strict=True)]
    return svg.columns(x, edges, shown, HEIGHT)


def _when(view: MonitorView, start: float, end: float) -> str:
    """Name the batches from one number to another by the id of the last one."""
    last = short(view.ids[int(np.searchsorted(view.x, end))], _IN_TEXT)
    return last if end - start <= 1 else f"{end - start:.0f} batches to {last}"


def _names(says: float, happens: float, y: svg.Axis, words: Mapping[str, str]) -> list[Markup]:
    """Write the names of both lines at their ends, apart from each other."""
    pairs = sorted([(says, "predicted"), (happens, "actual")], reverse=True)
    top, bottom = (HEIGHT * (1 - y.place(value)) for value, _ in pairs)
    places = [top - 8, bottom + (22 if bottom - top < 34 else 16)]
    return [
        svg.el("text", words[name], x="100%", y=f"{place:.0f}", class_=f"name end {name}")
        for place, (_, name) in zip(places, pairs, strict=True)
    ]


def _marks(view: MonitorView, x: svg.Axis) -> Markup:
    """Mark where the change began, and resets."""
    made = [
        svg.el("line", x1=x.percent(at), x2=x.percent(at), y1=0, y2=HEIGHT, class_="axis faint")
        for at in view.resets
    ]
    if view.since is not None:
        place, late = x.percent(view.since), x.place(view.since) > 0.6
        made.append(svg.el("line", x1=place, x2=place, y1=-12, y2=HEIGHT, class_="since"))
        look = {"dx": -5, "class_": "name bad end"} if late else {"dx": 5, "class_": "name bad"}
        made.append(svg.el("text", "change began", x=place, y=-4, **look))
    return Markup("").join(made)
