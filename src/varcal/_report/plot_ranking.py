"""One row each, from top to bottom: audits, comparisons and estimates, and slices."""

from __future__ import annotations

import textwrap
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from varcal import _text
from varcal._audit.compare import ACCURACY, POINTS, Comparison, ComparisonRow
from varcal._audit.result import Audit
from varcal._measures.estimate import Estimate
from varcal._options import check_choice
from varcal._report import plot_style as style
from varcal._search.slices_result import Slice, Slices
from varcal._text import BASELINE, CONFIDENCE, FINDINGS, NO_EVIDENCE, marked_side, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The names of figures that need another one.
NAMES = {"uneven": "uneven error", "by score": "error by score", "average": "average gap"}
#: Characters in a line of a slice's rule, and its lines at most.
WIDTH, LINES = 38, 3


class Row(NamedTuple):
    """A value with its interval.

    Attributes
    ----------
    name, text : str
        What the row is, at its left, and a remark at its right.
    value, low, high : float
        The value and its interval.
    mark : str
        What the dot means, for the legend; empty if it needs no name.
    hollow : bool
        Whether the dot is hollow.
    noise, limit, plug_in : float
        How large the value could be by chance alone, its limit, and its raw value; or NaN.
    heading : str
        The heading of the block that the row is in, or "".
    """

    name: str
    value: float
    low: float
    high: float
    text: str = ""
    mark: str = ""
    hollow: bool = False
    noise: float = nan
    limit: float = nan
    plug_in: float = nan
    heading: str = ""


def draw_audit(audit: Audit, ax: Axes | None, top: int) -> Axes:
    """Draw the ranking of an audit: the uneven error of each variable."""
    several, rows = len(audit.targets) > 1, []
    for row in audit.rows[:top]:
        hollow = row.verdict not in FINDINGS
        text = f"{row.verdict}, {short(row.target, 20)}" if several else row.verdict
        mark = NO_EVIDENCE if hollow else "evidence"
        line = Row(row.variable, row.uneven.debiased, row.low, row.high, text, mark, hollow)
        limit = audit.targets[row.target].limit
        rows.append(line._replace(noise=row.uneven.noise_high, limit=limit))
    unit = _text.unit_of(audit.target.scale).word
    label = f"uneven error, {unit}; {_text.level_text(audit.level)} intervals for all at once"
    of = f"{len(audit.targets)} targets" if several else audit.target.name
    title = f"{'Largest uneven' if several else 'Uneven'} error of {of}"
    return _draw(rows, ax, title, label, unit=unit, more=len(audit.rows) - len(rows))


def draw_comparison(comparison: Comparison, ax: Axes | None, metric: str, top: int) -> Axes:
    """Draw one figure of every set of probabilities, under the heading of each variable."""
    check_choice("metric", metric, list(dict.fromkeys(row.metric for row in comparison.rows)))
    blocks: dict[str, list[ComparisonRow]] = {}
    for row in comparison.rows:
        if row.metric == metric:
            blocks.setdefault(row.variable, []).append(row)
    # Values of the first set within a tenth of a point keep their order.
    ordered = sorted(blocks, key=lambda name: -round(blocks[name][0].value, 3))
    kept = [row for name in ordered[:top] for row in blocks[name]]
    rows = [
        Row(
            row.method,
            row.value,
            row.low,
            row.high,
            text=_change_text(comparison, row),
            hollow=row.verdict == BASELINE,
            noise=row.noise_floor,
            heading=row.variable,
        )
        for row in kept
    ]
    name = NAMES.get(metric, metric)
    unit = "points" if metric in POINTS else "%" if metric == ACCURACY else ""
    targets = {row.target for row in kept}
    about = f" of {targets.pop()}" if unit == "points" and len(targets) == 1 else ""
    label = f"{name}, points" if unit == "points" else name
    label += f"; {_text.level_text(comparison.level)} intervals\n{comparison.n_rows:,} rows"
    title, more = f"{name[0].upper()}{name[1:]}{about}", len(ordered) - top
    return _draw(rows, ax, title, label, unit=unit, more=more)


def draw_estimate(estimate: Estimate, ax: Axes | None) -> Axes:
    """Draw an estimate as a single row."""
    row = Row(
        estimate.metric,
        estimate.debiased,
        estimate.low,
        estimate.high,
        mark="debiased",
        hollow=estimate.p_value > 1 - estimate.level,
        noise=estimate.noise_high,
        plug_in=estimate.value,
    )
    along = "" if estimate.metric == "ECE" else f" along {short(estimate.variable, 20)}"
    size = _text.points_with_interval(estimate.debiased, estimate.low, estimate.high)
    head = f"{estimate.metric}{along}: {size}, {_text.p_equation(estimate.p_value)}"
    label = f"{estimate.metric}, points; {_text.level_text(estimate.level)} interval"
    return _draw([row], ax, head, label)


def _draw(
    rows: list[Row], ax: Axes | None, title: str, label: str, *, unit: str = "points", more: int = 0
) -> Axes:
    """Draw rows, and the number of those left out, on the given axes or a new figure."""
    at, ticks = _places(rows, more)
    width = 4.2 + 0.07 * max(len(row.text) for row in rows)
    ax, size = style.prepare(ax, width, 1.3 + 0.24 * len(ticks))
    names = [short(name, 28 if style.inches(ax)[0] > 2.4 else 20) for _, name, _ in ticks]
    small = style.row_ticks(ax, names, size, [place for place, _, _ in ticks])
    for name, (_, _, heading) in zip(ax.get_yticklabels(), ticks, strict=True):
        name.set_fontweight("bold" if heading else "normal")
    zero = unit not in ("", "%")
    ax.set_xlim(*_span(rows, zero=zero))
    ax.xaxis.set_major_locator(style.MaxNLocator(5))
    if unit:
        style.unit_ticks(ax.xaxis, unit)
    _draw_marks(ax, rows, at, 0.6 * small, unit)
    for place, row in zip(at, rows, strict=True):
        style.write_beside(ax, place, row.text, 0.9 * small)
    style.name_axes(ax, size, label)
    style.title(ax, title, size)
    style.legend(ax, size)
    return ax


def _places(rows: list[Row], more: int) -> tuple[Any, list[tuple[float, str, bool]]]:
    """Return how far down rows are, and the place, text and kind (heading?) of all names."""
    at: list[float] = []
    ticks, down, last = [], 0.0, ""
    for row in rows:
        if row.heading != last:
            down += 0.4 if at else 0.0
            ticks.append((down, row.heading, True))
            down, last = down + 1, row.heading
        at.append(down)
        ticks.append((down, row.name, False))
        down += 1
    return np.array(at), [*ticks, (down, f"… {more} more", False)] if more > 0 else ticks


def _span(rows: list[Row], *, zero: bool) -> tuple[float, float]:
    """Return the ends of the axis of values, with room beside them."""
    ends = [end for r in rows for end in (*r[1:4], r.noise, r.limit, r.plug_in) if isfinite(end)]
    ends += [0.0] if zero else []
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    room = 0.04 * max(high - low, 1e-4)
    return low - room, high + room


def _draw_marks(ax: Axes, rows: list[Row], at: Any, size: float, unit: str) -> None:
    """Draw chance, limits, dots with intervals, and raw values."""
    noise, limit, plug_in = np.array([(row.noise, row.limit, row.plug_in) for row in rows]).T
    if np.isfinite(noise).any():
        look: Any = {"height": 0.6, "alpha": 0.7, "linewidth": 0, "label": "chance alone"}
        ax.barh(at, noise, color=style.ROWS, **look)
    if np.isfinite(limit).any():
        of = _text.unit_of("difference" if unit == "units" else "points")
        texts = {of.limit(one) for one in limit}
        name = f"limit {texts.pop()}" if len(texts) == 1 else "limit"
        ax.vlines(limit, at - 0.5, at + 0.5, color=style.INK, linewidth=1.0, label=name,
                  linestyle=style.DASHED, zorder=1)  # fmt: skip
    ax.axvline(0.0, color=style.FAINT, linewidth=0.8, zorder=1)
    for hollow, face in ((False, style.HAPPENS), (True, style.GROUND)):
        own = [k for k, row in enumerate(rows) if row.hollow == hollow]
        if own:
            figures = np.array([rows[k][1:4] for k in own]).T
            mark = rows[own[0]].mark or None
            style.dots(ax, at[own], figures, size, rows=True, facecolor=face, label=mark)
    if np.isfinite(plug_in).any():
        look = {"marker": "x", "color": style.FAINT, "linewidths": 1.2, "zorder": 3}
        ax.scatter(plug_in, at, s=(1.3 * size) ** 2, label="plug-in", **look)


def _change_text(found: Comparison, row: ComparisonRow) -> str:
    """Return the verdict of a row and its difference from the baseline."""
    if row.verdict == BASELINE or row.difference != row.difference:
        return row.verdict
    return f"{row.verdict}, {found._change_text(row)}"


def draw_slices(found: Slices, ax: Axes | None) -> Axes:
    """Draw slices, the clearest at the top: what the model says and what happens."""
    ax, size = style.prepare(ax, 8.2, 1.5 + 0.55 * len(found))
    claims = {one.claim for one in found}
    small = style.row_ticks(ax, [_rule(one, several=len(claims) > 1) for one in found], 0.9 * size)
    for k, one in enumerate(found):
        colour = style.OVER if one.gap > 0 else style.UNDER
        ax.plot([one.predicted, one.observed], [k, k], color=colour, linewidth=3.5, alpha=0.45)
        style.write_beside(ax, k, _slice_text(one), small)
    if claims:
        says, happens, *gap = np.array([(x.predicted, x.observed, x.high, x.low) for x in found]).T
        # The interval of the gap, around what the model says.
        figures = np.array([happens, *np.clip(says - gap, 0.0, 1.0)])
        at, look = np.arange(len(found)), {"color": style.SAYS, "facecolor": style.GROUND}
        style.dots(ax, at, [says] * 3, 0.7 * size, rows=True, label="says", **look)
        name = f"happens, {_text.level_text(found.level)} interval"
        style.dots(ax, at, figures, 0.65 * size, rows=True, label=name)
    style.unit_ticks(ax.xaxis)
    rate = "rate right" if claims == {CONFIDENCE} else "rate"
    searched = f"{_text.count(found.n, 'row')}, {_text.count(found.n_variables, 'variable')}"
    style.name_axes(ax, size, f"{rate}\n{searched}; gaps and intervals allow for the search")
    head = f"{_text.count(len(found), 'slice')} where the model is most wrong"
    head = head if claims else "No slice is clearly off"
    style.title(ax, f"{head} ({_text.p_equation(found.p_value)})", size)
    style.legend(ax, size)
    return ax


def _rule(one: Slice, *, several: bool) -> str:
    """Return the rule of a slice on a few lines."""
    rule = f"{one.rule} [{one.claim}]" if several else one.rule
    lines = textwrap.wrap(rule, WIDTH, break_long_words=True) or [rule]
    if len(lines) > LINES:
        lines = [*lines[: LINES - 1], f"{lines[LINES - 1][: WIDTH - 1]}…"]
    return "\n".join(lines)


def _slice_text(one: Slice) -> str:
    """Return the gap of a slice with its interval, and its rows."""
    low, high = (one.low, one.high) if one.gap > 0 else (-one.high, -one.low)
    size = f"{_text.points(abs(one.shrunk))} ({_text.interval(low, high)})"
    gap = f"{marked_side(one.gap, one.claim)} by {size}"
    return f"{gap}\n{_text.count(one.rows, 'row')}, {_text.percent(one.share)}"
