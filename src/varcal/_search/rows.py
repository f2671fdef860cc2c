"""Rows for what sums cannot answer: those in memory, or a sample of rows elsewhere."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from varcal._input.predictions import Predictions
from varcal._sums.gather import refuse_sums, rows_of_call
from varcal._sums.stream import sample_rows
from varcal._text import count

#: Rows that are drawn from a source too large for memory.
SAMPLE_ROWS = 500_000


@dataclass(frozen=True, eq=False)
class Rows:
    """Checked rows and where they came from.

    Attributes
    ----------
    predictions : Predictions
        The rows.
    engine : str
        Where they were.
    n_all : int
        The rows of the source, of which these may be a sample.
    """

    predictions: Predictions
    engine: str
    n_all: int

    @property
    def note(self) -> str:
        """Say if these are a sample of the rows; else empty."""
        if self.n_all == len(self.predictions) + self.predictions.n_dropped:
            return ""
        drawn = count(len(self.predictions), "row")
        return f"Figures are of a random sample: {drawn} of {count(self.n_all)}."


def read_rows(
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
    what: str,
    must_read: tuple[str, ...] | None = None,
) -> Rows:
    """Read and check the rows of a call; `what` names the result that needs them."""
    refuse_sums(y, what)
    found = rows_of_call(
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
    if isinstance(found, Predictions):
        return Rows(found, found.engine, len(found) + found.n_dropped)
    sample = sample_rows(found.rows, found.roles, classes, SAMPLE_ROWS)
    return Rows(sample, found.rows.engine, found.n_all)
