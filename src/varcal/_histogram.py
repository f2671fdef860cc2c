"""Histogram: how often the values of a variable occur, from its fine cells."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal._bins import NumericBins
from varcal._stats import BinnedStats

Floats = NDArray[np.float64]

#: About so many bars.
N_BARS = 40
#: The share of the rows beyond each end of the bars.
TAIL = 0.01


@dataclass(frozen=True)
class Histogram:
    """Bars of equal width over the middle of a numeric variable.

    Attributes
    ----------
    low, high : float
        The 1st and the 99th percentile of the values that are not missing.
    edges : tuple of float
        Edges of the bars; between whole numbers for a variable of whole numbers.
    share : tuple of float
        Share of those rows in each bar; they sum to less than 1 by what lies outside.
    """

    low: float
    high: float
    edges: tuple[float, ...]
    share: tuple[float, ...]

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Histogram:
        """Return the histogram that ``vars`` described."""
        return cls(data["low"], data["high"], tuple(data["edges"]), tuple(data["share"]))


def histogram_of(stats: BinnedStats, n_bars: int = N_BARS) -> Histogram | None:
    """Make bars from fine cells, whose mass is spread evenly over each; None for levels.

    A variable of whole numbers gets bars a whole number wide, centred on its values: other
    widths would hold now more and now fewer of them, and show a comb that is not there.
    """
    bins = stats.bins
    if not isinstance(bins, NumericBins) or math.isnan(bins.low):
        return None
    weight = stats.total("weight")[: len(bins.cuts) + 1]
    edges = np.array([bins.low, *bins.cuts, bins.high])
    kept = weight > 0
    below, above, mass = edges[:-1][kept], edges[1:][kept], weight[kept] / weight.sum()
    if not len(mass):
        return None
    x = np.clip(stats.total("x")[: len(weight)][kept] / weight[kept], below, above)
    rank = np.cumsum(mass)
    low, high = (float(x[np.searchsorted(rank, level)]) for level in (TAIL, 1 - TAIL))
    if low == high:
        low, high = bins.low, bins.high
    if low == high:
        return Histogram(low, high, (low - 0.5, low + 0.5), (1.0,))
    # Whole numbers 0 and 1 may be the ends of a share.
    if high - low >= 2 and _whole(x, mass):
        low, high = math.floor(low), math.ceil(high)
        width = max(1, math.ceil((high - low + 1) / n_bars))
        bars = low - 0.5 + width * np.arange(math.ceil((high - low + 1) / width) + 1)
        # Cell (a, b] holds the whole numbers a + 1 … b, each a bar's width of 1.
        below, above = np.floor(below) + 0.5, np.floor(above) + 0.5
        below[0] = math.ceil(bins.low) - 0.5
        top = above - 0.5
    else:
        bars = np.linspace(low, high, n_bars + 1)
        top = above
    share = _spread(below, above, top, x, mass, np.asarray(bars, np.float64))
    return Histogram(float(low), float(high), tuple(bars.tolist()), tuple(share))


def _whole(x: Floats, mass: Floats) -> bool:
    """Tell whether a variable holds whole numbers: most rows are in cells of one such value."""
    near = np.abs(x - np.round(x)) <= 1e-9 * np.maximum(np.abs(x), 1.0)
    return bool(mass[near].sum() >= 0.8)


def _spread(
    below: Floats, above: Floats, top: Floats, x: Floats, mass: Floats, bars: Floats
) -> list[float]:
    """Share the mass of cells out to bars.

    A frequent value is the largest of its cell, so that as much lies there as the cell's mean x
    is off its middle; the rest is even.
    """
    middle = (below + above) / 2
    reach = top - middle
    at_top = np.divide(x - middle, reach, out=np.ones_like(x), where=reach > 0).clip(0.0, 1.0)
    at_top[above - below <= 1e-9 * np.maximum(np.abs(above), 1.0)] = 1.0
    place = np.searchsorted(bars, top, side="left") - 1
    place[top == bars[0]] = 0
    inside = (place >= 0) & (top <= bars[-1])
    found = np.bincount(place[inside], (mass * at_top)[inside], len(bars) - 1)
    wide = at_top < 1
    a, b, rest = below[wide], above[wide], (mass * (1 - at_top))[wide]
    cover = np.minimum(b[:, None], bars[1:]) - np.maximum(a[:, None], bars[:-1])
    found = found + (rest / (b - a)) @ np.maximum(cover, 0.0)
    shares: list[float] = found.tolist()
    return shares
