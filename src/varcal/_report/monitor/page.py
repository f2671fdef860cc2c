"""The HTML page of a monitor."""

from __future__ import annotations

from typing import Any

from varcal._monitor.monitor import Monitor
from varcal._monitor.view import HeatMap, HeatRow, MonitorView
from varcal._report.claim_words import claim_words
from varcal._report.html.markup import Child, Markup, el
from varcal._report.html.page import method_section, page
from varcal._report.monitor.charts import evidence_chart, heat_strip, rate_chart
from varcal._report.monitor.summarise import summarise_monitor
from varcal._report.monitor.summary import MonitorSummary
from varcal._text.gaps import claim_name, gap_mark, gap_side
from varcal._text.numbers import count, interval, level_text, percent, points
from varcal._text.sentences import Named, Sentence, cut

_MARKS = {"bad": "▲", "watch": "●", "ok": "✓"}


def monitor_html(summary: MonitorSummary) -> str:
    """Return the page as text."""
    view = summary.view
    sections = [("summary", "", _top(summary))]
    if view.maps:
        sections.append(("places", "Places over time", _places(view)))
    if summary.log:
        sections.append(("log", "Log", _log(summary)))
    sections.append(
        (
            "method",
            "Data and method",
            method_section(summary.notes, summary.method, summary.versions, summary.citation),
        )
    )
    data: dict[str, Any] = {"charts": {}}
    return page("Calibration monitor", summary.created, sections, data, name=summary.title)


def _top(summary: MonitorSummary) -> Markup:
    view = summary.view
    charts: list[Child] = []
    if len(view.x):
        charts.append(
            el(
                "figure",
                el("figcaption", "Evidence that a gap exceeds the limit anywhere"),
                evidence_chart(view),
            )
        )
    if view.shown is not None:
        words = claim_words(view.shown.claim)
        what = "Strongest place: " if view.status.alarm else "Closest place (no alarm): "
        charts.append(
            el(
                "figure",
                el("figcaption", what, Named(cut(view.shown.label)), f", {words.y}"),
                rate_chart(view),
            )
        )
    level = level_text(round(view.level, 6))
    note = (
        f"Rates: dots are single batches, lines are means so far"
        f"{', anew from the change on' if view.after is not None else ''}; the band is a {level} "
        "interval of the rate given the prediction, valid at all times."
    )
    return el(
        "section",
        el(
            "div",
            el("h1", summary.headline),
            el(
                "span",
                el("span", _MARKS[summary.look], aria_hidden="true"),
                f" {summary.badge}",
                class_=f"badge {summary.look}",
            ),
            class_="line",
        ),
        el("p", summary.lede, class_="lede"),
        el("div", charts, class_="twin"),
        el("p", note, class_="note") if view.shown is not None else None,
        el(
            "dl",
            [
                el("div", el("dt", name), el("dd", Named(cut(value))))
                for name, value in summary.facts
            ],
            class_="facts",
        ),
        el(
            "div",
            el("h2", "What to do next"),
            el(
                "ol",
                [el("li", el("h3", title), el("p", text)) for title, text in summary.steps],
                class_="steps",
            ),
            class_="next",
        )
        if summary.steps
        else None,
        id="summary",
        class_="first",
        tabindex=-1,
    )


def _places(view: MonitorView) -> Markup:
    first = view.maps[0]
    over, under = gap_side(1, first.claim), gap_side(-1, first.claim)
    are = "is" if view.n_hidden == 1 else "are"
    more = f" {count(view.n_hidden, 'variable')} with less evidence {are} not shown." * bool(
        view.n_hidden
    )
    key = el(
        "p",
        el("span", el("svg", el("rect", width=16, height=12, class_="over"), class_="key"), over),
        el("span", el("svg", el("rect", width=16, height=12, class_="under"), class_="key"), under),
        el("span", "full colour from 10 points; pale: may be chance"),
        class_="legend",
    )
    level = level_text(round(view.level, 6))
    return el(
        "section",
        el("h2", "Places over time"),
        el(
            "p",
            "Gaps of the ",
            claim_name(first.claim),
            f" by place, from the first batch to the latest. Figures are means since the last "
            f"reset, with {level} intervals that hold at all times.{more}",
            class_="sub",
        ),
        key,
        [_card(one, view, k) for k, one in enumerate(view.maps)],
        id="places",
    )


def _card(one: HeatMap, view: MonitorView, k: int) -> Markup:
    words = claim_words(one.claim)
    head = el(
        "tr",
        el("th", "Place", scope="col"),
        el("th", "Gap over time", scope="col", class_="bar"),
        el("th", words.says, scope="col", class_="num"),
        el("th", words.happens, scope="col", class_="num"),
        el("th", "Off by, points", scope="col", class_="num"),
        el("th", "Rows", scope="col", class_="num"),
    )
    table = el(
        "table",
        el("caption", "Places of ", Named(cut(one.variable)), class_="quiet"),
        el("thead", head),
        el("tbody", [_row(row, one, view) for row in one.rows]),
        class_="over-time",
    )
    return el(
        "details",
        el("summary", el("h3", Named(cut(one.variable, 200)))),
        el("div", el("div", table, class_="scroll"), class_="body"),
        class_="card",
        open=k == 0 or not view.status.alarm,
    )


def _row(row: HeatRow, one: HeatMap, view: MonitorView) -> Markup:
    shown = view.shown
    here = (
        view.status.alarm
        and shown is not None
        and (shown.variable, shown.text) == (one.variable, row.text)
    )
    sure = row.low > 0 or row.high < 0
    off: list[Child] = [
        el(
            "span",
            f"{gap_mark(row.off)} {points(abs(row.off))}" if sure else "not sure",
            class_=("over" if row.off > 0 else "under") if sure else "unsure",
        ),
        el("small", interval(row.low, row.high)),
    ]
    if here and shown is not None:
        off.append(el("small", f"{points(abs(shown.gap))} since the change", class_="bad"))
    name = Sentence.of(Named(cut(row.text)))
    return el(
        "tr",
        el("th", el("b", name) if here else name, scope="row", class_="bad" if here else None),
        el("td", heat_strip(row, view), class_="bar"),
        el("td", percent(row.predicted), class_="num"),
        el("td", percent(row.observed), class_="num"),
        el("td", off, class_="num"),
        el("td", count(row.n), class_="num"),
    )


def _log(summary: MonitorSummary) -> Markup:
    rows = [
        el(
            "tr",
            el("td", Named(cut(one.id or "–"))),
            el("td", one.what),
            el("td", Named(cut(one.note or "–", 200))),
        )
        for one in summary.log
    ]
    head = el(
        "tr",
        el("th", "Batch", scope="col"),
        el("th", "What", scope="col"),
        el("th", "Note", scope="col"),
    )
    return el(
        "section",
        el("h2", "Log"),
        el(
            "table",
            el("caption", "Alarms, acknowledgements and resets", class_="quiet"),
            el("thead", head),
            el("tbody", rows),
            class_="log",
        ),
        id="log",
    )


def status_html(monitor: Monitor) -> str:
    """Return the badge, the headline and the lede, in the style of the notebook."""
    summary = summarise_monitor(monitor)
    return el(
        "div",
        el("h3", f"{summary.badge}: ", summary.headline),
        el("p", summary.lede),
    )
