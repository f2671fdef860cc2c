"""What all plotly figures share."""

from __future__ import annotations

from typing import Any

from varcal.plotting._colours import FAINT, GROUND, INK

#: The translucent colour of the band around the actual error.
BAND = "rgba(0, 114, 178, 0.2)"


def layout(title: str) -> dict[str, Any]:
    """Return the layout of a figure."""
    return {
        "title": {"text": title, "font": {"size": 14}, "x": 0.01, "xanchor": "left"},
        "paper_bgcolor": GROUND,
        "plot_bgcolor": GROUND,
        "font": {"color": INK, "size": 12},
        "showlegend": False,
        "bargap": 0,
        "margin": {"l": 60, "r": 80, "t": 60, "b": 50},
        "width": 560,
        "height": 420,
        "hovermode": "closest",
    }


def percent() -> dict[str, Any]:
    """Return an axis in percent."""
    return {"tickformat": ".0~%"}


def finish(figure: Any) -> Any:
    """Style the axes: no grid, thin lines."""
    axis = {"showgrid": False, "linecolor": FAINT, "ticks": "outside", "automargin": True}
    figure.update_xaxes(zeroline=False, **axis)
    figure.update_yaxes(zeroline=False, **axis)
    for bare in figure.select_yaxes(selector={"showticklabels": False}):
        bare.update(ticks="", showline=False)
    return figure
