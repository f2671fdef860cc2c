"""The effect of a variable at several scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from varcal.plotting._colours import FAINT
from varcal.plotting._effect_view import (
    COLOURS,
    DASHES,
    MISSING_ROOM,
    SYMBOLS,
    EffectView,
    Shown,
)
from varcal.plotting._plotly.curve import values
from varcal.plotting._plotly.layout import finish, layout
from varcal.plotting._words import escape

if TYPE_CHECKING:
    from varcal.calibrators._variable.effects import Effect


def draw(curves: tuple[Effect, ...], *, scale: str = "logit") -> Any:
    """Draw curves with bands, or dots with whiskers, in a new figure."""
    view = EffectView.of(curves, scale)
    figure = go.Figure()
    figure.update_layout(**layout(escape(view.title)))
    if view.kind == "levels":
        _levels(figure, view)
    else:
        _numbers(figure, view)
    if len(view.curves) > 1:
        top = {"orientation": "h", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom"}
        figure.update_layout(showlegend=True, legend=top, margin={"t": 80, "r": 30})
    return finish(figure)


def _levels(figure: Any, view: EffectView) -> None:
    """Draw levels from top to bottom."""
    figure.add_vline(x=0, line={"color": FAINT, "width": 1})
    for k, curve in enumerate(view.curves):
        at = view.x + view.offset(k, 0.24)
        figure.add_trace(_dots(curve.value, at, view.style(k), curve, across="x", names=view.names))
    figure.update_layout(height=170 + 30 * len(view.names))
    figure.update_xaxes(range=list(view.reach), title_text=view.size.replace("\n", " "))
    figure.update_yaxes(
        tickvals=view.x,
        ticktext=[escape(name) for name in view.names],
        range=list(view.span),
        title_text=escape(view.along),
    )


def _numbers(figure: Any, view: EffectView) -> None:
    """Draw curves along numbers or dates, with missing values at the right."""
    figure.add_hline(y=0, line={"color": FAINT, "width": 1})
    low, high = view.span
    for k, curve in enumerate(view.curves):
        if view.dots:
            at = values(view.x + view.offset(k, 0.012 * (high - low)), view.kind)
            figure.add_trace(_dots(at, curve.value, view.style(k), curve, across="y"))
        else:
            _line(figure, values(view.x, view.kind), view.style(k), curve)
    end = high
    if view.missing:
        end = high + MISSING_ROOM * (high - low)
        _missing(figure, view, end)
    figure.update_xaxes(
        range=list(values(np.array([low, end]), view.kind)), title_text=escape(view.along)
    )
    if view.dots and view.kind == "numeric":
        figure.update_xaxes(tickvals=view.x, ticktext=[f"{one:g}" for one in view.x])
    figure.update_yaxes(range=list(view.reach), title_text=view.size.replace("\n", "<br>"))


def _line(figure: Any, x: Any, style: int, curve: Shown) -> None:
    red, green, blue = (int(COLOURS[style][at : at + 2], 16) for at in (1, 3, 5))
    for part, fill in ((curve.low, None), (curve.high, "tonexty")):
        figure.add_trace(
            go.Scatter(
                x=x,
                y=part,
                mode="lines",
                line={"width": 0},
                fill=fill,
                fillcolor=f"rgba({red}, {green}, {blue}, 0.12)",
                hoverinfo="skip",
                showlegend=False,
                legendgroup=str(style),
            )
        )
    line = {"color": COLOURS[style], "dash": DASHES[style], "width": 2.5}
    figure.add_trace(
        go.Scatter(
            x=x,
            y=curve.value,
            mode="lines",
            line=line,
            name=curve.score or "effect",
            legendgroup=str(style),
        )
    )


def _missing(figure: Any, view: EffectView, end: float) -> None:
    """Draw missing values at the right of all values."""
    high = view.span[1]
    ends = values(np.array([high, end]), view.kind)
    figure.add_vrect(x0=ends[0], x1=ends[1], fillcolor="#F3F4F6", line_width=0, layer="below")
    for k, curve in enumerate(view.curves):
        assert curve.missing is not None
        value, bottom, top = curve.missing[:, None]
        one = Shown(curve.score, value, bottom, top, None)
        at = view.missing_at + view.offset(k, 0.2 * (end - high))
        x = values(np.array([at]), view.kind)
        figure.add_trace(
            _dots(x, one.value, view.style(k), one, across="y", names=("missing",)).update(
                showlegend=False
            )
        )
    figure.add_annotation(
        x=values(np.array([view.missing_at]), view.kind)[0],
        y=0,
        yref="paper",
        text="missing",
        font={"color": FAINT, "size": 11},
        showarrow=False,
        yanchor="top",
        yshift=-4,
    )


def _dots(
    x: Any, y: Any, style: int, curve: Shown, *, across: str, names: tuple[str, ...] = ()
) -> Any:
    """Return dots with whiskers along x or y."""
    whisker = {
        "type": "data",
        "symmetric": False,
        "array": np.maximum(curve.high - curve.value, 0.0),
        "arrayminus": np.maximum(curve.value - curve.low, 0.0),
        "width": 0,
    }
    return go.Scatter(
        x=x,
        y=y,
        **{f"error_{across}": whisker},
        mode="markers",
        marker={"color": COLOURS[style], "size": 9, "symbol": SYMBOLS[style]},
        name=curve.score or "effect",
        legendgroup=str(style),
        text=[escape(name) for name in names] or None,
    )
