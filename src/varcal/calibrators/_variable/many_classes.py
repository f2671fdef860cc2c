r"""Many classes: a temperature that depends on V and on how sure the score is.

.. math:: q_k \propto p_k^{\,e^{\eta}}, \qquad \eta = \text{additive in } V \text{ and the score}.

A positive power of all probabilities of a row keeps their order, so the predicted class never
changes. As a function of η the log-loss of a row has the slopes

.. math:: \frac{d\ell}{d\eta} = t\,(\bar l - l_y), \qquad
          \mathrm{E}\,\frac{d^2\ell}{d\eta^2} = t^2 \operatorname{Var}_q l, \qquad
          t = e^\eta,\; l = \ln p,\; \bar l = \mathrm{E}_q l,

so the penalized fit is the same as for two classes. A small correction for classes that are
confused with one another follows, which keeps the largest class the largest; where it changes the
best temperature, the model of all variables is fitted again after it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from varcal._arrays import AnyArray, Bools, Floats, Ints
from varcal.calibrators._variable._blocks.correlated_rows import Search
from varcal.calibrators._variable._columns.design import SCORE, Block, Design
from varcal.calibrators._variable.additive_model import (
    AdditiveModel,
    Fitted,
    Sample,
    fit_additive,
)
from varcal.calibrators._variable.confusion import Confusion, fit_confusion
from varcal.calibrators._variable.folds import RowKeys, folds_and_units
from varcal.calibrators._variable.trust import (
    FEW_SAVINGS,
    Trusted,
    fit_surviving,
    gain_over,
    held_out,
    too_few,
)
from varcal.calibrators.softmax import softmax

# Tuned constants; README.md shows what changes at half and at twice each value.

#: A probability of 0 is read as this share of the least positive one among calibration rows.
BELOW_LEAST = np.exp(-1.0)
#: The log-likelihood that learning the temperature again after the correction of confusions must
#: gain, and that bringing the mean confidence to the accuracy may cost.
WORTHWHILE = 3.0

#: The gain in log marginal likelihood, or the held-out gain in standard errors, from which the
#: temperature may depend on how sure the score is; few rows need more, as in `trust`. On 12 draws
#: each of 200 and 500 rows of four models of digits, gains up to 9, and up to 1.4 and 1.1 standard
#: errors, made new rows worse; on 1,500 rows of a forest of diamonds, 1.7 made them better.
CURVE_EVIDENCE = 12.0
CURVE_RATIO = 1.2

# Numerical limits.

#: The largest |ln t|.
LARGEST_LOG_POWER = 8.0
#: The largest shift of ln t that brings the mean confidence to the accuracy, and its tolerance.
LARGEST_SHIFT, SHIFT_TOLERANCE = 1.5, 1e-6
#: The least working weight of a row.
LEAST_WORKING_WEIGHT = 1e-9
_TINY = float(np.finfo(np.float64).tiny)


def log_rows(p: Floats, floor: float = _TINY) -> Floats:
    """Return ln p minus the largest of each row; p is at least `floor`."""
    logs = np.log(np.maximum(p, floor))
    return np.asarray(logs - logs.max(axis=1, keepdims=True))


def certainty(p: Floats) -> Floats:
    """Return the log-odds of the largest probability against all others.

    >>> certainty(np.array([[0.5, 0.25, 0.25]]))
    array([0.])
    """
    top = p.argmax(axis=1)
    rest = p.copy()
    rest[np.arange(len(p)), top] = 0.0
    others = np.maximum(rest.sum(axis=1), _TINY)
    return np.asarray(np.log(np.maximum(p.max(axis=1), _TINY)) - np.log(others))


@dataclass(frozen=True, eq=False)
class TemperatureLoss:
    """Log-loss of rows of many classes as a function of their log inverse temperature.

    Attributes
    ----------
    logs : ndarray of shape (n, K)
        ln p, the largest of each row at 0.
    y : ndarray of int
        The class numbers.
    weight : ndarray of float
        Weights.
    offset : ndarray of float
        A constant that is added to each predictor.
    added : ndarray of shape (n, K) or None
        What is added to the logits after the power is applied.
    """

    logs: Floats
    y: Ints
    weight: Floats
    offset: Floats
    added: Floats | None = None

    def __len__(self) -> int:
        return len(self.y)

    def rows(self, eta: Floats) -> Floats:
        """Return the weighted loss of each row."""
        logits = self._logits(self._power(eta))
        total = np.log(np.exp(logits).sum(axis=1))
        return np.asarray(self.weight * (total - logits[np.arange(len(self.y)), self.y]))

    def value(self, eta: Floats) -> float:
        """Return the weighted sum over rows."""
        return float(self.rows(eta).sum())

    def mass(self) -> Floats:
        """Return the weights."""
        return self.weight

    def shifted(self, eta: Floats) -> TemperatureLoss:
        """Return the loss of what is added to the given predictor."""
        return replace(self, offset=self.offset + eta)

    def slopes(self, eta: Floats) -> tuple[Floats, Floats]:
        """Return minus the first derivative and the expected second one."""
        power = self._power(eta)
        q = np.exp(self._logits(power))
        q /= q.sum(axis=1, keepdims=True)
        mean = (q * self.logs).sum(axis=1)
        own = self.logs[np.arange(len(self.y)), self.y]
        spread = (q * self.logs**2).sum(axis=1) - mean**2
        first = self.weight * power * (own - mean)
        return first, self.weight * np.maximum(power**2 * spread, LEAST_WORKING_WEIGHT)

    def extra_weight(self, curvature: Floats) -> Floats:
        """Return 0: nearly certain rows say little about their temperature."""
        return np.zeros(len(curvature))

    def take(self, rows: Bools | Ints | slice) -> TemperatureLoss:
        """Return the loss of some of the rows."""
        return TemperatureLoss(
            self.logs[rows],
            self.y[rows],
            self.weight[rows],
            self.offset[rows],
            None if self.added is None else self.added[rows],
        )

    def _logits(self, power: Floats) -> Floats:
        """Return logits, the largest of each row at 0."""
        scaled = self.logs * power[:, None]
        if self.added is None:
            return scaled
        scaled += self.added
        return np.asarray(scaled - scaled.max(axis=1, keepdims=True))

    def _power(self, eta: Floats) -> Floats:
        return np.asarray(np.exp(np.clip(self.offset + eta, -LARGEST_LOG_POWER, LARGEST_LOG_POWER)))


@dataclass(frozen=True, eq=False)
class TemperatureModel:
    """A mixture of three log inverse temperatures: 0, one of the score alone, one of score and V.

    Attributes
    ----------
    score, full : AdditiveModel
        The models.
    score_share, full_share : float
        How far each is trusted over the one before.
    shift : float
        Brings the mean confidence of calibration rows to their accuracy.
    floor : float
        The least probability: smaller ones are raised to it, if a model is trusted or a true class
        was below it.
    confusion : Confusion
        The correction for classes that are confused with one another.
    keep_argmax : bool
        Whether the largest class stays the largest.
    """

    score: AdditiveModel
    full: AdditiveModel
    score_share: float
    full_share: float
    shift: float
    floor: float
    confusion: Confusion
    keep_argmax: bool

    def log_power(self, p: Floats, columns: list[AnyArray]) -> Floats:
        """Return the log inverse temperature of rows."""
        z = certainty(p)
        eta = np.zeros(len(z))
        if self.score_share > 0 and self.full_share < 1:
            eta = self.score_share * self.score.lookup.predictor(z, [])[0]
        if self.full_share > 0:
            eta = eta + self.full_share * (self.full.lookup.predictor(z, columns)[0] - eta)
        return np.asarray(eta + self.shift)

    def error(self, p: Floats, columns: list[AnyArray], eta: Floats) -> Floats:
        """Return the standard error of log inverse temperatures; see `LogisticModel.error`."""
        own, variance = self.full.predictor(certainty(p), columns)
        apart = self.shift + own - eta
        return np.asarray(np.sqrt(variance + (1 - self.full_share) * apart**2))

    def class_error(self, p: Floats) -> Floats:
        """Return the standard error of the logit of each class, due to the correction alone."""
        return np.asarray(np.sqrt(self.confusion.variance(self.logs(p))))

    def logs(self, p: Floats) -> Floats:
        """Return ln p, the largest of each row at 0."""
        return log_rows(p, self.floor)

    def probabilities(self, p: Floats, eta: Floats) -> Floats:
        """Return calibrated probabilities, given the log inverse temperature."""
        logs = self.logs(p)
        base = logs * np.exp(np.clip(eta, -LARGEST_LOG_POWER, LARGEST_LOG_POWER))[:, None]
        logits = self.confusion.corrected(base, logs, keep_argmax=self.keep_argmax)
        return softmax(logits)


def fit_temperature_model(
    p: Floats,
    y: Ints,
    columns: list[AnyArray],
    n_levels: list[int],
    weight: Floats | None = None,
    *,
    groups: Ints | None = None,
    time: Floats | None = None,
    search: Search | None = None,
    interactions: bool = True,
    keep_argmax: bool = True,
    confusions: bool = True,
) -> tuple[TemperatureModel, Trusted]:
    """Fit the model.

    Parameters
    ----------
    p : ndarray of shape (n, K)
        Probabilities.
    y : ndarray of int
        Class numbers.
    columns, n_levels, weight, groups, time, search, interactions
        As in `fit_logistic_model`.
    keep_argmax : bool
        Whether the largest class stays the largest.
    confusions : bool
        Whether to correct for classes that are confused with one another.
    """
    z, mass = certainty(p), np.ones(len(p)) if weight is None else weight
    design = Design.of(z, columns, n_levels, weight, varying=False)
    keys = RowKeys.of(p, y, weight, z, [columns[k] for k in design.live()])
    folds, units = folds_and_units(keys, groups, time)
    floor = max(BELOW_LEAST * float(p.min(where=p > 0, initial=1.0)), _TINY)
    # A true class with probability 0 proves the scores wrong, however few the rows are.
    refuted = bool((p[np.arange(len(y)), y] < floor).any())
    loss = TemperatureLoss(log_rows(p, floor), y, mass, np.zeros(len(y)))
    rows = Sample(z, columns, loss, folds, units=units)
    design = _without_needless_curve(design, rows.take(keys.fitting_rows()))
    surviving = fit_surviving(
        design,
        rows,
        keys,
        lambda some: np.zeros(len(some)),
        lambda eta, variance, rows: eta,
        pairs=interactions,
        search=search,
    )
    fitted, rows = surviving.fitted, surviving.rows
    some, picked = surviving.sample, surviving.picked
    if rows.units is None and not too_few(rows):
        fitted = replace(fitted, score_share=max(fitted.score_share, _plain_share(fitted.score)))
    model = TemperatureModel(
        fitted.score.model,
        fitted.full.model,
        fitted.score_share,
        fitted.full_share,
        0.0,
        floor if refuted or fitted.score_share or fitted.full_share else _TINY,
        Confusion.none(p.shape[1]),
        keep_argmax,
    )
    eta = model.log_power(p, columns)
    unseen = np.zeros((len(picked), p.shape[1]))
    if confusions and not too_few(rows):
        logs = model.logs(p[picked])
        base = logs * np.exp(np.clip(eta[picked], -LARGEST_LOG_POWER, LARGEST_LOG_POWER))[:, None]
        confusion, unseen = fit_confusion(
            base,
            logs,
            y[picked],
            mass[picked],
            some.folds,
            some.units,
            keep_argmax=keep_argmax,
        )
        model = replace(model, confusion=confusion)
        if confusion.share and fitted.full_share == 1 and fitted.independent:
            added = confusion.corrected(base, logs, keep_argmax=keep_argmax) - base
            after = TemperatureLoss(logs, y[picked], mass[picked], np.zeros(len(picked)), added)
            fitted = _fitted_again(fitted, replace(some, loss=after), eta[picked])
            model = replace(model, full=fitted.full.model)
            eta = model.log_power(p, columns)
    trust = max(fitted.score_share, fitted.full_share)
    judged = some.folds.judged()
    last = picked[judged]
    if not trust or not len(last):
        return model, fitted
    shift = last_shift(model.logs(p[last]), unseen[judged], y[last], eta[last], mass[last])
    return replace(model, shift=trust * shift), fitted


def _without_needless_curve(design: Design, rows: Sample) -> Design:
    """Return the design without the curve of the score, unless it is clearly needed.

    Plain temperature scaling suits most models. The losses of a few rows that are wrong and nearly
    certain decide about a curve of the certainty, so small gains are not evidence.
    """
    curve = [b for b, _ in design.layout() if b.variables == (SCORE,) and not b.free]
    alone, bare = design.score_only(), replace(rows, columns=[])
    plain = alone.restricted((Block("level", (SCORE,)),))
    level, bent = (fit_additive(terms, bare, pairs=False) for terms in (plain, alone))
    if bent.evidence - level.evidence > CURVE_EVIDENCE and rows.units is None:
        return design

    def without_fold(terms: Design, like: Fitted) -> Floats:
        return held_out(bare, lambda part: fit_additive(terms, part, pairs=False, like=like))

    gain = gain_over(bare, without_fold(plain, level), without_fold(alone, bent))
    if gain.ratio - FEW_SAVINGS / gain.count > CURVE_RATIO:
        return design
    return design.restricted(tuple(b for b, _ in design.layout() if b not in curve))


def _plain_share(score: Fitted) -> float:
    """Return how far a single temperature is trusted: as much as its size is signal.

    One number needs no held-out rows: of :math:`t^2`, the square of ln t in standard errors, 1 is
    expected by chance. A curve is left to held-out rows.
    """
    if len(score.model.beta) > 1:
        return 0.0
    square = float(score.model.beta[0] ** 2 / score.model.covariance[0, 0])
    return max(1.0 - 1.0 / square, 0.0) if square > 0 else 0.0


def _fitted_again(fitted: Trusted, rows: Sample, eta: Floats) -> Trusted:
    """Return the models, with that of all variables fitted again if that gains enough."""
    full = fit_additive(fitted.full.model.design, rows, pairs=False)
    if rows.loss.value(eta) - rows.loss.value(full.model.of_sample(rows)[0]) < WORTHWHILE:
        return fitted
    edf = fitted.full.edf | full.edf
    return replace(fitted, full=replace(full, edf=edf, trials=fitted.full.trials))


def last_shift(logs: Floats, added: Floats, y: Ints, eta: Floats, mass: Floats) -> float:
    r"""Return the last shift of log inverse temperatures, learned from held-out corrections.

    A correction is larger on the rows that it was learned from than it should be, so a temperature
    that suits these rows is too sure of others. First comes the shift that is most likely. Then
    the mean confidence is brought to the accuracy, if they clearly differ. The likelihood holds
    more information on the level than the accuracy does, so a gap within its standard error e
    stays, and of a larger one the share :math:`1 - e^2 / \text{gap}^2` is closed, unless that
    lowers the likelihood too much.

    Parameters
    ----------
    logs : ndarray of shape (n, K)
        ln p.
    added : ndarray of shape (n, K)
        What a correction from other rows adds to the logits.
    y : ndarray of int
        Class numbers.
    eta : ndarray
        Log inverse temperatures.
    mass : ndarray
        Weights.
    """
    from scipy.optimize import brentq, minimize_scalar  # noqa: PLC0415  only a fit needs it

    total = float(mass.sum())
    loss = TemperatureLoss(logs, y, mass, eta, added)
    ends = (-LARGEST_SHIFT, LARGEST_SHIFT)

    def value(shift: float) -> float:
        return loss.value(np.full(len(y), shift))

    def sure(shift: float) -> tuple[Floats, Bools]:
        power = np.exp(np.clip(eta + shift, -LARGEST_LOG_POWER, LARGEST_LOG_POWER))
        q = softmax(logs * power[:, None] + added)
        return q.max(axis=1), q.argmax(axis=1) == y

    def gap(shift: float) -> float:
        top, hit = sure(shift)
        return float(mass @ (top - hit)) / total

    likely = 0.0
    if added.any():
        likely = float(minimize_scalar(value, bounds=ends, method="bounded").x)
    top, _ = sure(likely)
    error = float(mass @ (top * (1.0 - top))) / total**2
    apart = gap(likely) ** 2
    if apart <= error or gap(ends[0]) > 0 or gap(ends[1]) < 0:
        return likely
    level = float(brentq(gap, *ends, xtol=SHIFT_TOLERANCE))
    shift = likely + (1.0 - error / apart) * (level - likely)
    return shift if value(shift) - value(likely) < WORTHWHILE else likely
