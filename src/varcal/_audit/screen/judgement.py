"""The judgement of an audit: its badge and its headline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from varcal._audit.screen.checks import (
    ABOVE,
    BELOW,
    along_variables,
    average,
    by_score,
    signed_state,
    state_of,
)
from varcal._audit.verdicts import FINDINGS, OFF
from varcal._text.gaps import CONFIDENCE, gap_side
from varcal._text.numbers import points

if TYPE_CHECKING:
    from varcal._audit.audit_result import Audit
    from varcal._audit.audit_row import AuditRow, ClaimSummary
    from varcal._audit.places import Place

REPAIR_FIRST, WATCH, FINE, CANNOT_TELL = "Repair first", "Watch", "Fine", "Cannot tell yet"
#: A group is "far more" off than the rest if its gap is so many times the overall gap.
FAR_MORE = 1.5
#: Scores are called too extreme or too timid if the correlation of gap and score is at least this.
CLEAR_TREND = 0.5


@dataclass(frozen=True, eq=False)
class Judgement:
    """What an audit found, weighed against the limit.

    Attributes
    ----------
    badge : str
        The decision.
    rows, off : tuple of AuditRow
        The variables with evidence of uneven error, and those that are surely off by more than the
        limit.
    biased : ClaimSummary or None
        A claim whose average is surely off by more than the limit.
    by_score : ClaimSummary or None
        The claim whose ECE is surely above the limit, the largest one.
    evidence : bool
        Whether anything has evidence at all.
    bound : float
        The largest error that cannot be ruled out, on average, by score or along a variable.
    """

    badge: str
    rows: tuple[AuditRow, ...]
    off: tuple[AuditRow, ...]
    biased: ClaimSummary | None
    by_score: ClaimSummary | None
    evidence: bool
    bound: float


def judgement_of(audit: Audit) -> Judgement:
    """Weigh the findings of an audit against its limit."""
    limit, claims = audit.limit, list(audit.claims.values())
    rows = tuple(row for row in audit.rows if row.verdict in FINDINGS)
    off = tuple(row for row in rows if row.verdict == OFF)
    biased = [one for one in claims if signed_state(one.gap_low, one.gap_high, limit) == ABOVE]
    scored = [
        one for one in claims if state_of(one.score.ece.low, one.score.ece.high, limit) == ABOVE
    ]
    bound = max(
        audit.bound,
        *(max(abs(one.gap_low), abs(one.gap_high), one.score.ece.high) for one in claims),
    )
    evidence = bool(rows or biased or scored) or _has_overall_evidence(audit)
    if off or biased or scored:
        badge = REPAIR_FIRST
    elif evidence:
        badge = WATCH
    else:
        badge = FINE if bound <= limit else CANNOT_TELL
    return Judgement(
        badge=badge,
        rows=rows,
        off=off,
        biased=_main_bias(biased),
        by_score=max(scored, key=lambda one: one.score.ece.debiased, default=None),
        evidence=evidence,
        bound=bound,
    )


def _main_bias(biased: list[ClaimSummary]) -> ClaimSummary | None:
    """Return the claim to report: the first one, unless another is far more off."""
    if not biased:
        return None
    most = max(biased, key=lambda one: abs(one.gap))
    return most if abs(most.gap) >= FAR_MORE * abs(biased[0].gap) else biased[0]


def _has_overall_evidence(audit: Audit) -> bool:
    """Test average and ECE of every claim, adjusted for their number (Bonferroni)."""
    from scipy.special import ndtr, ndtri  # noqa: PLC0415  scipy loads when first needed

    tests = []
    for one in audit.claims.values():
        # The interval need not be symmetric: its end towards zero decides.
        reach = one.gap - one.gap_low if one.gap > 0 else one.gap_high - one.gap
        error = reach / float(ndtri(0.5 + audit.level / 2))
        tests.append(2 * float(ndtr(-abs(one.gap) / error)) if error > 0 else 1.0)
        tests.append(one.score.ece.p_value)
    return min(tests) * len(tests) <= 1 - audit.level


def headline(audit: Audit, found: Judgement) -> str:
    """Say the finding in a few words."""
    if found.biased is not None:
        return _biased_headline(audit, found, found.biased)
    if found.off:
        score = "by score and " if found.by_score is not None else ""
        return f"{_on_average(audit)}, wrong {score}for groups"
    if found.by_score is not None:
        trend = score_trend(found.by_score)
        return f"{_on_average(audit)}, wrong by score" + (f": scores too {trend}" if trend else "")
    if found.evidence:
        small = all(row.high <= audit.limit for row in found.rows) and _overall_is_small(audit)
        return "Small faults only" if small else "Faults found, size unclear"
    return "No fault found" if found.badge == FINE else "Too few rows to tell"


def _biased_headline(audit: Audit, found: Judgement, one: ClaimSummary) -> str:
    side, size = gap_side(one.gap, one.claim).capitalize(), points(abs(one.gap))
    if found.off:
        worst = max((abs(place.gap / one.gap) for place in audit.places), default=1.0)
        uneven = "for some far more" if worst >= FAR_MORE else "for some more"
        return f"{side} by {size} points, {uneven}"
    if not found.rows and audit.bound <= max(audit.limit, abs(one.gap) / 2):
        return f"{side} everywhere, by {size} points"
    return f"{side} by {size} points on average"


def _on_average(audit: Audit) -> str:
    """Say how far the averages can be trusted, none of which is surely off by the limit."""
    cells = [average(audit, (claim,)) for claim in audit.claims]
    if all(cell.state == BELOW for cell in cells):
        return "Right on average"
    if all(cell.low <= 0 <= cell.high for cell in cells):
        return "About right on average"
    claim, cell = max(zip(audit.claims, cells, strict=True), key=lambda pair: abs(pair[1].value))
    return f"Somewhat {gap_side(cell.value, claim)} on average"


def _overall_is_small(audit: Audit) -> bool:
    claims = tuple(audit.claims)
    states = [figure(audit, (claim,)).state for claim in claims for figure in (average, by_score)]
    return all(state == BELOW for state in states)


def is_sure(place: Place) -> bool:
    """Tell whether a place is surely off, in whichever direction."""
    return place.low > 0 or place.high < 0


def score_trend(one: ClaimSummary) -> str:
    """Say whether scores are too extreme or too timid; "" if neither is clear."""
    columns = one.score.table.columns
    n, score, gap = (np.asarray(columns[name], np.float64) for name in ("n", "predicted", "gap"))
    held = n > 0
    n, score, gap = n[held], score[held], gap[held]
    if one.claim == CONFIDENCE:
        return "extreme" if one.gap > 0 else "timid"
    spread = score - np.average(score, weights=n)
    off = gap - np.average(gap, weights=n)
    size = np.sqrt(np.average(spread**2, weights=n) * np.average(off**2, weights=n))
    trend = float(np.average(spread * off, weights=n) / size) if size > 0 else 0.0
    if abs(trend) < CLEAR_TREND:
        return ""
    return "extreme" if trend > 0 else "timid"


def least_known(audit: Audit) -> Place:
    """Return the place of any variable where the largest gap cannot be ruled out."""
    return max((row.weakest for row in audit.rows), key=lambda place: place.largest_gap)


def worst_hidden_error(audit: Audit) -> float:
    """Return the largest uneven error along any variable, whatever the claim."""
    return along_variables(audit, tuple(audit.claims)).value
