"""Dots and whiskers, one row each: rankings of variables, methods, estimates."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

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
    many = len(dots.names) + bool(dots.more)
    ax = own_axes(ax, 4.8, 1.0 + 0.24 * many + 0.2 * (dots.plug_in is not None))
    size = text_size(ax)
    clean(ax, size)
    width, height = inches(ax)
    row = 72 * height / many
    small = float(np.clip(row / 1.3, 4.0, size))
    places = np.arange(len(dots.names))
    names = [short(name, 28 if width > 2.4 else 20) for name in dots.names]
    if dots.more:
        names.append(f"… {dots.more} more")
    ax.set_yticks(np.arange(many), names, fontsize=small, **PLAIN)
    ax.set_ylim(many - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ends = [dots.high.max(), dots.value.max(), *(value for value, _ in dots.lines)]
    ends += [part.max() for part in (dots.noise, dots.plug_in) if part is not None]
    right = 1.06 * max(float(np.nanmax(ends)), 0.005)
    left = min(0.0, 1.06 * float(np.nanmin([dots.low.min(), dots.value.min()])))
    ax.set_xlim(left, right)
    percent(ax.xaxis, right - left)
    ax.set_xlabel(dots.label, fontsize=size, color=INK, **PLAIN)
    if dots.noise is not None:
        ax.barh(places, dots.noise, height=0.6, color=DENSITY, alpha=0.7, linewidth=0)
    for value, name in dots.lines:
        ax.axvline(value, color=FAINT, linewidth=1.0, linestyle=(0, (3, 2)), zorder=1)
        ax.annotate(
            name, (value, 0), xycoords=("data", "axes fraction"), xytext=(2, 2),
            textcoords="offset points", fontsize=0.85 * size, color=FAINT, rotation=90,
            ha="left", va="bottom", **PLAIN,
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
            text, (1, place), xycoords=ax.get_yaxis_transform(), xytext=(4, 0),
            textcoords="offset points", va="center", fontsize=0.9 * small, color=INK,
            annotation_clip=False, **PLAIN,
        )  # fmt: skip
    if dots.title:
        title(ax, dots.title, size)
    _name_parts(ax, dots, size)
    return ax


def _name_parts(ax: Axes, dots: Dots, size: float) -> None:
    """Say under the axis what the marks are."""
    parts = ["dot and line: estimate with interval"]
    if dots.noise is not None:
        parts.append("grey: up to where chance alone goes")
    if dots.plug_in is not None:
        parts.append("×: plug-in")
    label = "\n".join([dots.label, "; ".join(parts)]).strip()
    if dots.noise is not None or dots.plug_in is not None:
        ax.set_xlabel(label, fontsize=size, color=INK, **PLAIN)
