"""The paper's claims about its methods, and whether they hold."""

from __future__ import annotations

from dataclasses import dataclass

from reproduction.published import AUGMENTED, TREE, UNCALIBRATED, Target
from reproduction.studies import Study

#: Stands for the 95 % quantile of what a perfect model would show on as many rows.
CHANCE = "chance"
#: With fewer splits there is no verdict.
FEW_SPLITS = 20
#: A figure counts as kept if it is worse by at most 0.1 percentage points.
KEPT = 0.001


@dataclass(frozen=True)
class Claim:
    """One claim: how a method's figure compares with that of another method.

    Attributes
    ----------
    text : str
        The claim in words.
    kind : {"lowers", "keeps", "exceeds"}
        Whether the method's figure is claimed to be smaller, not worse, or larger.
    method, against : str
        The two methods; `against` may be `CHANCE`.
    measure, variable : str
        The figure: what is measured, and along which variable.
    margin : float
        By how much a figure may be worse and still count as kept.
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
        """The figure it is compared with."""
        return self.against, self.measure, self.variable

    def true(self, change: float) -> bool:
        """Return whether the claim is true if the figures differ by `change`."""
        if self.kind == "exceeds":
            return change > 0
        if self.kind == "lowers":
            return change < 0
        worse = -change if self.measure == "accuracy" else change
        return worse <= self.margin

    def confirmed(self, low: float, high: float) -> bool:
        """Return whether an interval of the difference supports the claim or does not refute it."""
        if self.kind == "exceeds":
            return low > 0
        if self.kind == "lowers":
            return high < 0
        return self.true(high if self.measure == "accuracy" else low)


@dataclass(frozen=True)
class ClaimResult:
    """A claim, and what the splits show.

    Attributes
    ----------
    claim : Claim
        The claim.
    change, spread : float
        Mean and standard deviation over splits of the method's figure minus the other's.
    n_true, n_splits : int
        The number of splits in which it is true, and of all splits.
    low, high : float
        The 95 % interval of the difference on the paper's own split.
    n_bins : int
        The number of bins that the figure is computed over.
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
        """The verdict on the claim.

        It holds if it is true in at least nine of ten splits and the interval on the paper's own
        split agrees. It is reversed if it is true in at most one of ten. Splits share most of
        their test rows: their agreement reflects the choice of calibration rows, and the interval
        that of test rows.

        >>> claim = Claim("the tree lowers ECE", "lowers", "tree", "beta", "ECE")
        >>> ClaimResult(claim, -0.01, 0.002, 45, 50, -0.02, -0.001).verdict
        'holds'
        >>> ClaimResult(claim, -0.01, 0.002, 45, 50, -0.02, 0.001).verdict
        'mostly true, within noise'
        >>> ClaimResult(claim, 0.01, 0.002, 5, 50, 0.001, 0.002).verdict
        'reversed'
        """
        if self.claim.variable and self.n_bins < 2:
            return "not testable: only one bin"
        if self.n_splits < FEW_SPLITS:
            return "too few splits"
        if 10 * self.n_true >= 9 * self.n_splits:
            sure = self.claim.confirmed(self.low, self.high)
            return "holds" if sure else "mostly true, within noise"
        return "reversed" if 10 * self.n_true <= self.n_splits else "depends on the split"


def claims_of(study: Study) -> list[Claim]:
    """Return the paper's claims about a study."""
    score, variable = study.score_based, study.variable
    claims = [
        Claim(f"{score} lowers ECE", "lowers", score, UNCALIBRATED, "ECE"),
        Claim(
            f"After {score}, VECE along {variable} exceeds chance",
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
