"""What the paper claims of its methods, and in how many splits it is true."""

from __future__ import annotations

from dataclasses import dataclass

from varcal.experiments._published import AUGMENTED, BETA, PLATT, TREE, UNCALIBRATED, Target
from varcal.experiments._study import Study

__all__ = ["Claim", "ClaimResult", "claims_of"]

#: A claim that is true in at least this share of splits holds; as rarely, it is reversed.
SURE = 0.9
#: An accuracy counts as kept if it falls by no more than a tenth of a point.
KEPT = 0.001


@dataclass(frozen=True)
class Claim:
    """One claim: a method has a smaller error than another, or keeps its accuracy.

    Attributes
    ----------
    text : str
        The claim in words.
    method, against : str
        The two methods.
    measure, variable : str
        Of what.
    margin : float
        By how much the method may be worse and the claim still be true.
    """

    text: str
    method: str
    against: str
    measure: str
    variable: str = ""
    margin: float = 0.0

    def target(self, method: str) -> Target:
        """Return the figure of one of the two methods."""
        return method, self.measure, self.variable


@dataclass(frozen=True)
class ClaimResult:
    """How a claim fares over splits.

    Attributes
    ----------
    claim : Claim
        The claim.
    change, spread : float
        Mean and standard deviation over splits of the method's figure minus the other's.
    n_true, n_splits : int
        In how many splits it is true, of how many.
    """

    claim: Claim
    change: float
    spread: float
    n_true: int
    n_splits: int

    @property
    def verdict(self) -> str:
        """Return "holds", "depends on the split" or "reversed".

        >>> claim = Claim("the tree lowers ECE", "tree", "beta", "ECE")
        >>> ClaimResult(claim, -0.01, 0.002, 50, 50).verdict
        'holds'
        >>> ClaimResult(claim, 0.0, 0.002, 21, 50).verdict
        'depends on the split'
        """
        share = self.n_true / self.n_splits
        if share >= SURE:
            return "holds"
        return "reversed" if share <= 1 - SURE else "depends on the split"


def claims_of(study: Study) -> list[Claim]:
    """Return what the paper claims of a study."""
    score, variable = study.score_based, study.variable
    claims = [Claim(f"{score} lowers ECE", score, UNCALIBRATED, "ECE")]
    if study.name == "cardio":
        return claims
    text = f"Variable-based calibration lowers VECE along {variable} below {score}"
    claims.append(Claim(text, TREE, score, "VECE", variable))
    if study.classes == 2:
        claims.append(
            Claim(f"Variable-based calibration has a smaller ECE than {score}", TREE, score, "ECE")
        )
    claims.append(
        Claim(
            "Variable-based calibration keeps the accuracy (within 0.1 points)",
            TREE,
            UNCALIBRATED,
            "accuracy",
            margin=KEPT,
        )
    )
    claims += [
        Claim(
            f"Variable-based calibration does not raise VECE along {other}",
            TREE,
            score,
            "VECE",
            other,
        )
        for other in study.others
    ]
    if AUGMENTED in study.methods:
        plain = BETA if study.name != "bank" else PLATT
        claims.append(
            Claim(
                f"Augmented beta lowers VECE along {variable} below {plain}",
                AUGMENTED,
                plain,
                "VECE",
                variable,
            )
        )
    return claims
