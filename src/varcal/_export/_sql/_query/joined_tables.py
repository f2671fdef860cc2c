"""Which tables of a calibrator are joined, because a CASE of their numbers would be long."""

from __future__ import annotations

from dataclasses import dataclass

from varcal._arrays import AnyArray
from varcal._export._sql._query.graph import Graph
from varcal._export._sql._query.layers import free_name
from varcal._export._sql._query.scalars import Scalar

__all__ = ["JoinedTable", "joined_tables"]

#: Numbers in a table up to which it is written as a CASE instead of being joined.
_CASE_CELLS = 96


@dataclass
class JoinedTable:
    """A table that is joined.

    Attributes
    ----------
    name : str
        Its alias, and the end of its name.
    columns : dict of str to ndarray
        Its columns.
    labels : dict of int to str
        The column of each operation that reads it.
    depth : int
        How many tables are joined before its place is known.
    """

    name: str
    columns: dict[str, AnyArray]
    labels: dict[int, str]
    depth: int


def joined_tables(graph: Graph) -> dict[int, JoinedTable]:
    """Return the tables that are joined, by the `id` of the position that is looked up."""
    elements: dict[int, list[Scalar]] = {}
    for node in graph.nodes:
        if node.op == "element":
            elements.setdefault(id(node.args[0]), []).append(node)
    joined: dict[int, JoinedTable] = {}
    for node in graph.nodes:
        used = elements.get(id(node), [])
        size = len(used) * len(used[0].data) if used else 0
        if size > _CASE_CELLS:
            name = free_name(graph.subject(node), {each.name for each in joined.values()})
            columns: dict[str, AnyArray] = {}
            labels: dict[int, str] = {}
            for element in used:
                label = free_name(element.names[0], columns)
                columns[label] = element.data
                labels[id(element)] = label
            joined[id(node)] = JoinedTable(name, columns, labels, 0)
    _count_depths(graph, joined)
    return joined


def _count_depths(graph: Graph, joined: dict[int, JoinedTable]) -> None:
    """Count the tables that are joined one after another before each place is known."""
    depths: dict[int, int] = {}
    for node in graph.nodes:
        depth = max((depths[id(arg)] for arg in node.args), default=0)
        if node.op == "element" and id(node.args[0]) in joined:
            joined[id(node.args[0])].depth = depth
            depth += 1
        depths[id(node)] = depth
