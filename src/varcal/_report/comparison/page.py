"""The HTML page of a comparison."""

from __future__ import annotations

from typing import Any

from varcal._audit.comparison import ComparisonRow
from varcal._audit.metric_text import metric_change, metric_interval, metric_text
from varcal._audit.verdicts import BASELINE, BETTER, CHANGED, FIXED, MADE_WORSE, MARKS, UNCHANGED
from varcal._report.audit.charts import lines_chart, y_axis
from varcal._report.claim_words import ClaimWords, claim_words
from varcal._report.comparison.summary import (
    BETTER_WHEN,
    ComparisonSummary,
    FigureSummary,
    VariableChange,
)
from varcal._report.html.axes import Axis, share_axis
from varcal._report.html.chart_parts import verdict_badge
from varcal._report.html.markup import Child, Markup, el
from varcal._report.html.page import method_section, page
from varcal._report.lines import Line
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


def vece_axis(summary: ComparisonSummary) -> Axis:
    """Make the scale on which VECE is shown for all variables."""
    rows = [row for one in summary.variables for row in one.vece.rows]
    return share_axis(max(0.02, *(max(row.high, row.noise_floor, row.value) for row in rows)))


def method_dots(one: FigureSummary, axis: Axis, described: str) -> Markup:
    """Draw one row per method: a dot with its whisker, over what chance alone would give."""
    grid = [
        el("line", x1=axis.percent(at), x2=axis.percent(at), y1=0, y2="100%", class_="grid")
        for at, _ in axis.ticks
    ]
    rows = []
    for row in one.rows:
        ends = [axis.percent(end) for end in (row.low, row.high)]
        dot = "hollow" if row.verdict == BASELINE else "dot actual"
        marks = [
            el(
                "rect",
                x=0,
                y="25%",
                width=axis.percent(row.noise_floor),
                height="50%",
                class_="noise",
            ),
            el("line", x1=ends[0], x2=ends[1], y1="50%", y2="50%", class_="whisker"),
            el("circle", cx=axis.percent(row.value), cy="50%", r=4, class_=dot),
        ]
        said = "" if row.verdict == BASELINE else f" {metric_change(row.metric, row.difference)}"
        rows.append(
            el(
                "div",
                el("span", Named(cut(row.method)), class_="level"),
                el("svg", grid, marks, class_="row"),
                el("span", metric_text(row.metric, row.value), class_="rows"),
                el("span", verdict_badge(row.verdict), said),
                class_="level-row method-row",
            )
        )
    ticks = [
        el("text", text, x=axis.percent(at), y=0, dy="1em", class_="tick middle")
        for at, text in axis.ticks
    ]
    rows.append(
        el(
            "div",
            el("span", class_="level"),
            el("svg", ticks, class_="row axis-row"),
            el("span", "points", class_="rows"),
            el("span"),
            class_="level-row method-row",
        )
    )
    return el("div", rows, role="img", aria_label=described, class_="levels")


def panels(one: VariableChange, number: str, words: ClaimWords) -> Markup:
    """Draw the curve of each method, all on the same axes."""
    lines = [panel.line for panel in one.panels]
    made = []
    for k, panel in enumerate(one.panels):
        title = f"{words.actual.capitalize()} and {words.predicted} along {cut(one.name)}"
        title = f"{title}, {cut(panel.method)}"
        described = str(panel.worst)
        if panel.line.kind == "levels":
            chart = _levels_chart(panel.line, y_axis(lines, words), title, described)
        else:
            chart = lines_chart(
                panel,
                f"{number}-{k}",
                title,
                described,
                words,
                variable=one.name,
                beside=lines,
                small=True,
            )
        name = el("h4", Named(cut(panel.method)))
        made.append(el("div", name, chart, el("p", panel.worst, class_="note"), class_="panel"))
    key = _levels_key(words) if any(line.kind == "levels" for line in lines) else ""
    return Markup(key + el("div", made, class_="panels"))


def _levels_chart(line: Line, y: Axis, title: str, described: str) -> Markup:
    """Draw one row per level: a dot with its whisker, and a dash for the prediction."""
    rows = []
    for k, label in enumerate(line.labels):
        rows.append(
            el(
                "div",
                el("span", Named(cut(label)), class_="level"),
                el("svg", _level_marks(line, k, y), class_="row"),
                el("span", count(line.n[k]) if line.n else "", class_="rows"),
                class_="level-row",
            )
        )
    ticks = [
        el("text", text, x=y.percent(at), y=0, dy="1em", class_="tick middle")
        for at, text in y.ticks
    ]
    rows.append(
        el(
            "div",
            el("span", class_="level"),
            el("svg", ticks, class_="row axis-row"),
            el("span", "rows", class_="rows"),
            class_="level-row",
        )
    )
    return el("div", rows, role="img", aria_label=f"{title}. {described}", class_="levels")


def _level_marks(line: Line, k: int, y: Axis) -> list[Markup]:
    grid = [
        el("line", x1=y.percent(at), x2=y.percent(at), y1=0, y2="100%", class_="grid")
        for at, _ in y.ticks
    ]
    under = line.actual_low[k] > line.predicted[k]
    over = line.actual_high[k] < line.predicted[k]
    side = "over" if over else "under" if under else ""
    actual, predicted = y.percent(line.actual[k]), y.percent(line.predicted[k])
    ends = [y.percent(line.actual_low[k]), y.percent(line.actual_high[k])]
    return [
        *grid,
        el("line", x1=predicted, x2=actual, y1="50%", y2="50%", class_=f"reach {side}"),
        el("line", x1=ends[0], x2=ends[1], y1="50%", y2="50%", class_="whisker"),
        el("line", x1=predicted, x2=predicted, y1="18%", y2="82%", class_="dash"),
        el("circle", cx=actual, cy="50%", r=4, class_="dot actual"),
    ]


def _levels_key(words: ClaimWords) -> Markup:
    dash = el("svg", el("line", x1=5, x2=5, y1=0, y2=16, class_="dash"), class_="key narrow")
    dot = el("svg", el("circle", cx=13, cy=8, r=4, class_="dot actual"), class_="key")
    return el(
        "p",
        el("span", dash, f" {words.predicted}"),
        el("span", dot, f" {words.actual}, with its band"),
        class_="legend",
    )
