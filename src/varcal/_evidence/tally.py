"""Tally: the second pass over lazy rows, which sums them into bins."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import AnyArray, Floats
from varcal._binning.bins import Bins
from varcal._binning.stats import FIELDS, BinnedStats
from varcal._engines.batch_columns import batch_columns
from varcal._engines.kernel_numpy import collect
from varcal._evidence.roles import Roles, told_at
from varcal._input.events import CORRECT, Claim, claim_of
from varcal._input.groups import N_BUCKETS, buckets
from varcal._input.part import Part
from varcal._input.predictions import Predictions
from varcal._input.variables import Kind, Variable
from varcal.exceptions import InputError


@dataclass(frozen=True)
class Wanted:
    """One table: a claim over bins.

    Attributes
    ----------
    key : int
        The claim (`claim_keys`).
    names : tuple of str
        The variables that are binned together; none for the claim's own score.
    fine, coarse : Bins
        The bins that rows are summed into, and those of the figures.
    """

    key: int
    names: tuple[str, ...]
    fine: Bins
    coarse: Bins

    @property
    def slot(self) -> tuple[int, tuple[str, ...]]:
        """What the table is found by."""
        return self.key, self.names


@dataclass(frozen=True, eq=False)
class Sums:
    """Rows, rows left out, and the sums of each wanted table; `a + b` of two batches."""

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
class Tally:
    """Sum the rows of a batch into every wanted table.

    Attributes
    ----------
    roles, part
        The columns, and what is known of all rows.
    kinds : dict
        The kind of each variable.
    wanted : tuple of Wanted
        The tables.
    units : tuple or None
        Every unit, sorted, where there are few; none for buckets by hash.
    counted : bool
        Whether `start` is the number of a row.
    moments : bool
        Whether all fields are summed.
    n_all : int, optional
        Rows in all batches, where that is known.
    """

    roles: Roles
    part: Part
    kinds: dict[str, Kind]
    wanted: tuple[Wanted, ...]
    units: tuple[Hashable, ...] = ()
    counted: bool = True
    moments: bool = True
    n_all: int | None = None

    def __call__(self, frame: Any, start: int) -> Sums:
        """Sum rows from the one numbered `start`."""
        counts, *tables = self.parts(frame, start)
        return self.of_parts([counts, *(tables or self.nothing().tables)])

    def parts(self, frame: Any, start: int) -> Iterator[AnyArray]:
        """Yield the numbers of rows and of rows left out, and then table by table, if any."""
        with told_at(start if self.counted else None):
            rows = self.roles.read(batch_columns(frame), part=self.part)
        yield np.array([len(rows), rows.n_dropped])
        if not len(rows):
            return
        unit_buckets = buckets(rows.unit, self.units)
        variables = {one.name: self._checked(one) for one in rows.variables}
        claims: dict[int, Claim] = {}
        for one, rival in self._with_rivals(rows):
            key = one.key if rival is None else 1
            if key not in claims:
                claims[key] = claim_of(rows, key)
            claim = claims[key]
            along = [variables[name] for name in one.names]
            along = along or [Variable("confidence", "numeric", claim.score)]
            stats = collect(
                one.fine,
                along,
                claim.score,
                claim.hit,
                rows.weight,
                *(unit_buckets if rival is None else (rows.p > 0.5, 2)),
                moments=self.moments,
                n_all=self.n_all,
            )
            yield from [stats.sums] if rival is None else _both(stats, one, rival)

    def _with_rivals(self, rows: Predictions) -> Iterator[tuple[Wanted, Wanted | None]]:
        """Yield tables, each with the next one if both can be made from the same sums."""
        two_claims = rows.p.ndim == 1 and rows.unit is None
        waiting = list(self.wanted)
        while waiting:
            one = waiting.pop(0)
            paired = two_claims and waiting and _is_rival(one, waiting[0])
            yield one, waiting.pop(0) if paired else None

    def no_parts(self) -> list[AnyArray]:
        """Return what parts are added to."""
        return [np.zeros(2, dtype=np.int64), *self.nothing().tables]

    def of_parts(self, parts: Sequence[AnyArray]) -> Sums:
        """Return the sums whose parts these are."""
        n_rows, n_dropped = parts[0].tolist()
        return Sums(n_rows, n_dropped, tuple(parts[1:]))

    def nothing(self) -> Sums:
        """Return the sums of no rows."""
        many = 1 if self.roles.groups is None else len(self.units) or N_BUCKETS
        shapes = [(len(FIELDS), many, one.fine.size) for one in self.wanted]
        return Sums(0, 0, tuple(np.zeros(shape) for shape in shapes))

    @property
    def width(self) -> int:
        """The number of sums in a cell."""
        return len(FIELDS)

    def cells(self, sums: Sums) -> tuple[NDArray[np.int64], Floats]:
        """Return the places of the cells that hold rows, and their sums, a row each.

        The first cell holds the numbers of rows and of rows left out.
        """
        first = np.zeros((1, len(FIELDS)))
        first[0, :2] = sums.n_rows, sums.n_dropped
        values = np.concatenate([first, *(_rows(table) for table in sums.tables)])
        place = np.flatnonzero(values[:, 0])
        place = np.union1d(place, [0])  # of a part whose rows are all left out
        return place, values[place]

    def of_cells(self, place: NDArray[np.int64], sums: Floats) -> Sums:
        """Return the sums whose cells these are."""
        nothing = self.nothing().tables
        values = np.zeros((1 + sum(table[0].size for table in nothing), len(FIELDS)))
        values[place] = sums
        ends = np.cumsum([1, *(table[0].size for table in nothing)])
        tables = tuple(
            values[start : start + table[0].size].T.reshape(table.shape)
            for start, table in zip(ends, nothing, strict=False)
        )
        return Sums(int(values[0, 0]), int(values[0, 1]), tables)

    def _checked(self, variable: Variable) -> Variable:
        kind = self.kinds.get(variable.name, variable.kind)
        if variable.kind == kind:
            return variable
        if variable.missing().all():  # a batch may hold nothing that tells its type
            blank = np.full(len(variable), -1 if kind == "levels" else np.nan)
            values = blank.astype(np.intp) if kind == "levels" else blank
            return Variable(variable.name, kind, values)
        raise InputError(
            f"variable {variable.name!r} is {variable.kind}, and its bins are {kind}",
            "bring the batches to one type",
        )


def _is_rival(one: Wanted, other: Wanted) -> bool:
    """Tell whether a table is about the other claim of two classes, over the same bins."""
    same = bool(one.names) and one.names == other.names and other.fine in (one.fine, one.coarse)
    return same and {one.key, other.key} == {CORRECT, 1}


def _both(stats: BinnedStats, one: Wanted, rival: Wanted) -> list[Floats]:
    """Return two tables from the sums of "positive" where p is at most 0.5, and above it.

    Above 0.5 "correct" claims the same as "positive"; elsewhere it has score 1 − p and is a hit
    where the other is not. These sums differ from those of its own scores by rounding only.
    """
    low, high = (stats.sums[:, k : k + 1] for k in range(2))
    turned = low.copy()
    for name, whole in _TURNED.items():
        turned[FIELDS.index(name)] = low[FIELDS.index(whole)] - low[FIELDS.index(name)]
    sums = {1: low + high, CORRECT: turned + high}
    return [sums[one.key], BinnedStats(one.fine, sums[rival.key]).coarsen(rival.fine).sums]


#: The sums that differ for 1 − score and 1 − hit, and what they are subtracted from.
_TURNED = {"hit": "weight", "score": "weight", "hit2": "weight2", "score2": "weight2"}


def _rows(table: Floats) -> Floats:
    """Return the cells of a table, a row each."""
    return table.reshape(len(FIELDS), -1).T
