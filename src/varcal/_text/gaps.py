"""Gaps in words: which claim is wrong, in which direction, by how much.

A gap is what the model says minus what happens. Claims are "probability" (that of the outcome),
"confidence" (how sure the model is of its answer) and, with more than two classes,
"class <label>". Every table, sentence, page and plot takes its words from here.
"""

from __future__ import annotations

from varcal._text.numbers import points, signed
from varcal._text.sentences import Named, Sentence, cut

RISK, CONFIDENCE = "probability", "confidence"
#: What the name of the claim about one of several classes begins with.
CLASS = "class "
#: The marks of a gap above and below zero.
OVER, UNDER = "▲", "▼"
_SIDES = {RISK: ("too high", "too low"), CONFIDENCE: ("too sure", "not sure enough")}


def claim_of(event: str) -> str:
    """Return the claim that an event of `vece` or `curve` is about.

    >>> claim_of("correct"), claim_of("positive")
    ('confidence', 'probability')
    """
    return CONFIDENCE if event in ("correct", CONFIDENCE) else RISK


def gap_side(gap: float, claim: str) -> str:
    """Name the sign of a gap.

    >>> gap_side(0.1, "probability"), gap_side(-0.1, "confidence"), gap_side(-0.1, "class a")
    ('too high', 'not sure enough', 'too low')
    """
    over, under = _SIDES[CONFIDENCE if claim == CONFIDENCE else RISK]
    return over if gap > 0 else under


def gap_mark(gap: float) -> str:
    """Mark the sign of a gap.

    >>> gap_mark(0.1), gap_mark(-0.1)
    ('▲', '▼')
    """
    return OVER if gap > 0 else UNDER


def marked_side(gap: float, claim: str) -> str:
    """Mark and name the sign of a gap.

    >>> marked_side(-0.1, "probability")
    '▼ too low'
    """
    return f"{gap_mark(gap)} {gap_side(gap, claim)}"


def claim_name(claim: str) -> Sentence:
    """Name a claim; the label of a class comes from the data.

    >>> claim_name("probability").parts, claim_name("class a").parts
    (('probability',), ('class ', 'a'))
    """
    if claim.startswith(CLASS):
        return Sentence.of(CLASS, Named(cut(claim.removeprefix(CLASS))))
    return Sentence.of(claim)


def gap_said(gap: float, claim: str) -> Sentence:
    """Name the sign of a gap, with the class if it is one of several.

    >>> str(gap_said(0.1, "probability")), str(gap_said(0.1, "class a"))
    ('too high', 'class a too high')
    """
    side = gap_side(gap, claim)
    return (
        Sentence.of(claim_name(claim), f" {side}") if claim.startswith(CLASS) else Sentence.of(side)
    )


def off_by(gap: float, claim: str) -> Sentence:
    """Name the claim, the sign and the size of a gap.

    >>> str(off_by(-0.165, "probability")), str(off_by(0.0301, "confidence"))
    ('too low by 16.5 points', 'too sure by 3.0 points')
    """
    return Sentence.of(gap_said(gap, claim), f" by {points(abs(gap))} points")


def range_words(low: float, high: float, claim: str) -> Sentence:
    """Say in which range the gaps of a part of a variable are.

    >>> str(range_words(0.061, 0.094, "probability")), str(range_words(-0.02, 0.01, "confidence"))
    ('too high by 6.1 to 9.4 points', 'gap of −2.0 to +1.0 points')
    """
    if low < 0 < high:
        return Sentence.of(f"gap of {signed(low)} to {signed(high)} points")
    ends = [points(abs(end)) for end in sorted((low, high), key=abs)]
    size = ends[0] if ends[0] == ends[1] else " to ".join(ends)
    return Sentence.of(gap_said(high or low, claim), f" by {size} points")
