"""The ranking: a table of all variables that can be sorted and searched."""

from __future__ import annotations

from varcal._audit.verdicts import VERDICTS
from varcal._text.numbers import interval, p_text, points
from varcal.report.audit.summary import Summary, VariableSummary
from varcal.report.html.axes import Axis, share_axis
from varcal.report.html.badge import verdict_badge
from varcal.report.html.markup import Child, Markup, el
from varcal.report.words import Named, cut


def ranking(summary: Summary) -> Markup:
    """Make the section with the search box and the table."""
    many = len(summary.variables)
    axis = _axis(summary)
    head = [
        _head("#", "rank", ascending=True),
        _head("Variable", "name"),
        _head("Verdict", "verdict"),
        _head("VECE", "vece", "points, interval"),
        el("th", "Size", el("small", _scale(axis)), scope="col", class_="size"),
        _head("Beyond overall", "beyond", "points, interval"),
        _head("Adjusted p", "p"),
        el("th", "Where it differs most from overall", scope="col", class_="where"),
    ]
    rows = [_row(one, summary, axis) for one in summary.variables]
    table = el(
        "table",
        el("thead", el("tr", head)),
        el("tbody", rows),
        id="ranking-table",
        aria_labelledby="ranking-title",
        aria_describedby="ranking-note",
    )
    return el(
        "section",
        el("h2", "Variables, ranked", id="ranking-title"),
        el(
            "p",
            "Ranked by what lies beyond the overall gap. Size: ● beyond with its interval, ○ VECE; "
            "dashed line: the overall gap, which VECE cannot be below.",
            id="ranking-note",
            class_="note",
        ),
        el(
            "div",
            el("label", "Search variables ", el("input", type="search", id="search")),
            el("p", f"{many} of {many} shown", role="status", id="found"),
            class_="tools",
            hidden=True,
        ),
        el(
            "div",
            table,
            class_="scroll",
            role="region",
            aria_labelledby="ranking-title",
            tabindex=0,
        ),
        id="ranking",
    )


def _head(text: str, key: str, unit: str = "", *, ascending: bool = False) -> Markup:
    button = el("button", text, el("span", class_="arrow", aria_hidden="true"), type="button")
    return el(
        "th",
        button,
        el("small", unit) if unit else None,
        scope="col",
        class_=key,
        aria_sort="ascending" if ascending else "none",
    )


def _row(one: VariableSummary, summary: Summary, axis: Axis) -> Markup:
    def cell(key: str, sort: object, *content: Child) -> Markup:
        return el("td", content, class_=key, data_sort=sort)

    link = el("a", Named(cut(one.name)), href=f"#v{one.rank}", title=cut(one.name, 200))
    size = el("small", interval(one.beyond.low, one.beyond.high))
    return el(
        "tr",
        cell("rank", one.rank, str(one.rank)),
        el("th", link, scope="row", class_="name"),
        cell("verdict", VERDICTS.index(one.verdict), verdict_badge(one.verdict)),
        cell(
            "vece",
            f"{one.vece.debiased:.6f}",
            points(one.vece.debiased),
            el("small", interval(one.vece.low, one.vece.high)),
        ),
        el("td", _dots(one, summary, axis), class_="size"),
        cell("beyond", f"{one.beyond.debiased:.6f}", points(one.beyond.debiased), size),
        cell("p", f"{one.p_holm:.6g}", p_text(one.p_holm)),
        el("td", one.where if one.where.parts else "–", class_="where"),
        data_v=one.rank,
    )


def _axis(summary: Summary) -> Axis:
    highs = [max(one.vece.high, one.beyond.high) for one in summary.variables]
    return share_axis(max(*highs, abs(summary.overall.gap), 0.02))


def _scale(axis: Axis) -> str:
    return f"0 to {points(axis.high).removesuffix('.0')} points"


def _dots(one: VariableSummary, summary: Summary, axis: Axis) -> Markup:
    overall = axis.percent(abs(summary.overall.gap))
    return el(
        "svg",
        el("line", x1=0, x2="100%", y1="50%", y2="50%", class_="grid"),
        el("line", x1=overall, x2=overall, y1=0, y2="100%", class_="overall"),
        el("circle", cx=axis.percent(one.vece.debiased), cy="50%", r=3.5, class_="hollow"),
        el(
            "line",
            x1=axis.percent(one.beyond.low),
            x2=axis.percent(one.beyond.high),
            y1="50%",
            y2="50%",
            class_="whisker",
        ),
        el("circle", cx=axis.percent(one.beyond.debiased), cy="50%", r=4, class_="dot ink"),
        class_="dots",
        aria_hidden="true",
    )
