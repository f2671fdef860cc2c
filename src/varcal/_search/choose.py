"""Which slices to show: the clearest one, then the clearest of what is left, each shortened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from varcal._arrays import Bools, Floats, Singles
from varcal._search.blocks import BlockLaw
from varcal._search.cells import Grid
from varcal._search.outcomes import Outcomes
from varcal._search.search import NOBODY, Rows, Rule, batches, search

#: Bytes of residuals that are searched at once; a search needs about six times as much.
MOST_BYTES = 80_000_000
#: Slices that share more than this part of their rows (of either claim) are the same finding.
MOST_SHARED = 0.5
#: p-values are fractions of whole numbers, and 1 − level is rounded.
ROUNDING = 1e-9
#: Searches per slice to show at most; some find what an earlier slice left behind.
ROUNDS = 2


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


@dataclass(frozen=True, eq=False)
class Hunt:
    """A search with its null distribution.

    Attributes
    ----------
    rows : mapping
        The rows to search, by claim.
    laws : mapping
        The law of the maxima, by claim.
    statistic : ndarray
        How clear each column is over all blocks (`BlockLaw.statistic`); the data is column 0.
    smallest : ndarray
        The log of the smallest p-value of each column, for single slices.
    rules : mapping
        The best rules of the data, by claim.
    """

    rows: Mapping[int, Rows]
    laws: Mapping[int, BlockLaw]
    statistic: Floats
    smallest: Floats
    rules: Mapping[int, tuple[Rule, ...]]

    def p_value(self, statistic: float) -> float:
        """Return the share of columns that are at least as extreme, the data itself included."""
        return _rank(statistic, self.statistic[1:])

    def p_of_slice(self, log_p: float) -> float:
        """Return the share of columns with a slice that is as clear, the data itself included."""
        return _rank(log_p, self.smallest[1:])


def hunt(
    grids: Mapping[int, Grid],
    outcomes: Outcomes,
    keys: Sequence[int],
    *,
    depths: tuple[int, int],
    draws: int,
) -> Hunt:
    """Search the data and simulated outcomes in the same way."""
    rows: dict[int, Rows] = {}
    rules: dict[int, tuple[Rule, ...]] = {}
    parts = list(batches(len(outcomes.y), 1 + draws, MOST_BYTES))
    tops: dict[int, list[Floats]] = {key: [] for key in keys}
    for key, part in product(keys, parts):
        rows[key] = rows.get(key) or Rows(grids[key], outcomes.weights(key), *depths)
        found = search(rows[key], outcomes.columns(key, part), kept=int(part.start == 0))
        tops[key].append(found.top)
        if part.start == 0:
            rules[key] = found.rules[0]
    together = {key: np.concatenate(several, axis=2) for key, several in tops.items()}
    return hunt_of(rows, together, rules)


def hunt_of(
    rows: Mapping[int, Rows],
    tops: Mapping[int, Floats],
    rules: Mapping[int, tuple[Rule, ...]],
) -> Hunt:
    """Judge the maxima of all columns, by claim."""
    laws = {key: BlockLaw.of(top, rows[key].sizes.class_weights) for key, top in tops.items()}
    statistic = np.min([laws[key].statistic(top) for key, top in tops.items()], axis=0)
    rates = [laws[key].log_rates(top).min(axis=(0, 1)) for key, top in tops.items()]
    return Hunt(rows, laws, statistic, np.min(rates, axis=0), rules)


def choose(found: Hunt, outcomes: Outcomes, *, alpha: float, most: int) -> list[Chosen]:
    """Return the slices to show, the clearest first.

    After each slice its gap is taken off, and the data is searched again. A later slice is shown if
    it was clear before that as well, so that none is shown for what an earlier one left behind.
    """
    first = outcomes
    rules, statistic = found.rules, float(found.statistic[0])
    chosen: list[Chosen] = []
    p_adjusted = 0.0
    for _ in range(ROUNDS * most):
        p_adjusted = max(p_adjusted, found.p_value(statistic))
        order = ranked(found.laws, rules)
        if p_adjusted > alpha + ROUNDING or not order:
            break
        key, rule = order[0]
        rows = found.rows[key]
        rule = shortened(rows, rule, outcomes.observed(key))
        inside = rows.inside(rule)
        new = not any(_shared(inside, one.inside) > MOST_SHARED for one in chosen)
        clear = outcomes is first or (
            found.p_of_slice(_log_p_of(found, first, key, rule, inside)) <= alpha + ROUNDING
        )
        if new and clear:
            chosen.append(Chosen(key, rule, inside, p_adjusted, outcomes))
            if len(chosen) == most:
                break
        outcomes = outcomes.shifted(key, inside)
        again = {
            k: search(replace(one, weights=outcomes.weights(k)), outcomes.observed(k))
            for k, one in found.rows.items()
        }
        rules = {k: one.rules[0] for k, one in again.items()}
        statistic = min(float(found.laws[k].statistic(one.top)[0]) for k, one in again.items())
    return chosen


def _rank(value: float, null: Floats) -> float:
    return float((1 + (null <= value).sum()) / (1 + len(null)))


def _log_p_of(found: Hunt, outcomes: Outcomes, key: int, rule: Rule, inside: Bools) -> float:
    """Return the log p-value of a rule within its block, for its own direction."""
    rows = found.rows[key]
    total = float(outcomes.observed(key)[inside, 0].sum(dtype=np.float64))
    t = total / np.sqrt(float(rows.weights[inside, 0].sum()))
    t = t if rule.sign else -t
    return float(found.laws[key].log_p(np.array(t), rule.depth - 1, rule.size))


def ranked(
    laws: Mapping[int, BlockLaw], rules: Mapping[int, tuple[Rule, ...]]
) -> list[tuple[int, Rule]]:
    """Return rules by their p-value within their block, the smallest first."""
    pairs = [(key, rule) for key, several in rules.items() for rule in several]

    def log_p(pair: tuple[int, Rule]) -> float:
        rule = pair[1]
        value = float(laws[pair[0]].log_p(np.array(rule.t), rule.depth - 1, rule.size))
        return np.inf if np.isnan(value) else value

    return sorted(pairs, key=log_p)


def _shared(one: Bools, other: Bools) -> float:
    return float((one & other).sum() / max((one | other).sum(), 1))


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


def shortened(rows: Rows, rule: Rule, e: Singles) -> Rule:
    """Drop conditions that are not worth it, one after the other."""
    while rule.depth > rows.min_depth:
        shorter = [
            _chosen_again(rows, rule, kept, e)
            for kept in combinations(range(rule.depth), rule.depth - 1)
        ]
        best = max(shorter, key=lambda one: one.t)
        if rule.t**2 / 2 - best.t**2 / 2 >= max(WORTH, LEAST_PART * rule.t**2 / 2):
            break
        rule = best
    return _without_ends(rows, rule, e)


def _without_ends(rows: Rows, rule: Rule, e: Singles) -> Rule:
    """Drop ends of ranges that are not worth it, the least important first."""
    while True:
        shorter = [_measured(rows, one, e) for one in _open_ended(rows, rule)]
        best = max(shorter, key=lambda one: one.t, default=None)
        if best is None or rule.t**2 / 2 - best.t**2 / 2 >= WORTH_OF_END:
            return rule
        rule = best


def _open_ended(rows: Rows, rule: Rule) -> Iterator[Rule]:
    """Yield the rules with one end less, or without or with nothing but missing values."""
    for k, (axis, (low, high)) in enumerate(zip(rule.axes, rule.ends, strict=True)):
        of = rows.grid.axes[axis]
        last = of.n_cells - (of.missing >= 0)
        if of.variable.kind == "levels" or high - low == 1:
            continue
        wider = [(0, high), (low, max(last, high))]
        if low < of.missing < high:
            wider += [(low, last), (last, of.n_cells)]
        for ends in wider:
            if ends not in ((low, high), (0, last), (0, of.n_cells)):
                yield replace(rule, ends=(*rule.ends[:k], ends, *rule.ends[k + 1 :]))


def _measured(rows: Rows, rule: Rule, e: Singles) -> Rule:
    """Return a rule with its own t and size."""
    inside = rows.inside(rule)
    variance, weight = rows.weights[inside].sum(axis=0)
    t = float(e[inside, 0].sum(dtype=np.float64)) / np.sqrt(variance)
    size = int(rows.sizes.block_of(np.array([weight]))[0])
    return replace(rule, t=max(float(t if rule.sign else -t), 0.0), size=size)


def _chosen_again(rows: Rows, rule: Rule, kept: tuple[int, ...], e: Singles) -> Rule:
    """Return the best rule of some of the variables of a rule."""
    axes = rows.grid.axes
    line = np.full(10, NOBODY, dtype=np.intp)
    line[9] = rule.sign
    for a, k in enumerate(kept):
        middle = axes[rule.axes[k]].middle
        low, high = rule.ends[k]
        line[a] = rule.axes[k]
        line[3 + 2 * a] = np.searchsorted(middle, low, side="right") - 1
        line[4 + 2 * a] = np.searchsorted(middle, high)
    n_cells = np.array([len(axis.middle) - 1 for axis in axes], dtype=np.intp)
    nothing = np.zeros(len(rows.sizes.ends) + 1)
    candidates = line[None, None].copy()
    best = rows.engine.refine(
        rows.grid,
        n_cells,
        np.ascontiguousarray(e.T),
        rows.weights,
        candidates,
        SWEEPS,
        rows.sizes,
        nothing,
        np.full((len(nothing), 1), -np.inf),
    )
    ends = tuple(
        (int(axes[m].middle[line_low]), int(axes[m].middle[line_high]))
        for m, line_low, line_high in (
            (rule.axes[k], candidates[0, 0, 3 + 2 * a], candidates[0, 0, 4 + 2 * a])
            for a, k in enumerate(kept)
        )
    )
    found = replace(rule, axes=tuple(rule.axes[k] for k in kept), ends=ends)
    if not np.isfinite(best[0, 0]):
        return replace(found, t=0.0)
    weight = rows.weights[rows.inside(found), 1].sum()
    size = int(rows.sizes.block_of(np.array([weight]))[0])
    return replace(found, t=float(np.sqrt(best[0, 0])), size=size)
