"""Checks: how far off a model is on average, by score and along variables, against the limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from varcal._audit.verdicts import OFF
from varcal._text.gaps import CLASS

if TYPE_CHECKING:
    from varcal._audit.audit_result import Audit
    from varcal._audit.audit_row import AuditRow

#: Where an interval lies: below the limit, on both sides of it, above it.
BELOW, EITHER_SIDE, ABOVE = (
    "below the limit",
    "may be on either side of the limit",
    "surely above the limit",
)
#: A mark for each, and one of ASCII characters for terminals.
STATE_MARKS = {BELOW: "✓", EITHER_SIDE: "◐", ABOVE: "✕"}
PLAIN_MARKS = {BELOW: "ok", EITHER_SIDE: "~", ABOVE: "x"}


@dataclass(frozen=True)
class Cell:
    """One figure of a check.

    Attributes
    ----------
    state : str
        Where its interval lies.
    value, low, high : float
        The figure and its interval.
    signed : bool
        Whether its sign says something.
    label : str
        The class that it is about, if that is one of several.
    """

    state: str
    value: float
    low: float
    high: float
    signed: bool = False
    label: str = ""


@dataclass(frozen=True)
class Off:
    """How many variables are surely off by more than the limit."""

    n: int
    of: int


@dataclass(frozen=True)
class Check:
    """One line of the checks: a figure for each claim, and after a repair.

    Attributes
    ----------
    name, note : str
        What is checked, and the same in other words.
    cells : tuple
        One per column.
    """

    name: str
    note: str
    cells: tuple[Cell | Off, ...]


@dataclass(frozen=True)
class Column:
    """A column of the checks: one claim, or the worst of several."""

    title: str
    claims: tuple[str, ...]
    after_repair: bool = False


def columns_of(audit: Audit) -> tuple[Column, ...]:
    """Return a column for each of two claims; with more classes, one for the worst class."""
    classes = tuple(claim for claim in audit.claims if claim.startswith(CLASS))
    columns = [
        Column(claim.capitalize(), (claim,)) for claim in audit.claims if claim not in classes
    ]
    return (*columns, Column("Worst class", classes)) if classes else tuple(columns)


def average(audit: Audit, claims: tuple[str, ...]) -> Cell:
    """Return the gap over all rows, the largest of some claims."""
    one = max((audit.claims[claim] for claim in claims), key=lambda one: abs(one.gap))
    label = one.label if one.claim.startswith(CLASS) else ""
    state = signed_state(one.gap_low, one.gap_high, audit.limit)
    return Cell(state, one.gap, one.gap_low, one.gap_high, signed=True, label=label)


def by_score(audit: Audit, claims: tuple[str, ...]) -> Cell:
    """Return ECE, the largest of some claims."""
    one = max((audit.claims[claim] for claim in claims), key=lambda one: one.score.ece.debiased)
    label = one.label if one.claim.startswith(CLASS) else ""
    ece = one.score.ece
    return Cell(
        state_of(ece.low, ece.high, audit.limit), ece.debiased, ece.low, ece.high, label=label
    )


def along_variables(audit: Audit, claims: tuple[str, ...]) -> Cell:
    """Return the largest uneven error along any variable, for some claims.

    The intervals of the variables hold for all of them at once, so that the largest of the lower
    and of the upper ends are an interval of the largest error.
    """
    figures = [one for row in audit.rows for one in hidden_errors(row, claims)]
    value, low, high = (max(ends) for ends in zip(*figures, strict=True))
    return Cell(state_of(low, high, audit.limit), value, low, high)


def rows_off(audit: Audit, claims: tuple[str, ...]) -> list[AuditRow]:
    """Return the variables along which one of some claims is surely off by more than the limit."""
    return [
        row
        for row in audit.rows
        if row.verdict == OFF and any(low > audit.limit for _, low, _ in hidden_errors(row, claims))
    ]


def variables_off(audit: Audit, claims: tuple[str, ...]) -> Off:
    """Count the variables of `rows_off`."""
    return Off(len(rows_off(audit, claims)), len(audit.rows))


def hidden_errors(row: AuditRow, claims: tuple[str, ...]) -> list[tuple[float, float, float]]:
    """Return the uneven error along a variable with its interval, for each of some claims."""
    own = [(row.uneven.debiased, row.low, row.high)] if row.claim in claims else []
    return own + [
        (one.uneven.debiased, one.low, one.high) for one in row.others if one.claim in claims
    ]


def state_of(low: float, high: float, limit: float) -> str:
    """Say where the interval of an error lies.

    >>> state_of(0.03, 0.04, 0.02), state_of(0.0, 0.02, 0.02)
    ('surely above the limit', 'below the limit')
    """
    if low > limit:
        return ABOVE
    return BELOW if high <= limit else EITHER_SIDE


def signed_state(low: float, high: float, limit: float) -> str:
    """Say where the interval of a gap lies.

    >>> signed_state(-0.04, -0.03, 0.02), signed_state(-0.03, 0.01, 0.02)
    ('surely above the limit', 'may be on either side of the limit')
    """
    if low > 0:
        return state_of(low, high, limit)
    return state_of(-high if high < 0 else 0.0, max(-low, high), limit)
