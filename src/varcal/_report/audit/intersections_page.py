"""The section on several variables at once: slices as a table, a surface as a map of cells."""

from __future__ import annotations

import numpy as np

from varcal._report.audit.summary import IntersectionSummary, SliceSummary
from varcal._report.html.dumbbells import Dumbbell, dumbbell_table
from varcal._report.html.markup import Markup, el
from varcal._surfaces.surface_result import Surface
from varcal._surfaces.view import SurfaceView, ticks
from varcal._text.gaps import CONFIDENCE, claim_name, gap_side
from varcal._text.numbers import count, level_text, percent, points
from varcal._text.sentences import Named, Sentence, cut

#: Height of the map in pixels, by row of cells, and its limits.
ROW_HEIGHT, LEAST_HEIGHT, MOST_HEIGHT = 26, 120, 420
#: Part of the width left of the cells, for names.
LEFT = 16
#: Below this share of the width between ticks, texts would touch.
_CROWDED = 6


def intersections_section(found: IntersectionSummary) -> Markup:
    """Make the section."""
    return el(
        "section",
        el("h2", "Combinations of variables"),
        el("p", found.number),
        _slices(found.slices),
        _surface(found) if found.surface is not None else None,
        el("ul", [el("li", note) for note in found.notes], class_="note"),
        id="intersections",
    )


def _slices(slices: tuple[SliceSummary, ...]) -> Markup:
    if not slices:
        return el("p", "No slice of up to three variables is clearly off.")
    several = len({one.claim for one in slices}) > 1
    rows = [
        Dumbbell(
            name=Named(cut(one.rule, 200)),
            about=_about(one, named=several),
            says=one.says,
            happens=one.happens,
            low=one.low,
            high=one.high,
            side=Sentence.of(gap_side(one.gap, one.claim)),
            instead=Sentence.of("better than the rest") if one.better else Sentence(),
        )
        for one in slices
    ]
    sure = all(one.claim == CONFIDENCE for one in slices)
    heads = (
        ("Slice", "Rate", "Is sure", "Is right") if sure else ("Slice", "Rate", "Says", "Happens")
    )
    return Markup(
        el("ol", [el("li", one.sentence) for one in slices], class_="say")
        + dumbbell_table(rows, caption="Slices that are most off", heads=heads)
    )


def _about(one: SliceSummary, *, named: bool) -> Sentence:
    rows = f"{count(one.n, 'row')}, {percent(one.share)}"
    return Sentence.of(claim_name(one.claim), f" · {rows}") if named else Sentence.of(rows)


def _surface(found: IntersectionSummary) -> Markup:
    assert found.surface is not None
    view = SurfaceView.of(found.surface)
    title = Sentence.of(
        "Gap over ",
        Named(cut(found.surface.first.name)),
        " and ",
        Named(cut(found.surface.second.name)),
    )
    return el(
        "figure",
        el("figcaption", title, el("small", found.finding)),
        _cells(view, found.surface),
        el(
            "p",
            f"Colour: {view.scale}; full at {points(view.most)}. Outlined and in full colours: "
            f"surely off, {level_text(found.surface.level)} for all cells at once. Grey: too few "
            "rows. Empty: no rows.",
            class_="note",
        ),
        class_="surface",
    )


def _cells(view: SurfaceView, surface: Surface) -> Markup:
    """Draw the cells stretched over the plot, and texts in percent of it."""
    height, width = view.gap.shape
    plot = int(np.clip(ROW_HEIGHT * height, LEAST_HEIGHT, MOST_HEIGHT))
    strength = view.strength
    cells = []
    for row, column in np.ndindex(height, width):
        if not view.n[row, column]:
            continue
        shown = strength[row, column]
        place = {"x": column, "y": height - 1 - row, "width": 1, "height": 1}
        if np.isnan(shown):
            cells.append(el("rect", **place, class_="few"))
        else:
            side = "over" if shown > 0 else "under"
            cells.append(el("rect", **place, class_=side, fill_opacity=f"{abs(shown):.3f}"))
    lines = " ".join(
        f"M{x0:g} {height - y0:g}L{x1:g} {height - y1:g}" for (x0, y0), (x1, y1) in view.outline
    )
    body = el(
        "svg",
        cells,
        el("path", d=lines, class_="sure") if lines else None,
        x=f"{LEFT}%",
        y=0,
        width=f"{100 - LEFT}%",
        height=plot,
        viewBox=f"0 0 {width} {height}",
        preserveAspectRatio="none",
    )
    return el(
        "svg",
        el("title", surface.sentence),
        body,
        _across(view, plot),
        _up(view, plot),
        width="100%",
        height=plot + 40,
        class_="map",
        role="img",
    )


def _across(view: SurfaceView, plot: int) -> list[Markup]:
    at, texts = ticks(view.across)
    share = (100 - LEFT) / len(view.across)
    found, last = [], -np.inf
    for place, text in zip(at, texts, strict=True):
        x = LEFT + share * place
        if x - last < _CROWDED:
            continue
        last = x
        anchor = "end" if x > 97 else "middle"
        found.append(el("text", text, x=f"{x:.2f}%", y=plot + 16, class_=f"tick {anchor}"))
    middle = f"{LEFT + (100 - LEFT) / 2}%"
    name = el("text", cut(view.across.name, 40), x=middle, y=plot + 34, class_="tick middle")
    return [*found, name]


def _up(view: SurfaceView, plot: int) -> list[Markup]:
    at, texts = ticks(view.up)
    return [
        el(
            "text",
            text,
            x=f"{LEFT - 1}%",
            y=f"{plot * (1 - place / len(view.up)) + 4:.1f}",
            class_="tick end",
        )
        for place, text in zip(at, texts, strict=True)
    ]
