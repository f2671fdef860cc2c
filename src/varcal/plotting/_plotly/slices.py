"""Slices, one row each: what the model says and what happens."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go

from varcal._slices.slices_result import Slices
from varcal.plotting._colours import ACTUAL, GROUND, PREDICTED
from varcal.plotting._plotly.layout import finish, layout, percent
from varcal.plotting._slices_view import SlicesView
from varcal.plotting._words import escape


def draw(found: Slices) -> Any:
    """Draw slices in a new figure."""
    view = SlicesView.of(found)
    figure = go.Figure()
    for k, line in enumerate(view.lines):
        figure.add_trace(
            go.Scatter(
                x=[line.says, line.happens],
                y=[k, k],
                mode="lines",
                line={"color": line.colour, "width": 5},
                opacity=0.45,
                hoverinfo="skip",
                showlegend=False,
            )
        )
        figure.add_annotation(
            x=1,
            xref="paper",
            y=k,
            text=f"{escape(line.size)}<br>{escape(line.rows)}",
            showarrow=False,
            xanchor="left",
            xshift=8,
            align="left",
            font={"size": 11},
        )
    places = list(range(len(view.lines)))
    happens = [line.happens for line in view.lines]
    figure.add_trace(
        go.Scatter(
            x=happens,
            y=places,
            mode="markers",
            name=view.happens,
            marker={"color": ACTUAL, "size": 11},
            error_x={
                "type": "data",
                "symmetric": False,
                "array": [max(line.high - line.happens, 0.0) for line in view.lines],
                "arrayminus": [max(line.happens - line.low, 0.0) for line in view.lines],
                "color": ACTUAL,
                "thickness": 1.2,
                "width": 0,
            },
            hovertemplate="happens %{x:.1%}<extra></extra>",
        )
    )
    marker = {"color": GROUND, "size": 11, "line": {"color": PREDICTED, "width": 2.5}}
    figure.add_trace(
        go.Scatter(
            x=[line.says for line in view.lines],
            y=places,
            mode="markers",
            name=view.says,
            marker=marker,
            hovertemplate="says %{x:.1%}<extra></extra>",
        )
    )
    figure.update_layout(**layout(escape(view.title)))
    top = {"orientation": "h", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom"}
    figure.update_layout(
        width=820,
        height=200 + 58 * max(len(view.lines), 1),
        showlegend=True,
        legend=top,
        margin={"t": 90, "r": 230, "b": 70},
    )
    figure.update_xaxes(
        title_text=f"{escape(view.axis)}<br><sup>{escape(view.note)}</sup>", **percent()
    )
    figure.update_yaxes(
        tickvals=places,
        ticktext=[escape(line.name).replace("\n", "<br>") for line in view.lines],
        range=[max(len(view.lines), 1) - 0.4, -0.6],
    )
    return finish(figure)
