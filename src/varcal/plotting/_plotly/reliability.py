"""The reliability diagram."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from varcal._measures.reliability import Reliability
from varcal.plotting._colours import ACTUAL, DENSITY, FAINT, INK
from varcal.plotting._plotly.layout import BAND, finish, layout, percent
from varcal.plotting._words import escape, estimate_title, reliability_names


def draw(found: Reliability) -> Any:
    """Draw the diagram in a new figure."""
    figure = make_subplots(
        rows=2, cols=1, shared_xaxes=True, row_heights=[0.85, 0.15], vertical_spacing=0.03
    )
    top = {"row": 1, "col": 1}
    grey = "rgba(195, 201, 209, 0.6)"
    _band(figure, found.confidence, found.consistent_low, found.consistent_high, grey)
    line = {"color": FAINT, "dash": "dash", "width": 1}
    figure.add_trace(
        go.Scatter(x=[0, 1], y=[0, 1], mode="lines", line=line, name="calibrated"), **top
    )
    if found.curve.span > 0:
        _band(figure, found.score, found.smooth_low, found.smooth_high, BAND)
        smooth = {"color": ACTUAL, "width": 2.5}
        figure.add_trace(
            go.Scatter(x=found.score, y=found.smooth, mode="lines", line=smooth, name="smooth"),
            **top,
        )
    whisker = {
        "type": "data",
        "symmetric": False,
        "array": np.maximum(found.accuracy_high - found.accuracy, 0.0),
        "arrayminus": np.maximum(found.accuracy - found.accuracy_low, 0.0),
        "width": 0,
    }
    figure.add_trace(
        go.Scatter(
            x=found.confidence,
            y=found.accuracy,
            error_y=whisker,
            mode="markers",
            marker={"color": INK, "size": 7},
            name="bins",
            text=[f"n = {count:,}" for count in found.counts],
        ),
        **top,
    )
    edges = found.histogram.edges
    figure.add_trace(
        go.Bar(
            x=(edges[1:] + edges[:-1]) / 2,
            y=found.histogram.share,
            width=np.diff(edges),
            marker={"color": DENSITY, "line": {"width": 0}},
            name="rows",
        ),
        row=2,
        col=1,
    )
    figure.update_layout(**layout(escape(estimate_title(found.ece))))
    figure.update_layout(width=480, height=560)
    names = reliability_names(found)
    figure.update_xaxes(**percent(), range=[0, 1])
    figure.update_yaxes(**percent(), range=[0, 1.001], title_text=names[1], row=1)
    figure.update_yaxes(showticklabels=False, row=2)
    note = f"{names[0]}<br>n = {found.n_rows:,}; grey band: chance alone"
    figure.update_xaxes(title_text=note, row=2)
    return finish(figure)


def _band(figure: Any, x: Any, low: Any, high: Any, colour: str) -> None:
    for part, fill in ((low, None), (high, "tonexty")):
        figure.add_trace(
            go.Scatter(
                x=x,
                y=part,
                mode="lines",
                line={"width": 0},
                fill=fill,
                fillcolor=colour,
                hoverinfo="skip",
            ),
            row=1,
            col=1,
        )
