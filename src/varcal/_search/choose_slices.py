"""Which slices to show: how clear the search's maxima are, which rules to name, and intervals.

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
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from varcal._arrays import Bools, Floats, Singles
from varcal._inference.multiplicity import two_sided_quantile
from varcal._search.cells import Grid
from varcal._search.outcomes import Outcomes
from varcal._search.scan import CLASSES, Rule, Space, refine, search

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
#: Rows that count as if they had been seen in addition, with the variance of calibrated scores.
PRIOR_ROWS = 4.0


def block_law(top: Floats) -> Floats:
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
    rules: Mapping[int, tuple[Rule, ...]]
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
    depths: tuple[int, int],
    draws: int,
    alpha: float,
) -> JudgedSearch:
    """Search the data and simulated outcomes in the same way."""
    spaces = {key: Space(grid, outcomes.weights(key), depths) for key, grid in grids.items()}
    rules: dict[int, tuple[Rule, ...]] = {}
    tops: dict[int, list[Floats]] = {key: [] for key in grids}
    for key, part in product(grids, _batches(len(outcomes.weight), 1 + draws)):
        found = search(spaces[key], outcomes.columns(key, part), kept=int(part.start == 0))
        tops[key].append(found.top)
        rules.setdefault(key, found.rules[0] if found.rules else ())
    together = {key: np.concatenate(several, axis=2) for key, several in tops.items()}
    log_n = {key: block_law(top) for key, top in together.items()}
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
            k: search(replace(one, weights=outcomes.weights(k)), outcomes.observed(k)).rules[0]
            for k, one in found.spaces.items()
        }
    return chosen


def _shared(one: Bools, other: Bools) -> float:
    return float((one & other).sum() / max((one | other).sum(), 1))


def shortened(space: Space, rule: Rule, e: Singles) -> Rule:
    """Drop conditions that are not worth it, one after the other."""
    while rule.depth > space.depths[0]:
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


@dataclass(frozen=True)
class Reach:
    """How far a found gap may lie from the true one, in standard errors.

    Attributes
    ----------
    below, above : float
        How much smaller, and how much larger, the true gap may be.
    middle : float
        By how much the search overstates the gap on average.
    sign : int
        1 if the gap found is positive, else −1.
    """

    below: float
    above: float
    middle: float
    sign: int

    def interval(self, gap: float, error: float) -> tuple[float, float]:
        """Return the interval of the true gap of the rows of a slice.

        >>> Reach(3.0, 2.0, 1.5, 1).interval(0.1, 0.01)
        (0.07, 0.12)
        """
        low, high = sorted(
            (gap - self.sign * self.below * error, gap + self.sign * self.above * error)
        )
        return low, high

    def shrunk(self, gap: float, error: float) -> float:
        """Return a found gap without what the search overstates it by.

        >>> round(Reach(3.0, 2.0, 1.5, -1).shrunk(-0.1, 0.01), 3)
        -0.085
        """
        return gap - self.sign * self.middle * error


def reach_of(one: Chosen, found: JudgedSearch, *, seed: int, share: float) -> Reach | None:
    """Return the reach of a slice, None if its gap may be 0 once what is known is taken off.

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
    sign = -1 if one.rule.sign else 1
    return Reach(above + (below - above) * part, above, float(np.mean(errors)) * part, sign)


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
        again = search(local, before.centred(key, raw), kept=raw.shape[1])
        for c, rules in enumerate(again.rules):
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
    return mean, shrunk_error(len(w), scatter, float(variance[inside].sum()), total)


def shrunk_error(n: float, scatter: float, null: float, weight: float) -> float:
    """Return the standard error of a gap, shrunk towards that of calibrated scores.

    Parameters
    ----------
    n, weight : float
        The number of rows, and their weight.
    scatter, null : float
        The sums of w²·(e − mean)² and of w²·score·(1 − score).

    >>> round(shrunk_error(100, 20.0, 24.0, 100.0), 4)
    0.0451
    """
    variance = (n * scatter + (PRIOR_ROWS + 1) * null) / (n + PRIOR_ROWS)
    return float(np.sqrt(variance) / weight)
