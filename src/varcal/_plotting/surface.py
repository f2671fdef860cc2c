"""The gap over two variables: a heat map, curves by level, or a table of levels."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgb

from varcal._plotting.axes import (
    DENSITY,
    FAINT,
    FEW,
    GROUND,
    INK,
    OVER,
    PLAIN,
    UNDER,
    clean,
    own_axes,
    shade,
    text_size,
)
from varcal._surfaces.surface_result import Surface
from varcal._surfaces.view import SurfaceView, ticks
from varcal._text.sentences import short

#: Panels of curves side by side.
COLUMNS = 4
#: Height of the bars of rows beside a map, as part of the axes.
BARS = 0.09


def draw_surface(found: Surface, ax: Axes | None) -> Axes:
    """Draw a surface on the given axes or a new figure."""
    view = SurfaceView.of(found)
    if view.kind == "map":
        return _map(view, own_axes(ax, 6.4, 5.2))
    if view.kind == "table":
        size = max(6.4, 2.4 + 0.62 * len(view.across)), 1.9 + 0.34 * len(view.up)
        return _table(view, own_axes(ax, *size))
    rows = -(-len(view.up) // COLUMNS)
    return _strips(view, own_axes(ax, 8.4, 1.6 + 1.7 * rows))


def _map(view: SurfaceView, ax: Axes) -> Axes:
    size = text_size(ax)
    _cells(view, ax, size)
    _contours(view, ax)
    _rows(view, ax)
    _scale(view, ax, size)
    ax.set_title(view.title, fontsize=size, loc="left", color=INK, pad=30, **PLAIN)
    return ax


def _table(view: SurfaceView, ax: Axes) -> Axes:
    size = text_size(ax)
    _cells(view, ax, size)
    for row, column in np.ndindex(view.gap.shape):
        if not view.n[row, column]:
            continue
        ax.text(
            column + 0.5,
            row + 0.5,
            "\n".join(view.cell_lines(row, column)),
            ha="center",
            va="center",
            fontsize=0.72 * size,
            color="white" if view.is_dark(row, column) else INK,
            fontweight="bold" if view.sure[row, column] else "normal",
        )
    ax.set_title(view.title, fontsize=size, loc="left", color=INK, **PLAIN)
    ax.set_xlabel(
        f"{short(view.across.name)}\neach cell: gap in points, rows\n{view.legend}",
        fontsize=0.9 * size,
        color=INK,
        **PLAIN,
    )
    ax.tick_params(axis="x", rotation=30)
    for label in ax.get_xticklabels():
        label.set_horizontalalignment("right")
    return ax


def _cells(view: SurfaceView, ax: Axes, size: float) -> None:
    """Draw the cells, the outline of those that are surely off, and the axes."""
    clean(ax, size)
    height, width = view.gap.shape
    strength = view.strength
    colours = np.empty((height, width, 3))
    for cell in np.ndindex(height, width):
        empty = FEW if view.n[cell] else GROUND
        colours[cell] = to_rgb(empty if np.isnan(strength[cell]) else shade(float(strength[cell])))
    ax.imshow(colours, origin="lower", extent=(0, width, 0, height), aspect="auto", zorder=1)
    ax.add_collection(LineCollection(view.outline, colors=INK, linewidths=1.4, zorder=3))
    for axis, set_ticks, name in (
        (view.across, ax.set_xticks, ax.set_xlabel),
        (view.up, ax.set_yticks, ax.set_ylabel),
    ):
        at, texts = ticks(axis)
        set_ticks(at, texts, fontsize=size, **PLAIN)
        name(short(axis.name, 40), fontsize=size, color=INK, **PLAIN)
    ax.set_xlim(0, width)
    ax.set_ylim(0, height)


def _contours(view: SurfaceView, ax: Axes) -> None:
    """Draw lines of equal gaps over numbers."""
    height, width = (max(len(axis.edges) - 1, 0) for axis in (view.up, view.across))
    inner = np.where(view.judged, view.gap, np.nan)[:height, :width]
    if min(height, width) < 3 or np.isnan(inner).all():
        return
    step = view.most / 4
    lines = [k * step for k in range(-4, 5) if k]
    seen = inner[~np.isnan(inner)]
    lines = [line for line in lines if seen.min() < line < seen.max()]
    if lines:
        x, y = np.arange(width) + 0.5, np.arange(height) + 0.5
        ax.contour(x, y, inner, levels=lines, colors=FAINT, linewidths=0.6, zorder=2)


def _rows(view: SurfaceView, ax: Axes) -> None:
    """Draw how many rows each range of a variable has, above and to the right."""
    for k, counts in enumerate((view.n.sum(axis=0), view.n.sum(axis=1))):
        place = (0.0, 1.01, 1.0, BARS) if k == 0 else (1.01, 0.0, BARS, 1.0)
        beside = ax.inset_axes(place)
        beside.axis("off")
        at = np.arange(len(counts)) + 0.5
        if k == 0:
            beside.bar(at, counts, width=0.9, color=DENSITY)
            beside.set_xlim(0, len(counts))
        else:
            beside.barh(at, counts, height=0.9, color=DENSITY)
            beside.set_ylim(0, len(counts))


def _scale(view: SurfaceView, ax: Axes, size: float) -> None:
    """Draw the scale of colours below the map."""
    colours = LinearSegmentedColormap.from_list("gap", [UNDER, "#ffffff", OVER])
    figure: Any = ax.get_figure()
    most = 100 * view.most
    bar = figure.colorbar(
        ScalarMappable(Normalize(-most, most), colours),
        ax=ax,
        location="bottom",
        fraction=0.045,
        pad=0.02,
        aspect=45,
    )
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=0.9 * size, color=FAINT)
    bar.set_label(f"{view.scale}\n{view.legend}", fontsize=0.85 * size, color=INK, **PLAIN)


def _strips(view: SurfaceView, ax: Axes) -> Axes:
    """Draw one curve per level."""
    size = text_size(ax)
    ax.axis("off")
    levels = [k for k in range(len(view.up)) if view.n[k].any()]
    columns = min(COLUMNS, len(levels))
    lines = -(-len(levels) // columns)
    shown = np.concatenate([view.low[view.judged], view.high[view.judged], [0.0]])
    ends = [min(float(np.quantile(shown, 0.01)), 0.0), max(float(np.quantile(shown, 0.99)), 0.0)]
    room = 0.08 * (ends[1] - ends[0]) or 0.1
    at, texts = ticks(view.across, 4)
    for number, level in enumerate(levels):
        row, column = divmod(number, columns)
        left, bottom = column / columns, 1 - (row + 1) / lines
        box = (left + 0.012, bottom + 0.13 / lines, 0.92 / columns, 0.68 / lines)
        panel = ax.inset_axes(box)
        _strip(view, panel, level, size)
        panel.set_ylim(100 * (ends[0] - room), 100 * (ends[1] + room))
        panel.set_xlim(0, len(view.across))
        panel.set_xticks(at, texts, fontsize=0.75 * size, **PLAIN)
        if column:
            panel.set_yticklabels([])
    ax.set_title(view.title, fontsize=size, loc="left", color=INK, **PLAIN)
    ax.text(
        0.0,
        -0.02,
        f"across: {short(view.across.name)}; {view.scale}\n"
        "line: smoothed gap; shaded: its band for all levels at once, thick where it excludes 0",
        transform=ax.transAxes,
        va="top",
        fontsize=0.85 * size,
        color=FAINT,
        **PLAIN,
    )
    return ax


def _strip(view: SurfaceView, panel: Axes, level: int, size: float) -> None:
    clean(panel, 0.8 * size)
    x = np.arange(len(view.across)) + 0.5
    judged = view.judged[level]
    gap, low, high = (
        100 * np.where(judged, values[level], np.nan) for values in (view.gap, view.low, view.high)
    )
    panel.axhline(0.0, color=FAINT, linewidth=0.8)
    if view.across.has_missing:
        panel.axvline(len(x) - 1, color=FAINT, linewidth=0.6, linestyle=(0, (2, 2)))
        panel.errorbar(
            x[-1:], gap[-1:], yerr=[gap[-1:] - low[-1:], high[-1:] - gap[-1:]],
            fmt="o", markersize=3, color=INK, linewidth=1,
        )  # fmt: skip
        x, gap, low, high = x[:-1], gap[:-1], low[:-1], high[:-1]
    panel.fill_between(x, low, high, color=DENSITY, alpha=0.6, linewidth=0)
    panel.plot(x, gap, color=INK, linewidth=1.2)
    for sign in (1, -1):
        surely = np.where(view.sure[level][: len(x)] == sign, gap, np.nan)
        panel.plot(x, surely, color=shade(float(sign)), linewidth=3.2, marker="o", markersize=3)
    name = short(view.up.labels[level], 24)
    rows = f"{int(view.n[level].sum()):,} rows"
    panel.set_title(f"{name}, {rows}", fontsize=0.85 * size, loc="left", color=INK, **PLAIN)
