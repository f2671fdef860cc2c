"""The gap over two variables: a heat map, curves by level, or a table of levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from varcal._surfaces.surface_result import Surface
from varcal._surfaces.view import SurfaceView, ticks
from varcal.plotting._colours import DENSITY, FAINT, FEW, INK, OVER, UNDER, shade
from varcal.plotting._plotly.layout import finish, layout
from varcal.plotting._words import escape, short

#: Panels of curves side by side.
COLUMNS = 4


def draw(found: Surface) -> Any:
    """Draw a surface in a new figure."""
    view = SurfaceView.of(found)
    if view.kind == "strips":
        return _strips(view)
    figure = make_subplots(
        rows=2,
        cols=2,
        row_heights=[0.1, 0.9],
        column_widths=[0.9, 0.1],
        horizontal_spacing=0.01,
        vertical_spacing=0.01,
    )
    _cells(figure, view)
    if view.kind == "table":
        _numbers(figure, view)
    for k, counts in enumerate((view.n.sum(axis=0), view.n.sum(axis=1))):
        middle = np.arange(len(counts)) + 0.5
        bars: dict[str, Any] = {"x": middle, "y": counts}
        if k:
            bars = {"x": counts, "y": middle, "orientation": "h"}
        bar = go.Bar(**bars, marker={"color": DENSITY}, hovertemplate="%{y} rows<extra></extra>")
        if k:
            bar.hovertemplate = "%{x} rows<extra></extra>"
        figure.add_trace(bar, row=1 if k == 0 else 2, col=1 if k == 0 else 2)
    figure.update_layout(**layout(_lines(view.title)))
    height = 560 if view.kind == "map" else 260 + 34 * len(view.up)
    width = 680 if view.kind == "map" else 360 + 52 * len(view.across)
    figure.update_layout(
        width=max(width, 680), height=height, bargap=0.1, margin={"t": 80, "b": 90}
    )
    for axis, update in ((view.across, figure.update_xaxes), (view.up, figure.update_yaxes)):
        at, texts = ticks(axis)
        update(
            tickvals=at,
            ticktext=[escape(text) for text in texts],
            range=[0, len(axis)],
            title_text=escape(short(axis.name, 40)),
            row=2,
            col=1,
        )
    finish(figure)
    hidden: dict[str, Any] = {"visible": False}
    figure.update_xaxes(range=[0, len(view.across)], **hidden, row=1, col=1)
    figure.update_yaxes(**hidden, row=1, col=1)
    figure.update_xaxes(**hidden, row=2, col=2)
    figure.update_yaxes(range=[0, len(view.up)], **hidden, row=2, col=2)
    note = f"{escape(short(view.across.name, 40))}<br><sup>{escape(view.legend)}</sup>"
    figure.update_xaxes(title_text=note, row=2, col=1)
    return figure


def _cells(figure: Any, view: SurfaceView) -> None:
    """Draw cells, those that may be zero in pale colours, and the outline of the others."""
    height, width = view.gap.shape
    x, y = np.arange(width) + 0.5, np.arange(height) + 0.5
    shown = 100 * view.most * view.strength
    texts = [
        [escape(view.hover(row, column)).replace("\n", "<br>") for column in range(width)]
        for row in range(height)
    ]
    few = np.where(~view.judged & (view.n > 0), 1.0, np.nan)
    grey = [[0, FEW], [1, FEW]]
    options: dict[str, Any] = {"x": x, "y": y, "text": texts, "hoverinfo": "text"}
    figure.add_trace(go.Heatmap(z=few, colorscale=grey, showscale=False, **options), row=2, col=1)
    figure.add_trace(
        go.Heatmap(
            z=shown,
            zmin=-100 * view.most,
            zmax=100 * view.most,
            colorscale=[[0, UNDER], [0.5, "#ffffff"], [1, OVER]],
            colorbar={"title": {"text": escape(view.scale), "side": "right"}, "thickness": 12},
            **options,
        ),
        row=2,
        col=1,
    )
    lines_x: list[float | None] = []
    lines_y: list[float | None] = []
    for (x0, y0), (x1, y1) in view.outline:
        lines_x += [x0, x1, None]
        lines_y += [y0, y1, None]
    line = {"color": INK, "width": 1.6}
    figure.add_trace(
        go.Scatter(x=lines_x, y=lines_y, mode="lines", line=line, hoverinfo="skip"), row=2, col=1
    )


def _numbers(figure: Any, view: SurfaceView) -> None:
    """Write the gap and the rows into each cell."""
    for row, column in np.ndindex(view.gap.shape):
        if not view.n[row, column]:
            continue
        text = "<br>".join(view.cell_lines(row, column))
        figure.add_annotation(
            x=column + 0.5,
            y=row + 0.5,
            text=f"<b>{text}</b>" if view.sure[row, column] else text,
            showarrow=False,
            font={"size": 10, "color": "white" if view.is_dark(row, column) else INK},
            row=2,
            col=1,
        )


def _strips(view: SurfaceView) -> Any:
    """Draw one curve per level."""
    levels = [k for k in range(len(view.up)) if view.n[k].any()]
    columns = min(COLUMNS, len(levels))
    lines = -(-len(levels) // columns)
    names = [
        escape(f"{short(view.up.labels[k], 20)}, {int(view.n[k].sum()):,} rows") for k in levels
    ]
    figure = make_subplots(
        rows=lines,
        cols=columns,
        shared_xaxes=True,
        shared_yaxes=True,
        subplot_titles=names,
        horizontal_spacing=0.02,
        vertical_spacing=min(0.12, 0.4 / lines),
    )
    x = np.arange(len(view.across)) + 0.5
    for number, level in enumerate(levels):
        row, column = (place + 1 for place in divmod(number, columns))
        for trace in _strip(view, level, x):
            figure.add_trace(trace, row=row, col=column)
    at, texts = ticks(view.across, 4)
    figure.update_layout(**layout(_lines(view.title)))
    figure.update_layout(width=820, height=170 + 150 * lines, margin={"t": 90, "b": 80})
    figure.update_xaxes(tickvals=at, ticktext=[escape(text) for text in texts])
    figure.update_yaxes(matches="y")
    figure.update_annotations(font_size=11)
    figure.add_annotation(
        text=escape(f"across: {short(view.across.name)}; {view.scale}"),
        x=0,
        y=-0.12,
        yshift=-22,
        xref="paper",
        yref="paper",
        showarrow=False,
        xanchor="left",
        font={"size": 11, "color": FAINT},
    )
    return finish(figure)


def _strip(view: SurfaceView, level: int, x: Any) -> list[Any]:
    judged = view.judged[level]
    gap, low, high = (
        100 * np.where(judged, values[level], np.nan) for values in (view.gap, view.low, view.high)
    )
    texts = [escape(view.hover(level, k)).replace("\n", "<br>") for k in range(len(x))]
    zero = go.Scatter(
        x=[0, len(x)], y=[0, 0], mode="lines", line={"color": FAINT, "width": 1}, hoverinfo="skip"
    )
    bands = [
        go.Scatter(
            x=x,
            y=part,
            mode="lines",
            line={"width": 0},
            fill=fill,
            fillcolor="rgba(195, 201, 209, 0.6)",
            hoverinfo="skip",
        )
        for part, fill in ((low, None), (high, "tonexty"))
    ]
    line = go.Scatter(
        x=x, y=gap, mode="lines", line={"color": INK, "width": 1.5}, text=texts, hoverinfo="text"
    )
    found = [zero, *bands, line]
    for sign in (1, -1):
        surely = np.where(view.sure[level] == sign, gap, np.nan)
        colour = shade(float(sign))
        found.append(
            go.Scatter(
                x=x,
                y=surely,
                mode="lines+markers",
                line={"color": colour, "width": 4},
                marker={"size": 5, "color": colour},
                hoverinfo="skip",
            )
        )
    return found


def _lines(title: str) -> str:
    return escape(title).replace("\n", "<br>")
