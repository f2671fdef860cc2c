"""Dots and whiskers, one row each: the rankings of audits and comparisons, and estimates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from varcal._arrays import Bools, Floats
from varcal._audit.audit_result import Audit
from varcal._audit.comparison import Comparison, ComparisonRow
from varcal._audit.first_screen import first_screen
from varcal._audit.metric_text import UNITS, metric_change
from varcal._audit.verdicts import BASELINE, FINDINGS
from varcal._measures.estimate import Estimate
from varcal._options import check_choice
from varcal._plotting.axes import (
    ACTUAL,
    DENSITY,
    FAINT,
    GROUND,
    INK,
    PLAIN,
    clean,
    inches,
    own_axes,
    percent,
    text_size,
    title,
)
from varcal._text.numbers import level_text, limit_text, p_equation, points_with_interval
from varcal._text.sentences import short

QUANTITIES = ("uneven", "vece")
#: Figures that are mean gaps; they have a noise floor and start at zero.
ERRORS = ("VECE", "ECE")
#: The height of a heading with the space above it, in rows.
_HEAD = 1.4


def draw_audit(audit: Audit, ax: Axes | None, quantity: str, top: int) -> Axes:
    """Draw the ranking of an audit."""
    check_choice("quantity", quantity, QUANTITIES)
    rows = audit.rows[: max(int(top), 1)]
    found = [getattr(row, quantity) for row in rows]
    level = level_text(audit.level)
    lines: tuple[tuple[float, str], ...] = ()
    if quantity == "uneven":
        ends = [(row.low, row.high) for row in rows]
        lines = ((audit.limit, f"limit {limit_text(audit.limit)}"),)
        label = f"uneven error, {level} intervals for all at once"
    else:
        ends = [(one.low, one.high) for one in found]
        label = f"VECE, {level} interval"
    dots = Dots(
        names=tuple(row.variable for row in rows),
        value=np.array([one.debiased for one in found]),
        low=np.array([low for low, _ in ends]),
        high=np.array([high for _, high in ends]),
        filled=np.array([row.verdict in FINDINGS for row in rows]),
        label=label,
        title=first_screen(audit, repair=False).headline,
        noise=np.array([one.noise_high for one in found]),
        texts=tuple(row.verdict for row in rows),
        lines=lines,
        more=len(audit.rows) - len(rows),
    )
    return _draw(dots, ax)


def draw_comparison(comparison: Comparison, ax: Axes | None, metric: str, top: int) -> Axes:
    """Draw one figure of every method, under the heading of each variable."""
    known = list(dict.fromkeys(name for name, _ in comparison.figures))
    check_choice("metric", metric, known)
    base = comparison.methods[0]
    variables = [variable for name, variable in comparison.figures if name == metric]
    # An overall gap makes all values alike: those within a tenth of a point keep their order.
    variables.sort(key=lambda variable: -round(comparison.row(base, metric, variable).value, 3))
    kept = variables[: max(int(top), 1)]
    rows = [
        comparison.row(one, metric, variable) for variable in kept for one in comparison.methods
    ]
    unit = "; differences in points" if metric in UNITS and metric not in ERRORS else ""
    dots = Dots(
        names=tuple(row.method for row in rows),
        value=np.array([row.value for row in rows]),
        low=np.array([row.low for row in rows]),
        high=np.array([row.high for row in rows]),
        filled=np.array([row.verdict != BASELINE for row in rows]),
        label=f"{metric}, {level_text(comparison.level)} interval{unit}",
        title=f"{metric} before and after, on {comparison.n_rows:,} held-out rows",
        noise=np.array([row.noise_floor for row in rows]) if metric in ERRORS else None,
        texts=tuple(_change_text(row) for row in rows),
        more=len(variables) - len(kept),
        headings=tuple(row.variable for row in rows) if metric == "VECE" else (),
        shares=metric in UNITS,
        zero=metric in ERRORS,
    )
    return _draw(dots, ax)


def draw_estimate(estimate: Estimate, ax: Axes | None) -> Axes:
    """Draw an estimate as a single row."""
    along = "" if estimate.metric == "ECE" else f" along {short(estimate.variable, 20)}"
    size = points_with_interval(estimate.debiased, estimate.low, estimate.high)
    dots = Dots(
        names=(estimate.metric,),
        value=np.array([estimate.debiased]),
        low=np.array([estimate.low]),
        high=np.array([estimate.high]),
        filled=np.array([estimate.p_value <= 1 - estimate.level]),
        label=f"{estimate.metric}, {level_text(estimate.level)} interval",
        title=f"{estimate.metric}{along}: {size}, {p_equation(estimate.p_value)}",
        noise=np.array([estimate.noise_high]),
        plug_in=np.array([estimate.value]),
    )
    return _draw(dots, ax)


@dataclass(frozen=True, eq=False)
class Dots:
    """Values with intervals, one per row, from top to bottom.

    Attributes
    ----------
    names : tuple of str
        What each row is.
    value, low, high : ndarray
        The values and their intervals.
    filled : ndarray of bool
        Whether a dot is filled (a finding) or hollow (none).
    label, title : str
        Name of the axis, and the title.
    noise : ndarray or None
        How large each value could be by chance alone.
    plug_in : ndarray or None
        A second, raw value for each row, drawn as a cross.
    texts : tuple of str
        A short text beside each row, or none at all.
    lines : tuple of (float, str)
        Vertical lines and their names.
    more : int
        The number of rows left out at the end, or of blocks if rows have headings.
    headings : tuple of str
        The heading of the block that each row is in, or none at all.
    shares : bool
        Whether values are shares, shown in percent, or errors, shown in points.
    zero : bool
        Whether the axis starts at zero.
    """

    names: tuple[str, ...]
    value: Floats
    low: Floats
    high: Floats
    filled: Bools
    label: str
    title: str
    noise: Floats | None = None
    plug_in: Floats | None = None
    texts: tuple[str, ...] = ()
    lines: tuple[tuple[float, str], ...] = ()
    more: int = 0
    headings: tuple[str, ...] = ()
    shares: bool = True
    zero: bool = True

    @property
    def errors(self) -> bool:
        """Whether values are errors, which are shown in points."""
        return self.shares and self.zero

    @property
    def axis(self) -> str:
        """The name of the axis, with the unit of errors."""
        return f"{self.label}, points" if self.errors else self.label

    @property
    def blocks(self) -> tuple[tuple[int, str], ...]:
        """The first row of each block and its heading."""
        given = self.headings
        return tuple((k, name) for k, name in enumerate(given) if k == 0 or name != given[k - 1])

    @property
    def places(self) -> Floats:
        """How far down each row is; above each block there is room for its heading."""
        starts = [k for k, _ in self.blocks]
        return np.array(
            [k + sum(_HEAD for start in starts if start <= k) for k in range(len(self.names))],
            dtype=np.float64,
        ) - (_HEAD - 1.0 if starts else 0.0)

    @property
    def ticks(self) -> tuple[Floats, tuple[str, ...], tuple[bool, ...]]:
        """Positions of the texts beside the rows, the texts, and which of them are headings."""
        places = self.places
        found = [
            (float(place), name, False) for place, name in zip(places, self.names, strict=True)
        ]
        found += [(float(places[k]) - 1.0, name, True) for k, name in self.blocks]
        found.sort()
        if self.more:
            found.append((float(places[-1]) + 1.0, f"… {self.more} more", False))
        at, names, heads = zip(*found, strict=True)
        return np.array(at), names, heads

    @property
    def span(self) -> tuple[float, float]:
        """The ends of the axis of values, with room beside them."""
        parts = [
            self.value,
            self.low,
            self.high,
            *(p for p in (self.noise, self.plug_in) if p is not None),
        ]
        parts.append(np.array([value for value, _ in self.lines]))
        ends = np.concatenate(parts)
        ends = ends[np.isfinite(ends)]
        if not ends.size:
            return 0.0, 1.0
        low, high = float(ends.min()), float(ends.max())
        if self.zero:
            return min(0.0, 1.06 * low), 1.06 * max(high, 0.005)
        room = 0.06 * max(high - low, 1e-3)
        return low - room, high + room


def _draw(dots: Dots, ax: Axes | None) -> Axes:
    """Draw rows on the given axes or a new figure."""
    at, names, heads = dots.ticks
    many = float(at[-1]) + 1
    ax = own_axes(ax, 4.8, 1.0 + 0.24 * many + 0.2 * (dots.plug_in is not None))
    size = text_size(ax)
    clean(ax, size)
    width, height = inches(ax)
    row = 72 * height / many
    small = float(np.clip(row / 1.3, 4.0, size))
    places = dots.places
    most = 28 if width > 2.4 else 20
    ax.set_yticks(at, [short(name, most) for name in names], fontsize=small, **PLAIN)
    for label, head in zip(ax.get_yticklabels(), heads, strict=True):
        label.set_fontweight("bold" if head else "normal")
    ax.set_ylim(many - 0.4 + 0.8 * bool(dots.lines), -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    left, right = dots.span
    ax.set_xlim(left, right)
    if dots.shares:
        percent(ax.xaxis, sign="" if dots.errors else "%")
    else:
        ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.set_xlabel(dots.axis, fontsize=size, color=INK, **PLAIN)
    if dots.noise is not None:
        ax.barh(places, dots.noise, height=0.6, color=DENSITY, alpha=0.7, linewidth=0)
    for value, name in dots.lines:
        ax.axvline(value, color=FAINT, linewidth=1.0, linestyle=(0, (3, 2)), zorder=1)
        before = value > (left + right) / 2
        ax.annotate(
            name, (value, many - 0.1), xytext=(-3 if before else 3, 0),
            textcoords="offset points", fontsize=0.85 * size, color=FAINT,
            ha="right" if before else "left", va="center", **PLAIN,
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
            short(text, 20), (1, place), xycoords=ax.get_yaxis_transform(), xytext=(4, 0),
            textcoords="offset points", va="center", fontsize=0.9 * small, color=INK,
            annotation_clip=False, **PLAIN,
        )  # fmt: skip
    title(ax, dots.title, size)
    _name_marks(ax, dots, size)
    return ax


def _name_marks(ax: Axes, dots: Dots, size: float) -> None:
    """Label the grey bar and the cross in the first row that has room for it."""
    point = (ax.get_xlim()[1] - ax.get_xlim()[0]) / (72 * inches(ax)[0])
    style: dict[str, Any] = {
        "fontsize": 0.85 * size,
        "color": FAINT,
        "textcoords": "offset points",
        "bbox": {"boxstyle": "square,pad=0.1", "facecolor": GROUND, "linewidth": 0},
    }
    if dots.noise is not None:
        starts = dots.low if dots.plug_in is None else np.minimum(dots.low, dots.plug_in)
        free = np.flatnonzero(starts - dots.noise > 7.5 * size * point)
        if free.size:
            at = (float(dots.noise[free[0]]), float(dots.places[free[0]]))
            ax.annotate("chance alone", at, xytext=(3, 0), va="center", **style)
    if dots.plug_in is not None:
        at = (float(dots.plug_in[0]), 0.0)
        ax.annotate("plug-in", at, xytext=(0, -0.8 * size), ha="center", va="top", **style)


def _change_text(row: ComparisonRow) -> str:
    """Return the verdict of a row and its difference from the baseline."""
    if row.verdict == BASELINE or row.difference != row.difference:
        return row.verdict
    return f"{row.verdict}, {metric_change(row.metric, row.difference)}"
