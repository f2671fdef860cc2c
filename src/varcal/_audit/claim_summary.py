"""One claim of an audit over all rows: its gap, and hit rate along its own score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from varcal._measures.score_profile import ScoreProfile


@dataclass(frozen=True, eq=False)
class ClaimSummary:
    """One claim over all rows.

    Attributes
    ----------
    claim, label : str
        The claim, and the class that it is about (empty for "confidence").
    predicted, observed : float
        Mean score and hit rate.
    gap, gap_low, gap_high : float
        Their difference, with its interval.
    score : ScoreProfile
        Hit rate along the claim's own score: the reliability diagram and ECE.
    """

    claim: str
    label: str
    predicted: float
    observed: float
    gap: float
    gap_low: float
    gap_high: float
    score: ScoreProfile

    def _check_saved(self) -> None:
        """Raise ValueError unless the figures are shares."""
        figures = (self.predicted, self.observed, self.gap, self.gap_low, self.gap_high)
        if not all(abs(figure) <= 1e3 for figure in figures):
            raise ValueError("a figure of a claim is missing or too large")

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        return vars(self) | {"score": self.score.to_dict()}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ClaimSummary:
        """Return the summary that `to_dict` described."""
        return cls(**data | {"score": ScoreProfile.from_dict(data["score"])})
