"""Reports: one summary of an audit, shown as a page, as Markdown or as JSON."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from varcal._audit_result import Audit
from varcal._files import write_whole
from varcal.exceptions import InputError
from varcal.report._json_form import json_text
from varcal.report._markdown import markdown
from varcal.report._page import html
from varcal.report._summarise import summarise
from varcal.report._summary import Summary

__all__ = ["FORMS", "Summary", "summarise", "write_report"]

#: How a summary is written, by the suffix of the file.
FORMS: dict[str, Callable[[Summary], str]] = {
    ".html": html,
    ".htm": html,
    ".md": markdown,
    ".json": json_text,
}


def write_report(
    audit: Audit, path: str | PathLike[str], *, title: str = "Calibration audit"
) -> None:
    """Write the report of an audit, whole or not at all; the suffix says in which form."""
    form = FORMS.get(Path(path).suffix.lower())
    if form is None:
        raise InputError(
            f"path has no suffix that a report can have: {str(path)!r}",
            f"end it in one of {', '.join(FORMS)}",
        )
    write_whole(path, form(summarise(audit, title)))
