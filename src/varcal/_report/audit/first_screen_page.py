"""The first screen in HTML: headline, lede, groups or bounds, checks, next steps."""

from __future__ import annotations

from varcal._audit.first_screen import Bound, FirstScreen, Group
from varcal._audit.screen.checks import ABOVE, BELOW, EITHER_SIDE, STATE_MARKS, Cell, Off
from varcal._audit.screen.judgement import CANNOT_TELL, FINE, REPAIR_FIRST, WATCH
from varcal._audit.screen.next_steps import Step
from varcal._report.claim_words import claim_words
from varcal._report.html.axes import Axis, points_axis
from varcal._report.html.dumbbells import Dumbbell, dumbbell_table
from varcal._report.html.markup import Child, Markup, el
from varcal._text.gaps import claim_name
from varcal._text.numbers import count, interval, level_text, points, signed
from varcal._text.sentences import Code, Named, Sentence, cut

_LOOKS = {REPAIR_FIRST: "bad", WATCH: "watch", FINE: "ok", CANNOT_TELL: "watch"}
_STATE_LOOKS = {ABOVE: "bad", EITHER_SIDE: "watch", BELOW: "ok"}


def first_screen_section(screen: FirstScreen, level: float) -> Markup:
    """Make the first section of the page."""
    badge = screen.badge
    shown = _groups(screen) if screen.groups else _bounds(screen)
    return el(
        "section",
        el(
            "div",
            el("h1", screen.headline),
            el(
                "span",
                el("span", badge.mark, aria_hidden="true"),
                f" {badge.text}",
                class_=f"badge {_LOOKS[badge.kind]}",
            ),
            class_="line",
        ),
        el("p", screen.lede, class_="lede"),
        el(
            "div",
            el(
                "div",
                el("h2", screen.groups_title),
                el("p", screen.groups_note, class_="sub"),
                shown,
                el("p", screen.groups_after, class_="after") if screen.groups_after else None,
            ),
            el(
                "div",
                el("h2", "How much, how sure"),
                el("p", screen.checks_note, class_="sub"),
                _checks(screen, level),
                el("p", screen.checks_after, class_="after") if screen.checks_after else None,
                el("p", screen.intersections, class_="after") if screen.intersections else None,
            ),
            class_="two",
        ),
        el(
            "div",
            el("h2", "What to do next"),
            el("ol", [_step(step) for step in screen.steps], class_="steps"),
            class_="next",
        ),
        id="summary",
        class_="first",
        tabindex=-1,
    )


def _groups(screen: FirstScreen) -> Markup:
    claims = {group.claim for group in screen.groups}
    words = claim_words(screen.groups[0].claim)
    one = len(claims) == 1
    heads = ("Group", "Rate", words.says if one else "Says", words.happens if one else "Happens")
    return dumbbell_table(
        [_dumbbell(group, named=not one) for group in screen.groups],
        caption=screen.groups_title,
        heads=heads,
    )


def _dumbbell(group: Group, *, named: bool) -> Dumbbell:
    return Dumbbell(
        name=group.name,
        about=Sentence.of(claim_name(group.claim), " · ", group.about) if named else group.about,
        says=group.predicted,
        happens=group.observed,
        low=group.low,
        high=group.high,
        side=Sentence.of(group.side),
        instead=Sentence.of("better than the rest") if group.better else Sentence(),
    )


def _bounds(screen: FirstScreen) -> Markup:
    axis = points_axis(max(screen.limit * 1.25, *(one.at_most for one in screen.bounds)))
    ticks = [
        el("text", text, x=axis.percent(at), y=12, class_=f"tick {axis.anchor(at)}")
        for at, text in axis.ticks
    ]
    head = el(
        "tr",
        el("th", "Variable", role="columnheader", scope="col"),
        el(
            "th",
            "Uneven error is at most, points",
            el("svg", ticks, class_="ticks", aria_hidden="true"),
            role="columnheader",
            scope="col",
            class_="bar",
        ),
        el("th", "At most", role="columnheader", scope="col", class_="num"),
        el("th", "Weakest place", role="columnheader", scope="col"),
        el("th", "Off there at most", role="columnheader", scope="col", class_="num there"),
        role="row",
    )
    return el(
        "table",
        el("caption", screen.groups_title, class_="quiet"),
        el("thead", head, role="rowgroup"),
        el("tbody", [_bound(one, axis, screen.limit) for one in screen.bounds], role="rowgroup"),
        class_="bound",
        role="table",
    )


def _bound(one: Bound, axis: Axis, limit: float) -> Markup:
    end, at = axis.percent(one.at_most), axis.percent(limit)
    look = "ok" if one.at_most <= limit else "watch"
    picture = el(
        "svg",
        el("line", x1=0, x2="100%", y1=12, y2=12, class_="grid"),
        el("rect", x=0, y=9, width=end, height=6, class_=f"span {look}"),
        el("line", x1=end, x2=end, y1=5, y2=19, class_=f"edge {look}"),
        el("line", x1=at, x2=at, y1=0, y2=24, class_="limit"),
        class_="row",
        aria_hidden="true",
    )
    return el(
        "tr",
        el("th", el("b", Named(cut(one.variable))), role="rowheader", scope="row", class_="g"),
        el("td", picture, role="cell", class_="bar"),
        el("td", el("b", points(one.at_most)), role="cell", class_="num", data_l="at most"),
        el(
            "td",
            one.place,
            el("small", count(one.n, "row")),
            role="cell",
            class_="place",
            data_l="weakest place",
        ),
        el("td", el("b", points(one.there)), role="cell", class_="num", data_l="off there at most"),
        role="row",
    )


def _checks(screen: FirstScreen, level: float) -> Markup:
    head = [el("th", f"Points off, {level_text(level)} interval", scope="col")]
    head += [
        el("th", column.title, scope="col", class_=_column(column.after_repair))
        for column in screen.columns
    ]
    rows = []
    for check in screen.checks:
        cells = [
            el("td", _cell(cell), class_=_column(column.after_repair))
            for column, cell in zip(screen.columns, check.cells, strict=True)
        ]
        name = el("th", el("b", check.name), el("small", check.note), scope="row")
        rows.append(el("tr", name, cells))
    caption = "How far off the model is, in percentage points"
    return el(
        "table",
        el("caption", caption, class_="quiet"),
        el("thead", el("tr", head)),
        el("tbody", rows),
        class_="checks",
    )


def _cell(cell: Cell | Off) -> Child:
    if isinstance(cell, Off):
        return [el("b", str(cell.n)), f" of {cell.of}"]
    mark = el(
        "span",
        el("span", STATE_MARKS[cell.state], aria_hidden="true"),
        el("span", f"{cell.state}: ", class_="quiet"),
        class_=f"state {_STATE_LOOKS[cell.state]}",
    )
    value = signed(cell.value) if cell.signed else points(cell.value)
    label = el("small", "class ", Named(cut(cell.label, 20))) if cell.label else None
    return [mark, " ", el("b", value), el("small", interval(cell.low, cell.high)), label]


def _column(after_repair: bool) -> str:
    return "num repaired" if after_repair else "num"


def _step(step: Step) -> Markup:
    """Make one step; a line to run at its start or end has a line of its own."""
    parts: list[Child] = []
    many = len(step.text.parts)
    for k, part in enumerate(step.text.parts):
        if isinstance(part, Code) and k in (0, many - 1):
            parts.append(el("div", part))
        else:
            parts.append(part)
    return el("li", el("h3", step.title), parts)
