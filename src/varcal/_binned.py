"""From a call's arguments to the binned statistics of each claim."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypedDict

from varcal._events import Claim, claims
from varcal._predictions import Predictions
from varcal._stats import BinnedStats
from varcal._variables import Variable
from varcal.engines._numpy import collect, make_bins


class BinOptions(TypedDict):
    """How rows are binned."""

    n_bins: int
    binning: str
    bins: object


@dataclass(frozen=True, eq=False)
class Binned:
    """The statistics of one claim over the bins of a variable, or of its own score."""

    claim: Claim
    stats: BinnedStats

    @property
    def label(self) -> Hashable:
        """The class that the claim speaks of, or None."""
        return self.claim.label


def binned(
    predictions: Predictions,
    options: BinOptions,
    *,
    event: str = "correct",
    pos_label: Hashable = None,
    over_score: bool = False,
    moments: bool = True,
) -> list[Binned]:
    """Bin every claim of an event over the variables (jointly), or over its own score."""
    variables = predictions.variables
    bins = None if over_score else make_bins(variables, **options)
    found = []
    for claim in claims(predictions, event, pos_label):
        if over_score:
            variables = (Variable("confidence", "numeric", claim.score),)
            bins = make_bins(variables, **options)
        assert bins is not None
        stats = collect(
            bins, variables, claim.scores, claim.hits, predictions.weight, moments=moments
        )
        found.append(Binned(claim, stats))
    return found
