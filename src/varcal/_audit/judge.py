"""From evidence to the record of an audit: variables are measured and ranked, places named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from varcal._arrays import Bools, Floats, Ints, ratio_or_zero
from varcal._audit.record import TOP_CLASS, AuditRow, Place, Target, TargetFigures
from varcal._audit.verdict import limit_of, state_of
from varcal._edge_texts import edge_texts
from varcal._inference.calibration_test import calibration_test, minimum_detectable
from varcal._inference.debiased import LawErrors, over_bins, with_p
from varcal._inference.error_sums import ErrorSums
from varcal._inference.gap_law import GapLaw, cell_law, finer_law, gap_interval, gap_law, part_of
from varcal._inference.multiplicity import benjamini_hochberg, cauchy, holm, rank_range
from varcal._input.groups import buckets
from varcal._input.labels import CORRECT, Claim
from varcal._input.predictions import Predictions
from varcal._measures.bin_table import BinTable, bin_columns, table_of
from varcal._measures.estimate import measure_and_test, overall_gap
from varcal._sums.bins import Bins, LevelBins, coarse_index
from varcal._sums.evidence import Evidence
from varcal._sums.profile import Profile, merged
from varcal._sums.stats import BinnedStats
from varcal._text import ABOVE, BELOW, FINDINGS, MAY_BE, NO_EVIDENCE, TOO_FEW_ROWS, near_number

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
class ClearPlace:
    """A place, how clear it is, and whether its gap is above what the average explains."""

    place: Place
    clarity: float
    above: bool

    @property
    def bins(self) -> slice:
        """The bins that it is made of."""
        return slice(self.place.first_bin, self.place.last_bin + 1)


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
        names = ("n", "score", "hit", "weight", "weight2")
        self.rows, self.scores, self.hits, self.weights, self.squares = (
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
        self.clarity = np.abs(self.hidden) * self._rows_that_count(n)

    def _rows_that_count(self, n: Floats) -> Floats:
        """Return by what the uneven gap of each place is multiplied to see how clear it is."""
        return np.sqrt(n)

    def clearest(self, apart_from: ClearPlace | None = None) -> ClearPlace | None:
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
        place = self._place(bins, int(way) - 1, worse=bool(worse[way, span] > 0))
        return ClearPlace(place, float(clarity[way, span]), bool(self.hidden[way, span] > 0))

    def two(self) -> tuple[ClearPlace, ...]:
        """Return the clearest place and the clearest in the other direction, sure ones first."""
        first = self.clearest()
        other = None if first is None else self.clearest(apart_from=first)
        named = (part for part in (first, other) if part is not None)
        return tuple(sorted(named, key=lambda part: not part.place.is_sure))

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
        _, gap, se = part_of(self.law, cells.ravel())
        weight = float((self.weights * cells).sum())
        predicted, observed = (
            float((sums * cells).sum()) / weight for sums in (self.scores, self.hits)
        )
        low, high = self._interval(gap, se, observed, cells)
        text, label = self._texts(bins)
        return Place(
            variable=self.whole.name,
            target=self.target,
            text=text,
            label=label,
            side=self.sides[side] if side >= 0 else "",
            predicted=predicted,
            observed=observed,
            gap=gap,
            low=low,
            high=high,
            n=n,
            share=weight / float(self.weights.sum()),
            worse=worse,
            first_bin=bins.start,
            last_bin=bins.stop - 1,
        )

    def _interval(
        self, gap: float, se: float, observed: float, cells: Floats
    ) -> tuple[float, float]:
        """Return the interval of the gap of a place; `cells` are 1 where it is."""
        weight = float((self.weights * cells).sum())
        effective = weight**2 / float((self.squares * cells).sum())
        reach = se * self.law.quantile(self.level)
        low, high = gap_interval(gap, reach, effective, observed, self.level)
        return float(low), float(high)

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
            every = self.whole.coarse.bins.edge_array  # type: ignore[union-attr]
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
        edges = stats.bins.edge_array  # type: ignore[union-attr]
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


def chosen_places(parts: Sequence[tuple[ClearPlace, Bools | None]]) -> tuple[Place, ...]:
    """Choose the clearest places that are not much the same rows.

    Places where the model is better than on average come last: readers ask where it is wrong.

    Parameters
    ----------
    parts : sequence of (ClearPlace, mask)
        The places of variables that are off, and which rows are in them if that is known.
    """
    chosen: list[tuple[ClearPlace, Bools | None]] = []
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


#: Variables that are measured together.
BLOCK = 64
#: Without evidence, a variable with fewer rows than this gets the verdict "too few rows".
FEW_ROWS = 100
#: So does one along which only an error above this could have been detected.
TOO_COARSE = 0.1
#: With more than two classes, errors of a class that both of its sides share count this many times
#: in its test: opposite ones are found by the top class, too.
SHARED = 3
#: A predicted side with a smaller share of the rows joins the other.
LEAST_SIDE = 0.01


@dataclass(frozen=True)
class Settings:
    """What an audit is asked: names and limits of its figures.

    Attributes
    ----------
    label : str
        The name of the outcome.
    keys : sequence of int
        The targets, as keys of claims.
    level : float
        The level of intervals and tests.
    limit, relative_limit : float or None
        The error that matters, in probability or as a share of the rate.
    random_state : int
        Seed of the random signs of groups.
    """

    label: str
    keys: tuple[int, ...]
    level: float
    limit: float | None = None
    relative_limit: float | None = None
    random_state: int = 0


@dataclass(frozen=True, eq=False)
class Judged:
    """The targets over all rows, the ranked variables with their bins, and the chosen places."""

    targets: tuple[Target, ...]
    rows: tuple[AuditRow, ...]
    places: tuple[Place, ...]
    bins: dict[str, Bins]


def judge(evidence: Evidence, names: Sequence[str], settings: Settings) -> Judged:
    """Judge the given variables, and the model over all rows."""
    targets = {key: target_of(evidence, key, names[0], settings) for key in settings.keys}
    # Tables of fine cells by bucket of groups are large: one variable at a time.
    size = 1 if evidence.grouped else BLOCK
    blocks = (names[start : start + size] for start in range(0, len(names), size))
    measured = chain.from_iterable(
        _measured(evidence, block, targets, settings, len(names)) for block in blocks
    )
    found = list(measured)
    rows = ranked(found, {one.name: one.limit for one in targets.values()}, settings.level)
    parts = {one.row.variable: one for one in found}
    bins = {name: one.whole.bins for name, one in parts.items()}
    return Judged(tuple(targets.values()), rows, places_of(evidence, rows, parts), bins)


def target_of(evidence: Evidence, key: int, name: str, settings: Settings) -> Target:
    """Return what one target shows over all rows; `name` is any variable."""
    level = settings.level
    along = sides_of(evidence, key, name)
    every = merged(along).coarse
    overall = overall_gap(every, level)
    score = evidence.profile(key, None)
    by_score = measure_and_test(score, level=level, random_state=settings.random_state)
    events = _events(every)
    limit, reason = limit_of(
        overall.confidence, overall.accuracy, events, settings.limit, settings.relative_limit
    )
    label = "" if key == CORRECT else str(evidence.label(key))
    two = len(evidence.classes) == 2
    other = str(evidence.classes[1 - key]) if two else f"not {label}"
    # "all" is the name of both sides together in tables, and no name that in places.
    names = tuple(f"'{one}'" if one in ("", "all") else one for one in (other, label))
    # The interval need not be symmetric: its end towards zero decides.
    reach = overall.gap - overall.low if overall.gap > 0 else overall.high - overall.gap
    z = float(ndtri(0.5 + level / 2)) * abs(overall.gap) / reach if reach > 0 else 0.0
    return Target(
        name=TOP_CLASS if key == CORRECT else f"P({settings.label} = {label})",
        label=label,
        sides=names if len(along) == 2 else (),
        predicted=overall.confidence,
        observed=overall.accuracy,
        gap=overall.gap,
        gap_low=overall.low,
        gap_high=overall.high,
        p_value=2 * float(ndtr(-z)),
        by_score=by_score,
        score=replace(
            table_of(score.coarse, np.zeros(score.coarse.bins.size), "positive", level, evidence),
            columns=_columns(score.coarse, level),
        ),
        events=events,
        limit=limit,
        limit_reason=reason,
    )


def _events(every: BinnedStats) -> int:
    """Return the rows of the rarer outcome; with weights, the effective number of them (Kish)."""
    hit, hit2, weight, weight2 = (
        float(every.total(name).sum()) for name in ("hit", "hit2", "weight", "weight2")
    )
    total, squares = min((hit, hit2), (weight - hit, weight2 - hit2))
    return round(total**2 / squares) if squares > 0 else 0


def sides_of(evidence: Evidence, key: int, name: str) -> list[Profile]:
    """Return the tables of a target along a variable, one or one for each predicted side."""
    if key == CORRECT:
        return [evidence.profile(CORRECT, name)]
    found = evidence.sided(key, name)
    weight = [one.coarse.total("weight").sum() for one in (found.others, found.own)]
    if min(weight) >= LEAST_SIDE * sum(weight):
        return [found.others, found.own]
    return [found.claim]


def cell_sums(
    index: Ints, size: int, side: Bools | None, claim: Claim, rows: Predictions
) -> list[ErrorSums]:
    """Return the sums of the cells of each predicted side; a side with few rows joins the other."""
    share = 0.0 if side is None else float(np.average(side, weights=rows.weight))
    sides = 1
    if side is not None and LEAST_SIDE <= share <= 1 - LEAST_SIDE:
        index, sides = index + size * side, 2
    bucket, n_buckets = buckets(rows.unit)
    cell = index if bucket is None else index + sides * size * bucket
    n_cells = sides * size * n_buckets
    sums = ErrorSums.from_rows(cell, claim.score, claim.hit, rows.weight, n_bins=n_cells)
    shape = (sides, size) if bucket is None else (n_buckets, sides, size)
    return [
        ErrorSums(**{name: value.reshape(shape)[..., k, :] for name, value in vars(sums).items()})
        for k in range(sides)
    ]


@dataclass(frozen=True, eq=False)
class _Along:
    """One target along one variable: its tables, the laws of bins and finer cells, its p-value."""

    key: int
    profiles: list[Profile]
    law: GapLaw
    centered: GapLaw
    finer: tuple[GapLaw, GapLaw] | None
    p_value: float

    @property
    def tables(self) -> list[BinnedStats]:
        return [one.coarse for one in self.profiles]


@dataclass(frozen=True, eq=False)
class Found:
    """A row before it is ranked, and the places that it may name."""

    row: AuditRow
    whole: BinnedStats
    parts: tuple[ClearPlace, ...]


def _measured(
    evidence: Evidence,
    names: Sequence[str],
    targets: Mapping[int, Target],
    settings: Settings,
    n_variables: int,
) -> Iterator[Found]:
    """Measure and test some variables; equal computations are done together."""
    seen = [
        [_along(evidence, key, name, settings.random_state) for key in settings.keys]
        for name in names
    ]
    flat = [one for each in seen for one in each]
    level, alpha, m = settings.level, 1 - settings.level, len(settings.keys)
    errors = LawErrors.of([one.finer[0] if one.finer else one.law for one in flat])
    sizes = LawErrors.of([one.finer[1] if one.finer else one.centered for one in flat])
    # Only lower limits pay for the choice of the target.
    strict = 1 - alpha / (m * n_variables)
    highs = sizes.high(1 - alpha / n_variables)
    columns = errors.measured(level), sizes.measured(level), sizes.low(strict), highs
    found = iter(zip(flat, *columns, strict=True))
    for several in seen:
        p_value = _together(several)
        figures = []
        for one, error, uneven, low, high in islice(found, len(several)):
            target = targets[one.key]
            if one.finer:
                bins, centered = LawErrors.of([one.law]), LawErrors.of([one.centered])
                error = over_bins(error, bins.measured(level)[0])
                uneven = over_bins(uneven, centered.measured(level)[0])
                low = max(low, centered.low(strict)[0])
            uneven = with_p(uneven, p_value if m == 1 else one.p_value, level)
            figures.append((TargetFigures(target.name, error, uneven, low, high), one, target))
        # The evidence may be that of one class: another is not named for its size alone.
        clear = max(alpha / m, min(one.p_value for one in several))
        figures.sort(key=lambda three: _order(clear, *three))
        yield _found(evidence, figures, p_value, level, n_variables)


def _order(
    clear: float, figures: TargetFigures, along: _Along, target: Target
) -> tuple[bool, bool, float]:
    """Sort targets: surely above the limit, clearly uneven, then by size relative to the limit."""
    size = figures.uneven.debiased + 1e-3 * figures.uneven.value
    below, unclear = figures.low <= target.limit, along.p_value > clear
    return below, unclear, -size / max(target.limit, 1e-9)


def _along(evidence: Evidence, key: int, name: str, random_state: int) -> _Along:
    profiles = sides_of(evidence, key, name)
    coarse, fine = [one.coarse for one in profiles], [one.fine for one in profiles]
    tested = calibration_test(
        coarse,
        fine,
        profiles[0].placed,
        constant=True,
        shared=SHARED if len(evidence.classes) > 2 else 1,
        seed=random_state,
    )
    finer = None
    if tested.changes and tested.finer is not None:
        finer = finer_law(fine, tested.finer), finer_law(fine, tested.finer, center=True)
    laws = cell_law(coarse), cell_law(coarse, center=True)
    return _Along(key, profiles, *laws, finer, tested.p_value)


def _together(several: Sequence[_Along]) -> float:
    """Combine the p-values of targets: the top class counts as much as all classes together."""
    top = [np.array(one.p_value) for one in several if one.key == CORRECT]
    classes = [np.array(one.p_value) for one in several if one.key != CORRECT]
    return float(cauchy([*top, cauchy(classes)] if classes else top))


def _found(
    evidence: Evidence,
    figures: Sequence[tuple[TargetFigures, _Along, Target]],
    p_value: float,
    level: float,
    n_variables: int,
) -> Found:
    own, along, target = figures[0]
    whole = merged(along.profiles)
    places = Places(
        whole,
        along.law,
        along.centered.gap,
        along.tables,
        target.name,
        target.sides,
        1 - (1 - level) / n_variables,
    )
    parts = places.two()
    row = AuditRow(
        variable=whole.name,
        kind=whole.kind,
        verdict=NO_EVIDENCE,
        target=target.name,
        error=own.error,
        uneven=with_p(own.uneven, p_value, level),
        low=own.low,
        high=own.high,
        p_holm=1.0,
        p_bh=1.0,
        rank_low=1,
        rank_high=n_variables,
        table=_table(evidence, along, target, places.texts(), level),
        places=tuple(part.place for part in parts),
        missing=float(whole.fine.share[-1]) if whole.missing else 0.0,
        others=tuple(one for one, _, _ in figures[1:]),
    )
    return Found(row, whole.coarse, parts)


def _table(
    evidence: Evidence, along: _Along, target: Target, texts: list[str], level: float
) -> BinTable:
    """Return the bins over all rows, and by predicted side if there are two."""
    tables = along.tables
    whole = tables[0] if len(tables) == 1 else tables[0] + tables[1]
    parts = {"all": _columns(whole, level)}
    for side, stats in zip(target.sides, tables, strict=False):
        parts[side] = _columns(stats, level)
        parts[side]["share"] = (stats.total("weight") / whole.total("weight").sum()).tolist()
    made = table_of(whole, np.zeros(whole.bins.size), "positive", level, evidence)
    return replace(made, columns=columns_by_side(parts, texts))


def columns_by_side(
    parts: Mapping[str, dict[str, list[Any]]], texts: list[str]
) -> dict[str, list[Any]]:
    """Put the tables of sides below each other, with the names of the bins and the sides."""
    columns: dict[str, list[Any]] = {}
    for side, made in parts.items():
        made = made | {"bin": texts}
        first = ["bin", *(name for name in ("low", "high") if name in made)]
        rest = {name: values for name, values in made.items() if name not in first}
        shown = {name: made[name] for name in first} | {"side": [side] * len(texts)} | rest
        for name, values in shown.items():
            columns.setdefault(name, []).extend(values)
    return columns


def _columns(stats: BinnedStats, level: float) -> dict[str, list[Any]]:
    """Return the columns of a table of bins, with intervals that hold with few events, too."""
    law = gap_law(stats)
    reach = law.quantile(level) * law.standard_error
    rows = ratio_or_zero(stats.total("weight") ** 2, stats.total("weight2"))
    low, high = gap_interval(stats.gap, reach, rows, stats.accuracy, level)
    return bin_columns(stats, reach) | {"gap_low": low.tolist(), "gap_high": high.tolist()}


def ranked(
    found: Sequence[Found], limits: Mapping[str, float], level: float
) -> tuple[AuditRow, ...]:
    sizes = [one.row.uneven for one in found]
    p = [size.p_value for size in sizes]
    p_holm, p_bh = holm(p).tolist(), benjamini_hochberg(p).tolist()
    best, worst = rank_range(
        *zip(*[(size.debiased, size.low, size.high) for size in sizes], strict=True)
    )
    order = sorted(range(len(found)), key=lambda k: (-sizes[k].debiased, -sizes[k].value))
    rows = []
    for k in order:
        row = found[k].row
        joint = with_p(replace(sizes[k], low=row.low, high=row.high), p_holm[k], level)
        # What holds for all variables at once never says more than what holds for this one.
        low, high = min(joint.low, sizes[k].low), max(joint.high, sizes[k].high)
        verdict = _verdict(found[k], p_holm[k], low, high, limits, level)
        rows.append(
            replace(
                row,
                uneven=replace(sizes[k], debiased=joint.debiased),
                low=low,
                high=high,
                p_holm=p_holm[k],
                p_bh=p_bh[k],
                rank_low=int(best[k]),
                rank_high=int(worst[k]),
                verdict=verdict,
                places=row.places if verdict in FINDINGS else (),
            )
        )
    return tuple(rows)


def _verdict(
    one: Found, p_holm: float, low: float, high: float, limits: Mapping[str, float], level: float
) -> str:
    if p_holm < 1 - level:
        others = [(each.low, each.high, limits[each.target]) for each in one.row.others]
        states = [state_of(*each) for each in [(low, high, limits[one.row.target]), *others]]
        return next(state for state in (ABOVE, MAY_BE, BELOW) if state in states)
    stats = one.whole
    one_bin = (stats.total("weight") > 0).sum() < 2 and one.row.kind == "levels"
    few = one_bin or int(stats.n.sum()) < FEW_ROWS
    if not few and one.row.scale == "points":
        few = float(minimum_detectable(gap_law(stats), level=1 - level)) > TOO_COARSE
    return TOO_FEW_ROWS if few else NO_EVIDENCE


def places_of(
    evidence: Evidence, rows: Sequence[AuditRow], found: Mapping[str, Found]
) -> tuple[Place, ...]:
    """Choose for whom the model is wrong: of variables above the limit, or else with evidence."""
    above = [row for row in rows if row.verdict == ABOVE]
    parts: list[tuple[ClearPlace, Bools | None]] = []
    for row in above or [row for row in rows if row.verdict in FINDINGS]:
        one = found[row.variable]
        for part in one.parts:
            if part.place.is_sure:
                mask = evidence.members(row.variable, one.whole.bins, part.bins)
                parts.append((part, mask))
    return chosen_places(parts)
