"""Charts of a comparison: VECE of every method on one scale, and their curves side by side."""

from __future__ import annotations

from varcal._audit.metric_text import metric_change, metric_text
from varcal._audit.verdicts import BASELINE
from varcal._report.audit.charts import lines_chart, y_axis
from varcal._report.claim_words import ClaimWords
from varcal._report.comparison.summary import (
    ComparisonSummary,
    FigureSummary,
    VariableChange,
)
from varcal._report.html.axes import Axis, share_axis
from varcal._report.html.chart_parts import verdict_badge
from varcal._report.html.markup import Markup, el
from varcal._report.lines import Line
from varcal._text.numbers import count
from varcal._text.sentences import Named, cut


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
