"""PredictableGap: how much of the gap can be predicted, as one number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from varcal._files.conform import restored
from varcal._text import count, level_text, p_equation, points, wrapped


@dataclass(frozen=True)
class ClaimGap:
    """The predictable gap of one claim.

    Attributes
    ----------
    claim : str
        "probability", "confidence" or "class …".
    value, low : float
        Estimate and lower limit.
    p_value : float
        Its own p-value.
    """

    claim: str
    value: float
    low: float
    p_value: float


@dataclass(frozen=True)
class PredictableGap:
    """How much of the gap some variables and the score predict, intersections included.

    Attributes
    ----------
    value : float
        At least this gap, as a root mean square over rows, is predicted by what was learned from
        other rows; 0 if nothing is. It is an estimate of a lower bound of the true root mean
        square of the gap given these variables and the score.
    low : float
        Lower limit of `value` at the level; with one claim it is above 0 exactly where `p_value`
        is below 1 − level. The true gap is at least this large in `level` of all samples.
    p_value : float
        How likely this would be if the scores were right whatever the variables.
    claim : str
        The claim that the value is about: that with the largest lower limit.
    claims : tuple of ClaimGap
        All claims.
    variables : tuple of str
        The variables.
    n_rows, n_blocks : int
        Rows, and the blocks into which they were split.
    level : float
        Level of the lower limit.
    left_out : tuple of (str, str)
        Columns that were left out, with the reason.
    notes : tuple of str
        Remarks, such as that rows are a sample.
    """

    value: float
    low: float
    p_value: float
    claim: str
    claims: tuple[ClaimGap, ...]
    variables: tuple[str, ...]
    n_rows: int
    n_blocks: int
    level: float
    left_out: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The finding in one sentence."""
        tested = p_equation(self.p_value)
        names = count(len(self.variables), "variable")
        if self.low > 0:
            return (
                f"At least {points(self.low)} points of gap can be predicted from {names} and the "
                f"score, {points(self.value)} by our estimate ({tested})."
            )
        if self.p_value < 1 - self.level:
            return (
                f"A gap can be predicted from {names} and the score ({tested}), "
                f"{points(self.value)} points by our estimate."
            )
        return (
            f"No gap that {names} and the score predict was found ({tested}): "
            "what boosted trees find is no more than chance."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        return {"sentence": self.sentence, **asdict(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PredictableGap:
        """Return the result that `to_dict` described."""
        return restored(lambda: cls._of(data), cls, "a predictable gap")

    @classmethod
    def _of(cls, data: Mapping[str, Any]) -> PredictableGap:
        plain = {name: one for name, one in data.items() if name != "sentence"}
        return cls(
            **plain
            | {
                "claims": tuple(ClaimGap(**one) for one in data["claims"]),
                "variables": tuple(data["variables"]),
                "left_out": tuple((name, reason) for name, reason in data["left_out"]),
                "notes": tuple(data["notes"]),
            }
        )

    def __repr__(self) -> str:
        size = f"{points(self.value)} points, at least {points(self.low)}"
        head = f"Predictable gap: {size} ({level_text(self.level)}, {p_equation(self.p_value)})"
        return wrapped("\n".join([head, self.sentence, *self.notes]))
