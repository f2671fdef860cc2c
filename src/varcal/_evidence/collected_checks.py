"""Whether collected statistics can be what they claim: finite sums of rows over sound bins."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from varcal._arrays import AnyArray
from varcal._binning.bins import NumericBins
from varcal._binning.stats import FIELDS
from varcal._evidence.plan import BinPlan
from varcal._evidence.tally import Sums, Wanted
from varcal._input.events import CORRECT
from varcal.exceptions import InputError


def check_finite(plan: BinPlan, sums: Sums) -> Sums:
    """Refuse sums that floating-point numbers cannot hold."""
    for one, table in zip(plan.wanted, sums.tables, strict=True):
        for name, part in zip(FIELDS, table, strict=True):
            if np.isfinite(part).all():
                continue
            if name == "x":
                raise InputError(
                    f"the sum of variable {one.names[0]!r} is beyond the largest number",
                    "divide it by a constant before bins are made",
                )
            raise InputError(
                "sums of weights are beyond the largest number: these weights are far above "
                "those that the bins were made for",
                "make the bins on rows whose weights are alike, or divide all weights",
            )
    return sums


def check_cells(cell: AnyArray, sums: AnyArray, n_cells: int) -> None:
    """Raise ValueError unless these are distinct cells of a table, each with sums of rows."""
    if sums.shape != (len(FIELDS), len(cell)) or cell.dtype.kind not in "iu":
        raise ValueError("a cell has no sums, or sums no cell")
    if len(np.unique(cell)) < len(cell) or ((cell < 0) | (cell >= n_cells)).any():
        raise ValueError("a cell comes twice, or lies outside its table")
    n = sums[0]
    if not np.isfinite(sums).all() or (n < 1).any() or (n != np.floor(n)).any():
        raise ValueError("a cell holds no number of rows")
    if (sums[FIELDS.index("weight")] < 0).any():
        raise ValueError("a cell has a negative weight")


def check_sound(plan: BinPlan, sums: Sums) -> Sums:
    """Raise ValueError unless tables fit the plan and each other."""
    if len({one.slot for one in plan.wanted}) < len(plan.wanted) or not plan.wanted:
        raise ValueError("a table comes twice, or there is none")
    kinds = {one.name: one.kind for one in plan.along}
    if not set(kinds) <= set(plan.roles.v) or sums.n_dropped < 0:
        raise ValueError("a variable has no column, or rows left out are fewer than none")
    if [table.shape for table in sums.tables] != [
        table.shape for table in plan.tally().nothing().tables
    ]:
        raise ValueError("the number of buckets is not that of the groups")
    for one, table in zip(plan.wanted, sums.tables, strict=True):
        if int(table[0].sum()) != sums.n_rows:
            raise ValueError("a table does not hold all rows")
        _check_wanted(one, kinds, len(plan.classes))
    return sums


def _check_wanted(one: Wanted, kinds: dict[str, Any], n_classes: int) -> None:
    fine, coarse = one.fine, one.coarse
    if not CORRECT <= one.key < n_classes or not set(one.names) <= set(kinds):
        raise ValueError("a table is of no claim, or of no variable")
    for bins in (fine, coarse):
        numeric = isinstance(bins, NumericBins)
        if numeric == (kinds.get("".join(one.names), "numeric") == "levels"):
            raise ValueError("bins are not of the kind of their variable")
        if isinstance(bins, NumericBins) and not all(a < b for a, b in pairwise(bins.cuts)):
            raise ValueError("cuts do not ascend")
    if fine == coarse:
        return
    if not (isinstance(fine, NumericBins) and isinstance(coarse, NumericBins)):
        raise ValueError("levels have one set of bins")
    if not set(coarse.cuts) <= set(fine.cuts) or coarse.missing != fine.missing:
        raise ValueError("coarse bins do not lie within fine ones")
