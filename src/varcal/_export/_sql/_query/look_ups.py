"""What is looked up by a level or a position: joined, or written as a CASE."""

from __future__ import annotations

from varcal._export._sql._query.expressions import (
    ATOM,
    CONDITION,
    Expression,
    by_number,
    case,
    cut_case,
    wrapped,
)
from varcal._export._sql._query.joins import Joins
from varcal._export._sql._query.placement import Placement
from varcal._export._sql._query.query import Request
from varcal._export._sql._query.scalars import Scalar
from varcal._export.program import level_texts

#: Levels of a category up to which its positions are written as a CASE instead of being joined.
_CASE_LEVELS = 200


class LookUps:
    """Writes operations on levels and positions.

    Parameters
    ----------
    request : Request
        What the query is written for.
    placement : Placement
        Where expressions stand.
    joins : Joins
        The tables that are joined.
    """

    def __init__(self, request: Request, placement: Placement, joins: Joins) -> None:
        self._request, self._dialect = request, request.dialect
        self._placement, self._joins = placement, joins

    def code(self, node: Scalar) -> Expression:
        """Write the position of a level."""
        k = node.data
        column = self._request.variables[k].inside
        n, texts = len(self._request.program.schema.levels[k]), self._writable(k)
        x, columns = f"r.{column}", frozenset([column])
        if len(texts) <= _CASE_LEVELS or not self._request.with_tables:
            branches = [(f"{x} IS NULL", str(n + 1))]
            branches += [(f"{x} = {self._dialect.text(text)}", str(j)) for j, text in texts.items()]
            return Expression(case(branches, str(n)), ATOM, 2, False, columns)
        place = self._joins.level_place(column, texts)
        unseen = case([(f"{x} IS NULL", str(n + 1))], str(n))
        return Expression(f"COALESCE({place}, {unseen})", ATOM, 2, False, columns)

    def among(self, node: Scalar) -> Expression:
        """Write whether a level, or a position, is one of several."""
        position = node.args[0]
        if position.op == "code":
            texts = self._writable(position.data)
            column = self._request.variables[position.data].inside
            held = [self._dialect.text(texts[j]) for j in node.data if j in texts]
            # A missing level is not among any: the condition is NULL, and CASE goes on.
            text = f"r.{column} IN ({wrapped(held)})" if held else "FALSE"
            return Expression(text, CONDITION, 2, False, frozenset([column]))
        places = ", ".join(map(str, node.data))
        return self._placement.combined(
            node.args, lambda x: f"{x.bound(ATOM)} IN ({places})", CONDITION
        )

    def element(self, node: Scalar) -> Expression:
        """Write a column of a table at a position."""
        found = self._joins.element(node)
        if found is not None:
            return found
        values = [self._dialect.number(value) for value in node.data.tolist()]
        return self._selected(node.args[0], values)

    def _selected(self, position: Scalar, values: list[str]) -> Expression:
        """Write the value at a position as a CASE."""
        if position.op == "constant":
            return Expression(values[position.data])
        if position.op == "code":
            return self._by_level(position.data, values)
        if position.op == "find":
            cuts = [self._dialect.cut(cut) for cut in position.data.tolist()]
            self._placement.as_column(position.args[0], "inside")
            # The table of a number that may be missing has one more row.
            inner = values[: len(cuts) + 1]
            return self._placement.combined(position.args, lambda x: cut_case(x.text, cuts, inner))
        if position.op == "where" and position.args[0].op == "missing":
            condition, yes, no = position.args
            found = self._selected(no, values)
            gone = self._placement.emitted(condition)
            text = case([(gone.text, values[yes.data])], found.text)
            layer = max(gone.layer, found.layer)
            return Expression(text, ATOM, layer, False, gone.columns | found.columns)
        self._placement.as_column(position, "position")
        return self._placement.combined([position], lambda x: by_number(x.text, values))

    def _by_level(self, k: int, values: list[str]) -> Expression:
        """Write the value of a level; levels with the same value are listed together."""
        column = self._request.variables[k].inside
        n, x = len(self._request.program.schema.levels[k]), f"r.{column}"
        groups: dict[str, list[str]] = {}
        for j, text in self._writable(k).items():
            if values[j] != values[n]:
                groups.setdefault(values[j], []).append(self._dialect.text(text))
        branches = [(f"{x} IS NULL", values[n + 1])]
        for value, texts in groups.items():
            same = f"{x} = {texts[0]}" if len(texts) == 1 else f"{x} IN ({wrapped(texts)})"
            branches.append((same, value))
        return Expression(case(branches, values[n]), ATOM, 2, False, frozenset([column]))

    def _writable(self, k: int) -> dict[int, str]:
        """Return the levels that a database can hold: PostgreSQL has no text with a NUL in it."""
        return {
            j: text
            for j, text in enumerate(level_texts(self._request.program, k))
            if not (self._dialect.name == "postgres" and "\0" in text)
        }
