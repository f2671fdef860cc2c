"""The effect of a variable at several scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from varcal._arrays import Floats
from varcal._plotting.axes import (
    FAINT,
    INK,
    PLAIN,
    clean,
    own_axes,
    positions,
    text_size,
    value_axis,
)
from varcal._text.sentences import short
from varcal.calibrators._variable.effects import Effect

#: Colours, lines and markers by score, from low to high.
COLOURS = ("#0072B2", "#1B1F24", "#D55E00")
LINES = ("--", "-", ":")
MARKERS = ("v", "o", "^")
#: The largest number of levels drawn; with more, names could not be read.
MOST_LEVELS = 20
#: Up to this many distinct numbers are drawn as dots.
FEW_VALUES = 12
#: The width of the area for missing values at the right, as a part of the x axis.
MISSING_ROOM = 0.12
#: If the inner range is a larger part of the whole than this, the whole is drawn.
_ALMOST = 0.9
_RAISED = {"logit": "probability", "log inverse temperature": "confidence"}


@dataclass(frozen=True, eq=False)
class Shown:
    """One curve of the plot.

    Attributes
    ----------
    score : str
        The score that it belongs to; empty if there is only one curve.
    value, low, high : ndarray
        The values and the ends of their intervals.
    missing : ndarray or None
        Value, low and high of missing values, if they are drawn apart.
    """

    score: str
    value: Floats
    low: Floats
    high: Floats
    missing: Floats | None


@dataclass(frozen=True, eq=False)
class EffectView:
    """The effect of one variable as it is drawn.

    Attributes
    ----------
    kind : {"numeric", "datetime", "duration", "levels"}
        The kind of the variable.
    x : ndarray
        The positions of values: numbers, seconds, or rows of levels from top to bottom.
    names : tuple of str
        The levels.
    curves : tuple of Shown
        One per score.
    dots : bool
        Whether values are drawn as dots, not lines.
    span, reach : tuple of (float, float)
        The ends of both axes.
    along, size : str
        The labels of the axes.
    title : str
        The title of the plot.
    """

    kind: str
    x: Floats
    names: tuple[str, ...]
    curves: tuple[Shown, ...]
    dots: bool
    span: tuple[float, float]
    reach: tuple[float, float]
    along: str
    size: str
    title: str

    @classmethod
    def of(cls, curves: tuple[Effect, ...], scale: str) -> EffectView:
        """Choose what to show of the curves of one variable."""
        first = curves[0]
        scores = [score_text(curve.score) for curve in curves] if len(curves) > 1 else [""]
        name = short(first.name, 40)
        note = ""
        if first.kind == "levels":
            shown, names, note = _levels(curves, scores)
            x, span = np.arange(len(names), dtype=float), (len(names) - 0.4, -0.6)
        else:
            names, held = (), _numbers(first)
            span, cut = _span(held, first)
            x = _within(held, span)
            shown = tuple(
                Shown(
                    score,
                    np.interp(x, held, curve.value),
                    np.interp(x, held, curve.low),
                    np.interp(x, held, curve.high),
                    curve.missing,
                )
                for curve, score in zip(curves, scores, strict=True)
            )
            note = "1st–99th percentile" if cut else ""
        return cls(
            kind=first.kind,
            x=x,
            names=names,
            curves=shown,
            dots=first.kind == "levels" or len(x) <= FEW_VALUES,
            span=span,
            reach=_reach(shown),
            along=f"{name} ({note})" if note else name,
            size=f"change of the {scale}\n(above 0: {_RAISED.get(scale, scale)} raised)",
            title=f"Effect of {name}, other variables at their mean",
        )

    @property
    def missing(self) -> bool:
        """Whether missing values are drawn apart."""
        return self.curves[0].missing is not None

    def style(self, k: int) -> int:
        """Return the index of the style of a curve; a single curve has the middle one."""
        return k if len(self.curves) > 1 else 1

    def offset(self, k: int, width: float) -> float:
        """Return how far the dots of a curve are moved aside, so that none hides another."""
        return width * (k - (len(self.curves) - 1) / 2)


def score_text(score: float) -> str:
    """Name a score with digits enough to tell small or large ones apart.

    >>> score_text(0.5), score_text(3.21e-17), score_text(0.9999)
    ('at score 0.5', 'at score 3.2e-17', 'at score 0.9999')
    """
    return f"at score {score:.2g}" if score < 0.99 else f"at score {score:.4g}"


def _numbers(curve: Effect) -> Floats:
    if curve.kind == "datetime":
        return np.array(curve.at, "M8[s]").astype(np.int64).astype(np.float64)
    return np.array(curve.at, dtype=np.float64)


def _span(x: Floats, curve: Effect) -> tuple[tuple[float, float], bool]:
    """Return the ends of the axis of values, and whether they leave some out."""
    low, high = float(x[0]), float(x[-1])
    if len(x) <= FEW_VALUES:
        pad = 0.06 * (high - low) or 0.5
        return (low - pad, high + pad), False
    inner = curve.inner
    if inner[1] - inner[0] <= 0 or inner[1] - inner[0] > _ALMOST * (high - low):
        return (low, high), False
    return inner, True


def _within(x: Floats, span: tuple[float, float]) -> Floats:
    """Return the values inside a span, and its ends if values go on beyond them."""
    ends = np.clip(span, x[0], x[-1])
    return np.unique(np.concatenate([x[(x > ends[0]) & (x < ends[1])], ends]))


def _reach(curves: tuple[Shown, ...]) -> tuple[float, float]:
    """Return the ends of the axis of effects: all that is drawn, and 0."""
    ends = [0.0]
    for curve in curves:
        ends += [float(curve.low.min()), float(curve.high.max())]
        ends += [] if curve.missing is None else curve.missing.tolist()
    pad = 0.05 * (max(ends) - min(ends)) or 0.1
    return min(ends) - pad, max(ends) + pad


def _levels(
    curves: tuple[Effect, ...], scores: list[str]
) -> tuple[tuple[Shown, ...], tuple[str, ...], str]:
    """Return the levels with the largest effects in their own order, missing values last."""
    names = curves[0].at
    largest = np.max([np.abs(curve.value) for curve in curves], axis=0)
    kept = np.sort(np.argsort(-largest, kind="stable")[:MOST_LEVELS])
    shown = []
    for curve, score in zip(curves, scores, strict=True):
        rows = np.column_stack([curve.value, curve.low, curve.high])[kept]
        if curve.missing is not None:
            rows = np.vstack([rows, curve.missing])
        shown.append(Shown(score, rows[:, 0], rows[:, 1], rows[:, 2], None))
    texts = [short(str(names[k]), 24) for k in kept]
    texts += ["(missing)"] if curves[0].missing is not None else []
    every = len(kept) == len(names)
    note = "" if every else f"{len(kept)} of {len(names)} levels, largest effects"
    return tuple(shown), tuple(texts), note


def draw_effect(curves: tuple[Effect, ...], ax: Axes | None, scale: str) -> Axes:
    """Draw curves with bands, or dots with whiskers."""
    view = EffectView.of(curves, scale)
    if view.kind == "levels":
        ax = own_axes(ax, 5.2, 1.4 + 0.32 * len(view.names))
    else:
        ax = own_axes(ax, 5.2, 3.6)
    size = text_size(ax)
    clean(ax, size)
    (_draw_levels if view.kind == "levels" else _draw_numbers)(ax, view, size)
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


def _draw_levels(ax: Axes, view: EffectView, size: float) -> None:
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


def _draw_numbers(ax: Axes, view: EffectView, size: float) -> None:
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
        _draw_missing(ax, view, size)
    ax.set_ylim(*view.reach)
    ax.set_xlabel(view.along, fontsize=size, color=INK, **PLAIN)
    ax.set_ylabel(view.size, fontsize=size, color=INK, **PLAIN)


def _draw_missing(ax: Axes, view: EffectView, size: float) -> None:
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
