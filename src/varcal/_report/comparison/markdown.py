"""The report of a comparison as Markdown, for a pull request, a wiki or a log."""

from __future__ import annotations

from varcal._audit.comparison import ComparisonRow
from varcal._audit.metric_text import metric_change, metric_interval, metric_text
from varcal._audit.verdicts import MARKS
from varcal._report.audit.markdown import escape, text
from varcal._report.comparison.summary import BETTER_WHEN, ComparisonSummary, FigureSummary
from varcal._text.numbers import level_text
from varcal._text.sentences import cut


def comparison_markdown(summary: ComparisonSummary) -> str:
    """Return the headlines, the table of figures, the variables and the notes."""
    base, *others = (escape(cut(name)) for name in summary.methods)
    lines = [f"# {escape(summary.title)}", ""]
    for one in summary.headlines:
        lines += [f"**{text(one)}**", ""]
    lines += [
        text(summary.checked),
        "",
        "## Figures, before and after",
        "",
        f"| figure | {base} | {''.join(f'{name} | change | ' for name in others)}".rstrip(),
        "|---" * (2 + 2 * len(others)) + "|",
        *(_row(one) for one in summary.figures),
        "",
        f"In brackets: {level_text(summary.level)} intervals. Changes are paired differences from "
        f"{base} on the same rows. {BETTER_WHEN}",
        "",
    ]
    if summary.variables:
        lines += ["## Variable by variable", ""]
    for variable in summary.variables:
        lines += [f"### {escape(cut(variable.name, 200))}", "", text(variable.finding), ""]
        lines += [
            f"- {escape(cut(panel.method))}: {text(panel.worst)}" for panel in variable.panels
        ]
        lines.append("")
    lines += ["## Data notes", "", *(f"- {text(note)}" for note in summary.notes), ""]
    lines += ["## How it was computed", "", *(f"- {line}" for line in summary.method), ""]
    versions = " · ".join(f"{name} {number}" for name, number in summary.versions)
    lines += [f"{summary.created} · {versions}", ""]
    lines += [*(f"- {line}" for line in summary.citation), ""]
    return "\n".join(lines)


def _row(one: FigureSummary) -> str:
    base, *others = one.rows
    name = f"{one.metric} along {escape(cut(one.variable))}" if one.variable else one.metric
    cells = [f"{name}, points" if one.unit == "points" else name, _value(base)]
    for row in others:
        ends = metric_interval(row.metric, row.difference_low, row.difference_high)
        moved = f"{metric_change(row.metric, row.difference)} ({ends})"
        cells += [_value(row), f"{MARKS[row.verdict]} {row.verdict} {moved}"]
    return f"| {' | '.join(cells)} |"


def _value(row: ComparisonRow) -> str:
    return (
        f"{metric_text(row.metric, row.value)} ({metric_interval(row.metric, row.low, row.high)})"
    )
