"""Dots and whiskers, one row each: rankings of variables, methods, estimates."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from varcal._text.numbers import number_text
from varcal.plotting._colours import ACTUAL, DENSITY, FAINT, GROUND
from varcal.plotting._plotly.layout import finish, layout, percent
from varcal.plotting._rankings import Dots, round_places
from varcal.plotting._words import escape, short


def draw(dots: Dots) -> Any:
    """Draw a ranking in a new figure."""
    figure = go.Figure()
    places = dots.places
    if dots.noise is not None:
        bar = {"color": DENSITY, "line": {"width": 0}}
        figure.add_trace(
            go.Bar(
                x=dots.noise, y=places, orientation="h", width=0.6, marker=bar, name="chance alone"
            )
        )
    whisker = {
        "type": "data",
        "symmetric": False,
        "array": np.maximum(dots.high - dots.value, 0.0),
        "arrayminus": np.maximum(dots.value - dots.low, 0.0),
        "width": 0,
    }
    marker = {
        "size": 9,
        "color": [ACTUAL if full else GROUND for full in dots.filled],
        "line": {"color": ACTUAL, "width": 2},
    }
    figure.add_trace(
        go.Scatter(
            x=dots.value,
            y=places,
            error_x=whisker | {"color": ACTUAL},
            mode="markers",
            marker=marker,
            name="estimate",
        )
    )
    if dots.plug_in is not None:
        cross = {"symbol": "x-thin", "size": 9, "line": {"color": FAINT, "width": 2}}
        figure.add_trace(
            go.Scatter(x=dots.plug_in, y=places, mode="markers", marker=cross, name="plug-in")
        )
    for value, name in dots.lines:
        figure.add_vline(
            x=value,
            line={"color": FAINT, "dash": "dash", "width": 1},
            annotation={"text": escape(name), "font": {"color": FAINT, "size": 11}},
            annotation_position="bottom right",
        )
    for place, text in zip(places, dots.texts, strict=False):
        figure.add_annotation(
            x=1,
            xref="paper",
            y=float(place),
            text=escape(short(text, 20)),
            showarrow=False,
            xanchor="left",
            xshift=4,
        )
    at, names, heads = dots.ticks
    shown = [escape(short(name)) for name in names]
    many = float(at[-1]) + 1
    figure.update_layout(**layout(escape(dots.title)))
    figure.update_layout(height=130 + round(28 * many), margin={"r": 120})
    span = {"rangemode": "tozero"} if dots.zero else {"range": list(dots.span)}
    ticks = percent() if dots.shares else {}
    if dots.errors:
        xs = round_places(*dots.span)
        ticks = {"tickvals": xs, "ticktext": [number_text(round(100 * x, 6)) for x in xs]}
    figure.update_xaxes(title_text=escape(dots.axis), **span, **ticks)
    figure.update_yaxes(
        tickvals=at,
        ticktext=[
            f"<b>{text}</b>" if head else text for text, head in zip(shown, heads, strict=True)
        ],
        range=[many - 0.4, -0.6],
    )
    return finish(figure)
