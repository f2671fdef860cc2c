"""Rows as a stream of checked batches, and the sample of them that bins are chosen from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import Any

import narwhals as nw
import numpy as np

from varcal._arrays import AnyArray, Floats
from varcal._input.dates import part_name, parts_of, with_calendar
from varcal._input.groups import N_BUCKETS, check_two_groups, distinct_groups
from varcal._input.labels import Labels, Part, claim_of
from varcal._input.predictions import (
    ALL,
    Predictions,
    in_class_order,
    no_weight,
    weight_exponent,
)
from varcal._input.variables import Variable, sort_levels
from varcal._options import check_choice
from varcal._sums.bins import LevelBins
from varcal._sums.choose_bins import SAMPLE, BinOptions, extreme_values, fine_bins
from varcal._sums.sources import LazyRows, T, batch_columns, joined
from varcal.exceptions import InputError, rows_numbered_from

#: The name of the score if it is the variable.
SCORE = "confidence"
#: The largest number of values in a sample, over all its columns.
MOST_SAMPLED = 50_000_000
#: Distinct labels that are kept: with more, an outcome is not a class.
MOST_LABELS = 100_000

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
    part : Part
        What each batch must know of all rows.
    n_all : int
        Their number, 0 if it has not been counted.
    """

    rows: LazyRows
    roles: Roles
    part: Part = field(default_factory=lambda: Part(()))
    n_all: int = 0

    def map(self, work: Callable[[Predictions, int], T]) -> Iterator[T]:
        """Yield the result of a work for each batch of checked rows."""
        on_checked = partial(_on_checked, roles=self.roles, part=self.part, work=work)
        return self.rows.map(self.roles.columns, on_checked)

    def numbers(self, column: str | int) -> Floats:
        """Read the numbers of one variable, or of a claim's score, at all rows into memory."""
        of_dates = tuple(part for part in self.part.calendar if part_name(part) == column)
        name = of_dates[0][0] if of_dates else column
        roles = replace(self.roles, v=(name,) if isinstance(name, str) else (), groups=None)
        alone = replace(self, roles=roles, part=replace(self.part, calendar=of_dates))
        found = alone.map(partial(_numbers_of, column=column))
        return np.concatenate([values for several in found for values in several])


def _on_checked(
    frame: Any, start: int, *, roles: Roles, part: Part, work: Callable[[Predictions, int], T]
) -> T:
    """Read and check a batch whose first row has the number `start`, and work on its rows."""
    return work(roles.read(batch_columns(frame), part=part), start)


def _numbers_of(rows: Predictions, start: int, *, column: str | int) -> tuple[Floats, ...]:
    """Return the numbers of a column of a batch; tuples of two batches are added up."""
    if not len(rows):
        return ()
    if isinstance(column, int):
        return (claim_of(rows, column).score,)
    return (rows.variables[-1].values.astype(np.float64, copy=False),)  # a part comes last


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
    frames = [frame for several in rows.map(roles.columns, work) for frame in several]
    with rows_numbered_from(None):
        return roles.read(joined(frames), classes=classes)


def _drawn(frame: Any, start: int, *, share: float) -> tuple[Any, ...]:
    """Draw rows of a batch, each with the same probability and independently of the others.

    The result is a tuple of frames, so that those of two batches can be added.
    """
    if share == 1.0:
        return (frame,)
    batch = nw.from_native(frame, eager_only=True)
    rng = np.random.default_rng([_SEED, start])
    many = rng.binomial(len(batch), share)
    rows = np.sort(rng.choice(len(batch), many, replace=False, shuffle=False))
    return (batch[rows, :].to_native(),)


@dataclass(frozen=True)
class Seen:
    """What a first pass has found in some rows; `a + b` combines two batches.

    Attributes
    ----------
    n_rows : int
        Their number.
    labels : frozenset
        The labels.
    heaviest : float
        The largest weight.
    units : tuple or None
        All units if there are few.
    ends : mapping
        Extreme values of each variable (`extreme_values`).
    p_ends : ndarray
        The probabilities of rows where a score is extreme.
    odd : mapping
        Columns that cannot be variables, with the reason.
    frames : tuple
        Rows that have been drawn at random.
    """

    n_rows: int = 0
    labels: frozenset[Hashable] = frozenset()
    heaviest: float = -np.inf
    units: tuple[Hashable, ...] | None = ()
    ends: Mapping[str, AnyArray] = field(default_factory=dict)
    p_ends: Floats = field(default_factory=lambda: np.zeros(0))
    odd: Mapping[str, str] = field(default_factory=dict)
    frames: tuple[Any, ...] = ()

    @classmethod
    def of(cls, frame: Any, start: int, *, roles: Roles, share: float) -> Seen:
        """Check a batch, and draw about this share of its rows."""
        rows = roles.read(batch_columns(frame), part=Part(()))
        if not len(rows):
            return cls()
        units = () if rows.unit is None else distinct_groups(rows.unit)
        return cls(
            len(rows),
            frozenset(rows.classes[:MOST_LABELS]),
            -np.inf if rows.weight is None else float(rows.weight.max()),
            tuple(units) if len(units) <= N_BUCKETS else None,
            {one.name: _ends(one) for one in rows.variables},
            _extreme_rows(rows.p),
            rows.odd,
            _drawn(frame, start, share=share),
        )

    def __add__(self, other: Seen) -> Seen:
        if not (self.n_rows and other.n_rows):
            return self if self.n_rows else other
        units = None
        if self.units is not None and other.units is not None:
            union = {*self.units, *other.units}
            units = tuple(union) if len(union) <= N_BUCKETS else None
        both = self.ends.keys() & other.ends.keys()
        joined = {name: np.concatenate([self.ends[name], other.ends[name]]) for name in both}
        return Seen(
            self.n_rows + other.n_rows,
            self.labels | other.labels if len(self.labels) < MOST_LABELS else self.labels,
            max(self.heaviest, other.heaviest),
            units,
            {name: extreme_values(ends) for name, ends in joined.items()},
            _extreme_rows(np.concatenate([self.p_ends, other.p_ends])),
            {**self.odd, **other.odd},
            self.frames + other.frames,
        )


def _ends(variable: Variable) -> AnyArray:
    """Return the extreme numbers of a variable; of levels, whether one is missing."""
    if variable.kind == "levels":
        return np.full(int(variable.missing().any()), np.nan)
    return extreme_values(variable.values)


def _extreme_rows(p: Floats) -> Floats:
    """Return the probabilities of rows where the score of a claim is smallest or largest."""
    # Column by column: numpy is slow at reducing the short rows of an array.
    columns = [p, np.abs(p - 0.5)] if p.ndim == 1 else [*p.T, reduce(np.maximum, p.T)]
    return p[sorted({int(find(one)) for one in columns for find in (np.argmin, np.argmax)})]


@dataclass(frozen=True, eq=False)
class Sample:
    """The rows that bins are chosen from, in place of all rows of a stream.

    Attributes
    ----------
    stream : Stream
        All rows.
    variables : tuple of Variable
        The variables, and the parts of dates: of sampled rows and at their ends.
    sampled : bool
        Whether some rows are not in the sample.
    units : tuple
        All units if there are few, sorted.
    odd : mapping
        Columns that cannot be variables, with the reason.
    """

    stream: Stream
    variables: tuple[Variable, ...]
    sampled: bool
    units: tuple[Hashable, ...]
    odd: Mapping[str, str]
    _p: Floats

    @classmethod
    def of(
        cls, stream: Stream, classes: Sequence[Hashable] | None, *, calendar: bool = False
    ) -> Sample:
        """Read rows once; `calendar` says whether parts of dates are variables, too."""
        rows, roles = stream.rows, stream.roles
        wanted = min(SAMPLE, MOST_SAMPLED // len(roles.columns))
        share = min(1.0, wanted / max(stream.n_all, 1))
        look = partial(Seen.of, roles=roles, share=share)
        seen = reduce(add, rows.map(roles.columns, look), Seen())
        if not seen.n_rows:
            raise InputError(
                "y has no label at any row", "at least one outcome is needed", argument="y"
            )
        if roles.sample_weight is not None and seen.heaviest == 0:
            raise no_weight()
        if roles.groups is not None and seen.units is not None:
            check_two_groups(len(seen.units))
        roles = replace(
            roles, v=tuple(name for name in roles.v if name not in seen.odd), must_read=None
        )
        found = classes
        if share < 1.0:  # there may be labels that are not in the sample
            with rows_numbered_from(None):
                n_classes = 2 if len(roles.p) == 1 else len(roles.p)
                found = Labels.of(list(seen.labels)).encode(n_classes, classes)[1]
        with rows_numbered_from(0 if share == 1.0 and rows.row_numbers_known else None):
            drawn = roles.read(joined(seen.frames), classes=found)
        ends = seen.ends if share < 1.0 else {}
        own = [_extended(one, ends.get(one.name, np.zeros(0))) for one in drawn.variables]
        p_ends = in_class_order(seen.p_ends, drawn.classes, roles.pos_label)
        part = Part(
            drawn.classes,
            classes is None and drawn.classes in ((0, 1), (False, True)),
            weight_exponent(seen.heaviest) if seen.heaviest > 0 else 0,
            {one.name: one.date_format for one in own if one.date_format},
            tuple(parts_of(own)) if calendar else (),
        )
        return cls(
            replace(stream, roles=roles, part=part),
            with_calendar(own) if calendar else tuple(own),
            share < 1.0,
            tuple(sort_levels(np.zeros(0, np.intp), list(seen.units or ()))[1]),
            seen.odd,
            np.concatenate([drawn.p, p_ends]) if share < 1.0 else drawn.p,
        )

    def score(self, key: int) -> Variable:
        """Return the score of a claim."""
        classes = self.stream.part.classes
        rows = Predictions(np.zeros(len(self._p), np.intp), self._p, classes)
        return Variable(SCORE, "numeric", claim_of(rows, key).score)

    def bins(
        self, variable: Variable, column: str | int, options: BinOptions, n_fine: int
    ) -> tuple[Any, Any]:
        """Choose the bins of a variable, or of a claim's score, and finer ones."""
        sampled = self.sampled
        if sampled and options["edges"] == "exact" and variable.kind != "levels":
            variable = replace(variable, values=self.stream.numbers(column))
            sampled = False
        coarse, fine = fine_bins(variable, **options, n_fine=n_fine, sampled=sampled)
        if self.sampled and isinstance(coarse, LevelBins):  # there may be more levels
            coarse = fine = replace(coarse, open=True)
        return coarse, fine


def _extended(variable: Variable, ends: AnyArray) -> Variable:
    """Return a variable with more values; of levels, missing ones."""
    if variable.kind == "levels":
        ends = np.full(len(ends), -1)
    return replace(variable, values=np.concatenate([variable.values, ends]), text=None)
