"""The operations of a query in order, with what each reads and how often it is used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from varcal._arrays import AnyArray
from varcal._export._sql._query.layers import free_name
from varcal._export._sql._query.query import Column
from varcal._export._sql._query.scalars import Scalar


class Graph:
    """The operations that outputs depend on.

    Parameters
    ----------
    outputs : list of Scalar
        The operations whose results are given.
    variables : dict of int to Column
        The columns of variables.

    Attributes
    ----------
    nodes : list of Scalar
        All operations, each after its arguments.
    uses : Counter of int
        How often the operation with an `id` is the argument of another.
    """

    def __init__(self, outputs: list[Scalar], variables: dict[int, Column]) -> None:
        self.nodes = _ordered(outputs)
        self.uses = Counter(id(arg) for node in self.nodes for arg in node.args)
        self._inputs: dict[int, frozenset[str]] = {}
        for node in self.nodes:
            self._inputs[id(node)] = self._inputs_of(node, variables)

    def _inputs_of(self, node: Scalar, variables: dict[int, Column]) -> frozenset[str]:
        if node.op == "score":
            return frozenset(["p"])
        if node.op in ("number", "code"):
            return frozenset([variables[node.data].inside])
        return frozenset().union(*(self._inputs[id(arg)] for arg in node.args))

    def subject(self, node: Scalar) -> str:
        """Return what a table is about: a variable, the score, or another number."""
        inputs = self._inputs[id(node)]
        if len(inputs) != 1:
            return "last_curve"
        name = "score" if inputs == {"p"} else next(iter(inputs)).removeprefix("v_")
        # The table of a variable "age_intervals" must not be that of the intervals of "age".
        return f"{name}_variable" if name.endswith(("_intervals", "_levels")) else name

    def name_of(self, node: Scalar, name: str) -> str:
        """Return what the column of an operation is called; `name` if it has no name itself."""
        name = node.names[0] if node.names else name
        inputs = self._inputs[id(node)]
        if len(inputs) == 1 and inputs != {"p"} and not name.startswith("v_"):
            return f"{next(iter(inputs)).removeprefix('v_')}_{name}"
        return name


def _ordered(outputs: Iterable[Scalar]) -> list[Scalar]:
    """Return all operations, each once and after its arguments."""
    found, seen = [], set()
    pending = [(node, False) for node in reversed(list(outputs))]
    while pending:
        node, ready = pending.pop()
        if ready:
            found.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            pending.append((node, True))
            pending += [(arg, False) for arg in reversed(node.args) if id(arg) not in seen]
    return found


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
