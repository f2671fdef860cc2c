"""The reliability diagram."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from varcal._measures.reliability import Reliability
from varcal._plotting.axes import (
    ACTUAL,
    DENSITY,
    FAINT,
    INK,
    PLAIN,
    clean,
    foot,
    own_axes,
    percent,
    share_axis,
    text_size,
)
from varcal._text.numbers import points


def draw_reliability(found: Reliability, ax: Axes | None) -> Axes:
    """Draw the diagram on the given axes or a new figure."""
    ax = own_axes(ax, 3.6, 4.2)
    size = text_size(ax)
    clean(ax, size)
    low = _lowest(found)
    ax.set_xlim(low, 1)
    percent(ax.xaxis)
    names = _axis_names(found)
    share_axis(ax, 1.0, names[1], size, low=low)
    ax.set_aspect("equal", adjustable="box")
    foot(ax, found.histogram, "numeric", size, named=True)
    ax.set_xlabel(
        f"{names[0]}\nn = {found.n_rows:,}; grey band: chance alone",
        fontsize=size,
        color=INK,
        **PLAIN,
    )
    ax.fill_between(
        found.predicted, found.consistent_low, found.consistent_high, color=DENSITY, alpha=0.6,
        linewidth=0, zorder=1,
    )  # fmt: skip
    ax.plot([low, 1], [low, 1], color=FAINT, linewidth=1.0, linestyle=(0, (4, 2)), zorder=2)
    if found.curve.span > 0:
        band = ax.fill_between(
            found.score, found.smooth_low, found.smooth_high, color=ACTUAL, alpha=0.2, linewidth=0
        )
        band.set_clip_path(Rectangle((low, low), 1 - low, 1 - low, transform=ax.transData))
        ax.plot(found.score, found.smooth, color=ACTUAL, linewidth=1.6)
    reach = [
        np.maximum(found.observed - found.observed_low, 0),
        np.maximum(found.observed_high - found.observed, 0),
    ]
    ax.errorbar(
        found.predicted,
        found.observed,
        yerr=reach,
        fmt="o",
        markersize=0.45 * size,
        color=INK,
        elinewidth=1.0,
        zorder=4,
    )
    _write_ece(ax, found, size)
    return ax


def _lowest(found: Reliability) -> float:
    """Return where both axes begin: at 0, or for event "correct" just below the lowest value."""
    if found.event != "correct":
        return 0.0
    ends = [
        found.histogram.edges[:-1][found.histogram.share > 0].min(),
        found.observed_low.min(),
        found.smooth.min(),
    ]
    return float(np.floor(10 * min(ends) + 1e-9) / 10)


def _write_ece(ax: Axes, found: Reliability, size: float) -> None:
    """Write the ECE at the top left, or at the bottom right if lines are in the way."""
    low, ece = ax.get_xlim()[0], found.ece
    text = f"ECE {points(ece.debiased)} points\n({points(ece.low)}–{points(ece.high)})"
    beneath = [
        part[at < low + 0.45 * (1 - low)].max(initial=0.0)
        for at, part in (
            (found.score, found.smooth_high),
            (found.predicted, found.observed_high),
        )
    ]
    at_top = max(beneath) < low + 0.82 * (1 - low)
    ax.text(
        0.02 if at_top else 0.98, 0.985 if at_top else 0.27, text, transform=ax.transAxes,
        ha="left" if at_top else "right", va="top" if at_top else "bottom", fontsize=size,
        color=INK, linespacing=1.3,
    )  # fmt: skip


def _axis_names(found: Reliability) -> tuple[str, str]:
    """Name the axes of a reliability diagram."""
    if found.event == "correct":
        return "confidence", "share right"
    return "predicted probability", "actual rate"
