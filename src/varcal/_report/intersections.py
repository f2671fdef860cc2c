"""Combinations of variables: slices, a surface and the predictable gap, in words and pictures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from markupsafe import Markup

from varcal._audit.intersections import Intersections
from varcal._audit.sentences import Group
from varcal._report.page import el, render, tip
from varcal._search.predictable_gap import PredictableGap
from varcal._search.slices_result import Slice, Slices
from varcal._search.surface import Surface, SurfaceView, ticks
from varcal._text import (
    CONFIDENCE,
    RISK,
    Named,
    Sentence,
    Strong,
    claim_name,
    count,
    cut,
    filled,
    gap_side,
    interval,
    level_text,
    off_by,
    p_text,
    percent,
    points,
    short,
)

#: Longer rules are cut.
RULE_LENGTH = 200
#: Height of the map in pixels, by row of cells, and its limits.
ROW_HEIGHT, LEAST_HEIGHT, MOST_HEIGHT = 26, 120, 420
#: Part of the width left of the cells, for names, in percent.
LEFT = 16
#: Below this share of the width between ticks, in percent, texts would touch.
_CROWDED = 6


def combinations(found: Intersections) -> dict[str, Any]:
    """Return what `intersections.html.j2` and `intersections.md.j2` show, as `found`."""
    slices, surface = found.ordered, found.surface
    named = _named(slices)
    rows = [_row(one, found, named=named) for one in slices]
    pairs = zip(slices, rows, strict=True)
    sure = {one.claim for one in slices} == {CONFIDENCE}
    return {
        "number": _number(found.predictable),
        "sentences": [_sentence(*pair, found, named=named) for pair in pairs],
        "rows": rows,
        "heads": ("Slice", "Is sure", "Is right") if sure else ("Slice", "Says", "Happens"),
        "surface": surface,
        "view": None if surface is None else SurfaceView(surface),
        "map": "" if surface is None else surface_map(surface),
        "notes": _notes(found),
    }


def slices_markdown(found: Slices, number: PredictableGap | None = None) -> str:
    """Return a table of slices and what was searched.

    Parameters
    ----------
    found : Slices
        The slices.
    number : PredictableGap, optional
        How much of the gap can be predicted.
    """
    targets = [claim_name(one.claim) for one in found] if _named(found) else []
    return render("slices.md.j2", found=found, number=number, targets=targets)


def _named(slices: Iterable[Slice]) -> bool:
    """Tell whether slices name what they are about: not if all are about the one probability."""
    return not {one.claim for one in slices} <= {RISK}


def _row(one: Slice, found: Intersections, *, named: bool) -> Group:
    """Return a row of the table of says and happens."""
    rows = f"{count(one.rows, 'row')}, {percent(one.share)}"
    return Group(
        name=Sentence.of(Named(cut(one.rule, RULE_LENGTH))),
        about=Sentence.of(claim_name(one.claim), f" · {rows}") if named else Sentence.of(rows),
        n=one.rows,
        predicted=one.predicted,
        observed=one.observed,
        gap=one.shrunk,
        low=one.low,
        high=one.high,
        words=(gap_side(1, one.claim), gap_side(-1, one.claim)),
        note="better than the rest" if found.is_better(one) else "",
    )


def _sentence(one: Slice, row: Group, found: Intersections, *, named: bool) -> Sentence:
    sure = one.claim == CONFIDENCE
    says, happens = ("is sure by", "it is right in") if sure else ("says", "it happens in")
    plain = f"{gap_side(one.gap, one.claim)} by {points(abs(one.shrunk))} points"
    rest = points(abs(found.gaps.get(one.claim, 0.0)))
    better = f", better than the rest, {rest}" if found.is_better(one) else ""
    return filled(
        f"Among rows with {{}} ({count(one.rows, 'row')}, {percent(one.share)} of all), the model "
        f"{says} {{}} and {happens} {{}}: {{}} ({interval(*row.reach)}){better}.",
        Named(cut(one.rule, RULE_LENGTH)),
        *(Strong(percent(rate)) for rate in (one.predicted, one.observed)),
        off_by(one.shrunk, one.claim) if named else plain,
    )


def _number(number: PredictableGap) -> Sentence:
    value = points(number.value)
    least = f"a gap of at least {{}} ({value} by our estimate), as a root mean square over rows."
    none = (
        f"no gap that is surely above zero ({value} points by our estimate). That does not prove "
        "that there is none."
    )
    return filled(
        "Learned from some rows and judged on others, all variables and the score together predict "
        + (least if number.low > 0 else none),
        Strong(f"{points(number.low)} points"),
    )


def _notes(found: Intersections) -> list[Sentence]:
    slices, number = found.slices, found.predictable
    told = [
        f"Slices: all ranges of one variable, all rectangles of two and their extensions up to "
        f"{slices.max_depth} were searched in {count(slices.n_searched, 'row')}. Gaps, "
        f"intervals ({level_text(slices.level)}) and p-values (smallest {p_text(slices.p_value)}) "
        "allow for the search, which makes the plain difference of says and happens too large.",
        f"Predictable gap: boosted trees, learned from past blocks of {number.n_blocks}; p-value "
        f"{p_text(number.p_value)}.",
    ]
    if found.surface is not None:
        told.append(f"Surface: {level_text(found.surface.level)} band for all cells at once.")
    remarks = [Sentence.of(Named(text)) for text in (*slices.notes, *number.notes)]
    return [*map(Sentence.of, told), *remarks]


def surface_map(surface: Surface) -> Markup:
    """Draw the cells of a surface stretched over the plot, and texts in percent of it."""
    view = SurfaceView(surface)
    height, width = view.gap.shape
    plot = int(np.clip(ROW_HEIGHT * height, LEAST_HEIGHT, MOST_HEIGHT))
    strength = view.strength
    cells = []
    for row, column in np.ndindex(height, width):
        if not view.n[row, column]:
            continue
        shown = strength[row, column]
        look: dict[str, Any] = {"class_": "few"}
        if shown == shown:
            side = "over" if shown > 0 else "under"
            look = {"class_": side, "fill_opacity": f"{abs(shown):.3f}"}
        shape = el("rect", x=column, y=height - 1 - row, width=1, height=1, **look)
        cells.append(tip(shape, _cell_text(view, row, column)))
    lines = " ".join(
        f"M{x0:g} {height - y0:g}L{x1:g} {height - y1:g}" for (x0, y0), (x1, y1) in view.outline
    )
    stretched = {"viewBox": f"0 0 {width} {height}", "preserveAspectRatio": "none"}
    edge = el("path", d=lines, class_="sure")
    body = el("svg", *cells, edge, x=f"{LEFT}%", width=f"{100 - LEFT}%", height=plot, **stretched)
    texts = _across(view, plot) + _up(view, plot)
    look = {"class_": "map", "role": "group", "aria_label": cut(surface.sentence, 400)}
    return el("svg", body, texts, width="100%", height=plot + 40, **look)


def _cell_text(view: SurfaceView, row: int, column: int) -> str:
    places = (view.across.text(column), view.up.text(row))
    where = " and ".join(short(one, 40) for one in places)
    n = count(int(view.n[row, column]), "row")
    if not view.judged[row, column]:
        return f"{where}: too few rows, {n}"
    gap, low, high = (float(one[row, column]) for one in (view.gap, view.low, view.high))
    low, high = (low, high) if gap > 0 else (-high, -low)
    size = f"{points(abs(gap))} points {gap_side(gap, view.claim)} ({interval(low, high)})"
    return f"{where}: {size}, {n}"


def _across(view: SurfaceView, plot: int) -> Markup:
    share, last = (100 - LEFT) / len(view.across), -np.inf
    found = []
    for place, text in zip(*ticks(view.across), strict=True):
        x = LEFT + share * place
        if x - last < _CROWDED:
            continue
        last = x
        anchor = "end" if x > 97 else "middle"
        found.append(el("text", text, x=f"{x:.2f}%", y=plot + 16, class_=f"tick {anchor}"))
    name, middle = cut(view.across.name, 40), f"{(100 + LEFT) / 2}%"
    found.append(el("text", name, x=middle, y=plot + 34, class_="tick middle"))
    return Markup("").join(found)


def _up(view: SurfaceView, plot: int) -> Markup:
    look = {"x": f"{LEFT - 1}%", "class_": "tick end"}
    return Markup("").join(
        el("text", text, y=f"{plot * (1 - place / len(view.up)) + 4:.1f}", **look)
        for place, text in zip(*ticks(view.up), strict=True)
    )
