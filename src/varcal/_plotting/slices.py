"""Slices, one row each: what the model says and what happens."""

from __future__ import annotations

import textwrap

import numpy as np
from matplotlib.axes import Axes

from varcal._plotting.axes import (
    ACTUAL,
    FAINT,
    GROUND,
    INK,
    OVER,
    PLAIN,
    PREDICTED,
    PREDICTED_TEXT,
    UNDER,
    clean,
    own_axes,
    percent,
    text_size,
)
from varcal._slices.slices_result import Slice, Slices
from varcal._text.gaps import CONFIDENCE, marked_side
from varcal._text.numbers import count, interval, level_text, p_equation, points
from varcal._text.numbers import percent as percent_text

#: Characters in a line of a rule, and its lines at most.
WIDTH, LINES = 38, 3


def draw_slices(found: Slices, ax: Axes | None) -> Axes:
    """Draw slices on the given axes or a new figure, the clearest at the top."""
    many = max(len(found), 1)
    ax = own_axes(ax, 8.2, 1.3 + 0.62 * many)
    size = text_size(ax)
    clean(ax, size)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    claims = {one.claim for one in found.slices}
    names = [_name(one, len(claims) > 1) for one in found.slices]
    ax.set_yticks(np.arange(len(names)), names, fontsize=0.9 * size, **PLAIN)
    ax.set_ylim(many - 0.4, -0.75)
    ends = [end for one in found.slices for end in (one.predicted, *_rates(one))] or [0.0, 1.0]
    room = 0.06 * (max(ends) - min(ends)) or 0.05
    ax.set_xlim(max(0.0, min(ends) - room), min(1.0, max(ends) + room))
    percent(ax.xaxis)
    for k, one in enumerate(found.slices):
        _row(ax, k, one, size)
    sure = claims == {CONFIDENCE}
    if found.slices:
        _name_dots(ax, found.slices[0], "is right" if sure else "happens", size)
    axis = "share of rows right" if sure else "share of rows with the outcome"
    searched = f"{count(found.n, 'row')}, {count(found.n_variables, 'variable')}"
    note = f"whiskers: {level_text(found.level)} intervals that allow for the search"
    ax.set_xlabel(f"{axis}\n{searched}; {note}", fontsize=0.9 * size, color=FAINT, **PLAIN)
    title = f"{count(len(found), 'slice')} where the model is most wrong"
    title = title if found.slices else "No slice is clearly off"
    title = f"{title} ({p_equation(found.p_value)})"
    ax.set_title(title, fontsize=size, loc="left", color=INK, **PLAIN)
    ax.grid(axis="y", color="#E8EAED", linewidth=0.6)
    ax.set_axisbelow(True)
    return ax


def _row(ax: Axes, k: int, one: Slice, size: float) -> None:
    """Draw the whisker, both dots and the texts of a slice."""
    colour = OVER if one.gap > 0 else UNDER
    ax.plot(_rates(one), [k, k], color=ACTUAL, linewidth=1.2, alpha=0.7)
    ax.plot([one.predicted, one.observed], [k, k], color=colour, linewidth=3.5, alpha=0.45)
    ax.plot(one.observed, k, "o", color=ACTUAL, markersize=0.7 * size, clip_on=False)
    ax.plot(
        one.predicted, k, "o", color=PREDICTED, markerfacecolor=GROUND, markersize=0.7 * size,
        markeredgewidth=1.8, clip_on=False,
    )  # fmt: skip
    low, high = sorted(abs(end) for end in (one.low, one.high))
    ends = interval(low, high) if one.low * one.high > 0 else interval(one.low, one.high)
    gap = f"{marked_side(one.gap, one.claim)} by {points(abs(one.gap))} ({ends})"
    rows = f"{count(one.rows, 'row')}, {percent_text(one.share)}"
    ax.annotate(
        f"{gap}\n{rows}", (1, k), xycoords=ax.get_yaxis_transform(), xytext=(6, 0),
        textcoords="offset points", va="center", fontsize=0.85 * size, color=INK,
        annotation_clip=False, **PLAIN,
    )  # fmt: skip


def _name_dots(ax: Axes, first: Slice, happens: str, size: float) -> None:
    """Name the two dots of the first slice, away from each other but not beyond the axes."""
    left = first.predicted < first.observed
    low, high = ax.get_xlim()
    for value, text, colour, before in (
        (first.predicted, "model says", PREDICTED_TEXT, left),
        (first.observed, happens, ACTUAL, not left),
    ):
        place = (value - low) / (high - low)
        right = place > 0.85 or (before and place > 0.15)
        ax.annotate(
            text, (value, 0), xytext=(4 if right else -4, 0.75 * size),
            textcoords="offset points", ha="right" if right else "left", va="bottom",
            fontsize=0.85 * size, color=colour,
        )  # fmt: skip


def _rates(one: Slice) -> tuple[float, float]:
    """Return where the hit rate would lie by the interval of the gap."""
    return max(one.predicted - one.high, 0.0), min(one.predicted - one.low, 1.0)


def _name(one: Slice, several: bool) -> str:
    """Return the rule of a slice on a few lines."""
    rule = f"{one.rule} [{one.claim}]" if several else one.rule
    lines = textwrap.wrap(rule, WIDTH, break_long_words=True) or [rule]
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], f"{lines[LINES - 1][: WIDTH - 1]}…"]
    return "\n".join(lines)
