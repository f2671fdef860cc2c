"""BinPlan: which tables are needed and over which bins, chosen once and filled batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from varcal._arrays import Floats, Ints
from varcal._input.events import (
    CORRECT,
    audit_keys,
    claim_keys,
    claim_of,
    collected_keys,
    predicted,
)
from varcal._input.groups import N_BUCKETS, buckets, sided_buckets
from varcal._input.labels import Part
from varcal._input.predictions import Predictions
from varcal._input.variables import Kind, Variable
from varcal._sums.bins import Bins, JointBins, LevelBins
from varcal._sums.choose_bins import (
    RARE_LEVEL,
    BinOptions,
    check_cut_names,
)
from varcal._sums.kernel import BET_FIELDS, BetTable, bin_rows, sum_bets
from varcal._sums.sources import THREADS, LazyRows
from varcal._sums.spark import SparkRows
from varcal._sums.stats import FIELDS, BinnedStats
from varcal._sums.stream import Roles, map_checked
from varcal._sums.survey import SCORE, Survey
from varcal._text import count, short
from varcal.exceptions import InputError

#: Fine cells of a numeric variable; a local fit on them is within 2e-4 of one on rows.
N_FINE = 1000


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
        plain = BinOptions(n_bins=n_bins, binning="quantile", bins=None, edges=edges)
        return cls(options, AUDIT, pos_label, sided=True, score=plain, calendar=True)

    def keys(self, classes: Sequence[Hashable]) -> list[int]:
        """Return the keys of the claims."""
        if self.event == AUDIT:
            return audit_keys(classes, self.pos_label)
        find = collected_keys if self.sided else claim_keys
        return find(classes, self.event, self.pos_label)

    def with_exact_edges(self, rows: LazyRows, survey: Survey) -> Survey:
        """Pass over lazy rows once more, for exact quantiles instead of those of the sample."""
        scores = self.keys(survey.classes) if self.score is not None or not survey.roles.v else []
        return survey.with_exact_edges(rows, scores, self.options, self.score or self.options)


#: With more classes than this, the claims about classes have no fine cells, to save memory.
MOST_FINE_CLASSES = 10
#: The most sums of a plan, 256 MB. Beyond it variables have fewer fine cells; with groups, each of
#: a thousand cells has sums for 256 buckets and two predicted sides.
MOST_PLAN_SUMS = 1 << 25


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


@dataclass(frozen=True, eq=False)
class Sums:
    """The number of rows and of dropped rows, and the sums of each table; `a + b` adds batches."""

    n_rows: int
    n_dropped: int
    tables: tuple[Floats, ...]

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.n_rows + other.n_rows,
            self.n_dropped + other.n_dropped,
            tuple(a + b for a, b in zip(self.tables, other.tables, strict=True)),
        )


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

    def __repr__(self) -> str:
        names = short(", ".join(variable.name for variable in self.along), 50)
        claims = {table.key for table in self.wanted}
        along = count(len(self.along), "variable")
        return f"BinPlan: {count(len(claims), 'claim')} along {along} ({names})"

    def nothing(self) -> Sums:
        """Return the sums of no rows."""
        n_buckets = 1 if self.roles.groups is None else len(self.units) or N_BUCKETS
        shapes = [
            (len(FIELDS), n_buckets * (1 + table.sided), table.fine.size) for table in self.wanted
        ]
        return Sums(0, 0, tuple(np.zeros(shape) for shape in shapes))

    def checked(self, rows: Predictions, start: int = 0) -> Predictions:
        """Return rows whose variables have the kinds of the bins, and whose weights are allowed."""
        if rows.weight is not None and self.weight_cap is not None:
            above = rows.weight > self._cap
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
    def _cap(self) -> float:
        """The largest weight, on the scale of the weights of rows."""
        return float(np.ldexp(self.weight_cap or 1.0, -self.part.exponent))

    def sums_of(self, rows: Predictions, start: int = 0, *, moments: bool = True) -> Sums:
        """Return the sums of a batch of checked rows."""
        sums = self.nothing()
        self.add(self.checked(rows, start), sums.tables, map, moments=moments)
        return replace(sums, n_rows=len(rows), n_dropped=rows.n_dropped)

    def add(
        self,
        rows: Predictions,
        tables: Sequence[Floats],
        run: Callable[[Any, Iterable[Any]], Iterable[Any]],
        *,
        moments: bool,
    ) -> None:
        """Add checked rows to tables; `run` is `map`, or that of a pool of threads."""
        if not len(rows):
            return
        size = None
        if rows.weight is not None and self.weight_cap is not None:
            size = rows.weight / self._cap
        unit_buckets = buckets(rows.unit, self.units)
        along = {variable.name: variable for variable in rows.variables}
        claims = {key: claim_of(rows, key) for key in {one.key for one in self.wanted}}
        sides = {one.key: predicted(rows, one.key) for one in self.wanted if one.sided}

        def add_one(k: int) -> None:
            one, claim = self.wanted[k], claims[self.wanted[k].key]
            side = sides[one.key] if one.sided else None
            stats = bin_rows(
                one.fine,
                [along[name] for name in one.names] or [Variable(SCORE, "numeric", claim.score)],
                claim.score,
                claim.hit,
                rows.weight,
                *sided_buckets(side, *unit_buckets),
                moments=moments,
            )
            tables[k][...] += stats.sums

        def add_bets(several: list[int]) -> None:
            first = self.wanted[several[0]]
            bets = [
                BetTable(one.fine, along[one.names[0]], sides[one.key] if one.sided else None)
                for one in (self.wanted[k] for k in several)
            ]
            claim, limit = claims[first.key], float(first.limit or 0.0)
            found = sum_bets(bets, claim.score, claim.hit, size, limit)
            for k, table in zip(several, found, strict=True):
                tables[k][...] += table

        for claim in claims.values():  # computed once, and not by several threads at the same time
            _ = claim.score, claim.hit
        plain = [k for k, one in enumerate(self.wanted) if one.limit is None]
        bets = range(len(plain), len(self.wanted))
        jobs: list[Callable[[], None]] = [partial(add_one, k) for k in plain]
        by_key = groupby(bets, lambda k: self.wanted[k].key)
        jobs += [partial(add_bets, list(several)) for _, several in by_key]
        for _ in run(lambda job: job(), jobs):
            pass

    def cells(self, sums: Sums) -> tuple[Ints, Floats]:
        """Return the positions and the sums, one row per cell, of the cells with rows.

        The first cell has the numbers of rows and of dropped rows.
        """
        first = np.zeros((1, len(FIELDS)))
        first[0, :2] = sums.n_rows, sums.n_dropped
        rows = (table.reshape(len(FIELDS), -1).T for table in sums.tables)
        values = np.concatenate([first, *rows])
        place = np.union1d(np.flatnonzero(values[:, 0]), [0])  # even if all rows are dropped
        return place, values[place]

    def of_cells(self, place: Ints, sums: Floats) -> Sums:
        """Return the sums that consist of these cells."""
        nothing = self.nothing().tables
        ends = np.cumsum([1, *(table[0].size for table in nothing)])
        values = np.zeros((ends[-1], len(FIELDS)))
        values[place] = sums
        tables = tuple(
            values[start : start + table[0].size].T.reshape(table.shape)
            for start, table in zip(ends, nothing, strict=False)
        )
        return Sums(int(values[0, 0]), int(values[0, 1]), tables)


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


def sum_up(rows: LazyRows, plan: BinPlan, *, moments: bool = True) -> Sums:
    """Read lazy rows and sum them into the bins of a plan.

    Threads share the tables of a batch, and batches are added in their order: the sums are the same
    to the bit whichever thread is faster, and no batch has tables of its own.
    """
    if isinstance(rows, SparkRows):
        return rows.summed(plan, moments=moments)
    total = plan.nothing()
    n_rows = n_dropped = 0
    with ThreadPoolExecutor(THREADS) as pool:
        for batch in map_checked(rows, plan.roles, plan.part, plan.checked):
            plan.add(batch, total.tables, pool.map, moments=moments)
            n_rows, n_dropped = n_rows + len(batch), n_dropped + batch.n_dropped
    return replace(total, n_rows=n_rows, n_dropped=n_dropped)


def plan_of(survey: Survey, question: Question, *, hashed: bool = False) -> BinPlan:
    """Choose the bins that a question needs; `hashed` says that groups are never known."""
    options, score = question.options, question.score or question.options
    keys = question.keys(survey.classes)
    units = () if hashed else survey.units or ()
    n_buckets = 1 if survey.roles.groups is None else len(units) or N_BUCKETS
    n_tables = len(keys) * (1 + len(survey.names) * (1 + question.sided))
    most = MOST_PLAN_SUMS // (len(FIELDS) * n_buckets * n_tables)
    n_fine = min(N_FINE, most) if question.fine else 0
    along = tuple(Along(name, survey.columns[name].blank.kind) for name in survey.names)
    check_cut_names(options["bins"], along or (Along(SCORE, "numeric"),))
    chosen = {one.name: survey.bins(one.name, n_fine, **options) for one in along}
    wanted: list[Wanted] = []
    if question.joint and len(along) > 1:
        bins = JointBins(tuple(coarse for coarse, _ in chosen.values()))
        wanted += [Wanted(key, survey.names, bins, bins) for key in keys]
    else:
        tables = _sided if question.sided else _plain
        for name, (coarse, fine) in chosen.items():
            wanted += tables(keys, name, fine, coarse)
    if not along or question.score is not None:
        for key in keys:
            coarse, fine = survey.bins(key, n_fine, **score)
            wanted.append(Wanted(key, (), fine, coarse))
    return BinPlan(
        survey.roles,
        survey.part,
        along,
        tuple(wanted),
        units,
        options["n_bins"],
        options["binning"],
        survey.left_out(1 / (RARE_LEVEL * options["n_bins"])),
        survey.date_notes(),
    )


def _plain(keys: Sequence[int], name: str, fine: Bins, coarse: Bins) -> list[Wanted]:
    return [Wanted(key, (name,), fine, coarse) for key in keys]


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


def opened(table: Wanted) -> Wanted:
    """Return a table that also takes levels and missing values not known when bins were chosen."""
    if not table.names:
        return table
    more: Any = {"missing": True} | ({"open": True} if isinstance(table.fine, LevelBins) else {})
    fine, coarse = (replace(bins, **more) for bins in (table.fine, table.coarse))
    return replace(table, fine=fine, coarse=coarse)


def closed(stats: BinnedStats, coarse: Bins) -> tuple[BinnedStats, Bins]:
    """Drop the bins for missing and unknown values if they are empty."""
    fine, sums = stats.bins, stats.sums
    if isinstance(fine, JointBins) or isinstance(coarse, JointBins):
        return stats, coarse
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
