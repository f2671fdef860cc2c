"""The comment on each part of a query: what its columns are."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["comment_on"]

#: What the columns of a layer are, by their names.
_MEANINGS = [
    ("calibrated", "the calibrated probability"),
    ("log_odds", "the calibrated log-odds"),
    ("leaf", "the leaf of the tree"),
    ("by_score", "the log-odds by the score alone"),
    ("by_variables", "the log-odds by score and variables, moderated by their variance"),
    ("unmoderated", "the log-odds before moderation"),
    ("variance", "the variance of the log-odds"),
    ("eta", "the log-odds by the tables"),
    ("pairs", "what pairs of variables add"),
    ("products", "products of pairs of variables"),
    ("factor", "what enters the products of pairs"),
    ("ray", "what variables add to the variance together"),
    ("effects", "the sum of the effects of score and variables"),
    ("effect", "the effects of variables"),
    ("slope", "how effects change with the score"),
    ("certainty", "the log-odds of the largest score against all others"),
    ("log_p", "logarithms of the scores"),
    ("log_ratio", "logarithms of the scores against the largest"),
    ("power", "exponentials of the logits"),
    ("logit", "logits of the scores"),
    ("ln_p", "logarithms of the score"),
    ("unit", "standardized numbers"),
    ("cell", "cells of the grids over the tables"),
    ("score", "the logit within the range of the fit"),
    ("inside", "numbers moved into the range of the fit"),
]


def comment_on(columns: Iterable[str], joins: Iterable[str]) -> str:
    """Say what a part of a query adds."""
    joins = list(joins)
    if any("_intervals" in text for text in joins):
        return "Which row of a look-up table each number belongs to."
    if joins:
        return "What the look-up tables hold there."
    names = list(columns)
    found = [words for name, words in _MEANINGS if any(_is_named(each, name) for each in names)]
    return f"{'; '.join(found) or 'parts of the next step'}.".capitalize()


def _is_named(column: str, name: str) -> bool:
    """Tell whether a column has a name, perhaps after that of a variable or before a number."""
    return bool(re.search(rf"(^|_){name}(_\d+)?$", column))
