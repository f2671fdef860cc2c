"""Scan: the first pass over lazy rows, which finds what is needed to choose bins."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import narwhals as nw
import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal._input.dates import (
    CalendarPart,
    calendar_parts,
    date_note,
    part_name,
    part_variable,
)
from varcal._input.events import CORRECT, claim_of
from varcal._input.frames import Table
from varcal._input.groups import N_BUCKETS, check_two_groups, check_units, distinct_groups
from varcal._input.labels import Labels, Part
from varcal._input.left_out import ColumnFacts, reason_to_leave_out
from varcal._input.predictions import Predictions
from varcal._input.probabilities import (
    from_log_odds,
    in_class_order,
    no_weight,
    probabilities,
    weight_exponent,
    weights,
)
from varcal._input.variables import (
    Kind,
    Variable,
    as_series,
    present_levels,
    read_columns,
    sort_levels,
)
from varcal._sums.choose import fine_bins
from varcal._sums.date_readings import DateReading, common_readings, date_readings
from varcal._sums.exact_edges import Column
from varcal._sums.protocol import batch_columns
from varcal._sums.question import BinOptions
from varcal._sums.roles import Roles, rows_numbered_from
from varcal._sums.summary import SAMPLE, ArraySummary, Ends, SampledSummary
from varcal.exceptions import InputError

#: The largest number of values in a sample, over all its columns.
MOST_SAMPLED = 50_000_000
#: With more distinct levels than this, rare ones are dropped while counting.
MOST_LEVELS = 100_000
#: The seed of the sample. It is not a small number: data simulated with the same seed would not be
#: independent of the sample.
_SEED = 7_404_113_092_584_371
#: Rows looked at together: their temporary arrays stay in the processor's cache.
_STRETCH = 16_384


def sample_share(n_rows: int, roles: Roles) -> float:
    """Return the share of rows to sample for edges."""
    wanted = min(SAMPLE, MOST_SAMPLED // len(roles.columns))
    return min(1.0, wanted / max(n_rows, 1))


@dataclass(frozen=True)
class LevelCounts:
    """The number of rows of each level; `declared` is the order of levels if the type has one."""

    counts: dict[Hashable, int]
    n_missing: int
    declared: tuple[Hashable, ...] = ()
    pruned: bool = False

    @classmethod
    def of(cls, variable: Variable, declared: tuple[Hashable, ...]) -> LevelCounts:
        """Count the levels of a column."""
        present = variable.values[variable.values >= 0]
        n_rows = np.bincount(present, minlength=len(variable.levels)).tolist()
        counts = {level: n for level, n in zip(variable.levels, n_rows, strict=True) if n}
        # Both booleans are levels, even without rows.
        if variable.levels == (False, True):
            counts = dict(zip(variable.levels, n_rows, strict=True))
        return cls(counts, len(variable) - len(present), declared)

    def __add__(self, other: LevelCounts) -> LevelCounts:
        counts = dict(self.counts)
        for level, n in other.counts.items():
            counts[level] = counts.get(level, 0) + n
        pruned = self.pruned or other.pruned
        if len(counts) > MOST_LEVELS:
            floor = sum(counts.values()) / MOST_LEVELS
            counts = {level: n for level, n in counts.items() if n > 2 * floor}
            pruned = True
        missing = self.n_missing + other.n_missing
        return LevelCounts(counts, missing, self.declared or other.declared, pruned)


@dataclass(frozen=True)
class Seen:
    """The result of a pass; `a + b` combines two batches.

    `blank` has every variable without its rows, `dates` the ways in which text can be read as
    dates, and `odd` the columns that cannot be variables, with the reason.
    """

    n_rows: int
    labels: tuple[Hashable, ...]
    heaviest: float
    units: tuple[Hashable, ...] | None
    blank: dict[str, Variable]
    ends: dict[str, Ends]
    levels: dict[str, LevelCounts]
    score_ends: tuple[Floats, Floats]
    p: list[Floats]
    sample: dict[str, list[Floats]] = field(default_factory=dict)
    dates: dict[str, dict[str, DateReading]] = field(default_factory=dict)
    odd: dict[str, str] = field(default_factory=dict)

    def __add__(self, other: Seen) -> Seen:
        odd = self.odd | other.odd
        units = None
        if self.units is not None and other.units is not None:
            union = {*self.units, *other.units}
            units = tuple(union) if len(union) <= N_BUCKETS else None
        return Seen(
            self.n_rows + other.n_rows,
            tuple({*self.labels, *other.labels}) if len(self.labels) < MOST_LEVELS else self.labels,
            max(self.heaviest, other.heaviest),
            units,
            self.blank,
            {name: one + other.ends[name] for name, one in self.ends.items() if name not in odd},
            {
                name: one + other.levels[name]
                for name, one in self.levels.items()
                if name not in odd
            },
            (
                np.minimum(self.score_ends[0], other.score_ends[0]),
                np.maximum(self.score_ends[1], other.score_ends[1]),
            ),
            [*self.p, *other.p],
            {
                name: [*parts, *other.sample[name]]
                for name, parts in self.sample.items()
                if name not in odd
            },
            {
                name: common_readings(readings, other.dates[name])
                for name, readings in self.dates.items()
                if name not in odd
            },
            odd,
        )

    def with_dates(self) -> tuple[Seen, dict[str, str]]:
        """Read text as dates where that fits all rows in one way only; also return the ways."""
        certain = {
            name: next(iter(readings.items()))
            for name, readings in self.dates.items()
            if len(readings) == 1
        }
        certain = {name: pair for name, pair in certain.items() if pair[1].zone is not None}
        seen = replace(
            self,
            blank=self.blank
            | {
                name: replace(self.blank[name], kind="datetime", levels=(), zone=reading.zone or "")
                for name, (_, reading) in certain.items()
            },
            ends=self.ends | {name: reading.ends for name, (_, reading) in certain.items()},
            levels={name: one for name, one in self.levels.items() if name not in certain},
            sample=self.sample | {name: reading.sample for name, (_, reading) in certain.items()},
        )
        return seen, {name: form for name, (form, _) in certain.items()}

    def with_calendar(self, names: Sequence[str]) -> tuple[Seen, tuple[CalendarPart, ...]]:
        """Add the parts of dates that are variables of their own; also return these."""
        blank, ends = dict(self.blank), dict(self.ends)
        levels, sample = dict(self.levels), dict(self.sample)
        found: list[CalendarPart] = []
        for name in names:
            if self.blank[name].kind != "datetime":
                continue
            dates = replace(self.blank[name], values=np.concatenate(self.sample[name]))
            of_all = self.ends[name]
            for part in calendar_parts(dates, (of_all.low, of_all.high), names):
                one = part_variable(dates, part)
                blank[one.name] = replace(one, values=one.values[:0], levels=())
                if one.kind == "levels":
                    held = LevelCounts.of(one, one.levels).counts
                    scale = of_all.n_finite / sum(held.values())
                    counts = {level: round(scale * n) for level, n in held.items()}
                    levels[one.name] = LevelCounts(counts, of_all.n_missing, one.levels)
                else:
                    low, high = np.nanmin(one.values), np.nanmax(one.values)
                    ends[one.name] = replace(of_all, low=float(low), high=float(high))
                    sample[one.name] = [one.values]
                found.append(part)
        return replace(self, blank=blank, ends=ends, levels=levels, sample=sample), tuple(found)


@dataclass(frozen=True)
class Scan:
    """Find labels, weights, units, ends and levels of a batch, and a random sample of its rows.

    Attributes
    ----------
    roles : Roles
        The columns.
    share : float
        The share of rows to sample.
    row_numbers_known : bool
        Whether `start` is the number of a row.
    """

    roles: Roles
    share: float
    row_numbers_known: bool = True

    def __call__(self, frame: Any, start: int) -> Seen:
        """Scan a batch whose first row has the number `start`."""
        roles = self.roles
        with rows_numbered_from(start if self.row_numbers_known else None):
            table = Table.of(batch_columns(frame), "data")
            labels = Labels.of(table.column(roles.y, "y"))
            p = probabilities(list(roles.p), table)[0]
            columns = {name: table.column(name, "v") for name in roles.v}
            read, odd = read_columns(columns, roles.must_read)
            variables = list(read)
            weight, unit = None, None
            if roles.sample_weight is not None:
                weight = weights(roles.sample_weight, table).astype(np.float64, copy=False)
            if roles.groups is not None:
                column = table.column(roles.groups, "groups")
                unit = Variable.of(column, "groups", "groups")
            unknown = labels.missing()
            if unknown.any():
                kept = ~unknown
                labels, p = labels.take(kept), p[kept]
                variables = [one.take(kept) for one in variables]
                weight = None if weight is None else weight[kept]
                unit = None if unit is None else unit.take(kept)
            if unit is not None:
                check_units(unit)
        row = sampled_rows(len(p), self.share, start)
        ranked = [one for one in variables if one.kind != "levels"]
        return Seen(
            len(p),
            _distinct(labels),
            -np.inf if weight is None else float(np.max(weight, initial=-np.inf)),
            () if unit is None else _units(unit),
            {one.name: replace(one.take(np.zeros(0, np.intp)), levels=()) for one in variables},
            {one.name: Ends.of(one.values) for one in ranked},
            {
                one.name: LevelCounts.of(one, _declared(table.column(one.name, "v")))
                for one in variables
                if one.kind == "levels"
            },
            _score_ends(p, from_logits=roles.from_logits),
            [p[row].astype(np.float64)],
            {one.name: [one.values[row].astype(np.float64)] for one in ranked},
            {one.name: date_readings(one, row) for one in variables if one.kind == "levels"},
            odd,
        )


@dataclass(frozen=True)
class Survey:
    """Facts about all rows: classes, weights, units, and the bins of each column."""

    seen: Seen
    roles: Roles
    part: Part
    #: Exact summaries, where another pass over the rows has made them.
    exact: Mapping[Column, ArraySummary] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        seen: Seen,
        roles: Roles,
        classes: Sequence[Hashable] | None,
        *,
        calendar: bool = False,
    ) -> Survey:
        """Find the classes and the scale of weights."""
        if not seen.n_rows:
            raise InputError(
                "y has no label at any row", "at least one outcome is needed", argument="y"
            )
        if roles.sample_weight is not None and seen.heaviest == 0:
            raise no_weight()
        if roles.groups is not None and seen.units is not None:
            check_two_groups(len(seen.units))
        labels = Labels.of(list(seen.labels))
        with rows_numbered_from(None):
            labels.check_numbers(np.concatenate(seen.p))
            found = labels.encode(2 if len(roles.p) == 1 else len(roles.p), classes)[1]
        by_meaning = classes is None and found in ((0, 1), (False, True))
        finite = np.isfinite(seen.heaviest) and seen.heaviest > 0
        exponent = weight_exponent(seen.heaviest) if finite else 0
        seen, date_formats = seen.with_dates()
        usable = tuple(name for name in roles.v if name not in seen.odd)
        roles = replace(roles, v=usable, must_read=None)
        parts: tuple[CalendarPart, ...] = ()
        if calendar:
            seen, parts = seen.with_calendar(usable)
        return cls(seen, roles, Part(found, by_meaning, exponent, date_formats, parts))

    @property
    def names(self) -> tuple[str, ...]:
        """The variables: columns, and parts of dates."""
        return (*self.roles.v, *map(part_name, self.part.calendar))

    @property
    def units(self) -> tuple[Hashable, ...]:
        """All units, sorted, if there are few."""
        units = self.seen.units or ()
        return tuple(sort_levels(np.zeros(0, np.intp), list(units))[1])

    def kind(self, name: str) -> Kind:
        """Return the kind of a variable."""
        return self.seen.blank[name].kind

    def bins(self, name: str, options: BinOptions, n_fine: int) -> tuple[Any, Any]:
        """Choose the bins of a variable, and finer ones."""
        nothing = np.zeros(0)
        if name in self.seen.ends:
            variable = self.seen.blank[name]
            sample = self.sample_of(name)
            summary = self.exact.get(name, sample)
            return fine_bins(
                variable, **options, n_fine=n_fine, summary=summary, fine_summary=sample
            )
        found = self.seen.levels[name]
        levels = sort_levels(np.zeros(0, np.intp), list(found.counts))[1]
        if found.declared:
            levels = [level for level in found.declared if level in found.counts]
        variable = Variable(name, "levels", nothing.astype(np.intp), tuple(levels))
        counts = np.array([found.counts[level] for level in levels], dtype=np.intp)
        return fine_bins(variable, **options, counts=(counts, found.n_missing))

    def left_out(self, rare: float) -> dict[str, str]:
        """Return the columns that an audit leaves out unless they are named, with the reason."""
        found = {name: reason_to_leave_out(name, self._facts(name), rare) for name in self.names}
        return {name: reason for name, reason in found.items() if reason}

    def _facts(self, name: str) -> ColumnFacts:
        if name in self.seen.ends:
            ends = self.seen.ends[name]
            values = np.concatenate(self.seen.sample[name])
            n_missing = ends.n_missing
            finite = values[np.isfinite(values)]
            low_high = (ends.low, ends.high) if ends.n_finite else (-np.inf, np.inf)
            return ColumnFacts(
                self.kind(name), self.seen.n_rows - n_missing, n_missing, finite, low_high
            )
        found = self.seen.levels[name]
        counts = {level: count for level, count in found.counts.items() if count}
        return ColumnFacts(
            "levels",
            self.seen.n_rows - found.n_missing,
            found.n_missing,
            n_levels=MOST_LEVELS if found.pruned else len(counts),
            largest=max(counts.values(), default=0),
            levels=tuple(counts),
            pruned=found.pruned,
        )

    def date_notes(self) -> tuple[str, ...]:
        """Return notes on text that was read as dates, or could not be."""
        notes = []
        for name in self.seen.dates:
            held = self.seen.levels.get(name)
            texts = () if held is None else tuple(held.counts)
            notes.append(date_note(name, texts, self.part.date_formats.get(name, "")))
        return tuple(note for note in notes if note)

    def opened(self, name: str) -> bool:
        """Tell whether a variable has more levels than were counted."""
        if name not in self.seen.levels:
            return False
        # Weekdays and months are counted in the sample.
        return self.seen.levels[name].pruned or name not in self.seen.dates

    def score_bins(self, key: int, options: BinOptions, n_fine: int, name: str) -> tuple[Any, Any]:
        """Choose the bins of a claim's score, and finer ones."""
        variable = Variable(name, "numeric", np.zeros(0))
        sample = self.sample_of(key)
        summary = self.exact.get(key, sample)
        return fine_bins(variable, **options, n_fine=n_fine, summary=summary, fine_summary=sample)

    def sample_of(self, column: Column) -> ArraySummary:
        """Return what the sampled rows say of a numeric variable, or of a claim's score."""
        if isinstance(column, str):
            return self._summary(np.concatenate(self.seen.sample[column]), self.seen.ends[column])
        p = _probabilities(np.concatenate(self.seen.p), from_logits=self.roles.from_logits)
        both = in_class_order(p, self.part.classes, self.roles.pos_label)
        blank = Predictions(np.zeros(len(p), np.intp), both, self.part.classes)
        score = claim_of(blank, column).score
        # The ends were found before it was known which class comes first.
        turned = p.ndim < both.ndim and column != CORRECT
        low, high = (float(ends[1 - column if turned else column]) for ends in self.seen.score_ends)
        ends = Ends(low, high, self.seen.n_rows) if low <= high else Ends(0, 1, self.seen.n_rows)
        return self._summary(score, ends)

    def _summary(self, values: Floats, ends: Ends) -> ArraySummary:
        if len(values) == self.seen.n_rows:  # then nothing is left to chance
            return ArraySummary(values)
        if ends.n_finite:
            return SampledSummary(values[np.isfinite(values)], ends)
        many = {-np.inf: ends.n_low, np.inf: ends.n_high, np.nan: ends.n_missing}
        return ArraySummary(np.array([value for value, n in many.items() if n]))


def _probabilities(p: Floats, *, from_logits: bool) -> Floats:
    """Return the finite rows of p as probabilities; the second pass reports the others."""
    is_finite = np.isfinite(p if p.ndim == 1 else p.sum(axis=1))
    finite = p if is_finite.all() else p[is_finite]
    return from_log_odds(finite) if from_logits else finite


def _score_ends(p: AnyArray, *, from_logits: bool) -> tuple[Floats, Floats]:
    """Return the smallest and the largest score of each claim, by its key (`CORRECT` is last)."""
    ends = []
    for start in range(0, max(len(p), 1), _STRETCH):
        part = p[start : start + _STRETCH].astype(np.float64, copy=False)
        part = _probabilities(part, from_logits=from_logits)
        # Column by column: numpy is slow at reducing the short rows of an array.
        columns = [1.0 - part, part] if part.ndim == 1 else list(part.T)
        columns.append(reduce(np.maximum, columns))
        low = [column.min(initial=np.inf) for column in columns]
        ends.append((low, [column.max(initial=-np.inf) for column in columns]))
    lows, highs = zip(*ends, strict=True)
    return np.min(lows, axis=0), np.max(highs, axis=0)


def sampled_rows(n: int, share: float, start: int) -> Ints:
    """Draw rows of a batch, each with the same probability and independently of the others."""
    rng = np.random.default_rng([_SEED, start])
    rows = rng.choice(n, rng.binomial(n, share), replace=False, shuffle=False)
    rows.sort()
    return rows


def _distinct(labels: Labels) -> tuple[Hashable, ...]:
    column = labels.column
    if column.kind == "levels":
        if column.levels == (False, True):
            return column.levels
        return tuple(present_levels(column.values, column.levels)[1])
    values = column.values
    if len(values) and values.dtype.kind in "iu" and values.min() >= 0 and values.max() <= 1:
        return tuple({int(values.min()), int(values.max())})
    return tuple(np.unique(values)[:MOST_LEVELS].tolist())


def _units(unit: Variable) -> tuple[Hashable, ...] | None:
    found = distinct_groups(unit)
    return tuple(found) if len(found) <= N_BUCKETS else None


def _declared(column: Any) -> tuple[Hashable, ...]:
    """Return the levels in the order that the type of a column declares, if it has one."""
    if hasattr(getattr(column, "cat", None), "codes"):  # pandas
        return tuple(column.cat.categories.tolist())
    series = as_series(column)
    dtype = None if series is None else series.dtype
    return tuple(dtype.categories) if isinstance(dtype, nw.Enum) else ()
