"""The results of an audit for one variable: its figures, verdict, place and other claims."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from varcal._audit.places import Place
from varcal._inference.measured import Measured
from varcal._measures.score_profile import ScoreProfile
from varcal._text.html_tables import Shown
from varcal._text.numbers import interval, p_text, points, points_with_interval


@dataclass(frozen=True)
class ClaimFigures:
    """One claim along one variable.

    Attributes
    ----------
    claim : str
        The claim.
    vece, uneven : Measured
        VECE and uneven error of the claim, each with the claim's own interval and p-value.
    low, high : float
        Interval of `uneven` that holds for all variables at once.
    """

    claim: str
    vece: Measured
    uneven: Measured
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class AuditRow(Shown):
    """The results for one variable.

    Attributes
    ----------
    variable, kind : str
        The variable and its kind.
    verdict : {"off", "size unclear", "small", "no evidence", "too few rows"}
        With evidence of a uneven error: whether it is surely above the audit's limit, may be
        on either side of it, or is surely below. Otherwise whether there are enough rows to say.
    claim : str
        The claim with the largest uneven error: with two classes "risk" (the probability of the
        positive class) or "confidence" (in the predicted class); with more "confidence" or
        "class …".
    vece : Measured
        VECE of this claim.
    uneven : Measured
        Its uneven error: the same statistic once the average gap is taken off (of each predicted
        side, if several claims are judged). The interval is that of the largest uneven error of
        all claims, and the p-value is valid for all claims.
    low, high : float
        Interval of `uneven` that holds for all variables at once; it excludes 0 where `p_holm`
        is below 1 − level.
    p_holm, p_bh : float
        The p-value of `uneven`, adjusted for the number of variables.
    rank_low, rank_high : int
        The range of ranks that the interval of `uneven` allows.
    direction : {"over", "under", "mixed", "none"}
        Where the gap surely differs from zero: above it, below it, both, or nowhere.
    where : str
        The clearest place in words; empty without evidence.
    worst : str
        v*, the value at which the gap is largest, as text.
    vce : float
        VCE(v*), the largest gap.
    n_bins : int
        The number of bins behind the figures.
    missing : float
        The share of rows whose value is missing.
    others : tuple of ClaimFigures
        The other claims, the one with the largest uneven error first.
    place : Place or None
        The place whose gap differs most clearly from the overall one; None without evidence.
    weakest : Place
        The bin in which the largest gap cannot be ruled out.
    """

    variable: str
    kind: str
    verdict: str
    claim: str
    vece: Measured
    uneven: Measured
    low: float
    high: float
    p_holm: float
    p_bh: float
    rank_low: int
    rank_high: int
    direction: str
    where: str
    worst: str
    vce: float
    n_bins: int
    missing: float
    others: tuple[ClaimFigures, ...]
    place: Place | None
    weakest: Place

    def _shown(self) -> tuple[str, dict[str, list[str]], str]:
        first = ClaimFigures(self.claim, self.vece, self.uneven, self.low, self.high)
        claims = (first, *self.others)
        columns = {
            "claim": [one.claim for one in claims],
            "uneven error, points": [points(one.uneven.debiased) for one in claims],
            "for all variables": [interval(one.low, one.high) for one in claims],
            "p": [p_text(one.uneven.p_value) for one in claims],
            "VECE": [
                points_with_interval(one.vece.debiased, one.vece.low, one.vece.high)
                for one in claims
            ],
        }
        where = self.where or f"largest gap {points(self.vce)} points at {self.worst}"
        return f"{self.variable} ({self.kind}): {self.verdict}", columns, where

    def _check_saved(self) -> None:
        """Raise ValueError unless the figures are shares, or missing."""
        figures = [self.low, self.high, self.vce, self.missing]
        figures += [limit for one in self.others for limit in (one.low, one.high)]
        if any(abs(figure) > 1e3 for figure in figures):
            raise ValueError("a figure of a variable is too large")

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AuditRow:
        """Return the row that `asdict` described."""
        figures = {name: Measured(**data[name]) for name in ("vece", "uneven")}
        others = tuple(
            ClaimFigures(**one | {name: Measured(**one[name]) for name in ("vece", "uneven")})
            for one in data["others"]
        )
        place = None if data["place"] is None else Place(**data["place"])
        more = {"others": others, "place": place, "weakest": Place(**data["weakest"])}
        return cls(**data | figures | more)


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
