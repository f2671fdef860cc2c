"""From a comparison to the summary of its report."""

from __future__ import annotations

from varcal._audit.comparison import Comparison, ComparisonRow
from varcal._audit.metric_text import UNITS, metric_change, metric_interval, metric_text
from varcal._audit.verdicts import BETTER, FIXED, MADE_WORSE, UNCHANGED
from varcal._report.audit.method import citation, comparison_method
from varcal._report.audit.summarise import installed, now, shown_range, worst_words
from varcal._report.comparison.summary import (
    ComparisonSummary,
    FigureSummary,
    Panel,
    VariableChange,
)
from varcal._report.lines import curve_line
from varcal._text.numbers import count, level_text
from varcal._text.sentences import Named, Sentence, cut

#: The largest number of variables made worse that a headline names.
MOST_NAMED = 3


def summarise_comparison(
    comparison: Comparison,
    title: str = "Before and after",
) -> ComparisonSummary:
    """Return the summary of a comparison, which its report is made from.

    Parameters
    ----------
    comparison : Comparison
        The results.
    title : str
        The heading.
    """
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
        created=now(),
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
            _variable(comparison, one, one.rows[0].claim)
            for one in sorted((one for one in figures if one.variable), key=_urgency)
        ),
        notes=_notes(comparison),
        method=comparison_method(comparison),
        versions=installed(),
        citation=citation(),
    )


def _urgency(one: FigureSummary) -> tuple[bool, float]:
    worse = any(row.verdict == MADE_WORSE for row in one.rows)
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
        f"; {row.metric} {MADE_WORSE} ({metric_change(row.metric, row.difference)}"
        f"{' points' * (row.metric in UNITS)})"
        for row in rows
        if row.verdict == MADE_WORSE and row.metric not in ("VECE", "accuracy")
    ]
    accuracy = _accuracy(comparison.row(method, "accuracy"))
    return Sentence.of(Named(cut(method)), " ", found, f"; {accuracy}", *overall, ".")


_ECE = {
    FIXED: "fixes ECE",
    BETTER: "improves ECE",
    UNCHANGED: "shows no change of ECE",
    MADE_WORSE: "makes ECE worse",
}


def _along(rows: list[ComparisonRow]) -> Sentence:
    """Say along how many variables VECE is fixed, improved and made worse."""
    by = {
        verdict: [row for row in rows if row.verdict == verdict]
        for verdict in (FIXED, BETTER, MADE_WORSE)
    }
    many, fixed, better = count(len(rows), "variable"), len(by[FIXED]), len(by[BETTER])
    if fixed:
        head = f"fixes VECE along {fixed} of {many}"
        head += f", improves it along {better} more" if better else ""
    elif better:
        head = f"improves VECE along {better} of {many} but fixes it along none"
    else:
        head = f"shows no improvement of VECE along {many}"
    worse = by[MADE_WORSE]
    if not worse:
        return Sentence.of(f"{head} and makes it worse along none")
    named: list[str] = []
    for row in worse[:MOST_NAMED]:
        named += [", ", Named(cut(row.variable))]
    more = f" and {len(worse) - MOST_NAMED} more" if len(worse) > MOST_NAMED else ""
    return Sentence.of(f"{head} and makes it worse along {len(worse)} (", *named[1:], f"{more})")


def _accuracy(row: ComparisonRow) -> str:
    ends = metric_interval(row.metric, row.difference_low, row.difference_high)
    if row.verdict == UNCHANGED:
        return f"accuracy {UNCHANGED} ({ends} points)"
    return f"accuracy {row.verdict} ({metric_change(row.metric, row.difference)} points, {ends})"


_CLAIMS = {
    "both": "risk or confidence, whichever is more wrong in the first set",
    "correct": "confidence in the predicted class",
    "positive": "the predicted probability of the positive class",
}


def _checked(comparison: Comparison) -> Sentence:
    others = len(comparison.methods) - 1
    variables = sum(1 for metric, _ in comparison.figures if metric == "VECE")
    claim = _CLAIMS[comparison.event]
    return Sentence.of(
        f"Checked: {claim}, for {count(others, 'set')} of probabilities against ",
        Named(cut(comparison.methods[0])),
        f" on the same {count(comparison.n_rows, 'held-out row')} and along "
        f"{count(variables, 'variable')}.",
    )


def _variable(comparison: Comparison, one: FigureSummary, claim: str) -> VariableChange:
    base, *others = one.rows
    level = level_text(comparison.level)
    parts: list[str] = [
        "VECE of ",
        Named(cut(base.method)),
        f": {metric_text(base.metric, base.value)} points ({level} interval "
        f"{metric_interval(base.metric, base.low, base.high)})",
    ]
    for row in others:
        parts += [
            "; ",
            Named(cut(row.method)),
            f": {metric_text(row.metric, row.value)}, {row.verdict}",
        ]
        parts.append(f" ({metric_change(row.metric, row.difference)})")
    panels = []
    for method, curve in comparison.curves.get(one.variable, {}).items():
        histogram, within = shown_range(curve)
        line, _ = curve_line(curve, within)
        panels.append(Panel(method, line, curve.regions, histogram, worst_words(curve, claim)))
    return VariableChange(one.variable, Sentence.of(*parts, "."), one, tuple(panels))


def _notes(comparison: Comparison) -> tuple[Sentence, ...]:
    base = Named(cut(comparison.methods[0]))
    notes = [
        Sentence.of(
            "The rows must be held out: on the rows that it was fitted on, a calibrator looks "
            "better than it is."
        )
    ]
    if comparison.event != "positive" and comparison.hits == "first":
        notes.append(
            Sentence.of(
                "In ECE and VECE the predictions of ",
                base,
                " count as correct or wrong for every set (the rule of the paper), so ECE and VECE "
                "do not show that a calibrator changes predictions. Accuracy uses each set's own.",
            )
        )
    elif comparison.event != "positive":
        notes.append(
            Sentence.of(
                "Each set is judged by its own predictions: a calibrator that changes them is "
                "judged by the new ones."
            )
        )
    if comparison.n_dropped:
        notes.append(
            Sentence.of(f"{count(comparison.n_dropped, 'row')} without an outcome were left out.")
        )
    for metric, variable in comparison.figures:
        if metric == "VECE" and variable not in comparison.curves:
            notes.append(
                Sentence.of(Named(cut(variable)), " has no value at any row, so it has no curve.")
            )
    return tuple(notes)
