"""Histogram: the distribution of the rows over a variable, drawn below curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from varcal._arrays import Floats
from varcal._input.variables import LARGEST_EXACT
from varcal._sums.bins import NumericBins
from varcal._sums.profile import Profile

#: The largest number of bars of a numeric variable.
MOST_BARS = 40
#: A variable of whole numbers may have this many times as many bars, so that more of them have a
#: bar for each number.
WHOLE_NUMBERS = 1.5
#: A variable is drawn as one of whole numbers if more than this share of its rows and of its
#: cells have whole numbers.
MOSTLY_WHOLE = 0.5
#: The share of the rows that is cut off at each end.
TRIM = 0.01
#: Values are scaled if all of them are nearer to zero than this.
LEAST_WIDTH = 1e-100
#: Rows are reported as cut off if the shares of the bars sum to less than 1 by more than this.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Histogram:
    """The distribution of the rows over a variable.

    Attributes
    ----------
    edges : ndarray of shape (k + 1,)
        Edges of the bars. Numbers and dates: even, from the 1st to the 99th percentile. For whole
        numbers the width of a bar is a whole number, and the edges lie between the numbers.
        Levels: −0.5, 0.5, 1.5, …
    share : ndarray of shape (k,)
        Share of the weight in each bar; rows outside the percentiles are not included.
    trimmed : bool
        Whether there are rows outside the bars.
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
            data["trimmed"],
        )

    def _check_saved(self) -> None:
        """Raise ValueError unless there is one more edge than bars, in increasing order."""
        if self.edges.shape != (self.share.size + 1,) or self.share.ndim != 1:
            raise ValueError("edges and shares do not match")
        if not self.share.size or not np.isfinite(self.share).all():
            raise ValueError("a share is not a number")
        if not np.isfinite(self.edges).all() or not (np.diff(self.edges) > 0).all():
            raise ValueError("edges do not increase")


def histogram_of(found: Profile, edges: Floats | None = None) -> Histogram:
    """Return the histogram of a profile without missing values, with given or chosen edges."""
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
    if not _room(low, high):  # nearly all rows have the same value
        low, high = bins.low, bins.high
    if not np.isfinite([low, high]).all():  # infinities only
        low = high = 0.0
    if not _room(low, high):
        return Histogram(_one_bar(low), np.ones(1), trimmed=False)
    cells = found.cells()
    mass, whole = cells.weight / cells.weight.sum(), cells.x == np.round(cells.x)
    near = max(-low, high) < LARGEST_EXACT
    if near and min(mass[whole].sum(), whole.mean()) > MOSTLY_WHOLE and low + 1 <= high:
        edges = _whole_edges(low, high)
        bars = np.histogram(cells.x, edges, weights=mass)[0].astype(np.float64)
        return Histogram(edges, bars, trimmed=bool(bars.sum() < 1 - ROUNDING))
    # Halves, because the width of the widest range would overflow.
    even = np.linspace(low, high, MOST_BARS + 1) if near else 2 * _halves(low, high)
    return _smooth_bars(even, ends, below)


def _room(low: float, high: float) -> bool:
    """Tell whether the edges of bars between two values would be distinct numbers.

    >>> _room(0.0, 1.0), _room(1.0 - 2**-53, 1.0)
    (True, False)
    """
    return -np.inf < low < high < np.inf and bool((np.diff(_halves(low, high)) > 0).all())


def _one_bar(value: float) -> Floats:
    """Return the edges of a bar around a value of any size."""
    half = max(0.5, 4 * float(np.spacing(abs(value))))
    most = np.finfo(np.float64).max
    return np.clip([value - half, value + half], -most, most)


def _halves(low: float, high: float) -> Floats:
    return np.linspace(low / 2, high / 2, MOST_BARS + 1)


def _smooth_bars(edges: Floats, ends: Floats, below: Floats) -> Histogram:
    """Spread the mass of each cell evenly between its ends."""
    # The first edge belongs to its bar, and so do all rows with exactly this value.
    at = np.array([np.nextafter(edges[0], -np.inf), *edges[1:]])
    far = float(np.abs(ends[np.isfinite(ends)]).max(initial=0.0))
    if 0 < far < LEAST_WIDTH:
        # By a power of two, which is exact; the slope between two cells would overflow.
        power = int(np.frexp(far)[1])
        at, ends = np.ldexp(at, -power), np.ldexp(ends, -power)
    bars = np.diff(np.interp(at, ends, below))
    return Histogram(edges, bars, trimmed=bool(bars.sum() < 1 - ROUNDING))


def _whole_edges(low: float, high: float) -> Floats:
    """Return edges between whole numbers, with equally many numbers in each bar."""
    first, last = np.floor(low), np.ceil(high)
    step = max(1, int(np.ceil((last - first + 1) / (WHOLE_NUMBERS * MOST_BARS))))
    return np.arange(first - 0.5, last + step, step)
