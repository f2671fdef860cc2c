"""Checks of collected statistics: finite sums over valid bins."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from varcal._arrays import AnyArray
from varcal._input.dates import part_name
from varcal._input.events import CORRECT
from varcal._sums.bins import NumericBins
from varcal._sums.plan import BinPlan
from varcal._sums.stats import FIELDS
from varcal._sums.tally import Sums, Wanted
from varcal.exceptions import InputError


def check_finite(plan: BinPlan, sums: Sums) -> Sums:
    """Refuse sums that overflow."""
    for wanted, table in zip(plan.wanted, sums.tables, strict=True):
        for name, part in zip(wanted.fields, table, strict=True):
            if np.isfinite(part).all():
                continue
            if name == "x":
                raise InputError(
                    f"the sum of variable {wanted.names[0]!r} overflows",
                    "divide the variable by a constant before the bins are chosen",
                )
            raise InputError(
                "the sum of sample_weight overflows: these weights are much larger than those "
                "that the bins were chosen for",
                "choose the bins from rows with similar weights, or divide all weights",
            )
    return sums


def check_cells(cell: AnyArray, sums: AnyArray, n_cells: int, wanted: Wanted) -> None:
    """Raise ValueError unless these are distinct cells of a table with the sums of some rows."""
    if sums.shape != (len(FIELDS), len(cell)) or cell.dtype.kind not in "iu":
        raise ValueError("cells and sums do not match")
    if len(np.unique(cell)) < len(cell) or ((cell < 0) | (cell >= n_cells)).any():
        raise ValueError("a cell is duplicated or outside its table")
    n = sums[0]
    if not np.isfinite(sums).all() or (n < 1).any() or (n != np.floor(n)).any():
        raise ValueError("a cell has no valid number of rows")
    if wanted.limit is None and (sums[FIELDS.index("weight")] < 0).any():
        raise ValueError("a cell has a negative weight")


def check_plan(plan: BinPlan) -> None:
    """Raise ValueError unless the bins of a plan are consistent."""
    if len({wanted.slot for wanted in plan.wanted}) < len(plan.wanted) or not plan.wanted:
        raise ValueError("a table is duplicated, or there are no tables")
    kinds = {variable.name: variable.kind for variable in plan.along}
    parts = {part_name(part) for part in plan.part.calendar if part[0] in plan.roles.v}
    if not set(kinds) <= {*plan.roles.v, *parts} or len(parts) < len(plan.part.calendar):
        raise ValueError("a variable has no column")
    for wanted in plan.wanted:
        _check_wanted(wanted, kinds, len(plan.classes))


def check_sound(plan: BinPlan, sums: Sums) -> Sums:
    """Raise ValueError unless the tables are consistent with the plan and with each other."""
    check_plan(plan)
    if sums.n_dropped < 0:
        raise ValueError("the number of dropped rows is negative")
    if [table.shape for table in sums.tables] != [
        table.shape for table in plan.tally().nothing().tables
    ]:
        raise ValueError("the number of buckets does not match the groups")
    by_key: dict[tuple[int, bool], AnyArray] = {}
    for wanted, table in zip(plan.wanted, sums.tables, strict=True):
        if int(table[0].sum()) != sums.n_rows:
            raise ValueError("a table does not contain all rows")
        sides = table[[0, FIELDS.index("weight")]].sum(axis=-1)
        first = by_key.setdefault((wanted.key, wanted.sided), sides)
        if wanted.limit is None and not np.allclose(sides, first, rtol=1e-6):
            raise ValueError("the tables of a class have different rows on its sides")
    return sums


def _check_wanted(wanted: Wanted, kinds: dict[str, Any], n_classes: int) -> None:
    fine, coarse = wanted.fine, wanted.coarse
    if not CORRECT <= wanted.key < n_classes or not set(wanted.names) <= set(kinds):
        raise ValueError("a table has an unknown claim or variable")
    if wanted.limit is not None and (len(wanted.names) != 1 or fine != coarse):
        raise ValueError("a table of bets has fine cells, or not one variable")
    if wanted.sided and (wanted.key == CORRECT or len(wanted.names) != 1):
        raise ValueError("only a claim about a class along one variable has sides")
    for bins in (fine, coarse):
        numeric = isinstance(bins, NumericBins)
        if numeric == (kinds.get("".join(wanted.names), "numeric") == "levels"):
            raise ValueError("bins do not match the kind of their variable")
        if isinstance(bins, NumericBins) and not all(a < b for a, b in pairwise(bins.cuts)):
            raise ValueError("cuts do not increase")
    if fine == coarse:
        return
    if not (isinstance(fine, NumericBins) and isinstance(coarse, NumericBins)):
        raise ValueError("levels cannot have two sets of bins")
    if not set(coarse.cuts) <= set(fine.cuts) or coarse.missing != fine.missing:
        raise ValueError("coarse bins do not consist of fine ones")
