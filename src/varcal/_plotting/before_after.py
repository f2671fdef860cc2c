"""Before and after: several curves of one variable side by side on shared axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from matplotlib.figure import Figure

from varcal._measures.curve_result import Curve
from varcal._plotting.axes import INK, PLAIN, inches, text_size
from varcal._plotting.curve import frame_of, panel, sides, worst_of
from varcal._text.numbers import points
from varcal._text.sentences import short


def draw_before_after(curves: Mapping[str, Curve], columns: int = 4) -> Figure:
    """Draw one panel per curve, by name, in a new figure."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  needed only for a new figure

    first = next(iter(curves.values()))
    across = min(columns, len(curves))
    down = -(-len(curves) // across)
    levels = first.kind == "levels"
    height = 0.9 + 0.3 * len(first.x) if levels else 2.4
    figure, grid = plt.subplots(
        down,
        across,
        figsize=(0.7 + (2.2 if not levels else 2.4) * across, height * down + 0.3),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    frame = frame_of(list(curves.values()))
    places = grid.ravel()
    for k, (name, curve) in enumerate(curves.items()):
        last = (k + 1) % across == 0 or k + 1 == len(curves)
        panel(places[k], curve, replace(frame, labels=last, notes=False))
        size = text_size(places[k])
        most = int(inches(places[k])[0] * 72 / (0.55 * size))
        text = _panel_title(short(name, most), curve)
        places[k].set_title(text, fontsize=size, loc="left", color=INK, **PLAIN)
    for empty in places[len(curves) :]:
        empty.set_visible(False)
    size = text_size(places[0])
    name, shown = short(first.variable, 40), sides(first).title
    figure.supxlabel(shown if levels else name, fontsize=size, color=INK, **PLAIN)
    figure.supylabel(name if levels else shown, fontsize=size, color=INK, **PLAIN)
    return figure


def _panel_title(name: str, curve: Curve) -> str:
    """Return the title of a panel: its name, VECE and the worst gap, in points."""
    size = f"{points(curve.vece)} ({points(curve.vece_low)}–{points(curve.vece_high)})"
    return f"{name}\nVECE {size}\nworst {points(curve.vce)} at {worst_of(curve)}"
