"""Intersections: what an audit finds over several variables at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from varcal._input.predictions import Predictions
from varcal._search.cells import SearchRows
from varcal._search.predictable_gap import PredictableGap, predictable_of
from varcal._search.slices_result import Slice, Slices
from varcal._text import Named, Sentence, Strong, count, cut, filled, off_by, p_equation, points


@dataclass(frozen=True, eq=False)
class Intersections:
    """What an audit with ``slices=True`` finds beyond single variables.

    Attributes
    ----------
    slices : Slices
        The slices where the model is most wrong.
    predictable : PredictableGap
        How much of the gap all variables and the score predict together.
    gaps : dict of float
        The overall gap of each claim.
    """

    slices: Slices
    predictable: PredictableGap
    gaps: dict[str, float]

    @property
    def sentence(self) -> Sentence:
        """The number and the clearest slice, for the first screen."""
        number = self.predictable
        tested = p_equation(number.p_value)
        what = Strong("Combinations of variables")
        told = f"{{}}: no gap found that boosted trees could predict ({tested})."
        if number.low > 0:
            told = (
                f"{{}}: at least {points(number.low)} points of gap can be predicted from "
                f"{count(len(number.variables), 'variable')} and the score ({tested})."
            )
        elif number.p_value < 1 - number.level:
            told = f"{{}}: there is a gap ({tested}), of unclear size."
        if not self.slices.slices:
            return filled(f"{told} No slice is clearly off.", what)
        first = self.ordered[0]
        if self.is_better(first):
            return filled(f"{told} No slice is clearly worse than the average.", what)
        rule = Named(cut(first.rule, 100))
        return filled(
            f"{told} Clearest slice: {{}}, {{}}.", what, rule, off_by(first.shrunk, first.claim)
        )

    def is_better(self, one: Slice) -> bool:
        """Tell whether a slice only stands out because it is less wrong than the rest."""
        overall = self.gaps.get(one.claim, 0.0)
        return one.gap * overall > 0 and abs(one.shrunk) < abs(overall)

    @property
    def ordered(self) -> list[Slice]:
        """The slices, those that are better than the rest last."""
        return sorted(self.slices, key=self.is_better)

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        return {
            "slices": self.slices.to_dict(),
            "predictable": self.predictable.to_dict(),
            "gaps": self.gaps,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Intersections:
        """Return the result that `to_dict` described."""
        return cls(
            slices=Slices.from_dict(data["slices"]),
            predictable=PredictableGap.from_dict(data["predictable"]),
            gaps=dict(data["gaps"]),
        )


def intersections_of(
    found: Slices,
    rows: Predictions,
    keys: Sequence[int],
    *,
    gaps: Mapping[str, float],
    n_all: int,
    engine: str,
    random_state: int,
) -> Intersections:
    """Add to slices how much of the gap can be predicted.

    Parameters
    ----------
    found : Slices
        The slices.
    rows : Predictions
        The rows, or a sample of them, with the variables of the audit.
    keys : sequence of int
        The claims.
    gaps : mapping
        The overall gap of each claim.
    n_all : int
        The number of all rows.
    engine : str
        Where the rows were.
    random_state : int
        Seed.
    """
    number = predictable_of(rows, keys, level=found.level, random_state=random_state)
    number = replace(number, notes=SearchRows(rows, engine, n_all).notes)
    return Intersections(found, number, dict(gaps))
