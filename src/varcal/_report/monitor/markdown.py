"""The report of a monitor as Markdown, for an issue, a wiki or a log."""

from __future__ import annotations

from varcal._monitor.view import HeatMap, HeatRow
from varcal._report.audit.markdown import escape, text
from varcal._report.monitor.summary import MonitorSummary
from varcal._text.gaps import marked_side
from varcal._text.numbers import count, interval, percent, points
from varcal._text.sentences import cut


def monitor_markdown(summary: MonitorSummary) -> str:
    """Return headline, lede, facts, next steps, places and the log."""
    lines = [
        f"# {escape(summary.title)}",
        "",
        f"**{summary.badge}: {text(summary.headline)}**",
        "",
        text(summary.lede),
        "",
        *(f"- {name}: {escape(value)}" for name, value in summary.facts),
        "",
    ]
    if summary.steps:
        lines += ["## What to do next", ""]
        lines += [
            f"{k}. **{title}.** {text(step)}" for k, (title, step) in enumerate(summary.steps, 1)
        ]
        lines.append("")
    if summary.view.maps:
        lines += ["## Places since the last reset", ""]
    for one in summary.view.maps:
        lines += _table(one)
    if summary.log:
        lines += ["## Log", "", "| batch | what | note |", "|---|---|---|"]
        lines += [
            f"| {escape(cut(one.id or '–'))} | {one.what} | {escape(one.note or '–')} |"
            for one in summary.log
        ]
        lines.append("")
    lines += ["## Data and method", ""]
    lines += [f"- {text(note)}" for note in summary.notes]
    lines += [f"- {escape(line)}" for line in summary.method]
    return "\n".join(lines) + "\n"


def _table(one: HeatMap) -> list[str]:
    return [
        f"### {escape(cut(one.variable, 200))} ({escape(one.claim)})",
        "",
        "| place | says | happens | off by, points | interval | rows |",
        "|---|---|---|---|---|---|",
        *(_row(row, one.claim) for row in one.rows),
        "",
    ]


def _row(row: HeatRow, claim: str) -> str:
    sure = row.low > 0 or row.high < 0
    off = f"{points(abs(row.off))} {marked_side(row.off, claim)}" if sure else "not sure"
    return (
        f"| {escape(cut(row.text))} | {percent(row.predicted)} | {percent(row.observed)} | {off} | "
        f"{interval(row.low, row.high)} | {count(row.n)} |"
    )
