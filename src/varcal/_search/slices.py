"""`slices`: the few regions of several variables where a model is most wrong."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from varcal._input.events import audit_keys, claim_names
from varcal._input.groups import check_two_groups, distinct_groups
from varcal._input.labels import Part
from varcal._input.left_out import must_read
from varcal._input.predictions import ALL, Predictions
from varcal._input.variables import Variable
from varcal._options import (
    check_flag,
    check_names,
    checked,
    one_of,
    or_none,
    whole,
)
from varcal._search.cells import Grid, grid_of
from varcal._search.choose import ROUNDING, Chosen, choose, hunt
from varcal._search.condition import SCORE, Condition
from varcal._search.figures import (
    Figures,
    FiguresOfAll,
    Wanted,
    figures_of,
    lazy_figures,
)
from varcal._search.intervals import Reach, reach_of
from varcal._search.known_gaps import fit, overall_design, single_design
from varcal._search.outcomes import Outcomes
from varcal._search.slices_result import Slice, Slices
from varcal._sums.evidence import without_left_out
from varcal._sums.gather import refuse_sums, rows_of_call
from varcal._sums.sources import LazyRows
from varcal._sums.stream import Roles, sample_rows
from varcal._sums.survey import survey_of
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError

#: Known gaps that can be taken off before the search.
AFTER = (None, "average", "single")
#: Rows that are searched; figures are those of all rows.
SEARCH_ROWS = 200_000
#: Slices that are shown at most.
MOST = 5
#: With fewer rows there is nothing to search: no slice could be told from chance.
FEWEST_ROWS = 200


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
    refuse_sums(y, "slices()")
    _check_options(max_depth, after, level, draws)
    source = _read(
        y,
        p,
        X,
        data,
        classes,
        pos_label,
        sample_weight,
        groups,
        from_logits,
        unlabelled,
        must_read(X, include),
        search_rows,
    )
    rows, left_out = _searchable(source.rows, X, include)
    keys = audit_keys(rows.classes, pos_label)
    names = claim_names(rows.classes, keys)
    outcomes = Outcomes.of(rows, random_state)
    grids = {key: _grid(rows, outcomes, key, score=score) for key in keys}
    outcomes = _known_gaps(outcomes, rows, keys, after)
    depths = (2 if after == "single" else 1), max_depth
    found = hunt(grids, outcomes, keys, depths=depths, draws=draws)
    chosen = choose(found, outcomes, alpha=1 - level, most=most)
    wanted = [Wanted(_conditions(grids[one.key], one), one.key) for one in chosen]
    figures = source.figures(rows, wanted)
    share_searched = len(rows) / max(figures.n_rows, 1)
    shown = []
    for k, one in enumerate(chosen):
        reach = reach_of(one, found, level=level, seed=random_state + k, share=share_searched)
        own, joining = figures.own[k], figures.joining[k]
        made = _slice(wanted[k], one, own, joining, figures.weight, reach, names[one.key])
        if reach.clear and made.low * made.high > 0:
            shown.append(made)
    return Slices(
        p_value=found.p_value(float(found.statistic[0])),
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


@dataclass(frozen=True, eq=False)
class _Source:
    """Rows to search, and where all rows are."""

    rows: Predictions
    engine: str
    whole: Predictions | None = None
    lazy: LazyRows | None = None
    roles: Roles | None = None
    part: Part | None = None

    def figures(self, rows: Predictions, wanted: Sequence[Wanted]) -> FiguresOfAll:
        """Return the figures of slices on all rows."""
        if self.lazy is not None and self.roles is not None and self.part is not None:
            return lazy_figures(self.lazy, self.roles, self.part, wanted)
        return figures_of(self.whole or rows, wanted, hashed=False)


def _read(
    y: object,
    p: object,
    X: object,
    data: object,
    classes: Sequence[Hashable] | None,
    pos_label: Hashable,
    sample_weight: object,
    groups: object,
    from_logits: bool,
    unlabelled: str,
    required: tuple[str, ...] | None,
    search_rows: int,
) -> _Source:
    """Read rows in memory, or a sample of lazy rows."""
    found = rows_of_call(
        y,
        p,
        X,
        data=data,
        classes=classes,
        pos_label=pos_label,
        sample_weight=sample_weight,
        groups=groups,
        from_logits=from_logits,
        unlabelled=unlabelled,
        must_read=required,
    )
    if isinstance(found, Predictions):
        return _Source(_sampled(found, search_rows), found.engine, found)
    lazy = found.rows
    survey = survey_of(lazy, found.roles, classes, found.n_all)
    rows = sample_rows(lazy, survey.roles, survey.part.classes, search_rows)
    rows = replace(rows, odd=dict(survey.odd))
    return _Source(rows, lazy.engine, lazy=lazy, roles=survey.roles, part=survey.part)


def _sampled(rows: Predictions, most: int) -> Predictions:
    """Return a random sample of rows if there are more than so many."""
    n = len(rows)
    if n <= most:
        return rows
    return rows.take(np.sort(np.random.default_rng(0).choice(n, most, replace=False)))


def _searchable(
    rows: Predictions, X: object, include: str | Sequence[str] | None
) -> tuple[Predictions, dict[str, str]]:
    """Check that there is enough to search; leave out identifiers and the like, and say why."""
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


def _grid(rows: Predictions, outcomes: Outcomes, key: int, *, score: bool) -> Grid:
    """Cut the variables into cells, and the score of the claim if it is among them."""
    own = outcomes.score(key)
    variables, is_score = list(rows.variables), [False] * len(rows.variables)
    if score:
        if any(one.name == SCORE for one in variables):
            raise InputError(
                f"X has a column {SCORE!r}, the name of the model's own probability",
                "rename the column, or omit {score}",
                argument="X",
                settings={"score": None},
            )
        variables.append(Variable(SCORE, "numeric", own))
        is_score.append(True)
    return grid_of(variables, own, is_score)


def _known_gaps(
    outcomes: Outcomes, rows: Predictions, keys: Sequence[int], after: str | None
) -> Outcomes:
    """Take off what is known already."""
    if after is None:
        return outcomes
    explained = {}
    about = [1] if outcomes.two else keys
    for key in about:
        s, hit = outcomes.score(key), outcomes.hit(key)
        side = np.zeros(len(hit), dtype=np.intp)
        if outcomes.two and len(keys) > 1:
            side = outcomes.predicted
        design = overall_design(side)
        if after == "single":
            score = Variable(SCORE, "numeric", s)
            grid = grid_of([*rows.variables, score], s, [False] * (len(rows.variables) + 1))
            design = single_design(grid, side)
        explained[key] = fit(design, s, hit, outcomes.weight)
    if outcomes.two:
        return replace(outcomes, p=explained[1].score, explained=explained)
    return replace(outcomes, explained=explained)


def _conditions(grid: Grid, one: Chosen) -> tuple[Condition, ...]:
    """Return the conditions of a rule, in the order of the variables."""
    pairs = sorted(zip(one.rule.axes, one.rule.ends, strict=True))
    return tuple(grid.axes[axis].condition(*ends) for axis, ends in pairs)


def _slice(
    wanted: Wanted,
    one: Chosen,
    own: Figures,
    joining: Sequence[Figures],
    total: float,
    reach: Reach,
    claim: str,
) -> Slice:
    gap = own.gap
    positive, error = one.rule.sign == 0, own.standard_error
    low, high = reach.interval(gap, error, positive=positive)
    # The condition whose removal changes the gap least.
    after = [gap - rest.gap for rest in joining if rest.weight > 0]
    return Slice(
        conditions=wanted.conditions,
        claim=claim,
        rows=own.rows,
        share=own.weight / total,
        weight=own.weight,
        predicted=own.predicted,
        observed=own.observed,
        gap=gap,
        shrunk=reach.shrunk(gap, error, positive=positive),
        low=low,
        high=high,
        p_adjusted=one.p_adjusted,
        over_parents=min(after, key=abs, default=gap),
        key=one.key,
    )


def _notes(n_searched: int, figures: FiguresOfAll) -> tuple[str, ...]:
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
