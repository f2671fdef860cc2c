"""Look-up tables that are joined: first intervals or levels give a place, then what is there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal._export._sql._query.expressions import ATOM, Expression, signed
from varcal._export._sql._query.graph import JoinedTable
from varcal._export._sql._query.placement import Placement
from varcal._export._sql._query.query import Request
from varcal._export._sql._query.scalars import Scalar

#: Cells for each interval, and intervals in the fullest cell from which another scale is tried.
_CELLS_PER_INTERVAL = (1, 4)
_CROWDED = 24
_FAR = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class CutCells:
    """A grid: cell = ⌊scale · (x − low)⌋, or ⌊scale · ln(1 + bend · (x − low))⌋ with a bend.

    Attributes
    ----------
    low, high : float
        The ends of the grid, to which numbers are moved.
    scale, bend : float
        As in the formula; a bend of 0 means an even grid.
    cell, place : ndarray of int
        For each entry of the table: the cell, and the interval, which is the number of cuts below.
    above, up_to : ndarray of float
        The ends of the interval.
    """

    low: float
    high: float
    scale: float
    bend: float
    cell: Ints
    place: Ints
    above: Floats
    up_to: Floats

    @classmethod
    def of(cls, cuts: Floats) -> CutCells:
        """Make the grid of increasing cuts; an interval between equal cuts is left out."""
        low, high = float(cuts[0]), float(cuts[-1])
        grids = [cls._grid(cuts, low, high, per * len(cuts), 0.0) for per in _CELLS_PER_INTERVAL]
        if min(map(_fullest, grids)) > _CROWDED and high > low:
            # Where most cuts are close together and some are far away.
            gaps = np.quantile(np.diff(np.unique(cuts)), [0.1, 0.5])
            grids += [cls._grid(cuts, low, high, 4 * len(cuts), 1.0 / gap) for gap in gaps]
        small = [grid for grid in grids if _fullest(grid) <= _CROWDED // 2]
        return small[0] if small else min(grids, key=_fullest)

    @classmethod
    def _grid(cls, cuts: Floats, low: float, high: float, cells: int, bend: float) -> CutCells:
        def raw(x: Floats) -> Floats:
            apart = np.minimum(np.maximum(x, low), high) - low
            return np.log(1.0 + bend * apart) if bend else apart

        with np.errstate(over="ignore", divide="ignore"):
            reach = float(raw(np.array([high]))[0])
            scale = float(cells / reach) if 0 < reach < np.inf else 0.0
        if not 0 < scale < np.inf:
            scale = 0.0
        ends = np.floor(raw(cuts) * scale).astype(np.intp)
        first = np.maximum(np.append(0, ends - 1), 0)
        last = np.append(ends + 1, cells + 1)
        above, up_to = np.append(-_FAR, cuts), np.append(cuts, _FAR)
        counts = np.where(above < up_to, last - first + 1, 0)
        place = np.repeat(np.arange(len(counts)), counts)
        before = np.cumsum(counts) - counts
        cell = np.arange(counts.sum()) - before[place] + first[place]
        return cls(low, high, scale, bend, cell, place, above[place], up_to[place])


def _fullest(grid: CutCells) -> int:
    return int(np.bincount(grid.cell).max())


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
