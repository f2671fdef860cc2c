"""Rows as a stream of checked batches, and the survey: a first pass that finds what bins need."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import Any

import narwhals as nw
import numpy as np

from varcal._arrays import Floats, Ints
from varcal._input.dates import (
    FORMATS,
    CalendarPart,
    calendar_parts,
    date_note,
    formats_of,
    part_name,
    part_variable,
)
from varcal._input.events import CORRECT, claim_of
from varcal._input.groups import N_BUCKETS, check_two_groups, distinct_groups
from varcal._input.labels import Labels, Part, position_of
from varcal._input.left_out import ColumnFacts, reason_to_leave_out
from varcal._input.predictions import (
    ALL,
    Predictions,
    in_class_order,
    no_weight,
    weight_exponent,
)
from varcal._input.variables import Variable, sort_levels
from varcal._options import check_choice
from varcal._sums.choose_bins import (
    SAMPLE,
    Ends,
    MissedError,
    RankedSummary,
    Ranks,
    Summary,
    fine_bins,
)
from varcal._sums.sources import LazyRows, T, batch_columns
from varcal.exceptions import InputError, argument_name, rows_numbered_from

#: The name of the score if it is the variable.
SCORE = "confidence"
#: The largest number of values in a sample, over all its columns.
MOST_SAMPLED = 50_000_000
#: With more distinct levels than this, rare ones are dropped while counting.
MOST_LEVELS = 100_000
#: Rows looked at together: their temporary arrays stay in the processor's cache.
_STRETCH = 16_384
#: Half-width of a bracket, in standard errors of the sample's rank. A quantile outside its
#: bracket (once in some 10⁶) costs one more pass with wider brackets, never exactness.
REACH = 5.0
#: By how much brackets grow if one has missed its quantile, and the most passes: the brackets of
#: the last hold all rows.
WIDER, MOST_PASSES = 16.0, 8

#: The seed of samples. It is not a small number: data simulated with the same seed would not be
#: independent of the sample.
_SEED = 7_404_113_092_584_371


@dataclass(frozen=True)
class Roles:
    """The names of columns by their role.

    Attributes
    ----------
    y : str
        The outcome.
    p, v : tuple of str
        Probabilities and variables.
    sample_weight, groups : str or None
        Weights and units.
    from_logits, unlabelled, pos_label
        As in `Predictions.of`.
    must_read : tuple of str or None
        The variables that have to be readable, None for all.
    """

    y: str
    p: tuple[str, ...]
    v: tuple[str, ...] = ()
    sample_weight: str | None = None
    groups: str | None = None
    from_logits: bool = False
    unlabelled: str = "raise"
    pos_label: Hashable = None
    must_read: tuple[str, ...] | None = None

    @classmethod
    def of(
        cls,
        known: Sequence[str],
        y: object,
        p: object,
        v: object,
        sample_weight: object = None,
        groups: object = None,
        **settings: Any,
    ) -> Roles:
        """Find the columns that arguments name.

        Examples
        --------
        >>> Roles.of(["y", "p", "age", "sex"], "y", "p", ALL).v
        ('age', 'sex')
        """
        check_choice("unlabelled", settings.get("unlabelled", "raise"), ["raise", "drop"])
        given = {"y": y, "p": p, "sample_weight": sample_weight, "groups": groups}
        given |= {} if v is ALL else {"v": v}
        names = {argument: _names(argument, value, known) for argument, value in given.items()}
        for argument in ("y", "p"):
            if not names[argument]:
                raise InputError(f"{argument} is None", "give the name of its column", argument)
        if v is ALL:
            taken = {name for columns in names.values() for name in columns}
            names["v"] = tuple(name for name in known if name not in taken)
            if not names["v"]:
                raise InputError(
                    "data has no column left for a variable", "give the variables", argument="data"
                )
        weight, unit = (next(iter(names[role]), None) for role in ("sample_weight", "groups"))
        return cls(names["y"][0], names["p"], names["v"], weight, unit, **settings)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns with a role, without duplicates."""
        others = [name for name in (self.sample_weight, self.groups) if name is not None]
        return tuple(dict.fromkeys([self.y, *self.p, *self.v, *others]))

    def read(self, frame: Any, **how: Any) -> Predictions:
        """Read and check rows; `how` are further arguments of `Predictions.of`."""
        names = {**vars(self), "p": list(self.p), "v": list(self.v) or None}
        return Predictions.of(data=frame, **names, **how)


def _names(argument: str, value: object, known: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that an argument names."""
    several = argument in ("p", "v")
    argument = argument_name(argument)
    names: Any = () if value is None else (value,) if isinstance(value, str) else value
    is_names = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    if not is_names or (isinstance(value, list | tuple) and not several):
        raise InputError(
            f"{argument} is a {type(value).__name__}, but data is read in batches",
            f"give {'column names' if several else 'the name of a column'} of data",
            argument,
        )
    for name in names:
        if name not in known:
            raise InputError.no_column(name, known, argument)
    if len(set(names)) < len(names):
        raise InputError(
            f"{argument} names a column twice: {list(names)}", "name each column once", argument
        )
    return tuple(names)


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows that are not read at once.

    Attributes
    ----------
    rows : LazyRows
        The rows.
    roles : Roles
        What their columns are.
    n_all : int
        Their number.
    """

    rows: LazyRows
    roles: Roles
    n_all: int


def map_checked(
    rows: LazyRows, roles: Roles, part: Part, work: Callable[[Predictions, int], T]
) -> Iterator[T]:
    """Yield the result of a work for each batch of checked rows."""
    return rows.map(roles.columns, partial(on_checked, roles=roles, part=part, work=work))


def on_checked(
    frame: Any, start: int, *, roles: Roles, part: Part, work: Callable[[Predictions, int], T]
) -> T:
    """Read and check a batch whose first row has the number `start`, and work on its rows."""
    return work(roles.read(batch_columns(frame), part=part), start)


def sample_rows(
    rows: LazyRows, roles: Roles, classes: Sequence[Hashable] | None, n_rows: int
) -> Predictions:
    """Read all rows once and return about `n_rows` of them, at fixed random places.

    Examples
    --------
    >>> import polars as pl
    >>> from varcal._sums.sources import lazy_rows
    >>> table = pl.LazyFrame({"y": [0, 1] * 500, "p": [0.2, 0.7] * 500, "v": range(1000)})
    >>> found = sample_rows(lazy_rows(table), Roles("y", ("p",), ("v",)), (0, 1), 100)
    >>> 70 < len(found) < 130
    True
    """
    work = partial(_drawn, share=min(1.0, n_rows / max(rows.count(), 1)))
    frames = [frame for part in rows.map(roles.columns, work) for frame in part]
    drawn = nw.concat([nw.from_native(frame, eager_only=True) for frame in frames])
    with rows_numbered_from(None):
        return roles.read(drawn.to_native(), classes=classes)


def _drawn(frame: Any, start: int, *, share: float) -> tuple[Any, ...]:
    """Draw rows of a batch, as a frame; tuples of two batches are added up."""
    batch = nw.from_native(frame, eager_only=True)
    return (batch[sampled_rows(len(batch), share, start).tolist(), :].to_native(),)


def sampled_rows(n: int, share: float, start: int) -> Ints:
    """Draw rows of a batch, each with the same probability and independently of the others."""
    rng = np.random.default_rng([_SEED, start])
    rows = rng.choice(n, rng.binomial(n, share), replace=False, shuffle=False)
    rows.sort()
    return rows


#: A numeric column: the name of a variable, or the key of a claim for its score.
Column = str | int


@dataclass(frozen=True)
class Numbers:
    """The ends of numbers, and those of sampled rows; `a + b` combines two batches.

    `zone` is the time zone of dates, None where no row has a value.
    """

    ends: Ends
    sample: tuple[Floats, ...]
    zone: str | None = ""

    @classmethod
    def of(cls, values: Any, sampled: Ints, zone: str | None = "") -> Numbers:
        """Look at the numbers of a batch."""
        return cls(Ends.of(values), (values[sampled].astype(np.float64),), zone)

    def __add__(self, other: Numbers) -> Numbers:
        zones = {self.zone, other.zone} - {None}
        zone = None if not zones else zones.pop() if len(zones) == 1 else "UTC"
        return Numbers(self.ends + other.ends, self.sample + other.sample, zone)

    def agrees(self, other: Numbers) -> bool:
        """Tell whether both batches have a time zone, or neither has."""
        return None in (self.zone, other.zone) or (self.zone == "") == (other.zone == "")

    @property
    def values(self) -> Floats:
        """The numbers of all sampled rows."""
        return np.concatenate(self.sample)


@dataclass(frozen=True)
class Seen:
    """What is known of a column; `a + b` combines two batches.

    Attributes
    ----------
    blank : Variable
        The column without rows and levels.
    numbers : dict of Numbers
        By "" the numbers; of text, the dates by each way of reading it as dates.
    counts : dict
        The rows of each level.
    n_missing : int
        Of levels, the rows without one.
    pruned : bool
        Whether there are more levels than were counted.
    """

    blank: Variable
    numbers: dict[str, Numbers]
    counts: dict[Hashable, int] = field(default_factory=dict)
    n_missing: int = 0
    pruned: bool = False

    @classmethod
    def of(cls, variable: Variable, sampled: Ints) -> Seen:
        """Look at a column of a batch."""
        blank = replace(variable.take(np.zeros(0, np.intp)), levels=())
        if variable.kind != "levels":
            return cls(blank, {"": Numbers.of(variable.values, sampled)})
        present = variable.values[variable.values >= 0]
        n_rows = np.bincount(present, minlength=len(variable.levels)).tolist()
        is_bool = variable.levels == (False, True)  # both are levels, even without rows
        pairs = zip(variable.levels, n_rows, strict=True)
        counts = {level: n for level, n in pairs if n or is_bool}
        n_missing = len(variable) - len(present)
        return cls(blank, _date_readings(variable, sampled), counts, n_missing)

    def __add__(self, other: Seen) -> Seen:
        numbers = {
            form: one + other.numbers[form]
            for form, one in self.numbers.items()
            if form in other.numbers and one.agrees(other.numbers[form])
        }
        counts = dict(self.counts)
        for level, n in other.counts.items():
            counts[level] = counts.get(level, 0) + n
        pruned = self.pruned or other.pruned
        if len(counts) > MOST_LEVELS:
            floor = sum(counts.values()) / MOST_LEVELS
            counts = {level: n for level, n in counts.items() if n > 2 * floor}
            pruned = True
        return Seen(self.blank, numbers, counts, self.n_missing + other.n_missing, pruned)

    def with_dates(self) -> tuple[Seen, str]:
        """Read text as dates if that fits all rows in one way only; also return the way."""
        if self.blank.kind == "levels" and len(self.numbers) == 1:
            ((form, dates),) = self.numbers.items()
            if dates.zone is not None:
                blank = replace(self.blank, kind="datetime", zone=dates.zone)
                return Seen(blank, {"": dates}), form
        return self, ""

    def facts(self, n_rows: int) -> ColumnFacts:
        """Return what must be known to judge whether an audit leaves the column out."""
        if self.blank.kind != "levels":
            ends, values = self.numbers[""].ends, self.numbers[""].values
            low_high = (ends.low, ends.high) if ends.n_finite else (-np.inf, np.inf)
            finite = values[np.isfinite(values)]
            n = n_rows - ends.n_missing
            return ColumnFacts(self.blank.kind, n, ends.n_missing, finite, low_high)
        counts = {level: count for level, count in self.counts.items() if count}
        return ColumnFacts(
            "levels",
            n_rows - self.n_missing,
            self.n_missing,
            n_levels=MOST_LEVELS if self.pruned else len(counts),
            largest=max(counts.values(), default=0),
            levels=tuple(counts),
            pruned=self.pruned,
        )


def _date_readings(variable: Variable, sampled: Ints) -> dict[str, Numbers]:
    """Return the ways in which a batch of text can be read as dates."""
    if not variable.levels:
        none = np.full(len(variable), np.nan)
        return dict.fromkeys(FORMATS, Numbers.of(none, sampled, None))
    if not all(isinstance(level, str) for level in variable.levels):
        return {}
    return {
        form: Numbers.of(np.append(found.seconds, np.nan)[variable.values], sampled, found.zone)
        for form, found in formats_of([str(level) for level in variable.levels]).items()
    }


@dataclass(frozen=True)
class Survey:
    """Facts about rows, from which their bins are chosen; `a + b` combines two batches.

    Attributes
    ----------
    n_rows : int
        The number of rows.
    labels : frozenset
        The labels.
    heaviest : float
        The largest weight.
    units : tuple or None
        All units if there are few, sorted in the end.
    columns : dict of Seen
        The variables.
    score_ends : tuple of two arrays
        The smallest and the largest score of each claim, by its key (`CORRECT` is last).
    p : tuple of ndarray
        The probabilities of sampled rows.
    odd : dict
        Columns that cannot be variables, with the reason.
    roles, part, declared
        When all rows have been seen: their columns, what batches must know of all rows, and the
        order of levels where the type of a column declares one.
    exact : mapping
        Exact summaries, where another pass over the rows has made them.
    """

    n_rows: int = 0
    labels: frozenset[Hashable] = frozenset()
    heaviest: float = -np.inf
    units: tuple[Hashable, ...] | None = ()
    columns: dict[str, Seen] = field(default_factory=dict)
    score_ends: tuple[Floats, Floats] = (np.zeros(0), np.zeros(0))
    p: tuple[Floats, ...] = ()
    odd: Mapping[str, str] = field(default_factory=dict)
    roles: Roles = field(default_factory=lambda: Roles("", ()))
    part: Part = field(default_factory=lambda: Part(()))
    declared: Mapping[str, tuple[Hashable, ...]] = field(default_factory=dict)
    exact: Mapping[Column, Summary] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Predictions, start: int, *, share: float = 1.0) -> Survey:
        """Look at a batch, and keep about this share of its rows."""
        if not len(rows):
            return cls()
        sampled = sampled_rows(len(rows), share, start)
        units = () if rows.unit is None else distinct_groups(rows.unit)
        return cls(
            len(rows),
            frozenset(rows.classes[:MOST_LEVELS]),
            -np.inf if rows.weight is None else float(rows.weight.max()),
            tuple(units) if len(units) <= N_BUCKETS else None,
            {one.name: Seen.of(one, sampled) for one in rows.variables},
            _score_ends(rows.p),
            (rows.p[sampled],),
            rows.odd,
        )

    def __add__(self, other: Survey) -> Survey:
        if not (self.n_rows and other.n_rows):
            return self if self.n_rows else other
        units = None
        if self.units is not None and other.units is not None:
            union = {*self.units, *other.units}
            units = tuple(union) if len(union) <= N_BUCKETS else None
        odd = {**self.odd, **other.odd}
        return Survey(
            self.n_rows + other.n_rows,
            self.labels | other.labels if len(self.labels) < MOST_LEVELS else self.labels,
            max(self.heaviest, other.heaviest),
            units,
            {
                name: one + other.columns[name]
                for name, one in self.columns.items()
                if name not in odd
            },
            (
                np.minimum(self.score_ends[0], other.score_ends[0]),
                np.maximum(self.score_ends[1], other.score_ends[1]),
            ),
            self.p + other.p,
            odd,
        )

    def settled(
        self,
        roles: Roles,
        classes: Sequence[Hashable] | None,
        declared: Mapping[str, tuple[Hashable, ...]],
        *,
        calendar: bool = False,
    ) -> Survey:
        """Find the classes, the scale of weights, and the dates, when all rows have been seen."""
        if not self.n_rows:
            raise InputError(
                "y has no label at any row", "at least one outcome is needed", argument="y"
            )
        if roles.sample_weight is not None and self.heaviest == 0:
            raise no_weight()
        if roles.groups is not None and self.units is not None:
            check_two_groups(len(self.units))
        with rows_numbered_from(None):
            n_classes = 2 if len(roles.p) == 1 else len(roles.p)
            found = Labels.of(list(self.labels)).encode(n_classes, classes)[1]
        by_meaning = classes is None and found in ((0, 1), (False, True))
        exponent = weight_exponent(self.heaviest) if self.heaviest > 0 else 0
        pairs = {name: one.with_dates() for name, one in self.columns.items()}
        columns = {name: one for name, (one, _) in pairs.items()}
        formats = {name: form for name, (_, form) in pairs.items() if form}
        names = tuple(name for name in roles.v if name not in self.odd)
        parts = _calendar(columns, names) if calendar else {}
        return replace(
            self,
            units=tuple(sort_levels(np.zeros(0, np.intp), list(self.units or ()))[1]),
            columns=columns | {part_name(part): one for part, one in parts.items()},
            roles=replace(roles, v=names, must_read=None),
            part=Part(found, by_meaning, exponent, formats, tuple(parts)),
            declared=declared,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The variables: columns, and parts of dates."""
        return (*self.roles.v, *map(part_name, self.part.calendar))

    def bins(self, column: Column, n_fine: int, **options: Any) -> tuple[Any, Any]:
        """Choose the bins of a variable, or of a claim's score, and finer ones."""
        variable = self._blank(column)
        if variable.kind != "levels":
            sample = self._sampled(column)
            summary = self.exact.get(column, sample)
            return fine_bins(
                variable, **options, n_fine=n_fine, summary=summary, fine_summary=sample
            )
        found = self.columns[str(column)]
        is_part = column not in self.roles.v  # of a date, with levels in the calendar's order
        levels = list(found.counts)
        if str(column) in self.declared:
            levels = [level for level in self.declared[str(column)] if level in found.counts]
        elif not is_part:
            levels = sort_levels(np.zeros(0, np.intp), levels)[1]
        counts = np.array([found.counts[level] for level in levels], dtype=np.intp)
        variable = replace(variable, levels=tuple(levels))
        bins: Any = fine_bins(variable, **options, counts=(counts, found.n_missing))[0]
        # There may be more levels than were counted; weekdays and months are those of the sample.
        if found.pruned or is_part:
            bins = replace(bins, open=True)
        return bins, bins

    def left_out(self, rare: float) -> dict[str, str]:
        """Return the columns that an audit leaves out unless they are named, with the reason."""
        facts = {name: self.columns[name].facts(self.n_rows) for name in self.names}
        found = {name: reason_to_leave_out(name, one, rare) for name, one in facts.items()}
        return {name: reason for name, reason in found.items() if reason} | dict(self.odd)

    def date_notes(self) -> tuple[str, ...]:
        """Return notes on text that was read as dates, or could not be."""
        forms = self.part.date_formats
        notes = [
            date_note(name, tuple(self.columns[name].counts), forms.get(name, ""))
            for name in self.roles.v
            if name in forms or self.columns[name].blank.kind == "levels"
        ]
        return tuple(note for note in notes if note)

    def with_exact_edges(
        self, rows: LazyRows, keys: Sequence[int], options: Any, score: Any
    ) -> Survey:
        """Pass over the rows once more, for exact quantiles instead of those of the sample.

        Parameters
        ----------
        rows : LazyRows
            The rows.
        keys : sequence of int
            The claims whose scores are binned.
        options, score : dict
            How variables and scores are binned.
        """

        def choose(column: Column, summary: Summary) -> None:
            how = options if isinstance(column, str) else score
            fine_bins(self._blank(column), **how, summary=summary)

        columns: list[Column] = [*self.names, *keys]
        numeric = [column for column in columns if self._blank(column).kind != "levels"]
        samples = {column: self._sampled(column) for column in numeric}
        samples = {column: sample for column, sample in samples.items() if sample.sampled}
        for column, sample in samples.items():
            choose(column, sample)  # notes which quantiles are needed
        reach = REACH
        for _ in range(MOST_PASSES if samples else 0):
            brackets = {column: sample.brackets(reach) for column, sample in samples.items()}
            exact = self._ranked(rows, brackets)
            try:
                for column, summary in exact.items():
                    choose(column, summary)
            except MissedError:
                reach *= WIDER
                continue
            return replace(self, exact=exact)
        return self

    def _ranked(
        self, rows: LazyRows, brackets: dict[Column, Floats]
    ) -> dict[Column, RankedSummary]:
        """Count the rows of all batches by brackets."""
        work = partial(_ranks_of, brackets=brackets)
        batches = [one for part in map_checked(rows, self.roles, self.part, work) for one in part]
        found = {}
        for column, ends in ((column, self._ends(column)) for column in brackets):
            ranks = [batch[column] for batch in batches]
            if ranks:
                found[column] = RankedSummary(reduce(add, ranks), brackets[column], ends)
            if not ranks or found[column].n_rows != ends.n_finite:
                raise InputError(
                    "data has other rows in each pass over it",
                    "let them be written down before they are read, or omit edges",
                    argument="data",
                )
        return found

    def _blank(self, column: Column) -> Variable:
        if isinstance(column, str):
            return self.columns[column].blank
        return Variable(SCORE, "numeric", np.zeros(0))

    def _ends(self, column: Column) -> Ends:
        if isinstance(column, str):
            return self.columns[column].numbers[""].ends
        # The ends were found before it was known which class comes first.
        turned = len(self.roles.p) == 1 and position_of(self.classes, self.roles.pos_label) == 0
        key = 1 - column if turned and column != CORRECT else column
        low, high = (float(ends[key]) for ends in self.score_ends)
        return Ends(low, high, self.n_rows)

    def _sampled(self, column: Column) -> Summary:
        """Return what the sampled rows say of a numeric variable, or of a claim's score."""
        if isinstance(column, str):
            values = self.columns[column].numbers[""].values
        else:
            p = in_class_order(np.concatenate(self.p), self.classes, self.roles.pos_label)
            blank = Predictions(np.zeros(len(p), np.intp), p, self.classes)
            values = claim_of(blank, column).score
        ends = self._ends(column)
        everything = len(values) == self.n_rows  # then nothing is left to chance
        sampled = not everything and ends.n_finite > 0
        return Summary(values[np.isfinite(values)], ends, sampled=sampled)

    @property
    def classes(self) -> tuple[Hashable, ...]:
        """The labels, in the order of the columns of `p`."""
        return self.part.classes


def survey_of(
    rows: LazyRows,
    roles: Roles,
    classes: Sequence[Hashable] | None,
    n_rows: int,
    *,
    calendar: bool = False,
    declared: Mapping[str, tuple[Hashable, ...]] | None = None,
) -> Survey:
    """Read rows once to find what is needed to choose bins; `declared` has the order of levels."""
    wanted = min(SAMPLE, MOST_SAMPLED // len(roles.columns))
    work = partial(Survey.of, share=min(1.0, wanted / max(n_rows, 1)))
    seen = reduce(add, map_checked(rows, roles, Part(()), work), Survey())
    order = rows.declared_levels() if declared is None else declared
    return seen.settled(roles, classes, order, calendar=calendar)


def _calendar(columns: dict[str, Seen], names: Sequence[str]) -> dict[CalendarPart, Seen]:
    """Return the parts of dates that are variables of their own, as far as the sample tells."""
    found: dict[CalendarPart, Seen] = {}
    for name in names:
        blank = columns[name].blank
        if blank.kind != "datetime":
            continue
        dates = replace(blank, values=columns[name].numbers[""].values)
        ends = columns[name].numbers[""].ends
        for part in calendar_parts(dates, (ends.low, ends.high), names):
            one = Seen.of(part_variable(dates, part), np.arange(len(dates)))
            if one.counts:
                scale = ends.n_finite / sum(one.counts.values())
                counts = {level: round(scale * n) for level, n in one.counts.items()}
                one = replace(one, counts=counts, n_missing=ends.n_missing, numbers={})
            else:
                own = one.numbers[""].ends
                of_all = replace(ends, low=own.low, high=own.high)
                one = replace(one, numbers={"": replace(one.numbers[""], ends=of_all)})
            found[part] = one
    return found


def _ranks_of(
    rows: Predictions, start: int, *, brackets: dict[Column, Floats]
) -> tuple[dict[Column, Ranks], ...]:
    """Count the rows of a batch by the brackets of each column; tuples of batches are added."""
    held: dict[Column, Any] = {one.name: one.values for one in rows.variables}
    held |= {key: claim_of(rows, key).score for key in brackets if isinstance(key, int)}
    found = {column: Ranks.of(held[column], ends) for column, ends in brackets.items() if len(rows)}
    return (found,) if found else ()


def _score_ends(p: Floats) -> tuple[Floats, Floats]:
    """Return the smallest and the largest score of each claim, by its key (`CORRECT` is last)."""
    ends = []
    for start in range(0, len(p), _STRETCH):
        part = p[start : start + _STRETCH]
        # Column by column: numpy is slow at reducing the short rows of an array.
        columns = [1.0 - part, part] if part.ndim == 1 else list(part.T)
        columns.append(reduce(np.maximum, columns))
        ends.append([(column.min(), column.max()) for column in columns])
    found = np.array(ends)
    return found[:, :, 0].min(axis=0), found[:, :, 1].max(axis=0)
