r"""Two classes: from the logit of the score to the calibrated one, in four corrections.

.. math::
    e_0 = z, \qquad e_1 = e_0 + a\,(s - e_0), \qquad e_2 = e_1 + b\,(m - e_1), \qquad
    e_3 = e_2 + c\,(e_1 + t - e_2)

with the score's curve s, the additive model m of score and variables, moderated by its variance,
and trees t that start at e₁. Held-out rows decide how much of each is applied (a, b, c).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators.evaluate import evaluate
from varcal.calibrators.steps import Step, clipped, constant, curve, log, score, sigmoid, sqrt
from varcal.calibrators.variable.additive import Design, Fitted, Table, Tables, screened, with_pairs
from varcal.calibrators.variable.columns import SCORE, heights_at
from varcal.calibrators.variable.dependence import (
    Given,
    Judged,
    Record,
    judged_with_search,
    within_units,
)
from varcal.calibrators.variable.jumps import Jumps, jumps_of, with_jumps
from varcal.calibrators.variable.losses import LogisticLoss
from varcal.calibrators.variable.shrinkage import NOTHING, Folds, Judge, Stage
from varcal.calibrators.variable.trees import LEAST_ROWS, TreeRows, Trees, fit_trees

# Tuned constants.

#: How strongly logits are moderated by their variance: the usual value. Without it the log-loss of
#: 19 tables of 300 rows rose by .0013 ± .0006; twice as much cost .010 ± .004 on one.
MODERATION = np.pi / 8
#: What the posterior variance is multiplied by in intervals: it takes the penalties of curves as
#: known, and variables to add up. With 1.2, intervals of p > .5 under a tree of the score held 87
#: and 89 % in place of 91 % (1,000 and 4,000 rows).
PENALTY_DOUBT = 1.5
#: Rows below which, plus some for each variable, only a line of the score is fitted. Half and twice
#: change nothing from 300 rows on.
FEW_ROWS, FEW_ROWS_PER_VARIABLE = 50.0, 5.0
#: How much later variables are applied where the score's curve is not: without it calibrated scores
#: were harmed in 20 % of draws in place of 2 %.
CALIBRATED_SCORES = 1.0
#: A probability of 0 is read as this part of the least positive one, or of one row.
BELOW_LEAST = 0.5

#: Rows on which penalties are learned and corrections judged, and on which trees grow, at most.
MOST_ROWS, MOST_TREE_ROWS = 20_000, 250_000
#: Rows over which effects of trees are averaged.
EFFECT_ROWS = 25
#: The least p and 1 − p before the logarithm.
TINY, LEAST_REST = float(np.finfo(np.float64).tiny), 2.0**-54
#: The least slope along the score's logit with `preserve_ranking`.
TILT = 1e-5


def log_odds(p: Floats) -> Floats:
    """Return logit p, finite also for 0 and 1.

    >>> log_odds(np.array([0.0, 0.5, 1.0])).round(1)
    array([-708.4,    0. ,   37.4])
    """
    return np.asarray(np.log(np.maximum(p, TINY)) - np.log(np.maximum(1.0 - p, LEAST_REST)))


def ends_of(p: Floats, mass: float) -> tuple[float, float]:
    """Return the logits of 0 and 1: half the least positive p, and at most half a row.

    >>> [round(float(1 / (1 + np.exp(-end))), 4) for end in ends_of(np.array([0, 0.1, 1]), 50)]
    [0.0099, 0.9901]
    """
    low, high = (
        max(BELOW_LEAST * min(float(side[side > 0].min(initial=1.0)), 1.0 / mass), TINY)
        for side in (p, 1.0 - p)
    )
    return float(np.log(low)), float(-np.log(high))


@dataclass(frozen=True, eq=False)
class LogisticModel:
    """The calibrated logit of two classes.

    Attributes
    ----------
    least, most : float
        The range of logits; scores of 0 and 1 are at its ends.
    base : Table
        e₁, the predictor of the score alone.
    first : Tables
        e₂ before moderation.
    moderation : float
        What the variance is multiplied by in e₂ = η / √(1 + moderation · variance).
    full : Tables
        The largest additive model, for effects and intervals.
    full_share : float
        How much of it is applied.
    applied : bool
        Whether anything is applied; otherwise scores stay as they are.
    mean : float
        The mean outcome.
    tilt : float
        The least slope along the score's logit; 0 unless rankings are kept.
    trees : Trees or None
        t.
    tree_share : float
        c.
    of_trees : tuple of ndarray
        The mean effect of trees at the knots of each variable in `full`; empty without trees.
    shift : float
        What is added at last, so that the mean probability is the mean outcome.
    mix : float
        How much of the mean outcome is mixed into each probability: one row's part.
    """

    least: float
    most: float
    base: Table
    first: Tables
    moderation: float
    full: Tables
    full_share: float
    applied: bool
    mean: float
    tilt: float
    trees: Trees | None = None
    tree_share: float = 0.0
    of_trees: tuple[Floats, ...] = ()
    shift: float = 0.0
    mix: float = 0.0

    def _check_saved(self) -> None:
        """Raise ValueError unless shares are shares."""
        for value in (self.tree_share, self.mix, self.mean):
            if not 0 <= value <= 1:
                raise ValueError("a share is not between 0 and 1")
        if not np.isfinite([self.least, self.most, self.shift, self.moderation]).all():
            raise ValueError("the model holds numbers that are not finite")
        if len(self.of_trees) != len(self.full.variables) * (self.trees is not None):
            raise ValueError("trees have no effects along the variables")
        known = {each.variable for each in self.full.variables}
        if self.full_share and {each.variable for each in self.first.variables} != known:
            raise ValueError("the model reads other variables than its effects")

    @property
    def share(self) -> float:
        """How much of the additive model is left in what is applied."""
        return self.full_share * (1.0 - self.tree_share)

    def score_step(self, scores: tuple[Step, ...]) -> Step:
        """Return the step to the score along which tables are given."""
        return clipped(_raw_logit(scores), self.least, self.most).named("logit")

    def steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        """Return the steps from probabilities to the calibrated ones."""
        q = sigmoid(self.logit_steps(scores)) if self.applied else scores[1]
        if self.mix:
            q = (q * (1.0 - self.mix) + self.mix * self.mean).named("mixed")
        return 1.0 - q, q

    def logit_steps(self, scores: tuple[Step, ...]) -> Step:
        """Return the steps to the calibrated logit."""
        raw = _raw_logit(scores)
        z = clipped(raw, self.least, self.most).named("logit")
        if not self.applied:
            return z
        eta = self._curves(z)
        if self.trees is not None:
            eta = eta + self._apart(scores) * self.tree_share
        if self.tilt:
            eta = eta + raw * self.tilt
        return (eta + self.shift).named("calibrated_logit")

    def _curves(self, z: Step) -> Step:
        """Return the step to e₂."""
        eta, variance = self.first.steps(z)
        if not self.moderation:
            return eta
        return (eta / sqrt(variance * self.moderation + 1.0)).named("moderated")

    def _apart(self, scores: tuple[Step, ...]) -> Step:
        """Return the step to how far the predictor with trees is from e₂."""
        if self.trees is None:
            return constant(0.0)
        z = self.score_step(scores)
        base = curve(z, self.base.knots, self.base.effect[:-1]).named("base")
        return base + self.trees.steps((z,))[0] - self._curves(z)

    def response(
        self, p: Floats, columns: list[AnyArray], n_levels: list[int]
    ) -> tuple[Floats, Callable[[Floats], Floats]]:
        """Return calibrated logits, and what turns others into probabilities."""
        pair = (1.0 - score(1), score(1))
        return evaluate((self.logit_steps(pair),), p, columns, n_levels)[:, 0], expit

    def interval(
        self, p: Floats, columns: list[AnyArray], n_levels: list[int], reach: float
    ) -> tuple[Floats, Floats]:
        """Return the ends of intervals that are so many standard errors from the logit."""
        pair = (1.0 - score(1), score(1))
        outputs = (self.logit_steps(pair), self.score_step(pair), self._apart(pair))
        eta, z, apart = evaluate(outputs, p, columns, n_levels).T
        own, posterior = self.full.predictor(z, columns)
        variance = PENALTY_DOUBT * posterior
        # Few data cannot rule out what the prediction leaves out of the additive model. Where
        # curves and trees are apart, either may be right.
        left = (1.0 - self.full_share) * (1.0 - self.tree_share)
        variance += left * (moderated(own, posterior) - eta) ** 2
        variance += apart**2
        error = reach * np.sqrt(variance)
        low, high = (
            (1.0 - self.mix) * expit(eta + each) + self.mix * self.mean for each in (-error, error)
        )
        return np.column_stack([1.0 - high, low]), np.column_stack([1.0 - low, high])


def _raw_logit(scores: tuple[Step, ...]) -> Step:
    p = scores[1]
    raw = log(clipped(p, TINY, np.inf)) - log(clipped(1.0 - p, LEAST_REST, np.inf))
    return raw.named("raw_logit")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of two classes: logits, outcomes, variables, weights."""

    z: Floats
    y: Ints
    columns: list[AnyArray]
    mass: Floats

    def take(self, some: Ints) -> Rows:
        """Return some of the rows."""
        columns = [each[some] for each in self.columns]
        return Rows(self.z[some], self.y[some], columns, self.mass[some])

    def loss(self, design: Design) -> LogisticLoss:
        """Return the loss of a design, whose offset is added."""
        offset = heights_at(design.score.knots, design.offset, self.z)
        return LogisticLoss(self.y.astype(np.float64), self.mass, offset)


def fits_of(design: Design, rows: Rows, *, pairs: bool) -> tuple[Fitted, ...]:
    """Return fits of the score, with variables, and with pairs of these: as many as rows allow."""
    loss, total = rows.loss(design), float(rows.mass.sum())
    # The line with which, beside the offset, the logit is 0.
    line = design.score.table[:-1, : 1 + bool(design.score.block("slope").stop)]
    start = np.asarray(np.linalg.lstsq(line, -design.offset[:-1])[0], dtype=np.float64)
    enough = enough_rows(total, len(design.variables))
    bare = replace(design, variables=())
    if not enough:
        bare = replace(bare, score=design.score.narrow(2))
    alone = Fitted.of(bare, bare.matrix(rows.z, []), loss, start)
    if not enough or not design.variables:
        return (alone,)
    design, tests = screened(design, rows.columns, *alone.slopes())
    wide = Fitted.of(design, design.matrix(rows.z, rows.columns), loss, start)
    if pairs and total >= LEAST_ROWS:
        design = with_pairs(design, tests, wide.X, rows.mass, wide.slopes())
    if not design.pairs:
        return alone, wide
    X = design.matrix(rows.z, rows.columns)
    return alone, wide, Fitted.of(design, X, loss, start, wide)


def enough_rows(total: float, n_variables: int) -> bool:
    """Return whether rows are enough for more than a line of the score."""
    return total >= FEW_ROWS + FEW_ROWS_PER_VARIABLE * n_variables


def judged_fits(fits: tuple[Fitted, ...], rows: Rows, judge: Judge) -> Judged:
    """Return how much of fits held-out rows support."""
    z, splits = rows.z, judge.folds.splits()
    offset = heights_at(fits[0].design.score.knots, fits[0].design.offset, z)
    held = [each.held_out(splits) + offset for each in fits]
    by_score = judge.share("score", z, held[0])
    base = z + by_score.share * (held[0] - z)
    if len(fits) == 1:
        return Judged(fits, by_score, NOTHING, NOTHING, base, base)
    variance = fits[1].tables().predictor(z, rows.columns)[1]
    eta, pairs = moderated(held[1], variance), NOTHING
    if len(fits) == 3:
        paired = moderated(held[2], variance)
        pairs = judge.share("pairs", eta, paired)
        eta = eta + pairs.share * (paired - eta)
    later = CALIBRATED_SCORES * (1.0 - by_score.share)
    variables = judge.share("variables", base, eta, later)
    return Judged(fits, by_score, variables, pairs, base, base + variables.share * (eta - base))


def moderated(eta: Floats, variance: Floats) -> Floats:
    """Return about the logit of the mean probability, if the logit is normal around η."""
    return np.asarray(eta / np.sqrt(1.0 + MODERATION * variance))


def fit_two_classes(
    given: Given, *, trees: bool, monotone: bool, tilt: float
) -> tuple[LogisticModel, Record]:
    """Fit the model.

    Parameters
    ----------
    given : Given
        The rows, with outcomes of 0 and 1.
    trees : bool
        Whether to try trees.
    monotone : bool
        Whether the probability must not fall when the score rises.
    tilt : float
        The least slope along the score's logit.
    """
    ends = ends_of(given.p, float(given.mass.sum()))
    z = np.clip(log_odds(given.p), *ends)
    design = Design.of(z, given.columns, given.n_levels, given.mass, ends)
    live = [given.columns[each.variable] for each in design.variables]
    key = given.key(z[None], live)
    rows = Rows(z, given.y, given.columns, given.mass)
    picked = np.arange(min(len(z), MOST_ROWS))
    some = rows.take(picked)

    whole = fits_of(design, some, pairs=not monotone)

    def judged(judge: Judge) -> Judged:
        def of(own: Design) -> Judged:
            fits = whole if own is design else fits_of(own, some, pairs=not monotone)
            return judged_fits(fits, some, judge)

        return within_units(judge, design, some.columns, of)

    first, folds, record = judged_with_search(judged, given, key, picked)
    jumps: Jumps = {}
    # What correlated rows share looks like a jump.
    if folds.units is None and len(first.fits) > 1:
        jumps = jumps_of(first.fits[1], {SCORE: some.z} | dict(enumerate(some.columns)))
    model = _first_model(first, jumps, rows, some, ends, monotone=monotone, tilt=tilt)
    grown = NOTHING
    if trees and not monotone and given.columns:
        model, grown = _with_trees(model, first, rows, folds, given.n_levels)
    model = _with_mean(model, max(first.applied, grown.share), given)
    stages = [first.score]
    stages += [first.variables] if len(first.fits) > 1 else []
    stages += [first.pairs] if first.pairs.share and first.variables.share else []
    stages += [grown] if grown.share else []
    largest = 2 if first.pairs.share else len(first.fits[:2]) - 1
    fits = [(first.fits[largest], model.full, model.share)]
    if not first.variables.share:
        alone = first.score.share * (1.0 - model.tree_share)
        fits.append((first.fits[0], first.fits[0].tables(), alone))
    return model, replace(record, stages=tuple(stages), fits=tuple(fits))


def _first_model(
    first: Judged,
    jumps: Jumps,
    rows: Rows,
    some: Rows,
    ends: tuple[float, float],
    *,
    monotone: bool,
    tilt: float,
) -> LogisticModel:
    """Return the model without trees, from coefficients of all rows."""
    fits, b = first.fits, first.variables.share
    if len(some.z) < len(rows.z):
        loss = rows.loss(fits[0].design)
        fits = tuple(each.on_all_rows(rows.z, rows.columns, loss) for each in fits)
    alone, *larger = (each.tables() for each in fits)
    larger = [with_jumps(each, jumps) for each in larger]
    raw = replace(alone.score, effect=np.append(alone.score.knots, 0.0))
    base = Tables(raw).mixed(replace(alone, scale=0.0), first.score.share)
    full, share = (larger[0], b) if larger else (alone, first.score.share)
    if first.pairs.share:
        full = full.mixed(larger[1], first.pairs.share)
    tables = base.mixed(full, b) if b else base
    if monotone:
        base, tables = _rising(base), _rising(tables)
    return LogisticModel(
        *ends,
        base.score,
        tables,
        0.0 if monotone else MODERATION * b,
        full,
        share,
        applied=b > 0 or first.score.share > 0,
        mean=0.5,
        tilt=tilt,
    )


def _rising(tables: Tables) -> Tables:
    heights = tables.score.effect.copy()
    heights[:-1] = np.maximum.accumulate(heights[:-1])
    return replace(tables, score=replace(tables.score, effect=heights))


def _with_trees(
    model: LogisticModel, first: Judged, rows: Rows, folds: Folds, n_levels: list[int]
) -> tuple[LogisticModel, Stage]:
    """Return the model with trees, as far as held-out rows support them."""
    some = rows.take(np.arange(min(len(rows.z), MOST_TREE_ROWS)))
    n, judge = len(first.eta), Judge(some.y, some.mass, folds.take(slice(len(some.z))))
    start = heights_at(model.base.knots, model.base.effect, some.z)
    # Rows outside the sample did not learn the penalties; one Newton step hardly adapts.
    base, eta = np.append(first.base, start[n:]), first.eta
    if n < len(base):
        own, variance = model.first.predictor(some.z, some.columns)
        eta = np.append(eta, (own / np.sqrt(1.0 + model.moderation * variance))[n:])
    cut = TreeRows.of([some.z], some.columns, n_levels, some.y, some.mass, base[None])
    trees, stage = fit_trees(cut, base[None], eta, start[None], judge)
    if trees is None:
        return model, NOTHING
    here = some.take(np.arange(min(len(some.z), EFFECT_ROWS)))
    effects = tuple(_tree_effect(trees, each, here, n_levels) for each in model.full.variables)
    found = replace(model, trees=trees, tree_share=stage.share, applied=True, of_trees=effects)
    return found, stage


def _tree_effect(trees: Trees, table: Table, here: Rows, n_levels: list[int]) -> Floats:
    """Return the mean effect of trees on some rows that are given each value of a variable."""
    values: AnyArray = np.append(table.knots, np.nan)
    if not len(table.knots):
        values = np.append(np.arange(len(table.effect) - 2), [-2, -1])
    tiled = [np.tile(each, len(values)) for each in here.columns]
    own = tiled[table.variable].copy()
    tiled[table.variable] = np.repeat(values, len(here.z))
    z, step = np.tile(here.z, len(values)), trees.steps((score(1),))
    mean = evaluate(step, z, tiled, n_levels).reshape(len(values), -1).mean(axis=1)
    return np.asarray(mean - heights_at(table.knots, mean, own[: len(here.z)]).mean())


def _with_mean(model: LogisticModel, share: float, given: Given) -> LogisticModel:
    """Return the model with the mean of the outcomes, as far as anything is applied."""
    total = float(given.mass.sum())
    model = replace(model, mean=float(given.mass @ given.y / total))
    if not model.applied and not ((given.p == 0) | (given.p == 1)).any():
        return model
    if share:
        step = model.logit_steps((1.0 - score(1), score(1)))
        eta = evaluate((step,), given.p, given.columns, given.n_levels)[:, 0]
        model = replace(model, shift=share * mean_shift(eta, given.y, given.mass))
    return replace(model, mix=1.0 / (total + 1.0))


def mean_shift(eta: Floats, y: AnyArray, mass: Floats) -> float:
    """Return the shift of logits that makes the mean probability the mean outcome."""
    goal, shift = float(mass @ y), 0.0
    for _ in range(100):
        mean = expit(eta + shift)
        step = (goal - float(mass @ mean)) / max(float(mass @ (mean * (1.0 - mean))), 1e-12)
        shift += float(np.clip(step, -2.0, 2.0))
        if abs(step) < 1e-12:
            break
    return shift
