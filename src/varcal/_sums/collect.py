"""Mergeable statistics: bins are chosen once, batches are summed into them, and sums are added."""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from varcal._arrays import AnyArray
from varcal._files.saved import Kind
from varcal._files.schema import BrokenError, array_of, built, conform, plain
from varcal._input.dates import part_name
from varcal._input.labels import COLLECTED_EVENTS, CORRECT
from varcal._input.left_out import all_left_out, must_read
from varcal._input.predictions import ALL
from varcal._options import check_choice, check_names, checked, number, or_none
from varcal._sums.bins import LevelBins, NumericBins
from varcal._sums.choose_bins import ATOMS, BinOptions
from varcal._sums.plan import (
    MOST_FINE_CLASSES,
    BinPlan,
    Collected,
    Question,
    Wanted,
    plan_of,
    sum_up,
)
from varcal._sums.sources import MemoryRows, lazy_rows
from varcal._sums.stats import FIELDS, MOST_FIELDS
from varcal._sums.stream import Roles, Sample, Stream
from varcal.exceptions import InputError

#: The most sums of one file, half a gigabyte; with groups each cell has sums for 256 buckets.
MOST_SUMS = 2**26


@checked(
    events=or_none(check_names),
    monitor=or_none(number(0, 0.5, ends="[]", hint="try 0.02")),
    weight_cap=or_none(number(0, hint="give the largest weight that a row can have")),
)
def make_bins(
    y: str,
    p: str | Sequence[str],
    X: object = ALL,
    *,
    data: object,
    events: Sequence[str] | None = None,
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    n_bins: int = 10,
    binning: str = "atoms",
    bins: object = None,
    edges: str | None = None,
    sample_weight: str | None = None,
    groups: str | None = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
    monitor: float | None = None,
    weight_cap: float | None = None,
) -> BinPlan:
    """Choose the bins of every variable and of the score, for batches to be collected later.

    Later batches may contain values that these rows do not have: values beyond the ends fall into
    the end bins, new levels into the bin "other", and missing values into a bin of their own.
    Results do not show these extra bins if they stay empty.

    Parameters
    ----------
    y : str
        The column of labels.
    p : str or sequence of str
        The column of P(y = pos_label), or one column per class.
    X : sequence of str, optional
        The variables; every column without another role by default.
    data : frame, dict of columns, path, relation or lazy frame
        Rows like those of the batches; a sample is enough.
    events : sequence of {"both", "correct", "positive", "classwise"}, optional
        What the probabilities claim. "both" has all that an audit needs, and contains the
        others, except that with two classes the one that is not `pos_label` needs "classwise" as
        well. It is the default, except that with more than ten classes only "correct" is
        collected, to save memory.
    n_bins, binning, bins, edges
        As in `audit`.
    classes, pos_label, sample_weight, groups, from_logits, unlabelled
        As in `audit`, with columns by name. Without `classes`, batches may only have the labels
        of these rows. Groups are hashed into 256 buckets.
    monitor : float, optional
        The limit of a `Monitor`, such as 0.02. Batches then also have the sums from which it
        tells soonest that a gap is larger than this.
    weight_cap : float, optional
        The largest weight that a row can have; needed for a monitor if there are weights. Later
        rows with a larger one are refused.

    Returns
    -------
    BinPlan

    Examples
    --------
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(500)
    >>> rows = {"y": sim.y, "p": sim.p, "age": sim.v}
    >>> vc.make_bins("y", "p", data=rows)
    BinPlan: 2 claims along 1 variable (age)
    """
    _check_monitor(monitor, weight_cap, sample_weight, groups)
    lazy = lazy_rows(data)
    rows = MemoryRows.of(data, "data") if lazy is None else lazy
    roles = Roles.of(
        rows.columns,
        y,
        p,
        X,
        sample_weight,
        groups,
        from_logits=from_logits,
        unlabelled=unlabelled,
        pos_label=pos_label,
        must_read=must_read(X, None),
    )
    if not roles.v:
        raise InputError("X is None", "name the variables", argument="X")
    n_all = 0 if lazy is None else rows.count()  # all rows in memory are looked at
    sample = Sample.of(Stream(rows, roles, n_all=n_all), classes, calendar=True)
    if not sample.stream.roles.v:
        raise all_left_out(sample.odd, odd=True)
    few = len(sample.stream.part.classes) <= MOST_FINE_CLASSES
    if events is not None and not events:
        raise InputError("events is empty", "name at least one, or omit it", argument="events")
    options: BinOptions = {"n_bins": n_bins, "binning": binning, "bins": bins, "edges": edges}
    score: BinOptions = {"n_bins": n_bins, "binning": ATOMS, "bins": None, "edges": edges}
    wanted: dict[Any, Wanted] = {}
    for event in events if events is not None else ("both" if few else "correct",):
        check_choice("events", event, COLLECTED_EVENTS)
        sided = event in ("both", "classwise")
        question = Question(options, event, pos_label, score=score, sided=sided)
        plan = plan_of(sample, question, hashed=True)
        for table in plan.wanted:
            if table.sided or table.slot not in wanted:
                wanted[table.slot] = table.opened()
    bets = _bets(list(wanted.values()), monitor) if monitor is not None and not groups else []
    return replace(
        plan,
        wanted=(*wanted.values(), *bets),
        left_out=plan.left_out if X is ALL else {},
        monitor=monitor,
        weight_cap=weight_cap,
    )


def collect(batch: object, bins: BinPlan) -> Collected:
    """Sum a batch of predictions into bins; the sums of several batches can be added.

    Parameters
    ----------
    batch : frame, dict of columns, path, relation or lazy frame
        Rows with the columns that the bins were made for.
    bins : BinPlan
        The result of `make_bins`.

    Returns
    -------
    Collected
        `a + b` merges batches, and `save` writes them to a file. `audit`, `estimate`, `curve`,
        `vece`, `ece`, `bin_table` and `reliability` accept it instead of predictions.

    Examples
    --------
    >>> import varcal as vc
    >>> sim = vc.datasets.make_gap(2000)
    >>> rows = {"y": sim.y, "p": sim.p, "age": sim.v}
    >>> days = [{name: column[k::2] for name, column in rows.items()} for k in range(2)]
    >>> bins = vc.make_bins("y", "p", data=days[0])
    >>> total = vc.collect(days[0], bins) + vc.collect(days[1], bins)
    >>> total, vc.audit(total).n_rows
    (Collected: 2,000 rows along 1 variable (age), 2000)
    """
    if not isinstance(bins, BinPlan):
        raise InputError(
            f"bins is a {type(bins).__name__}", "give the result of make_bins()", argument="bins"
        )
    rows = lazy_rows(batch) or MemoryRows.of(batch, "batch")
    for name in bins.roles.columns:
        if name not in rows.columns:
            raise InputError.no_column(name, rows.columns, "batch")
    return sum_up(rows, bins).finite()


def _bets(tables: Sequence[Wanted], limit: float) -> list[Wanted]:
    """Return the tables of bets that go with some tables, claim by claim.

    The bets on "the prediction is correct" follow from those on classes by predicted side.
    """
    along = [table for table in tables if len(table.names) == 1]
    sided = {table.names for table in along if table.sided}
    bets = [
        replace(table, fine=table.coarse, limit=limit)
        for table in along
        if table.sided or table.names not in sided
    ]
    return sorted(bets, key=lambda table: table.key)


def _check_monitor(
    monitor: object, weight_cap: object, sample_weight: object, groups: object
) -> None:
    """Refuse a cap of weights that is missing, or that nothing needs."""
    if weight_cap is None:
        # The size of a unit is compared with that of the largest unit of its batch instead.
        if monitor is not None and sample_weight is not None and groups is None:
            raise InputError(
                "weight_cap is not given, and a monitor of weighted rows needs it",
                "give the largest weight that a row can have: {weight_cap}",
                "weight_cap",
                {"weight_cap": ...},
            )
        return
    if monitor is None or sample_weight is None:
        raise InputError(
            "weight_cap is given without " + ("monitor" if monitor is None else "sample_weight"),
            "it is for a monitor of weighted rows; omit it otherwise",
            argument="weight_cap",
        )


def save(collected: Collected, path: str | PathLike[str]) -> None:
    """Write collected statistics to a file: the plan, and the cells with rows."""
    if Path(path).suffix.lower() != ".json":
        raise InputError(
            f"path has an unknown extension: {str(path)!r}", "use .json", argument="path"
        )
    place, sums = collected.cells()
    head = {"engine": collected.engine, "backend": collected.backend}
    bins = plan_to_dict(collected.plan)
    COLLECTED.write(path, head | {"bins": bins, "cells": plain(place), "sums": plain(sums)})


def restored(head: dict[str, Any]) -> Collected:
    """Return the statistics that the entries of a file describe."""
    plan = plan_from_dict(head["bins"])
    conform((head["engine"], head["backend"]), tuple[str, str | None], "the engine")
    place, sums = array_of(head["cells"]), array_of(head["sums"])
    _check_cells(place, sums, 1 + sum(table[0].size for table in plan.empty().tables))
    found = plan.of_cells(place, sums)
    _check_sums(found)
    return replace(found, engine=head["engine"], backend=head["backend"])


def plan_to_dict(plan: BinPlan) -> dict[str, Any]:
    """Return bins in the types of JSON."""
    level_bins = [one.fine for one in plan.wanted if isinstance(one.fine, LevelBins)]
    levels = [level for bins in level_bins for level in (*bins.levels, *bins.pooled)]
    for label in (*plan.classes, *levels):
        if not isinstance(label, str | bool | int | float | dt.date):
            raise InputError(
                f"a label of type {type(label).__name__} cannot be saved: {label!r}",
                "use strings, numbers, booleans or dates",
            )
    found: dict[str, Any] = plain(plan)
    return found


def plan_from_dict(data: dict[str, Any]) -> BinPlan:
    """Return the bins that `plan_to_dict` described, if they are sound and fit into memory."""
    plan: BinPlan = built(data, BinPlan, where="bins")
    _check_plan(plan)
    cells = sum(plan.n_buckets * (1 + one.sided) * one.fine.size for one in plan.wanted)
    if cells * MOST_FIELDS > MOST_SUMS:
        raise BrokenError(f"it has more than {MOST_SUMS:,} sums")
    return plan


def _check_cells(place: AnyArray, sums: AnyArray, n_cells: int) -> None:
    """Raise ValueError unless these are distinct cells of tables with the sums of some rows."""
    if place.dtype.kind != "i" or place.ndim != 1 or sums.shape != (len(place), MOST_FIELDS):
        raise ValueError("cells and sums do not match")
    if not len(place) or place[0] or place[-1] >= n_cells or (np.diff(place) < 1).any():
        raise ValueError("a cell is duplicated or outside its table")
    n = sums[:, 0]
    if not np.isfinite(sums).all() or (n != np.floor(n)).any() or (n[1:] < 1).any() or n[0] < 0:
        raise ValueError("a cell has no valid number of rows")


def _check_sums(found: Collected) -> None:
    """Raise ValueError unless the tables are consistent with each other."""
    if found.n_dropped < 0:
        raise ValueError("the number of dropped rows is negative")
    by_key: dict[tuple[int, bool], AnyArray] = {}
    for wanted, table in zip(found.plan.wanted, found.tables, strict=True):
        if int(table[0].sum()) != found.n_rows:
            raise ValueError("a table does not contain all rows")
        if wanted.limit is not None:
            continue
        if (table[FIELDS.index("weight")] < 0).any():
            raise ValueError("a cell has a negative weight")
        sides = table[[0, FIELDS.index("weight")]].sum(axis=-1)
        first = by_key.setdefault((wanted.key, wanted.sided), sides)
        if not np.allclose(sides, first, rtol=1e-6):
            raise ValueError("the tables of a class have different rows on its sides")


def _check_plan(plan: BinPlan) -> None:
    """Raise ValueError unless the bins of a plan are consistent."""
    if len({wanted.slot for wanted in plan.wanted}) < len(plan.wanted) or not plan.wanted:
        raise ValueError("a table is duplicated, or there are no tables")
    kinds = plan.kinds
    parts = {part_name(part) for part in plan.part.calendar if part[0] in plan.roles.v}
    if not set(kinds) <= {*plan.roles.v, *parts} or len(parts) < len(plan.part.calendar):
        raise ValueError("a variable has no column")
    for wanted in plan.wanted:
        _check_wanted(wanted, kinds, len(plan.classes))


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


#: Files of collected statistics.
COLLECTED = Kind("collected statistics", "a file of collected statistics", 1, restored)
