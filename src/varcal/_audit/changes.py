"""Changes from one audit to the next: variables that got worse or better, new ones, lost ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtrc

from varcal._arrays import Floats
from varcal._audit.record import AuditRow
from varcal._inference.multiplicity import cauchy, p_of_interval, two_sided_quantile
from varcal._input.frames import frame_of
from varcal._text import (
    ALTERED,
    BETTER,
    GONE,
    NEW,
    UNCHANGED,
    WORSE,
    Shown,
    Unit,
    level_text,
    p_text,
    unit_of,
)

#: Cells with fewer rows in one of the audits are not compared.
LEAST_ROWS = 10
#: Bins of numbers are compared if their edges differ by at most this part of their width.
MOST_APART = 0.5


@dataclass(frozen=True, eq=False, repr=False)
class Changes(Shown):
    """How the uneven error (`uneven`) changed from one audit to the next, one row per variable.

    The level holds for one look at two audits. Whoever looks again with every batch of rows, and
    stops at the first alarm, is alarmed far more often than 1 − level: of models that do not
    change, 34 % after 25 looks at 5 %. Use `Monitor` for that.

    Attributes
    ----------
    columns : dict of lists
        `variable`, `before`, `after`, `change`, `low`, `high` (interval of the change, which holds
        for all variables at once), `p_adjusted` (p-value of no change in any cell, times the number
        of variables), `verdict`: "worse" or "better" if the interval excludes 0, "changed" if
        cells surely changed but not clearly for better or worse, "no clear change", "new" or
        "gone"; and `place` and `place_change`, the bin whose gap changed most clearly, beyond the
        average, and by how much. A place is named only where something changed.
    level : float
        The level of the intervals: with this probability all of them contain the true change.
    scale : {"points", "relative", "difference"}
        How gaps are measured (`Target`).
    """

    columns: dict[str, list[Any]]
    level: float
    backend: str | None = None
    scale: str = "points"

    def to_frame(self) -> Any:
        """Return the table as a frame of the input's library, pandas for arrays."""
        return frame_of(self.columns, self.backend)

    def _shown(self) -> tuple[str, dict[str, list[str]], str]:
        relative = self.scale == "relative"  # changes of errors are no A/E
        made, unit = self.columns, Unit(word="percent") if relative else unit_of(self.scale)
        clearest = [
            f"{unit.signed(change)} {place}" if place else ""
            for place, change in zip(made["place"], made["place_change"], strict=True)
        ]
        intervals = f"{level_text(self.level)} intervals for all variables at once"
        columns = {
            "variable": made["variable"],
            "before": [unit.error(value) for value in made["before"]],
            "after": [unit.error(value) for value in made["after"]],
            "change": [
                unit.signed(unit.difference(after, before))
                for after, before in zip(made["after"], made["before"], strict=True)
            ],
            "interval": [
                "" if low != low else f"{unit.signed(low)} to {unit.signed(high)}"
                for low, high in zip(made["low"], made["high"], strict=True)
            ],
            "p": ["" if p != p else p_text(p) for p in made["p_adjusted"]],
            "verdict": made["verdict"],
            **({"clearest change": clearest} if any(clearest) else {}),
        }
        return f"Changes of the uneven error in {unit.word}, {intervals}", columns, ""


@dataclass(frozen=True)
class CellChange:
    """The p-value of no change in any cell of a variable, and the clearest change.

    Attributes
    ----------
    p_value : float
        The joint test, NaN if cells cannot be compared.
    place : str
        The bin that changed most clearly, and its predicted side.
    change : float
        By how much its gap changed beyond the average of its side.
    """

    p_value: float = math.nan
    place: str = ""
    change: float = math.nan


def changes(
    before: Mapping[str, AuditRow],
    after: Mapping[str, AuditRow],
    level: float,
    backend: str | None = None,
    *,
    cells: bool = True,
    scale: str = "points",
) -> Changes:
    """Compare the variables of two audits of independent sets of rows.

    The half-width of a change's interval is the root of the two half-widths' sum of squares
    (Zou and Donner, 2008). It is widened by the ratio of the normal quantiles of the levels
    1 − α/k and 1 − α for k variables (Bonferroni), so that it holds for all variables at once.
    A change is also shown by the joint test of the cells (`cell_change`), unless `cells` is False.
    """
    both = sum(name in before for name in after)
    wider = two_sided_quantile(1 - (1 - level) / max(both, 1)) / two_sided_quantile(level)
    rows: list[tuple[Any, ...]] = []
    for name in [*after, *(name for name in before if name not in after)]:
        if name not in before or name not in after:
            ends = [
                one[name].uneven.debiased if name in one else math.nan for one in (before, after)
            ]
            verdict = GONE if name in before else NEW
            rows.append((name, *ends, *[math.nan] * 4, verdict, "", math.nan))
            continue
        old, new = before[name].uneven, after[name].uneven
        change = new.debiased - old.debiased
        low = change - wider * math.hypot(new.debiased - new.low, old.high - old.debiased)
        high = change + wider * math.hypot(new.high - new.debiased, old.debiased - old.low)
        p = p_of_interval(low, high, 1 - (1 - level) / both)
        cell = cell_change(before[name], after[name]) if cells else CellChange()
        verdict = WORSE if low > 0 else BETTER if high < 0 else UNCHANGED
        if cell.p_value == cell.p_value:
            p = min(p, cell.p_value) if verdict != UNCHANGED else cell.p_value
        p = min(1.0, both * p)
        if verdict == UNCHANGED and p <= 1 - level:
            verdict = ALTERED
        where = (cell.place, cell.change) if verdict != UNCHANGED else ("", math.nan)
        rows.append((name, old.debiased, new.debiased, change, low, high, p, verdict, *where))
    rows.sort(key=lambda row: -abs(row[3]) if row[3] == row[3] else 0.0)
    names = ["variable", "before", "after", "change", "low", "high", "p_adjusted", "verdict"]
    names += ["place", "place_change"]
    return Changes(
        {name: [row[k] for row in rows] for k, name in enumerate(names)}, level, backend, scale
    )


def cell_change(before: AuditRow, after: AuditRow) -> CellChange:
    r"""Test whether the gap of any cell changed beyond the average change of its side.

    With the change :math:`d_c` of a cell and its variance :math:`v_c`, the sum of the variances in
    both audits, :math:`\sum_c (d_c - \bar d)^2 / v_c` is a chi-square with one degree of freedom
    per cell less one per side (Cochran's Q). Bins of all rows, since many changes are the same on
    both sides, and bins by predicted side are tested apart, and the two p-values are combined
    (Cauchy).

    References
    ----------
    Liu, Y. and Xie, J. (2020). Cauchy combination test. JASA 115, 393-402.
    """
    by_place = "low" in after.table.columns
    if by_place and not _edges_alike(before, after):
        return CellChange()
    best, clearest, p_values = CellChange(), 0.0, []
    for several in (["all"], [side for side in after.bins if side != "all"]):
        total, free = 0.0, 0
        for side in several:
            names, change, variance = _matched(before, after, side, by_place=by_place)
            if len(names) < 2:
                continue
            centre = np.average(change, weights=1 / variance)
            z = (change - centre) / np.sqrt(variance)
            total, free = total + float(z @ z), free + len(names) - 1
            k = int(np.argmax(np.abs(z)))
            if abs(z[k]) > clearest:
                clearest = abs(z[k])
                place = names[k] + ("" if side == "all" else f", predicted {side}")
                best = CellChange(math.nan, place, float(change[k] - centre))
        if free:
            p_values.append(float(chdtrc(free, total)))
    return replace(best, p_value=float(cauchy(p_values))) if p_values else best


def _matched(
    before: AuditRow, after: AuditRow, side: str, *, by_place: bool
) -> tuple[list[str], Floats, Floats]:
    """Return the cells of a side in both audits: names, changes of the gap, variances of these.

    Levels are matched by name, and bins of numbers by place.
    """
    new = after.bins[side]
    old = before.bins.get(side, [])
    pairs = list(zip(old, new, strict=True)) if by_place else []
    if not by_place:
        known = {one["bin"]: one for one in old}
        pairs = [(known[one["bin"]], one) for one in new if one["bin"] in known]
    pairs = [pair for pair in pairs if min(one["n"] for one in pair) >= LEAST_ROWS]
    gap = np.array([[one["gap"] for one in pair] for pair in pairs]).reshape(-1, 2)
    width = np.array([[one["gap_high"] - one["gap_low"] for one in pair] for pair in pairs])
    width = width.reshape(-1, 2) / [2 * two_sided_quantile(x.table.level) for x in (before, after)]
    return [one["bin"] for _, one in pairs], gap[:, 1] - gap[:, 0], (width**2).sum(axis=1)


def _edges_alike(before: AuditRow, after: AuditRow) -> bool:
    """Tell whether bins of numbers can be compared one by one."""
    sides = [{side: len(bins) for side, bins in row.bins.items()} for row in (before, after)]
    if sides[0] != sides[1]:
        return False
    low, high = (
        np.array([[one[name] for one in row.bins["all"]] for row in (before, after)], float)
        for name in ("low", "high")
    )
    inner = low > np.nanmin(low, axis=1, keepdims=True)
    if (inner[0] != inner[1]).any():
        return False
    apart, width = np.abs(low[0] - low[1]), np.min(high - low, axis=0)
    return bool((apart <= MOST_APART * width)[inner[0]].all())
