"""Pictures along one variable or two: curves, reliability, bins, effects, surfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from varcal._arrays import Floats
from varcal._audit.record import AuditRow
from varcal._edge_texts import edge_texts
from varcal._measures.curve_result import Curve, Histogram
from varcal._measures.reliability import Reliability
from varcal._report import plot_style as style
from varcal._search.cells import SurfaceAxis
from varcal._search.surface import Surface
from varcal._text import (
    Unit,
    claim_of,
    count,
    gap_side,
    level_text,
    marked_side,
    off_by,
    points,
    points_with_interval,
    short,
    signed,
)
from varcal.calibrators.variable.explain import Effect

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Heights as parts of the axes: bars of the rows, strip of regions, lowest rate, middle of rates.
BARS, STRIP, FLOOR, MIDDLE = 0.13, (0.15, 0.205), 0.24, 0.62
#: Colours, lines and markers of effects by score, from low to high.
STYLES = ((style.HAPPENS, "--", "v"), (style.INK, "-", "o"), (style.SAYS, ":", "^"))
#: The largest number of levels of which effects are drawn; with more, names could not be read.
MOST_LEVELS = 20
#: Effects along up to this many distinct numbers are drawn as dots.
FEW_VALUES = 12
#: The width of the area for missing values at the right, as a part of the x axis.
MISSING_ROOM = 0.12
_RAISED = {"logit": "probability", "log inverse temperature": "confidence"}


def draw_curve(curve: Curve, ax: Axes | None) -> Axes:
    """Draw what the model says and what happens along a variable."""
    levels = curve.kind == "levels"
    ax, size = style.prepare(ax, 4.6, 1.5 + 0.26 * len(curve.x) if levels else 3.5)
    (_curve_of_levels if levels else _curve_of_values)(ax, curve, size)
    style.legend(ax, size)
    error = points_with_interval(curve.vece, curve.vece_low, curve.vece_high)
    worst = curve.worst_label
    if curve.kind == "datetime" and np.ptp(curve.histogram.edges) > 3 * 86_400:
        worst = worst.split(" ")[0]
    style.title(ax, f"VECE {error}, worst {points(curve.vce)} at {short(worst, 18)}", size)
    return ax


def _curve_of_values(ax: Axes, curve: Curve, size: float) -> None:
    """Draw lines with a band, or single values as dots and dashes, above the strip and rows."""
    edges = curve.histogram.edges
    whole = bool(np.all(edges % 1 == 0.5))
    style.value_ticks(ax, curve.kind, edges[[0, -1]], size, whole=whole)
    _rate_axis(ax, *_curve_ends(curve))
    _foot(ax, curve.histogram, curve.kind, size)
    x, pad = style.positions(curve.x, curve.kind), 0.0
    if curve.span == 0:
        pad = 0.35 * float(np.diff(curve.x).min()) if len(x) > 1 else 0.35
        style.says_and_happens(ax, x, curve.predicted, _happens(curve), size, level=curve.level)
    else:
        # Lines break where the gap jumps.
        breaks = np.searchsorted(curve.x, curve.breaks)
        x = np.insert(x, breaks, x[breaks])
        says, *happens = (
            np.insert(one, breaks, np.nan) for one in (curve.predicted, *_happens(curve))
        )
        ax.plot(x, says, label="says", **style.SAYS_LINE)
        style.happens_line(ax, x, happens, f"happens, {level_text(curve.level)} band")
    _strip(ax, curve, size, pad)
    name = f"{short(curve.variable, 40)}\n{_note(curve)}"
    style.name_axes(ax, size, name, _rate(curve.event), middle=MIDDLE)


def _curve_of_levels(ax: Axes, curve: Curve, size: float) -> None:
    """Draw levels from top to bottom, and mark those that are surely off at the right."""
    shown = zip(curve.x.astype(int), curve.counts, strict=True)
    small = style.row_ticks(ax, [f"{short(curve.labels[k], 24)} ({n:,})" for k, n in shown], size)
    at, level = np.arange(len(curve.x)), curve.level
    style.says_and_happens(ax, at, curve.predicted, _happens(curve), small, level=level, rows=True)
    ax.set_xlim(*_curve_ends(curve))
    style.unit_ticks(ax.xaxis)
    for region in curve.regions:
        place = float(np.searchsorted(curve.x, region.low))
        words, colour = _direction(region.direction, curve.event)
        style.write_beside(ax, place, words, 0.85 * small, color=colour)
    style.name_axes(ax, size, f"{_rate(curve.event)}\n{_note(curve)}", short(curve.variable, 40))


def _happens(curve: Curve) -> tuple[Any, Any, Any]:
    return curve.observed, curve.observed_low, curve.observed_high


def _rate_ends(*rates: Any, unit: Unit = style.SHARES) -> tuple[float, float]:
    """Return the ends of an axis of rates: 0, or for high rates a tenth just below them."""
    shown = np.concatenate(rates)
    low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
    if unit.most > 1:
        return min(low, 0.0) if low < 0.4 * high else 0.9 * low, max(1.08 * high, high)
    return np.floor(10 * low) / 10 if low >= 0.4 else 0.0, min(max(1.08 * high, 0.01), 1.0)


def _curve_ends(curve: Curve) -> tuple[float, float]:
    """Return the ends of the axis of rates: all lines, and most of the band."""
    edges = curve.histogram.edges
    seen = (curve.x >= edges[0]) & (curve.x <= edges[-1])
    seen |= not seen.any()
    _, low, high = _happens(curve)
    band = [np.quantile(low[seen], 0.02), np.quantile(high[seen], 0.98)]
    return _rate_ends(curve.observed[seen], curve.predicted[seen], band)


def _rate_axis(ax: Axes, low: float, high: float) -> None:
    """Set up a y axis in percent, with room for the foot below it."""
    ax.set_ylim(low - (high - low) * FLOOR / (1 - FLOOR), high)
    style.unit_ticks(ax.yaxis)
    ticks = ax.yaxis.get_major_locator().tick_values(low, high)
    ax.set_yticks([tick for tick in ticks if low - 1e-9 <= tick <= high + 1e-9])
    ax.spines["left"].set_bounds(low, high)
    ax.axhline(low, color=style.FAINT, linewidth=0.6, zorder=1)


def _foot(ax: Axes, histogram: Histogram, kind: str, size: float) -> None:
    """Draw the rows at the foot."""
    scale = BARS / max(float(histogram.share.max()), 1e-300)
    ax.stairs(
        histogram.share * scale, style.positions(histogram.edges, kind), fill=True, linewidth=0,
        color=style.ROWS, transform=ax.get_xaxis_transform(), zorder=1,
    )  # fmt: skip
    _beside(ax, BARS / 2, "rows", size)


def _beside(ax: Axes, y: float, text: str, size: float) -> None:
    """Name a part of the foot at its left."""
    look: Any = {"xytext": (-4, 0), "color": style.FAINT, "ha": "right"}
    style.write(ax, text, (0, y), 0.85 * size, "axes fraction", **look)


def _direction(direction: str, event: str) -> tuple[str, str]:
    """Return the mark and words of a direction, and its colour."""
    sign, colour = (1.0, style.OVER) if direction == "over" else (-1.0, style.UNDER)
    return marked_side(sign, claim_of(event)), colour


def _strip(ax: Axes, curve: Curve, size: float, pad: float) -> None:
    """Mark where the band of the gap excludes zero, with marks and words as well as colours."""
    low, high = ax.get_xlim()
    point = (high - low) / (72 * style.inches(ax)[0])
    within, last = ax.get_xaxis_transform(), -np.inf
    for region in curve.regions:
        start, end = style.positions([region.low - pad, region.high + pad], curve.kind)
        if start > high or end < low:
            continue
        start, end = max(start, low), max(min(end, high), start + 2 * point)
        words, colour = _direction(region.direction, curve.event)
        box = style.Rectangle(
            (start, STRIP[0]), end - start, STRIP[1] - STRIP[0], facecolor=colour, linewidth=0,
            transform=within, zorder=2, gid=f"region {region.direction}",
        )  # fmt: skip
        ax.add_patch(box)
        centre, room = (start + end) / 2, (end - start) / point
        if centre - last < size * point:  # the marks would overlap
            continue
        last, inside = centre, room > size
        text = words if room > style.LETTER * size * (len(words) + 1) else words[0]
        at = (centre, sum(STRIP) / 2 if inside else STRIP[1] + 0.02)
        colour = style.GROUND if inside else colour
        style.write(ax, text, at, 0.82 * size, within, color=colour, ha="center")
    if curve.regions:
        _beside(ax, sum(STRIP) / 2, f"{level_text(curve.level)} sure", size)


def _note(curve: Curve) -> str:
    """Say which rows the picture of a curve shows."""
    text = "1st–99th percentile, " if curve.histogram.trimmed else ""
    text += f"n = {curve.n_rows:,}"
    if curve.n_missing:
        text += f", {curve.n_missing:,} missing (gap {points(curve.missing_gap)} points)"
    return text


def _rate(event: str) -> str:
    return "rate right" if event == "correct" else "rate"


def draw_reliability(found: Reliability, ax: Axes | None) -> Axes:
    """Draw a reliability diagram."""
    ax, size = style.prepare(ax, 3.6, 4.4)
    scores = found.histogram.edges[:-1][found.histogram.share > 0]
    low, high = _rate_ends(scores, found.observed_low, found.observed_high, found.smooth)
    high = 1.0 if high > 0.5 else high
    ax.set_xlim(low, high)
    style.unit_ticks(ax.xaxis)
    _rate_axis(ax, low, high)
    ax.set_aspect("equal", adjustable="box")
    _foot(ax, found.histogram, "numeric", size)
    ax.fill_between(
        found.predicted, found.consistent_low, found.consistent_high, color=style.ROWS, alpha=0.6,
        linewidth=0, zorder=1, label="chance alone",
    )  # fmt: skip
    ax.plot([low, high], [low, high], label="says", **style.SAYS_LINE)
    if found.isotonic is not None:
        fit = found.isotonic
        ax.fill_between(
            fit.score, fit.low, fit.high, color=style.INK, alpha=0.12, linewidth=0, zorder=1.5,
            step="mid", label="happens, isotonic band",
        )  # fmt: skip
        ax.step(fit.score, fit.rate, where="mid", color=style.INK, zorder=3, label="happens")
    elif found.curve.span > 0:
        style.happens_line(ax, found.score, np.clip(_happens(found.curve), low, high), "happens")
    bins = (found.observed, found.observed_low, found.observed_high)
    style.dots(ax, found.predicted, bins, 0.42 * size, color=style.INK, label="happens in bins")
    score = "confidence" if found.event == "correct" else "predicted probability"
    name = f"{score}\nn = {found.n_rows:,}"
    style.name_axes(ax, size, name, _rate(found.event), middle=MIDDLE)
    style.legend(ax, size)
    error = points_with_interval(found.ece.debiased, found.ece.low, found.ece.high)
    style.title(ax, f"ECE {error}", size)
    return ax


def draw_variable(row: AuditRow, ax: Axes | None) -> Axes:
    """Draw what the model says and what happens over the bins of a variable of an audit.

    A new figure has a panel for all rows and one for each predicted side; given axes show all
    rows. The axes of all rows are returned.
    """
    sides = list(row.bins) if ax is None else ["all"]
    bins = {side: _bins(row, side) for side in sides}
    names, levels = bins["all"]["bin"], row.kind == "levels"
    height = 1.6 + 0.26 * len(names) if levels else 3.2
    shown = (one[name] for one in bins.values() for name in ("predicted", "low", "high"))
    ends = _rate_ends(*shown, unit=row.unit)
    error = f"{row.unit.size(row.uneven.debiased)} ({row.unit.ends(row.low, row.high)})"
    heading = f"{row.target} along {short(row.variable, 40)}: uneven error {error}"
    if len(sides) == 1:
        ax, size = style.prepare(ax, 4.6, height)
        _draw_bins(ax, row, bins["all"], names, ends, size)
        style.title(ax, heading, size)
        style.legend(ax, size)
        return ax
    import matplotlib.pyplot as plt  # noqa: PLC0415  needed only for a new figure

    shared: Any = {"sharex": True, "sharey": True, "layout": "constrained"}
    figure, panels = plt.subplots(1, len(sides), figsize=(8.9 if levels else 7.4, height), **shared)
    for panel, (side, found) in zip(panels, bins.items(), strict=True):
        panel, size = style.prepare(panel)
        _draw_bins(panel, row, found, names, ends, size)
        about = "All rows" if side == "all" else f"Predicted {short(str(side), 20)}"
        style.title(panel, f"{about}, {count(int(found['n'].sum()), 'row')}", size)
        panel.label_outer()
    figure.suptitle(heading, x=0.01, ha="left", fontsize=1.1 * size, **style.PLAIN)
    marks = panels[0].get_legend_handles_labels()
    figure.legend(*marks, loc="outside lower left", ncols=2, frameon=False, fontsize=size)
    return panels[0]


def _bins(row: AuditRow, side: str) -> dict[str, Any]:
    """Return the columns of the bins of one side, with the interval of what happens."""
    found = {name: np.array([one[name] for one in row.bins[side]]) for name in row.table.columns}
    # The interval of the gap, around what the model says.
    for name, end in (("low", "gap_high"), ("high", "gap_low")):
        happens = row.unit.happens_at(found["predicted"], found[end])
        found[name] = np.clip(happens, row.unit.least, row.unit.most)
    return found


def _draw_bins(ax: Axes, row: AuditRow, found: Any, names: Any, ends: Any, size: float) -> None:
    """Draw the bins of one side at the places of their names."""
    levels, name = row.kind == "levels", short(row.variable, 40)
    pad = 0.02 * (ends[1] - ends[0])  # dots at 0 and 100 % are seen whole
    ends = (ends[0] - pad, ends[1] + pad)
    rate = "rate" if row.scale == "points" else "mean"
    if levels:
        style.row_ticks(ax, [short(one, 24) for one in names], size)
        style.name_axes(ax, size, rate, name)
        ax.set_xlim(*ends)
    else:
        style.bin_ticks(ax, names, size)
        style.name_axes(ax, size, name, rate)
        ax.set_ylim(*ends)
    style.unit_ticks(ax.xaxis if levels else ax.yaxis, "%" if rate == "rate" else "units")
    at = [list(names).index(name) for name in found["bin"]]
    happens = [found[name] for name in ("observed", "low", "high")]
    how: Any = {"level": row.table.level, "rows": levels, "unit": row.unit}
    style.says_and_happens(ax, at, found["predicted"], happens, size, **how)


def draw_effect(curves: tuple[Effect, ...], ax: Axes | None, scale: str) -> Axes:
    """Draw the effect of a variable at several scores: curves with bands, or dots."""
    label = f"change of the {scale}\n(above 0: {_RAISED.get(scale, scale)} raised)"
    draw = _effect_of_levels if curves[0].kind == "levels" else _effect_of_values
    ax, size = draw(curves, ax, label)
    name = short(curves[0].name, 40)
    style.title(ax, f"Effect of {name}, other variables at their mean", size)
    style.legend(ax, size)
    return ax


def _looks(curves: tuple[Effect, ...]) -> list[tuple[Effect, float, str, dict[str, Any]]]:
    """Return each curve, how far its dots are moved aside, its line, and its marks.

    A single curve has the style of the middle score, and no name.
    """
    found = []
    styles = STYLES if len(curves) > 1 else STYLES[1:2]
    for k, (curve, (colour, line, marker)) in enumerate(zip(curves, styles, strict=True)):
        digits = 2 if curve.score < 0.99 else 4  # enough to tell large scores apart
        name = f"at score {curve.score:.{digits}g}" if len(curves) > 1 else None
        look = {"color": colour, "marker": marker, "label": name}
        found.append((curve, k - (len(curves) - 1) / 2, line, look))
    return found


def _effect_of_levels(curves: Any, ax: Axes | None, label: str) -> tuple[Axes, float]:
    """Draw the levels with the largest effects in their own order, missing values last."""
    first = curves[0]
    largest = np.max([np.abs(curve.value) for curve in curves], axis=0)
    kept = np.sort(np.argsort(-largest, kind="stable")[:MOST_LEVELS])
    names = [short(str(first.at[k]), 24) for k in kept]
    names += ["(missing)"] if first.missing is not None else []
    ax, size = style.prepare(ax, 5.2, 1.6 + 0.3 * len(names))
    ax.axvline(0.0, color=style.FAINT, linewidth=0.8, zorder=1)
    style.row_ticks(ax, names, size)
    for curve, aside, _, look in _looks(curves):
        figures = np.array([curve.value, curve.low, curve.high])[:, kept]
        if curve.missing is not None:
            figures = np.column_stack([figures, curve.missing])
        at = np.arange(len(names)) + 0.2 * aside
        style.dots(ax, at, figures, 0.45 * size, rows=True, **look)
    name = short(first.name, 40)
    if len(kept) < len(first.at):
        name += f" ({len(kept)} of {len(first.at)} levels, largest effects)"
    style.name_axes(ax, size, label, name)
    return ax, size


def _effect_of_values(curves: Any, ax: Axes | None, label: str) -> tuple[Axes, float]:
    """Draw curves along numbers or dates, with missing values at the right."""
    first = curves[0]
    ax, size = style.prepare(ax, 5.2, 3.8)
    ax.axhline(0.0, color=style.FAINT, linewidth=0.8, zorder=1)
    held = np.array(first.at, "M8[s]" if first.kind == "datetime" else np.float64).astype(float)
    few, name = len(held) <= FEW_VALUES, short(first.name, 40)
    if few:
        pad = 0.06 * (held[-1] - held[0]) or 0.5
        x, ends = held, (held[0] - pad, held[-1] + pad)
    else:
        ends = first.inner if first.inner[0] < first.inner[1] else (held[0], held[-1])
        x = np.unique([*ends, *held[(held > ends[0]) & (held < ends[1])]])
        name += " (1st–99th percentile)"
    whole = few and bool((held % 1 == 0).all())
    low, high = style.value_ticks(ax, first.kind, ends, size, whole=whole)
    at, room = style.positions(x, first.kind), MISSING_ROOM * (high - low)
    for curve, aside, line, look in _looks(curves):
        value, *band = (np.interp(x, held, one) for one in (curve.value, curve.low, curve.high))
        if few:
            places = at + 0.012 * (high - low) * aside
            style.dots(ax, places, (value, *band), 0.45 * size, **look)
        else:
            ax.plot(at, value, line, color=look["color"], linewidth=1.8, label=look["label"])
            ax.fill_between(at, *band, color=look["color"], alpha=0.12, linewidth=0)
        if curve.missing is not None:
            where = [high + room / 2 + 0.2 * room * aside]
            style.dots(ax, where, curve.missing, 0.45 * size, **look | {"label": None})
    if first.missing is not None:
        ax.set_xticks([tick for tick in ax.get_xticks() if low <= tick <= high])
        ax.axvspan(high, high + room, color=style.FEW, linewidth=0, zorder=0)
        ax.set_xlim(low, high + room)
        text: Any = {"ha": "center", "va": "top", "color": style.FAINT, "xytext": (0, -4)}
        middle = (high + room / 2, 0.0)
        style.write(ax, "missing", middle, 0.9 * size, ax.get_xaxis_transform(), **text)
    style.name_axes(ax, size, name, label)
    return ax, size


#: Panels of curves side by side.
PANELS = 4
#: Height of the bars of rows beside a map, as part of the axes.
SIDE_BARS = 0.09


#: How much of a cell's colour is left where the gap may be zero.
PALE = 0.35
#: From this part of the scale of colours on, text in a cell is white.
DARK = 0.7
#: Ends of the scale of colours, in points, from which the smallest that holds all gaps is taken.
_SCALES = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)

Segment = tuple[tuple[float, float], tuple[float, float]]


class SurfaceView:
    """A surface as it is drawn: the first variable to the right, the second upwards.

    Parameters
    ----------
    found : Surface
        The surface.

    Attributes
    ----------
    kind : {"map", "strips", "table"}
        Two numeric variables; numbers by level; levels by level.
    across, up : SurfaceAxis
        The variables; of strips, `up` has the levels.
    gap, low, high, n, sure, judged : ndarray of shape (len(up), len(across))
        The figures, rows and masks of the surface.
    most : float
        The end of the scale of colours.
    title, legend, scale, claim : str
        Texts.
    """

    def __init__(self, found: Surface) -> None:
        levels = [axis.kind == "levels" for axis in (found.first, found.second)]
        turned = levels == [True, False]
        self.kind = "table" if all(levels) else "strips" if any(levels) else "map"
        self.across, self.up = (found.first, found.second)[:: -1 if turned else 1]
        arrays = (found.gap, found.low, found.high, found.n, found.sure, found.judged)
        shown: Any = arrays if turned else [array.T for array in arrays]
        self.gap, self.low, self.high, self.n, self.sure, self.judged = shown
        seen = np.abs(found.gap[found.judged]).max(initial=0.0)
        self.most = next((end for end in _SCALES if end >= seen), 1.0)
        self.claim, self.title = found.claim, _title(found)
        self.legend = (
            f"strong colours: surely off, {level_text(found.level)} for all cells at once; "
            f"grey: too few rows. {count(found.n_rows, 'row')}"
        )
        over, under = (gap_side(sign, found.claim) for sign in (1.0, -1.0))
        self.scale = f"gap in points: below 0 {under}, above 0 {over}"

    @property
    def strength(self) -> Floats:
        """How strongly each cell is coloured, from −1 to 1; NaN where it is not judged."""
        pale = np.where(self.sure != 0, 1.0, PALE)
        shown = np.clip(self.gap / self.most, -1.0, 1.0) * pale
        return np.where(self.judged, shown, np.nan)

    @property
    def outline(self) -> list[Segment]:
        """The lines between cells that are surely off and others, or off to the other side."""
        padded = np.pad(self.sure, 1)
        beside = np.argwhere(padded[:, 1:] != padded[:, :-1]) - (1, 0)
        above = np.argwhere(padded[1:] != padded[:-1]) - (0, 1)
        lines = [((x, y), (x, y + 1)) for y, x in beside.tolist()]
        return lines + [((x, y), (x + 1, y)) for y, x in above.tolist()]


def _title(found: Surface) -> str:
    names = f"{short(found.first.name, 24)} and {short(found.second.name, 24)}"
    if not found.sure.any():
        return f"Gap over {names}: nowhere surely off"
    row, column = found.worst
    size = off_by(float(found.gap[row, column]), found.claim)
    place = f"{short(found.first.text(row), 30)}, {short(found.second.text(column), 30)}"
    return f"Gap over {names}\nmost surely {size} ({place})"


def draw_surface(found: Surface, ax: Axes | None) -> Axes:
    """Draw a surface on the given axes or a new figure."""
    view = SurfaceView(found)
    if view.kind == "map":
        return _map(view, *style.prepare(ax, 6.4, 5.4))
    if view.kind == "table":
        width = max(6.4, 2.4 + 0.62 * len(view.across))
        return _table(view, *style.prepare(ax, width, 2.2 + 0.34 * len(view.up)))
    levels = np.flatnonzero(view.judged.any(axis=1))
    lines = max(-(-len(levels) // PANELS), 1)
    return _strips(view, levels, *style.prepare(ax, 8.4, 1.6 + 1.7 * lines))


def _map(view: SurfaceView, ax: Axes, size: float) -> Axes:
    """Draw cells, lines of equal gaps, bars of rows at two sides, and the scale of colours."""
    _cells(view, ax, size)
    style.name_axes(ax, size, short(view.across.name, 40), short(view.up.name, 40))
    style.title(ax, view.title, size, pad=34)
    _contours(view, ax)
    _bars(view, ax)
    style.gap_scale(ax, view.most, f"{view.scale}\n{view.legend}", 0.95 * size)
    return ax


def _table(view: SurfaceView, ax: Axes, size: float) -> Axes:
    """Draw cells with their gaps and rows written into them."""
    _cells(view, ax, size)
    for cell in zip(*np.nonzero(view.n), strict=True):
        gap, rows = float(view.gap[cell]), f"{view.n[cell]:,}"
        lines = [signed(gap), rows] if view.judged[cell] else [rows]
        dark = view.sure[cell] and abs(gap) > DARK * view.most
        ax.text(
            cell[1] + 0.5, cell[0] + 0.5, "\n".join(lines),
            ha="center", va="center", fontsize=0.72 * size,
            color=style.GROUND if dark else style.INK,
            fontweight="bold" if view.sure[cell] else "normal",
        )  # fmt: skip
    legend = view.legend.replace("; ", "\n", 1)
    name = f"{short(view.across.name)}\neach cell: gap in points, rows\n{legend}"
    style.name_axes(ax, 0.9 * size, name, short(view.up.name, 40))
    for label in ax.get_xticklabels():
        label.set(rotation=30, ha="right", rotation_mode="anchor")
    style.title(ax, view.title, size)
    return ax


def _cells(view: SurfaceView, ax: Axes, size: float) -> None:
    """Draw the cells, the outline of those that are surely off, and the ticks."""
    height, width = view.gap.shape
    strength = view.strength
    colours = style.GAPS(0.5 + np.nan_to_num(strength) / 2)[..., :3]
    colours[np.isnan(strength)] = style.to_rgb(style.FEW)
    colours[view.n == 0] = style.to_rgb(style.GROUND)
    ax.imshow(colours, origin="lower", extent=(0, width, 0, height), aspect="auto", zorder=1)
    ax.add_collection(
        style.LineCollection(view.outline, colors=style.INK, linewidths=1.4, zorder=3)
    )
    ax.set_xlim(0, width)
    ax.set_ylim(0, height)
    for axis, set_ticks in ((view.across, ax.set_xticks), (view.up, ax.set_yticks)):
        set_ticks(*_ticks(axis), fontsize=size, **style.PLAIN)


def _ticks(axis: SurfaceAxis, most: int = 6) -> tuple[list[float], list[str]]:
    """Return positions along the cells of a variable (0, 1, … at their edges) and their texts."""
    if axis.kind == "levels":
        return [k + 0.5 for k in range(len(axis))], [short(label, 22) for label in axis.labels]
    cells = max(len(axis.edges) - 1, 1)
    chosen = np.unique(np.linspace(0, cells, min(most, cells + 1)).round().astype(int))
    dated = axis.kind == "datetime"
    edges = [axis.edges[k] if dated else float(f"{axis.edges[k]:.4g}") for k in chosen]
    if not dated and len(edges) > 1 and abs(edges[0]) < 0.01 * (edges[1] - edges[0]):
        edges[0] = 0.0  # as readers expect it
    texts = edge_texts(edges, datetime=dated, duration=axis.kind == "duration", zone=axis.zone)
    at = [float(k) for k in chosen]
    if axis.has_missing:  # in place of the last edge, which is next to it
        kept = len(at) - (len(at) > 1)
        at, texts = [*at[:kept], cells + 0.5], [*texts[:kept], "missing"]
    return at, texts


def _contours(view: SurfaceView, ax: Axes) -> None:
    """Draw lines of equal gaps over numbers."""
    height, width = (max(len(axis.edges) - 1, 0) for axis in (view.up, view.across))
    inner = np.where(view.judged, view.gap, np.nan)[:height, :width]
    if min(height, width) < 3 or np.isnan(inner).all():
        return
    lines = [k * view.most / 4 for k in range(-4, 5) if k]
    lines = [line for line in lines if np.nanmin(inner) < line < np.nanmax(inner)]
    if lines:
        x, y = np.arange(width) + 0.5, np.arange(height) + 0.5
        ax.contour(x, y, inner, levels=lines, colors=style.FAINT, linewidths=0.6, zorder=2)


def _bars(view: SurfaceView, ax: Axes) -> None:
    """Draw how many rows each range of a variable has, above and to the right."""
    above = ax.inset_axes((0.0, 1.01, 1.0, SIDE_BARS), sharex=ax)
    right = ax.inset_axes((1.01, 0.0, SIDE_BARS, 1.0), sharey=ax)
    up, across = (np.arange(many) + 0.5 for many in view.n.shape)
    above.bar(across, view.n.sum(axis=0), width=0.9, color=style.ROWS)
    right.barh(up, view.n.sum(axis=1), height=0.9, color=style.ROWS)
    for one in (above, right):
        one.axis("off")


def _strips(view: SurfaceView, levels: Any, ax: Axes, size: float) -> Axes:
    """Draw one curve per level that can be judged."""
    ax.axis("off")
    columns = max(min(PANELS, len(levels)), 1)
    lines = -(-len(levels) // columns)
    panel = None
    for number, level in enumerate(levels):
        row, column = divmod(number, columns)
        bottom = 1 - (row + 1) / lines
        box = (column / columns + 0.012, bottom + 0.13 / lines, 0.87 / columns, 0.68 / lines)
        panel = ax.inset_axes(box, sharey=panel)
        style.clean(panel, 0.8 * size)
        _strip_of(view, panel, level, size)
        panel.set_xlim(0, len(view.across))
        panel.set_xticks(*_ticks(view.across, 4), fontsize=0.75 * size, **style.PLAIN)
        panel.tick_params(axis="y", labelleft=column == 0)
        style.unit_ticks(panel.yaxis, "points")
    few = len(view.up) - len(levels)
    left = f"; too few rows for {few} of {len(view.up)} levels" if few else ""
    note = (
        f"across: {short(view.across.name)}; {view.scale}{left}\n"
        "line: smoothed gap; shaded: its band for all levels at once, thick where it excludes 0"
    )
    style.write(ax, note, (0, -0.02), 0.85 * size, "axes fraction", color=style.FAINT, va="top")
    style.title(ax, view.title, size)
    return ax


def _strip_of(view: SurfaceView, panel: Axes, level: int, size: float) -> None:
    """Draw the curve of a level, with missing values at the right."""
    x = np.arange(len(view.across)) + 0.5
    figures = np.where(view.judged, [view.gap, view.low, view.high], np.nan)[:, level]
    panel.axhline(0.0, color=style.FAINT, linewidth=0.8)
    if view.across.has_missing:
        panel.axvline(len(x) - 1, color=style.FAINT, linewidth=0.6, linestyle=(0, (2, 2)))
        style.dots(panel, x[-1:], figures[:, -1:], 3, color=style.INK)
        x, figures = x[:-1], figures[:, :-1]
    gap, low, high = figures
    panel.fill_between(x, low, high, color=style.ROWS, alpha=0.6, linewidth=0)
    panel.plot(x, gap, color=style.INK, linewidth=1.2)
    for sign, colour in ((1, style.OVER), (-1, style.UNDER)):
        surely = np.where(view.sure[level][: len(x)] == sign, gap, np.nan)
        panel.plot(x, surely, color=colour, linewidth=3.2, marker="o", markersize=3)
    name = f"{short(view.up.labels[level], 24)}, {view.n[level].sum():,} rows"
    panel.set_title(name, fontsize=0.85 * size, loc="left", color=style.INK, **style.PLAIN)
