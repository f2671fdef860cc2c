"""Where the expression of each operation stands: in which layer, and whether as a column.

An expression belongs to the first layer in which all columns that it reads are known; it becomes a
column if it is used twice, in a later layer, or has a name that helps to read the query.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from varcal._export._sql._query.expressions import ATOM, CONDITION, Expression
from varcal._export._sql._query.graph import Graph
from varcal._export._sql._query.layers import Layers
from varcal._export._sql._query.scalars import Scalar

#: Characters of an expression from which its name makes it a column.
_NAMED_FROM = 40

_DEFAULT_NAMES = {"list": "products", "log": "ln", "where": "choice", "sum": "total"}


class Placement:
    """The expressions of operations, each written once and put in its layer.

    Parameters
    ----------
    graph : Graph
        The operations.
    layers : Layers
        The layers of the query.
    joined : container of int
        The `id` of positions whose tables are joined.
    write : callable
        Returns the expression of an operation whose arguments are written.

    Attributes
    ----------
    graph, layers
        As given.
    found : dict of int to Expression
        The expression of each operation that is written, by its `id`.
    """

    def __init__(
        self,
        graph: Graph,
        layers: Layers,
        joined: Container[int],
        write: Callable[[Scalar], Expression],
    ) -> None:
        self.graph, self.layers = graph, layers
        self.found: dict[int, Expression] = {}
        self._joined, self._write = joined, write

    def as_column(self, node: Scalar, name: str) -> Expression:
        """Return the expression of an operation, made a column unless it can be read anywhere."""
        found = self.layers.column(self.emitted(node), self.graph.name_of(node, name))
        self.found[id(node)] = found
        return found

    def emitted(self, node: Scalar) -> Expression:
        """Return the expression of an operation."""
        if id(node) not in self.found:
            self.emit_all([node])
        return self.found[id(node)]

    def emit_all(self, nodes: Iterable[Scalar]) -> None:
        """Write operations after those that they depend on."""
        pending = list(reversed(list(nodes)))
        while pending:
            node = pending[-1]
            if id(node) in self.found:
                pending.pop()
                continue
            if node.op == "element" and id(node.args[0]) in self._joined:
                needed: list[Scalar] = []
            else:
                needed = [arg for arg in node.args if id(arg) not in self.found]
            if needed:
                pending += reversed(needed)
                continue
            pending.pop()
            self._emit(node)

    def _emit(self, node: Scalar) -> None:
        found = self._write(node)
        self.found[id(node)] = found
        if found.portable:
            return
        if found.rank == CONDITION:
            return
        shared = self.graph.uses[id(node)] > 1
        readable = bool(node.names) and len(found.text) > _NAMED_FROM and node.op != "element"
        if shared or readable:
            self.as_column(node, _DEFAULT_NAMES.get(node.op, "value"))

    def combined(
        self, nodes: Iterable[Scalar], text: Callable[..., str], rank: int = ATOM
    ) -> Expression:
        """Write an operation on others; `text` takes their expressions."""
        args = self._aligned(nodes)
        layer = max((arg.layer for arg in args), default=0)
        columns = frozenset().union(*(arg.columns for arg in args))
        # What depends on constants alone has been computed; only CASE has constant results.
        return Expression(text(*args), rank, max(layer, 2), False, columns)

    def _aligned(self, nodes: Iterable[Scalar]) -> list[Expression]:
        """Return expressions that can stand in one layer."""
        nodes = list(nodes)
        layer = max((self.emitted(node).layer for node in nodes), default=0)
        return [
            found
            if (found := self.emitted(node)).portable or found.layer == layer
            else self.as_column(node, "value")
            for node in nodes
        ]
