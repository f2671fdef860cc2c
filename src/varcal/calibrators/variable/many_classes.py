r"""More than two classes: a power along variables, a map between classes, and trees.

Zeros are raised to half the least positive probability, at most half a row's part. Powers of all
probabilities of a row come first, one for all rows and then one that depends on the variables and
on how sure the scores are,

.. math:: \ell_1 = t \ln p, \qquad \ell_2 = \ell_1 \{1 + b\,(e^{\eta(v)} - 1)\},

then logits that are linear in the logarithms of the result, mixed with one row's part of the class
rates, with W shrunk towards the identity,

.. math:: \ell_3 = \ell_2 + a\,(\ell_A - \ell_2), \qquad
          \ell_A = W \ln\{(1 - \epsilon)\,\mathrm{softmax}(\ell_2) + \epsilon\,\pi\} + b,

and trees that start at ℓ₃. Held-out rows decide how much of each is applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators import steps
from varcal.calibrators.evaluate import evaluate
from varcal.calibrators.regression import fit_softmax, softmax
from varcal.calibrators.steps import Step
from varcal.calibrators.variable.additive import Design, Fitted, Tables, screened
from varcal.calibrators.variable.dependence import (
    Given,
    Judged,
    Record,
    judged_with_search,
    within_units,
)
from varcal.calibrators.variable.losses import LARGEST_LOG_POWER, LEAST_WEIGHT, PowerLoss, powered
from varcal.calibrators.variable.reml import fit_blocks
from varcal.calibrators.variable.shrinkage import NOTHING, Judge, Stage, make_folds
from varcal.calibrators.variable.trees import TreeRows, Trees, fit_trees
from varcal.calibrators.variable.two_classes import (
    BELOW_LEAST,
    CALIBRATED_SCORES,
    MOST_ROWS,
    PENALTY_DOUBT,
    TINY,
    enough_rows,
)

# Tuned constants.

#: The penalty of W − 1 and of b, times the number of entries: chosen among a quarter and one on
#: 154 experiments with 3 to 10 classes; the quarter also was better on other models.
MATRIX_PENALTY = 0.25

#: Classes up to which W is a full matrix and trees are tried: time grows with their square.
MOST_CLASSES = 40
#: How sure scores can be, as log-odds of the largest probability.
SUREST = 20.0


def log_rows(p: Floats, floor: float) -> Floats:
    """Return ln p minus the largest of each row; p is at least `floor`."""
    logs = np.log(np.maximum(p, floor))
    return np.asarray(logs - logs.max(axis=1, keepdims=True))


def _normalized(logits: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(softmax(logits), TINY)))


def _log_odds(logits: Floats) -> Floats:
    logs = _normalized(logits)
    return np.asarray(logs - np.log(np.maximum(1.0 - np.exp(logs), TINY)))


def certainty(logits: Floats) -> Floats:
    """Return the log-odds of the largest probability against all others."""
    q = softmax(logits)
    top = q.max(axis=1)
    rest = np.maximum(1.0 - top, np.exp(-SUREST))
    return np.asarray(np.log(top) - np.log(rest))


@dataclass(frozen=True, eq=False)
class ClassMap:
    """ℓ_A.

    Attributes
    ----------
    mix : float
        ε.
    rates : ndarray of shape (K,)
        π.
    matrix : ndarray of shape (K, K)
        W.
    shift : ndarray of shape (K,)
        b.
    covariance : ndarray of shape (K, K + 1, K + 1)
        The posterior covariance of each class's row of W and entry of b.
    last : float
        The last power, learned on held-out rows.
    """

    mix: float
    rates: Floats
    matrix: Floats
    shift: Floats
    covariance: Floats
    last: float = 1.0

    def logits(self, logs: Floats) -> Floats:
        """Return ℓ_A of rows."""
        return np.asarray(self.last * (self._inner(logs) @ self.matrix.T + self.shift))

    def _inner(self, logs: Floats) -> Floats:
        q = softmax(logs)
        return np.asarray(np.log((1.0 - self.mix) * q + self.mix * self.rates))

    def variance(self, logs: Floats) -> Floats:
        """Return the posterior variance of each class's logit."""
        if not self.covariance.any():
            return np.zeros(logs.shape)
        X = np.hstack([self._inner(logs), np.ones((len(logs), 1))])
        found = [np.einsum("ij,jk,ik->i", X, V, X) for V in self.covariance]
        return self.last**2 * np.column_stack(found)

    def steps(self, logs: Step) -> Step:
        """Return the steps to ℓ_A."""
        q = steps.softmax(logs)
        inner = steps.log(q * (1.0 - self.mix) + steps.constant(self.mix * self.rates)).named(
            "log_q"
        )
        mapped = steps.dot(inner, self.last * self.matrix.T) + steps.constant(
            self.last * self.shift
        )
        return mapped.named("mapped")


def fit_class_map(logs: Floats, y: Ints, mass: Floats) -> ClassMap:
    """Fit ℓ_A."""
    n, k = float(mass.sum()), logs.shape[1]
    rates = (np.bincount(y, mass, minlength=k) + 1.0) / (n + k)
    none = np.zeros((k, k + 1, k + 1))
    found = ClassMap(1.0 / (n + 1.0), rates, np.eye(k), np.zeros(k), none)
    inner = found._inner(logs)
    penalty = np.full((k, k + 1), MATRIX_PENALTY * k * (k - 1))
    penalty[:, -1] = MATRIX_PENALTY * k
    free = np.ones(penalty.shape, dtype=bool)
    theta, _ = fit_softmax(inner, y, mass, penalty=penalty / n, target=np.eye(k, k + 1), free=free)
    inner = np.hstack([inner, np.ones((len(y), 1))])
    q = softmax(inner @ theta.T)
    weight = mass[:, None] * np.maximum(q * (1.0 - q), LEAST_WEIGHT)
    covariance = np.array(
        [
            np.linalg.inv((inner * w[:, None]).T @ inner + np.diag(2.0 * each))
            for w, each in zip(weight.T, penalty, strict=True)
        ]
    )
    return ClassMap(found.mix, rates, theta[:, :k].copy(), theta[:, k].copy(), covariance)


def _power_of(logs: Floats, y: Ints, mass: Floats) -> tuple[float, float]:
    """Return the power of probabilities with the least loss, and the standard error of its log."""
    one = fit_blocks(np.ones((len(y), 1)), PowerLoss(logs, y, mass), np.array([-1]))
    power = float(np.exp(np.clip(one.beta[0], -LARGEST_LOG_POWER, LARGEST_LOG_POWER)))
    return power, float(np.sqrt(one.covariance[0, 0]))


@dataclass(frozen=True, eq=False)
class ClassesModel:
    """The calibrated logits of more than two classes.

    Attributes
    ----------
    floor : float
        What zeros are raised to.
    power : float
        t, as much of it as is applied.
    power_error : float
        The standard error of ln t.
    ends : tuple of (float, float)
        The range of the certainty.
    full : Tables or None
        η, along the certainty of ℓ₁ and the variables.
    full_share : float
        b.
    map : ClassMap or None
        ℓ_A.
    map_share : float
        a.
    applied : bool
        Whether anything is applied, or calibration scores hold zeros, which are raised; otherwise
        scores stay as they are.
    trees : Trees or None
        Trees of each class.
    tree_share : float
        c.
    """

    floor: float
    power: float
    power_error: float
    ends: tuple[float, float]
    full: Tables | None
    full_share: float
    map: ClassMap | None
    map_share: float
    applied: bool
    trees: Trees | None = None
    tree_share: float = 0.0

    def steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        """Return the steps from all probabilities to the calibrated ones."""
        if not self.applied:
            return scores
        return steps.items(steps.softmax(self.logit_steps(scores)))

    def _first(self, scores: tuple[Step, ...]) -> tuple[Step, Step]:
        """Return the steps to ℓ₁, as log-probabilities, and to its certainty."""
        logs = steps.log(steps.clipped(steps.join(scores), self.floor, np.inf)).named("log_p")
        first = (logs - steps.largest(logs)).named("log_ratio") * self.power
        sums = steps.total(steps.exp(first).named("power")).named("sum")
        rest = steps.clipped((sums - 1.0) / sums, np.exp(-SUREST), np.inf)
        certain = steps.clipped(-steps.log(sums) - steps.log(rest), *self.ends).named("certainty")
        return (first - steps.log(sums)).named("first"), certain

    def _second(self, first: Step, certain: Step) -> Step:
        """Return the step to ℓ₂."""
        if self.full is None or not self.full_share:
            return first
        eta = steps.clipped(self.full.steps(certain)[0], -LARGEST_LOG_POWER, LARGEST_LOG_POWER)
        second = first * (steps.exp(eta) * self.full_share + (1.0 - self.full_share))
        return second.named("second")

    def score_step(self, scores: tuple[Step, ...]) -> Step:
        """Return the step to the score along which tables are given."""
        return self._first(scores)[1]

    def logit_steps(self, scores: tuple[Step, ...]) -> Step:
        """Return the steps to the calibrated logits."""
        logits = self._second(*self._first(scores))
        if self.map is not None and self.map_share:
            logits = logits + (self.map.steps(logits) - logits) * self.map_share
        if self.trees is not None:
            logits = (logits - steps.largest(logits)).named("shifted")
            logits = (logits - steps.log(steps.total(steps.exp(logits)))).named("third")
            logits = logits + steps.join(self.trees.steps(steps.items(logits))) * self.tree_share
        return logits.named("calibrated_logit")

    def response(
        self, p: Floats, columns: list[AnyArray], n_levels: list[int]
    ) -> tuple[Floats, Callable[[Floats], Floats]]:
        """Return η, and what turns it into the probability of the most likely class."""
        first, certain = self._first(steps.class_scores(p.shape[1]))
        found = evaluate((*steps.items(first), certain), p, columns, n_levels)
        logs = found[:, :-1]
        eta = np.zeros(len(p))
        if self.full is not None:
            eta = self.full.predictor(found[:, -1], columns)[0]

        return eta, lambda eta: np.asarray(softmax(powered(logs, eta)).max(axis=1))

    def interval(
        self, p: Floats, columns: list[AnyArray], n_levels: list[int], reach: float
    ) -> tuple[Floats, Floats]:
        """Return the ends of intervals that are so many standard errors from the log-odds.

        Few data cannot rule out what the prediction leaves out.
        """
        scores, k = steps.class_scores(p.shape[1]), p.shape[1]
        first, certain = self._first(scores)
        second = self._second(first, certain)
        outputs = (*self.steps(scores), *steps.items(first), *steps.items(second), certain)
        found = evaluate(outputs, p, columns, n_levels)
        answer, logs, second_logs, z = np.split(found, [k, 2 * k, 3 * k], axis=1)
        variance = np.full(logs.shape, self.power_error**2) * logs**2
        if self.full is not None:
            eta, spread = self.full.predictor(z[:, 0], columns)
            # The log-odds of class k move by l_k − Σ q l over the others with the log power.
            logits = powered(logs, eta)
            q = softmax(logits)
            rest = (q * logits).sum(axis=1, keepdims=True) - q * logits
            slope = logits - rest / np.maximum(1.0 - q, 1e-12)
            left = (1.0 - self.full_share) * (1.0 - self.tree_share)
            variance += slope**2 * (PENALTY_DOUBT * spread + left * eta**2)[:, None]
        if self.map is not None:
            apart = _log_odds(self.map.logits(second_logs)) - _log_odds(second_logs)
            variance += PENALTY_DOUBT * self.map.variance(second_logs)
            variance += (1.0 - self.map_share) * apart**2
        error = reach * np.sqrt(variance)
        with np.errstate(divide="ignore"):
            middle = logit(answer)
        return expit(middle - error), expit(middle + error)


def judged_power(
    design: Design,
    certain: Floats,
    columns: list[AnyArray],
    loss: PowerLoss,
    judge: Judge,
    by_score: Stage,
) -> Judged:
    """Return the power along variables, judged on held-out rows; its `eta` is ℓ₂."""
    design = screened(design, columns, *loss.slopes(np.zeros(len(loss.y))))[0]
    start = np.zeros(1 + bool(design.score.block("slope").stop))
    fitted = Fitted.of(design, design.matrix(certain, columns), loss, start)
    after = powered(loss.logs, fitted.held_out(judge.folds.splits()))
    later = CALIBRATED_SCORES * (1.0 - by_score.share)
    stage = judge.share("variables", loss.logs, after, later)
    eta = loss.logs + stage.share * (after - loss.logs)
    return Judged((fitted,), by_score, stage, NOTHING, loss.logs, eta)


def fit_many_classes(given: Given, *, trees: bool, plain: bool) -> tuple[ClassesModel, Record]:
    """Fit the model; see `fit_two_classes`. With `plain` the order of classes is kept."""
    n, k = float(given.mass.sum()), given.p.shape[1]
    floor = max(BELOW_LEAST * float(given.p[given.p > 0].min()), TINY)
    whole = log_rows(given.p, floor)
    key = given.key(whole.T, given.columns)
    folds = make_folds(key, given.y, given.mass, given.groups, given.time)
    picked = np.arange(min(len(key), MOST_ROWS))
    logs, y, mass = whole[picked], given.y[picked], given.mass[picked]
    columns = [each[picked] for each in given.columns]
    power, power_error = _power_of(whole, given.y, given.mass)
    judge = Judge(y, mass, folds.take(picked))
    sharper = power * logs
    for train, out in judge.folds.splits():
        sharper[out] = _power_of(logs[train], y[train], mass[train])[0] * logs[out]
    by_score = judge.share("score", logs, sharper)
    first = _normalized(logs + by_score.share * (sharper - logs))
    power = 1.0 + by_score.share * (power - 1.0)
    certain = certainty(first)
    ends = (float(certain.min()) - 1e-6, float(certain.max()) + 1e-6)
    design = Design.of(certain, columns, given.n_levels, mass, ends)
    design = replace(design, offset=0.0 * design.offset)
    full, variables, second, record = None, NOTHING, first, Record()
    if enough_rows(n, len(columns)) and judge.folds.splits() and design.variables:
        loss = PowerLoss(first, y, mass)

        def judged(judge: Judge) -> Judged:
            def of(own: Design) -> Judged:
                return judged_power(own, certain, columns, loss, judge, by_score)

            return within_units(judge, design, columns, of)

        found, folds, record = judged_with_search(judged, given, key, picked)
        judge = Judge(y, mass, folds.take(picked))
        full, variables, second = found.fits[0].tables(), found.variables, found.eta
        record = replace(record, fits=((found.fits[0], full, variables.share),))
    class_map, by_class, third = None, Stage("classes"), second
    if judge.folds.splits() and not plain and k <= MOST_CLASSES:
        class_map, by_class, third = _judged_map(second, judge)
    stages = (by_score, by_class, *([variables] if full else []))
    model = ClassesModel(
        floor,
        power,
        power_error,
        ends,
        full,
        variables.share,
        class_map,
        by_class.share,
        applied=any(each.share for each in stages) or bool((given.p == 0).any()),
    )
    if trees and not plain and k <= MOST_CLASSES:
        # The scale of held-out ℓ₃ differs between folds: trees split along the fitted one.
        logits = steps.items(model.logit_steps(steps.class_scores(k)))
        fitted = _normalized(evaluate(logits, given.p[picked], columns, given.n_levels))
        start = np.ascontiguousarray(third.T)
        along = list(np.ascontiguousarray(fitted.T))
        cut = TreeRows.of(along, columns, given.n_levels, y, mass, start)
        forest, grown = fit_trees(cut, start, third, start, judge)
        if forest is not None:
            model = replace(model, trees=forest, tree_share=grown.share, applied=True)
            stages = (*stages, grown)
    return model, replace(record, stages=stages)


def _judged_map(logs: Floats, judge: Judge) -> tuple[ClassMap, Stage, Floats]:
    """Return ℓ_A, how much of it held-out rows support, and ℓ₃ of held-out rows."""
    y, mass, judged = judge.y, judge.mass, judge.judged()
    class_map = fit_class_map(logs, y, mass)
    mapped = class_map.logits(logs)
    for train, out in judge.folds.splits():
        mapped[out] = fit_class_map(logs[train], y[train], mass[train]).logits(logs[out])
    # Few rows for many coefficients make mapped probabilities too sure.
    last, _ = _power_of(mapped[judged], y[judged], mass[judged])
    mapped *= last
    stage = judge.share("classes", logs, mapped)
    third = _normalized(logs + stage.share * (mapped - logs))
    return replace(class_map, last=last), stage, third
