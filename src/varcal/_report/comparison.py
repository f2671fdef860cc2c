"""A comparison as an HTML page and as Markdown."""

from __future__ import annotations

from os import PathLike
from typing import Any

from varcal._audit.compare import (
    ACCURACY,
    BY_SCORE,
    LEAST_CHANGE,
    POINTS,
    UNEVEN,
    Comparison,
    ComparisonRow,
)
from varcal._report.page import about, json_text, now, points_axis, prose, render, write_report
from varcal._text import (
    BETTER,
    FIXED,
    LOOKS,
    MADE_WORSE,
    MARKS,
    UNCHANGED,
    Named,
    Sentence,
    count,
    cut,
    decimals,
    filled,
    level_text,
    listed,
    points,
)

#: Figures whose change a headline mentions only if it is for the worse.
_SAY_IF_WORSE = ("log-loss", "Brier", "AUC", BY_SCORE, "average")
#: What follows the change of a figure.
_POINTS = dict.fromkeys(POINTS, " points")
_WORDS = {
    FIXED: "fixes the error by score",
    BETTER: "improves the error by score",
    UNCHANGED: "shows no change of the error by score",
    MADE_WORSE: "makes the error by score worse",
}


def report_comparison(found: Comparison, path: str | PathLike[str], *, title: str) -> None:
    """Write the report of a comparison."""
    forms = {
        ".html": lambda: comparison_html(found, title),
        ".md": lambda: comparison_markdown(found, title),
        ".json": lambda: json_text({"title": title, **found.to_dict()}),
    }
    write_report(path, forms)


def comparison_html(found: Comparison, title: str) -> str:
    """Return the page as text."""
    return render("comparison.html.j2", **_context(found, title))


def comparison_markdown(found: Comparison, title: str) -> str:
    """Return the headlines, the table of figures and the notes."""
    return render("comparison.md.j2", **_context(found, title))


def _context(found: Comparison, title: str) -> dict[str, Any]:
    figures = [(_name(*figure), rows) for figure, rows in found.by_figure.items()]
    along = [(rows[0].variable, rows) for _, rows in figures if rows[0].variable]
    along.sort(key=lambda one: (all(row.verdict != MADE_WORSE for row in one[1]), -one[1][0].value))
    ends = [end for _, rows in along for row in rows for end in (row.high, row.noise_floor)]
    level = level_text(found.level)
    sizes = ", ".join(f"{metric} {_least(metric)}" for metric in LEAST_CHANGE)
    method = prose("method_comparison.txt.j2", found=found, level=level, sizes=sizes)
    return {
        "title": title,
        "subtitle": f"{count(found.n_rows, 'row')} · {now()}",
        "found": found,
        "headlines": _headlines(found),
        "checked": _checked(found),
        "figures": figures,
        "variables": along,
        "axis": points_axis(max([0.02, *(end for end in ends if end == end)])),
        "level": level,
        "look": LOOKS,
        "mark_of": MARKS,
        "about": about(_notes(found), method),
    }


def _name(metric: str, variable: str) -> Sentence:
    if variable:
        return Sentence.of("uneven along ", Named(cut(variable)))
    return Sentence.of(metric)


def _headlines(found: Comparison) -> list[Sentence]:
    base, *others = found.methods
    if not others:
        return [Sentence.of("Nothing to compare: only ", Named(cut(base)), " was given.")]
    return [_headline(found, method) for method in others]


def _headline(found: Comparison, method: str) -> Sentence:
    rows = [row for row in found.rows if row.method == method]
    along = [row for row in rows if row.metric == UNEVEN]
    by_score, accuracy = (
        next(row for row in rows if row.metric == metric) for metric in (BY_SCORE, ACCURACY)
    )
    said = _along(along) if along else Sentence.of(_WORDS[by_score.verdict])
    worse = [
        f"; {row.metric} {MADE_WORSE} ({found.change_text(row)}{_POINTS.get(row.metric, '')})"
        for row in rows
        if row.verdict == MADE_WORSE and row.metric in _SAY_IF_WORSE
    ]
    return Sentence.of(
        Named(cut(method)), " ", said, f"; {_accuracy(found, accuracy)}", *worse, "."
    )


def _along(rows: list[ComparisonRow]) -> Sentence:
    """Say along how many variables the uneven error is fixed, improved and made worse."""
    fixed, better = (sum(row.verdict == word for row in rows) for word in (FIXED, BETTER))
    many, worse = count(len(rows), "variable"), [row for row in rows if row.verdict == MADE_WORSE]
    if fixed:
        head = f"fixes the uneven error along {fixed} of {many}"
        head += f", improves it along {better} more" if better else ""
    elif better:
        head = f"improves the uneven error along {better} of {many} but fixes it along none"
    else:
        head = f"shows no improvement of the uneven error along {many}"
    if not worse:
        return Sentence.of(f"{head} and makes it worse along none")
    names = listed([row.variable for row in worse], most=3)
    return Sentence.of(f"{head} and makes it worse along {len(worse)} (", names, ")")


def _accuracy(found: Comparison, row: ComparisonRow) -> str:
    ends = found.unit(row.metric).ends(row.difference_low, row.difference_high)
    if row.verdict == UNCHANGED:
        return f"accuracy: {UNCHANGED} ({ends} points)"
    return f"accuracy {row.verdict} ({found.change_text(row)} points, {ends})"


def _checked(found: Comparison) -> Sentence:
    others = len(found.methods) - 1
    variables = sum(1 for metric, _ in found.figures if metric == UNEVEN)
    return filled(
        f"Checked: {{}}, {count(others, 'set')} of probabilities against {{}} on the same "
        f"{count(found.n_rows, 'row')} and along {count(variables, 'variable')}.",
        Named(cut(found.target)),
        Named(cut(found.methods[0])),
    )


def _notes(found: Comparison) -> list[Sentence]:
    held = "on the rows that it was fitted on, a calibrator looks better than it is."
    notes = [Sentence.of(f"The rows must be held out: {held}")]
    if found.n_dropped:
        notes.append(Sentence.of(f"{count(found.n_dropped, 'row')} without an outcome left out."))
    return notes


def _least(metric: str) -> str:
    size = LEAST_CHANGE[metric]
    return f"{points(size)} points" if metric in (*POINTS, ACCURACY) else decimals(size, 4)
