"""The decision of an audit: the error that matters, and the verdict that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from varcal._text import (
    ABOVE,
    BELOW,
    CANNOT_TELL,
    FINDINGS,
    FINE,
    MAY_BE,
    REPAIR,
    WATCH,
    percent,
)

if TYPE_CHECKING:
    from varcal._audit.record import AuditRow, Target

#: The error that matters by default, and as a share of the rate of the rarer outcome.
LIMIT, SHARE_OF_RATE = 0.02, 0.2
#: With fewer events than this the predicted rate counts as well, and nothing is called fine.
FEW_EVENTS = 10
#: Below this rate, figures have two decimals, and places show observed over expected events.
RARE = 0.1


def limit_of(
    predicted: float, observed: float, events: int, limit: float | None, relative: float | None
) -> tuple[float, str]:
    """Return the error that matters, and why it is that.

    >>> limit_of(0.4, 0.24, 500, None, None)
    (0.02, 'the default')
    >>> limit_of(0.01, 0.009, 90, None, None)[1]
    "a fifth of the rarer class's rate, 0.90%"
    >>> limit_of(0.4, 0.24, 500, 0.05, None)
    (0.05, 'as set')
    """
    if limit is not None:
        return limit, "as set"
    rarer = observed if observed <= 0.5 else 1 - observed
    if events < FEW_EVENTS:
        rarer = max(rarer, predicted if observed <= 0.5 else 1 - predicted)
    rate = percent(rarer, 2)
    if relative is not None:
        return relative * rarer, f"{100 * relative:g}% of the rarer class's rate, {rate}"
    if 0 < SHARE_OF_RATE * rarer < LIMIT:
        return SHARE_OF_RATE * rarer, f"a fifth of the rarer class's rate, {rate}"
    return LIMIT, "the default"


def state_of(low: float, high: float, limit: float) -> str:
    """Say where the interval of an error or of a signed gap lies.

    >>> state_of(0.03, 0.04, 0.02), state_of(-0.03, 0.01, 0.02), state_of(0.0, 0.02, 0.02)
    ('above limit', 'may be above', 'below limit')
    """
    if low > limit or -high > limit:
        return ABOVE
    return BELOW if max(high, -low) <= limit else MAY_BE


def verdict_of(targets: Sequence[Target], rows: Sequence[AuditRow], level: float) -> str:
    """Decide: repair, watch, fine or cannot tell.

    A model is to be repaired if its average, its error by score or any uneven error is surely
    above the limit. Otherwise any evidence of error means watch. Without evidence it is fine if
    every upper limit is within the limit, and if not, or with few events, the rows cannot tell.
    """
    states = [
        state
        for one in targets
        for state in (
            state_of(one.gap_low, one.gap_high, one.limit),
            state_of(one.by_score.low, one.by_score.high, one.limit),
        )
    ]
    verdicts = [row.verdict for row in rows]
    if ABOVE in states or ABOVE in verdicts:
        return REPAIR
    tests = [p for one in targets for p in (one.p_value, one.by_score.p_value)]
    if min(tests) * len(tests) <= 1 - level or any(word in FINDINGS for word in verdicts):
        return WATCH
    limits = {one.name: one.limit for one in targets}
    within = all(state == BELOW for state in states) and all(
        one.high <= limits[one.target] for row in rows for one in row.figures
    )
    return FINE if within and not any(one.few_events for one in targets) else CANNOT_TELL
