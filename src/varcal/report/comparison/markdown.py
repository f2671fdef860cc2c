"""A comparison as Markdown, for a pull request, a wiki or a log."""

from __future__ import annotations

from varcal._audit.comparison import ComparisonRow
from varcal.report.audit.markdown import escape, text
from varcal.report.comparison.change_words import change, size, sizes
from varcal.report.comparison.summary import MARKS, ComparisonSummary, FigureSummary
from varcal.report.words import cut


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
        f"In brackets: {summary.level:.0%} intervals. Changes are paired differences from {base} "
        "on the same rows. More is better for accuracy and AUC, less for all others.",
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
        ends = sizes(row.metric, row.difference_low, row.difference_high)
        moved = f"{change(row.metric, row.difference)} ({ends})"
        cells += [_value(row), f"{MARKS[row.verdict]} {row.verdict} {moved}"]
    return f"| {' | '.join(cells)} |"


def _value(row: ComparisonRow) -> str:
    return f"{size(row.metric, row.value)} ({sizes(row.metric, row.low, row.high)})"
