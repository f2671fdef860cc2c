"""The gap over two variables: a heat map, curves by level, or a table of levels."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb

from varcal._plotting import style
from varcal._search.surface import Surface, SurfaceView, ticks
from varcal._text import short

#: Panels of curves side by side.
COLUMNS = 4
#: Height of the bars of rows beside a map, as part of the axes.
BARS = 0.09


def draw_surface(found: Surface, ax: Axes | None) -> Axes:
    """Draw a surface on the given axes or a new figure."""
    view = SurfaceView.of(found)
    if view.kind == "map":
        return _map(view, *style.prepare(ax, 6.4, 5.4))
    if view.kind == "table":
        width = max(6.4, 2.4 + 0.62 * len(view.across))
        return _table(view, *style.prepare(ax, width, 2.2 + 0.34 * len(view.up)))
    levels = np.flatnonzero(view.judged.any(axis=1))
    lines = max(-(-len(levels) // COLUMNS), 1)
    return _strips(view, levels, *style.prepare(ax, 8.4, 1.6 + 1.7 * lines))


def _map(view: SurfaceView, ax: Axes, size: float) -> Axes:
    """Draw cells, lines of equal gaps, bars of rows at two sides, and the scale of colours."""
    _cells(view, ax, size)
    style.name_axes(ax, size, short(view.across.name, 40), short(view.up.name, 40))
    style.title(ax, view.title, size, pad=34)
    _contours(view, ax)
    _bars(view, ax)
    style.gap_scale(ax, view.most, f"{view.scale}\n{view.legend}", 0.95 * size)
    return ax


def _table(view: SurfaceView, ax: Axes, size: float) -> Axes:
    """Draw cells with their gaps and rows written into them."""
    _cells(view, ax, size)
    for row, column in zip(*np.nonzero(view.n), strict=True):
        ax.text(
            column + 0.5, row + 0.5, "\n".join(view.cell_lines(row, column)), ha="center",
            va="center", fontsize=0.72 * size,
            color=style.GROUND if view.is_dark(row, column) else style.INK,
            fontweight="bold" if view.sure[row, column] else "normal",
        )  # fmt: skip
    legend = view.legend.replace("; ", "\n", 1)
    name = f"{short(view.across.name)}\neach cell: gap in points, rows\n{legend}"
    style.name_axes(ax, 0.9 * size, name, short(view.up.name, 40))
    for label in ax.get_xticklabels():
        label.set(rotation=30, ha="right", rotation_mode="anchor")
    style.title(ax, view.title, size)
    return ax


def _cells(view: SurfaceView, ax: Axes, size: float) -> None:
    """Draw the cells, the outline of those that are surely off, and the ticks."""
    height, width = view.gap.shape
    strength = view.strength
    colours = style.GAPS(0.5 + np.nan_to_num(strength) / 2)[..., :3]
    colours[np.isnan(strength)] = to_rgb(style.FEW)
    colours[view.n == 0] = to_rgb(style.GROUND)
    ax.imshow(colours, origin="lower", extent=(0, width, 0, height), aspect="auto", zorder=1)
    ax.add_collection(LineCollection(view.outline, colors=style.INK, linewidths=1.4, zorder=3))
    ax.set_xlim(0, width)
    ax.set_ylim(0, height)
    for axis, set_ticks in ((view.across, ax.set_xticks), (view.up, ax.set_yticks)):
        set_ticks(*_ticks(axis), fontsize=size, **style.PLAIN)


def _ticks(axis: Any, most: int = 6) -> tuple[list[float], list[str]]:
    """Return the ticks of a variable; that of missing values replaces the last edge."""
    at, texts = ticks(axis, most)
    if axis.has_missing and len(at) > 2:
        del at[-2], texts[-2]
    return at, texts


def _contours(view: SurfaceView, ax: Axes) -> None:
    """Draw lines of equal gaps over numbers."""
    height, width = (max(len(axis.edges) - 1, 0) for axis in (view.up, view.across))
    inner = np.where(view.judged, view.gap, np.nan)[:height, :width]
    if min(height, width) < 3 or np.isnan(inner).all():
        return
    lines = [k * view.most / 4 for k in range(-4, 5) if k]
    lines = [line for line in lines if np.nanmin(inner) < line < np.nanmax(inner)]
    if lines:
        x, y = np.arange(width) + 0.5, np.arange(height) + 0.5
        ax.contour(x, y, inner, levels=lines, colors=style.FAINT, linewidths=0.6, zorder=2)


def _bars(view: SurfaceView, ax: Axes) -> None:
    """Draw how many rows each range of a variable has, above and to the right."""
    above = ax.inset_axes((0.0, 1.01, 1.0, BARS), sharex=ax)
    right = ax.inset_axes((1.01, 0.0, BARS, 1.0), sharey=ax)
    up, across = (np.arange(many) + 0.5 for many in view.n.shape)
    above.bar(across, view.n.sum(axis=0), width=0.9, color=style.ROWS)
    right.barh(up, view.n.sum(axis=1), height=0.9, color=style.ROWS)
    for one in (above, right):
        one.axis("off")


def _strips(view: SurfaceView, levels: Any, ax: Axes, size: float) -> Axes:
    """Draw one curve per level that can be judged."""
    ax.axis("off")
    columns = max(min(COLUMNS, len(levels)), 1)
    lines = -(-len(levels) // columns)
    panel = None
    for number, level in enumerate(levels):
        row, column = divmod(number, columns)
        bottom = 1 - (row + 1) / lines
        box = (column / columns + 0.012, bottom + 0.13 / lines, 0.87 / columns, 0.68 / lines)
        panel = ax.inset_axes(box, sharey=panel)
        style.clean(panel, 0.8 * size)
        _strip(view, panel, level, size)
        panel.set_xlim(0, len(view.across))
        panel.set_xticks(*_ticks(view.across, 4), fontsize=0.75 * size, **style.PLAIN)
        panel.tick_params(axis="y", labelleft=column == 0)
        style.unit_ticks(panel.yaxis, "points")
    few = len(view.up) - len(levels)
    left = f"; too few rows for {few} of {len(view.up)} levels" if few else ""
    note = (
        f"across: {short(view.across.name)}; {view.scale}{left}\n"
        "line: smoothed gap; shaded: its band for all levels at once, thick where it excludes 0"
    )
    style.write(ax, note, (0, -0.02), 0.85 * size, "axes fraction", color=style.FAINT, va="top")
    style.title(ax, view.title, size)
    return ax


def _strip(view: SurfaceView, panel: Axes, level: int, size: float) -> None:
    """Draw the curve of a level, with missing values at the right."""
    x = np.arange(len(view.across)) + 0.5
    figures = np.where(view.judged, [view.gap, view.low, view.high], np.nan)[:, level]
    panel.axhline(0.0, color=style.FAINT, linewidth=0.8)
    if view.across.has_missing:
        panel.axvline(len(x) - 1, color=style.FAINT, linewidth=0.6, linestyle=(0, (2, 2)))
        style.dots(panel, x[-1:], figures[:, -1:], 3, color=style.INK)
        x, figures = x[:-1], figures[:, :-1]
    gap, low, high = figures
    panel.fill_between(x, low, high, color=style.ROWS, alpha=0.6, linewidth=0)
    panel.plot(x, gap, color=style.INK, linewidth=1.2)
    for sign, colour in ((1, style.OVER), (-1, style.UNDER)):
        surely = np.where(view.sure[level][: len(x)] == sign, gap, np.nan)
        panel.plot(x, surely, color=colour, linewidth=3.2, marker="o", markersize=3)
    name = f"{short(view.up.labels[level], 24)}, {view.n[level].sum():,} rows"
    panel.set_title(name, fontsize=0.85 * size, loc="left", color=style.INK, **style.PLAIN)
