"""The HTML page of a comparison."""

from __future__ import annotations

from typing import Any

from varcal._audit.comparison import ComparisonRow
from varcal._audit.metric_text import metric_change, metric_interval, metric_text
from varcal._audit.verdicts import BETTER, CHANGED, FIXED, MADE_WORSE, MARKS, UNCHANGED
from varcal._report.claim_words import ClaimWords, claim_words
from varcal._report.comparison.charts import method_dots, panels, vece_axis
from varcal._report.comparison.summary import (
    BETTER_WHEN,
    ComparisonSummary,
    FigureSummary,
    VariableChange,
)
from varcal._report.html.axes import Axis
from varcal._report.html.chart_parts import verdict_badge
from varcal._report.html.markup import Child, Markup, el
from varcal._report.html.page import method_section, page
from varcal._text.numbers import count, level_text
from varcal._text.sentences import Named, cut

#: Up to this many methods have a headline each; more are shown as a list.
MOST_HEADLINES = 3


def comparison_html(summary: ComparisonSummary) -> str:
    """Return the page as text."""
    sections = [
        ("summary", "", _top(summary)),
        ("figures", "Figures", _figures(summary)),
        (
            "method",
            "Data and method",
            method_section(summary.notes, summary.method, summary.versions, summary.citation),
        ),
    ]
    if summary.variables:
        sections.insert(2, ("variables", "Variables", _variables(summary)))
    nothing_to_read: dict[str, Any] = {"charts": {}}
    return page(
        "Before and after",
        f"{count(summary.n_rows, 'row')} · {summary.created}",
        sections,
        nothing_to_read,
        name=summary.title,
    )


def _top(summary: ComparisonSummary) -> Markup:
    facts: list[tuple[str, Child]] = [
        ("Held-out rows", count(summary.n_rows)),
        ("Before", Named(cut(summary.methods[0]))),
        ("After", el("ul", [el("li", Named(cut(name))) for name in summary.methods[1:]] or "–")),
        ("Level of intervals", level_text(summary.level)),
    ]
    if len(summary.methods) == 1:
        facts.pop(2)
    return el(
        "section",
        el("h1", Named(cut(summary.title, 200))),
        _headlines(summary),
        el("p", summary.checked, class_="note"),
        el(
            "dl",
            [el("div", el("dt", name), el("dd", value)) for name, value in facts],
            class_="facts",
        ),
        id="summary",
        class_="first",
        tabindex=-1,
    )


def _headlines(summary: ComparisonSummary) -> Child:
    if len(summary.headlines) <= MOST_HEADLINES:
        return [el("p", one, class_="headline") for one in summary.headlines]
    return el("ul", [el("li", one) for one in summary.headlines])


def _figures(summary: ComparisonSummary) -> Markup:
    base, *others = summary.methods
    level = el("small", f"{level_text(summary.level)} interval")
    first = [
        el("th", "Figure", scope="col", rowspan=2),
        el("th", Named(cut(base)), scope="col"),
        *(el("th", Named(cut(name)), scope="colgroup", colspan=2) for name in others),
    ]
    second = [el("th", "Value", level, scope="col")]
    for _ in others:
        second += [el("th", "Value", level, scope="col"), el("th", "Change", level, scope="col")]
    table = el(
        "table",
        el("thead", el("tr", first), el("tr", second)),
        el("tbody", [_figure(one) for one in summary.figures]),
        class_="figures",
        aria_labelledby="figures-title",
        aria_describedby="figures-note",
    )
    signs = ", ".join(f"{MARKS[name]} {name}" for name in (FIXED, BETTER, MADE_WORSE))
    return el(
        "section",
        el("h2", "Figures, before and after", id="figures-title"),
        el(
            "p",
            "Changes are paired differences from ",
            Named(cut(base)),
            f" on the same rows: {signs}, {MARKS[UNCHANGED]} {UNCHANGED} (no change could be "
            f"shown). {BETTER_WHEN}",
            id="figures-note",
            class_="note",
        ),
        el(
            "div",
            table,
            class_="scroll",
            role="region",
            aria_labelledby="figures-title",
            tabindex=0,
        ),
        id="figures",
    )


def _figure(one: FigureSummary) -> Markup:
    base, *others = one.rows
    cells = [_value(base)]
    for row in others:
        cells += [_value(row), _change(row)]
    unit = f", {one.unit}" if one.unit == "points" else ""
    along = [" along ", Named(cut(one.variable))] if one.variable else []
    return el("tr", el("th", one.metric, along, unit, scope="row"), cells)


def _value(row: ComparisonRow) -> Markup:
    ends = el("small", metric_interval(row.metric, row.low, row.high))
    return el("td", metric_text(row.metric, row.value), ends)


def _change(row: ComparisonRow) -> Markup:
    return el(
        "td",
        verdict_badge(row.verdict),
        f" {metric_change(row.metric, row.difference)}",
        el("small", metric_interval(row.metric, row.difference_low, row.difference_high)),
    )


def _variables(summary: ComparisonSummary) -> Markup:
    axis = vece_axis(summary)
    return el(
        "section",
        el("h2", "Variable by variable"),
        el(
            "p",
            "First the VECE of each set, on one scale for all variables: ○ before, ● after, with "
            "intervals; grey: what chance alone would give. Then the curves, on one scale for all "
            "sets. Solid line: what happens; shaded: its band. Dashed line: what the model says. "
            "The strip marks where the prediction is surely wrong. Variables without a change are "
            "collapsed.",
            class_="note",
        ),
        [
            _card(one, k, axis, claim_words(one.vece.rows[0].claim))
            for k, one in enumerate(summary.variables, 1)
        ],
        id="variables",
    )


def _card(one: VariableChange, rank: int, axis: Axis, words: ClaimWords) -> Markup:
    number = f"v{rank}"
    values = [metric_text(row.metric, row.value) for row in one.vece.rows]
    changed = any(row.verdict in CHANGED for row in one.vece.rows)
    return el(
        "details",
        el(
            "summary",
            el("h3", Named(cut(one.name, 200))),
            el("span", f"VECE {', then '.join(values)} points", class_="size"),
        ),
        el(
            "div",
            el("p", one.finding),
            el("figure", method_dots(one.vece, axis, str(one.finding))),
            el("figure", panels(one, number, words)) if one.panels else None,
            class_="body",
        ),
        class_="card",
        id=number,
        data_v=rank,
        open=changed,
    )
