"""The lede: the finding of an audit in about three sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from varcal._audit.screen.judgement import (
    CANNOT_TELL,
    FINE,
    Judgement,
    least_known,
    score_trend,
    worst_hidden_error,
)
from varcal._text.gaps import CONFIDENCE, RISK, gap_side
from varcal._text.numbers import count, interval, limit_text, percent, points
from varcal._text.sentences import Named, Sentence, Strong, StrongName, cut

if TYPE_CHECKING:
    from varcal._audit.audit_result import Audit
    from varcal._audit.audit_row import AuditRow, ClaimSummary
    from varcal._audit.repair import Repair

#: A repair brings the worst uneven error down if at most this share of it is left.
LESS = 0.75


def lede(audit: Audit, found: Judgement, attempt: Repair | None) -> Sentence:
    """Say what was found: on average, by score, along which variables, and what a repair does."""
    one = found.biased or found.by_score or next(iter(audit.claims.values()))
    if found.badge == CANNOT_TELL:
        return Sentence.of(_too_few(audit, found), " ", _overall(one), _score(one, bound=True), ".")
    parts: list[str | Sentence] = [_overall(one)]
    if found.biased is not None:
        parts.append(f": {gap_side(one.gap, one.claim)} by {points(abs(one.gap))} points")
    parts += [_score(one, bound=found.badge == FINE), ". "]
    if found.off:
        parts += [_off(audit, found), _repaired(attempt)]
    elif found.badge == FINE:
        parts.append(_fine(audit))
    else:
        parts += [_trend(found), _not_off(audit, found)]
    return Sentence.of(*parts)


def _overall(one: ClaimSummary) -> Sentence:
    predicted, observed = percent(one.predicted), percent(one.observed)
    if one.claim == CONFIDENCE:
        return Sentence.of(
            f"Overall the model is {predicted} sure of its answers and right {observed} of the time"
        )
    if one.claim == RISK:
        return Sentence.of(f"Overall the model says {predicted} and {observed} happens")
    return Sentence.of(
        f"Overall the model says {predicted} for class ",
        Named(cut(one.label)),
        f" and {observed} happens",
    )


def _score(one: ClaimSummary, *, bound: bool) -> str:
    ece = one.score.ece
    most = f", at most {points(ece.high)}" if bound else ""
    return f"; by score it is off by {points(ece.debiased)} points (ECE){most}"


def _off(audit: Audit, found: Judgement) -> Sentence:
    """Name the variables along which the model is surely off by more than the limit."""
    limit, off, many = limit_text(audit.limit), found.off, len(audit.rows)
    also = "also " if found.biased is not None else ""
    more = " once that is taken off" if found.biased is not None else ""
    if many == 1:
        return Sentence.of(
            "But along ",
            StrongName(cut(off[0].variable)),
            f" it is {also}surely off by more than {limit} points{more}: by "
            f"{points(off[0].uneven.debiased)} on average.",
        )
    top = _top(off)
    sizes = list(dict.fromkeys(points(row.uneven.debiased) for row in top))
    each = "each " if len(top) > len(sizes) else ""
    names: list[str] = []
    for row in top:
        names += [" and ", StrongName(cut(row.variable))]
    return Sentence.of(
        "But along ",
        Strong(f"{len(off)} of {count(many, 'variable')}"),
        f" it is {also}surely off by more than {limit} points{more}: "
        + ("most along " if len(off) > 1 else "along "),
        *names[1:],
        f", by {' and '.join(sizes)} points {each}on average.",
    )


def _top(off: tuple[AuditRow, ...]) -> tuple[AuditRow, ...]:
    """Return the first variable, and the second one if it could be the first."""
    return off[: 2 if len(off) > 1 and off[1].rank_low == 1 else 1]


def _repaired(attempt: Repair | None) -> str:
    if attempt is None:
        return ""
    if not attempt.full.helps:
        return " A repair was tried, and gains nothing."
    before, after = worst_hidden_error(attempt.before), worst_hidden_error(attempt.full.after)
    if after > LESS * before:
        return f" A repair learned from these rows would still leave {points(after)}."
    return f" A repair learned from these rows would bring the worst down to {points(after)}."


def _fine(audit: Audit) -> Sentence:
    many = len(audit.rows)
    which = "The variable shows no" if many == 1 else f"None of the {many} variables shows"
    along = "along it" if many == 1 else "along any of them"
    weak = least_known(audit)
    return Sentence.of(
        f"{which} uneven error: ",
        Strong(f"more than {points(audit.bound)} percentage points"),
        f" {along} can be ruled out. Where rows are few the check is weaker: for ",
        Named(cut(weak.label)),
        f" ({count(weak.n, 'row')}) an error of up to {points(weak.largest_gap)} points could "
        "still be there.",
    )


def _trend(found: Judgement) -> str:
    if found.by_score is None or found.biased is not None:
        return ""
    return {
        "extreme": "High scores are too high and low ones too low. ",
        "timid": "High scores are too low and low ones too high. ",
        "": "",
    }[score_trend(found.by_score)]


def _not_off(audit: Audit, found: Judgement) -> Sentence:
    """Say what variables show when none is surely off by more than the limit."""
    limit, bound = limit_text(audit.limit), points(audit.bound)
    change = "this change" if found.biased is not None else "the error change"
    if not found.rows and audit.bound <= audit.limit:
        return Sentence.of(f"Along no variable does {change} by more than {bound} points.")
    if not found.rows:
        return Sentence.of(
            f"No variable shows uneven error, but up to {bound} points could be there."
        )
    most = max(found.rows, key=lambda row: row.uneven.debiased)
    size = f"{points(most.uneven.debiased)} points on average ({interval(most.low, most.high)})"
    if len(audit.rows) == 1:
        return Sentence.of(
            "Along ",
            StrongName(cut(most.variable)),
            f" there is uneven error, but not surely more than {limit} points: {size}.",
        )
    return Sentence.of(
        "Along ",
        Strong(f"{len(found.rows)} of {count(len(audit.rows), 'variable')}"),
        f" there is uneven error, but along none of them surely more than {limit} points: most "
        "along ",
        StrongName(cut(most.variable)),
        f", {size}.",
    )


def _too_few(audit: Audit, found: Judgement) -> Sentence:
    needed = rows_needed(audit.n_rows, found.bound, audit.limit)
    limit = limit_text(audit.limit)
    enough = f"; about {count(needed, 'row')} would show {limit} points" if audit.limit else ""
    return Sentence.of(
        f"Nothing was found in {count(audit.n_rows, 'row')}, but ",
        Strong(f"errors of up to {points(found.bound)} points"),
        f" would not have been seen{enough}.",
    )


def rows_needed(n: int, bound: float, limit: float) -> int:
    """Return with how many rows a bound would be as small as a limit, to two digits.

    Intervals shrink with the root of the number of rows.

    >>> rows_needed(192, 0.103, 0.02)
    5100
    """
    if limit <= 0:
        return n
    return max(n, int(float(f"{n * (bound / limit) ** 2:.2g}")))
