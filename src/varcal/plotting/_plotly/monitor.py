"""A monitor over time: its evidence, its strongest cell, and cells × time coloured by gap."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from varcal._monitor.view import FULL_COLOUR, HeatMap, MonitorView
from varcal._text.gaps import claim_name, gap_said
from varcal.plotting._colours import ACTUAL, ALARM, FAINT, GROUND, INK, OVER, PREDICTED, UNDER
from varcal.plotting._monitor_words import (
    MOST_MAPS,
    evidence_axis,
    evidence_shown,
    headline,
    rate_names,
    rate_range,
    shades,
    time_ticks,
)
from varcal.plotting._plotly.layout import BAND, finish, layout, percent
from varcal.plotting._words import escape, short


def draw(view: MonitorView) -> Any:
    """Draw a new figure."""
    maps = view.maps[:MOST_MAPS]
    titles = ["Evidence that a gap exceeds the tolerance anywhere"]
    heights = [150.0]
    if view.shown is not None:
        titles.append(escape(rate_names(view)[2]))
        heights.append(180.0)
    for one in maps:
        titles.append(escape(f"Gap by {short(one.variable)} ({claim_name(one.claim)}) and time"))
        heights.append(30 + 16.0 * len(one.rows))
    whole = sum(heights) + 60 * len(heights)
    figure = make_subplots(
        rows=len(heights),
        cols=1,
        shared_xaxes=True,
        row_heights=heights,
        vertical_spacing=50 / whole,
        subplot_titles=titles,
    )
    _evidence(figure, view)
    if view.shown is not None:
        _rates(figure, view)
    for k, one in enumerate(maps, len(heights) - len(maps) + 1):
        _heat(figure, one, view, k)
    text = escape(headline(view)).replace("\n", "<br>")
    figure.update_layout(**layout(f"<b>{text}</b>"))
    figure.update_layout(width=820, height=whole + 110, margin={"t": 90, "r": 90, "l": 120})
    figure.update_annotations(font_size=12, x=0, xanchor="left")
    ticks, names = time_ticks(view)
    figure.update_xaxes(range=[float(view.columns[0]), max(float(view.columns[-1]), 1.0)])
    figure.update_xaxes(tickvals=ticks, ticktext=[escape(name) for name in names])
    for reset in view.resets:
        figure.add_vline(x=reset, line={"color": FAINT, "dash": "dot", "width": 1})
    if view.since is not None:
        figure.add_vline(x=view.since, line={"color": ALARM, "width": 1.5})
    return finish(figure)


def _evidence(figure: Any, view: MonitorView) -> None:
    low, high, ticks, texts = evidence_axis(view)
    line = go.Scatter(
        x=view.x,
        y=evidence_shown(view),
        mode="lines",
        line={"color": INK, "width": 2},
        customdata=[escape(name) for name in view.ids],
        hovertemplate="%{customdata}: %{y:.3g}<extra></extra>",
        name="evidence",
    )
    figure.add_trace(line, row=1, col=1)
    figure.add_hline(
        y=view.status.threshold,
        line={"color": ALARM, "dash": "dash", "width": 1.5},
        row=1,
        col=1,
    )
    span = np.log10([low, high]).tolist()
    figure.update_yaxes(type="log", range=span, tickvals=ticks, ticktext=texts, row=1, col=1)


def _rates(figure: Any, view: MonitorView) -> None:
    says, happens, _ = rate_names(view)
    x, _, rate = view.rates
    dots = {"color": ACTUAL, "size": 4, "opacity": 0.5}
    figure.add_trace(go.Scatter(x=x, y=rate, mode="markers", marker=dots, name=happens), 2, 1)
    for stretch in (view.before, view.after):
        if stretch is None:
            continue
        there = np.concatenate([stretch.x, stretch.x[::-1]])
        edge = np.concatenate([stretch.high, stretch.low[::-1]])
        band = go.Scatter(
            x=there, y=edge, fill="toself", fillcolor=BAND, line={"width": 0}, hoverinfo="skip"
        )
        actual = go.Scatter(
            x=stretch.x, y=stretch.happens, mode="lines", line={"color": ACTUAL}, name=happens
        )
        dash = {"color": PREDICTED, "dash": "dash"}
        said = go.Scatter(x=stretch.x, y=stretch.says, mode="lines", line=dash, name=says)
        for trace in (band, actual, said):
            figure.add_trace(trace, 2, 1)
    figure.update_yaxes(**percent(), range=list(rate_range(view)), row=2, col=1)


def _heat(figure: Any, one: HeatMap, view: MonitorView, row: int) -> None:
    gaps = np.array([cell.gap for cell in one.rows])
    names = [escape(short(cell.text, 20)) for cell in one.rows]
    trace = go.Heatmap(
        x=view.columns,
        y=np.arange(len(names)),
        z=shades(one),
        customdata=100 * gaps,
        zmin=-FULL_COLOUR,
        zmax=FULL_COLOUR,
        colorscale=[[0, UNDER], [0.5, GROUND], [1, OVER]],
        showscale=False,
        hovertemplate="gap %{customdata:+.1f} points<extra></extra>",
        name=f"{gap_said(1, one.claim)} or {gap_said(-1, one.claim)}",
    )
    figure.add_trace(trace, row, 1)
    figure.update_yaxes(
        tickvals=np.arange(len(names)),
        ticktext=names,
        range=[len(names) - 0.5, -0.5],
        row=row,
        col=1,
    )
