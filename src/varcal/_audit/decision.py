"""The decision of an audit: every word with which figures, variables and models are judged.

Audits, comparisons, tables, reports, plots, gates and the command line take the words from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from varcal._audit.record import AuditRow, Target

# The verdict of a whole audit.
REPAIR, WATCH, FINE, CANNOT_TELL = "repair", "watch", "fine", "cannot tell"

# Where the interval of a figure lies, and the verdict along a variable.
ABOVE, MAY_BE, BELOW = "above limit", "may be above", "below limit"
NO_EVIDENCE, TOO_FEW_ROWS = "no evidence", "too few rows"
#: The verdicts along a variable, the strongest first.
VERDICTS = (ABOVE, MAY_BE, BELOW, NO_EVIDENCE, TOO_FEW_ROWS)
#: Those with evidence of uneven error.
FINDINGS = (ABOVE, MAY_BE, BELOW)
#: The verdicts at which a gate fails, by the name of the gate.
GATES = {"evidence": FINDINGS, "off": (ABOVE,)}

# One figure of a set of probabilities, compared with that of the first set.
BASELINE, FIXED, BETTER, UNCHANGED, MADE_WORSE = (
    "baseline",
    "fixed",
    "better",
    "no clear change",
    "made worse",
)
#: The verdicts of a comparison.
COMPARED = (BASELINE, FIXED, BETTER, UNCHANGED, MADE_WORSE)
#: The verdicts that say that a figure changed.
CHANGED = (FIXED, BETTER, MADE_WORSE)
# One variable from an audit to the next, besides BETTER and UNCHANGED.
WORSE, NEW, GONE = "worse", "new", "gone"

#: A mark for each word, so that words do not differ by colour alone.
MARKS = {
    REPAIR: "✕",
    WATCH: "◐",
    FINE: "✓",
    CANNOT_TELL: "?",
    ABOVE: "✕",
    MAY_BE: "◐",
    BELOW: "✓",
    NO_EVIDENCE: "○",
    TOO_FEW_ROWS: "?",
    BASELINE: "–",
    FIXED: "✓",
    BETTER: "↗",
    UNCHANGED: "○",
    MADE_WORSE: "✗",
}
#: The marks of figures in plain text.
PLAIN_MARKS = {ABOVE: "x", MAY_BE: "~", BELOW: "ok", NO_EVIDENCE: "", TOO_FEW_ROWS: "?"}
#: How a word looks: "bad", "watch", "ok" or without colour.
LOOKS = {
    REPAIR: "bad",
    WATCH: "watch",
    FINE: "ok",
    CANNOT_TELL: "watch",
    ABOVE: "bad",
    MAY_BE: "watch",
    BELOW: "ok",
    FIXED: "ok",
    BETTER: "ok",
    MADE_WORSE: "bad",
}


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
