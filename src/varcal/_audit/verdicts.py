"""Verdicts: every word with which an audit or a comparison is judged, and the mark of each.

Audits, comparisons, tables, reports, plots and the command line take the words from here.
"""

from __future__ import annotations

# Along one variable of an audit.
OFF = "off"
SIZE_UNCLEAR = "size unclear"
SMALL = "small"
NO_EVIDENCE = "no evidence"
TOO_FEW_ROWS = "too few rows"
#: The verdicts of an audit, the strongest first.
VERDICTS = (OFF, SIZE_UNCLEAR, SMALL, NO_EVIDENCE, TOO_FEW_ROWS)
#: Those with evidence of a uneven error; a report opens the cards of these variables.
FINDINGS = (OFF, SIZE_UNCLEAR, SMALL)
#: The verdicts at which a gate fails, by the name of the gate.
GATES = {"evidence": FINDINGS, "off": (OFF,)}

# One figure of a set of probabilities, compared with that of the first set.
BASELINE = "baseline"
FIXED = "fixed"
BETTER = "better"
UNCHANGED = "unchanged"
MADE_WORSE = "made worse"
#: The verdicts of a comparison.
COMPARED = (BASELINE, FIXED, BETTER, UNCHANGED, MADE_WORSE)
#: The verdicts that say that a figure changed.
CHANGED = (FIXED, BETTER, MADE_WORSE)

# One variable from an audit to the next, besides BETTER and UNCHANGED.
WORSE = "worse"
NEW = "new"
GONE = "gone"

#: A mark for each verdict, so that verdicts do not differ by colour alone.
MARKS = {
    OFF: "✕",
    SIZE_UNCLEAR: "◐",
    SMALL: "◔",
    NO_EVIDENCE: "○",
    TOO_FEW_ROWS: "?",
    BASELINE: "–",
    FIXED: "✓",
    BETTER: "↗",
    UNCHANGED: "○",
    MADE_WORSE: "✗",
}
#: Verdicts shown in bold, and those shown in grey.
STRONG = (OFF, FIXED, MADE_WORSE)
FAINT = (NO_EVIDENCE, TOO_FEW_ROWS, BASELINE, UNCHANGED)
