"""`slices`: the few regions of several variables where a model is most wrong."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats
from varcal._input.events import audit_keys, claim_names, claim_of
from varcal._input.groups import N_BUCKETS, buckets, check_two_groups, distinct_groups
from varcal._input.labels import Part
from varcal._input.left_out import must_read
from varcal._input.predictions import ALL, Predictions
from varcal._input.variables import Variable
from varcal._options import check_flag, check_names, checked, one_of, or_none, whole
from varcal._search.cells import SearchRows, grid_of, read_rows
from varcal._search.choose_slices import (
    ROUNDING,
    Chosen,
    Reach,
    choose,
    judge,
    reach_of,
    shrunk_error,
)
from varcal._search.outcomes import Outcomes
from varcal._search.slices_result import SCORE, Condition, Slice, Slices
from varcal._sums.evidence import without_left_out
from varcal._sums.sources import batch_columns
from varcal._sums.stream import Roles
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError, rows_numbered_from

#: Known gaps that can be taken off before the search.
AFTER = (None, "average", "single")
#: Rows that are searched; figures are those of all rows.
SEARCH_ROWS = 200_000
#: Slices that are shown at most.
MOST = 5
#: With fewer rows there is nothing to search: no slice could be told from chance.
FEWEST_ROWS = 200
#: The least share of a slice outside one bucket of groups that a variance is corrected for.
_LEAST_REST = 1e-3
#: The sums of `_FigureSums`.
_SUMS = 8


@checked(
    after=one_of(*AFTER),
    max_depth=one_of(1, 2, 3),
    score=check_flag,
    most=whole(1, 1_000),
    draws=whole(19, 100_000),
    search_rows=whole(FEWEST_ROWS, 100_000_000),
    include=or_none(check_names),
)
@one_blas_thread()
def slices(
    y: object,
    p: object,
    X: object = ALL,
    *,
    data: object = None,
    pos_label: Hashable = None,
    classes: Sequence[Hashable] | None = None,
    max_depth: int = 3,
    after: str | None = "average",
    score: bool = False,
    most: int = MOST,
    draws: int = 99,
    level: float = 0.95,
    sample_weight: object = None,
    groups: object = None,
    from_logits: bool = False,
    unlabelled: str = "raise",
    include: str | Sequence[str] | None = None,
    search_rows: int = SEARCH_ROWS,
    random_state: int = 0,
) -> Slices:
    r"""Find the slices of several variables where a model's probabilities are most wrong.

    A slice is a conjunction of conditions on up to three variables: ranges of numbers and dates,
    sets of levels. All ranges of one variable, all rectangles of two and the extensions of the best
    rectangles to a third are searched. The largest

    .. math:: t = \sum_{i \in R} w_i e_i \Big/ \Big(\sum_{i \in R} w_i^2 s_i (1 - s_i)\Big)^{1/2},
        \qquad e = \text{hit} - s,

    of the slices of each depth and size is compared with that of outcomes drawn from the model's
    own probabilities and searched in the same way. The p-value is therefore valid for the whole
    search: with a calibrated model, at most 1 − level of all searches show any slice.

    Parameters
    ----------
    y, p : array-like or column names
        Labels and probabilities, as in `audit`.
    X : frame, dict of columns, array, or column names, optional
        The variables. By default every column of `data` that has no other role.
    data, classes, sample_weight, groups, from_logits, unlabelled, include
        As in `audit`. Missing values are a level of their own.
    max_depth : {1, 2, 3}
        The largest number of variables of a slice.
    after : {"average", "single", None}
        What is known already and taken off before the search: the overall gap; the gaps along all
        single variables and the score, so that only slices of two and three variables are
        searched that they do not explain; or nothing.
    score : bool
        Whether the score itself may be among the variables of a slice.
    pos_label : label, optional
        The class whose probability is judged, as in `audit`; the second one by default. With more
        than two classes the predicted class and every class are.
    most : int
        The largest number of slices to show.
    level : float
        Level of the test and of intervals.
    draws : int
        Simulated sets of outcomes. No p-value is below 1 / (draws + 1).
    search_rows : int
        With more rows than this, a random sample of this size is searched. The figures of slices
        are those of all rows.
    random_state : int
        Seed of the simulated outcomes.

    Returns
    -------
    Slices
        The slices, the clearest first; none whose interval contains 0. A slice has a rule, its
        figures, and the methods `mask` and `to_sql` that find its rows.

    Examples
    --------
    >>> import numpy as np
    >>> import varcal as vc
    >>> rng = np.random.default_rng(0)
    >>> X = {"age": rng.integers(20, 80, 3000), "sex": rng.choice(["f", "m"], 3000)}
    >>> p = rng.uniform(0.2, 0.8, 3000)
    >>> wrong = (X["age"] > 60) & (X["sex"] == "f")
    >>> y = rng.random(3000) < p - 0.2 * wrong
    >>> found = vc.slices(y, p, X)
    >>> len(found), bool(abs(found[0].shrunk - 0.2) < 0.06)
    (1, True)
    """
    _check_options(max_depth, after, level, draws)
    options = {
        "data": data,
        "classes": classes,
        "pos_label": pos_label,
        "sample_weight": sample_weight,
        "groups": groups,
        "from_logits": from_logits,
        "unlabelled": unlabelled,
        "must_read": must_read(X, include),
    }
    source = read_rows("slices()", y, p, X, options, most=search_rows)
    rows, left_out = _searchable(source.predictions, X, include, search_rows)
    keys = audit_keys(rows.classes, pos_label)
    names = claim_names(rows.classes, keys)
    outcomes = Outcomes.of(rows, keys, random_state)
    grids = {key: grid_of(rows.variables, s, _own(rows, s) if score else None)
             for key, s in outcomes.scores.items()}  # fmt: skip
    outcomes = outcomes.without_known(after, rows.variables)
    depths = (2 if after == "single" else 1), max_depth
    found = judge(grids, outcomes, depths=depths, draws=draws, alpha=1 - level)
    chosen = choose(found, outcomes, most=most)
    wanted = []
    for one in chosen:
        pairs = sorted(zip(one.rule.axes, one.rule.ends, strict=True))
        axes = grids[one.key].axes
        wanted.append((tuple(axes[axis].condition(*ends) for axis, ends in pairs), one.key))
    figures = _figures_of_all(source, wanted)
    shown = []
    for k, (one, (conditions, key)) in enumerate(zip(chosen, wanted, strict=True)):
        share = len(rows) / max(figures.n_rows, 1)
        reach = reach_of(one, found, seed=random_state + k, share=share)
        if reach is not None:
            made = _slice(conditions, names[key], one, reach, figures, k)
            # The gap itself must not be 0 either, only that beyond what is known.
            shown += [made] if made.low * made.high > 0 else []
    return Slices(
        p_value=found.p_value(),
        slices=tuple(shown),
        n=figures.n_rows,
        n_searched=len(rows),
        n_dropped=figures.n_dropped,
        n_variables=len(rows.variables),
        draws=draws,
        max_depth=max_depth,
        after=after,
        level=level,
        random_state=random_state,
        grouped=rows.unit is not None,
        left_out=tuple(left_out.items()),
        notes=_notes(len(rows), figures),
        engine=source.engine,
        backend=rows.backend,
    )


def _searchable(
    rows: Predictions, X: object, include: str | Sequence[str] | None, most: int
) -> tuple[Predictions, dict[str, str]]:
    """Draw and check the rows to search; leave out identifiers and the like, and say why."""
    if len(rows) > most:
        rows = rows.take(np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False)))
    if not rows.variables and not rows.odd:
        raise InputError("X is None", "give the variables to search", argument="X")
    if len(rows) < FEWEST_ROWS:
        raise InputError(
            f"y has {len(rows)} rows; a search of slices needs at least {FEWEST_ROWS}",
            "give more rows, or use audit",
            argument="y",
        )
    if rows.unit is not None:
        check_two_groups(len(distinct_groups(rows.unit)))
    return without_left_out(rows, X, include)


def _own(rows: Predictions, score: Floats) -> Variable:
    """Return the score as a variable."""
    if any(one.name == SCORE for one in rows.variables):
        raise InputError(
            f"X has a column {SCORE!r}, the name of the model's own probability",
            "rename the column, or omit {score}",
            argument="X",
            settings={"score": None},
        )
    return Variable(SCORE, "numeric", score)


def _slice(
    conditions: tuple[Condition, ...],
    claim: str,
    one: Chosen,
    reach: Reach,
    figures: _FigureSums,
    number: int,
) -> Slice:
    sums = figures.sums[number]
    gaps = (sums[:, 2] - sums[:, 3]) / np.where(sums[:, 1] > 0, sums[:, 1], np.nan)
    gap, error = float(gaps[0]), _standard_error(sums[0], figures.clusters[number][0])
    low, high = reach.interval(gap, error)
    # The condition whose removal changes the gap least.
    beyond = [float(gap - rest) for rest in gaps[1:] if not np.isnan(rest)]
    n, weight, predicted, observed = sums[0, :4].tolist()
    return Slice(
        conditions=conditions,
        claim=claim,
        rows=int(n),
        share=weight / figures.weight,
        weight=weight,
        predicted=predicted / weight,
        observed=observed / weight,
        gap=gap,
        shrunk=reach.shrunk(gap, error),
        low=low,
        high=high,
        p_adjusted=one.p_adjusted,
        over_parents=min(beyond, key=abs, default=gap),
        key=one.key,
    )


def _notes(n_searched: int, figures: _FigureSums) -> tuple[str, ...]:
    notes = []
    if figures.n_dropped:
        notes.append(f"{figures.n_dropped:,} rows without an outcome were left out.")
    if n_searched < figures.n_rows:
        notes.append(
            f"A random sample of {n_searched:,} rows was searched; all figures use every row."
        )
    return tuple(notes)


def _check_options(max_depth: int, after: str | None, level: float, draws: int) -> None:
    """Refuse options that leave nothing to search, or nothing to find."""
    if after == "single" and max_depth == 1:
        raise InputError(
            "max_depth is 1, and after is 'single': no slice is left to search",
            "use {max_depth} or more",
            argument="max_depth",
            settings={"max_depth": 2},
        )
    smallest = 1 / (draws + 1)
    if smallest > 1 - level + ROUNDING:
        raise InputError(
            f"draws is {draws}: no p-value can be below {smallest:.3g}, and level is {level}",
            "use more draws",
            argument="draws",
        )


#: The conditions and the claim of a slice.
_Wanted = tuple[tuple[Condition, ...], int]


@dataclass(frozen=True, eq=False)
class _FigureSums:
    """Sums of several slices that batches of rows add up to.

    Attributes
    ----------
    n_rows, n_dropped : int
        Rows, and rows dropped because their outcome is missing.
    weight : float
        The weight of all rows.
    sums : tuple of ndarray
        Of each slice, with a line for itself and one for each of its conditions (the rows that meet
        only the other ones): rows; sums of w, w·score and w·hit; of w²·e², w²·e, w² and
        w²·score·(1 − score), where e = hit − score.
    clusters : tuple of ndarray
        For the same lines, sums of w·e and w by bucket of groups; there are none without groups.
    """

    n_rows: int
    n_dropped: int
    weight: float
    sums: tuple[Floats, ...]
    clusters: tuple[Floats, ...]

    def __add__(self, other: _FigureSums) -> _FigureSums:
        return _FigureSums(
            self.n_rows + other.n_rows,
            self.n_dropped + other.n_dropped,
            self.weight + other.weight,
            tuple(map(add, self.sums, other.sums)),
            tuple(map(add, self.clusters, other.clusters)),
        )


def _standard_error(sums: Floats, clusters: Floats) -> float:
    """Return the standard error of the gap of a slice, shrunk towards that of calibrated scores."""
    n, W, predicted, observed, e2, e1, w2, null = sums.tolist()
    mean = (observed - predicted) / W
    error = shrunk_error(n, e2 - 2 * mean * e1 + mean * mean * w2, null, W)
    if clusters.size:
        residual, share = clusters[0] - mean * clusters[1], clusters[1] / W
        between = (residual**2 / np.maximum(1 - share, _LEAST_REST)).sum()
        error = max(error, float(np.sqrt(between) / W))
    return error


def _figures_of_all(source: SearchRows, wanted: Sequence[_Wanted]) -> _FigureSums:
    """Sum up all rows, in memory or in one pass over lazy rows."""
    if source.elsewhere is None:
        return _summed(source.predictions, wanted, hashed=False)
    lazy, roles, part = source.elsewhere
    work = _FiguresWork(roles, part, tuple(wanted), lazy.row_numbers_known)
    return reduce(add, lazy.map(roles.columns, work))


@dataclass(frozen=True)
class _FiguresWork:
    """Sum up a batch."""

    roles: Roles
    part: Part
    wanted: tuple[_Wanted, ...]
    row_numbers_known: bool

    def __call__(self, frame: Any, start: int) -> _FigureSums:
        with rows_numbered_from(start if self.row_numbers_known else None):
            batch = self.roles.read(batch_columns(frame), part=self.part)
        if len(batch):
            return _summed(batch, self.wanted, hashed=True)
        n_buckets = N_BUCKETS if self.roles.groups is not None else 0
        parts = [1 + len(conditions) for conditions, _ in self.wanted]
        sums = tuple(np.zeros((size, _SUMS)) for size in parts)
        clusters = tuple(np.zeros((size, 2, n_buckets)) for size in parts)
        return _FigureSums(0, batch.n_dropped, 0.0, sums, clusters)


def _summed(rows: Predictions, wanted: Sequence[_Wanted], *, hashed: bool) -> _FigureSums:
    """Sum up rows in memory; groups are hashed into buckets if batches are to be added."""
    w = np.ones(len(rows)) if rows.weight is None else rows.weight
    bucket, n_buckets = None, 0
    if rows.unit is not None:
        bucket, n_buckets = buckets(rows.unit, () if hashed else None)
    variables = {variable.name: variable for variable in rows.variables}
    sums, clusters = [], []
    for conditions, key in wanted:
        claim = claim_of(rows, key)
        s, e = claim.score, claim.hit - claim.score
        own = Variable(SCORE, "numeric", s)
        masks = [one.mask(own if one.is_score else variables[one.variable]) for one in conditions]
        terms = [np.ones(len(s)), w, w * s, w * (s + e), w * w * e * e, w * w * e, w * w]
        terms.append(w * w * s * (1 - s))
        some, between = [], []
        for inside in _parts(masks):
            some.append([float(term[inside].sum()) for term in terms])
            by_bucket = np.zeros((2, n_buckets))
            if bucket is not None:
                place: AnyArray = bucket[inside]
                for k, term in enumerate((w * e, w)):
                    by_bucket[k] = np.bincount(place, term[inside], n_buckets)
            between.append(by_bucket)
        sums.append(np.array(some))
        clusters.append(np.array(between))
    return _FigureSums(len(rows), rows.n_dropped, float(w.sum()), tuple(sums), tuple(clusters))


def _parts(masks: Sequence[Bools]) -> Iterator[Bools]:
    """Yield the rows that meet all conditions, then those that meet all but each of them."""
    yield np.logical_and.reduce(masks)
    for k, mask in enumerate(masks):
        yield np.logical_and.reduce([~mask, *masks[:k], *masks[k + 1 :]])
