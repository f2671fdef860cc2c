"""Intervals of slices that allow for the search: how far what is found lies from the truth.

The edges of a slice are chosen to make its gap large, so that the gap found overstates the true gap
of the very same rows. How much is found by a bootstrap of the search: outcomes are drawn with a gap
like the one found (less what it is overstated by) in these rows, the variables of the rule and some
others are searched in the same way, and the gap found is compared with the true one of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from varcal._arrays import Bools, Floats, Singles
from varcal._inference.multiplicity import two_sided_quantile
from varcal._search.cells import Grid
from varcal._search.choose import MOST_BYTES, Chosen, Hunt, ranked
from varcal._search.figures import shrunk_error
from varcal._search.outcomes import Outcomes
from varcal._search.search import Rows, Rule, batches, search

#: Draws of the bootstrap.
DRAWS = 200
#: Variables that are searched besides those of the rule.
OTHERS = 2
#: Rectangles that are extended and rules that are refined in the bootstrap's smaller search.
EXTENDED, REFINED = 5, 2
#: Standard errors by which the gap found is reduced before outcomes are drawn.
SHRUNK = 1.5
#: Factor of the quantile of overstatements: the bootstrap searches a few variables only, and slices
#: that are barely clear were found by luck more often than it knows. Chosen for 97 % of the slices
#: that 200 searches of the benchmark's planted slices showed; without it 91 % were covered.
WIDENED = 1.3
#: The larger end of the interval is never nearer than this to the gap found, in standard errors;
#: the smaller one never nearer than without a search.
LEAST_ABOVE = 1.0


@dataclass(frozen=True)
class Reach:
    """How far a found gap may lie from the true one, in standard errors.

    Attributes
    ----------
    below, above : float
        How much smaller, and how much larger, the true gap may be.
    middle : float
        By how much the search overstates the gap on average.
    clear : bool
        Whether the gap is surely not 0 once what is known has been taken off.
    """

    below: float
    above: float
    middle: float = 0.0
    clear: bool = True

    def interval(self, gap: float, standard_error: float, *, positive: bool) -> tuple[float, float]:
        """Return the interval of the true gap of the rows of a slice.

        >>> Reach(3.0, 1.0).interval(0.1, 0.01, positive=True)
        (0.07, 0.11)
        """
        if positive:
            return gap - self.below * standard_error, gap + self.above * standard_error
        return gap - self.above * standard_error, gap + self.below * standard_error

    def shrunk(self, gap: float, standard_error: float, *, positive: bool) -> float:
        """Return a found gap without what the search overstates it by.

        >>> round(Reach(3.0, 1.0, 1.5).shrunk(-0.1, 0.01, positive=False), 3)
        -0.085
        """
        less = self.middle * standard_error
        return gap - less if positive else gap + less


def reach_of(one: Chosen, found: Hunt, *, level: float, seed: int, share: float = 1.0) -> Reach:
    """Return the reach of a slice.

    Parameters
    ----------
    one : Chosen
        The slice.
    found : Hunt
        The search that found it.
    level : float
        The level of the interval.
    seed : int
        Seed of the bootstrap.
    share : float
        The share of all rows that were searched: the others do not overstate the gap.
    """
    errors, size = overstatements(one, found, seed=seed)
    tail = (1 - level) / 2
    not_searched = two_sided_quantile(level)
    below = max(WIDENED * float(np.quantile(errors, 1 - tail)), not_searched)
    above = max(float(-np.quantile(errors, tail)), LEAST_ABOVE)
    part = share**0.5
    return Reach(
        not_searched + (below - not_searched) * part,
        not_searched + (above - not_searched) * part,
        float(np.mean(errors)) * part,
        size > below,
    )


def overstatements(one: Chosen, found: Hunt, *, seed: int) -> tuple[Floats, float]:
    """Return by how many standard errors the bootstrap's slices overstate their gaps.

    Also return the gap of the slice itself, in standard errors.
    """
    rows = found.rows[one.key]
    rng = np.random.default_rng(seed)
    rest = [axis for axis in range(len(rows.grid.axes)) if axis not in one.rule.axes]
    axes = [*one.rule.axes, *rng.permutation(rest)[:OTHERS].tolist()]
    grid = Grid(tuple(rows.grid.axes[a] for a in axes), np.ascontiguousarray(rows.grid.fine[axes]))
    local = Rows(
        grid, rows.weights, rows.min_depth, rows.max_depth, extended=EXTENDED, refined=REFINED
    )
    e = one.before.observed(one.key)[:, 0].astype(np.float64)
    w = one.before.weight
    mean, error = _mean(e, w, rows.weights[:, 0], one.inside)
    size = abs(mean) / error
    gap = np.sign(mean) * max(abs(mean) - SHRUNK * error, 0.0)
    truth = replace(one.before.shifted(one.key, one.inside, gap), seed=seed)
    shift = w * (truth.score(one.key) - one.before.score(one.key))
    errors = []
    for part in batches(len(e), DRAWS, MOST_BYTES):
        columns = _drawn(truth, one.before, one.key, shift, part)
        again = search(local, columns, kept=columns.shape[1])
        for c, rules in enumerate(again.rules):
            order = ranked(found.laws, {one.key: rules})
            if not order:
                continue
            rule: Rule = order[0][1]
            inside = local.inside(rule)
            mean, error = _mean(columns[:, c].astype(np.float64), w, rows.weights[:, 0], inside)
            true = shift[inside].sum() / w[inside].sum()
            errors.append((1 if rule.sign else -1) * (mean - true) / error)
    return np.array(errors), size


def _drawn(truth: Outcomes, before: Outcomes, key: int, shift: Floats, part: slice) -> Singles:
    """Return residuals of simulated outcomes about the scores, not about the truth."""
    columns = truth.simulated(key, part)
    return before.on_grid(columns + shift.astype(np.float32)[:, None])


def _mean(e: Floats, w: Floats, variance: Floats, inside: Bools) -> tuple[float, float]:
    """Return the mean residual of some rows, and its standard error as in `figures.py`."""
    e, w = e[inside], w[inside]
    total = w.sum()
    mean = e.sum() / total
    scatter = float(((e - mean * w) ** 2).sum())
    return float(mean), shrunk_error(len(e), scatter, float(variance[inside].sum()), total)
