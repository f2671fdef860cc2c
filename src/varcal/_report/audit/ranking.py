"""The ranking: all variables by uneven error; those without evidence are folded."""

from __future__ import annotations

from varcal._audit.verdicts import FINDINGS
from varcal._report.audit.summary import Spot, Summary, VariableSummary
from varcal._report.claim_words import claim_words
from varcal._report.html.axes import Axis, points_axis
from varcal._report.html.chart_parts import verdict_badge
from varcal._report.html.markup import Child, Markup, el
from varcal._text.gaps import gap_mark, off_by
from varcal._text.numbers import count, interval, limit_text, percent, points
from varcal._text.sentences import Named, cut, listed

#: With more variables than this there is a box to search them.
MANY = 10


def ranking(summary: Summary) -> Markup:
    """Make the section with the search box and the table."""
    found = [one for one in summary.variables if one.verdict in FINDINGS]
    others = [one for one in summary.variables if one.verdict not in FINDINGS]
    many = len(summary.variables)
    tools = el(
        "div",
        el("label", "Search variables ", el("input", type="search", id="search")),
        el("p", f"{many} of {many} shown", role="status", id="found"),
        class_="tools",
        hidden=True,
    )
    return el(
        "section",
        el("h2", "Variables, ranked"),
        el(
            "p",
            _note(summary) if found else "No variable has evidence of uneven error.",
            class_="sub",
        ),
        tools if many > MANY else None,
        _table(summary, found) if found else None,
        _folded(others) if others else None,
        id="ranking",
    )


def _note(summary: Summary) -> str:
    titles = [one.title.lower() for one in summary.variables[0].claims]
    marks = f"● {titles[0]}" + (f", ○ {titles[1]}; " if len(titles) > 1 else "; ")
    many = len(summary.variables)
    valid = f", valid for all {many} at once" if many > 1 else ""
    return (
        "By uneven error: how far what the model says and what happens are apart along the "
        "variable, on average over rows, once the average gap is taken off. "
        f"{marks}line through them: interval of the larger{valid}; dashed: the limit of "
        f"{limit_text(summary.limit)} points."
    )


def _table(summary: Summary, rows: list[VariableSummary]) -> Markup:
    axis = points_axis(max(summary.limit * 1.2, *(one.high for one in rows)))
    ticks = [
        el("text", text, x=axis.percent(at), y=11, class_=f"tick {axis.anchor(at)}")
        for at, text in axis.ticks
    ]
    repaired = any(one.after is not None for one in rows)
    several = len(rows[0].claims) > 1
    head = [
        _head("#", "n"),
        _head("Variable", "name", "claim that is wrong" if several else ""),
        _head("Verdict", "verdict-cell"),
        _head("Uneven error", "size", "points, interval"),
        el(
            "th",
            f"0 to {axis.ticks[-1][1]} points",
            el("svg", ticks, class_="ticks", aria_hidden="true"),
            role="columnheader",
            scope="col",
            class_="bar",
        ),
        _head("Clearest place", "place"),
        _head("After repair", "num", "points") if repaired else None,
    ]
    return el(
        "table",
        el("caption", "Variables ranked by uneven error", class_="quiet"),
        el("thead", el("tr", head, role="row"), role="rowgroup"),
        el(
            "tbody",
            [_row(one, axis, summary.limit, repaired, several) for one in rows],
            role="rowgroup",
        ),
        id="ranking-table",
        class_="rank",
        role="table",
    )


def _head(text: str, class_: str, unit: str = "") -> Markup:
    small = el("small", unit) if unit else None
    return el("th", text, small, role="columnheader", scope="col", class_=class_)


def _row(one: VariableSummary, axis: Axis, limit: float, repaired: bool, several: bool) -> Markup:
    def cell(class_: str, *content: Child, label: str = "") -> Markup:
        return el("td", content, role="cell", class_=class_, data_l=label or None)

    link = el("a", Named(cut(one.name)), href=f"#v{one.rank}")
    after = None
    if repaired:
        told: list[Child] = ["–"]
        if one.after is not None:
            most = el("small", f"at most {points(one.after.high)}", class_="inline")
            told = [el("b", points(one.after.value)), " ", most]
        after = cell("num after-cell", *told, label="after repair")
    return el(
        "tr",
        cell("n", str(one.rank)),
        el(
            "th",
            el("b", link),
            el("small", one.wrong) if several else None,
            role="rowheader",
            scope="row",
            class_="name",
        ),
        cell("verdict-cell", verdict_badge(one.verdict)),
        cell("size", el("b", points(one.hidden)), el("small", interval(one.low, one.high))),
        cell("bar", _dots(one, axis, limit)),
        cell("place", *_place(one.spot)),
        after,
        role="row",
        data_v=one.rank,
    )


def _place(spot: Spot | None) -> list[Child]:
    if spot is None:
        return ["–"]
    side = "over" if spot.gap > 0 else "under"
    words = claim_words(spot.claim)
    mark = el("span", gap_mark(spot.gap), aria_hidden="true")
    said: Child = el("span", mark, " ", off_by(spot.gap, spot.claim), class_=side)
    if not (spot.low > 0 or spot.high < 0):
        said = "not surely off as a whole"
    return [
        Named(cut(spot.text)),
        f": {words.says_short} {percent(spot.says)}, {words.happens_short} {percent(spot.happens)}",
        el("small", spot.better or said, f" · {count(spot.n, 'row')}"),
    ]


def _dots(one: VariableSummary, axis: Axis, limit: float) -> Markup:
    first, *rest = one.claims
    ring = (
        el("circle", cx=axis.percent(rest[0].value), cy=11, r=7, class_="hollow") if rest else None
    )
    return el(
        "svg",
        el("line", x1=0, x2="100%", y1=11, y2=11, class_="grid"),
        el("line", x1=axis.percent(limit), x2=axis.percent(limit), y1=-30, y2=60, class_="limit"),
        el(
            "line",
            x1=axis.percent(one.low),
            x2=axis.percent(one.high),
            y1=11,
            y2=11,
            class_="whisker",
        ),
        ring,
        el("circle", cx=axis.percent(first.value), cy=11, r=4, class_="dot ink"),
        class_="dots",
        aria_hidden="true",
    )


def _folded(rows: list[VariableSummary]) -> Markup:
    """Make the folded table of variables without evidence, with what they rule out."""
    head = [
        _head("Variable", "name"),
        _head("Verdict", "verdict-cell"),
        _head("Uneven error", "size", "at most, points"),
        _head("Where least is known", "place"),
        _head("Off there", "num", "at most, points"),
    ]
    body = []
    for one in rows:
        weak = one.weakest
        body.append(
            el(
                "tr",
                el(
                    "th",
                    el("b", el("a", Named(cut(one.name)), href=f"#v{one.rank}")),
                    role="rowheader",
                    scope="row",
                    class_="name",
                ),
                el("td", verdict_badge(one.verdict), role="cell", class_="verdict-cell"),
                el("td", el("b", points(one.high)), role="cell", class_="size", data_l="at most"),
                el(
                    "td",
                    Named(cut(weak.text)),
                    el("small", count(weak.n, "row")),
                    role="cell",
                    class_="place",
                    data_l="least is known",
                ),
                el(
                    "td",
                    el("b", points(max(abs(weak.low), abs(weak.high)))),
                    role="cell",
                    class_="num",
                    data_l="off there at most",
                ),
                role="row",
                data_v=one.rank,
            )
        )
    names = listed([one.name for one in rows], most=6)
    return el(
        "details",
        el(
            "summary",
            f"{count(len(rows), 'variable')} without evidence ",
            el("small", names, class_="inline"),
        ),
        el(
            "table",
            el("caption", "Variables without evidence of uneven error", class_="quiet"),
            el("thead", el("tr", head, role="row"), role="rowgroup"),
            el("tbody", body, role="rowgroup"),
            class_="rank quiet-rank",
            role="table",
        ),
        class_="fold",
    )
