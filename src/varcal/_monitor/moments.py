"""Moments: the sums of a batch by cell that evidence and intervals are computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from varcal._arrays import Floats


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums of a batch, with the last axis over cells.

    An item is a row, or with groups a unit: its error is the mean error x = h − s of its rows, and
    its size u their number. The size of a single row is its weight.

    Attributes
    ----------
    n : ndarray
        Rows.
    weight, hit, score : ndarray
        Σ u, and the same of the hits and of the scores.
    square2, error2, weight2 : ndarray
        Σ u² x², Σ u² x and Σ u².
    top : ndarray
        The largest size that an item can have.
    gains : ndarray or None
        The logarithms of what bets gained, with two more axes: directions and stakes.
    units : tuple of ndarray or None
        Σ u x and u of each unit, with a first axis over units.
    """

    n: Floats
    weight: Floats
    hit: Floats
    score: Floats
    square2: Floats
    error2: Floats
    weight2: Floats
    top: Floats
    gains: Floats | None = None
    units: tuple[Floats, Floats] | None = None

    @property
    def error(self) -> Floats:
        """Σ u x."""
        return self.hit - self.score


def moments_of_rows(sums: Mapping[str, Floats], cap: float, gains: Floats | None) -> Moments:
    """Return the moments of rows, each of which is an item.

    Parameters
    ----------
    sums : mapping
        The sums of each cell; without weights those named "n", "hit", "score" and "square".
    cap : float
        The largest weight that a row can have.
    gains : ndarray or None
        The sums of bets.
    """
    hit, score = sums["hit"], sums["score"]
    top = np.full(hit.shape, cap)
    if "weight" not in sums:
        n = sums["n"]
        return Moments(n, n, hit, score, sums["square"], hit - score, n, top, gains)
    return Moments(
        sums["n"],
        sums["weight"],
        hit,
        score,
        sums["square2"],
        sums["hit2"] - sums["score2"],
        sums["weight2"],
        top,
        gains,
    )


def moments_of_units(sums: Mapping[str, Floats]) -> Moments:
    """Return the moments of units, whose sums are along the first axis."""
    size = sums.get("weight", sums["n"])
    error = sums["hit"] - sums["score"]
    largest = size.max(axis=0)
    return Moments(
        sums["n"].sum(axis=0),
        size.sum(axis=0),
        sums["hit"].sum(axis=0),
        sums["score"].sum(axis=0),
        (error**2).sum(axis=0),
        (error * size).sum(axis=0),
        (size**2).sum(axis=0),
        np.where(largest > 0, largest, 1.0),
        units=(error, size),
    )
