"""A comparison as lines of text that fit a terminal."""

from __future__ import annotations

from varcal._audit.comparison import Comparison
from varcal._audit.metric_text import metric_text
from varcal._audit.verdicts import BETTER, CHANGED, FIXED, MADE_WORSE
from varcal.cli._program import WIDTH


def comparison_lines(found: Comparison) -> list[str]:
    """Return the figures, as many sets beside each other as fit, and a legend."""
    names = found.figure_names
    left = _column(["", *names])
    sets = [_column([method, *_values(found, method)]) for method in found.methods]
    lines = [f"{found.n_rows:,} rows, compared with {found.methods[0]}"]
    while sets:
        shown = [left, sets.pop(0)]
        while sets and sum(len(one[0]) + 2 for one in [*shown, sets[0]]) <= WIDTH + 2:
            shown.append(sets.pop(0))
        lines += ["", *("  ".join(row).rstrip() for row in zip(*shown, strict=True))]
    return [
        *lines,
        "",
        "ECE and VECE in points · accuracy and AUC: larger is better, others: smaller",
        f"{FIXED}: better, and what is left is within noise",
        f"{BETTER}, {MADE_WORSE}: surely so, by more than a trifle",
    ]


def _values(found: Comparison, method: str) -> list[str]:
    rows = [found.row(method, *figure) for figure in found.figures]
    texts = [metric_text(row.metric, row.value) for row in rows]
    width = max(map(len, texts))
    return [
        text.rjust(width) + (f" {row.verdict}" if row.verdict in CHANGED else "")
        for text, row in zip(texts, rows, strict=True)
    ]


def _column(cells: list[str]) -> list[str]:
    width = max(map(len, cells))
    return [cell.ljust(width) for cell in cells]
