"""The words of charts and tables that depend on the claim."""

from __future__ import annotations

from dataclasses import dataclass

from varcal._text.gaps import CLASS, CONFIDENCE, RISK
from varcal._text.sentences import Named, Sentence, cut


@dataclass(frozen=True)
class ClaimWords:
    """The names of what a claim says and of what happens.

    Attributes
    ----------
    claim : str
        The claim.
    actual, predicted : str
        The two lines of a chart.
    says, happens, says_short, happens_short : str
        The two rates in the head of a table and within a sentence.
    y : str
        The axis of rates.
    score, hit : str
        The axes of the diagram by score.
    from_zero : bool
        Whether the axis of rates begins at zero.
    """

    claim: str
    actual: str
    predicted: str
    says: str
    happens: str
    says_short: str
    happens_short: str
    y: str
    score: str
    hit: str
    from_zero: bool


_CONFIDENCE = ClaimWords(
    claim=CONFIDENCE,
    actual="is right",
    predicted="how sure",
    says="Is sure",
    happens="Is right",
    says_short="sure",
    happens_short="right",
    y="share right",
    score="model says: confidence in its answer",
    hit="happens: share right",
    from_zero=False,
)
_RISK = ClaimWords(
    claim=RISK,
    actual="actual",
    predicted="predicted",
    says="Model says",
    happens="Happens",
    says_short="says",
    happens_short="happens",
    y="actual rate",
    score="model says: predicted probability",
    hit="happens: actual rate",
    from_zero=True,
)


def claim_words(claim: str) -> ClaimWords:
    """Return the words of a claim; those of a class are the words of a risk."""
    if claim == CONFIDENCE:
        return _CONFIDENCE
    return _RISK if claim == RISK else ClaimWords(**vars(_RISK) | {"claim": claim})


def chart_title(claim: str, label: str, variable: str = "") -> Sentence:
    """Say what a chart of a claim shows, and along which variable."""
    by = Sentence.of(", by ", Named(cut(variable))) if variable else Sentence()
    if claim == CONFIDENCE:
        return Sentence.of("Confidence: how sure, how often right", by)
    if claim.startswith(CLASS):
        return Sentence.of("Actual and predicted rate of class ", Named(cut(label)), by)
    outcome = Sentence.of(" of outcome ", Named(cut(label))) if label else Sentence()
    return Sentence.of("Risk: actual and predicted rate", outcome, by)
