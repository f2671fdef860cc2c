"""The effect of a variable at several scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from varcal.plotting._colours import FAINT, INK
from varcal.plotting._effect_view import (
    COLOURS,
    LINES,
    MARKERS,
    MISSING_ROOM,
    EffectView,
    Shown,
)
from varcal.plotting._matplotlib.axes import (
    PLAIN,
    clean,
    own_axes,
    positions,
    text_size,
    value_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from varcal.calibrators._variable.effects import Effect


def draw(curves: tuple[Effect, ...], ax: Any = None, *, scale: str = "logit") -> Any:
    """Draw curves with bands, or dots with whiskers."""
    view = EffectView.of(curves, scale)
    if view.kind == "levels":
        ax = own_axes(ax, 5.2, 1.4 + 0.32 * len(view.names))
    else:
        ax = own_axes(ax, 5.2, 3.6)
    size = text_size(ax)
    clean(ax, size)
    (_levels if view.kind == "levels" else _numbers)(ax, view, size)
    if len(view.curves) > 1:
        ax.legend(
            frameon=False,
            loc="lower right",
            bbox_to_anchor=(1.0, 1.0),
            ncols=len(view.curves),
            fontsize=size,
            borderaxespad=0.2,
        )
    return ax


def _levels(ax: Axes, view: EffectView, size: float) -> None:
    """Draw levels from top to bottom."""
    ax.axvline(0.0, color=FAINT, linewidth=0.8, zorder=1)
    ax.grid(axis="y", color="#E8EAED", linewidth=0.6)
    ax.set_axisbelow(True)
    for k, curve in enumerate(view.curves):
        at = view.x + view.offset(k, 0.2)
        _whiskers(ax, curve.value, at, view.style(k), curve, size, across="x")
    ax.set_yticks(view.x, view.names, fontsize=size, **PLAIN)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_ylim(*view.span)
    ax.set_xlim(*view.reach)
    ax.set_xlabel(view.size.replace("\n", " "), fontsize=size, color=INK, **PLAIN)
    ax.set_ylabel(view.along, fontsize=size, color=INK, **PLAIN)


def _numbers(ax: Axes, view: EffectView, size: float) -> None:
    """Draw curves along numbers or dates, with missing values at the right."""
    ax.axhline(0.0, color=FAINT, linewidth=0.8, zorder=1)
    low, high = (float(end) for end in positions(np.array(view.span), view.kind))
    whole = view.dots and bool((view.x % 1 == 0).all())
    value_axis(ax, view.kind, low, high, size, whole=whole)
    x, step = positions(view.x, view.kind), 0.012 * (high - low)
    for k, curve in enumerate(view.curves):
        style = view.style(k)
        if view.dots:
            at = x + view.offset(k, step)
            _whiskers(ax, at, curve.value, style, curve, size, across="y")
            continue
        ax.plot(
            x, curve.value, color=COLOURS[style], linestyle=LINES[style], label=curve.score or None,
            linewidth=1.8,
        )  # fmt: skip
        ax.fill_between(x, curve.low, curve.high, color=COLOURS[style], alpha=0.12, linewidth=0)
    if view.missing:
        _missing(ax, view, size)
    ax.set_ylim(*view.reach)
    ax.set_xlabel(view.along, fontsize=size, color=INK, **PLAIN)
    ax.set_ylabel(view.size, fontsize=size, color=INK, **PLAIN)


def _missing(ax: Axes, view: EffectView, size: float) -> None:
    """Make room at the right of all values, and draw missing values there."""
    low, high = ax.get_xlim()
    room = MISSING_ROOM * (high - low)
    ticks = [tick for tick in ax.get_xticks() if low <= tick <= high]
    ax.set_xticks(ticks)
    ax.axvspan(high, high + room, color="#F3F4F6", linewidth=0, zorder=0)
    for k, curve in enumerate(view.curves):
        assert curve.missing is not None
        value, bottom, top = curve.missing[:, None]
        one = Shown("", value, bottom, top, None)
        at = np.array([high + room / 2 + view.offset(k, 0.2 * room)])
        _whiskers(ax, at, value, view.style(k), one, size, across="y")
    ax.set_xlim(low, high + room)
    ax.annotate(
        "missing",
        (high + room / 2, 0.0),
        xycoords=("data", "axes fraction"),
        xytext=(0, -4),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize=0.9 * size,
        color=FAINT,
    )


def _whiskers(
    ax: Axes, x: Any, y: Any, style: int, curve: Shown, size: float, *, across: str
) -> None:
    reach: Any = np.maximum([curve.value - curve.low, curve.high - curve.value], 0.0)
    ax.errorbar(
        x,
        y,
        xerr=reach if across == "x" else None,
        yerr=reach if across == "y" else None,
        fmt=MARKERS[style],
        markersize=0.45 * size,
        color=COLOURS[style],
        elinewidth=1.2,
        label=curve.score or None,
    )
