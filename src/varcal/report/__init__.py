"""Reports of audits and comparisons as HTML pages, Markdown or JSON."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TypeVar

from varcal._audit.audit_result import Audit
from varcal._audit.comparison import Comparison
from varcal._files.atomic import write_whole
from varcal.exceptions import InputError
from varcal.report.audit.markdown import markdown
from varcal.report.audit.notebook import InlineReport
from varcal.report.audit.page import html
from varcal.report.audit.summarise import summarise
from varcal.report.audit.summary import Summary
from varcal.report.comparison.markdown import comparison_markdown
from varcal.report.comparison.page import comparison_html
from varcal.report.comparison.summarise import summarise_comparison
from varcal.report.comparison.summary import ComparisonSummary
from varcal.report.json_form import json_text

__all__ = [
    "COMPARISON_FORMS",
    "FORMS",
    "ComparisonSummary",
    "InlineReport",
    "Summary",
    "inline_report",
    "summarise",
    "summarise_comparison",
    "write_comparison",
    "write_report",
]

S = TypeVar("S")

#: What writes the summary of an audit, by the extension of the file.
FORMS: dict[str, Callable[[Summary], str]] = {
    ".html": html,
    ".htm": html,
    ".md": markdown,
    ".json": json_text,
}
#: The same for comparisons.
COMPARISON_FORMS: dict[str, Callable[[ComparisonSummary], str]] = {
    ".html": comparison_html,
    ".htm": comparison_html,
    ".md": comparison_markdown,
    ".json": json_text,
}


def write_report(
    audit: Audit, path: str | PathLike[str], *, title: str = "Calibration audit"
) -> None:
    """Write the report of an audit, whole or not at all, in the format of the extension."""
    form = _form(FORMS, path)
    write_whole(path, form(summarise(audit, title)))


def inline_report(audit: Audit, *, title: str = "Calibration audit") -> InlineReport:
    """Return the page of an audit as an object that a notebook shows."""
    return InlineReport(html(summarise(audit, title)), title)


def write_comparison(
    comparison: Comparison, path: str | PathLike[str], *, title: str = "Before and after"
) -> None:
    """Write the report of a comparison, whole or not at all, in the format of the extension."""
    form = _form(COMPARISON_FORMS, path)
    write_whole(path, form(summarise_comparison(comparison, title)))


def _form(forms: dict[str, Callable[[S], str]], path: str | PathLike[str]) -> Callable[[S], str]:
    form = forms.get(Path(path).suffix.lower())
    if form is None:
        raise InputError(
            f"path has an unknown extension for a report: {str(path)!r}",
            f"use one of {', '.join(forms)}",
            argument="path",
        )
    return form
