"""A random sample of rows that are not in memory, for what sums cannot answer."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from varcal._engines.protocol import LazyRows
from varcal._evidence._survey.scan import sampled_rows
from varcal._evidence.roles import Roles, rows_numbered_from
from varcal._input.predictions import Predictions


def sample_rows(
    rows: LazyRows, roles: Roles, classes: Sequence[Hashable] | None, n_rows: int
) -> Predictions:
    """Read all rows once and return about `n_rows` of them, at fixed random places.

    Examples
    --------
    >>> import polars as pl
    >>> from varcal._engines.open import lazy_rows
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
