"""Temperature scaling, vector scaling, Dirichlet calibration and shifts: logits W · ln p + b."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

import numpy as np

from varcal._arrays import Bools, Floats, Ints
from varcal._options import EPS, check_eps, check_not_negative, one_of, or_none
from varcal.calibrators import steps
from varcal.calibrators.calibrator import Calibrator, parameter
from varcal.calibrators.regression import fit_softmax, softmax
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.steps import Step, clipped, constant, equal, where
from varcal.exceptions import VarcalWarning

#: The range of 1/T, and the slope of the mean log-loss at which the search ends.
LOWEST, HIGHEST, SLOPE = 1e-6, 1e6, 1e-13
#: The least 1/T that `DirichletCalibrator` is shrunk to.
LEAST_SHARPNESS = 1e-3
#: The share of (rows)⁻¹ per entry by which `DirichletCalibrator` shrinks; 1 was worse by
#: .7 ± .4 × 10⁻³ in log-loss on models that it was not chosen on.
SHRINKAGE = 0.25
#: The smallest probability and the ends of the logit that a shift moves scores inside (0, 1) to.
LEAST, LOWEST_LOGIT, HIGHEST_LOGIT = 1e-300, -690.0, 36.0


@dataclass(eq=False, repr=False, kw_only=True)
class _LogLinearCalibrator(Calibrator):
    eps: float | None = parameter(None, or_none(check_eps))
    floor_: float = field(init=False)

    def _logs(self, rows: CalibrationRows) -> Floats:
        """Set the floor and return ln p, one column per class."""
        self.floor_ = rows.floor(self.eps)
        return np.log(np.maximum(rows.columns(), self.floor_))

    def _steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        logs = steps.log(clipped(steps.join(scores), self.floor_, np.inf)).named("log_p")
        return steps.items(steps.softmax(self._logits(logs).named("logit")))

    @abstractmethod
    def _logits(self, logs: Step) -> Step:
        """Return the calibrated logits."""

    def _table(self, **columns: Floats) -> list[dict[str, Any]]:
        """Return one row per class."""
        rows = zip(self.classes_, *columns.values(), strict=True)
        return [
            {"class": str(label)} | dict(zip(columns, map(float, values), strict=True))
            for label, *values in rows
        ]


@dataclass(eq=False, repr=False, kw_only=True)
class TemperatureCalibrator(_LogLinearCalibrator):
    r"""Temperature scaling: all log-probabilities divided by one number.

    .. math:: q_k \propto p_k^{1/T}

    T minimizes the log-loss; above 1 it lowers confidence. The order of the classes within a row
    never changes, so accuracy stays exactly the same. Any number of classes.

    Parameters
    ----------
    eps : float, optional
        The least p before taking the logarithm; None means the floor of all calibrators by score,
        half of the smallest positive p.

    Attributes
    ----------
    temperature_ : float
        T.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Weinberger (2017), On calibration of modern neural networks,
    ICML.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0.2, 0.2, 0.6]])
    >>> fit = TemperatureCalibrator().fit(p, [0, 1, 1, 2])
    >>> round(fit.temperature_, 4)
    0.8548
    """

    temperature_: float = field(init=False)

    def _learn(self, rows: CalibrationRows) -> None:
        sharpness, self.separated_ = fit_sharpness(self._logs(rows), rows.y, rows.weight)
        if sharpness <= LOWEST:
            warnings.warn(
                "the scores are no better than chance: the best temperature is infinite, "
                "and all classes get equal probability",
                VarcalWarning,
                stacklevel=4,
            )
        self.temperature_ = 1.0 / sharpness

    def _logits(self, logs: Step) -> Step:
        return logs / self.temperature_

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        effect = "lowers confidence" if self.temperature_ > 1 else "raises confidence"
        words = f"All logits are divided by T = {self.temperature_:.6g}, which {effect}."
        return words, [{"temperature": self.temperature_}]


def fit_sharpness(logs: Floats, y: Ints, weight: Floats | None) -> tuple[float, bool]:
    """Return the 1/T that minimizes the log-loss, and whether larger ones are as good."""
    from scipy.optimize import brentq  # noqa: PLC0415  only a fit needs it

    n = len(logs)
    shares = np.full(n, 1.0 / n) if weight is None else weight / weight.sum()
    logs = logs - logs.max(axis=1, keepdims=True)
    truth = float(shares @ logs[np.arange(n), y])
    least = SLOPE * max(1.0, abs(truth))

    def slope(log_sharpness: float) -> float:
        cells = softmax(np.exp(log_sharpness) * logs)
        return float(shares @ np.einsum("ij,ij->i", cells, logs)) - truth + least

    low, high = np.log(LOWEST), np.log(HIGHEST)
    if slope(low) >= least:
        return LOWEST, False
    # Nearer ends, which most fits are between, save steps.
    low = -1.0 if slope(-1.0) < 0 else low
    high = 1.0 if slope(1.0) > 0 else high
    if slope(high) <= 0:
        return HIGHEST, True
    found = float(brentq(slope, low, high, xtol=1e-15, rtol=1e-15))
    return float(np.exp(found)), slope(min(found + 2.0, high)) < 1e3 * least


@dataclass(eq=False, repr=False, kw_only=True)
class VectorScalingCalibrator(_LogLinearCalibrator):
    r"""Vector scaling: a factor and a shift for each class.

    .. math:: q_k \propto \exp(w_k \ln p_k + b_k)

    which minimizes the mean log-loss :math:`+ \lambda \sum_k [(w_k - 1)^2 + b_k^2]`, so that
    few rows change little. Any number of classes.

    Parameters
    ----------
    l2 : float
        λ.
    eps : float, optional
        The least p before taking the logarithm; None means the floor of all calibrators by score,
        half of the smallest positive p.

    Attributes
    ----------
    factors_, shifts_ : ndarray of shape (K,)
        w and b.

    References
    ----------
    C. Guo, G. Pleiss, Y. Sun, K. Weinberger (2017), On calibration of modern neural networks,
    ICML.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0.2, 0.2, 0.6]])
    >>> fit = VectorScalingCalibrator(l2=0.1).fit(p, [0, 1, 1, 2])
    >>> fit.factors_.round(2), fit.shifts_.round(2)
    (array([1.39, 0.91, 1.31]), array([-0.51,  0.28,  0.23]))
    """

    l2: float = parameter(1e-4, check_not_negative)
    factors_: Floats = field(init=False)
    shifts_: Floats = field(init=False)

    def _learn(self, rows: CalibrationRows) -> None:
        logs, identity = self._logs(rows), _identity(rows.n_classes)
        free = identity > 0
        free[:, -1] = True
        penalty = np.full(identity.shape, float(self.l2))
        theta, self.separated_ = fit_softmax(
            logs, rows.y, rows.weight, penalty=penalty, target=identity, free=free
        )
        self.factors_, self.shifts_ = np.diag(theta).copy(), theta[:, -1].copy()

    def _logits(self, logs: Step) -> Step:
        return logs * constant(self.factors_) + constant(self.shifts_)

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        table = self._table(factor=self.factors_, shift=self.shifts_)
        return "The logit of every class is factor · ln(p) + shift.", table


@dataclass(eq=False, repr=False, kw_only=True)
class DirichletCalibrator(_LogLinearCalibrator):
    r"""Dirichlet calibration: a full linear map of the log-probabilities.

    .. math:: q \propto \exp(W \ln p + b), \qquad
              \min_{W, b}\ \text{mean log-loss} + \lambda \|W - W_0\|^2 + \mu \|b\|^2

    Any number of classes; K² + K parameters.

    Parameters
    ----------
    l2 : float, optional
        λ and μ; None means λ = ¼ K (K − 1) / n and μ = ¼ K / n.
    toward : {"temperature", "zero"}
        W₀: temperature scaling, that is the identity for log-probabilities that were divided by
        the best T first; or zero, as first published, so that few rows give flat probabilities.
        With zero, the last rows of W and b are fixed at 0.
    eps : float, optional
        The least p before taking the logarithm; None means the floor of all calibrators by score,
        half of the smallest positive p.

    Attributes
    ----------
    coef_ : ndarray of shape (K, K)
        W.
    intercept_ : ndarray of shape (K,)
        b.

    References
    ----------
    M. Kull, M. Perello-Nieto, M. Kängsepp, T. Silva Filho, H. Song, P. Flach (2019), Beyond
    temperature scaling, NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0.2, 0.2, 0.6]])
    >>> fit = DirichletCalibrator(l2=0.1).fit(p, [0, 1, 1, 2])
    >>> fit.predict_proba(p[:1]).round(3)
    array([[0.763, 0.202, 0.035]])
    """

    l2: float | None = parameter(None, or_none(check_not_negative))
    toward: Literal["temperature", "zero"] = parameter("temperature", one_of("temperature", "zero"))
    coef_: Floats = field(init=False)
    intercept_: Floats = field(init=False)

    @classmethod
    def paper(cls) -> Self:
        """Return the settings of Kelly & Smyth: λ = μ = 1e-3, towards zero."""
        return cls(l2=1e-3, toward="zero", eps=2.2e-308)

    def _learn(self, rows: CalibrationRows) -> None:
        k, n = rows.n_classes, rows.total()
        penalty = np.full((k, k + 1), SHRINKAGE * k * (k - 1) / n if self.l2 is None else self.l2)
        if self.l2 is None:
            penalty[:, -1] = SHRINKAGE * k / n
        logs, sharpness = self._logs(rows), 1.0
        start = target = _identity(k)
        free = np.ones(target.shape, bool)
        if self.toward == "zero":
            target, start = np.zeros_like(target), target - target[-1]
            free[-1] = False
        else:
            found, separated = fit_sharpness(logs, rows.y, rows.weight)
            sharpness = 1.0 if separated else max(found, LEAST_SHARPNESS)
        given = {"penalty": penalty, "target": target, "free": free, "start": start}
        theta, self.separated_ = fit_softmax(logs * sharpness, rows.y, rows.weight, **given)
        self.coef_, self.intercept_ = theta[:, :k] * sharpness, theta[:, k].copy()

    def _logits(self, logs: Step) -> Step:
        return steps.dot(logs, self.coef_.T) + constant(self.intercept_)

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        off = self.coef_ - np.diag(np.diag(self.coef_))
        words = (
            "The logit of each class is a sum of coefficients times ln(p) of all classes, plus an "
            f"intercept; the largest one off the diagonal is {np.abs(off).max():.3g} in size."
        )
        columns = {f"ln p({label})": self.coef_[:, k] for k, label in enumerate(self.classes_)}
        return words, self._table(**columns, intercept=self.intercept_)


def _identity(k: int) -> Floats:
    """Return W = 1 and b = 0."""
    return np.hstack([np.eye(k), np.zeros((k, 1))])


@dataclass(eq=False, repr=False, kw_only=True)
class ShiftCalibrator(Calibrator):
    r"""A shift of the logit: Platt scaling with the slope fixed to 1.

    .. math:: \mathrm{logit}\, q = \mathrm{logit}\, p + b

    by maximum likelihood, so that the mean of q is the rate of the outcome. It corrects a model
    that is too high or too low everywhere. With more than two classes each has its own shift,

    .. math:: q_k \propto p_k \exp(b_k), \qquad \textstyle\sum_k b_k = 0

    Scores of exactly 0 and 1 stay as they are and do not enter the fit; no other score becomes 0
    or 1. Where the likelihood has no maximum, because rows of a class are lacking, half an event
    is added to each class. The mean of q is then (events + ½) / (rows + K/2).

    Attributes
    ----------
    shift_ : float or ndarray of shape (K,)
        b; a number with two classes.

    References
    ----------
    E. W. Steyerberg (2019), Clinical Prediction Models, chapter 20: recalibration in the large.

    Examples
    --------
    >>> import numpy as np
    >>> p = np.array([0.1, 0.2, 0.4, 0.5])
    >>> fit = ShiftCalibrator().fit(p, [0, 1, 0, 1])
    >>> round(fit.shift_, 4)
    0.9857
    >>> fit.predict_proba([0.1, 0.5])[:, 1].round(3)
    array([0.229, 0.728])
    """

    shift_: float | Floats = field(init=False)
    _fits_one_class: ClassVar[bool] = True
    _without_rows: ClassVar[str] = "half an event is added to each class"

    def _learn(self, rows: CalibrationRows) -> None:
        p = rows.columns()
        if p.shape[1] == 2:  # the complement of a small score may be rounded to 1
            enters = (p[:, 1] > 0) & (p[:, 1] < 1)
        else:
            enters = (p.max(axis=1) < 1) & (p[np.arange(len(p)), rows.y] > 0)
        weight = np.ones(len(p)) if rows.weight is None else rows.weight
        shifts = _fit_shifts(p[enters], rows.y[enters], weight[enters])
        self.shift_ = shifts - shifts.mean()
        if len(shifts) == 2:
            self.shift_ = float(shifts[1] - shifts[0])

    def _steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        if isinstance(self.shift_, float):
            return _two_steps(scores[1], self.shift_)
        p = steps.join(scores)
        positive = steps.less(0.0, p)
        logits = (steps.log(clipped(p, LEAST, np.inf)) + constant(self.shift_)).named("logit")
        shifted = steps.exp(logits - steps.largest(logits))
        powers = where(positive, shifted, 0.0).named("power")
        inside = clipped(powers / steps.total(powers), LEAST, 1.0 - EPS)
        uncertain = where(positive, inside, 0.0)
        return steps.items(where(steps.less(steps.largest(p), 1.0), uncertain, p))

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        shifts = np.atleast_1d(self.shift_).tolist()
        labels = self.classes_[-len(shifts) :]
        table = [{"class": str(k), "shift": b} for k, b in zip(labels, shifts, strict=True)]
        if len(shifts) > 1:
            return "The logit of every class is ln(p) + shift.", table
        words = f"logit(q) = logit(p) + shift: the odds of {labels[0]} are multiplied by"
        return f"{words} {np.exp(shifts[0]):.4g}.", table


def _two_steps(p: Step, shift: float) -> tuple[Step, Step]:
    """Return the steps to the probabilities of "no" and "yes"."""
    inside = clipped(p, LEAST, 1.0 - EPS / 2).named("inside")
    logit = steps.log(inside / (1.0 - inside)) + shift
    no, yes = steps.logistic(clipped(logit, LOWEST_LOGIT, HIGHEST_LOGIT))
    low, high = equal(p, 0.0), equal(p, 1.0)
    return where(low, 1.0, where(high, 0.0, no)), where(low, 0.0, where(high, 1.0, yes))


def _fit_shifts(p: Floats, y: Ints, weight: Floats) -> Floats:
    """Maximize the likelihood; the shift of the most frequent class is 0."""
    n, k = p.shape
    if not n:
        return np.zeros(k)
    targets = np.zeros((n, k))
    targets[np.arange(n), y] = weight.sum()
    free = np.zeros((k, k + 1), bool)
    free[:, -1] = np.arange(k) != (weight @ targets).argmax()
    if not _has_maximum(p > 0, y):  # half an event of each class is shared by all rows
        targets += 0.5 * (p > 0)
    targets /= targets.sum(axis=1, keepdims=True)
    logs = np.log(np.maximum(p, LEAST))
    none = np.zeros((k, k + 1))
    theta, _ = fit_softmax(logs, targets, weight, penalty=none, target=_identity(k), free=free)
    return np.asarray(theta[:, -1])


def _has_maximum(available: Bools, y: Ints) -> bool:
    """Tell whether no group of classes can be shifted for ever without a surprise.

    That is so if any class can be reached from any other by steps from one that was possible in
    a row to the one that happened (Ford 1957).
    """
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415  only a fit needs it

    beaten = np.array([available[y == k].any(axis=0) for k in range(available.shape[1])])
    known = available.any(axis=0)
    return bool(connected_components(beaten[np.ix_(known, known)], connection="strong")[0] == 1)
