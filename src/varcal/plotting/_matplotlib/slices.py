"""Slices, one row each: what the model says and what happens."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from varcal._slices.slices_result import Slices
from varcal.plotting._colours import ACTUAL, FAINT, GROUND, INK, PREDICTED, PREDICTED_TEXT
from varcal.plotting._matplotlib.axes import PLAIN, clean, own_axes, percent, text_size
from varcal.plotting._slices_view import SlicesView


def draw(found: Slices, ax: Axes | None) -> Axes:
    """Draw slices on the given axes or a new figure."""
    view = SlicesView.of(found)
    many = max(len(view.lines), 1)
    ax = own_axes(ax, 8.2, 1.3 + 0.62 * many)
    size = text_size(ax)
    clean(ax, size)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    at = np.arange(len(view.lines))
    ax.set_yticks(at, [line.name for line in view.lines], fontsize=0.9 * size, **PLAIN)
    ax.set_ylim(many - 0.4, -0.75)
    ends = [end for line in view.lines for end in (line.says, line.low, line.high)] or [0.0, 1.0]
    room = 0.06 * (max(ends) - min(ends)) or 0.05
    ax.set_xlim(max(0.0, min(ends) - room), min(1.0, max(ends) + room))
    percent(ax.xaxis, float(np.ptp(ends)))
    for k, line in enumerate(view.lines):
        ax.plot([line.low, line.high], [k, k], color=ACTUAL, linewidth=1.2, alpha=0.7)
        ax.plot([line.says, line.happens], [k, k], color=line.colour, linewidth=3.5, alpha=0.45)
        ax.plot(line.happens, k, "o", color=ACTUAL, markersize=0.7 * size, clip_on=False)
        ax.plot(
            line.says, k, "o", color=PREDICTED, markerfacecolor=GROUND, markersize=0.7 * size,
            markeredgewidth=1.8, clip_on=False,
        )  # fmt: skip
        ax.annotate(
            f"{line.size}\n{line.rows}", (1, k), xycoords=ax.get_yaxis_transform(),
            xytext=(6, 0), textcoords="offset points", va="center", fontsize=0.85 * size,
            color=INK, annotation_clip=False, **PLAIN,
        )  # fmt: skip
    if view.lines:
        first = view.lines[0]
        left = first.says < first.happens
        low, high = ax.get_xlim()
        for value, text, colour, before in (
            (first.says, view.says, PREDICTED_TEXT, left),
            (first.happens, view.happens, ACTUAL, not left),
        ):
            # Names point away from each other, but not beyond the axes.
            place = (value - low) / (high - low)
            right = place > 0.85 or (before and place > 0.15)
            ax.annotate(
                text, (value, 0), xytext=(4 if right else -4, 0.75 * size),
                textcoords="offset points", ha="right" if right else "left", va="bottom",
                fontsize=0.85 * size, color=colour,
            )  # fmt: skip
    ax.set_xlabel(f"{view.axis}\n{view.note}", fontsize=0.9 * size, color=INK, **PLAIN)
    ax.set_title(view.title, fontsize=size, loc="left", color=INK, **PLAIN)
    ax.grid(axis="y", color="#E8EAED", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.xaxis.label.set_color(FAINT)
    return ax
