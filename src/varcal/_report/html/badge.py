"""The badge of a verdict: its mark and its words."""

from __future__ import annotations

from varcal._audit.verdicts import FAINT, MADE_WORSE, MARKS, OFF, SIZE_UNCLEAR, SMALL, STRONG
from varcal._report.html.markup import Markup, el

#: The colour of a verdict.
LOOKS = {OFF: "bad", MADE_WORSE: "bad", SIZE_UNCLEAR: "watch", SMALL: "watch"}


def verdict_badge(verdict: str) -> Markup:
    """Show a verdict with its mark."""
    look = " strong" if verdict in STRONG else " faint" if verdict in FAINT else ""
    colour = f" {LOOKS[verdict]}" if verdict in LOOKS else ""
    mark = el("span", MARKS[verdict], aria_hidden="true")
    return el("span", mark, f" {verdict.capitalize()}", class_=f"verdict{look}{colour}")
