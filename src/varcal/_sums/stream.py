"""Rows elsewhere as a stream of checked batches: which columns they have, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from varcal._arrays import Ints
from varcal._input.labels import Part
from varcal._input.predictions import ALL, Predictions
from varcal._options import check_choice
from varcal._sums.sources import LazyRows, T, batch_columns
from varcal.exceptions import InputError, argument_name, rows_numbered_from

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


@dataclass(frozen=True)
class OnChecked:
    """The work that reads and checks a batch, and then does another work on its rows."""

    roles: Roles
    part: Part
    row_numbers_known: bool
    work: Callable[[Predictions, int], Any]

    def __call__(self, frame: Any, start: int) -> Any:
        """Work on a batch whose first row has the number `start`."""
        with rows_numbered_from(start if self.row_numbers_known else None):
            return self.work(self.roles.read(batch_columns(frame), part=self.part), start)


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
    return rows.map(roles.columns, OnChecked(roles, part, rows.row_numbers_known, work))


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
    work = RowSample(min(1.0, n_rows / max(rows.count(), 1)))
    frames = [frame for part in rows.map(roles.columns, work) for frame in part]
    drawn = nw.concat([nw.from_native(frame, eager_only=True) for frame in frames])
    with rows_numbered_from(None):
        return roles.read(drawn.to_native(), classes=classes)


@dataclass(frozen=True)
class RowSample:
    """Draw rows of a batch, each with the same probability."""

    share: float

    def __call__(self, frame: Any, start: int) -> tuple[Any, ...]:
        """Return the rows as a frame; tuples of two batches are added up."""
        batch = nw.from_native(frame, eager_only=True)
        return (batch[sampled_rows(len(batch), self.share, start).tolist(), :].to_native(),)


def sampled_rows(n: int, share: float, start: int) -> Ints:
    """Draw rows of a batch, each with the same probability and independently of the others."""
    rng = np.random.default_rng([_SEED, start])
    rows = rng.choice(n, rng.binomial(n, share), replace=False, shuffle=False)
    rows.sort()
    return rows
