"""A curve as in the paper: actual against predicted error along a variable."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from varcal._measures.curve import Curve
from varcal._text.gaps import claim_of, marked_side
from varcal.plotting._colours import ACTUAL, DENSITY, GROUND, PREDICTED, PREDICTED_TEXT, SIDES
from varcal.plotting._plotly.layout import BAND, finish, layout, percent
from varcal.plotting._ranges import Frame, frame_of
from varcal.plotting._words import Sides, curve_note, curve_title, escape, short, sides


def draw(curve: Curve) -> Any:
    """Draw a curve in a new figure."""
    figure = make_subplots(rows=1, cols=1) if curve.kind == "levels" else _stacked([""])
    panel(figure, curve, 1, frame_of([curve]))
    figure.update_layout(**layout(escape(curve_title(curve))))
    if curve.kind == "levels":
        figure.update_layout(height=160 + 34 * len(curve.x))
        figure.update_xaxes(title_text=escape(f"{sides(curve).title}; {curve_note(curve)}"))
        figure.update_yaxes(title_text=escape(short(curve.variable)))
    else:
        note = f"{escape(short(curve.variable))}<br>{escape(curve_note(curve))}"
        figure.update_xaxes(title_text=note, row=2)
        figure.update_yaxes(title_text=escape(sides(curve).title), row=1)
    return finish(figure)


def _stacked(titles: list[str]) -> Any:
    """Return panels side by side, each over its histogram."""
    return make_subplots(
        rows=2,
        cols=len(titles),
        shared_xaxes=True,
        shared_yaxes=True,
        row_heights=[0.8, 0.2],
        vertical_spacing=0.07,
        horizontal_spacing=0.03,
        subplot_titles=titles if any(titles) else None,
    )


def stacked(curves: dict[str, Curve], titles: list[str]) -> Any:
    """Return the panels for several curves."""
    if next(iter(curves.values())).kind != "levels":
        return _stacked(titles)
    return make_subplots(
        rows=1, cols=len(titles), shared_yaxes=True, horizontal_spacing=0.04, subplot_titles=titles
    )


def panel(figure: Any, curve: Curve, column: int, frame: Frame) -> None:
    """Draw one curve into a column of a figure."""
    drawn = sides(curve)
    if curve.kind == "levels":
        _levels(figure, curve, drawn, column, frame)
        return
    x = values(curve.x, curve.kind)
    place = {"row": 1, "col": column}
    if curve.span == 0:
        figure.add_trace(_dots(x, drawn, "x"), **place)
        figure.add_trace(_dashes(x, drawn.predicted, "line-ew"), **place)
    else:
        for part, fill in ((drawn.low, None), (drawn.high, "tonexty")):
            figure.add_trace(
                go.Scatter(
                    x=x,
                    y=part,
                    line={"width": 0},
                    fill=fill,
                    fillcolor=BAND,
                    hoverinfo="skip",
                    mode="lines",
                ),
                **place,
            )
        for part, name, colour, dash in (
            (drawn.predicted, "predicted", PREDICTED, "dash"),
            (drawn.actual, "actual", ACTUAL, "solid"),
        ):
            line = {"color": colour, "dash": dash, "width": 2.5}
            figure.add_trace(go.Scatter(x=x, y=part, name=name, line=line, mode="lines"), **place)
    _foot(figure, curve, column)
    figure.update_yaxes(**percent(), range=[0, frame.top], row=1, col=column)
    if frame.labels:
        right = min(curve.x[-1], curve.histogram.edges[-1])
        ends = [float(np.interp(right, curve.x, part)) for part in (drawn.actual, drawn.predicted)]
        apart = 0 if abs(ends[0] - ends[1]) > 0.06 * frame.top else 7
        for k, (name, colour) in enumerate((("actual", ACTUAL), ("predicted", PREDICTED_TEXT))):
            figure.add_annotation(
                x=values(curve.histogram.edges[-1:], curve.kind)[0],
                y=ends[k],
                text=name,
                font={"color": colour},
                showarrow=False,
                xanchor="left",
                xshift=4,
                yshift=apart if ends[k] > ends[1 - k] else -apart,
                **place,
            )


def values(x: np.ndarray, kind: str) -> Any:
    """Return values of a variable as plotly takes them."""
    return np.array(np.round(x * 1e6), "M8[us]") if kind == "datetime" else x


def _foot(figure: Any, curve: Curve, column: int) -> None:
    """Draw the histogram, and above it the strip where the band excludes zero."""
    edges, share = curve.histogram.edges, curve.histogram.share
    place = {"row": 2, "col": column}
    middle = values((edges[1:] + edges[:-1]) / 2, curve.kind)
    unit = 1000 if curve.kind == "datetime" else 1
    figure.add_trace(
        go.Bar(
            x=middle,
            y=share,
            width=np.diff(edges) * unit,
            marker={"color": DENSITY, "line": {"width": 0}},
            name="rows",
        ),
        **place,
    )
    ends = values(edges[[0, -1]], curve.kind)
    figure.update_xaxes(range=list(ends), row=1, col=column)
    figure.update_xaxes(range=list(ends), row=2, col=column)
    figure.update_yaxes(showticklabels=False, row=2, col=column)
    top = float(share.max())
    step = float(np.diff(curve.x).min()) if len(curve.x) > 1 else 1.0
    pad = 0.35 * step if curve.span == 0 else 0.0
    for region in curve.regions:
        start = max(region.low - pad, edges[0])
        end = min(region.high + pad, edges[-1])
        if start > end:
            continue
        low, high = values(np.array([start, end]), curve.kind)
        figure.add_shape(
            type="rect",
            x0=low,
            x1=high,
            y0=1.1 * top,
            y1=1.5 * top,
            fillcolor=SIDES[region.direction],
            line={"width": 1, "color": SIDES[region.direction]},
            name=region.direction,
            **place,
        )
        mark = marked_side(1 if region.direction == "over" else -1, claim_of(curve.event))
        wide = (end - start) / (edges[-1] - edges[0]) > 0.12
        figure.add_annotation(
            x=values(np.array([(start + end) / 2]), curve.kind)[0],
            y=1.3 * top,
            text=mark if wide else mark[0],
            font={"color": GROUND if wide else SIDES[region.direction], "size": 11},
            yshift=0 if wide else 14,
            showarrow=False,
            **place,
        )
    figure.update_yaxes(range=[0, 1.55 * top], row=2, col=column)


def _dots(at: Any, drawn: Sides, along: str) -> Any:
    """Return dots with whiskers, along x or y."""
    across = "y" if along == "x" else "x"
    whisker = {
        "type": "data",
        "symmetric": False,
        "array": np.maximum(drawn.high - drawn.actual, 0.0),
        "arrayminus": np.maximum(drawn.actual - drawn.low, 0.0),
        "width": 0,
    }
    return go.Scatter(
        **{along: at, across: drawn.actual, f"error_{across}": whisker},
        mode="markers",
        name="actual",
        marker={"color": ACTUAL, "size": 8},
    )


def _dashes(x: Any, y: Any, symbol: str) -> Any:
    """Return short strokes for the prediction."""
    marker = {"symbol": symbol, "size": 12, "line": {"color": PREDICTED, "width": 3}}
    return go.Scatter(x=x, y=y, mode="markers", name="predicted", marker=marker)


def _levels(figure: Any, curve: Curve, drawn: Sides, column: int, frame: Frame) -> None:
    place = {"row": 1, "col": column}
    at = np.arange(len(curve.x))
    names = [
        f"{escape(short(curve.labels[int(k)], 24))}<br>n = {count:,}"
        for k, count in zip(curve.x, curve.counts, strict=True)
    ]
    figure.add_trace(_dashes(drawn.predicted, at, "line-ns"), **place)
    figure.add_trace(_dots(at, drawn, "y"), **place)
    figure.update_xaxes(**percent(), range=[0, frame.top], row=1, col=column)
    figure.update_yaxes(tickvals=at, ticktext=names, range=[len(at) - 0.4, -0.6], row=1, col=column)
    found = {int(region.low): region.direction for region in curve.regions}
    for k, place_y in zip(curve.x.astype(int), at, strict=True):
        if k in found:
            figure.add_annotation(
                x=float(drawn.high[place_y]),
                y=int(place_y),
                text=marked_side(1 if found[k] == "over" else -1, claim_of(curve.event)),
                font={"color": SIDES[found[k]], "size": 11},
                showarrow=False,
                xanchor="left",
                xshift=6,
                **place,
            )
    if frame.labels:
        worst = int(np.flatnonzero(curve.x == curve.worst)[0])
        for part, name, colour in (
            (drawn.actual, "actual", ACTUAL),
            (drawn.predicted, "predicted", PREDICTED_TEXT),
        ):
            figure.add_annotation(
                x=float(part[worst]),
                y=worst,
                text=name,
                font={"color": colour, "size": 11},
                showarrow=False,
                xanchor="left" if part[worst] < 0.1 * frame.top else "center",
                yshift=13,
                **place,
            )
