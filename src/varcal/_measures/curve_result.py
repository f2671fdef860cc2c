"""Curve: what is predicted and observed along one variable, to read, save and draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from varcal._arrays import Bools, Floats
from varcal._edge_texts import range_text, show_duration, show_instant
from varcal._inference.bands import Bands
from varcal._input.frames import frame_of
from varcal._input.variables import LARGEST_EXACT
from varcal._sums.bins import NumericBins
from varcal._sums.profile import Cells, Profile
from varcal._text import (
    claim_of,
    count,
    html_table,
    interval,
    level_text,
    marked_side,
    off_by,
    percent,
    points_with_interval,
    range_words,
    short_number,
    signed,
)

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
#: The arrays of a curve, in the order in which tables show them.
SERIES = (
    "predicted",
    "observed",
    "gap",
    "predicted_low",
    "predicted_high",
    "observed_low",
    "observed_high",
    "gap_low",
    "gap_high",
    "band_low",
    "band_high",
    "density",
)
#: What a dict of a curve holds as it is.
FACTS = ("variable", "kind", "event", "level", "n_rows", "n_missing", "engine", "edges", "zone")
#: The numbers of a curve, which may be NaN.
NUMBERS = (
    "worst",
    "vce",
    "vce_low",
    "vce_high",
    "unsearched",
    "vece",
    "vece_low",
    "vece_high",
    "overall",
    "span",
    "missing_gap",
)


@dataclass(frozen=True)
class Region:
    """A range of the variable where the simultaneous band of the gap excludes zero.

    Attributes
    ----------
    low, high : float
        Its ends (positions of levels for a categorical variable).
    label : str
        The range as text.
    direction : {"over", "under"}
        The sign of the gap.
    gap_low, gap_high : float
        The smallest and the largest gap in the region.
    share : float
        The region's share of the weight.
    n : int
        The number of rows in the region.
    """

    low: float
    high: float
    label: str
    direction: str
    gap_low: float
    gap_high: float
    share: float
    n: int


def regions_of(
    bands: Bands,
    cells: Cells,
    kind: str,
    labels: tuple[str, ...],
    zone: str = "",
) -> tuple[Region, ...]:
    """Return the regions where the simultaneous band excludes zero."""
    sign = np.where(bands.low > 0, 1, np.where(bands.high < 0, -1, 0))
    breaks = np.ones(len(sign), bool) if kind == "levels" else np.diff(sign, prepend=0) != 0
    breaks[0] = True
    starts = np.flatnonzero(breaks)
    found = []
    for first, end in zip(starts, [*starts[1:], len(sign)], strict=True):
        if not sign[first]:
            continue
        inside = slice(first, end)
        gaps = bands.gap[inside]
        low, high = float(bands.x[first]), float(bands.x[end - 1])
        found.append(
            Region(
                low=low,
                high=high,
                label=_range_label(low, high, kind, labels, zone),
                direction="over" if sign[first] > 0 else "under",
                gap_low=float(gaps.min()),
                gap_high=float(gaps.max()),
                share=float(cells.weight[inside].sum() / cells.weight.sum()),
                n=int(cells.n[inside].sum()),
            )
        )
    return tuple(found)


def describe_region(region: Region, event: str) -> str:
    """Describe in words how large the gap is, and where.

    >>> region = Region(60, 72, "60 to 72", "over", 0.061, 0.094, 0.1, 1204)
    >>> describe_region(region, "correct")
    'too sure by 6.1 to 9.4 points for 60 to 72 (1,204 rows)'
    >>> describe_region(region, "positive")
    'too high by 6.1 to 9.4 points for 60 to 72 (1,204 rows)'
    """
    size = range_words(region.gap_low, region.gap_high, claim_of(event))
    return f"{size} for {region.label} ({count(region.n, 'row')})"


def _range_label(low: float, high: float, kind: str, labels: tuple[str, ...], zone: str) -> str:
    if kind in ("datetime", "duration"):
        return range_text(
            low, high, datetime=kind == "datetime", duration=kind == "duration", zone=zone
        )
    texts = [value_label(value, kind, labels) for value in (low, high)]
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def value_label(
    value: float, kind: str, labels: tuple[str, ...], zone: str = "", apart: float = 0.0
) -> str:
    """Return a value of a variable as text; `apart` is the distance of neighbouring instants."""
    if kind == "levels":
        return labels[int(value)]
    if kind == "datetime":
        return show_instant(value, zone, apart)
    if kind == "duration":
        return show_duration(float(f"{value:.4g}"))
    return short_number(value)


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


@dataclass(frozen=True, eq=False)
class Curve:
    """What is predicted and observed along a variable, and their gap, with bands.

    Attributes
    ----------
    variable, kind, event : str
        The variable, its kind ("numeric", "datetime", "duration" or "levels") and what the
        probabilities claim.
    x : ndarray
        Values of the variable (seconds since 1970 for dates, 0, 1, … for levels).
    labels : tuple of str
        The levels, empty for numbers and dates.
    predicted, observed, gap : ndarray
        Mean score, hit rate and their difference, smoothed. Of the confidence ("correct"), the
        paper's error is 1 − observed.
    predicted_low, …, gap_high : ndarray
        Pointwise bands.
    band_low, band_high : ndarray
        The simultaneous band, which contains the whole true gap curve in `level` of all samples.
    density : ndarray
        Density of the variable (share of the weight for levels).
    worst, vce : float
        v*, the value with the largest |gap| at the centre of the band, and VCE(v*), this |gap|.
        Along numbers and dates, the pointwise margin of |gap| is subtracted before values are
        compared, so that an uncertain end is not chosen for its noise.
    vce_low, vce_high : float
        Interval of the largest |gap| among the values searched.
    worst_set : ndarray of bool
        The values of x that could be v*.
    searched : tuple of float
        The least and the largest value among which v* was searched for.
    unsearched : float
        The share of the rows outside of these; see `search_note`.
    vece, vece_low, vece_high : float
        VECE over ten bins (those of the audit), debiased, with its interval.
    overall : float
        The gap over all rows of the curve.
    regions : tuple of Region
        The regions where the simultaneous band excludes zero.
    counts : ndarray
        Rows of each level, empty for numbers and dates.
    histogram : Histogram
        The distribution of the rows over the variable.
    span : float
        Share of the rows in a neighbourhood; 0 if values are estimated separately.
    breaks : tuple of float
        The first value after each jump of the gap that is certain; the curve breaks there.
    n_rows, n_missing : int
        Rows behind the curve, and rows with a missing value, which are not part of it.
    missing_gap : float
        Gap of the rows with a missing value, NaN if there are none.
    engine, edges : str
        What summed the rows, and whether cells were chosen from all of them ("exact") or from a
        sample ("sampled").
    """

    variable: str
    kind: str
    event: str
    x: Floats
    labels: tuple[str, ...]
    predicted: Floats
    observed: Floats
    gap: Floats
    predicted_low: Floats
    predicted_high: Floats
    observed_low: Floats
    observed_high: Floats
    gap_low: Floats
    gap_high: Floats
    band_low: Floats
    band_high: Floats
    density: Floats
    worst: float
    vce: float
    vce_low: float
    vce_high: float
    worst_set: Bools
    searched: tuple[float, float]
    unsearched: float
    vece: float
    vece_low: float
    vece_high: float
    overall: float
    regions: tuple[Region, ...]
    counts: NDArray[np.int64]
    histogram: Histogram
    span: float
    level: float
    n_rows: int
    n_missing: int
    missing_gap: float
    backend: str | None = None
    engine: str = "numpy"
    edges: str = "exact"
    zone: str = ""
    breaks: tuple[float, ...] = ()

    def _label(self, value: float) -> str:
        apart = float(self.x[-1] - self.x[0]) / len(self.x) if len(self.x) else 0.0
        return value_label(value, self.kind, self.labels, self.zone, apart)

    @property
    def worst_label(self) -> str:
        """v* as text."""
        return self._label(self.worst)

    @property
    def search_note(self) -> str:
        """Which rows v* was not searched for in, as a sentence; "" if it was in all of them."""
        if not self.unsearched > 0:
            return ""
        low, high = map(self._label, self.searched)
        return (
            f"v* was searched for from {low} to {high}; "
            f"{percent(self.unsearched)} of the rows lie outside."
        )

    @property
    def break_note(self) -> str:
        """Where the gap jumps, as a sentence; "" if no jump is certain."""
        at = map(self._label, self.breaks)
        return "The gap jumps at " + " and ".join(at) + "." if self.breaks else ""

    @property
    def direction(self) -> str:
        """The sign of the gap where the band excludes zero: "over", "under", "mixed" or "none"."""
        directions = {region.direction for region in self.regions}
        return "mixed" if len(directions) == 2 else directions.pop() if directions else "none"

    def to_dict(self) -> dict[str, Any]:
        """Return everything in plain Python types, ready for JSON (NaN as None)."""
        return {
            **{name: getattr(self, name) for name in FACTS},
            **{name: _plain(getattr(self, name)) for name in ("x", *SERIES, *NUMBERS)},
            "labels": list(self.labels),
            "worst_label": self.worst_label,
            "worst_set": self.worst_set.tolist(),
            "searched": [_plain(end) for end in self.searched],
            "direction": self.direction,
            "regions": [vars(region) for region in self.regions],
            "counts": self.counts.tolist(),
            "histogram": self.histogram.to_dict(),
            "breaks": list(self.breaks),
        }

    def to_frame(self) -> Any:
        """Return the curve as a frame of the input's library, one row per value of x.

        The first column has the name of the variable ("value" if another column has that name).
        """
        shown: Any = self.x
        if self.labels:
            shown = [self.labels[int(x)] for x in self.x]
        elif self.kind == "datetime":
            shown = np.array(np.round(self.x * 1e6), "M8[us]")
        clash = self.variable in (*SERIES, "in_worst_set")
        return frame_of(
            {"value" if clash else self.variable: shown}
            | {name: getattr(self, name) for name in SERIES}
            | {"in_worst_set": self.worst_set},
            self.backend,
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw what the model says and what happens along the variable.

        The rate that happens (of right predictions if the event is "correct") is a solid line with
        its pointwise band, and what the model says a dashed line. Below are a strip that marks
        where the simultaneous band of the gap excludes zero, above or below, and the histogram of
        the variable, both from the 1st to the 99th percentile. For levels, and numbers with few
        values, what happens is a dot with its interval, and what the model says a dash.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        from varcal._report.plot_variables import draw_curve  # noqa: PLC0415

        return draw_curve(self, ax)

    def _heading(self) -> tuple[str, str]:
        """Return what the curve is of, and how large its gap is."""
        claim = claim_of(self.event)
        head = f"Curve of {self.variable!r}: {claim}, {count(self.n_rows, 'row')}"
        k = int(np.abs(self.x - self.worst).argmin())
        gap = (self.band_low[k] + self.band_high[k]) / 2
        side = off_by(float(gap if gap == gap else self.gap[k]), claim)
        most = f"most at {self.worst_label}: {side}"
        if self.vce_low == self.vce_low:  # not without bands
            most += f" ({interval(self.vce_low, self.vce_high)})"
        return (
            head,
            f"VECE {points_with_interval(self.vece, self.vece_low, self.vece_high)}; {most}",
        )

    def __repr__(self) -> str:
        regions = [f"  {describe_region(region, self.event)}" for region in self.regions]
        where = "Surely off (the range of the gap):" if regions else "No place is surely off."
        legend = (
            f"Gap: what the model says minus what happens; intervals at {level_text(self.level)}."
        )
        notes = filter(None, [self.break_note, self.search_note, legend])
        return "\n".join([*self._heading(), where, *regions, *notes])

    def _repr_html_(self) -> str:
        claim = claim_of(self.event)
        regions: dict[str, list[Any]] = {
            self.variable: [region.label for region in self.regions],
            "surely": [marked_side(_sign(region), claim) for region in self.regions],
            "smallest gap, points": [signed(region.gap_low) for region in self.regions],
            "largest gap, points": [signed(region.gap_high) for region in self.regions],
            "rows": [region.n for region in self.regions],
        }
        return html_table(regions, "\n".join(self._heading()), self.search_note)


def _sign(region: Region) -> float:
    return 1.0 if region.direction == "over" else -1.0


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [None if x != x else x for x in value.tolist()]
    return None if value != value else float(value)
