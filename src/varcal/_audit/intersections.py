"""Intersections: what an audit finds over several variables at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from varcal._input.predictions import Predictions
from varcal._search.cells import SearchRows
from varcal._search.predictable_gap import PredictableGap, predictable_of
from varcal._search.slices_result import Slice, Slices
from varcal._search.surface import Surface, surface_of
from varcal._text import Named, Sentence, Strong, count, cut, filled, off_by, p_equation, points

if TYPE_CHECKING:
    from varcal._audit.record import AuditRow


@dataclass(frozen=True, eq=False)
class Intersections:
    """What an audit with ``slices=True`` finds beyond single variables.

    Attributes
    ----------
    slices : Slices
        The slices where the model is most wrong.
    predictable : PredictableGap
        How much of the gap all variables and the score predict together.
    surface : Surface or None
        The gap over two variables: those of the clearest slice that has two, or else the first two
        of the ranking; None with a single variable.
    gaps : dict of float
        The overall gap of each claim.
    """

    slices: Slices
    predictable: PredictableGap
    surface: Surface | None
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
            "surface": None if self.surface is None else self.surface.to_dict(),
            "gaps": self.gaps,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Intersections:
        """Return the result that `to_dict` described."""
        surface = data["surface"]
        return cls(
            slices=Slices.from_dict(data["slices"]),
            predictable=PredictableGap.from_dict(data["predictable"]),
            surface=None if surface is None else Surface.from_dict(surface),
            gaps=dict(data["gaps"]),
        )


def intersections_of(
    found: Slices,
    rows: Predictions,
    ranking: Sequence[AuditRow],
    keys: Sequence[int],
    *,
    gaps: Mapping[str, float],
    n_all: int,
    engine: str,
    random_state: int,
) -> Intersections:
    """Add to slices how much can be predicted, and the surface of the worst pair.

    Parameters
    ----------
    found : Slices
        The slices.
    rows : Predictions
        The rows, or a sample of them, with the variables of the audit.
    ranking : sequence of AuditRow
        The ranking of the audit.
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
    level = found.level
    number = predictable_of(rows, keys, level=level, random_state=random_state)
    read = SearchRows(rows, engine, n_all)
    number = replace(number, notes=read.notes)
    pair = _worst_pair(found, ranking, [variable.name for variable in rows.variables])
    surface = None
    if pair:
        chosen = tuple(v for name in pair for v in rows.variables if v.name == name)
        both = SearchRows(replace(rows, variables=chosen), engine, n_all)
        surface = surface_of(both, keys, level=level, random_state=random_state)
    return Intersections(found, number, surface, dict(gaps))


def _worst_pair(found: Slices, ranking: Sequence[AuditRow], known: Sequence[str]) -> list[str]:
    """Return the two variables to look at together, or none if there is only one."""
    for one in found.slices:
        names = [part.variable for part in one.conditions]
        if len(names) > 1:
            order = [row.variable for row in ranking if row.variable in names]
            return (order + [name for name in names if name not in order])[:2]
    first = [part.variable for one in found.slices[:1] for part in one.conditions]
    names = list(dict.fromkeys([*first, *(row.variable for row in ranking)]))
    names = [name for name in names if name in known]
    return names[:2] if len(names) > 1 else []
