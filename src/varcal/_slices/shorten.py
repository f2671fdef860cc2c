"""Short rules: a condition stays only if the rows that it excludes are clearly different."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np

from varcal._arrays import Singles
from varcal._slices.search import NOBODY, Rows, Rule

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
