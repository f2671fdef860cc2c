"""Dots and whiskers, one row each: rankings of variables, methods, estimates."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from varcal.plotting._colours import ACTUAL, DENSITY, FAINT, GROUND, INK
from varcal.plotting._matplotlib.axes import (
    PLAIN,
    clean,
    inches,
    own_axes,
    percent,
    text_size,
    title,
)
from varcal.plotting._rankings import Dots
from varcal.plotting._words import short


def draw(dots: Dots, ax: Axes | None) -> Axes:
    """Draw a ranking on the given axes or a new figure."""
    at, names, heads = dots.ticks
    many = float(at[-1]) + 1
    ax = own_axes(ax, 4.8, 1.0 + 0.24 * many + 0.2 * (dots.plug_in is not None))
    size = text_size(ax)
    clean(ax, size)
    width, height = inches(ax)
    row = 72 * height / many
    small = float(np.clip(row / 1.3, 4.0, size))
    places = dots.places
    most = 28 if width > 2.4 else 20
    ax.set_yticks(at, [short(name, most) for name in names], fontsize=small, **PLAIN)
    for label, head in zip(ax.get_yticklabels(), heads, strict=True):
        label.set_fontweight("bold" if head else "normal")
    ax.set_ylim(many - 0.4 + 0.8 * bool(dots.lines), -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    left, right = dots.span
    ax.set_xlim(left, right)
    if dots.shares:
        percent(ax.xaxis, right - left, sign="" if dots.errors else "%")
    else:
        ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.set_xlabel(dots.axis, fontsize=size, color=INK, **PLAIN)
    if dots.noise is not None:
        ax.barh(places, dots.noise, height=0.6, color=DENSITY, alpha=0.7, linewidth=0)
    for value, name in dots.lines:
        ax.axvline(value, color=FAINT, linewidth=1.0, linestyle=(0, (3, 2)), zorder=1)
        before = value > (left + right) / 2
        ax.annotate(
            name, (value, many - 0.1), xytext=(-3 if before else 3, 0),
            textcoords="offset points", fontsize=0.85 * size, color=FAINT,
            ha="right" if before else "left", va="center", **PLAIN,
        )  # fmt: skip
    ax.hlines(places, dots.low, dots.high, color=ACTUAL, linewidth=1.6)
    face = [ACTUAL if full else GROUND for full in dots.filled]
    ax.scatter(
        dots.value, places, s=(0.62 * small) ** 2, c=face, edgecolors=ACTUAL, linewidths=1.2,
        zorder=3, clip_on=False,
    )  # fmt: skip
    if dots.plug_in is not None:
        ax.scatter(
            dots.plug_in, places, s=(0.8 * small) ** 2, marker="x", color=FAINT, linewidths=1.2,
            zorder=3, clip_on=False,
        )  # fmt: skip
    for place, text in zip(places, dots.texts, strict=False):
        ax.annotate(
            short(text, 20), (1, place), xycoords=ax.get_yaxis_transform(), xytext=(4, 0),
            textcoords="offset points", va="center", fontsize=0.9 * small, color=INK,
            annotation_clip=False, **PLAIN,
        )  # fmt: skip
    if dots.title:
        title(ax, dots.title, size)
    _name_marks(ax, dots, size)
    return ax


def _name_marks(ax: Axes, dots: Dots, size: float) -> None:
    """Label the grey bar and the cross in the first row that has room for it."""
    point = (ax.get_xlim()[1] - ax.get_xlim()[0]) / (72 * inches(ax)[0])
    style: dict[str, Any] = {
        "fontsize": 0.85 * size,
        "color": FAINT,
        "textcoords": "offset points",
        "bbox": {"boxstyle": "square,pad=0.1", "facecolor": GROUND, "linewidth": 0},
    }
    if dots.noise is not None:
        starts = dots.low if dots.plug_in is None else np.minimum(dots.low, dots.plug_in)
        free = np.flatnonzero(starts - dots.noise > 7.5 * size * point)
        if free.size:
            at = (float(dots.noise[free[0]]), float(dots.places[free[0]]))
            ax.annotate("chance alone", at, xytext=(3, 0), va="center", **style)
    if dots.plug_in is not None:
        at = (float(dots.plug_in[0]), 0.0)
        ax.annotate("plug-in", at, xytext=(0, -0.8 * size), ha="center", va="top", **style)
