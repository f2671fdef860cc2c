"""The rows of a call: in memory and checked, or elsewhere and too many for memory."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from varcal._input.frames import check_indexes
from varcal._input.predictions import Predictions
from varcal._sums.collected import Collected
from varcal._sums.open import lazy_rows
from varcal._sums.protocol import LazyRows, fits_in_memory
from varcal._sums.roles import Roles, rows_numbered_from
from varcal._sums.scan import sampled_rows
from varcal.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Few:
    """Rows in memory.

    Attributes
    ----------
    rows : Predictions
        The rows.
    engine : str
        Where they were.
    n_all : int
        Their number, those without a label included.
    """

    rows: Predictions
    engine: str
    n_all: int


@dataclass(frozen=True, eq=False)
class Many:
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


def refuse_sums(y: object, what: str) -> None:
    """Refuse collected statistics instead of rows; `what` names the function that needs rows."""
    if isinstance(y, Collected):
        raise InputError(
            f"y is collected statistics; {what} needs rows",
            "give the outcomes and probabilities, or data= with the names of their columns",
            argument="y",
        )


def rows_of_call(
    y: object,
    p: object,
    v: object,
    *,
    data: object,
    classes: Sequence[Hashable] | None,
    pos_label: Hashable,
    sample_weight: object,
    groups: object,
    from_logits: bool,
    unlabelled: str,
    must_read: tuple[str, ...] | None = None,
) -> Few | Many:
    """Return the rows that the arguments of a call name."""
    lazy = lazy_rows(data)
    if lazy is None:
        arrays = {"y": y, "p": p, "X": v, "sample_weight": sample_weight, "groups": groups}
        check_indexes(arrays if isinstance(data, Mapping) else arrays | {"data": data})
        rows = Predictions.of(
            y,
            p,
            v,
            data=data,
            classes=classes,
            pos_label=pos_label,
            sample_weight=sample_weight,
            groups=groups,
            from_logits=from_logits,
            unlabelled=unlabelled,
            must_read=must_read,
        )
        return Few(rows, "numpy", len(rows) + rows.n_dropped)
    roles = Roles.of(
        lazy.columns,
        y,
        p,
        v,
        sample_weight,
        groups,
        from_logits=from_logits,
        unlabelled=unlabelled,
        pos_label=pos_label,
        must_read=must_read,
    )
    n_all = lazy.count()
    if fits_in_memory(n_all, len(roles.columns)):
        return Few(roles.read(lazy.read(roles.columns), classes=classes), lazy.engine, n_all)
    return Many(lazy, roles, n_all)


def sample_rows(
    rows: LazyRows, roles: Roles, classes: Sequence[Hashable] | None, n_rows: int
) -> Predictions:
    """Read all rows once and return about `n_rows` of them, at fixed random places.

    Examples
    --------
    >>> import polars as pl
    >>> from varcal._sums.open import lazy_rows
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
