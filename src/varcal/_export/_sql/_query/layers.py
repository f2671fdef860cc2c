"""Layers: common table expressions that add columns to one another."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from varcal._export._sql._query.expressions import ATOM, Expression, indent
from varcal._export.dialects import Dialect


@dataclass
class Layer:
    """One common table expression.

    Attributes
    ----------
    columns : dict of str to str
        The columns that it adds, with their expressions.
    reads : set of str
        The columns of earlier layers that it reads.
    joins : list of str
        The tables that it joins.
    comment : str
        What it does; empty if that follows from the rest.
    """

    columns: dict[str, str] = field(default_factory=dict)
    reads: set[str] = field(default_factory=set)
    joins: list[str] = field(default_factory=list)
    comment: str = ""


class Layers:
    """All layers of a query; the first two read the table and check the scores."""

    def __init__(self) -> None:
        self.given, self.checked = Layer(), Layer()
        self._all = [self.given, self.checked]
        self._defined: dict[str, int] = {}

    def at(self, number: int) -> Layer:
        """Return a layer, made if there is none yet."""
        while len(self._all) <= number:
            self._all.append(Layer())
        return self._all[number]

    def carry_from_given(self, name: str) -> None:
        """Let later layers read a column of the first."""
        self._defined[name] = 0

    def define(self, number: int, name: str, text: str) -> None:
        """Add a column to a layer."""
        self._all[number].columns[name] = text
        self._defined[name] = number

    def column(self, expression: Expression, name: str) -> Expression:
        """Make an expression a column, which later layers can read."""
        if expression.portable:
            return expression
        name = free_name(name, self._defined)
        layer = self.at(expression.layer)
        self.define(expression.layer, name, expression.text)
        layer.reads.update(expression.columns)
        columns = frozenset([name])
        return Expression(f"r.{name}", ATOM, expression.layer + 1, True, columns)

    def texts(self, table: str, dialect: Dialect, needed: set[str]) -> tuple[list[str], str]:
        """Return the text of every layer, and the name of the last.

        Each gives only the columns that later layers read.

        Parameters
        ----------
        table : str
            The table that the first layer reads, quoted.
        dialect : Dialect
            The database.
        needed : set of str
            The columns that are read from the last layer.
        """
        texts: list[str] = []
        carried: list[list[str]] = []
        for layer in reversed(self._all):
            layer.columns = {k: text for k, text in layer.columns.items() if k in needed}
            carried.append([k for k in self._defined if k in needed and k not in layer.columns])
            needed = (needed - set(layer.columns)) | layer.reads
        names = ["given", "checked", *(f"step_{k + 1}" for k in range(len(self._all) - 2))]
        for k, (layer, through) in enumerate(zip(self._all, reversed(carried), strict=True)):
            source = f"FROM {table} AS t" if k == 0 else f"FROM {names[k - 1]} AS r"
            columns = [] if k == 0 else [f"r.{name}" for name in through]
            columns += [
                text if text == f"r.{name}" else f"{text} AS {name}"
                for name, text in layer.columns.items()
            ]
            comment = layer.comment or comment_on(layer.columns, layer.joins)
            body = "SELECT\0" + indent(",\0".join(columns), "  ")
            body = "\0".join([body, source, *layer.joins])
            texts.append(
                f"-- {comment}\0{names[k]} AS {dialect.materialized}(\0{indent(body, '  ')}\0)"
            )
        return texts, names[len(self._all) - 1]


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name, with a number at its end if it is taken.

    >>> free_name("age", ["age", "age_2"])
    'age_3'
    """
    known, k = set(taken), 2
    found = name
    while found in known:
        found, k = f"{name}_{k}", k + 1
    return found


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
