"""Look-up tables that are joined: first intervals or levels give a place, then what is there."""

from __future__ import annotations

import numpy as np

from varcal._arrays import AnyArray
from varcal._export._sql._query.cut_cells import CutCells
from varcal._export._sql._query.expressions import ATOM, Expression, signed
from varcal._export._sql._query.joined_tables import JoinedTable
from varcal._export._sql._query.placement import Placement
from varcal._export._sql._query.query import Request
from varcal._export._sql._query.scalars import Scalar

__all__ = ["Joins"]


class Joins:
    """Joins tables to layers.

    Parameters
    ----------
    request : Request
        What the query is written for.
    placement : Placement
        Where expressions stand.
    joined : dict of int to JoinedTable
        The tables that are joined, by the `id` of the position that is looked up.

    Attributes
    ----------
    tables : dict of str to dict
        The columns of each table that has been joined.
    """

    def __init__(
        self, request: Request, placement: Placement, joined: dict[int, JoinedTable]
    ) -> None:
        self._dialect, self._prefix = request.dialect, request.prefix
        self._placement, self._layers = placement, placement.layers
        self._joined = joined
        self._joined_at: dict[int, int] = {}
        self.tables: dict[str, dict[str, AnyArray]] = {}

    def element(self, node: Scalar) -> Expression | None:
        """Return the column of a joined table; None if the table is not joined."""
        table = self._joined.get(id(node.args[0]))
        if table is None:
            return None
        layer = self._join_all(table.depth)
        return Expression(f"t_{table.name}.{table.labels[id(node)]}", ATOM, layer, False)

    def level_place(self, column: str, texts: dict[int, str]) -> str:
        """Join the table of the levels of a column, and return the place of its level."""
        name = column.removeprefix("v_")
        alias, table = f"l_{name}", f"{self._prefix}_{name}_levels"
        self.tables[table] = {
            "level": np.array(list(texts.values()), dtype=object),
            "place": np.array(list(texts)),
        }
        layer = self._layers.at(2)
        quoted = self._dialect.identifier(table)
        layer.joins.append(f"LEFT JOIN {quoted} AS {alias} ON {alias}.level = r.{column}")
        layer.reads.add(column)
        return f"{alias}.place"

    def _join_all(self, depth: int) -> int:
        """Join the tables of one depth, and return the layer in which their columns are known."""
        if depth in self._joined_at:
            return self._joined_at[depth]
        positions = [
            node
            for node in self._placement.graph.nodes
            if id(node) in self._joined and self._joined[id(node)].depth == depth
        ]
        finds = [each for node in positions if (each := _find_in(node)) is not None]
        cells = [(each, self._cell(each, self._find_name(each, positions))) for each in finds]
        at = max((cell.layer for _, cell in cells), default=0)
        at = max([at, *(self._placement.emitted(node.args[0]).layer for node in finds)])
        for node, cell in cells:
            self._join_intervals(node, cell, at, self._find_name(node, positions))
        places = [self._placement.as_column(node, "place") for node in positions]
        known = max(place.layer for place in places)
        for node, place in zip(positions, places, strict=True):
            self._join_table(self._joined[id(node)], place, known)
        self._joined_at[depth] = known
        return known

    def _find_name(self, find: Scalar, positions: list[Scalar]) -> str:
        return next(self._joined[id(each)].name for each in positions if _find_in(each) is find)

    def _cell(self, find: Scalar, name: str) -> Expression:
        """Define the cell of a number."""
        x = self._placement.as_column(find.args[0], "inside")
        grid = CutCells.of(find.data)
        number = self._dialect.number
        inside = f"LEAST(GREATEST({x.text}, {number(grid.low)}), {number(grid.high)})"
        apart = f"({inside} {signed(number, -grid.low)})"
        if grid.bend:
            apart = f"LN(1 + {apart} * {number(grid.bend)})"
        text = f"CAST(FLOOR({apart} * {number(grid.scale)}) AS {self._dialect.whole})"
        self.tables[f"{self._prefix}_{name}_intervals"] = {
            "cell": grid.cell,
            "above": grid.above,
            "up_to": grid.up_to,
            "place": grid.place,
        }
        cell = Expression(text, ATOM, x.layer, False, x.columns)
        return self._layers.column(cell, f"{name}_cell")

    def _join_intervals(self, find: Scalar, cell: Expression, at: int, name: str) -> None:
        x = self._placement.emitted(find.args[0])
        alias = f"i_{name}"
        table = self._dialect.identifier(f"{self._prefix}_{name}_intervals")
        layer = self._layers.at(at)
        layer.joins.append(
            f"LEFT JOIN {table} AS {alias}\0  ON {alias}.cell = {cell.text} "
            f"AND {x.text} > {alias}.above AND {x.text} <= {alias}.up_to"
        )
        layer.reads.update(cell.columns | x.columns)
        self._placement.found[id(find)] = Expression(f"{alias}.place", ATOM, at, False)

    def _join_table(self, joined: JoinedTable, place: Expression, at: int) -> None:
        layer = self._layers.at(at)
        table = self._dialect.identifier(f"{self._prefix}_{joined.name}")
        layer.joins.append(
            f"LEFT JOIN {table} AS t_{joined.name} ON t_{joined.name}.place = {place.text}"
        )
        layer.reads.update(place.columns)
        size = len(next(iter(joined.columns.values())))
        self.tables[f"{self._prefix}_{joined.name}"] = {"place": np.arange(size), **joined.columns}


def _find_in(position: Scalar) -> Scalar | None:
    """Return the search that a position depends on, None for positions of levels."""
    if position.op == "find":
        return position
    if position.op == "where" and position.args[2].op == "find":
        return position.args[2]
    return None
