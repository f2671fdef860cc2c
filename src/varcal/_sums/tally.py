"""Tally: the second pass over lazy rows, which sums them into bins."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import AnyArray, Floats
from varcal._input.events import Claim, claim_of, predicted
from varcal._input.groups import N_BUCKETS, buckets, sided_buckets
from varcal._input.labels import Part
from varcal._input.variables import Kind, Variable
from varcal._sums.bets import BET_FIELDS, BetTable, sum_bets
from varcal._sums.bins import Bins
from varcal._sums.kernel_numpy import bin_rows
from varcal._sums.protocol import batch_columns
from varcal._sums.roles import Roles, rows_numbered_from
from varcal._sums.stats import FIELDS
from varcal.exceptions import InputError


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
class Tally:
    """Sum the rows of a batch into every wanted table.

    Attributes
    ----------
    roles, part
        The columns, and facts about all rows.
    kinds : dict
        The kind of each variable.
    wanted : tuple of Wanted
        The tables.
    units : tuple or None
        All units, sorted, if there are few; if it is empty, units are hashed into buckets.
    row_numbers_known : bool
        Whether `start` is the number of a row.
    moments : bool
        Whether all fields are summed.
    weight_cap : float, optional
        The largest weight that a row may have.
    """

    roles: Roles
    part: Part
    kinds: dict[str, Kind]
    wanted: tuple[Wanted, ...]
    units: tuple[Hashable, ...] = ()
    row_numbers_known: bool = True
    moments: bool = True
    weight_cap: float | None = None

    def __call__(self, frame: Any, start: int) -> Sums:
        """Sum a batch whose first row has the number `start`."""
        counts, *tables = self.parts(frame, start)
        return self.of_parts([counts, *(tables or self.nothing().tables)])

    def parts(self, frame: Any, start: int) -> Iterator[AnyArray]:
        """Yield the numbers of rows and of dropped rows, and then each table if there are rows."""
        with rows_numbered_from(start if self.row_numbers_known else None):
            rows = self.roles.read(batch_columns(frame), part=self.part)
        yield np.array([len(rows), rows.n_dropped])
        if not len(rows):
            return
        size = self._sizes(rows.weight, start)
        unit_buckets = buckets(rows.unit, self.units)
        variables = {variable.name: self._checked(variable) for variable in rows.variables}
        claims: dict[int, Claim] = {}
        for table in (one for one in self.wanted if one.limit is None):
            if table.key not in claims:
                claims[table.key] = claim_of(rows, table.key)
            claim = claims[table.key]
            along = [variables[name] for name in table.names]
            along = along or [Variable("confidence", "numeric", claim.score)]
            side = predicted(rows, table.key) if table.sided else None
            stats = bin_rows(
                table.fine,
                along,
                claim.score,
                claim.hit,
                rows.weight,
                *sided_buckets(side, *unit_buckets),
                moments=self.moments,
            )
            yield stats.sums
        bets = [table for table in self.wanted if table.limit is not None]
        for key, tables in groupby(bets, lambda one: one.key):
            claim, several = claims.get(key) or claim_of(rows, key), list(tables)
            side = predicted(rows, key)
            yield from sum_bets(
                [
                    BetTable(one.fine, variables[one.names[0]], side if one.sided else None)
                    for one in several
                ],
                claim.scores,
                claim.hits,
                size,
                float(several[0].limit or 0.0),
            )

    def _sizes(self, weight: Floats | None, start: int) -> Floats | None:
        """Return weights as parts of the largest one that is allowed; refuse larger ones."""
        if weight is None or self.weight_cap is None:
            return None
        cap = float(np.ldexp(self.weight_cap, -self.part.exponent))
        above = weight > cap
        if above.any():
            row = int(above.argmax())
            with rows_numbered_from(start if self.row_numbers_known else None):
                raise InputError.at_row(
                    "sample_weight",
                    f"is above weight_cap, {self.weight_cap:g}",
                    float(np.ldexp(weight[row], self.part.exponent)),
                    row,
                    int(above.sum()),
                    "choose the bins with a larger weight_cap: make_bins(…, weight_cap=…)",
                )
        return weight / cap

    def no_parts(self) -> list[AnyArray]:
        """Return the parts of the sums of no rows."""
        return [np.zeros(2, dtype=np.int64), *self.nothing().tables]

    def of_parts(self, parts: Sequence[AnyArray]) -> Sums:
        """Return the sums that consist of these parts."""
        n_rows, n_dropped = parts[0].tolist()
        return Sums(n_rows, n_dropped, tuple(parts[1:]))

    def nothing(self) -> Sums:
        """Return the sums of no rows."""
        n_buckets = 1 if self.roles.groups is None else len(self.units) or N_BUCKETS
        shapes = [
            (len(FIELDS), n_buckets * (1 + table.sided), table.fine.size) for table in self.wanted
        ]
        return Sums(0, 0, tuple(np.zeros(shape) for shape in shapes))

    @property
    def width(self) -> int:
        """The number of sums per cell."""
        return len(FIELDS)

    def cells(self, sums: Sums) -> tuple[NDArray[np.int64], Floats]:
        """Return the positions and the sums, one row per cell, of the cells with rows.

        The first cell has the numbers of rows and of dropped rows.
        """
        first = np.zeros((1, len(FIELDS)))
        first[0, :2] = sums.n_rows, sums.n_dropped
        values = np.concatenate([first, *(_rows(table) for table in sums.tables)])
        place = np.flatnonzero(values[:, 0])
        place = np.union1d(place, [0])  # even if all rows of a batch are dropped
        return place, values[place]

    def of_cells(self, place: NDArray[np.int64], sums: Floats) -> Sums:
        """Return the sums that consist of these cells."""
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
        if variable.missing().all():  # a batch without values has no type
            blank = np.full(len(variable), -1 if kind == "levels" else np.nan)
            values = blank.astype(np.intp) if kind == "levels" else blank
            return Variable(variable.name, kind, values)
        raise InputError(
            f"variable {variable.name!r} is {variable.kind}, but its bins are {kind}",
            "convert all batches to the same type",
        )


def _rows(table: Floats) -> Floats:
    """Return a table as one row per cell."""
    return table.reshape(len(FIELDS), -1).T
