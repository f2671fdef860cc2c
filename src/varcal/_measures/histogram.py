"""Histogram: where the rows of a variable lie, for the foot of a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._arrays import Floats
from varcal._binning.bins import NumericBins
from varcal._evidence.profile import Profile

#: The most bars of a numeric variable; a variable of whole numbers may have half as many more.
MOST_BARS = 40
#: The share of the rows left out at each end.
TRIM = 0.01


@dataclass(frozen=True, eq=False)
class Histogram:
    """How the rows spread over a variable.

    Attributes
    ----------
    edges : ndarray of shape (k + 1,)
        Edges of the bars. Numbers and dates: even, from the 1st to the 99th percentile; whole
        numbers lie in the middle of bars a whole number wide. Levels: −0.5, 0.5, 1.5, …
    share : ndarray of shape (k,)
        Share of the weight in each bar; what lies outside the percentiles is in none.
    trimmed : bool
        Whether rows lie outside.
    """

    edges: Floats
    share: Floats
    trimmed: bool

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON."""
        return {
            "edges": self.edges.tolist(),
            "share": self.share.tolist(),
            "trimmed": self.trimmed,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Histogram:
        """Return the histogram that `to_dict` described."""
        return cls(
            np.array(data["edges"], np.float64),
            np.array(data["share"], np.float64),
            bool(data["trimmed"]),
        )


def histogram_of(found: Profile, edges: Floats | None = None) -> Histogram:
    """Count the rows of a profile into bars, given ones or fitting ones; missing ones are out."""
    weight = found.fine.total("weight")[: -1 if found.missing else None]
    share = weight / weight.sum()
    bins = found.fine.bins
    if not isinstance(bins, NumericBins):
        edges = np.arange(len(share) + 1, dtype=np.float64) - 0.5
        return Histogram(edges, share, trimmed=False)
    ends = np.array([bins.low, *bins.cuts, bins.high])
    below = np.concatenate([[0.0], np.cumsum(share)])
    if edges is not None:
        return _smooth_bars(edges, ends, below)
    low, high = (float(x) for x in np.interp([TRIM, 1 - TRIM], below, ends))
    if not low < high:
        low, high = bins.low, bins.high
    if not np.isfinite([low, high]).all():  # infinities only
        low = high = 0.0
    if not low < high:
        return Histogram(np.array([low - 0.5, low + 0.5]), np.ones(1), trimmed=False)
    cells = found.cells()
    mass, whole = cells.weight / cells.weight.sum(), cells.x == np.round(cells.x)
    if min(mass[whole].sum(), whole.mean()) > 0.5 and low + 1 <= high:
        edges = _whole_edges(low, high)
        bars = np.histogram(cells.x, edges, weights=mass)[0].astype(np.float64)
        return Histogram(edges, bars, trimmed=bool(bars.sum() < 1 - 1e-9))
    return _smooth_bars(np.linspace(low, high, MOST_BARS + 1), ends, below)


def _smooth_bars(edges: Floats, ends: Floats, below: Floats) -> Histogram:
    """Spread the mass of each cell evenly between its ends."""
    # The first edge belongs to its bar, and so does a heap that lies on it.
    at = np.array([np.nextafter(edges[0], -np.inf), *edges[1:]])
    bars = np.diff(np.interp(at, ends, below))
    return Histogram(edges, bars, trimmed=bool(bars.sum() < 1 - 1e-9))


def _whole_edges(low: float, high: float) -> Floats:
    """Return edges between whole numbers, each bar holding equally many of them."""
    first, last = np.floor(low), np.ceil(high)
    step = max(1, int(np.ceil((last - first + 1) / (1.5 * MOST_BARS))))
    return np.arange(first - 0.5, last + step, step)
