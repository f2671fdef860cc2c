"""The plan: which tables are needed and over which bins, and the tables once they are filled."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from os import PathLike
from typing import Any

import numpy as np

from varcal._arrays import Floats, Ints
from varcal._input.dates import date_note
from varcal._input.groups import N_BUCKETS, buckets, sided_buckets
from varcal._input.labels import (
    CORRECT,
    Part,
    audit_keys,
    claim_keys,
    claim_of,
    collected_keys,
    predicted,
)
from varcal._input.left_out import reason_to_leave_out
from varcal._input.predictions import Predictions
from varcal._input.variables import Kind, Variable
from varcal._options import checked
from varcal._sums.bins import Bins, JointBins, LevelBins
from varcal._sums.choose_bins import ATOMS, RARE_LEVEL, BinOptions, check_cut_names
from varcal._sums.sources import THREADS, LazyRows
from varcal._sums.spark import SparkRows
from varcal._sums.stats import (
    BET_FIELDS,
    FIELDS,
    MOST_FIELDS,
    BinnedStats,
    Filling,
    Run,
    add_bets,
    add_rows,
)
from varcal._sums.stream import SCORE, Roles, Sample, Stream
from varcal._text import count, short
from varcal.exceptions import InputError

#: Fine cells of a numeric variable; a local fit on them is within 2e-4 of one on rows.
N_FINE = 1000
#: With more classes than this, the claims about classes have no fine cells, to save memory.
MOST_FINE_CLASSES = 10
#: The most sums of a plan, 256 MB. Beyond it variables have fewer fine cells; with groups, each of
#: a thousand cells has sums for 256 buckets and two predicted sides.
MOST_PLAN_SUMS = 1 << 25
#: The event of a question that is an audit's.
AUDIT = "audit"


@dataclass(frozen=True)
class Question:
    """Which tables a call needs.

    Attributes
    ----------
    options : BinOptions
        How variables are binned, or the score if there are none.
    event, pos_label
        What the probabilities claim.
    joint : bool
        Whether variables are binned jointly instead of separately.
    fine : bool
        Whether fine cells are needed, for curves and tests.
    moments : bool
        Whether all sums are needed, or only rows, weight, hit and score.
    sided : bool
        Whether the claims about classes are needed by predicted side; `event` may then be "both".
    score : BinOptions, optional
        How the score is binned, if it is needed in addition to variables.
    calendar : bool
        Whether hour, weekday and month of dates are variables as well.
    """

    options: BinOptions
    event: str = "correct"
    pos_label: Hashable = None
    joint: bool = False
    fine: bool = True
    moments: bool = True
    sided: bool = False
    score: BinOptions | None = None
    calendar: bool = False

    @classmethod
    def of_audit(
        cls,
        n_bins: int,
        binning: str,
        bins: object,
        edges: str | None,
        pos_label: Hashable,
        whole: tuple[str, ...] = (),
    ) -> Question:
        """Return what audits and comparisons ask: classes by predicted side, and the score."""
        options = BinOptions(n_bins=n_bins, binning=binning, bins=bins, edges=edges, whole=whole)
        plain = BinOptions(n_bins=n_bins, binning=ATOMS, bins=None, edges=edges)
        return cls(options, AUDIT, pos_label, sided=True, score=plain, calendar=True)

    def keys(self, classes: Sequence[Hashable]) -> list[int]:
        """Return the keys of the claims."""
        if self.event == AUDIT:
            return audit_keys(classes, self.pos_label)
        find = collected_keys if self.sided else claim_keys
        return find(classes, self.event, self.pos_label)


@dataclass(frozen=True)
class Along:
    """A variable by name and kind."""

    name: str
    kind: Kind


@dataclass(frozen=True)
class Wanted:
    """One table: a claim over bins.

    Attributes
    ----------
    key : int
        The key of the claim (`claim_keys`).
    names : tuple of str
        The variables, binned jointly; empty for the score of the claim.
    fine, coarse : Bins
        The bins into which rows are summed, and those of the metrics.
    sided : bool
        Whether rows of which the claim's class is not the predicted one, and rows of which it
        is, are summed separately: a table has the buckets of the former, then of the latter.
    limit : float or None
        If given, the table has the sums of bets against this limit (`BET_FIELDS`) instead of
        the usual ones (`FIELDS`). Tables of bets come last.
    """

    key: int
    names: tuple[str, ...]
    fine: Bins
    coarse: Bins
    sided: bool = False
    limit: float | None = None

    @property
    def slot(self) -> tuple[int, tuple[str, ...], bool]:
        """What distinguishes the table from the others of a plan."""
        return self.key, self.names, self.limit is not None

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of its sums."""
        return FIELDS if self.limit is None else BET_FIELDS

    def opened(self) -> Wanted:
        """Return a table that also takes levels and missing values that are not known yet."""
        if not self.names:
            return self
        more: Any = {"missing": True}
        more |= {"open": True} if isinstance(self.fine, LevelBins) else {}
        fine, coarse = (replace(bins, **more) for bins in (self.fine, self.coarse))
        return replace(self, fine=fine, coarse=coarse)

    def closed(self, sums: Floats) -> tuple[BinnedStats, Any]:
        """Return the filled table and coarse bins, without extra bins that are empty."""
        fine: Any = self.fine
        coarse: Any = self.coarse
        if isinstance(fine, JointBins):
            return BinnedStats(fine, sums), coarse
        empty = sums[0].sum(axis=0) == 0
        if fine.missing and empty[-1] and fine.size > 1:
            fine, coarse = replace(fine, missing=False), replace(coarse, missing=False)
            sums, empty = sums[..., :-1], empty[:-1]
        if isinstance(fine, LevelBins) and fine.open:
            other = len(fine.levels)
            if empty[other] and not fine.pooled and fine.size > 1:
                sums = np.delete(sums, other, axis=-1)
                fine = coarse = replace(fine, open=False)
        return BinnedStats(fine, sums), coarse


@dataclass(frozen=True)
class BinPlan:
    """The roles of columns, and the bins into which rows are summed.

    It is the result of `make_bins`. Batches that are collected with the same plan can be added.

    Attributes
    ----------
    roles : Roles
        The columns: outcome, probabilities, variables, weights, groups.
    part : Part
        The classes.
    along : tuple of Along
        The variables and their kinds.
    wanted : tuple of Wanted
        The tables: claims, variables and their bins.
    units : tuple
        All groups, if there are few and all are known; otherwise groups are hashed.
    n_bins, binning
        How bins were chosen.
    left_out : mapping
        Columns that an audit leaves out unless they are named, with the reason.
    date_notes : tuple of str
        Notes on text that was read as dates, or could not be.
    monitor : float or None
        The tolerance of the monitor that the bins were chosen for.
    weight_cap : float or None
        The largest weight that a row may have, for a monitor.
    """

    roles: Roles
    part: Part
    along: tuple[Along, ...]
    wanted: tuple[Wanted, ...]
    units: tuple[Hashable, ...] = ()
    n_bins: int = 10
    binning: str = "atoms"
    left_out: Mapping[str, str] = field(default_factory=dict, compare=False)
    date_notes: tuple[str, ...] = field(default=(), compare=False)
    monitor: float | None = None
    weight_cap: float | None = None

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The labels, in the order of the columns of `p`."""
        return self.part.classes

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kinds of variables by their names."""
        return {variable.name: variable.kind for variable in self.along}

    @property
    def n_buckets(self) -> int:
        """The number of buckets of groups."""
        return 1 if self.roles.groups is None else len(self.units) or N_BUCKETS

    def __repr__(self) -> str:
        claims = {table.key for table in self.wanted}
        return f"BinPlan: {count(len(claims), 'claim')} along {self.shown}"

    @property
    def shown(self) -> str:
        """The variables in words."""
        names = short(", ".join(variable.name for variable in self.along), 50)
        return f"{count(len(self.along), 'variable')} ({names})"

    def of_claim(self, key: int) -> list[Wanted]:
        """Return the tables of one claim."""
        return [one for one in self.wanted if one.key == key]

    def empty(self) -> Collected:
        """Return the tables of no rows."""
        shapes = [
            (len(table.fields), self.n_buckets * (1 + table.sided), table.fine.size)
            for table in self.wanted
        ]
        return Collected(self, 0, 0, tuple(np.zeros(shape) for shape in shapes))

    def checked(self, rows: Predictions, start: int = 0) -> Predictions:
        """Return rows whose variables have the kinds of the bins, and whose weights are allowed."""
        if rows.weight is not None and self.weight_cap is not None:
            above = rows.weight > self.scaled_cap
            if above.any():
                row = int(above.argmax())
                raise InputError.at_row(
                    "sample_weight",
                    f"is above weight_cap, {self.weight_cap:g}",
                    float(np.ldexp(rows.weight[row], self.part.exponent)),
                    row,
                    int(above.sum()),
                    "choose the bins with a larger weight_cap: make_bins(…, weight_cap=…)",
                )
        kinds = self.kinds
        variables = (_of_kind(one, kinds.get(one.name, one.kind)) for one in rows.variables)
        return replace(rows, variables=tuple(variables))

    @property
    def scaled_cap(self) -> float:
        """The largest weight, on the scale of the weights of rows."""
        return float(np.ldexp(self.weight_cap or 1.0, -self.part.exponent))

    def filled(self, rows: Predictions, start: int) -> Collected:
        """Return the sums of a batch."""
        return self.empty().with_rows(self.checked(rows))

    def of_cells(self, place: Ints, sums: Floats) -> Collected:
        """Return the tables that consist of these cells, as `Collected.cells` returns them."""
        empty = self.empty()
        ends = np.cumsum([1, *(table[0].size for table in empty.tables)])
        values = np.zeros((ends[-1], MOST_FIELDS))
        values[place] = sums
        for start, table in zip(ends, empty.tables, strict=False):
            own = values[start : start + table[0].size, : len(table)]
            table[...] = own.T.reshape(table.shape)
        return replace(empty, n_rows=int(values[0, 0]), n_dropped=int(values[0, 1]))


@dataclass(frozen=True, eq=False)
class Collected:
    """The binned statistics of a batch of predictions; `a + b` merges two batches.

    It is the result of `collect`. `audit`, `estimate`, `curve`, `vece`, `ece`, `bin_table` and
    `reliability` accept it instead of predictions, with the results of all rows at once.

    Attributes
    ----------
    plan : BinPlan
        The columns and the bins.
    n_rows, n_dropped : int
        The rows behind the tables, and those dropped because their outcome is missing.
    tables : tuple of ndarray
        The sums of each table of the plan, by field, bucket of groups and fine bin.
    engine : str
        What summed the rows.
    backend : str or None
        The frame library of results.
    """

    plan: BinPlan
    n_rows: int
    n_dropped: int
    tables: tuple[Floats, ...]
    engine: str = "numpy"
    backend: str | None = None

    def __add__(self, other: Collected) -> Collected:
        if not isinstance(other, Collected):
            return NotImplemented
        if self.plan != other.plan:
            raise InputError(
                "two collections over different bins cannot be merged",
                "collect both with the same bins from make_bins()",
            )
        return Collected(
            self.plan,
            self.n_rows + other.n_rows,
            self.n_dropped + other.n_dropped,
            tuple(a + b for a, b in zip(self.tables, other.tables, strict=True)),
            self.engine if self.engine == other.engine else "several",
            self.backend if self.backend == other.backend else None,
        ).finite()

    def __radd__(self, other: object) -> Collected:
        # For sum(parts), which starts with 0.
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __len__(self) -> int:
        return self.n_rows

    def __repr__(self) -> str:
        return f"Collected: {count(self.n_rows, 'row')} along {self.plan.shown}"

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The labels."""
        return self.plan.classes

    def finite(self) -> Collected:
        """Refuse sums that overflow."""
        for wanted, table in zip(self.plan.wanted, self.tables, strict=True):
            for name, part in zip(wanted.fields, table, strict=True):
                if not np.isfinite(part).all():
                    what = f"variable {wanted.names[0]!r}" if name == "x" else "sample_weight"
                    hint = "divide all values by a constant before the bins are chosen"
                    raise InputError(f"the sum of {what} overflows", hint)
        return self

    @checked()
    def save(self, path: str | PathLike[str]) -> None:
        """Write the statistics to a ``.json`` file, which `varcal.load` reads.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import varcal as vc
        >>> sim = vc.datasets.make_gap(500)
        >>> rows = {"y": sim.y, "p": sim.p, "age": sim.v}
        >>> day = vc.collect(rows, vc.make_bins("y", "p", data=rows))
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "day.json"
        >>> day.save(path)
        >>> len(vc.load(path) + day)
        1000
        """
        from varcal._sums.collect import save  # noqa: PLC0415  it imports this module

        save(self, path)

    def with_rows(self, rows: Predictions, *, moments: bool = True, run: Run = map) -> Collected:
        """Add rows, which `BinPlan.checked` has returned, to the tables in place."""
        found = replace(
            self, n_rows=self.n_rows + len(rows), n_dropped=self.n_dropped + rows.n_dropped
        )
        if not len(rows):
            return found
        plan = self.plan
        size = None
        if rows.weight is not None and plan.weight_cap is not None:
            size = rows.weight / plan.scaled_cap
        along = {variable.name: variable for variable in rows.variables}
        unsided = buckets(rows.unit, plan.units)
        for key in {one.key for one in plan.wanted}:
            claim = claim_of(rows, key)
            score = Variable(SCORE, "numeric", claim.score)
            side = predicted(rows, key) if any(one.sided for one in plan.of_claim(key)) else None
            bucket = {True: sided_buckets(side, *unsided)[0], False: unsided[0]}
            tables: dict[float | None, list[Filling]] = {}
            for one, table in zip(plan.wanted, self.tables, strict=True):
                if one.key == key:
                    variables = [along[name] for name in one.names] or [score]
                    filling = BinnedStats(one.fine, table), variables, bucket[one.sided]
                    tables.setdefault(one.limit, []).append(filling)
            for limit, several in tables.items():
                if limit is None:
                    add_rows(several, claim.score, claim.hit, rows.weight, moments=moments, run=run)
                else:
                    add_bets(several, claim.score, claim.hit, size, limit)
        return found

    def cells(self) -> tuple[Ints, Floats]:
        """Return the positions and the sums, one row per cell, of the cells with rows.

        The first cell has the numbers of rows and of dropped rows.
        """
        values = np.zeros((1 + sum(table[0].size for table in self.tables), MOST_FIELDS))
        values[0, :2] = self.n_rows, self.n_dropped
        start = 1
        for table in self.tables:
            end = start + table[0].size
            values[start:end, : len(table)] = table.reshape(len(table), -1).T
            start = end
        place = np.union1d(np.flatnonzero(values[:, 0]), [0])  # even if all rows are dropped
        return place, values[place]


def _of_kind(variable: Variable, kind: Kind) -> Variable:
    if variable.kind == kind:
        return variable
    if variable.missing().all():  # a batch without values has no type
        blank = np.full(len(variable), -1 if kind == "levels" else np.nan)
        values = blank.astype(np.intp) if kind == "levels" else blank
        return Variable(variable.name, kind, values)
    raise InputError(
        f"variable {variable.name!r} is {variable.kind}, but its bins are {kind}",
        "convert all batches to the same type",
    )


def sum_up(rows: LazyRows, plan: BinPlan, *, moments: bool = True) -> Collected:
    """Read rows and sum them into the bins of a plan.

    Threads share the tables of a batch, and batches are added in their order: the sums are the same
    to the bit whichever thread is faster, and no batch has tables of its own. The workers of Spark
    send those of each partition.
    """
    stream = Stream(rows, plan.roles, plan.part)
    total = plan.empty()
    if isinstance(rows, SparkRows):
        total = reduce(add, stream.map(plan.filled), total)
    else:
        with ThreadPoolExecutor(THREADS) as pool:
            for batch in stream.map(plan.checked):
                total = total.with_rows(batch, moments=moments, run=pool.map)
    return replace(total, engine=rows.engine, backend=rows.backend)


def plan_of(sample: Sample, question: Question, *, hashed: bool = False) -> BinPlan:
    """Choose the bins that a question needs; `hashed` says that groups are never known."""
    options, score = question.options, question.score or question.options
    stream, variables = sample.stream, sample.variables
    keys = question.keys(stream.part.classes)
    along = tuple(Along(one.name, one.kind) for one in variables)
    names = tuple(one.name for one in along)
    plan = BinPlan(
        stream.roles,
        stream.part,
        along,
        (),
        () if hashed else sample.units,
        options["n_bins"],
        options["binning"],
        reasons_to_leave_out(variables, options["n_bins"], stream.n_all) | dict(sample.odd),
        date_notes(variables),
    )
    n_tables = len(keys) * (1 + len(along) * (1 + question.sided))
    most = MOST_PLAN_SUMS // (len(FIELDS) * plan.n_buckets * n_tables)
    n_fine = min(N_FINE, most) if question.fine else 0
    check_cut_names(options["bins"], along or (Along(SCORE, "numeric"),))
    chosen = {one.name: sample.bins(one, one.name, options, n_fine) for one in variables}
    wanted: list[Wanted] = []
    if question.joint and len(along) > 1:
        bins = JointBins(tuple(coarse for coarse, _ in chosen.values()))
        wanted += [Wanted(key, names, bins, bins) for key in keys]
    else:
        for name, (coarse, fine) in chosen.items():
            if question.sided:
                wanted += _sided(keys, name, fine, coarse)
            else:
                wanted += [Wanted(key, (name,), fine, coarse) for key in keys]
    if not along or question.score is not None:
        for key in keys:
            coarse, fine = sample.bins(sample.score(key), key, score, n_fine)
            wanted.append(Wanted(key, (), fine, coarse))
    return replace(plan, wanted=tuple(wanted))


def reasons_to_leave_out(
    variables: Sequence[Variable], n_bins: int, n_all: int = 0
) -> dict[str, str]:
    """Return the variables that an audit leaves out unless they are named, with the reason.

    `n_all` is the number of all rows if these are a sample.
    """
    rare = 1 / (RARE_LEVEL * n_bins)
    found = {one.name: reason_to_leave_out(one, rare, n_all) for one in variables}
    return {name: reason for name, reason in found.items() if reason}


def date_notes(variables: Sequence[Variable]) -> tuple[str, ...]:
    """Return notes on text that was read as dates, or could not be."""
    notes = (date_note(one.name, one.levels, one.date_format) for one in variables)
    return tuple(note for note in notes if note)


def _sided(keys: Sequence[int], name: str, fine: Bins, coarse: Bins) -> list[Wanted]:
    """Return the tables of claims about classes by predicted side, along one variable.

    "The prediction is correct" follows from those of all classes, or from either of two. With
    many classes their tables would be large: they have coarse bins only.
    """
    about = [key for key in keys if key != CORRECT]
    if len(about) <= MOST_FINE_CLASSES:
        return [Wanted(key, (name,), fine, coarse, sided=True) for key in about]
    plain = [Wanted(CORRECT, (name,), fine, coarse)] if CORRECT in keys else []
    return plain + [Wanted(key, (name,), coarse, coarse, sided=True) for key in about]
