"""Before and after: several curves of one variable side by side on shared axes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from varcal._measures.curve import Curve
from varcal.plotting._plotly.curve import panel, stacked
from varcal.plotting._plotly.layout import finish, layout
from varcal.plotting._ranges import frame_of
from varcal.plotting._words import escape, panel_title, short, sides


def draw(curves: dict[str, Curve], columns: int) -> Any:
    """Draw one panel per curve in a new figure, all in one row."""
    first = next(iter(curves.values()))
    titles = [
        escape(panel_title(short(name), curve)).replace("\n", "<br>")
        for name, curve in curves.items()
    ]
    figure = stacked(curves, titles)
    frame = frame_of(list(curves.values()))
    for k, curve in enumerate(curves.values(), start=1):
        panel(figure, curve, k, replace(frame, labels=k == len(curves)))
    figure.update_layout(**layout(escape(short(first.variable))))
    levels = first.kind == "levels"
    height = 220 + 34 * len(first.x) if levels else 440
    figure.update_layout(width=140 + 260 * len(curves), height=height, margin={"t": 120})
    figure.update_xaxes(matches="x")
    if not levels:
        figure.update_yaxes(title_text=escape(sides(first).title), row=1, col=1)
    return finish(figure)
