"""Places: the parts of a variable where a model is clearly wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from varcal._arrays import Bools, Floats, Ints, ratio_or_zero
from varcal._audit.record import Place
from varcal._edge_texts import edge_texts
from varcal._inference.gap_law import GapLaw, gap_interval, part_of
from varcal._sums.bins import LevelBins, coarse_index
from varcal._sums.profile import Profile
from varcal._sums.stats import BinnedStats
from varcal._text import near_number

#: At most this many places are named for a whole audit, and this many of one variable.
MOST_PLACES, MOST_OF_VARIABLE = 5, 2
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
class Part:
    """Neighbouring bins, over all rows (side −1) or within one predicted side, as a place."""

    bins: slice
    side: int
    place: Place
    clarity: float
    above: bool


class Places:
    """All places along one variable: ranges of neighbouring bins, or single levels.

    Parameters
    ----------
    whole : Profile
        All rows along the variable.
    law : GapLaw
        The law of the gaps of the cells, side by side.
    uneven : ndarray
        The gap of each cell without the average gap of its side.
    tables : sequence of BinnedStats
        The table of each side.
    target : str
        What the probabilities are of.
    sides : sequence of str
        The names of the sides.
    level : float
        Level of the intervals, which hold for all places of the variable at once.
    """

    def __init__(
        self,
        whole: Profile,
        law: GapLaw,
        uneven: Floats,
        tables: Sequence[BinnedStats],
        target: str,
        sides: Sequence[str],
        level: float,
    ) -> None:
        self.whole, self.law, self.target, self.sides = whole, law, target, tuple(sides)
        names = ("n", "score", "weight", "weight2")
        self.rows, self.scores, self.weights, self.squares = (
            np.array([stats.total(name) for stats in tables]) for name in names
        )
        self.start, self.stop = _spans(whole)
        many = len(tables)
        self.level = 1 - (1 - level) / max(len(self.start) * (2 * many - 1), 1)
        cells = [law.share, law.share * law.gap, law.share * uneven]
        share, gap, hidden = (values.reshape(many, -1) for values in cells)
        ways = range(-1, many) if many > 1 else (-1,)  # all rows, then each side
        sums = [
            [_over(x.sum(0) if way < 0 else x[way], self.start, self.stop) for way in ways]
            for x in (share, gap, hidden, self.rows)
        ]
        total, gaps, hiddens, n = (np.array(one) for one in sums)
        told = np.where(total > LEAST_SHARE, total, 0.0)
        self.gap, self.hidden = ratio_or_zero(gaps, told), ratio_or_zero(hiddens, told)
        self.clarity = np.abs(self.hidden) * np.sqrt(n)

    def clearest(self, apart_from: Part | None = None) -> Part | None:
        """Return the place whose gap differs most clearly from what the average explains.

        Clear is |uneven gap| · √rows, over all rows or within one predicted side: a side by itself
        is clearer only where the other one is not off in the same way. A place with a larger gap
        than the average explains comes before one with a smaller gap, unless the latter is much
        clearer. With `apart_from`, places that overlap with it or differ in the same direction do
        not count.
        """
        clarity = self.clarity.copy()
        if apart_from is not None:
            taken = apart_from.bins
            clarity[:, (self.start < taken.stop) & (taken.start < self.stop)] = 0.0
            clarity[(self.hidden > 0) == apart_from.above] = 0.0
        if not clarity.any():
            return None
        worse = np.where(np.abs(self.gap) > np.abs(self.gap - self.hidden), clarity, 0.0)
        chosen = worse if worse.max() > WORSE_FIRST * clarity.max() else clarity
        way, span = np.unravel_index(int(chosen.argmax()), chosen.shape)
        bins = slice(int(self.start[span]), int(self.stop[span]))
        side = int(way) - 1
        return Part(
            bins=bins,
            side=side,
            place=self._place(bins, side, worse=bool(worse[way, span] > 0)),
            clarity=float(clarity[way, span]),
            above=bool(self.hidden[way, span] > 0),
        )

    def texts(self) -> list[str]:
        """Return each bin as text."""
        filled = self.weights.sum(0) > 0
        labels = self.whole.coarse.bins.labels()
        return [
            self._texts(slice(k, k + 1))[0] if filled[k] else label
            for k, label in enumerate(labels)
        ]

    def _place(self, bins: slice, side: int, *, worse: bool) -> Place:
        many, size = self.rows.shape
        cells = np.zeros((many, size))
        cells[slice(None) if side < 0 else side, bins] = 1.0
        n = int((self.rows * cells).sum())
        share, gap, se = part_of(self.law, cells.ravel())
        weight = float((self.weights * cells).sum())
        predicted = float((self.scores * cells).sum()) / weight
        effective = weight**2 / float((self.squares * cells).sum())
        reach = se * self.law.quantile(self.level)
        ends = gap_interval(gap, reach, effective, predicted - gap, self.level)
        text, label = self._texts(bins)
        return Place(
            variable=self.whole.name,
            target=self.target,
            text=text,
            label=label,
            side=self.sides[side] if side >= 0 else "",
            predicted=predicted,
            observed=predicted - gap,
            gap=gap,
            low=float(ends[0]),
            high=float(ends[1]),
            n=n,
            share=share,
            worse=worse,
            first_bin=bins.start,
            last_bin=bins.stop - 1,
        )

    def _texts(self, bins: slice) -> tuple[str, str]:
        name, stats = self.whole.name, self.whole.coarse
        if isinstance(stats.bins, LevelBins):
            text = stats.bins.labels()[bins.start]
            return text, f"{name}: {text}"
        if self.whole.missing and bins.start == stats.bins.size - 1:
            return "missing", f"{name} missing"
        low, high = self._end_texts(bins)
        last = stats.bins.size - self.whole.missing
        if low == high:
            return low, f"{name} {low}"
        text = f"{_without_unit(low, high)} to {high}"
        if bins.start == 0 and bins.stop < last:
            text = f"up to {high}"
        elif bins.stop == last and bins.start > 0:
            text = f"from {low}" if self.whole.kind == "datetime" else f"{low} and over"
        return text, f"{name} {text}"

    def _end_texts(self, bins: slice) -> list[str]:
        kind, ends = self.whole.kind, self._ends(bins).tolist()
        if kind == "numeric":
            every = np.asarray(self.whole.coarse.bins.edges)  # type: ignore[union-attr]
            width = np.diff(every[bins.start : bins.stop + 1])
            width = width[np.isfinite(width) & (width > 0)]
            return [near_number(end, float(width.min()) if len(width) else 0.0) for end in ends]
        zone = getattr(self.whole.coarse.bins, "zone", "")
        return edge_texts(ends, datetime=kind == "datetime", duration=kind == "duration", zone=zone)

    def _ends(self, bins: slice) -> Floats:
        """Return the first and the last value of neighbouring bins, from the fine cells.

        They are the mean values of the first and the last cell. Where cells are as wide as bins,
        or a bin is a single cell, they are its edges, unless all its values are the same; or
        the first and the last whole number inside if all values are whole.
        """
        stats = self.whole.fine
        merged = coarse_index(stats.bins, self.whole.coarse.bins)
        weight = stats.total("weight")
        inside = np.flatnonzero((merged >= bins.start) & (merged < bins.stop) & (weight > 0))
        ends = inside[[0, -1]]
        edges = np.asarray(stats.bins.edges)  # type: ignore[union-attr]
        below, above = edges[ends], edges[ends + 1]
        # Infinite values count as 0 in the sum; the mean must stay inside its cell.
        mean = np.clip(stats.total("x")[ends] / weight[ends], below, above)
        if stats.bins != self.whole.coarse.bins and ends[0] < ends[1]:
            return mean
        total = stats.total("x")[weight > 0]
        if self.whole.kind == "numeric" and np.array_equal(total, np.round(total)):
            cuts = [stats.bins.low - 1, *stats.bins.cuts, stats.bins.high]  # type: ignore[union-attr]
            whole = np.array([np.floor(cuts[ends[0]]) + 1, np.floor(cuts[ends[1] + 1])])
            if np.isfinite(whole).all() and whole[0] <= whole[1]:
                return whole
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


def chosen_places(parts: Sequence[tuple[Part, Bools | None]]) -> tuple[Place, ...]:
    """Choose the clearest places that are not much the same rows.

    Places where the model is better than on average come last: readers ask where it is wrong.

    Parameters
    ----------
    parts : sequence of (Part, mask)
        The places of variables that are off, and which rows are in them if that is known.
    """
    chosen: list[tuple[Part, Bools | None]] = []
    for part, mask in sorted(parts, key=lambda one: (not one[0].place.worse, -one[0].clarity)):
        of_variable = [one for one, _ in chosen if one.place.variable == part.place.variable]
        if len(chosen) == MOST_PLACES or len(of_variable) == MOST_OF_VARIABLE:
            continue
        if not any(_overlap(mask, other) >= SAME_ROWS for _, other in chosen):
            chosen.append((part, mask))
    return tuple(part.place for part, _ in chosen)


def _overlap(mask: Bools | None, other: Bools | None) -> float:
    if mask is None or other is None:
        return 0.0
    return float((mask & other).sum() / max((mask | other).sum(), 1))
