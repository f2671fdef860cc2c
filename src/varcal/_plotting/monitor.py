"""A monitor over time: its evidence, its strongest cell, and cells × time coloured by gap."""

from __future__ import annotations

from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from varcal._arrays import Floats
from varcal._monitor.status import fault
from varcal._monitor.view import FULL_COLOUR, HeatMap, MonitorView
from varcal._plotting.axes import (
    ACTUAL,
    ALARM,
    FAINT,
    GROUND,
    INK,
    OVER,
    PLAIN,
    PREDICTED,
    UNDER,
    clean,
    end_labels,
    percent,
)
from varcal._text.gaps import CONFIDENCE, claim_name, gap_said
from varcal._text.numbers import level_text, number_text
from varcal._text.sentences import short

_SIZE = 9.0
#: The strength of the colour of gaps that may be chance.
_PALE = 0.3
#: The largest number of variables of a picture.
_MOST_MAPS = 3
#: The characters of a line of the headline.
_WIDTH = 84
_COLOURS = LinearSegmentedColormap.from_list("gaps", [UNDER, GROUND, OVER])


def draw_monitor(view: MonitorView) -> Figure:
    """Draw a monitor in a new figure."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  needed only for a new figure

    maps = view.maps[:_MOST_MAPS]
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
        "\n".join(fill(line, _WIDTH) for line in _headline(view).split("\n")),
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
    ticks, texts = _time_ticks(view)
    places[-1].set_xticks(ticks, texts, fontsize=_SIZE, **PLAIN)
    places[-1].set_xlabel("batch", fontsize=_SIZE, color=INK)
    return figure


def _title(ax: Axes, text: str) -> None:
    ax.set_title(text, fontsize=_SIZE, loc="left", color=INK, fontweight="bold", **PLAIN)


def _evidence(ax: Axes, view: MonitorView) -> None:
    ax.set_yscale("log")
    ax.set_ylim(*view.evidence_ends)
    ax.yaxis.set_minor_locator(NullLocator())
    ticks = 10.0**view.evidence_powers
    ax.set_yticks(ticks, [number_text(tick) for tick in ticks])
    shown = np.clip(view.evidence, *view.evidence_ends)
    ax.plot(view.x, shown, color=INK, linewidth=1.6, clip_on=False)
    ax.axhline(view.status.alarm_at, color=ALARM, linewidth=1.2, linestyle=(0, (4, 3)))
    above = shown >= view.status.alarm_at
    ax.fill_between(view.x, view.status.alarm_at, shown, where=above, color=ALARM, alpha=0.2)
    ax.annotate(
        "alarm from here on up", (0, view.status.alarm_at), xycoords=ax.get_yaxis_transform(),
        xytext=(4, 3), textcoords="offset points", fontsize=0.9 * _SIZE, color=ALARM,
    )  # fmt: skip
    if view.since is not None:
        late = view.since > 0.7 * float(view.columns[-1])
        ax.annotate(
            "change began", (view.since, 0.88), xycoords=ax.get_xaxis_transform(),
            xytext=(-4 if late else 4, 0), textcoords="offset points", fontsize=0.9 * _SIZE,
            color=ALARM, ha="right" if late else "left",
        )  # fmt: skip
    _title(ax, "Evidence that a gap exceeds the limit anywhere")


def _rates(ax: Axes, view: MonitorView) -> None:
    if view.shown is None:
        ax.set_visible(False)
        return
    says, happens, title = _rate_names(view)
    x, _, rate = view.rates
    ax.plot(x, rate, ".", color=ACTUAL, markersize=3, alpha=0.45)
    ends: list[tuple[float, str, str]] = []
    for stretch in (view.before, view.after):
        if stretch is None:
            continue
        ax.fill_between(stretch.x, stretch.low, stretch.high, color=ACTUAL, alpha=0.18, linewidth=0)
        ax.plot(stretch.x, stretch.observed, color=ACTUAL, linewidth=1.8)
        ax.plot(stretch.x, stretch.predicted, color=PREDICTED, linewidth=1.6, linestyle=(0, (4, 2)))
        ends = [
            (float(stretch.predicted[-1]), says, PREDICTED),
            (float(stretch.observed[-1]), happens, ACTUAL),
        ]
    low, high = _rate_range(view)
    ax.set_ylim(low, high)
    percent(ax.yaxis)
    end_labels(ax, ends, _SIZE)
    _title(ax, title)
    ax.annotate(
        _band_note(view), (0, 0), xycoords="axes fraction", xytext=(4, 3),
        textcoords="offset points", fontsize=0.85 * _SIZE, color=FAINT,
    )  # fmt: skip


def _heat(ax: Axes, one: HeatMap, view: MonitorView) -> None:
    edges = np.arange(len(one.rows) + 1) - 0.5
    ax.pcolormesh(
        view.columns, edges, np.ma.masked_invalid(_shades(one)), cmap=_COLOURS, vmin=-FULL_COLOUR,
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
    size = 100 * FULL_COLOUR
    mapped = ScalarMappable(Normalize(-size, size), _COLOURS)
    bar = figure.colorbar(mapped, ax=ax, location="bottom", aspect=60, shrink=0.6, pad=0.02)
    words = [f"{gap_said(-1, claim)} by {size:g} points", "0", f"{gap_said(1, claim)} by {size:g}"]
    bar.set_ticks([-size, 0, size], labels=words)
    bar.ax.tick_params(labelsize=0.85 * _SIZE, length=0)
    bar.outline.set_visible(False)


def _headline(view: MonitorView) -> str:
    """Say in one or two lines whether there is an alarm, where and since when."""
    status = view.status
    if not status.alarm or status.where is None:
        return str(status)
    word = "KNOWN ALARM" if status.acknowledged else "ALARM"
    return f"{word} since {short(status.where.since, 30)}\n{fault(status.where)}"


def _time_ticks(view: MonitorView, many: int = 5) -> tuple[list[float], list[str]]:
    """Return some batches, evenly spaced, and their ids."""
    if not len(view.x):
        return [], []
    which = np.unique(np.linspace(0, len(view.x) - 1, many).round().astype(int))
    return [float(view.x[k]) for k in which], [short(view.ids[k], 14) for k in which]


def _rate_names(view: MonitorView) -> tuple[str, str, str]:
    """Name what the model says, what happens, and the cell."""
    assert view.shown is not None
    here = short(view.shown.label, 60)
    if view.shown.claim == CONFIDENCE:
        return "how sure", "is right", f"How sure and how often right: {here}"
    about = "" if view.shown.claim == "risk" else f" ({view.shown.claim})"
    return "predicted", "actual", f"Actual and predicted rate{about}: {here}"


def _rate_range(view: MonitorView) -> tuple[float, float]:
    """Return the ends of the axis of rates: most of the dots, and all lines."""
    _, _, rate = view.rates
    held = rate[np.isfinite(rate)]
    ends = [*np.quantile(held, [0.02, 0.98])] if held.size else [0.0, 1.0]
    for stretch in (view.before, view.after):
        if stretch is not None:
            last = (stretch.low[-1:], stretch.high[-1:])
            lines = np.concatenate([stretch.predicted, stretch.observed, *last])
            ends += lines[np.isfinite(lines)].tolist()
    low, high = max(min(ends), 0.0), min(max(ends), 1.0)
    pad = 0.12 * max(high - low, 0.02)
    return max(low - 2 * pad, 0.0), min(high + pad, 1.0)


def _band_note(view: MonitorView) -> str:
    """Say what the lines of the strongest cell are."""
    level = level_text(round(view.level, 6))
    since = ", from the change on" if view.after is not None else ""
    return f"dots: each batch; lines: mean so far{since}, {level} interval valid at all times"


def _shades(one: HeatMap) -> Floats:
    """Return the colours of a map as gaps, rows × columns; what may be chance is pale."""
    gaps = np.array([row.gap for row in one.rows])
    clear = np.array([row.clear for row in one.rows])
    return np.where(clear, 1.0, _PALE) * np.clip(gaps, -FULL_COLOUR, FULL_COLOUR)
