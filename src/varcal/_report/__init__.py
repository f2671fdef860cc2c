"""Reports of audits, comparisons and monitors as HTML pages, Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from varcal._audit.comparison import Comparison
from varcal._audit.result import Audit
from varcal._files.atomic import write_whole
from varcal._monitor.monitor import Monitor
from varcal._report.audit_page import InlineReport, audit_html, audit_markdown
from varcal._report.comparison import comparison_html, comparison_markdown
from varcal._report.monitor import monitor_html, monitor_markdown, summarise_monitor
from varcal._text import Sentence
from varcal.exceptions import InputError

Path_ = str | PathLike[str]


def report_audit(audit: Audit, path: Path_ | None, *, title: str = "") -> InlineReport | None:
    """Write the report of an audit, or return its page as an object that a notebook shows."""
    if path is None:
        return InlineReport(audit_html(audit, title), title or "Calibration audit")

    forms = {
        ".html": lambda: audit_html(audit, title),
        ".md": lambda: audit_markdown(audit, title),
        ".json": lambda: json_text(audit.to_dict(ladder=True)),
    }
    _write(path, forms)
    return None


def report_comparison(found: Comparison, path: Path_, *, title: str) -> None:
    """Write the report of a comparison."""
    forms = {
        ".html": lambda: comparison_html(found, title),
        ".md": lambda: comparison_markdown(found, title),
        ".json": lambda: json_text({"title": title, **found.to_dict()}),
    }
    _write(path, forms)


def write_monitor(monitor: Monitor, path: Path_, *, title: str = "Calibration monitor") -> None:
    """Write the report of a monitor."""
    forms = {
        ".html": lambda: monitor_html(summarise_monitor(monitor, title)),
        ".md": lambda: monitor_markdown(summarise_monitor(monitor, title)),
        ".json": lambda: json_text(plain(summarise_monitor(monitor, title))),
    }
    _write(path, forms)


def json_text(content: Mapping[str, Any]) -> str:
    """Write a result as JSON; NaN is null, and a lone surrogate is escaped as JSON does."""
    text = json.dumps(plain(content), allow_nan=False, indent=1, ensure_ascii=False) + "\n"
    return text.encode(errors="backslashreplace").decode()


def plain(value: Any) -> Any:
    """Turn records into dicts, lists, numbers and strings.

    >>> plain(Sentence.of("a", "b")), plain((1, float("nan")))
    ('ab', [1, None])
    """
    if isinstance(value, Sentence):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and value - value != 0 else value


def _write(path: Path_, forms: Mapping[str, Callable[[], str]]) -> None:
    """Write a report whole or not at all, in the format of the file's extension."""
    suffix = Path(path).suffix.lower()
    suffix = ".html" if suffix == ".htm" else suffix
    if suffix not in forms:
        raise InputError(
            f"path has an unknown extension for a report: {str(path)!r}",
            f"use one of {', '.join(forms)}",
            argument="path",
        )
    write_whole(path, forms[suffix]())
