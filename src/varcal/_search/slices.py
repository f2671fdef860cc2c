"""`slices`: the few regions of several variables where a model is most wrong.

**Blocks** are slices of the same depth and about the same size. The more slices there are in a
block, the larger is the largest |t| by chance. In a block it exceeds t with probability
1 − exp(−2·N·Φ(−t)), as if there were N independent slices. N is fitted to the maxima of all
columns, the data included, so that columns stay exchangeable. A column is as clear as its clearest
slice, by its p-value within its block.

**Intervals** allow for the search. The edges of a slice are chosen to make its gap large, so that
the gap found overstates the true gap of the very same rows. By how much is found by a bootstrap:
outcomes are drawn with a gap like the one found (less what it is overstated by) in these rows, the
variables of the rule and some others are searched in the same way, and the gap found is compared
with the true one of its rows. It is never overstated by more than what is clear in a search of
calibrated outcomes.

**Figures** are sums over all rows: of a slice, and of the rows that meet all conditions but one.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import combinations, product, zip_longest
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from varcal._arrays import Bools, Floats, Singles
from varcal._inference.multiplicity import two_sided_quantile
from varcal._input.groups import buckets, check_two_groups, distinct_groups
from varcal._input.labels import audit_keys, claim_names, claim_of
from varcal._input.left_out import must_read
from varcal._input.predictions import ALL, Predictions
from varcal._input.variables import Variable
from varcal._options import check_names, checked, one_of, or_none, whole
from varcal._search.cells import Grid, SearchRows, grid_of, read_rows
from varcal._search.outcomes import Outcomes
from varcal._search.scan import CLASSES, Rule, Space, refine, search
from varcal._search.slices_result import Condition, Slice, Slices
from varcal._sums.bins import LevelBins
from varcal._sums.evidence import without_left_out
from varcal._sums.stats import PRIOR_ROWS, BinnedStats, bin_rows
from varcal._threads import one_blas_thread
from varcal.exceptions import InputError

#: What can be taken off before the search.
AFTER = (None, "average")
#: Rows that are searched; figures are those of all rows.
SEARCH_ROWS = 200_000
#: Slices that are shown at most.
MOST = 5
#: With fewer rows there is nothing to search: no slice could be told from chance.
FEWEST_ROWS = 200
#: The least share of a slice outside one bucket of groups that a variance is corrected for.
_LEAST_REST = 1e-3
#: Bytes of residuals that are searched at once; a search needs about six times as much.
MOST_BYTES = 80_000_000
#: Quantiles of the maxima to which N is fitted.
_QUANTILES = np.array([0.8, 0.85, 0.9, 0.95])
#: Slices that share more than this part of their rows (of either claim) are the same finding.
MOST_SHARED = 0.5
#: p-values are fractions of whole numbers, and 1 − level is rounded.
ROUNDING = 1e-9
#: Searches per slice to show at most; some find what an earlier slice left behind.
ROUNDS = 2
#: A condition must raise t²/2 by this much over the best rule without it. A search finds one that
#: raises it by about log(number of conditions) ≈ 6 by chance. Chosen on planted slices of two
#: variables (few third conditions) and three (few losses).
WORTH = 9.0
#: It must also raise t² by this part of it: with many rows a condition that hardly changes a slice
#: is significant, and not worth its words.
LEAST_PART = 0.1
#: The same for one of the two ends of a range.
WORTH_OF_END = 4.0
#: How often each range of a shortened rule is chosen again.
SWEEPS = 3
#: Draws of the bootstrap, and variables that it searches besides those of the rule.
DRAWS, OTHERS = 200, 2
#: Rectangles that are extended and rules that are refined in the bootstrap's smaller search.
EXTENDED, REFINED = 5, 2
#: Standard errors by which the gap found is reduced before outcomes are drawn.
SHRUNK = 1.5
#: Factor of the quantile of overstatements: the bootstrap searches a few variables only, and slices
#: that are barely clear were found by luck more often than it knows. Chosen for 97 % of the slices
#: that 200 searches of the benchmark's planted slices showed; without it 91 % were covered.
WIDENED = 1.3


@checked(
    after=one_of(*AFTER),
    max_depth=one_of(1, 2, 3),
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
    after : {"average", None}
        Whether the average gap, which is known already, is taken off before the search.
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
    _check_draws(draws, level)
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
    grids = {key: grid_of(rows.variables, s) for key, s in outcomes.scores.items()}
    outcomes = outcomes if after is None else outcomes.without_average()
    found = judge(grids, outcomes, max_depth=max_depth, draws=draws, alpha=1 - level)
    chosen = choose(found, outcomes, most=most)
    wanted = [(found.spaces[one.key].conditions(one.rule), one.key) for one in chosen]
    (n, n_dropped), *tables = _figures(source, wanted)
    shown = []
    for k, (one, table) in enumerate(zip(chosen, tables, strict=True)):
        reach = _reach(one, found, seed=random_state + k, share=len(rows) / n)
        if reach is not None:
            shown.append(_slice(wanted[k][0], names[one.key], one, reach, table))
    notes = []
    if n_dropped:
        notes.append(f"{n_dropped:,} rows without an outcome were left out.")
    if len(rows) < n:
        notes.append(
            f"A random sample of {len(rows):,} rows was searched; all figures use every row."
        )
    return Slices(
        p_value=found.p_value(),
        # The gap itself must not be 0 either, only that beyond what is known.
        slices=tuple(one for one in shown if one.low * one.high > 0),
        n=int(n),
        n_searched=len(rows),
        n_dropped=int(n_dropped),
        n_variables=len(rows.variables),
        draws=draws,
        max_depth=max_depth,
        after=after,
        level=level,
        random_state=random_state,
        grouped=rows.unit is not None,
        left_out=tuple(left_out.items()),
        notes=tuple(notes),
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


def _check_draws(draws: int, level: float) -> None:
    """Refuse so few draws that no p-value can be small enough."""
    smallest = 1 / (draws + 1)
    if smallest > 1 - level + ROUNDING:
        raise InputError(
            f"draws is {draws}: no p-value can be below {smallest:.3g}, and level is {level}",
            "use more draws",
            argument="draws",
        )


def _block_law(top: Floats) -> Floats:
    """Return log N by depth and size, fitted to maxima of |t|; NaN in blocks without slices."""
    found = np.full(top.shape[:2], np.nan)
    for place in np.ndindex(*top.shape[:2]):
        ends = np.quantile(top[place], _QUANTILES, method="inverted_cdf")
        if np.isfinite(ends).all() and (ends > 0).all():
            found[place] = np.mean(np.log(-np.log(_QUANTILES)) - np.log(2) - log_ndtr(-ends))
    # Deeper and finer blocks have at least as many slices.
    for axis in (0, 1):
        filled = np.where(np.isnan(found), -np.inf, found)
        found = np.where(np.isnan(found), np.nan, np.maximum.accumulate(filled, axis=axis))
    return found


def _log_p(log_n: Any, t: Any) -> Floats:
    """Return log(2·N·Φ(−t)), the log p-value of slices within their block; ∞ without a block."""
    rates = log_n + np.log(2) + log_ndtr(-np.asarray(t))
    return np.where(np.isnan(rates) | ~np.isfinite(t), np.inf, rates)


@dataclass(frozen=True, eq=False)
class JudgedSearch:
    """A search of the data beside searches of simulated outcomes.

    Attributes
    ----------
    spaces, log_n, rules : mapping
        What is searched, the law of the maxima, and the best rules of the data, by claim.
    clearest : ndarray
        The log p-value of the clearest slice of each column; the data is column 0.
    alpha : float
        The level of the test.
    """

    spaces: Mapping[int, Space]
    log_n: Mapping[int, Floats]
    rules: Mapping[int, Sequence[Rule]]
    clearest: Floats
    alpha: float

    def p_value(self, clearest: float | None = None) -> float:
        """Return the share of columns that are at least as clear, the data itself included."""
        null = self.clearest[1:]
        own = self.clearest[0] if clearest is None else clearest
        return float((1 + (null <= own).sum()) / (1 + len(null)))

    def log_p(self, key: int, rule: Rule) -> float:
        """Return the log p-value of a rule within its block."""
        return float(_log_p(self.log_n[key][rule.depth - 1, rule.size], rule.t))

    def critical(self, key: int, rule: Rule) -> float:
        """Return the t above which a slice of this depth and size is clear in the whole search.

        In 1 − alpha of all calibrated searches no slice is above that of its own block.
        """
        null = np.sort(self.clearest[1:])
        allowed = int(self.alpha * (1 + len(null)) + ROUNDING)
        log_n = self.log_n[key][rule.depth - 1, rule.size]
        found = -float(ndtri_exp(min(null[allowed - 1] - log_n - np.log(2), 0.0)))
        return found if np.isfinite(found) else np.inf

    def is_clear(self, key: int, rule: Rule) -> bool:
        """Tell whether a slice is clear in the whole search."""
        return self.p_value(self.log_p(key, rule)) <= self.alpha + ROUNDING


def judge(
    grids: Mapping[int, Grid],
    outcomes: Outcomes,
    *,
    max_depth: int,
    draws: int,
    alpha: float,
) -> JudgedSearch:
    """Search the data and simulated outcomes in the same way."""
    spaces = {key: Space(grid, outcomes.weights(key), max_depth) for key, grid in grids.items()}
    rules: dict[int, Sequence[Rule]] = {}
    tops: dict[int, list[Floats]] = {key: [] for key in grids}
    for key, part in product(grids, _batches(len(outcomes.weight), 1 + draws)):
        top, best = search(spaces[key], outcomes.columns(key, part), kept=int(part.start == 0))
        tops[key].append(top)
        rules.setdefault(key, best[0] if best else [])
    together = {key: np.concatenate(several, axis=2) for key, several in tops.items()}
    log_n = {key: _block_law(top) for key, top in together.items()}
    rates = [_log_p(log_n[key][..., None], top) for key, top in together.items()]
    return JudgedSearch(spaces, log_n, rules, np.min(rates, axis=(0, 1, 2)), alpha)


def _batches(n_rows: int, columns: int) -> Iterator[slice]:
    """Yield slices of columns whose residuals fit into memory."""
    step = max(1, MOST_BYTES // (4 * max(n_rows, 1)))
    for first in range(0, columns, step):
        yield slice(first, min(first + step, columns))


@dataclass(frozen=True, eq=False)
class Chosen:
    """A slice to show.

    Attributes
    ----------
    key : int
        The claim.
    rule : Rule
        The slice.
    inside : ndarray of bool
        Its rows among those searched.
    p_adjusted : float
        The adjusted p-value.
    before : Outcomes
        Outcomes and probabilities with the gaps of earlier slices taken off.
    """

    key: int
    rule: Rule
    inside: Bools
    p_adjusted: float
    before: Outcomes


def choose(found: JudgedSearch, outcomes: Outcomes, *, most: int) -> list[Chosen]:
    """Return the slices to show, the clearest first.

    After each slice its gap is taken off, and the data is searched again. A later slice is shown if
    it was clear before that as well, so that none is shown for what an earlier one left behind.
    """
    first, rules = outcomes, found.rules
    chosen: list[Chosen] = []
    p_adjusted = 0.0
    for _ in range(ROUNDS * most):
        pairs = [(key, rule) for key, several in rules.items() for rule in several]
        if not pairs:
            break
        key, rule = min(pairs, key=lambda pair: found.log_p(*pair))
        p_adjusted = max(p_adjusted, found.p_value(found.log_p(key, rule)))
        if p_adjusted > found.alpha + ROUNDING:
            break
        space = replace(found.spaces[key], weights=outcomes.weights(key))
        shorter = shortened(space, rule, outcomes.observed(key)[:, 0])
        rule = shorter if found.is_clear(key, shorter) else rule
        inside = space.inside(rule)
        at_first = found.spaces[key].measured(rule, first.observed(key)[:, 0])
        shared = [_shared(inside, one.inside) for one in chosen]
        if max(shared, default=0.0) <= MOST_SHARED and found.is_clear(key, at_first):
            chosen.append(Chosen(key, rule, inside, p_adjusted, outcomes))
            if len(chosen) == most:
                break
        outcomes = outcomes.shifted(key, inside)
        rules = {
            k: search(replace(one, weights=outcomes.weights(k)), outcomes.observed(k))[1][0]
            for k, one in found.spaces.items()
        }
    return chosen


def _shared(one: Bools, other: Bools) -> float:
    return float((one & other).sum() / max((one | other).sum(), 1))


def shortened(space: Space, rule: Rule, e: Singles) -> Rule:
    """Drop conditions that are not worth it, one after the other."""
    while rule.depth > 1:
        shorter = [
            _chosen_again(space, rule, kept, e)
            for kept in combinations(range(rule.depth), rule.depth - 1)
        ]
        best = max(shorter, key=lambda one: one.t)
        if rule.t**2 / 2 - best.t**2 / 2 >= max(WORTH, LEAST_PART * rule.t**2 / 2):
            break
        rule = best
    while True:
        shorter = [space.measured(one, e) for one in _open_ended(space, rule)]
        if not shorter:
            return rule
        best = max(shorter, key=lambda one: one.t)
        if rule.t**2 / 2 - best.t**2 / 2 >= WORTH_OF_END:
            return rule
        rule = best


def _chosen_again(space: Space, rule: Rule, kept: Sequence[int], e: Singles) -> Rule:
    """Return the best rule of some of the variables of a rule."""
    places = []
    for k in kept:
        middle, (low, high) = space.grid.axes[rule.axes[k]].middle, rule.ends[k]
        first = int(np.searchsorted(middle, low, side="right")) - 1
        places.append((rule.axes[k], first, int(np.searchsorted(middle, high))))
    nothing = np.zeros(len(CLASSES))
    found = refine(space, e, (rule.sign, tuple(places)), nothing, SWEEPS, nothing.copy())
    if found is not None:
        return found
    return Rule(tuple(rule.axes[k] for k in kept), tuple(rule.ends[k] for k in kept), rule.sign)


def _open_ended(space: Space, rule: Rule) -> Iterator[Rule]:
    """Yield the rules with one end less, or without or with nothing but missing values."""
    for k, (axis, (low, high)) in enumerate(zip(rule.axes, rule.ends, strict=True)):
        of = space.grid.axes[axis]
        last = of.n_cells - (of.missing >= 0)
        if of.variable.kind == "levels" or high - low == 1:
            continue
        wider = [(0, high), (low, max(last, high))]
        if low < of.missing < high:
            wider += [(low, last), (last, of.n_cells)]
        for ends in wider:
            if ends not in ((low, high), (0, last), (0, of.n_cells)):
                yield replace(rule, ends=(*rule.ends[:k], ends, *rule.ends[k + 1 :]))


def _reach(
    one: Chosen, found: JudgedSearch, *, seed: int, share: float
) -> tuple[float, float, float] | None:
    """Return how far a found gap may lie from the true one, in standard errors.

    How much smaller the true gap may be, how much larger, and by how much the search overstates it
    on average; None if the gap may be 0 once what is known is taken off.

    Parameters
    ----------
    one : Chosen
        The slice.
    found : JudgedSearch
        The search that found it.
    seed : int
        Seed of the bootstrap.
    share : float
        The share of all rows that were searched: the others do not overstate the gap.
    """
    errors = _overstatements(one, found, seed)
    above = two_sided_quantile(1 - found.alpha)
    widened = WIDENED * float(np.quantile(errors, 1 - found.alpha / 2))
    below = max(min(widened, found.critical(one.key, one.rule)), above)
    if one.rule.t <= below:
        return None
    part = share**0.5
    return above + (below - above) * part, above, float(np.mean(errors)) * part


def _overstatements(one: Chosen, found: JudgedSearch, seed: int) -> Floats:
    """Return by how many standard errors the bootstrap's slices overstate their gaps."""
    space, key, before = found.spaces[one.key], one.key, one.before
    rng = np.random.default_rng(seed)
    rest = [axis for axis in range(len(space.grid.axes)) if axis not in one.rule.axes]
    axes = [*one.rule.axes, *rng.permutation(rest)[:OTHERS].tolist()]
    grid = Grid(
        tuple(space.grid.axes[a] for a in axes), np.ascontiguousarray(space.grid.fine[axes])
    )
    local = replace(space, grid=grid, extended=EXTENDED, refined=REFINED)
    e, w, variance = before.observed(key)[:, 0], before.weight, space.weights[:, 0]
    mean, error = _mean(e, w, variance, one.inside)
    gap = np.sign(mean) * max(abs(mean) - SHRUNK * error, 0.0)
    truth = replace(before.shifted(key, one.inside, gap), seed=seed)
    shift = w * (truth.scores[key] - before.scores[key])
    errors = []
    for part in _batches(len(e), DRAWS):
        # Residuals about the scores, not about the truth.
        raw = truth.drawn(key, part) + shift.astype(np.float32)[:, None]
        _, again = search(local, before.centred(key, raw), kept=raw.shape[1])
        for c, rules in enumerate(again):
            if rules:
                rule = min(rules, key=lambda one: found.log_p(key, one))
                inside = local.inside(rule)
                mean, error = _mean(raw[:, c], w, variance, inside)
                true = shift[inside].sum() / w[inside].sum()
                errors.append((1 if rule.sign else -1) * (mean - true) / error)
    return np.array(errors)


def _mean(e: Singles, w: Floats, variance: Floats, inside: Bools) -> tuple[float, float]:
    """Return the mean residual of some rows, and its standard error."""
    residual, w = e[inside].astype(np.float64), w[inside]
    total = float(w.sum())
    mean = float(residual.sum()) / total
    scatter = float(((residual - mean * w) ** 2).sum())
    # Shrunk towards that of calibrated scores, as in `BinnedStats.gap_se`.
    n, null = len(w), float(variance[inside].sum())
    shrunk = (n * scatter + PRIOR_ROWS * null) / (n + PRIOR_ROWS - 1)
    return mean, float(np.sqrt(shrunk)) / total


#: The conditions and the claim of a slice.
_Wanted = tuple[tuple[Condition, ...], int]


def _figures(source: SearchRows, wanted: Sequence[_Wanted]) -> list[Any]:
    """Sum up all rows, in memory or in one pass: rows and rows dropped, and a table per slice."""
    if source.elsewhere is None:
        return _summed(source.predictions, wanted=wanted, known=None)
    work = partial(_summed, wanted=wanted, known=())
    return reduce(_added, source.elsewhere.map(work))


def _added(one: list[Any], other: list[Any]) -> list[Any]:
    """Add the sums of two batches; one without rows has no tables."""
    return [a + b for a, b in zip_longest(one, other, fillvalue=0.0)]


def _summed(
    rows: Predictions, start: int = 0, *, wanted: Sequence[_Wanted], known: tuple[()] | None
) -> list[Floats]:
    """Sum up rows by what they meet: all conditions, all but one of them, or fewer."""
    found = [np.array([len(rows), rows.n_dropped])]
    if not len(rows):
        return found
    units = buckets(rows.unit, known)
    variables = {variable.name: variable for variable in rows.variables}
    for conditions, key in wanted:
        claim = claim_of(rows, key)
        unmet = ~np.array([one.mask(variables[one.variable]) for one in conditions])
        part = np.minimum(unmet.sum(axis=0), 2)
        part[part == 2] = len(conditions) + 1
        part[part == 1] += unmet.argmax(axis=0)[part == 1]
        column = Variable("part", "levels", part, _parts(conditions).levels)
        table = bin_rows(_parts(conditions), [column], claim.score, claim.hit, rows.weight, *units)
        found.append(table.sums)
    return found


def _parts(conditions: Sequence[Condition]) -> LevelBins:
    return LevelBins("part", tuple(range(len(conditions) + 2)))


def _slice(
    conditions: tuple[Condition, ...],
    claim: str,
    one: Chosen,
    reach: tuple[float, float, float],
    sums: Floats,
) -> Slice:
    stats = BinnedStats(_parts(conditions), sums)
    gaps, error = stats.gap, float(stats.gap_se[0])
    gap, weight = float(gaps[0]), stats.total("weight")
    if sums.shape[1] > 1:  # groups
        by_group = stats.field("weight")[:, 0]
        residual = (stats.field("hit") - stats.field("score"))[:, 0] + gap * by_group
        rest = np.maximum(1 - by_group / weight[0], _LEAST_REST)
        error = max(error, float(np.sqrt((residual**2 / rest).sum()) / weight[0]))
    sign = -1 if one.rule.sign else 1
    below, above, middle = (sign * part * error for part in reach)
    # The condition whose removal changes the gap least.
    beyond = [float(gap - rest) for rest in gaps[1:-1] if not np.isnan(rest)]
    return Slice(
        conditions=conditions,
        claim=claim,
        rows=int(stats.n[0]),
        share=float(weight[0] / weight.sum()),
        weight=float(weight[0]),
        predicted=float(stats.confidence[0]),
        observed=float(stats.accuracy[0]),
        gap=gap,
        shrunk=gap - middle,
        low=min(gap - below, gap + above),
        high=max(gap - below, gap + above),
        p_adjusted=one.p_adjusted,
        over_parents=min(beyond, key=abs, default=gap),
    )
