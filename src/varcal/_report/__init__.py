"""Reports of audits, comparisons and monitors as HTML pages, Markdown or JSON."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TypeVar

from varcal._audit.audit_result import Audit
from varcal._audit.comparison import Comparison
from varcal._files.atomic import write_whole
from varcal._monitor.monitor import Monitor
from varcal._options import checked, of_type
from varcal._report.audit.markdown import markdown
from varcal._report.audit.notebook import InlineReport
from varcal._report.audit.page import html
from varcal._report.audit.summarise import summarise
from varcal._report.audit.summary import Summary
from varcal._report.comparison.markdown import comparison_markdown
from varcal._report.comparison.page import comparison_html
from varcal._report.comparison.summarise import summarise_comparison
from varcal._report.comparison.summary import ComparisonSummary
from varcal._report.json_form import json_text
from varcal._report.monitor import (
    MonitorSummary,
    monitor_html,
    monitor_markdown,
    summarise_monitor,
)
from varcal.exceptions import InputError

__all__ = [
    "COMPARISON_FORMS",
    "FORMS",
    "MONITOR_FORMS",
    "ComparisonSummary",
    "InlineReport",
    "MonitorSummary",
    "Summary",
    "inline_report",
    "summarise",
    "summarise_comparison",
    "summarise_monitor",
    "write_comparison",
    "write_monitor",
    "write_report",
]

S = TypeVar("S")

_AUDIT = of_type(Audit, "an Audit, the result of audit()")
_COMPARISON = of_type(Comparison, "a Comparison, the result of compare()")
_MONITOR = of_type(Monitor, "a Monitor")

#: What writes the summary of an audit, by the extension of the file.
FORMS: dict[str, Callable[[Summary], str]] = {
    ".html": html,
    ".htm": html,
    ".md": markdown,
    ".json": json_text,
}
#: What writes the summary of a comparison, by the extension of the file.
COMPARISON_FORMS: dict[str, Callable[[ComparisonSummary], str]] = {
    ".html": comparison_html,
    ".htm": comparison_html,
    ".md": comparison_markdown,
    ".json": json_text,
}
#: What writes the summary of a monitor, by the extension of the file.
MONITOR_FORMS: dict[str, Callable[[MonitorSummary], str]] = {
    ".html": monitor_html,
    ".htm": monitor_html,
    ".md": monitor_markdown,
    ".json": json_text,
}


@checked(audit=_AUDIT)
def write_report(
    audit: Audit, path: str | PathLike[str], *, title: str = "Calibration audit"
) -> None:
    """Write the report of an audit, whole or not at all, in the format of the extension."""
    form = _form(FORMS, path)
    write_whole(path, form(summarise(audit, title)))


@checked(audit=_AUDIT)
def inline_report(audit: Audit, *, title: str = "Calibration audit") -> InlineReport:
    """Return the page of an audit as an object that a notebook shows."""
    return InlineReport(html(summarise(audit, title)), title)


@checked(comparison=_COMPARISON)
def write_comparison(
    comparison: Comparison, path: str | PathLike[str], *, title: str = "Before and after"
) -> None:
    """Write the report of a comparison, whole or not at all, in the format of the extension."""
    form = _form(COMPARISON_FORMS, path)
    write_whole(path, form(summarise_comparison(comparison, title)))


@checked(monitor=_MONITOR)
def write_monitor(
    monitor: Monitor, path: str | PathLike[str], *, title: str = "Calibration monitor"
) -> None:
    """Write the report of a monitor, whole or not at all, in the format of the extension."""
    form = _form(MONITOR_FORMS, path)
    write_whole(path, form(summarise_monitor(monitor, title)))


def _form(forms: dict[str, Callable[[S], str]], path: str | PathLike[str]) -> Callable[[S], str]:
    form = forms.get(Path(path).suffix.lower())
    if form is None:
        raise InputError(
            f"path has an unknown extension for a report: {str(path)!r}",
            f"use one of {', '.join(forms)}",
            argument="path",
        )
    return form
