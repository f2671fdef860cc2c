"""Charts of a comparison: VECE of every method on one scale, and their curves side by side."""

from __future__ import annotations

from varcal._audit.metric_text import metric_change, metric_text
from varcal._audit.verdicts import BASELINE
from varcal.report.audit.charts import levels_chart, levels_key, lines_chart, y_axis
from varcal.report.comparison.summary import (
    ComparisonSummary,
    FigureSummary,
    VariableChange,
)
from varcal.report.html.axes import Axis, share_axis
from varcal.report.html.badge import verdict_badge
from varcal.report.html.markup import Markup, el
from varcal.report.words import Named, Wording, cut


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


def panels(one: VariableChange, number: str, words: Wording) -> Markup:
    """Draw the curve of each method, all on the same axes."""
    lines = [panel.line for panel in one.panels]
    made = []
    for k, panel in enumerate(one.panels):
        title = f"{words.actual.capitalize()} and {words.predicted} along {cut(one.name)}"
        title = f"{title}, {cut(panel.method)}"
        described = str(panel.worst)
        if panel.line.kind == "levels":
            chart = levels_chart(panel.line, y_axis(lines), title, described, words)
        else:
            chart = lines_chart(panel, f"{number}-{k}", title, described, words, beside=lines)
        name = el("h4", Named(cut(panel.method)))
        made.append(el("div", name, chart, el("p", panel.worst, class_="note"), class_="panel"))
    key = levels_key(words) if any(line.kind == "levels" for line in lines) else ""
    return Markup(key + el("div", made, class_="panels"))
