"""A curve as in the paper: actual against predicted error along a variable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes

from varcal._arrays import Floats
from varcal._measures.curve_result import Curve
from varcal._plotting.axes import (
    ACTUAL,
    GROUND,
    INK,
    PLAIN,
    PREDICTED,
    PREDICTED_TEXT,
    SIDES,
    STRIP,
    beside,
    clean,
    end_labels,
    foot,
    inches,
    own_axes,
    percent,
    positions,
    share_axis,
    strip,
    text_size,
    title,
    value_axis,
)
from varcal._text.gaps import claim_of, gap_side
from varcal._text.numbers import level_text, points, points_with_interval
from varcal._text.sentences import short


@dataclass(frozen=True)
class Sides:
    """The series of a curve that are drawn: errors, or rates for event "positive"."""

    title: str
    actual: Floats
    low: Floats
    high: Floats
    predicted: Floats


def sides(curve: Curve) -> Sides:
    """Return errors where the claim is "correct", and rates where it is "positive"."""
    if curve.event == "correct":
        return Sides(
            "error",
            1 - curve.observed,
            1 - curve.observed_high,
            1 - curve.observed_low,
            1 - curve.predicted,
        )
    return Sides(
        "actual rate",
        curve.observed,
        curve.observed_low,
        curve.observed_high,
        curve.predicted,
    )


@dataclass(frozen=True)
class Frame:
    """The ranges of both axes, and which texts are drawn."""

    low: float
    high: float
    top: float
    labels: bool = True
    notes: bool = True


def frame_of(curves: list[Curve]) -> Frame:
    """Return the ranges that hold all of the curves."""
    low = min(float(curve.histogram.edges[0]) for curve in curves)
    high = max(float(curve.histogram.edges[-1]) for curve in curves)
    tops = []
    for curve in curves:
        drawn = sides(curve)
        seen = (curve.x >= low) & (curve.x <= high)
        seen |= not seen.any()
        tops += [drawn.actual[seen].max(), drawn.predicted[seen].max()]
        tops.append(np.quantile(drawn.high[seen], 0.98))
    # Levels need room for a word beside the dot furthest to the right.
    space = 1.4 if curves[0].kind == "levels" else 1.08
    return Frame(low, high, min(max(space * max(tops), 0.01), 1.0))


def draw_curve(curve: Curve, ax: Axes | None) -> Axes:
    """Draw a curve on the given axes or a new figure."""
    if curve.kind == "levels":
        ax = own_axes(ax, 4.6, 1.3 + 0.34 * len(curve.x))
    else:
        ax = own_axes(ax, 4.6, 3.3)
    panel(ax, curve, frame_of([curve]))
    title(ax, curve_title(curve), text_size(ax))
    return ax


def panel(ax: Axes, curve: Curve, frame: Frame) -> None:
    """Draw one curve into a frame."""
    size = text_size(ax)
    clean(ax, size)
    if curve.kind == "levels":
        _levels(ax, curve, frame, size)
        return
    drawn = sides(curve)
    low, high = positions(np.array([frame.low, frame.high]), curve.kind)
    whole = bool(np.all(curve.histogram.edges % 1 == 0.5))
    value_axis(ax, curve.kind, float(low), float(high), size, whole=whole)
    share_axis(ax, frame.top, drawn.title if frame.notes else "", size)
    foot(ax, curve.histogram, curve.kind, size, named=frame.notes)
    x = positions(curve.x, curve.kind)
    single_values = curve.span == 0
    if single_values:
        _dots(ax, x, drawn, size)
    else:
        ax.fill_between(
            x, drawn.low, drawn.high, color=ACTUAL, alpha=0.2, linewidth=0, label="_band"
        )
        ax.plot(x, drawn.predicted, color=PREDICTED, linestyle=(0, (4, 2)), linewidth=1.6)
        ax.plot(x, drawn.actual, color=ACTUAL, linewidth=1.8)
    step = float(np.diff(curve.x).min()) if len(curve.x) > 1 else 1.0
    strip(ax, curve, size, 0.35 * step if single_values else 0.0)
    if frame.notes:
        if curve.regions:
            beside(ax, sum(STRIP) / 2, f"{level_text(curve.level)} sure", size)
        ax.set_xlabel(
            f"{short(curve.variable, 40)}\n{curve_note(curve)}", fontsize=size, color=INK, **PLAIN
        )
    if frame.labels:
        right = float(min(curve.x[-1], frame.high))
        named = [
            (float(np.interp(right, curve.x, drawn.actual)), "actual", ACTUAL),
            (float(np.interp(right, curve.x, drawn.predicted)), "predicted", PREDICTED_TEXT),
        ]
        end_labels(ax, named, size)


def _dots(ax: Axes, x: np.ndarray, drawn: Sides, size: float) -> None:
    """Draw single values: a dot with its whisker, and a dash for the prediction."""
    low, high = ax.get_xlim()
    step = float(np.diff(x).min()) if len(x) > 1 else high - low
    dash = np.clip(0.6 * step / (high - low) * 72 * inches(ax)[0], 4, 2 * size)
    ax.plot(
        x, drawn.predicted, linestyle="", marker="_", markersize=dash, color=PREDICTED,
        markeredgewidth=2,
    )  # fmt: skip
    ax.errorbar(
        x,
        drawn.actual,
        yerr=_reach(drawn),
        fmt="o",
        markersize=0.42 * size,
        color=ACTUAL,
        elinewidth=1.2,
    )


def _reach(drawn: Sides) -> np.ndarray:
    low = np.maximum(drawn.actual - drawn.low, 0.0)
    return np.array([low, np.maximum(drawn.high - drawn.actual, 0.0)])


def _levels(ax: Axes, curve: Curve, frame: Frame, size: float) -> None:
    """Draw levels from top to bottom: a dot with its whisker, and a dash for the prediction."""
    drawn = sides(curve)
    width, height = inches(ax)
    places = np.arange(len(curve.x))
    small = min(size, max(72 * height / len(places) / 1.25, 4.0))
    two_lines = 72 * height / len(places) > 2.3 * size
    ax.set_ylim(len(places) - 0.4, -0.6)
    ax.set_xlim(0, frame.top)
    percent(ax.xaxis)
    ax.spines["left"].set_visible(False)
    ax.grid(axis="y", color="#E8EAED", linewidth=0.6)
    ax.set_axisbelow(True)
    names = []
    for k, count in zip(curve.x.astype(int), curve.counts, strict=True):
        name = short(curve.labels[k], 24 if width > 2.2 else 18)
        names.append(f"{name}\nn = {count:,}" if two_lines else f"{name}  {count:,}")
    ax.set_yticks(places, names, fontsize=small if not two_lines else 0.9 * size, **PLAIN)
    ax.tick_params(axis="y", length=0)
    ax.plot(
        drawn.predicted, places, linestyle="", marker="|", markersize=1.2 * small,
        color=PREDICTED, markeredgewidth=2,
    )  # fmt: skip
    ax.errorbar(
        drawn.actual,
        places,
        xerr=_reach(drawn),
        fmt="o",
        markersize=0.5 * small,
        color=ACTUAL,
        elinewidth=1.2,
    )
    found = {int(region.low): region.direction for region in curve.regions}
    for place, k in zip(places, curve.x.astype(int), strict=True):
        if k in found:
            _side(ax, float(place), found[k], curve.event, small)
    if frame.labels:
        _name_marks(ax, drawn, int(np.flatnonzero(curve.x == curve.worst)[0]), frame, size)
    if frame.notes:
        ax.set_xlabel(f"{drawn.title}; {curve_note(curve)}", fontsize=size, color=INK, **PLAIN)
        ax.set_ylabel(short(curve.variable, 40), fontsize=size, color=INK, **PLAIN)


def _side(ax: Axes, place: float, direction: str, event: str, size: float) -> None:
    """Mark a level whose gap surely differs from zero, at the right."""
    colour = SIDES[direction]
    word = gap_side(1 if direction == "over" else -1, claim_of(event))
    ax.plot(
        [1.02], [place], marker="^" if direction == "over" else "v", markersize=0.55 * size,
        color=colour, markeredgewidth=0, transform=ax.get_yaxis_transform(), clip_on=False,
    )  # fmt: skip
    ax.annotate(
        word, (1.02, place), xycoords=ax.get_yaxis_transform(),
        xytext=(0.55 * size, 0), textcoords="offset points", va="center",
        fontsize=0.85 * size, color=colour, annotation_clip=False,
    )  # fmt: skip


def _name_marks(ax: Axes, drawn: Sides, row: int, frame: Frame, size: float) -> None:
    """Label the dot and the dash in the row where they are furthest apart."""
    marks = [
        (drawn.predicted[row], drawn.predicted[row], "predicted", PREDICTED_TEXT),
        (drawn.low[row], drawn.high[row], "actual", ACTUAL),
    ]
    (left, right) = sorted(marks, key=lambda mark: mark[0] + mark[1])
    point = frame.top / (72 * inches(ax)[0])
    between = right[0] - left[1]
    for (low, high, text, colour), outside, goes_left in (
        (left, left[0] > 6 * size * point, True),
        (right, frame.top - right[1] > 4.5 * size * point, False),
    ):
        # Outside if there is room, otherwise between dot and dash, otherwise below them.
        if not outside:
            goes_left = not goes_left
        under = not outside and between < 12 * size * point
        ax.annotate(
            text,
            (low if goes_left else high, row),
            xytext=(-4 if goes_left else 4, -1.1 * size if under else 0),
            textcoords="offset points",
            ha="right" if goes_left else "left",
            va="center",
            fontsize=size,
            color=colour,
            bbox={"boxstyle": "square,pad=0.05", "facecolor": GROUND, "linewidth": 0},
        )


def worst_of(curve: Curve, most: int = 18) -> str:
    """Return v* as text; dates that span more than a few days have no time of day."""
    text = curve.worst_label
    if curve.kind == "datetime" and np.ptp(curve.histogram.edges) > 3 * 86_400:
        text = text.split(" ")[0]
    return short(text, most)


def curve_title(curve: Curve) -> str:
    """Say how large the error along a variable is, and where it is worst."""
    size = points_with_interval(curve.vece, curve.vece_low, curve.vece_high)
    return f"VECE {size}, worst {points(curve.vce)} at {worst_of(curve)}"


def curve_note(curve: Curve) -> str:
    """Say which rows the plot of a curve shows."""
    parts = [f"n = {curve.n_rows:,}"]
    if curve.histogram.trimmed:
        parts.insert(0, "1st–99th percentile")
    if curve.n_missing:
        parts.append(f"{curve.n_missing:,} missing (gap {points(curve.missing_gap)} points)")
    return ", ".join(parts)
