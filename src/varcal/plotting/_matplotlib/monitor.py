"""A monitor over time: its evidence, its strongest cell, and cells × time coloured by gap."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from varcal._monitor.view import FULL_COLOUR, HeatMap, MonitorView
from varcal._text.gaps import claim_name, gap_said
from varcal.plotting._colours import ACTUAL, ALARM, FAINT, GROUND, INK, OVER, PREDICTED, UNDER
from varcal.plotting._matplotlib.axes import PLAIN, clean, percent
from varcal.plotting._monitor_words import (
    MOST_MAPS,
    band_note,
    evidence_axis,
    evidence_shown,
    headline,
    rate_names,
    rate_range,
    shades,
    time_ticks,
)
from varcal.plotting._words import short

_SIZE = 9.0
#: The characters of a line of the headline.
_WIDTH = 84
_COLOURS = LinearSegmentedColormap.from_list("gaps", [UNDER, GROUND, OVER])


def draw(view: MonitorView, ax: Any) -> Figure:
    """Draw a new figure."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  needed only for a new figure

    maps = view.maps[:MOST_MAPS]
    heights = [1.7, 2.0 if view.shown is not None else 0.1]
    heights += [0.35 + 0.16 * len(one.rows) for one in maps]
    figure, grid = plt.subplots(
        len(heights),
        1,
        figsize=(8.0, 1.0 + sum(heights) + 0.35 * len(heights)),
        height_ratios=heights,
        sharex=True,
        squeeze=False,
        layout="constrained",
    )
    places = grid[:, 0]
    urgent = view.status.alarm and not view.status.acknowledged
    figure.suptitle(
        "\n".join(fill(line, _WIDTH) for line in headline(view).split("\n")),
        x=0.01,
        ha="left",
        fontsize=12,
        fontweight="bold",
        color=ALARM if urgent else INK,
        **PLAIN,
    )
    for one in places:
        clean(one, _SIZE)
        one.set_xlim(float(view.columns[0]), max(float(view.columns[-1]), 1.0))
        for reset in view.resets:
            one.axvline(reset, color=FAINT, linewidth=1.0, linestyle=(0, (1, 2)))
        if view.since is not None:
            one.axvline(view.since, color=ALARM, linewidth=1.2)
    _evidence(places[0], view)
    _rates(places[1], view)
    for one, where in zip(maps, places[2:], strict=True):
        _heat(where, one, view)
    if maps:
        _scale(figure, places[-1], maps[0].claim)
    ticks, texts = time_ticks(view)
    places[-1].set_xticks(ticks, texts, fontsize=_SIZE, **PLAIN)
    places[-1].set_xlabel("batch", fontsize=_SIZE, color=INK)
    return figure


def _title(ax: Axes, text: str) -> None:
    ax.set_title(text, fontsize=_SIZE, loc="left", color=INK, fontweight="bold", **PLAIN)


def _evidence(ax: Axes, view: MonitorView) -> None:
    low, high, ticks, texts = evidence_axis(view)
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_yticks(ticks, texts)
    shown = evidence_shown(view)
    ax.plot(view.x, shown, color=INK, linewidth=1.6, clip_on=False)
    ax.axhline(view.status.threshold, color=ALARM, linewidth=1.2, linestyle=(0, (4, 3)))
    above = shown >= view.status.threshold
    ax.fill_between(view.x, view.status.threshold, shown, where=above, color=ALARM, alpha=0.2)
    ax.annotate(
        "alarm from here on up", (0, view.status.threshold), xycoords=ax.get_yaxis_transform(),
        xytext=(4, 3), textcoords="offset points", fontsize=0.9 * _SIZE, color=ALARM,
    )  # fmt: skip
    if view.since is not None:
        late = view.since > 0.7 * float(view.columns[-1])
        ax.annotate(
            "change began", (view.since, 0.06), xycoords=ax.get_xaxis_transform(),
            xytext=(-4 if late else 4, 0), textcoords="offset points", fontsize=0.9 * _SIZE,
            color=ALARM, ha="right" if late else "left",
        )  # fmt: skip
    _title(ax, "Evidence that a gap exceeds the tolerance anywhere")


def _rates(ax: Axes, view: MonitorView) -> None:
    if view.shown is None:
        ax.set_visible(False)
        return
    says, happens, title = rate_names(view)
    x, _, rate = view.rates
    ax.plot(x, rate, ".", color=ACTUAL, markersize=3, alpha=0.45)
    ends: list[tuple[float, str]] = []
    for stretch in (view.before, view.after):
        if stretch is None:
            continue
        ax.fill_between(stretch.x, stretch.low, stretch.high, color=ACTUAL, alpha=0.18, linewidth=0)
        ax.plot(stretch.x, stretch.happens, color=ACTUAL, linewidth=1.8)
        ax.plot(stretch.x, stretch.says, color=PREDICTED, linewidth=1.6, linestyle=(0, (4, 2)))
        ends = [(float(stretch.says[-1]), says), (float(stretch.happens[-1]), happens)]
    low, high = rate_range(view)
    ax.set_ylim(low, high)
    percent(ax.yaxis, high - low)
    least = (high - low) / 9
    order = sorted(range(len(ends)), key=lambda k: ends[k][0])
    at = [ends[k][0] for k in order]
    if len(at) == 2 and at[1] - at[0] < least:
        middle = sum(at) / 2
        at = [middle - least / 2, middle + least / 2]
    for place, k in zip(at, order, strict=True):
        ax.annotate(
            ends[k][1], (1, place), xycoords=ax.get_yaxis_transform(), xytext=(4, 0),
            textcoords="offset points", va="center", fontsize=_SIZE,
            color=(PREDICTED, ACTUAL)[k], annotation_clip=False,
        )  # fmt: skip
    _title(ax, title)
    ax.annotate(
        band_note(view), (0, 0), xycoords="axes fraction", xytext=(4, 3),
        textcoords="offset points", fontsize=0.85 * _SIZE, color=FAINT,
    )  # fmt: skip


def _heat(ax: Axes, one: HeatMap, view: MonitorView) -> None:
    edges = np.arange(len(one.rows) + 1) - 0.5
    ax.pcolormesh(
        view.columns, edges, np.ma.masked_invalid(shades(one)), cmap=_COLOURS, vmin=-FULL_COLOUR,
        vmax=FULL_COLOUR, rasterized=True,
    )  # fmt: skip
    ax.set_ylim(len(one.rows) - 0.5, -0.5)
    ax.set_yticks(range(len(one.rows)), [short(row.text, 20) for row in one.rows], **PLAIN)
    ax.tick_params(axis="y", length=0, labelsize=0.85 * _SIZE)
    ax.spines["left"].set_visible(False)
    shown = view.shown
    if shown is not None and shown.variable == one.variable and view.status.alarm:
        for label, row in zip(ax.get_yticklabels(), one.rows, strict=True):
            if row.text == shown.text:
                label.set_fontweight("bold")
                label.set_color(ALARM)
    _title(ax, f"Gap by {short(one.variable)} ({claim_name(one.claim)}) and time")


def _scale(figure: Figure, ax: Axes, claim: str) -> None:
    """Say what the colours mean."""
    from matplotlib.cm import ScalarMappable  # noqa: PLC0415
    from matplotlib.colors import Normalize  # noqa: PLC0415

    size = 100 * FULL_COLOUR
    mapped = ScalarMappable(Normalize(-size, size), _COLOURS)
    bar = figure.colorbar(mapped, ax=ax, location="bottom", aspect=60, shrink=0.6, pad=0.02)
    words = [f"{gap_said(-1, claim)} by {size:g} points", "0", f"{gap_said(1, claim)} by {size:g}"]
    bar.set_ticks([-size, 0, size], labels=words)
    bar.ax.tick_params(labelsize=0.85 * _SIZE, length=0)
    bar.outline.set_visible(False)
