"""One row through the look-up tables of an additive model.

The same arithmetic as for many rows, in the same order and to the bit. Tables are read with plain
numbers, because calling numpy about an array of one number takes longer than the arithmetic.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators._variable._columns.design import SCORE
from varcal.calibrators._variable._lookup.tables import Track

if TYPE_CHECKING:
    from varcal.calibrators._variable._lookup.lookup import Lookup

__all__ = ["FactorPlaces", "one_row"]


@dataclass(frozen=True, eq=False)
class FactorPlaces:
    """Where the factors of all products of pairs are, in the columns of all tables in turn.

    Attributes
    ----------
    left, right : ndarray of int
        The places of both factors of each product.
    """

    left: Ints
    right: Ints

    @classmethod
    def of(cls, lookup: Lookup) -> FactorPlaces:
        """Find the places."""
        widths = [len(track.effect) - 2 for track in lookup.tracks.values()]
        begins = dict(zip(lookup.tracks, np.cumsum([0, *widths]), strict=False))
        none = np.empty(0, dtype=np.intp)
        left, right = [none], [none]
        for pair in lookup.pairs:
            first, second = (
                begins[k] + np.arange(width)
                for k, width in zip(pair.variables, pair.widths, strict=True)
            )
            left.append(np.repeat(first, len(second)))
            right.append(np.tile(second, len(first)))
        return cls(np.concatenate(left), np.concatenate(right))


def one_row(lookup: Lookup, z: Floats, columns: list[AnyArray]) -> tuple[Floats, Floats]:
    """Return η and its posterior variance of one row, as arrays of one number."""
    score = lookup.design.score
    kept = min(max(z.item(0), score.low), score.high)
    unit = (kept - score.mean) / score.scale
    level, slope, factors = 0.0, 0.0, []
    wide = lookup.tracks[SCORE].spread.shape[1] > 0
    spread = np.zeros((1, lookup.tracks[SCORE].spread.shape[1]))
    for k, track in lookup.tracks.items():
        value = kept if k == SCORE else columns[k].item(0)
        at, share = _place(track, value)
        values = track.effect[:, at]
        if track.step is not None:
            values = values + track.step[:, at] * share
            # The variance is taken at the nearer knot.
            at += share > 0.5
        level += values.item(0)
        slope += values.item(1)
        if wide:
            spread += track.spread[at]
        factors.append(values[2:])
    eta = np.array([level + unit * slope])
    n_rays = len(lookup.sign)
    rays = spread[:, 3 : 3 + n_rays] + unit * spread[:, 3 + n_rays :]
    if lookup.pairs:
        found, places = np.concatenate(factors), lookup.factor_places
        paired = lookup.weight @ (found[places.left] * found[places.right])[:, None]
        eta += paired[0]
        rays += paired[1:].T
    variance = np.einsum("ij,ij,j->i", rays, rays, lookup.sign)
    if wide:
        variance += spread[:, 0] + unit * (spread[:, 1] + unit * spread[:, 2])
    return eta, np.maximum(variance + lookup.rest, 0.0)


def _place(track: Track, value: float) -> tuple[int, float]:
    """Return the table column of a value, and the share of the way to the next one."""
    knots = track.knots
    if knots is None:
        return int(value), 0.0
    if value != value:
        return len(knots), 0.0
    at = bisect_left(knots, value, 1, len(knots) - 1) - 1
    low = knots.item(at)
    share = (value - low) / (knots.item(at + 1) - low)
    if share != share:
        return at, 0.0
    return at, min(max(share, 0.0), 1.0)
