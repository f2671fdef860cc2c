"""What pictures share: colours, axes given or new, their ticks and texts, and the foot."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import matplotlib.dates as _dates
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from varcal._arrays import Floats
from varcal._measures.curve_result import Curve
from varcal._measures.histogram import Histogram
from varcal._text.edges import show_duration
from varcal._text.gaps import claim_of, gap_said, gap_side
from varcal.exceptions import InputError, shown

dates: Any = _dates  # untyped in matplotlib

#: Safe for the colour-blind, and never the only sign.
ACTUAL = "#0072B2"
PREDICTED = "#D55E00"
PREDICTED_TEXT = "#B84A00"
OVER = "#B35806"
UNDER = "#542788"
DENSITY = "#C3C9D1"
INK = "#1B1F24"
FAINT = "#6B7280"
GROUND = "#FFFFFF"
ALARM = "#A4262C"

#: Cells of a surface with too few rows.
FEW = "#ECEEF1"

SIDES = {"over": OVER, "under": UNDER}

#: Names are plain text, even if they contain dollar signs.
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}
#: Heights as parts of the axes: bars of the histogram, strip of regions, zero of the y axis.
BARS, STRIP, ZERO = 0.13, (0.15, 0.205), 0.24


def shade(strength: float) -> str:
    """Return the colour of a gap: white at 0, orange towards 1, violet towards −1.

    >>> shade(0.0), shade(1.0), shade(-1.0)
    ('#ffffff', '#b35806', '#542788')
    """
    end = OVER if strength > 0 else UNDER
    full = [int(end[k : k + 2], 16) for k in (1, 3, 5)]
    mixed = [255 + min(abs(strength), 1.0) * (part - 255) for part in full]
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def own_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        if hasattr(ax, "get_figure") and hasattr(ax, "transAxes"):
            return ax
        raise InputError(
            f"ax must be axes of matplotlib; got {shown(ax)}",
            "for example ax=plt.subplots()[1]",
            argument="ax",
        )
    import matplotlib.pyplot as plt  # noqa: PLC0415  needed only for a new figure

    made: Axes = plt.subplots(figsize=(width, height), layout="constrained")[1]
    return made


def inches(ax: Axes) -> tuple[float, float]:
    """Return the width and height of axes."""
    box = ax.get_window_extent()
    dpi = ax.get_figure(root=True).dpi  # type: ignore[union-attr]
    return float(box.width / dpi), float(box.height / dpi)


def text_size(ax: Axes) -> float:
    """Return the size of texts: the user's font size, reduced on small axes."""
    usual = float(mpl.rcParams["font.size"])
    return usual * float(np.clip(0.52 + 0.1 * inches(ax)[0], 0.65, 0.95))


def clean(ax: Axes, size: float) -> None:
    """Leave two spines and quiet ticks."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(labelsize=size, color=FAINT, labelcolor=INK, width=0.6, length=3)


def title(ax: Axes, text: str, size: float) -> None:
    """Set the title, left-aligned, on two lines if it is too long for one."""
    left, right = ax.get_position().x0, 1.0
    room = (right - left) * ax.get_figure(root=True).get_figwidth()  # type: ignore[union-attr]
    if ax.get_subplotspec() is not None and len(ax.get_figure().axes) > 1:  # type: ignore[union-attr]
        room = 1.15 * inches(ax)[0]
    if 0.57 * size * len(text) / 72 > room:
        text = text.replace("; ", ";\n", 1).replace("), ", "),\n", 1)
    ax.set_title(text, fontsize=size, loc="left", color=INK, **PLAIN)


def percent(axis: Any, *, sign: str = "%") -> None:
    """Show shares in percent, or errors in points, with as many digits as their ticks need."""
    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{round(100 * share, 4):g}{sign}"))


def share_axis(ax: Axes, top: float, label: str, size: float, *, low: float = 0.0) -> None:
    """Set up a y axis in percent, with room for the foot below it."""
    ax.set_ylim(low - (top - low) * ZERO / (1 - ZERO), top)
    percent(ax.yaxis)
    ticks = ax.yaxis.get_major_locator().tick_values(low, top)
    ax.set_yticks([tick for tick in ticks if low - 1e-9 <= tick <= top + 1e-9])
    ax.spines["left"].set_bounds(low, top)
    ax.axhline(low, color=FAINT, linewidth=0.6, zorder=1)
    ax.set_ylabel(label, fontsize=size, color=INK, y=ZERO + (1 - ZERO) / 2, **PLAIN)


def positions(x: Floats, kind: str) -> Floats:
    """Return the positions of values on the x axis."""
    if kind != "datetime":
        return np.asarray(x, np.float64)
    stamps = np.array(np.round(np.asarray(x) * 1e6), "M8[us]")
    return np.asarray(dates.date2num(stamps), np.float64)


def value_axis(
    ax: Axes, kind: str, low: float, high: float, size: float, *, whole: bool = False
) -> None:
    """Set up the x axis of a numeric, datetime or duration variable."""
    ax.set_xlim(low, high)
    if kind == "duration":
        ax.xaxis.set_major_locator(MultipleLocator(duration_step(high - low)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: show_duration(value)))
        return
    if kind == "datetime":
        locator = dates.AutoDateLocator(minticks=3, maxticks=6)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        ax.xaxis.get_offset_text().set_fontsize(size)
    else:
        many = max(3, int(inches(ax)[0] * 2.2))
        steps = [1, 2, 5, 10] if whole else [1, 2, 2.5, 5, 10]
        ax.xaxis.set_major_locator(MaxNLocator(many, steps=steps, integer=whole))


def duration_step(span: float) -> float:
    """Return the distance of ticks over some seconds: a round number of a suitable unit.

    >>> duration_step(10 * 86_400) / 86_400, duration_step(7200) / 60
    (5.0, 30.0)
    """
    unit = next((size for size in (86_400, 3600, 60, 1, 1e-3) if span >= 2 * size), 1e-6)
    rough = span / unit / 4
    scale = 10.0 ** np.floor(np.log10(rough))
    return float(unit * next(k * scale for k in (1, 2, 5, 10) if k * scale >= rough))


def foot(ax: Axes, histogram: Histogram, kind: str, size: float, *, named: bool) -> None:
    """Draw the histogram at the foot."""
    scale = BARS / max(float(histogram.share.max()), 1e-300)
    ax.stairs(
        histogram.share * scale,
        positions(histogram.edges, kind),
        fill=True,
        color=DENSITY,
        linewidth=0,
        transform=ax.get_xaxis_transform(),
        zorder=1,
    )
    if named:
        beside(ax, BARS / 2, "rows", size)


def beside(ax: Axes, y: float, text: str, size: float) -> None:
    """Name a part of the foot at its left."""
    ax.annotate(
        text,
        (0, y),
        xycoords="axes fraction",
        xytext=(-4, 0),
        textcoords="offset points",
        ha="right",
        va="center",
        fontsize=0.85 * size,
        color=FAINT,
    )


def strip(ax: Axes, curve: Curve, size: float, pad: float) -> None:
    """Mark where the band excludes zero, with triangles and words as well as colours."""
    low, high = ax.get_xlim()
    point = (high - low) / (72 * inches(ax)[0])
    middle, last = sum(STRIP) / 2, -np.inf
    for region in curve.regions:
        start, end = positions(np.array([region.low - pad, region.high + pad]), curve.kind)
        start, end = max(start, low), min(end, high)
        if start > high or end < low:
            continue
        end = max(end, start + 2 * point)
        colour = SIDES[region.direction]
        box = Rectangle(
            (start, STRIP[0]),
            end - start,
            STRIP[1] - STRIP[0],
            transform=ax.get_xaxis_transform(),
            facecolor=colour,
            linewidth=0,
            zorder=2,
            gid=f"region {region.direction}",
        )
        ax.add_patch(box)
        centre, room = (start + end) / 2, (end - start) / point
        gap, claim = 1.0 if region.direction == "over" else -1.0, claim_of(curve.event)
        words = (str(gap_said(gap, claim)), gap_side(gap, claim))
        word = next((one for one in words if room >= 0.55 * size * (len(one) + 2)), "")
        shift = 0.27 * size * (len(word) + 1.5) * point if word else 0.0
        if centre - last < 0.8 * size * point:
            continue
        last = centre
        narrow = room < 0.9 * size
        ax.plot(
            [centre - shift],
            [STRIP[1] + 0.018 if narrow else middle],
            marker="^" if region.direction == "over" else "v",
            markersize=0.5 * size,
            color=colour if narrow else GROUND,
            markeredgewidth=0,
            transform=ax.get_xaxis_transform(),
            zorder=3,
            clip_on=False,
        )
        if word:
            ax.text(
                centre - shift + 0.5 * size * point,
                middle,
                word,
                transform=ax.get_xaxis_transform(),
                ha="left",
                va="center_baseline",
                fontsize=0.82 * size,
                color=GROUND,
                zorder=3,
            )


def end_labels(ax: Axes, ends: list[tuple[float, str, str]], size: float) -> None:
    """Label lines at their right ends, given as (y, text, colour), without overlap."""
    low, high = ax.get_ylim()
    least = 1.25 * size / 72 / inches(ax)[1] * (high - low)
    ordered = sorted(ends)
    places = [y for y, _, _ in ordered]
    if len(places) == 2 and places[1] - places[0] < least:
        centre = max(sum(places) / 2, least / 2)
        places = [centre - least / 2, centre + least / 2]
    for place, (_, text, colour) in zip(places, ordered, strict=True):
        ax.annotate(
            text,
            (1, place),
            xycoords=("axes fraction", "data"),
            xytext=(3, 0),
            textcoords="offset points",
            va="center",
            fontsize=size,
            color=colour,
            annotation_clip=False,
        )
