"""What the paper claims of its methods, and how each claim fares."""

from __future__ import annotations

from dataclasses import dataclass

from varcal.experiments._published import AUGMENTED, TREE, UNCALIBRATED, Target
from varcal.experiments._study import Study

__all__ = ["CHANCE", "Claim", "ClaimResult", "claims_of"]

#: What a perfect model would show on as many rows, 95 times in 100.
CHANCE = "chance"
#: Fewer splits than these settle nothing.
FEW_SPLITS = 20
#: A figure counts as kept if it is worse by no more than a tenth of a point.
KEPT = 0.001


@dataclass(frozen=True)
class Claim:
    """One claim: how a figure of a method stands to that of another.

    Attributes
    ----------
    text : str
        The claim in words.
    kind : {"lowers", "keeps", "exceeds"}
        Whether the method's figure is smaller, is not worse, or is larger.
    method, against : str
        The two methods; the other may be `CHANCE`.
    measure, variable : str
        Of what.
    margin : float
        By how much a figure may be worse and still be kept.
    """

    text: str
    kind: str
    method: str
    against: str
    measure: str
    variable: str = ""
    margin: float = 0.0

    @property
    def target(self) -> Target:
        """The figure of the method."""
        return self.method, self.measure, self.variable

    @property
    def other(self) -> Target:
        """The figure that it is compared with."""
        return self.against, self.measure, self.variable

    def true(self, change: float) -> bool:
        """Whether the claim is true where the figures differ by this."""
        if self.kind == "exceeds":
            return change > 0
        if self.kind == "lowers":
            return change < 0
        worse = -change if self.measure == "accuracy" else change
        return worse <= self.margin

    def confirmed(self, low: float, high: float) -> bool:
        """Whether an interval of the difference bears the claim out, or leaves it standing."""
        if self.kind == "exceeds":
            return low > 0
        if self.kind == "lowers":
            return high < 0
        return self.true(high if self.measure == "accuracy" else low)


@dataclass(frozen=True)
class ClaimResult:
    """How a claim fares.

    Attributes
    ----------
    claim : Claim
        The claim.
    change, spread : float
        Mean and standard deviation over splits of the method's figure minus the other's.
    n_true, n_splits : int
        In how many splits it is true, of how many.
    low, high : float
        The 95 % interval of the difference on the paper's own split.
    n_bins : int
        Bins that the figure is computed over.
    """

    claim: Claim
    change: float
    spread: float
    n_true: int
    n_splits: int
    low: float
    high: float
    n_bins: int = 10

    @property
    def verdict(self) -> str:
        """What to make of the claim.

        It holds if it is true in nine of ten splits and the interval on the paper's own split
        agrees, and is reversed if it is true in one of ten at most. Splits share most of their
        test rows: agreement among them is about calibration rows, the interval about test rows.

        >>> claim = Claim("the tree lowers ECE", "lowers", "tree", "beta", "ECE")
        >>> ClaimResult(claim, -0.01, 0.002, 45, 50, -0.02, -0.001).verdict
        'holds'
        >>> ClaimResult(claim, -0.01, 0.002, 45, 50, -0.02, 0.001).verdict
        'true mostly, within noise'
        >>> ClaimResult(claim, 0.01, 0.002, 5, 50, 0.001, 0.002).verdict
        'reversed'
        """
        if self.claim.variable and self.n_bins < 2:
            return "one bin says nothing"
        if self.n_splits < FEW_SPLITS:
            return "too few splits"
        if 10 * self.n_true >= 9 * self.n_splits:
            sure = self.claim.confirmed(self.low, self.high)
            return "holds" if sure else "true mostly, within noise"
        return "reversed" if 10 * self.n_true <= self.n_splits else "depends on the split"


def claims_of(study: Study) -> list[Claim]:
    """Return what the paper claims of a study."""
    score, variable = study.score_based, study.variable
    claims = [
        Claim(f"{score} lowers ECE", "lowers", score, UNCALIBRATED, "ECE"),
        Claim(
            f"After {score} VECE along {variable} is more than chance",
            "exceeds",
            score,
            CHANCE,
            "VECE",
            variable,
        ),
    ]
    if TREE not in study.methods:
        return claims
    tree = "Variable-based calibration"
    text = f"{tree} lowers VECE along {variable} below {score}"
    claims.append(Claim(text, "lowers", TREE, score, "VECE", variable))
    if study.classes == 2:
        claims.append(Claim(f"{tree} has a smaller ECE than {score}", "lowers", TREE, score, "ECE"))
    text = f"{tree} keeps the accuracy (within 0.1 points)"
    claims.append(Claim(text, "keeps", TREE, UNCALIBRATED, "accuracy", margin=KEPT))
    for name in study.others:
        text = f"{tree} does not raise VECE along {name} (beyond 0.1 points)"
        claims.append(Claim(text, "keeps", TREE, score, "VECE", name, KEPT))
    if AUGMENTED in study.methods:
        text = f"Augmented beta lowers VECE along {variable} below {score}"
        claims.append(Claim(text, "lowers", AUGMENTED, score, "VECE", variable))
    return claims
