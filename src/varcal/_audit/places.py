"""Places: the parts of a variable where a claim is clearly off, or least known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from varcal._arrays import Bools, Floats, Ints, ratio_or_zero
from varcal._binning.bins import LevelBins, coarse_index
from varcal._evidence.profile import Profile
from varcal._inference.measured import gap_law
from varcal._measures.regions import value_label
from varcal._text.edges import edge_texts
from varcal._text.gaps import off_by
from varcal._text.numbers import count

#: At most this many places are named for a whole audit, and this many of one variable.
MOST_GROUPS = 5
MOST_OF_VARIABLE = 2
#: A place with a smaller share of the weight has no gap to tell: shares are differences of running
#: sums, which are exact to 1e-16.
LEAST_SHARE = 1e-12
#: Two places that share this part of the rows that are in either of them count as one.
SAME_ROWS = 0.5
#: All values of a cell are the same if their mean is within this part of one of its edges.
SAME_VALUE = 1e-9
#: A place where the model is better than on average is named only if no place where it is worse
#: has this part of its clarity: readers ask where it is wrong.
WORSE_FIRST = 0.3


@dataclass(frozen=True)
class Place:
    """A part of a variable: a level, a range of values, or the missing values.

    Attributes
    ----------
    variable, claim : str
        The variable, and the claim whose figures these are.
    text, label : str
        The part as text ("36 to 60"), and with the name of the variable ("age 36 to 60").
    predicted, observed : float
        Mean score and hit rate of the claim.
    gap, low, high : float
        The difference of the two, with an interval that holds for all places of all variables.
    n : int
        The number of rows.
    share : float
        Their share of the weight.
    """

    variable: str
    claim: str
    text: str
    label: str
    predicted: float
    observed: float
    gap: float
    low: float
    high: float
    n: int
    share: float

    @property
    def largest_gap(self) -> float:
        """The largest gap, in whichever direction, that cannot be ruled out."""
        return max(abs(self.low), abs(self.high))

    def _check_saved(self) -> None:
        """Raise ValueError unless the figures are shares, or missing."""
        figures = (self.predicted, self.observed, self.gap, self.low, self.high, self.share)
        if any(abs(figure) > 1e3 for figure in figures) or self.n < 0:
            raise ValueError("a figure of a place is too large, or its rows are negative")


@dataclass(frozen=True)
class Part:
    """Neighbouring bins of a variable, and how far their gap is from what the average explains.

    `worse` is whether their gap is larger than that, and `above` whether it is above it.
    """

    bins: slice
    place: Place
    clarity: float
    worse: bool
    above: bool


class Places:
    """All places of one claim along one variable: ranges of neighbouring bins, or single levels.

    Parameters
    ----------
    found : Profile
        The claim along the variable.
    hidden : ndarray
        The gap of each bin without the average gap (of each predicted side).
    claim : str
        Its name.
    level : float
        Level of the intervals, which hold for all places of the variable at once.
    """

    def __init__(self, found: Profile, hidden: Floats, claim: str, level: float) -> None:
        self.found, self.claim = found, claim
        self.law = gap_law(found.coarse)
        self.start, self.stop = _spans(found)
        self.reach = self.law.quantile(1 - (1 - level) / max(len(self.start), 1))
        share = self.law.share
        self.share = _over(share, self.start, self.stop)
        told = np.where(self.share > LEAST_SHARE, self.share, 0.0)
        self.gap = ratio_or_zero(_over(share * self.law.gap, self.start, self.stop), told)
        self.hidden = ratio_or_zero(_over(share * hidden, self.start, self.stop), told)
        self.rows = _over(found.coarse.n.astype(float), self.start, self.stop)

    def clearest(self, apart_from: Part | None = None) -> Part | None:
        """Return the place whose gap differs most clearly from what the average explains.

        Clear is |hidden gap| · √rows. A place with a larger gap than the average explains comes
        before one with a smaller gap, unless the latter is much clearer. With `apart_from`,
        places that overlap with it or differ in the same direction do not count.
        """
        clarity = np.abs(self.hidden) * np.sqrt(self.rows)
        if apart_from is not None:
            taken = apart_from.bins
            clarity[(self.start < taken.stop) & (taken.start < self.stop)] = 0.0
            clarity[(self.hidden > 0) == apart_from.above] = 0.0
        if not clarity.any():
            return None
        worse = np.where(np.abs(self.gap) > np.abs(self.gap - self.hidden), clarity, 0.0)
        best = int((worse if worse.max() > WORSE_FIRST * clarity.max() else clarity).argmax())
        bins = slice(int(self.start[best]), int(self.stop[best]))
        return Part(
            bins=bins,
            place=self._place(bins),
            clarity=float(clarity[best]),
            worse=bool(worse[best] > 0),
            above=bool(self.hidden[best] > 0),
        )

    def weakest(self) -> Place:
        """Return the bin in which the largest gap cannot be ruled out."""
        filled = np.flatnonzero(self.found.coarse.total("weight") > 0).tolist()
        bins = [slice(k, k + 1) for k in filled]
        return self._place(max(bins, key=self._room))

    def _figures(self, bins: slice) -> tuple[int, float, float, float]:
        """Return rows, share, gap and standard error of neighbouring bins."""
        share = self.law.share[bins]
        total = float(share.sum())
        part = share / total
        se = math.sqrt(max(float(part @ self.law.cov[bins, bins] @ part), 0.0))
        n = int(self.found.coarse.n[bins].sum())
        return n, total, float(part @ self.law.gap[bins]), se

    def _interval(self, gap: float, se: float) -> tuple[float, float]:
        return max(gap - self.reach * se, -1.0), min(gap + self.reach * se, 1.0)

    def _room(self, bins: slice) -> float:
        """Return the largest gap of neighbouring bins that cannot be ruled out."""
        _, _, gap, se = self._figures(bins)
        return max(map(abs, self._interval(gap, se)))

    def _place(self, bins: slice) -> Place:
        stats = self.found.coarse
        n, share, gap, se = self._figures(bins)
        low, high = self._interval(gap, se)
        weight = stats.total("weight")[bins].sum()
        text, label = self._texts(bins)
        return Place(
            variable=self.found.name,
            claim=self.claim,
            text=text,
            label=label,
            predicted=float(stats.total("score")[bins].sum() / weight),
            observed=float(stats.total("hit")[bins].sum() / weight),
            gap=gap,
            low=low,
            high=high,
            n=n,
            share=share,
        )

    def _texts(self, bins: slice) -> tuple[str, str]:
        name, stats = self.found.name, self.found.coarse
        if isinstance(stats.bins, LevelBins):
            text = stats.bins.labels()[bins.start]
            return text, f"{name}: {text}"
        if self.found.missing and bins.start == stats.bins.size - 1:
            return "missing", f"{name} missing"
        low, high = self._end_texts(bins)
        last = stats.bins.size - self.found.missing
        if low == high:
            return low, f"{name} {low}"
        text = f"{_without_unit(low, high)} to {high}"
        if bins.start == 0 and bins.stop < last:
            text = f"up to {high}"
        elif bins.stop == last and bins.start > 0:
            text = f"from {low}" if self.found.kind == "datetime" else f"{low} and over"
        return text, f"{name} {text}"

    def _end_texts(self, bins: slice) -> list[str]:
        kind, ends = self.found.kind, self._ends(bins).tolist()
        if kind == "numeric":
            return [value_label(end, kind, ()) for end in ends]
        zone = getattr(self.found.coarse.bins, "zone", "")
        return edge_texts(ends, datetime=kind == "datetime", duration=kind == "duration", zone=zone)

    def _ends(self, bins: slice) -> Floats:
        """Return the first and the last value of neighbouring bins, from the fine cells.

        They are the mean values of the first and the last cell. Where cells are as wide as bins,
        or a bin is a single cell, they are its edges, unless all its values are the same.
        """
        stats = self.found.fine
        merged = coarse_index(stats.bins, self.found.coarse.bins)
        weight = stats.total("weight")
        inside = np.flatnonzero((merged >= bins.start) & (merged < bins.stop) & (weight > 0))
        ends = inside[[0, -1]]
        edges = np.asarray(stats.bins.edges)  # type: ignore[union-attr]
        below, above = edges[ends], edges[ends + 1]
        # Infinite values count as 0 in the sum; the mean must stay inside its cell.
        mean = np.clip(stats.total("x")[ends] / weight[ends], below, above)
        if stats.bins != self.found.coarse.bins and ends[0] < ends[1]:
            return mean
        same = np.isclose(mean, below, SAME_VALUE, 0) | np.isclose(mean, above, SAME_VALUE, 0)
        wide = np.array([below[0], above[1]])
        return np.where(same | ~np.isfinite(wide), mean, wide)


def _without_unit(low: str, high: str) -> str:
    """Leave out the unit of a duration that the next one has, too.

    >>> _without_unit("3 days", "7 days"), _without_unit("90 min", "3 h"), _without_unit("3", "7")
    ('3', '90 min', '3')
    """
    text, _, unit = low.rpartition(" ")
    return text if text and high.endswith(f" {unit}") else low


def _over(values: Floats, start: Ints, stop: Ints) -> Floats:
    """Return the sums of values over ranges of bins."""
    ends = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray(ends[stop] - ends[start])


def _spans(found: Profile) -> tuple[Ints, Ints]:
    """Return the first bin of each place and the one after its last.

    Places are single levels, the missing values, and ranges of bins that start and end with a
    bin that has rows, except the range of all.
    """
    filled = found.coarse.total("weight") > 0
    size = len(filled) - found.missing
    start, stop = (x.ravel() for x in np.mgrid[0:size, 1 : size + 1])
    keep = start + 1 == stop
    if not isinstance(found.coarse.bins, LevelBins):
        keep = (start < stop) & ((stop - start < size) | (size == 1))
    keep &= filled[start] & filled[stop - 1]
    spans = np.stack([start, stop])[:, keep]
    if found.missing and filled[-1]:
        spans = np.hstack([spans, [[size], [size + 1]]])
    return spans[0], spans[1]


def describe_place(place: Place) -> str:
    """Say in words how far a claim is off, and where.

    >>> place = Place("age", "risk", "up to 29", "age up to 29", 0.2, 0.05, 0.15, 0.1, 0.2, 9, 0.3)
    >>> describe_place(place)
    'risk too high by 15.0 points where age up to 29 (9 rows)'
    """
    return f"{off_by(place.gap, place.claim)} where {place.label} ({count(place.n, 'row')})"


def chosen_groups(parts: Sequence[tuple[Part, Bools | None]]) -> tuple[Place, ...]:
    """Choose the clearest places that are not much the same rows, those too low first.

    Places where the model is better than on average come last: readers ask where it is wrong.

    Parameters
    ----------
    parts : sequence of (Part, mask)
        The places of variables that are off, and which rows are in them if that is known.
    """
    chosen: list[tuple[Part, Bools | None]] = []
    for part, mask in sorted(parts, key=lambda one: (not one[0].worse, -one[0].clarity)):
        of_variable = [one for one, _ in chosen if one.place.variable == part.place.variable]
        if len(chosen) == MOST_GROUPS or len(of_variable) == MOST_OF_VARIABLE:
            continue
        if not any(_overlap(mask, other) >= SAME_ROWS for _, other in chosen):
            chosen.append((part, mask))
    ordered = sorted(
        chosen, key=lambda one: (not one[0].worse, one[0].place.gap > 0, -one[0].clarity)
    )
    return tuple(part.place for part, _ in ordered)


def _overlap(mask: Bools | None, other: Bools | None) -> float:
    if mask is None or other is None:
        return 0.0
    return float((mask & other).sum() / max((mask | other).sum(), 1))
