r"""Two classes: from the logit of the score to the calibrated one, in four corrections.

.. math::
    e_0 = z, \qquad e_1 = e_0 + a\,(s - e_0), \qquad e_2 = e_1 + b\,(m - e_1), \qquad
    e_3 = e_2 + c\,(e_1 + t - e_2)

with the score's curve s, the additive model m of score and variables, moderated by its variance,
and trees t that start at e₁. Held-out rows decide how much of each is applied (a, b, c).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators.evaluate import evaluate
from varcal.calibrators.steps import Step, clipped, curve, log, score, sigmoid, sqrt
from varcal.calibrators.variable import dependence
from varcal.calibrators.variable.additive import (
    Design,
    Fitted,
    Table,
    Tables,
    fit_design,
    on_all_rows,
    screened,
    with_pairs,
)
from varcal.calibrators.variable.columns import Columns, heights_at, winsorized
from varcal.calibrators.variable.dependence import Folds, Found, Given, Search
from varcal.calibrators.variable.intervals import (
    CURVES_DOUBT,
    LOOKED_AT,
    TREES_DOUBT,
    Errors,
    errors_of,
)
from varcal.calibrators.variable.reml import LogisticLoss, held_out
from varcal.calibrators.variable.shrinkage import (
    BEYOND_DOUBT,
    CALIBRATED_SCORES,
    NOTHING,
    SCORE_RAMP,
    TREES_RAMP,
    VARIABLES_RAMP,
    Share,
    share_of,
)
from varcal.calibrators.variable.trees import (
    Boosting,
    Cells,
    Trees,
    boosting_of,
    cells_of,
    depths_of,
    with_depth,
)

# Tuned constants.

#: How strongly logits are moderated by their variance: the usual value. Without it the log-loss of
#: nine tables of 1,000 rows rose by .0006 ± .0003; twice as much cost .010 ± .004 on one of 300.
MODERATION = np.pi / 8
#: Rows below which, plus some for each variable, only a line of the score is fitted.
FEW_ROWS, FEW_ROWS_PER_VARIABLE = 50.0, 5.0
#: Rows from which pairs and trees are tried.
PAIR_ROWS, TREE_ROWS = 300.0, 200.0
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
    found = []
    for side in (p, 1.0 - p):
        least = min(float(side[side > 0].min(initial=1.0)), 1.0 / mass)
        found.append(max(BELOW_LEAST * least, TINY))
    return float(np.log(found[0])), float(-np.log(found[1]))


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
    trees : Trees or None
        t.
    tree_share : float
        c.
    shift : float
        What is added at last, so that the mean probability is the mean outcome.
    mix : float
        How much of the mean outcome is mixed into each probability: one row's part.
    mean : float
        The mean outcome.
    applied : bool
        Whether anything is applied; otherwise scores stay as they are.
    full : Tables
        The largest additive model, for effects and intervals.
    full_share : float
        How much of it is applied.
    errors : Errors
        What the posterior variance leaves out.
    of_trees : tuple of ndarray
        The mean effect of trees at the knots of each variable in `full`; empty without trees.
    tilt : float
        The least slope along the score's logit; 0 unless rankings are kept.
    """

    least: float
    most: float
    base: Table
    first: Tables
    moderation: float
    trees: Trees | None
    tree_share: float
    shift: float
    mix: float
    mean: float
    applied: bool
    full: Tables
    full_share: float
    errors: Errors
    of_trees: tuple[Floats, ...] = ()
    tilt: float = 0.0

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

    def bounded(self, p: Floats) -> Floats:
        """Return the logits of scores, within the range of the model."""
        return np.clip(log_odds(p), self.least, self.most)

    def steps(self, p: Step) -> tuple[Step, Step]:
        """Return the steps from P(second class) to both probabilities."""
        q = sigmoid(self.logit_steps(p)) if self.applied else p
        if self.mix:
            q = (q * (1.0 - self.mix) + self.mix * self.mean).named("mixed")
        return 1.0 - q, q

    def probabilities(self, eta: Floats) -> Floats:
        """Return probabilities of the second class from calibrated logits."""
        return np.asarray((1.0 - self.mix) * expit(eta) + self.mix * self.mean)

    def error(self, p: Floats, columns: list[AnyArray], eta: Floats) -> Floats:
        """Return the standard error of calibrated logits.

        Few data cannot rule out the effects that the prediction leaves out.
        """
        z = self.bounded(p)
        own, variance = self.full.predictor(z, columns)
        apart = moderated(own, variance) - eta
        left = (1.0 - self.full_share) * (1.0 - self.tree_share)
        total = self.errors.variance(variance, eta, z, columns)
        return np.asarray(np.sqrt(total + left * apart**2))

    def logit_steps(self, p: Step) -> Step:
        """Return the steps to the calibrated logit."""
        raw = log(clipped(p, TINY, np.inf)) - log(clipped(1.0 - p, LEAST_REST, np.inf))
        raw = raw.named("raw_logit")
        z = clipped(raw, self.least, self.most).named("logit")
        eta, variance = self.first.steps(z)
        if self.moderation:
            eta = (eta / sqrt(variance * self.moderation + 1.0)).named("moderated")
        if self.trees is not None:
            base = curve(z, self.base.knots, self.base.effect[:-1]).named("base")
            grown = base + self.trees.steps((z,))[0]
            eta = eta + (grown - eta) * self.tree_share
        if self.tilt:
            eta = eta + raw * self.tilt
        return (eta + self.shift).named("calibrated_logit")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of two classes: logits, outcomes, variables, weights."""

    z: Floats
    y: Floats
    columns: list[AnyArray]
    n_levels: list[int]
    mass: Floats
    key: NDArray[np.uint64]

    def take(self, some: Ints) -> Rows:
        """Return some of the rows."""
        return Rows(
            self.z[some],
            self.y[some],
            [each[some] for each in self.columns],
            self.n_levels,
            self.mass[some],
            self.key[some],
        )


@dataclass(frozen=True, eq=False)
class Fits:
    """Three fits of rows: of the score, with variables, and with pairs of these."""

    score: Fitted
    full: Fitted | None
    paired: Fitted | None
    matrices: tuple[Floats, ...]
    loss: LogisticLoss
    offset: Floats

    def weight(self, k: int) -> Floats:
        """Return the working weights of rows in one of the fits."""
        fitted = (self.score, self.full, self.paired)[k]
        assert fitted is not None
        return self.loss.slopes(self.matrices[k] @ fitted.fit.beta)[1]


@dataclass(frozen=True, eq=False)
class First:
    """What held-out rows say of the first stage.

    Attributes
    ----------
    score, variables, pairs : Share
        a, b, and how much of the surfaces of pairs is in the additive model.
    base, eta : ndarray
        e₁ and e₂ of held-out rows.
    """

    score: Share
    variables: Share
    pairs: Share
    base: Floats
    eta: Floats


@dataclass(frozen=True, eq=False)
class Record:
    """What `describe` and `effects` tell of a fit.

    Attributes
    ----------
    fits : Fits
        The fits of the first stage.
    first : First
        How much of it is applied.
    trees : Share
        How much of the trees is applied.
    moved : float
        By how much they move probabilities on average.
    found : Found or None
        Blocks whose rows are correlated.
    fallen : bool
        Whether less is applied because of them.
    neighbours : bool
        Whether rows that stand near one another are correlated.
    """

    fits: Fits
    first: First
    trees: Share
    moved: float = 0.0
    found: Found | None = None
    fallen: bool = False
    neighbours: bool = False


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
    p, y, mass = given.p, given.y.astype(np.float64), given.mass
    columns, n_levels, search = given.columns, given.n_levels, given.search
    total = float(mass.sum())
    ends = ends_of(p, total)
    z = np.clip(log_odds(p), *ends)
    design = Design.of(z, columns, n_levels, mass, ends, varying=not monotone)
    live = [columns[each.variable] for each in design.variables]
    key = dependence.hashed([np.round(z, dependence.SCORE_DECIMALS), *live])
    rows = Rows(z, y, columns, n_levels, mass, key)
    picked = dependence.sample(key, MOST_ROWS)
    some = rows.take(picked) if len(picked) < len(z) else rows
    folds = dependence.make_folds(key, y, mass, given.groups, given.time)
    pairs = not monotone and total >= PAIR_ROWS
    fits = _fit_models(design, some, pairs=pairs)
    first, fits = _judged_within(fits, some, folds.take(picked), pairs=pairs)
    found, fallen, neighbours = None, False, False
    if search is not None and columns:
        found, neighbours = _search(search, fits, rows, some, picked)
    if found is not None:
        before = first
        folds = dependence.make_folds(key, y, mass, found.blocking.numbers(), None)
        first, fits = _judged_within(fits, some, folds.take(picked), pairs=pairs)
        fallen = (
            max(before.variables.value, before.score.value)
            - max(first.variables.value, first.score.value)
            >= 0.1
            or before.variables.value - first.variables.value >= 0.1
        )
    model = _first_stage(fits, first, rows, some, picked, ends, monotone=monotone, tilt=tilt)
    grown, eta = NOTHING, first.eta
    if trees and not monotone and columns and total >= TREE_ROWS and not folds.too_few(total):
        model, grown, eta = _with_trees(model, first, rows, picked, folds)
    model = _finished(model, first, grown, rows, p)
    if not folds.too_few(total):
        errors = _errors(model, some, eta, folds.take(picked).judged())
        model = replace(model, errors=errors)
    moved = float(some.mass @ np.abs(expit(eta) - expit(first.eta)) / some.mass.sum())
    return model, Record(fits, first, grown, moved, found, fallen, neighbours)


def _fit_models(design: Design, rows: Rows, *, pairs: bool) -> Fits:
    """Fit the score alone, all variables, and all variables with pairs."""
    offset = winsorized(design.score)
    loss = LogisticLoss(rows.y, rows.mass, heights_at(design.score.knots, offset, rows.z))
    start = _start(design.score)
    few = FEW_ROWS + FEW_ROWS_PER_VARIABLE * len(design.variables)
    if float(rows.mass.sum()) < few:
        line = replace(design.score, table=design.score.table[:, :2], parts=design.score.parts[:2])
        bare = Design(line)
        X = bare.matrix(rows.z, [])
        return Fits(fit_design(bare, X, loss, start), None, None, (X,), loss, offset)
    bare = Design(design.score)
    X = bare.matrix(rows.z, [])
    score = fit_design(bare, X, loss, start)
    if not design.variables:
        return Fits(score, None, None, (X,), loss, offset)
    design, tests = screened(design, rows.columns, *loss.slopes(X @ score.fit.beta))
    wide = design.matrix(rows.z, rows.columns)
    full = fit_design(design, wide, loss, start)
    paired = None
    matrices: tuple[Floats, ...] = (X, wide)
    if pairs:
        residual, weight = loss.slopes(wide @ full.fit.beta)
        surfaces = with_pairs(design, tests, wide, rows.mass, residual, weight)
        if surfaces.pairs:
            widest = surfaces.matrix(rows.z, rows.columns)
            paired = fit_design(surfaces, widest, loss, start, full.fit)
            matrices = (X, wide, widest)
    return Fits(score, full, paired, matrices, loss, offset)


def _start(score: Columns) -> tuple[float, float]:
    """Return the coefficients of the score's line that, with the offset, give a logit of 0."""
    slope = score.block("slope")
    low, high = winsorized(score)[[0, len(score.knots) - 1]]
    if not slope.stop:
        return -float(low), 0.0
    first, last = score.table[[0, len(score.knots) - 1], slope.start]
    scale = (high - low) / (last - first)
    return -float(low - scale * first), -float(scale)


def _judged(fits: Fits, rows: Rows, folds: Folds) -> First:
    """Return how much of each correction held-out rows support."""
    z = rows.z
    if folds.too_few(float(rows.mass.sum())) or not folds.splits():
        return First(NOTHING, NOTHING, NOTHING, z, z)
    splits, judged = folds.splits(), folds.judged()
    units = None if folds.units is None else folds.units[judged]
    mass, y = rows.mass[judged], rows.y[judged]
    own = LogisticLoss(y, mass)

    def supported(
        before: Floats,
        after: Floats,
        ramp: tuple[float, float],
        later: float = 0.0,
        doubt: tuple[float, float] | None = None,
    ) -> tuple[Share, Floats]:
        share = share_along(own, before[judged], after[judged], ramp, units, later, doubt)
        return share, before + share.value * (after - before)

    def without(fitted: Fitted, X: Floats) -> Floats:
        eta = held_out(X, fits.loss, fitted.design.groups(), fitted.fit, splits)
        return eta + fits.loss.offset

    curve_only = without(fits.score, fits.matrices[0])
    by_score, base = supported(z, curve_only, SCORE_RAMP, doubt=BEYOND_DOUBT)
    if fits.full is None:
        return First(by_score, NOTHING, NOTHING, base, base)
    tables = fits.full.tables(fits.offset, fits.matrices[1], fits.weight(1))
    variance = tables.predictor(z, rows.columns)[1]
    eta, pairs = moderated(without(fits.full, fits.matrices[1]), variance), NOTHING
    if fits.paired is not None:
        paired = moderated(without(fits.paired, fits.matrices[2]), variance)
        pairs, eta = supported(eta, paired, TREES_RAMP)
    later = CALIBRATED_SCORES * (1.0 - by_score.value)
    variables, eta = supported(base, eta, VARIABLES_RAMP, later)
    return First(by_score, variables, pairs, base, eta)


def share_along(
    loss: LogisticLoss,
    before: Floats,
    after: Floats,
    ramp: tuple[float, float],
    units: Ints | None,
    later: float = 0.0,
    doubt: tuple[float, float] | None = None,
) -> Share:
    """Return how much of the way between two predictors held-out rows support."""
    move = after - before

    def along(w: float) -> tuple[Floats, Floats, Floats]:
        eta = before + w * move
        residual, weight = loss.slopes(eta)
        return loss.rows(eta), residual * move, weight * move**2

    return share_of(along, loss.weight, ramp, units, later, doubt)


def _judged_within(fits: Fits, rows: Rows, folds: Folds, *, pairs: bool) -> tuple[First, Fits]:
    """Return the judgement, without variables that hardly vary within units unless they help.

    What the rows of a unit share looks like an effect of such variables.
    """
    first = _judged(fits, rows, folds)
    if folds.units is None or fits.full is None or not first.variables.value:
        return first, fits
    design = fits.full.design
    constant = {
        each.variable
        for each in design.variables
        if dependence.constant_within([rows.columns[each.variable]], folds.units)
    }
    if not constant:
        return first, fits
    other = _fit_models(design.without(constant), rows, pairs=pairs)
    again = _judged(other, rows, folds)
    judged = folds.judged()
    loss = LogisticLoss(rows.y[judged], rows.mass[judged])
    saved = share_along(loss, again.eta[judged], first.eta[judged], (0, 1), folds.units[judged])
    if saved.gain > dependence.CLEAR_GAIN * saved.error and saved.value > 0:
        return first, fits
    return again, other


def _search(
    search: Search, fits: Fits, rows: Rows, some: Rows, picked: Ints
) -> tuple[Found | None, bool]:
    """Return blocks whose rows are correlated, and whether neighbouring rows are."""
    largest = fits.paired or fits.full or fits.score
    slopes = fits.loss.slopes(fits.matrices[-1] @ largest.fit.beta)
    return dependence.searched(search, *slopes, some.mass, some.key, picked, rows.y)


def _first_stage(
    fits: Fits,
    first: First,
    rows: Rows,
    some: Rows,
    picked: Ints,
    ends: tuple[float, float],
    *,
    monotone: bool,
    tilt: float,
) -> LogisticModel:
    """Return the model without trees, from coefficients of all rows."""

    def of_all(fitted: Fitted) -> Fitted:
        if len(some.z) == len(rows.z):
            return fitted
        loss = LogisticLoss(
            rows.y, rows.mass, heights_at(fitted.design.score.knots, fits.offset, rows.z)
        )
        return on_all_rows(fitted, rows.z, rows.columns, loss)

    score = of_all(fits.score).tables(fits.offset)
    knots = score.score.knots
    own = Table(-1, knots, np.append(knots, 0.0), 0 * score.unit, 0 * score.unit)
    base = replace(score, score=own, scale=0.0).mixed(score, first.score.value)
    tables, full, b = base, score, first.variables.value
    if fits.full is not None:
        full = of_all(fits.full).tables(fits.offset, fits.matrices[1], fits.weight(1))
        if first.pairs.value and fits.paired is not None:
            paired = of_all(fits.paired).tables(fits.offset, fits.matrices[2], fits.weight(2))
            full = full.mixed(paired, first.pairs.value)
        tables = base.mixed(full, b) if b else base
    if monotone:
        tables = replace(tables, score=_risen(tables.score))
        base = replace(base, score=_risen(base.score))
    moderation = 0.0 if monotone else MODERATION * b
    applied = b > 0 or first.score.value > 0
    largest = score if fits.full is None else full
    share = first.score.value if fits.full is None else b
    return LogisticModel(
        *ends, base.score, tables, moderation, None, 0.0, 0.0, 0.0, 0.5, applied, largest, share,
        Errors(), (), tilt,
    )  # fmt: skip


def _risen(table: Table) -> Table:
    heights = table.effect.copy()
    heights[:-1] = np.maximum.accumulate(heights[:-1])
    return replace(table, effect=heights)


def _with_trees(
    model: LogisticModel, first: First, rows: Rows, picked: Ints, folds: Folds
) -> tuple[LogisticModel, Share, Floats]:
    """Return the model with trees, as far as held-out rows support them.

    Also returns the calibrated logits of the rows that the first stage was judged on.
    """
    part = dependence.sample(rows.key, MOST_TREE_ROWS)
    base_all = heights_at(model.base.knots, model.base.effect, rows.z)
    held_base, every = base_all, rows
    if len(picked) == len(rows.z):
        held_base, held_eta = first.base, first.eta
    else:
        # Rows outside the sample did not learn the penalties; one Newton step hardly adapts.
        eta, variance = model.first.predictor(rows.z, rows.columns)
        held_eta = eta / np.sqrt(1.0 + model.moderation * variance)
        held_eta[picked] = first.eta
    if len(part) < len(rows.z):
        rows, folds = rows.take(part), folds.take(part)
        base_all, held_base, held_eta = (e[part] for e in (base_all, held_base, held_eta))
    splits, judged = folds.splits(), folds.judged()
    loss = LogisticLoss(rows.y, rows.mass)

    def slopes(eta: Floats, at: Ints) -> tuple[Floats, Floats]:
        mean = expit(eta)
        return mean - rows.y[at], mean * (1.0 - mean)

    def losses(eta: Floats, at: Ints) -> Floats:
        total = eta[0]
        return rows.mass[at] * (np.logaddexp(0.0, total) - rows.y[at] * total)

    boosting = boosting_of(
        [rows.z],
        rows.columns,
        rows.n_levels,
        rows.mass,
        (rows.y - expit(held_base))[None],
        slopes,
        losses,
    )
    if boosting is None or not splits:
        return model, NOTHING, first.eta
    units = None if folds.units is None else folds.units[judged]
    own = loss.take(judged)
    best: tuple[Share, Boosting, int, Floats] | None = None
    for depth in depths_of(float(rows.mass.sum())):
        deep = with_depth(boosting, depth)
        n_trees, eta = deep.held_out(held_base[None], splits)
        if not n_trees:
            continue
        share = share_along(own, held_eta[judged], eta[0][judged], TREES_RAMP, units)
        if share.value and (
            best is None or share.value * share.gain > best[0].value * best[0].gain
        ):
            best = share, deep, n_trees, held_eta + share.value * (eta[0] - held_eta)
    if best is None:
        return model, NOTHING, first.eta
    share, deep, n_trees, blended = best
    fitted = float(np.mean([rows.mass[train].sum() for train, _ in splits]))
    number = int(np.ceil(n_trees * float(rows.mass.sum()) / fitted))
    grown = deep.grown(base_all[None], number)
    model = replace(model, trees=grown, tree_share=share.value, applied=True)
    model = replace(model, of_trees=_tree_effects(model, grown, rows))
    eta_all = np.zeros(len(every.z))
    eta_all[part] = blended
    return model, share, eta_all[picked]


def _tree_effects(model: LogisticModel, trees: Trees, rows: Rows) -> tuple[Floats, ...]:
    """Return the mean effect of trees at the knots or levels of each variable.

    Every cell of a variable is given to some rows in turn.
    """
    some = dependence.sample(rows.key, EFFECT_ROWS)
    z, here = rows.z[some], [each[some] for each in rows.columns]
    step = trees.steps((clipped(score(1), -np.inf, np.inf),))[0]
    by_variable = {each.variable: each for each in trees.cells}
    found = []
    for table in model.full.variables:
        cells = by_variable.get(table.variable)
        if cells is None:
            found.append(np.zeros(len(table.effect)))
            continue
        values: AnyArray = np.append(table.knots, np.nan)
        if not len(table.knots):
            values = np.append(np.arange(len(table.effect) - 2), [-2, -1])
        code, first, place = np.unique(cells.codes(values), return_index=True, return_inverse=True)
        tiled = [np.tile(each, len(code)) for each in here]
        tiled[table.variable] = np.repeat(values[first], len(some))
        added = evaluate((step,), np.tile(z, len(code)), tiled, rows.n_levels)
        mean = added.reshape(len(code), -1).mean(axis=1)[place]
        counts = np.bincount(cells.codes(rows.columns[table.variable]), rows.mass, minlength=256)
        share = counts[code] / counts[code].sum()
        found.append(mean - float(share @ mean[first]))
    return tuple(found)


def _cells_that_matter(model: LogisticModel, rows: Rows) -> list[tuple[Cells, Ints]]:
    """Return the cells of a few variables that matter most, and their order."""
    if model.trees is not None:
        best = np.argsort(-model.trees.used, kind="stable")[:LOOKED_AT]
        return [(model.trees.cells[k], model.trees.place[0][k]) for k in best]
    ranked = sorted(model.full.variables, key=lambda one: -float(np.ptp(one.effect)))
    found = [cells_of(-1, rows.z, 0, rows.mass, 32)]
    for table in ranked[: LOOKED_AT - 1]:
        k = table.variable
        found.append(cells_of(k, rows.columns[k], rows.n_levels[k], rows.mass, 32))
    return [(each, np.arange(64)) for each in found if each is not None]


def _errors(model: LogisticModel, rows: Rows, eta: Floats, judged: AnyArray) -> Errors:
    """Return what held-out rows show beside the posterior variance."""
    if not judged.any():
        return Errors()
    here = rows.take(np.flatnonzero(judged))
    numbers = {
        each.variable: here.columns[each.variable]
        for each in model.full.variables
        if len(each.knots)
    }
    posterior = model.full.predictor(here.z, here.columns)[1]
    cells = _cells_that_matter(model, here)
    values = {-1: here.z} | dict(enumerate(here.columns))
    codes = [place[each.codes(values[each.variable])] for each, place in cells]
    own = eta[judged]
    doubt = CURVES_DOUBT if model.trees is None else TREES_DOUBT
    return errors_of(own, posterior, here.y, here.mass, here.z, numbers, codes, doubt)


def _finished(
    model: LogisticModel, first: First, grown: Share, rows: Rows, p: Floats
) -> LogisticModel:
    """Return the model with the mean of the outcomes, as far as anything is applied."""
    mean = float(rows.mass @ rows.y / rows.mass.sum())
    certain = bool(((p == 0) | (p == 1)).any())
    total = float(rows.mass.sum())
    if not model.applied and not certain:
        return replace(model, mean=mean)
    share = max(first.score.value, first.variables.value, grown.value)
    if share:
        found = evaluate((model.logit_steps(score(1)),), p, rows.columns, rows.n_levels)
        model = replace(model, shift=share * mean_shift(found[:, 0], rows.y, rows.mass))
    return replace(model, mix=1.0 / (total + 1.0), mean=mean)


def mean_shift(eta: Floats, y: Floats, mass: Floats) -> float:
    """Return the shift of logits that makes the mean probability the mean outcome."""
    goal, shift = float(mass @ y), 0.0
    for _ in range(100):
        mean = expit(eta + shift)
        step = (goal - float(mass @ mean)) / max(float(mass @ (mean * (1.0 - mean))), 1e-12)
        shift += float(np.clip(step, -2.0, 2.0))
        if abs(step) < 1e-12:
            break
    return shift
