"""A monitor over time: its evidence, its strongest cell, and cells × time coloured by gap."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from varcal._monitor.history import FULL_COLOUR, HeatMap, MonitorView
from varcal._report import plot_style as style
from varcal._text import CLASS, CONFIDENCE, count, gap_side, level_text, number_text, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SIZE, _SMALL = 9.0, 8.0
#: The strength of the colour of gaps that may be chance.
_PALE = 0.3
#: The largest number of variables of a picture.
_MOST_MAPS = 3
#: The characters of a line of the headline.
_WIDTH = 84


def draw_monitor(view: MonitorView) -> Figure:
    """Draw a monitor in a new figure."""
    import matplotlib.pyplot as plt  # noqa: PLC0415  needed only for a new figure

    maps = view.maps[:_MOST_MAPS]
    heights = [1.7, *([2.0] if view.shown is not None else [])]
    heights += [0.35 + 0.16 * len(one.rows) for one in maps]
    figure, grid = plt.subplots(
        len(heights), 1, figsize=(8.0, 1.0 + sum(heights) + 0.35 * len(heights)),
        height_ratios=heights, sharex=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    places = grid[:, 0]
    urgent = view.status.alarm and not view.status.acknowledged
    headline = "\n".join(fill(line, _WIDTH) for line in _headline(view).split("\n"))
    figure.suptitle(
        headline, x=0.01, ha="left", fontsize=12, fontweight="bold",
        color=style.ALARM if urgent else style.INK, **style.PLAIN,
    )  # fmt: skip
    for one in places:
        style.clean(one, _SIZE)
        one.set_xlim(float(view.columns[0]), max(float(view.columns[-1]), 1.0))
        for reset in view.resets:
            one.axvline(reset, color=style.FAINT, linewidth=1.0, linestyle=(0, (1, 2)))
        if view.since is not None:
            one.axvline(view.since, color=style.ALARM, linewidth=1.2)
    _evidence(places[0], view)
    if view.shown is not None:
        _rates(places[1], view)
    for one, where in zip(maps, places[2:], strict=False):
        _heat(where, one, view)
    if maps:
        low, high = (gap_side(sign, maps[0].claim) for sign in (-1, 1))
        words = f"gap in points: below 0 {low}, above 0 {high}; larger gaps have the same colours"
        hidden = view.n_hidden + len(view.maps) - len(maps)
        if hidden:
            are = "is" if hidden == 1 else "are"
            words += f"\n{count(hidden, 'variable')} with less evidence {are} not shown"
        style.gap_scale(places[-1], FULL_COLOUR, words, _SMALL)
    ticks = np.unique(np.linspace(0, max(len(view.x) - 1, 0), 5).round().astype(int))
    ticks = ticks[: len(view.x)]
    names = [short(view.ids[k], 14) for k in ticks]
    places[-1].set_xticks([float(view.x[k]) for k in ticks], names, fontsize=_SIZE, **style.PLAIN)
    style.name_axes(places[-1], _SIZE, "batch")
    return figure


def _evidence(ax: Axes, view: MonitorView) -> None:
    """Draw the evidence and the level of an alarm."""
    ax.set_yscale("log")
    ax.set_ylim(*view.evidence_ends)
    ax.yaxis.set_minor_locator(style.NullLocator())
    ticks = 10.0**view.evidence_powers
    ax.set_yticks(ticks, [number_text(tick) for tick in ticks])
    shown, alarm = np.clip(view.evidence, *view.evidence_ends), view.status.alarm_at
    ax.plot(view.x, shown, color=style.INK, linewidth=1.6, clip_on=False)
    ax.axhline(alarm, color=style.ALARM, linewidth=1.2, linestyle=style.DASHED)
    ax.fill_between(view.x, alarm, shown, where=shown >= alarm, color=style.ALARM, alpha=0.2)
    red: Any = {"color": style.ALARM, "va": "bottom"}
    across, up = ax.get_yaxis_transform(), ax.get_xaxis_transform()
    style.write(ax, "alarm from here on up", (0, alarm), _SMALL, across, xytext=(4, 3), **red)
    if view.since is not None:
        late = view.since > 0.5 * float(view.columns[-1])
        red |= {"ha": "right", "xytext": (-4, 0)} if late else {"xytext": (4, 0)}
        style.write(ax, "change began", (view.since, 0.02), _SMALL, up, **red)
    about = f"Evidence that a gap exceeds the limit anywhere{view.evidence_note}"
    style.title(ax, about, _SIZE, fontweight="bold")


def _rates(ax: Axes, view: MonitorView) -> None:
    """Draw what the model says and what happens in the strongest cell."""
    x, _, rate = view.rates
    ax.plot(x, rate, ".", color=style.HAPPENS, markersize=3, alpha=0.45, label="each batch")
    mean = "mean before and since the change" if view.after is not None else "mean so far"
    level = f"{level_text(round(view.level, 6))} interval valid at all times"
    names: Any = ("says", f"happens, {mean}, {level}")
    for part in (view.before, view.after):
        if part is not None:
            ax.plot(part.x, part.predicted, label=names[0], **style.SAYS_LINE)
            style.happens_line(ax, part.x, (part.observed, part.low, part.high), names[1])
            names = (None, None)
    ax.set_ylim(*_rate_ends(view))
    style.unit_ticks(ax.yaxis)
    shown: Any = view.shown
    about = "What the model says and " + (
        "how often it is right" if shown.claim == CONFIDENCE else "what happens"
    )
    style.title(
        ax, f"{about}{_class(shown.claim)}: {short(shown.label, 60)}", _SIZE, fontweight="bold"
    )
    style.legend(ax, _SMALL, inside=True)


def _rate_ends(view: MonitorView) -> tuple[float, float]:
    """Return the ends of the axis of rates: most of the dots, and all lines."""
    _, _, rate = view.rates
    seen: Any = [np.nanquantile(rate, [0.02, 0.98]) if np.isfinite(rate).any() else [0.0, 1.0]]
    for part in (view.before, view.after):
        if part is not None:
            seen += [part.predicted, part.observed, part.low[-1:], part.high[-1:]]
    low, high = np.nanmin(np.concatenate(seen)), np.nanmax(np.concatenate(seen))
    pad = 0.12 * max(high - low, 0.02)
    return max(low - 2 * pad, 0.0), min(high + pad, 1.0)


def _heat(ax: Axes, one: HeatMap, view: MonitorView) -> None:
    """Draw the cells of a variable over time; what may be chance is pale."""
    gaps = np.clip([row.gap for row in one.rows], -FULL_COLOUR, FULL_COLOUR)
    shades = np.where([row.clear for row in one.rows], 1.0, _PALE) * gaps
    look: Any = {"cmap": style.GAPS, "vmin": -FULL_COLOUR, "vmax": FULL_COLOUR, "rasterized": True}
    edges = np.arange(len(one.rows) + 1) - 0.5
    ax.pcolormesh(view.columns, edges, np.ma.masked_invalid(shades), **look)
    names = [short(row.text, 20) for row in one.rows]
    style.row_ticks(ax, names, _SMALL)
    ax.grid(visible=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
    shown = view.shown
    if shown is not None and shown.variable == one.variable and view.status.alarm:
        for label, row in zip(ax.get_yticklabels(), one.rows, strict=True):
            if row.text == shown.text:
                label.set(fontweight="bold", color=style.ALARM)
    style.title(
        ax, f"Gap by {short(one.variable)}{_class(one.claim)} and time", _SIZE, fontweight="bold"
    )


def _class(claim: str) -> str:
    """Name the class that is judged, if there are more than two."""
    return f" ({short(claim, 30)})" if claim.startswith(CLASS) else ""


def _headline(view: MonitorView) -> str:
    """Say in one or two lines whether there is an alarm, where and since when."""
    status = view.status
    if not status.alarm or status.where is None:
        return str(status)
    word = "KNOWN ALARM" if status.acknowledged else "ALARM"
    return f"{word} since {short(status.where.since, 30)}\n{status.where.fault}"
