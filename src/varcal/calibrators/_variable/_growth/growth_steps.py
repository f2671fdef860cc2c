"""The second stage as steps of the neutral form."""

from __future__ import annotations

import numpy as np

from varcal._arrays import Floats, Ints
from varcal.calibrators._neutral.steps import (
    Forest,
    Step,
    choose,
    clipped,
    code,
    find,
    missing,
    number,
    take,
    trees,
    where,
)
from varcal.calibrators._variable._growth.cells import LevelCells, NumberCells
from varcal.calibrators._variable._growth.growth import Growth

__all__ = ["blended_steps"]


def blended_steps(growth: Growth, z: Step, base: Step, first: Step) -> Step:
    """Return the step to the predictor before the last curve; see `Growth.blended`."""
    eta = first
    for table in growth.tables:
        positions = [_position(growth, k, z, coarse=True) for k in table.pair]
        held = [
            growth.cells[k].coarse()[cells]
            for k, (_, cells) in zip(table.pair, positions, strict=True)
        ]
        added = table.added[np.ix_(*held)]
        row = take(positions[0][0], added).named("table_row")
        options = [row.item(k) for k in range(added.shape[1])]
        eta = (eta + choose(positions[1][0], options).named("table")).named("tabled")
    if growth.trees is None:
        return eta
    numbers = []
    for k, place in enumerate(growth.trees.place):
        position, cells = _position(growth, k, z, coarse=False)
        numbers.append(take(position, place[cells].astype(np.float64)).named("tree_cell"))
    forest = Forest(growth.trees.variable, growth.trees.cut.astype(np.float64), growth.trees.value)
    grown = (base + trees(numbers, forest)).named("grown")
    return eta + (grown - eta) * growth.share


def _position(growth: Growth, k: int, z: Step, *, coarse: bool) -> tuple[Step, Ints]:
    """Return the step to a position of entry k of the cells, and the cell of each position."""
    cells, variable = growth.cells[k], growth.variables[k]
    if isinstance(cells, LevelCells):
        return code(variable), cells.cell
    assert isinstance(cells, NumberCells)
    cuts, held = _merged(cells) if coarse else (cells.cuts, np.arange(1, cells.size))
    # Beyond the cuts a value only has to be finite.
    room = 1.0 + float(np.abs(cuts).max())
    x = z if variable < 0 else number(variable)
    inside = clipped(x, float(cuts[0]) - room, float(cuts[-1]) + room)
    if variable < 0:
        return find(inside, cuts), held
    inside = where(missing(x), float(cuts[0]), inside)
    return where(missing(x), len(cuts) + 1, find(inside, cuts)), np.append(held, 0)


def _merged(cells: NumberCells) -> tuple[Floats, Ints]:
    """Return the cuts between coarse cells, and the first cell of each of these."""
    coarse = cells.coarse()[1:]
    begins = np.flatnonzero(np.diff(coarse)) + 1
    return cells.cuts[begins - 1], np.append(1, begins + 1)
