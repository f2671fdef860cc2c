"""Roles: which columns of lazy rows are the outcome, the probabilities and the variables."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from varcal._input.labels import Part
from varcal._input.predictions import ALL, Predictions
from varcal._options import check_choice
from varcal.exceptions import InputError


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
        *,
        from_logits: bool = False,
        unlabelled: str = "raise",
        pos_label: Hashable = None,
        must_read: tuple[str, ...] | None = None,
    ) -> Roles:
        """Find the columns that arguments name.

        Examples
        --------
        >>> Roles.of(["y", "p", "age", "sex"], "y", "p", ALL).v
        ('age', 'sex')
        """
        check_choice("unlabelled", unlabelled, ["raise", "drop"])
        given = {"y": y, "p": p, "sample_weight": sample_weight, "groups": groups}
        if v is not ALL:
            given["v"] = v
        names: dict[str, tuple[str, ...]] = {}
        for argument, value in given.items():
            names[argument] = _names(argument, value)
            for name in names[argument]:
                if name not in known:
                    raise InputError.no_column(name, known, argument)
            if len(set(names[argument])) < len(names[argument]):
                raise InputError(
                    f"{argument} names a column twice: {list(names[argument])}",
                    "name each column once",
                    argument,
                )
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
        return cls(
            names["y"][0],
            names["p"],
            names["v"],
            names["sample_weight"][0] if names["sample_weight"] else None,
            names["groups"][0] if names["groups"] else None,
            from_logits,
            unlabelled,
            pos_label,
            must_read,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns with a role, without duplicates."""
        others = [name for name in (self.sample_weight, self.groups) if name is not None]
        return tuple(dict.fromkeys([self.y, *self.p, *self.v, *others]))

    def read(
        self,
        frame: Any,
        *,
        classes: Sequence[Any] | None = None,
        part: Part | None = None,
    ) -> Predictions:
        """Read and check rows."""
        return Predictions.of(
            self.y,
            list(self.p),
            list(self.v) or None,
            data=frame,
            classes=classes,
            pos_label=self.pos_label,
            sample_weight=self.sample_weight,
            groups=self.groups,
            from_logits=self.from_logits,
            unlabelled=self.unlabelled,
            part=part,
            must_read=self.must_read,
        )


@contextmanager
def rows_numbered_from(start: int | None) -> Iterator[None]:
    """Add `start` to row numbers in error messages, or remove them if it is None.

    A batch numbers its rows from 0; messages should give the number among all rows.
    """
    try:
        yield
    except InputError as error:
        row = r" at row (\d+)"
        message = re.sub(r" \([\d,]+ such rows\)", "", error.message)
        if start is None:
            message = re.sub(row, "", message)
        else:
            message = re.sub(row, lambda m: f" at row {int(m[1]) + start}", message)
        raise error.reworded(message) from None


def _names(argument: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    several = argument in ("p", "v")
    if isinstance(value, list | tuple) and several and all(isinstance(x, str) for x in value):
        return tuple(value)
    raise InputError(
        f"{argument} is a {type(value).__name__}, but data is read in batches",
        f"give {'column names' if several else 'the name of a column'} of data",
        argument,
    )
