"""A comparison as rows of dots and whiskers: the methods under the heading of each variable."""

from __future__ import annotations

from varcal._audit.comparison import Comparison, ComparisonRow
from varcal._audit.metric_text import UNITS, metric_change
from varcal._audit.verdicts import BASELINE
from varcal._options import check_choice
from varcal._text.numbers import level_text
from varcal.plotting._rankings import Dots

#: Figures that are mean gaps; they have a noise floor and start at zero.
ERRORS = ("VECE", "ECE")


def comparison_dots(comparison: Comparison, metric: str, top: int) -> Dots:
    """Return one figure of every method, by variable."""
    known = list(dict.fromkeys(name for name, _ in comparison.figures))
    check_choice("metric", metric, known)
    base = comparison.methods[0]
    variables = [variable for name, variable in comparison.figures if name == metric]
    # An overall gap makes all values alike: those within a tenth of a point keep their order.
    variables.sort(key=lambda variable: -round(comparison.row(base, metric, variable).value, 3))
    kept = variables[: max(int(top), 1)]
    rows = [
        comparison.row(one, metric, variable) for variable in kept for one in comparison.methods
    ]
    unit = "; differences in points" if metric in UNITS and metric not in ERRORS else ""
    return Dots.of(
        [row.method for row in rows],
        [row.value for row in rows],
        [row.low for row in rows],
        [row.high for row in rows],
        noise=[row.noise_floor for row in rows] if metric in ERRORS else None,
        filled=[row.verdict != BASELINE for row in rows],
        texts=[change_text(row) for row in rows],
        label=f"{metric}, {level_text(comparison.level)} interval{unit}",
        title=f"{metric} before and after, on {comparison.n_rows:,} held-out rows",
        headings=[row.variable for row in rows] if metric == "VECE" else (),
        shares=metric in UNITS,
        zero=metric in ERRORS,
        more=len(variables) - len(kept),
    )


def change_text(row: ComparisonRow) -> str:
    """Return the verdict of a row and its difference from the baseline."""
    if row.verdict == BASELINE or row.difference != row.difference:
        return row.verdict
    return f"{row.verdict}, {metric_change(row.metric, row.difference)}"
