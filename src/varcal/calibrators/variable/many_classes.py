r"""More than two classes: a map of all log-probabilities, a power along variables, and trees.

Zeros are raised to half the least positive probability, at most half a row's part. One power of
all probabilities and a mix with the class rates come first, then logits that are linear in the
logarithms of the result,

.. math:: \ell_0 = \ln p, \qquad \ell_A = W \ln\{(1 - \epsilon)\,\mathrm{softmax}(t\,\ell_0)
          + \epsilon\,\pi\} + b, \qquad \ell_1 = t' \ell_0 + a\,(\ell_A - t' \ell_0),

with t' as much of t as is applied, and W shrunk towards the identity. A power that depends on the variables and on how sure the
scores are follows, :math:`\ell_2 = \ell_1 (1 + b\,(e^\eta - 1))`, and trees that start at ℓ₁.
Held-out rows decide how much of each is applied.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal.calibrators._neutral.evaluate import in_blocks
from varcal.calibrators._neutral.steps import (
    Step,
    clipped,
    constant,
    dot,
    exp,
    join,
    largest,
    log,
    score,
    softmax as softmax_steps,
    total,
)
from varcal.calibrators._solvers.softmax import softmax
from varcal.calibrators.variable import dependence
from varcal.calibrators.variable.additive import (
    Design,
    Fitted,
    Tables,
    fit_design,
    on_all_rows,
    screened,
)
from varcal.calibrators.variable.columns import winsorized
from varcal.calibrators.variable.dependence import Folds, Found, Search
from varcal.calibrators.variable.intervals import PENALTY_DOUBT
from varcal.calibrators.variable.reml import CERTAIN_WEIGHT, LARGEST_LOG_POWER, PowerLoss, fit_blocks, held_out
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
    power : float
        t.
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

    power: float
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
        q = softmax(self.power * logs)
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
        q = softmax_steps(logs * self.power)
        inner = log(q * (1.0 - self.mix) + constant(self.mix * self.rates)).named("log_q")
        mapped = dot(inner, self.last * self.matrix.T) + constant(self.last * self.shift)
        return mapped.named("mapped")


def fit_class_map(logs: Floats, y: Ints, mass: Floats, *, plain: bool) -> ClassMap:
    """Fit ℓ_A; with `plain` the power alone, which keeps the order of classes."""
    n, k = float(mass.sum()), logs.shape[1]
    power = _power_of(logs, y, mass)
    rates = (np.bincount(y, mass, minlength=k) + 1.0) / (n + k)
    none = np.zeros((k, k + 1, k + 1)) if k <= MOST_CLASSES else np.zeros((0, 0, 0))
    if plain or k > MOST_CLASSES:
        return ClassMap(power, 0.0, rates, np.eye(k), np.zeros(k), none)
    found = ClassMap(power, 1.0 / (n + 1.0), rates, np.eye(k), np.zeros(k), none)
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
    return ClassMap(power, found.mix, rates, theta[:, :k].copy(), theta[:, k].copy(), covariance)


def _power_of(logs: Floats, y: Ints, mass: Floats) -> float:
    """Return the power of probabilities with the least loss."""
    one = fit_blocks(np.ones((len(y), 1)), PowerLoss(logs, y, mass), np.array([-1]))
    return float(np.exp(np.clip(one.beta[0], -LARGEST_LOG_POWER, LARGEST_LOG_POWER)))


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
    map : ClassMap
        ℓ_A.
    power_share, map_share : float
        How much of the power t, and then of ℓ_A, is applied.
    varying : Tables or None
        η, along the certainty of ℓ₁ and the variables.
    varying_share : float
        b.
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
    least : float
        The least variance of log-odds: what trees learn and lose, as far as held-out rows show it.
    """

    floor: float
    map: ClassMap
    power_share: float
    map_share: float
    varying: Tables | None
    varying_share: float
    surest: tuple[float, float]
    trees: Trees | None
    tree_share: float
    applied: bool
    raised: bool
    full: Tables | None
    least: float

    def steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        """Return the steps from all probabilities to the calibrated ones."""
        if not self.applied and not self.raised:
            return scores
        q = softmax_steps(self.logit_steps(scores))
        return tuple(q.item(k) for k in range(len(scores)))

    def error(self, p: Floats, columns: list[AnyArray], n_levels: list[int]) -> Floats:
        """Return about the standard error of the calibrated log-odds of each class.

        Few data cannot rule out what the prediction leaves out.
        """
        k = p.shape[1]
        scores = tuple(score(j) for j in range(k))
        first, certain = self.first_steps(scores)
        found = in_blocks((*(first.item(j) for j in range(k)), certain), p, columns, n_levels)
        q, z = np.exp(found[:, :k]), found[:, k]
        logs = log_rows(p, self.floor)
        variance = PENALTY_DOUBT * self.map.variance(logs)
        apart = _log_odds(_normalized(self.map.logits(logs))) - _log_odds(found[:, :k])
        variance += (1.0 - self.map_share) * apart**2
        if self.full is not None:
            eta, spread = self.full.predictor(z, columns)
            power = np.exp(np.clip(eta, -LARGEST_LOG_POWER, LARGEST_LOG_POWER))[:, None]
            # The log-odds of class k move by t (l_k − Σ q l over the others) with ln t.
            others = np.maximum(1.0 - q, 1e-12)
            rest = ((q * found[:, :k]).sum(axis=1, keepdims=True) - q * found[:, :k]) / others
            slope = power * (found[:, :k] - rest)
            left = (1.0 - self.varying_share) * (1.0 - self.tree_share)
            spread = PENALTY_DOUBT * spread + left * eta**2
            variance += slope**2 * spread[:, None]
        return np.sqrt(variance + self.least)

    def first_steps(self, scores: tuple[Step, ...]) -> tuple[Step, Step]:
        """Return the steps to ℓ₁, as log-probabilities, and to its certainty."""
        logs = log(clipped(join(scores), self.floor, np.inf)).named("log_p")
        logs = (logs - largest(logs)).named("log_ratio")
        first = logs * (1.0 + self.power_share * (self.map.power - 1.0))
        if self.map_share:
            first = first + (self.map.steps(logs) - first) * self.map_share
        first = (first - largest(first)).named("first")
        powers = exp(first).named("power")
        sums = total(powers).named("sum")
        rest = clipped((sums - 1.0) / sums, np.exp(-SUREST), np.inf)
        certain = clipped(-log(sums) - log(rest), *self.surest).named("certainty")
        return (first - log(sums)).named("log_q"), certain

    def logit_steps(self, scores: tuple[Step, ...]) -> Step:
        """Return the steps to the calibrated logits."""
        first, certain = self.first_steps(scores)
        logits = first
        if self.varying is not None:
            eta = clipped(self.varying.steps(certain)[0], -LARGEST_LOG_POWER, LARGEST_LOG_POWER)
            logits = first * (exp(eta) * self.varying_share + (1.0 - self.varying_share))
        if self.trees is not None:
            each = [first.item(k) for k in range(len(scores))]
            grown = first + join(self.trees.steps(each))
            logits = logits + (grown - logits) * self.tree_share
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
    p: Floats,
    y: Ints,
    columns: list[AnyArray],
    n_levels: list[int],
    mass: Floats,
    *,
    groups: Ints | None,
    time: Floats | None,
    search: Search | None,
    trees: bool,
    plain: bool,
) -> tuple[ClassesModel, ClassesRecord]:
    """Fit the model; see `fit_two_classes`. With `plain` the order of classes is kept."""
    n, k = float(mass.sum()), p.shape[1]
    floor = max(BELOW_LEAST * min(float(p[p > 0].min()), 1.0 / n), TINY)
    logs = log_rows(p, floor)
    key = dependence.hashed([*np.round(logs.T, dependence.SCORE_DECIMALS), *columns])
    folds = dependence.make_folds(key, y, mass, groups, time)
    picked = dependence.sample(key, MOST_ROWS)
    whole, every, every_mass, every_columns = logs, y, mass, columns
    if len(picked) < len(y):
        logs, y, mass, folds = logs[picked], y[picked], mass[picked], folds.take(picked)
        columns, key = [each[picked] for each in columns], key[picked]
    class_map = fit_class_map(whole, every, every_mass, plain=plain)
    nothing = folds.too_few(n) or not folds.splits()
    splits = [] if nothing else folds.splits()
    mapped = class_map.logits(logs)
    for train, out in splits:
        own = fit_class_map(logs[train], y[train], mass[train], plain=plain)
        mapped[out] = own.logits(logs[out])
    by_score = by_class = NOTHING
    first = logs
    if splits:
        # Few rows for many coefficients make mapped probabilities too sure.
        judged = folds.judged()
        class_map = replace(class_map, last=_power_of(mapped[judged], y[judged], mass[judged]))
        mapped *= class_map.last
        powered = class_map.power * logs
        for train, out in splits:
            powered[out] = _power_of(logs[train], y[train], mass[train]) * logs[out]
        by_score = _share(folds, y, mass, logs, powered, SCORE_RAMP, doubt=BEYOND_DOUBT)
        first = logs + by_score.value * (powered - logs)
        if not plain:
            by_class = _share(folds, y, mass, first, mapped, VARIABLES_RAMP)
    first = _normalized(first + by_class.value * (mapped - first))
    sure = certainty(first)
    ends = (float(sure.min()) - 1e-6, float(sure.max()) + 1e-6)
    enough = bool(splits) and columns and n >= FEW_ROWS + FEW_ROWS_PER_VARIABLE * len(columns)
    fitted, variables, second = None, NOTHING, first
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
    power = full = None
    if fitted is not None:
        # Coefficients come from the sample: ℓ₁ of other rows was not held out.
        X = fitted.design.matrix(sure, columns)
        weight = PowerLoss(first, y, mass).slopes(X @ fitted.fit.beta)[1]
        full = fitted.tables(np.zeros(len(fitted.design.score.table)), X, weight)
        power = full if variables.value else None
    grown, forest, moved = NOTHING, None, 0.0
    if trees and not plain and splits and n >= TREE_ROWS and k <= MOST_CLASSES:
        base = (1.0 + by_score.value * (class_map.power - 1.0)) * logs
        base = _normalized(base + by_class.value * (class_map.logits(logs) - base))
        forest, grown, moved = _fit_trees(first, base, second, y, mass, columns, n_levels, folds)
    least = 0.0
    applied = bool(by_score.value or by_class.value or variables.value or grown.value)
    model = ClassesModel(
        floor, class_map, by_score.value, by_class.value, power, variables.value, ends, forest, grown.value, applied,
        bool((p == 0).any()), full, least,
    )  # fmt: skip
    return model, ClassesRecord(fitted, by_score, by_class, variables, grown, moved, found, fallen, neighbours)


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
    first: Floats,
    base: Floats,
    second: Floats,
    y: Ints,
    mass: Floats,
    columns: list[AnyArray],
    n_levels: list[int],
    folds: Folds,
) -> tuple[Trees | None, Share, float]:
    """Return trees that start at ℓ₁, how much of them is applied, and what they move."""
    hot = np.zeros((first.shape[1], len(y)))
    hot[y, np.arange(len(y))] = 1.0

    def slopes(eta: Floats, at: Ints) -> tuple[Floats, Floats]:
        q = softmax(eta.T).T
        return q - hot[:, at], q * (1.0 - q)

    def losses(eta: Floats, at: Ints) -> Floats:
        q = softmax(eta.T)
        return -mass[at] * np.log(np.maximum(q[np.arange(len(at)), y[at]], TINY))

    residual = hot - np.exp(first.T)
    rows = boosting_of(list(first.T), columns, n_levels, mass, residual, slopes, losses)
    if rows is None:
        return None, NOTHING, 0.0
    rows = with_depth(rows, TREE_DEPTH)
    splits = folds.splits()
    n_trees, eta = rows.held_out(first.T, splits)
    if not n_trees:
        return None, NOTHING, 0.0
    share = _share(folds, y, mass, second, eta.T, TREES_RAMP)
    if not share.value:
        return None, NOTHING, 0.0
    fitted = float(np.mean([mass[train].sum() for train, _ in splits]))
    number = int(np.ceil(n_trees * float(mass.sum()) / fitted))
    after = softmax(second + share.value * (eta.T - second))
    moved = float(mass @ np.abs(after - softmax(second)).sum(axis=1) / mass.sum()) / 2
    return rows.grown(np.ascontiguousarray(base.T), number), share, moved
