"""The style of all pictures: colours, texts, axes and ticks, dots with intervals, the legend."""
# ruff: noqa: E402 (matplotlib is looked for before its parts are loaded)

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from varcal._arrays import Floats
from varcal._edge_texts import edge_texts
from varcal._text import Unit, level_text, number_text, short
from varcal.exceptions import InputError, import_library, shown

import_library("matplotlib", "plot()")
import matplotlib as mpl
import matplotlib.dates as _dates
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection as LineCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.colors import to_rgb as to_rgb
from matplotlib.patches import Rectangle as Rectangle
from matplotlib.ticker import FuncFormatter
from matplotlib.ticker import MaxNLocator as MaxNLocator
from matplotlib.ticker import NullLocator as NullLocator
from matplotlib.transforms import ScaledTranslation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

dates: Any = _dates  # untyped in matplotlib

#: Safe for the colour-blind, and never the only sign.
SAYS, HAPPENS = "#D55E00", "#0072B2"
OVER, UNDER, ALARM = "#B35806", "#542788", "#A4262C"
#: Grey areas: rows and chance; cells with too few rows.
ROWS, FEW = "#C3C9D1", "#ECEEF1"
INK, FAINT, GRID, GROUND = "#1B1F24", "#6B7280", "#E8EAED", "#FFFFFF"
#: Gaps below and above 0.
GAPS = LinearSegmentedColormap.from_list("gaps", [UNDER, GROUND, OVER])
DASHED: Any = (0, (4, 2))
#: Names are plain text, even if they contain dollar signs.
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}
#: What the model says, as a line.
SAYS_LINE: dict[str, Any] = {"color": SAYS, "linestyle": DASHED, "linewidth": 1.6}
#: How rates are written.
SHARES = Unit()
#: The width of a letter, as a part of the size of the text.
LETTER = 0.57


def prepare(ax: Axes | None, width: float = 0.0, height: float = 0.0) -> tuple[Axes, float]:
    """Return the given axes or those of a new figure, cleaned, and the size of their texts.

    The size is the user's font size, reduced on small axes.
    """
    if ax is None:
        import matplotlib.pyplot as plt  # noqa: PLC0415  needed only for a new figure

        ax = plt.subplots(figsize=(width, height), layout="constrained")[1]
    elif not (hasattr(ax, "get_figure") and hasattr(ax, "transAxes")):
        raise InputError(
            f"ax must be axes of matplotlib; got {shown(ax)}",
            "for example ax=plt.subplots()[1]",
            argument="ax",
        )
    size = mpl.rcParams["font.size"] * float(np.clip(0.52 + 0.1 * inches(ax)[0], 0.65, 0.95))
    clean(ax, size)
    return ax, size


def inches(ax: Axes) -> tuple[float, float]:
    """Return the width and height of axes."""
    box, figure = ax.get_window_extent(), ax.get_figure(root=True)
    return float(box.width / figure.dpi), float(box.height / figure.dpi)  # type: ignore[union-attr]


def clean(ax: Axes, size: float) -> None:
    """Leave two spines and quiet ticks."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(labelsize=size, color=FAINT, labelcolor=INK, width=0.6, length=3)


def write(
    ax: Axes, text: str, at: tuple[float, float], size: float, within: Any, **look: Any
) -> None:
    """Write at a place of the axes, moved by `xytext` points; it may lie outside of them."""
    look = {"xytext": (0, 0), "va": "center", "color": INK, **PLAIN, **look}
    look |= {"textcoords": "offset points", "annotation_clip": False, "fontsize": size}
    ax.annotate(text, at, xycoords=within, **look)


def write_beside(ax: Axes, row: float, text: str, size: float, **look: Any) -> None:
    """Write at the right of a row."""
    write(ax, text, (1, row), size, ax.get_yaxis_transform(), xytext=(6, 0), **look)


def name_axes(ax: Axes, size: float, x: str, y: str = "", *, middle: float = 0.5) -> None:
    """Set the labels of both axes; that of the y axis at its middle."""
    ax.set_xlabel(x, fontsize=size, color=INK, **PLAIN)
    ax.set_ylabel(y, fontsize=size, color=INK, y=middle, **PLAIN)


def letters_across(ax: Axes, size: float) -> int:
    """Return how many letters fit between the left end of axes and what is at their right."""
    figure: Any = ax.get_figure(root=True)
    spec, width = ax.get_subplotspec(), 1.2 * inches(ax)[0]
    if spec is not None:
        width = figure.get_figwidth() / spec.get_gridspec().ncols
    lines = "\n".join(label.get_text() for label in ax.get_yticklabels()).split("\n")
    return max(int(72 * width / (LETTER * size)) - max(map(len, lines)) - 4, 16)


def title(ax: Axes, text: str, size: float, **look: Any) -> None:
    """Set the title at the left, on as many lines as it needs."""
    room = letters_across(ax, size)
    lines = [textwrap.fill(line, room, break_on_hyphens=False) for line in text.split("\n")]
    ax.set_title("\n".join(lines), fontsize=size, loc="left", color=INK, **PLAIN, **look)


def legend(ax: Axes, size: float, *, inside: bool = False) -> None:
    """Explain the marks that have labels, if any, below the name of the x axis or in the axes."""
    handles, labels = ax.get_legend_handles_labels()
    if not labels:
        return
    figure: Any = ax.get_figure(root=True)
    down = 0.0 if inside else 1.35 * size * (2 + ax.get_xlabel().count("\n")) + 6
    place = ax.transAxes + ScaledTranslation(0, -down / 72, figure.dpi_scale_trans)
    fits = inside or sum(len(label) + 6 for label in labels) <= letters_across(ax, 0.9 * size)
    ax.legend(
        handles, labels, loc="lower left" if inside else "upper left", bbox_to_anchor=(0, 0),
        bbox_transform=place, ncols=len(labels) if fits else 2, frameon=inside, edgecolor="none",
        fontsize=0.9 * size, borderaxespad=0.2, handlelength=1.6, handletextpad=0.5,
        columnspacing=1.2,
    )  # fmt: skip


def gap_scale(ax: Axes, most: float, label: str, size: float) -> None:
    """Draw the scale of the colours of gaps below the axes, in points."""
    figure: Any = ax.get_figure()
    mapped = ScalarMappable(Normalize(-100 * most, 100 * most), GAPS)
    bar = figure.colorbar(mapped, ax=ax, location="bottom", fraction=0.045, pad=0.02, aspect=45)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=0.9 * size, color=FAINT)
    bar.set_label(label, fontsize=0.9 * size, color=INK, **PLAIN)


def unit_ticks(axis: Any, unit: str = "%") -> None:
    """Write rates in percent, errors in points, or amounts in units, with the digits they need."""
    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    sign = "%" if unit == "%" else ""
    scale = 1 if unit == "units" else 100

    def text(value: float, _: object) -> str:
        low, high = axis.get_view_interval()
        digits = max(4, 3 - int(np.floor(np.log10(scale * abs(high - low) or 1.0))))
        return number_text(round(scale * value, digits)) + sign

    axis.set_major_formatter(FuncFormatter(text))


def row_ticks(
    ax: Axes, names: Sequence[str], size: float, at: Sequence[float] | None = None
) -> float:
    """Name rows from top to bottom, by default at 0, 1, …; return the size of their texts."""
    at = range(len(names)) if at is None else at
    many = max(at, default=0) + 1
    small = float(np.clip(72 * inches(ax)[1] / many / 1.25, 4.0, size))
    ax.set_yticks(at, names, fontsize=small, **PLAIN)
    ax.set_ylim(many - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="y", color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    return small


def bin_ticks(ax: Axes, names: Sequence[str], size: float) -> None:
    """Name as many of the bins at 0, 1, … on the x axis as fit, the first and the last always."""
    room = 72 * inches(ax)[0] / (LETTER * size)
    texts = [short(name, max(int(0.5 * room), 10)) for name in names]
    many = int(np.clip(room / (max(map(len, texts)) + 2), 2, len(texts)))
    chosen = np.unique(np.linspace(0, len(texts) - 1, many).round().astype(int))
    ax.set_xticks(chosen, [texts[k] for k in chosen], fontsize=size, **PLAIN)
    ax.set_xlim(-0.7, len(texts) - 0.3)
    if len(chosen) > 1:  # long names stay between the ends
        ax.get_xticklabels()[0].set_horizontalalignment("left")
        ax.get_xticklabels()[-1].set_horizontalalignment("right")


def positions(x: Any, kind: str) -> Floats:
    """Return the positions of the values of a variable on an axis."""
    if kind != "datetime":
        return np.asarray(x, np.float64)
    stamps = np.array(np.round(np.asarray(x) * 1e6), "M8[us]")
    return np.asarray(dates.date2num(stamps), np.float64)


def value_ticks(
    ax: Axes, kind: str, ends: Any, size: float, *, whole: bool = False
) -> tuple[float, float]:
    """Set up the x axis of numbers, dates or durations; return the positions of its ends."""
    low, high = (float(end) for end in positions(ends, kind))
    ax.set_xlim(low, high)
    ax.xaxis.get_offset_text().set_fontsize(size)
    if kind == "duration":
        step = _duration_step(high - low)
        ticks = step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)
        ax.set_xticks(ticks, edge_texts(ticks.tolist(), duration=True))
    elif kind == "datetime":
        locator = dates.AutoDateLocator(minticks=3, maxticks=6)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    else:
        letters = max(len(number_text(float(f"{end:.2g}"))) for end in (low, high)) + 3
        many = int(np.clip(72 * inches(ax)[0] / (LETTER * size * letters), 2, 8))
        steps = [1, 2, 5, 10] if whole else [1, 2, 2.5, 5, 10]
        ax.xaxis.set_major_locator(MaxNLocator(many, steps=steps, integer=whole))
        far = max(abs(low), abs(high))
        if far < 1e9 and high - low > 1e-3 * far:  # otherwise matplotlib shows an offset
            ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))
    return low, high


def _duration_step(span: float) -> float:
    """Return the distance of ticks over some seconds: a round number of a suitable unit.

    >>> _duration_step(10 * 86_400) / 86_400, _duration_step(7200) / 60
    (2.0, 30.0)
    """
    unit = next((size for size in (86_400, 3600, 60, 1, 1e-3) if span >= 2 * size), 1e-6)
    rough = span / unit / 5
    scale = 10.0 ** np.floor(np.log10(rough))
    return float(unit * next(k * scale for k in (1, 2, 5, 10) if k * scale >= 0.999 * rough))


def dots(ax: Axes, at: Any, figures: Any, size: float, *, rows: bool = False, **look: Any) -> None:
    """Draw values with low and high ends of intervals, side by side or in rows."""
    value, low, high = figures
    look = {"color": HAPPENS, "facecolor": look.get("color", HAPPENS), **look}
    colour = look.pop("color")
    (ax.hlines if rows else ax.vlines)(at, low, high, color=colour, linewidth=1.4, zorder=2.5)
    x, y = (value, at) if rows else (at, value)
    ax.scatter(x, y, s=size**2, edgecolor=colour, linewidth=1.2, zorder=3, **look)


def says_and_happens(
    ax: Axes,
    at: Any,
    says: Any,
    happens: Any,
    size: float,
    *,
    level: float,
    rows: bool = False,
    unit: Unit = SHARES,
) -> None:
    """Draw what the model says as dashes, and what happens as dots with intervals."""
    dash = 1.2 * size if rows else np.clip(36 * inches(ax)[0] / len(at), 4, 2 * size)
    x, y = (says, at) if rows else (at, says)
    ax.plot(
        x, y, linestyle="", marker="|" if rows else "_", markersize=dash, color=SAYS,
        markeredgewidth=2, label=unit.says,
    )  # fmt: skip
    dots(
        ax,
        at,
        happens,
        0.45 * size,
        rows=rows,
        label=f"{unit.happens}, {level_text(level)} interval",
    )


def happens_line(ax: Axes, x: Any, figures: Any, label: str | None) -> None:
    """Draw what happens as a line with its band."""
    value, low, high = figures
    ax.fill_between(x, low, high, color=HAPPENS, alpha=0.2, linewidth=0)
    ax.plot(x, value, color=HAPPENS, linewidth=1.8, label=label)
