"""SidedProfile: the claim about a class along a variable, by predicted side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from varcal._input.events import Claim, predicted
from varcal._input.groups import buckets, sided_buckets
from varcal._input.predictions import Predictions
from varcal._input.variables import Variable
from varcal._sums.choose import fine_bins
from varcal._sums.kernel_numpy import bin_rows
from varcal._sums.profile import Profile
from varcal._sums.question import N_FINE, BinOptions
from varcal._sums.stats import FIELDS, BinnedStats

#: The sums that differ for 1 − score and 1 − hit, and what they are subtracted from.
_TURNED = {"hit": "weight", "score": "weight", "hit2": "weight2", "score2": "weight2"}


@dataclass(frozen=True, eq=False)
class SidedProfile:
    """The claim about a class, where the class is not the predicted one and where it is.

    The claim "the prediction is correct" follows from the same sums: where the class is the
    predicted one both claims are the same; where it is not, and there are two classes, score and
    hit are one minus those of the other.

    Attributes
    ----------
    key : int
        The claim.
    others, own : Profile
        The rows that are predicted to be of another class, and those predicted to be of this one.
    """

    key: int
    others: Profile
    own: Profile

    @property
    def name(self) -> str:
        """The variable."""
        return self.own.name

    @property
    def claim(self) -> Profile:
        """The claim about the class, of all rows."""
        return merged([self.others, self.own])


def correct_of(profiles: Sequence[SidedProfile]) -> Profile:
    """Return the claim "the prediction is correct", from all classes or from either of two."""
    if len(profiles) > 1:
        return merged([one.own for one in profiles])
    (one,) = profiles
    return merged([turned(one.others), one.own])


def turned(found: Profile) -> Profile:
    """Return the opposite claim, with one minus the score and one minus the hit.

    Its sums differ from those of its own scores by rounding only.
    """
    return replace(found, fine=_turned(found.fine), coarse=_turned(found.coarse))


def merged(profiles: Sequence[Profile]) -> Profile:
    """Return the profile of the rows of several."""
    return replace(
        profiles[0],
        fine=reduce(add, [one.fine for one in profiles]),
        coarse=reduce(add, [one.coarse for one in profiles]),
    )


def split(key: int, found: Profile) -> SidedProfile:
    """Return the sides of a profile whose tables have the buckets of one side, then the other."""
    others, own = (
        replace(
            found,
            fine=BinnedStats(found.fine.bins, fine),
            coarse=BinnedStats(found.coarse.bins, coarse),
        )
        for fine, coarse in zip(
            np.split(found.fine.sums, 2, axis=1),
            np.split(found.coarse.sums, 2, axis=1),
            strict=True,
        )
    )
    return SidedProfile(key, others, own)


def sided_profile(
    predictions: Predictions,
    key: int,
    claim: Claim,
    variable: Variable,
    options: BinOptions,
    *,
    n_fine: int = N_FINE,
) -> SidedProfile:
    """Bin the claim about a class along one variable, by predicted side."""
    coarse, fine = fine_bins(variable, n_fine=n_fine, **options)
    by_side = sided_buckets(predicted(predictions, key), *buckets(predictions.unit))
    stats = bin_rows(fine, [variable], claim.score, claim.hit, predictions.weight, *by_side)
    return split(key, Profile(variable.name, variable.kind, stats, stats.coarsen(coarse)))


def _turned(stats: BinnedStats) -> BinnedStats:
    sums = stats.sums.copy()
    for name, whole in _TURNED.items():
        sums[FIELDS.index(name)] = stats.field(whole) - stats.field(name)
    return BinnedStats(stats.bins, sums)
