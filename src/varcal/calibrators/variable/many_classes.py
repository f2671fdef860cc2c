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

from varcal._arrays import AnyArray, Floats, Ints
from varcal.calibrators import steps
from varcal.calibrators.evaluate import evaluate
from varcal.calibrators.regression import softmax
from varcal.calibrators.steps import Step
from varcal.calibrators.variable import dependence
from varcal.calibrators.variable.additive import Design, Fitted, Tables, fit_design, screened
from varcal.calibrators.variable.dependence import Folds, Found, Given, Search
from varcal.calibrators.variable.intervals import PENALTY_DOUBT
from varcal.calibrators.variable.reml import (
    CERTAIN_WEIGHT,
    LARGEST_LOG_POWER,
    PowerLoss,
    fit_blocks,
    held_out,
)
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
from varcal.calibrators.variable.trees import Trees, boosting_of, with_depth

# Tuned constants.

#: The penalty of W − 1 and of b, times the number of entries: chosen among a quarter and one on
#: 154 experiments with 3 to 10 classes; the quarter also was better on other models.
MATRIX_PENALTY = 0.25
#: Rows below which, plus some for each variable, the power does not depend on variables.
FEW_ROWS, FEW_ROWS_PER_VARIABLE = 50.0, 5.0
#: Rows from which trees are tried, and their depth.
TREE_ROWS, TREE_DEPTH = 300.0, 3
#: A probability of 0 is read as this part of the least positive one, or of one row.
BELOW_LEAST = 0.5

#: Classes up to which W is a full matrix and trees are tried: time grows with their square.
MOST_CLASSES = 40
#: Rows on which everything but the last coefficients is learned.
MOST_ROWS = 20_000
#: How sure scores can be, as log-odds of the largest probability.
SUREST = 20.0
TINY = float(np.finfo(np.float64).tiny)


def log_rows(p: Floats, floor: float) -> Floats:
    """Return ln p minus the largest of each row; p is at least `floor`."""
    logs = np.log(np.maximum(p, floor))
    return np.asarray(logs - logs.max(axis=1, keepdims=True))


def _normalized(logits: Floats) -> Floats:
    return np.asarray(np.log(np.maximum(softmax(logits), TINY)))


def _log_odds(logs: Floats) -> Floats:
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
    inner = np.hstack([found._inner(logs), np.ones((len(y), 1))])
    penalty = np.full((k, k + 1), MATRIX_PENALTY * k * (k - 1))
    penalty[:, -1] = MATRIX_PENALTY * k
    theta = _ridge_softmax(inner, y, mass, penalty)
    q = softmax(inner @ theta.T)
    weight = mass[:, None] * np.maximum(q * (1.0 - q), CERTAIN_WEIGHT * rates)
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


def _ridge_softmax(X: Floats, y: Ints, mass: Floats, penalty: Floats) -> Floats:
    """Return the coefficients (K × columns) nearest to the identity with the least penalized loss.

    Minimizes the log-loss plus Σ penalty · (θ − θ₀)² by a limited-memory quasi-Newton method.
    """
    from scipy.optimize import minimize  # noqa: PLC0415  only a fit needs it

    k = len(penalty)
    center = np.eye(k, k + 1)
    hot = np.zeros((len(y), k))
    hot[np.arange(len(y)), y] = 1.0
    # Variables of about equal curvature: the penalty and the spread of each column.
    scale = 1.0 / np.sqrt(2.0 * penalty + 0.1 * (mass @ X**2)[None, :])

    def value(theta: Floats) -> tuple[float, Floats]:
        move = scale * theta.reshape(k, -1)
        logits = X @ (center + move).T
        logits -= logits.max(axis=1, keepdims=True)
        powers = np.exp(logits)
        sums = powers.sum(axis=1)
        loss = mass @ (np.log(sums) - logits[np.arange(len(y)), y])
        gradient = (mass[:, None] * (powers / sums[:, None] - hot)).T @ X + 2.0 * penalty * move
        return float(loss + (penalty * move**2).sum()), (scale * gradient).ravel()

    found = minimize(
        value, np.zeros(k * (k + 1)), jac=True, method="L-BFGS-B",
        options={"maxiter": 500, "ftol": 1e-10, "gtol": 1e-5 * float(mass.sum()) ** 0.5},
    )  # fmt: skip
    return center + scale * found.x.reshape(k, -1)


@dataclass(frozen=True, eq=False)
class ClassesModel:
    """The calibrated logits of more than two classes.

    Attributes
    ----------
    floor : float
        What zeros are raised to.
    power : float
        t, as much of it as is applied.
    varying : Tables or None
        η, along the certainty of ℓ₁ and the variables.
    varying_share : float
        b.
    map : ClassMap or None
        ℓ_A.
    map_share : float
        a.
    surest : tuple of (float, float)
        The range of the certainty.
    trees : Trees or None
        Trees of each class.
    tree_share : float
        c.
    applied : bool
        Whether anything is applied; otherwise scores stay as they are, but for zeros.
    raised : bool
        Whether calibration scores hold zeros, which are then raised.
    full : Tables or None
        η, whether it is applied or not.
    power_error : float
        The standard error of ln t.
    """

    floor: float
    power: float
    varying: Tables | None
    varying_share: float
    map: ClassMap | None
    map_share: float
    surest: tuple[float, float]
    trees: Trees | None
    tree_share: float
    applied: bool
    raised: bool
    full: Tables | None
    power_error: float

    def steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        """Return the steps from all probabilities to the calibrated ones."""
        if not self.applied and not self.raised:
            return scores
        q = steps.softmax(self.logit_steps(scores))
        return tuple(q.item(k) for k in range(len(scores)))

    def error(self, p: Floats, columns: list[AnyArray], n_levels: list[int]) -> Floats:
        """Return about the standard error of the calibrated log-odds of each class.

        Few data cannot rule out what the prediction leaves out.
        """
        k = p.shape[1]
        first, certain, second = self.first_steps(tuple(steps.score(j) for j in range(k)))
        each = (*(first.item(j) for j in range(k)), certain, *(second.item(j) for j in range(k)))
        found = evaluate(each, p, columns, n_levels)
        logs, z, powered = found[:, :k], found[:, k], found[:, k + 1 :]
        variance = np.full(logs.shape, self.power_error**2) * logs**2
        if self.full is not None:
            eta, spread = self.full.predictor(z, columns)
            power = np.exp(np.clip(eta, -LARGEST_LOG_POWER, LARGEST_LOG_POWER))[:, None]
            # The log-odds of class k move by t (l_k − Σ q l over the others) with ln t.
            q = softmax(power * logs)
            rest = (q * logs).sum(axis=1, keepdims=True) - q * logs
            slope = power * (logs - rest / np.maximum(1.0 - q, 1e-12))
            left = (1.0 - self.varying_share) * (1.0 - self.tree_share)
            spread = PENALTY_DOUBT * spread + left * eta**2
            variance = variance + slope**2 * spread[:, None]
        if self.map is not None:
            variance = variance + PENALTY_DOUBT * self.map.variance(powered)
            apart = _log_odds(_normalized(self.map.logits(powered))) - _log_odds(
                _normalized(powered)
            )
            variance = variance + (1.0 - self.map_share) * apart**2
        return np.sqrt(variance)

    def first_steps(self, scores: tuple[Step, ...]) -> tuple[Step, Step, Step]:
        """Return the steps to ℓ₁, as log-probabilities, to its certainty, and to ℓ₂."""
        logs = steps.log(steps.clipped(steps.join(scores), self.floor, np.inf)).named("log_p")
        first = (logs - steps.largest(logs)).named("log_ratio") * self.power
        powers = steps.exp(first).named("power")
        sums = steps.total(powers).named("sum")
        rest = steps.clipped((sums - 1.0) / sums, np.exp(-SUREST), np.inf)
        certain = steps.clipped(-steps.log(sums) - steps.log(rest), *self.surest).named("certainty")
        first = (first - steps.log(sums)).named("first")
        if self.varying is None:
            return first, certain, first
        eta = steps.clipped(self.varying.steps(certain)[0], -LARGEST_LOG_POWER, LARGEST_LOG_POWER)
        second = first * (steps.exp(eta) * self.varying_share + (1.0 - self.varying_share))
        return first, certain, second.named("second")

    def logit_steps(self, scores: tuple[Step, ...]) -> Step:
        """Return the steps to the calibrated logits."""
        logits = self.first_steps(scores)[2]
        if self.map is not None and self.map_share:
            logits = logits + (self.map.steps(logits) - logits) * self.map_share
        if self.trees is not None:
            logits = (logits - steps.largest(logits)).named("shifted")
            logits = (logits - steps.log(steps.total(steps.exp(logits)))).named("third")
            each = [logits.item(k) for k in range(len(scores))]
            logits = logits + steps.join(self.trees.steps(each)) * self.tree_share
        return logits.named("calibrated_logit")


@dataclass(frozen=True, eq=False)
class ClassesRecord:
    """What `describe` and `effects` tell of a fit; see `two_classes.Record`."""

    fitted: Fitted | None
    score: Share
    classes: Share
    variables: Share
    trees: Share
    moved: float = 0.0
    found: Found | None = None
    fallen: bool = False
    neighbours: bool = False


def _along(
    y: Ints, mass: Floats, before: Floats, after: Floats
) -> Callable[[float], tuple[Floats, Floats, Floats]]:
    """Return losses, slopes and curvatures of rows on the way between two logits."""
    move, rows = after - before, np.arange(len(y))

    def along(w: float) -> tuple[Floats, Floats, Floats]:
        logits = before + w * move
        logits = logits - logits.max(axis=1, keepdims=True)
        q = np.exp(logits)
        sums = q.sum(axis=1)
        q /= sums[:, None]
        mean = (q * move).sum(axis=1)
        curvature = (q * move**2).sum(axis=1) - mean**2
        return (
            mass * (np.log(sums) - logits[rows, y]),
            mass * (move[rows, y] - mean),
            mass * curvature,
        )

    return along


def fit_many_classes(
    given: Given, *, trees: bool, plain: bool
) -> tuple[ClassesModel, ClassesRecord]:
    """Fit the model; see `fit_two_classes`. With `plain` the order of classes is kept."""
    p, y, mass = given.p, given.y, given.mass
    columns, n_levels, search = given.columns, given.n_levels, given.search
    n, k = float(mass.sum()), p.shape[1]
    floor = max(BELOW_LEAST * min(float(p[p > 0].min()), 1.0 / n), TINY)
    logs = log_rows(p, floor)
    key = dependence.hashed([*np.round(logs.T, dependence.SCORE_DECIMALS), *columns])
    folds = dependence.make_folds(key, y, mass, given.groups, given.time)
    picked = dependence.sample(key, MOST_ROWS)
    whole, every, every_mass = logs, y, mass
    if len(picked) < len(y):
        logs, y, mass, folds = logs[picked], y[picked], mass[picked], folds.take(picked)
        columns, key = [each[picked] for each in columns], key[picked]
    splits = [] if folds.too_few(n) else folds.splits()
    power, power_error = _power_of(whole, every, every_mass)
    by_score = by_class = variables = grown = NOTHING
    first = logs
    if splits:
        powered = power * logs
        for train, out in splits:
            powered[out] = _power_of(logs[train], y[train], mass[train])[0] * logs[out]
        by_score = _share(folds, y, mass, logs, powered, SCORE_RAMP, doubt=BEYOND_DOUBT)
        first = logs + by_score.value * (powered - logs)
    power = 1.0 + by_score.value * (power - 1.0)
    first = _normalized(first)
    sure = certainty(first)
    ends = (float(sure.min()) - 1e-6, float(sure.max()) + 1e-6)
    enough = bool(splits) and columns and n >= FEW_ROWS + FEW_ROWS_PER_VARIABLE * len(columns)
    fitted, full, second = None, None, first
    found, fallen, neighbours = None, False, False
    if enough:
        design = Design.of(sure, columns, n_levels, mass, ends, varying=False)
        stage = _Power(design, first, sure, y, mass, columns)
        fitted, variables, second = stage.judged(folds, by_score.value)
        if search is not None and fitted is not None:
            found, neighbours = stage.search(fitted, search, picked, key, every)
        if found is not None:
            before = variables.value
            units = found.blocking.numbers()
            folds = Folds(dependence.fold_of_groups(units), units).take(picked)
            splits = folds.splits()
            fitted, variables, second = stage.judged(folds, by_score.value)
            fallen = before - variables.value >= 0.1
    if fitted is not None:
        X = fitted.design.matrix(sure, columns)
        weight = PowerLoss(first, y, mass).slopes(X @ fitted.fit.beta)[1]
        full = fitted.tables(np.zeros(len(fitted.design.score.table)), X, weight)
    class_map, third = None, second
    if splits and not plain and k <= MOST_CLASSES:
        class_map, by_class, third = _judged_map(second, y, mass, folds)
    forest, moved = None, 0.0
    if trees and not plain and splits and n >= TREE_ROWS and k <= MOST_CLASSES:
        forest, grown, moved = _fit_trees(third, y, mass, columns, n_levels, folds)
    applied = any(each.value for each in (by_score, variables, by_class, grown))
    model = ClassesModel(
        floor, power, full if variables.value else None, variables.value, class_map,
        by_class.value, ends, forest, grown.value, applied, bool((p == 0).any()), full, power_error,
    )  # fmt: skip
    record = ClassesRecord(
        fitted, by_score, by_class, variables, grown, moved, found, fallen, neighbours
    )
    return model, record


def _judged_map(
    logs: Floats, y: Ints, mass: Floats, folds: Folds
) -> tuple[ClassMap, Share, Floats]:
    """Return ℓ_A, how much of it held-out rows support, and ℓ₃ of held-out rows."""
    class_map = fit_class_map(logs, y, mass)
    mapped, judged = class_map.logits(logs), folds.judged()
    for train, out in folds.splits():
        mapped[out] = fit_class_map(logs[train], y[train], mass[train]).logits(logs[out])
    # Few rows for many coefficients make mapped probabilities too sure.
    last, _ = _power_of(mapped[judged], y[judged], mass[judged])
    mapped *= last
    share = _share(folds, y, mass, logs, mapped, VARIABLES_RAMP)
    return replace(class_map, last=last), share, _normalized(logs + share.value * (mapped - logs))


def _share(
    folds: Folds, y: Ints, mass: Floats, before: Floats, after: Floats,
    ramp: tuple[float, float], later: float = 0.0, doubt: tuple[float, float] | None = None,
) -> Share:  # fmt: skip
    judged = folds.judged()
    units = None if folds.units is None else folds.units[judged]
    along = _along(y[judged], mass[judged], before[judged], after[judged])
    return share_of(along, mass[judged], ramp, units, later, doubt)


@dataclass(frozen=True, eq=False)
class _Power:
    """The stage of the power along variables."""

    design: Design
    first: Floats
    sure: Floats
    y: Ints
    mass: Floats
    columns: list[AnyArray]

    def judged(self, folds: Folds, score: float) -> tuple[Fitted | None, Share, Floats]:
        """Return the fit, how much of it held-out rows support, and ℓ₂ of held-out rows."""
        found = self._judged(self.design, folds, score)
        if folds.units is None or not found[1].value:
            return found
        constant_ones = {
            each.variable
            for each in self.design.variables
            if dependence.constant_within([self.columns[each.variable]], folds.units)
        }
        if not constant_ones:
            return found
        other = self._judged(self.design.without(constant_ones), folds, score)
        saved = _share(folds, self.y, self.mass, other[2], found[2], (0, 1))
        clear = saved.gain > dependence.CLEAR_GAIN * saved.error and saved.value > 0
        return found if clear else other

    def _judged(
        self, design: Design, folds: Folds, score: float
    ) -> tuple[Fitted | None, Share, Floats]:
        loss = PowerLoss(self.first, self.y, self.mass)
        zero = np.zeros(len(self.y))
        design, _ = screened(design, self.columns, *loss.slopes(zero))
        if not design.variables:
            return None, NOTHING, self.first
        X = design.matrix(self.sure, self.columns)
        fitted = fit_design(design, X, loss, (0.0, 0.0))
        eta = held_out(X, loss, design.groups(), fitted.fit, folds.splits())
        power = np.exp(np.clip(eta, -LARGEST_LOG_POWER, LARGEST_LOG_POWER))
        after = self.first * power[:, None]
        later = CALIBRATED_SCORES * (1.0 - score)
        share = _share(folds, self.y, self.mass, self.first, after, VARIABLES_RAMP, later)
        return fitted, share, self.first + share.value * (after - self.first)

    def search(
        self, fitted: Fitted, search: Search, picked: Ints, key: AnyArray, y: Ints
    ) -> tuple[Found | None, bool]:
        """Return blocks whose rows are correlated, and whether neighbouring rows are."""
        X = fitted.design.matrix(self.sure, self.columns)
        loss = PowerLoss(self.first, self.y, self.mass)
        slopes = loss.slopes(X @ fitted.fit.beta)
        return dependence.searched(search, *slopes, self.mass, key, picked, y)


def _fit_trees(
    base: Floats, y: Ints, mass: Floats, columns: list[AnyArray], n_levels: list[int], folds: Folds
) -> tuple[Trees | None, Share, float]:
    """Return trees that start at ℓ₃, how much of them is applied, and what they move."""
    hot = np.zeros((base.shape[1], len(y)))
    hot[y, np.arange(len(y))] = 1.0

    def slopes(eta: Floats, at: Ints) -> tuple[Floats, Floats]:
        q = softmax(eta.T).T
        return q - hot[:, at], q * (1.0 - q)

    def losses(eta: Floats, at: Ints) -> Floats:
        q = softmax(eta.T)
        return -mass[at] * np.log(np.maximum(q[np.arange(len(at)), y[at]], TINY))

    residual = hot - np.exp(base.T)
    rows = boosting_of(list(base.T), columns, n_levels, mass, residual, slopes, losses)
    if rows is None:
        return None, NOTHING, 0.0
    rows = with_depth(rows, TREE_DEPTH)
    splits = folds.splits()
    n_trees, eta = rows.held_out(np.ascontiguousarray(base.T), splits)
    if not n_trees:
        return None, NOTHING, 0.0
    share = _share(folds, y, mass, base, eta.T, TREES_RAMP)
    if not share.value:
        return None, NOTHING, 0.0
    fitted = float(np.mean([mass[train].sum() for train, _ in splits]))
    number = int(np.ceil(n_trees * float(mass.sum()) / fitted))
    after = softmax(base + share.value * (eta.T - base))
    moved = float(mass @ np.abs(after - softmax(base)).sum(axis=1) / mass.sum()) / 2
    return rows.grown(np.ascontiguousarray(base.T), number), share, moved
