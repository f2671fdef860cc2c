"""From a comparison to the summary of its report."""

from __future__ import annotations

from varcal._audit.comparison import Comparison, ComparisonRow
from varcal.report.audit.method import citation, comparison_method
from varcal.report.audit.summarise import installed, now, shown_range, worst_words
from varcal.report.comparison.change_words import UNITS, change, size, sizes
from varcal.report.comparison.summary import (
    ComparisonSummary,
    FigureSummary,
    Panel,
    VariableChange,
)
from varcal.report.lines import curve_line
from varcal.report.words import Named, Sentence, Wording, count, cut, wording

#: So many variables that were made worse are named in a headline.
MOST_NAMED = 3


def summarise_comparison(
    comparison: Comparison,
    title: str = "Before and after",
    *,
    created: str | None = None,
    versions: tuple[tuple[str, str], ...] | None = None,
) -> ComparisonSummary:
    """Say in a summary what a comparison found.

    Parameters
    ----------
    comparison : Comparison
        The findings.
    title : str
        The heading.
    created, versions : optional
        When, and with which packages; now and those installed by default.
    """
    words = wording(comparison.event)
    figures = tuple(
        FigureSummary(
            metric,
            variable,
            UNITS.get(metric, ""),
            tuple(comparison.row(method, metric, variable) for method in comparison.methods),
        )
        for metric, variable in comparison.figures
    )
    return ComparisonSummary(
        title=title,
        created=created or now(),
        event=comparison.event,
        hits=comparison.hits,
        headlines=_headlines(comparison),
        checked=_checked(comparison),
        methods=comparison.methods,
        n_rows=comparison.n_rows,
        n_dropped=comparison.n_dropped,
        level=comparison.level,
        figures=figures,
        variables=tuple(
            _variable(comparison, one, words)
            for one in sorted((one for one in figures if one.variable), key=_urgency)
        ),
        notes=_notes(comparison),
        method=comparison_method(comparison, words),
        versions=installed() if versions is None else versions,
        citation=citation(),
    )


def _urgency(one: FigureSummary) -> tuple[bool, float]:
    worse = any(row.verdict == "made worse" for row in one.rows)
    return not worse, -round(one.rows[0].value, 3)


def _headlines(comparison: Comparison) -> tuple[Sentence, ...]:
    base, *others = comparison.methods
    if not others:
        return (Sentence.of("Nothing to compare: only ", Named(cut(base)), " was given."),)
    return tuple(_headline(comparison, method) for method in others)


def _headline(comparison: Comparison, method: str) -> Sentence:
    rows = [row for row in comparison.rows if row.method == method]
    along = [row for row in rows if row.metric == "VECE"]
    found = _along(along) if along else Sentence.of(_ECE[comparison.row(method, "ECE").verdict])
    overall = [
        f"; {row.metric} made worse ({change(row.metric, row.difference)}"
        f"{' points' * (row.metric in UNITS)})"
        for row in rows
        if row.verdict == "made worse" and row.metric not in ("VECE", "accuracy")
    ]
    accuracy = _accuracy(comparison.row(method, "accuracy"))
    return Sentence.of(Named(cut(method)), " ", found, f"; {accuracy}", *overall, ".")


_ECE = {
    "fixed": "fixes ECE",
    "better": "improves ECE",
    "unchanged": "does not demonstrably change ECE",
    "made worse": "makes ECE worse",
}


def _along(rows: list[ComparisonRow]) -> Sentence:
    """Say along how many variables VECE was fixed, improved and made worse."""
    by = {
        verdict: [row for row in rows if row.verdict == verdict]
        for verdict in ("fixed", "better", "made worse")
    }
    many, fixed, better = count(len(rows), "variable"), len(by["fixed"]), len(by["better"])
    if fixed:
        head = f"fixes VECE along {fixed} of {many}"
        head += f", improves it along {better} more" if better else ""
    elif better:
        head = f"improves VECE along {better} of {many}, fixes it along none"
    else:
        head = f"demonstrably improves VECE along none of {many}"
    worse = by["made worse"]
    if not worse:
        return Sentence.of(f"{head}, makes none worse")
    named: list[str] = []
    for row in worse[:MOST_NAMED]:
        named += [", ", Named(cut(row.variable))]
    more = f" and {len(worse) - MOST_NAMED} more" if len(worse) > MOST_NAMED else ""
    return Sentence.of(f"{head}, makes {len(worse)} worse (", *named[1:], f"{more})")


def _accuracy(row: ComparisonRow) -> str:
    ends = sizes(row.metric, row.difference_low, row.difference_high)
    if row.verdict == "unchanged":
        return f"accuracy unchanged ({ends} points)"
    return f"accuracy {row.verdict} ({change(row.metric, row.difference)} points, {ends})"


def _checked(comparison: Comparison) -> Sentence:
    others = len(comparison.methods) - 1
    variables = sum(1 for metric, _ in comparison.figures if metric == "VECE")
    claim = (
        "the predicted probability of the positive class"
        if comparison.event == "positive"
        else "confidence in the predicted class"
    )
    return Sentence.of(
        f"Checked: {claim}, of {count(others, 'set')} of probabilities against ",
        Named(cut(comparison.methods[0])),
        f" over the same {count(comparison.n_rows, 'held-out row')} and along "
        f"{count(variables, 'variable')}.",
    )


def _variable(comparison: Comparison, one: FigureSummary, words: Wording) -> VariableChange:
    base, *others = one.rows
    level = f"{comparison.level:.0%}"
    parts: list[str] = [
        "VECE of ",
        Named(cut(base.method)),
        f": {size(base.metric, base.value)} points ({level} interval "
        f"{sizes(base.metric, base.low, base.high)})",
    ]
    for row in others:
        parts += ["; ", Named(cut(row.method)), f": {size(row.metric, row.value)}, {row.verdict}"]
        parts.append(f" ({change(row.metric, row.difference)})")
    panels = []
    for method, curve in comparison.curves.get(one.variable, {}).items():
        histogram, within = shown_range(curve)
        line, _ = curve_line(curve, within, words)
        panels.append(Panel(method, line, curve.regions, histogram, worst_words(curve, words)))
    return VariableChange(one.variable, Sentence.of(*parts, "."), one, tuple(panels))


def _notes(comparison: Comparison) -> tuple[Sentence, ...]:
    base = Named(cut(comparison.methods[0]))
    notes = [
        Sentence.of(
            "The rows must be held out: figures on rows that a calibrator was fitted on flatter it."
        )
    ]
    if comparison.event == "correct" and comparison.hits == "first":
        notes.append(
            Sentence.of(
                "In ECE and VECE the predictions of ",
                base,
                " say what is correct, for every set (the rule of the paper): that a calibrator "
                "changes predictions does not show there. Accuracy is each set's own.",
            )
        )
    elif comparison.event == "correct":
        notes.append(
            Sentence.of(
                "Each set's own predictions say what is correct: a calibrator that changes them "
                "is judged by the new ones."
            )
        )
    if comparison.n_dropped:
        notes.append(
            Sentence.of(f"{count(comparison.n_dropped, 'row')} without outcome were left out.")
        )
    for metric, variable in comparison.figures:
        if metric == "VECE" and variable not in comparison.curves:
            notes.append(Sentence.of(Named(cut(variable)), " has no value at any row: no curve."))
    return tuple(notes)
