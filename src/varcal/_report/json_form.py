"""The report as JSON: the summary as it is."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from varcal._report.audit.summary import Summary
from varcal._report.comparison.summary import ComparisonSummary
from varcal._report.monitor import MonitorSummary
from varcal._surfaces.surface_result import Surface
from varcal._text.sentences import Sentence

#: The version of the layout of the file.
SCHEMA_VERSION = 2


def json_text(summary: Summary | ComparisonSummary | MonitorSummary) -> str:
    """Return a summary as JSON; NaN is null."""
    content = {"schema_version": SCHEMA_VERSION, **plain(summary)}
    return json.dumps(content, allow_nan=False, indent=1) + "\n"


def plain(value: Any) -> Any:
    """Turn a summary into dicts, lists, numbers and strings.

    >>> plain(Sentence.of("a", "b")), plain((1, float("nan")))
    ('ab', [1, None])
    """
    if isinstance(value, Sentence):
        return str(value)
    if isinstance(value, Surface):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        value = tuple(value.tolist())
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and value != value else value
