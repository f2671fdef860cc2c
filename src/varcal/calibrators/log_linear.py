"""Temperature scaling, vector scaling and Dirichlet calibration: logits W · ln p + b."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal, Self

import numpy as np

from varcal._arrays import Floats, Ints
from varcal._options import check_eps, check_not_negative, one_of, or_none
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.softmax import fit_softmax, softmax
from varcal.calibrators.steps import Step, clipped, constant, dot, items, join, log
from varcal.calibrators.steps import softmax as softmax_steps
from varcal.exceptions import VarcalWarning

#: The range of 1/T, and the slope of the mean log-loss at which the search ends.
LOWEST, HIGHEST, SLOPE = 1e-6, 1e6, 1e-13
#: The least 1/T that `DirichletCalibrator` is shrunk to.
LEAST_SHARPNESS = 1e-3
#: The share of (rows)⁻¹ per entry by which `DirichletCalibrator` shrinks; 1 was worse by
#: .7 ± .4 × 10⁻³ in log-loss on models that it was not chosen on.
SHRINKAGE = 0.25


class _LogLinearCalibrator(Calibrator):
    floor_: float
    eps: float | None

    def _logs(self, rows: CalibrationRows) -> Floats:
        """Set the floor and return ln p, one column per class."""
        self.floor_ = rows.floor() if self.eps is None else float(self.eps)
        return np.log(np.maximum(rows.columns(), self.floor_))

    def _steps(self, scores: tuple[Step, ...]) -> tuple[Step, ...]:
        logs = log(clipped(join(scores), self.floor_, np.inf)).named("log_p")
        return items(softmax_steps(self._logits(logs).named("logit")))

    def _logits(self, logs: Step) -> Step:
        raise NotImplementedError


class TemperatureCalibrator(_LogLinearCalibrator):
    r"""Temperature scaling: all log-probabilities divided by one number.

    .. math:: q_k \propto p_k^{1/T}

    T minimizes the log-loss; above 1 it lowers confidence. The order of the classes within a row
    never changes, so accuracy stays exactly the same. Any number of classes.

    Parameters
    ----------
    eps : float, optional
        The least p before taking the logarithm; None means the floor of all calibrators by score,
        min(½ · smallest positive p, 1 / 2n).

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

    _state = ("temperature_", "floor_")
    temperature_: float
    _parameters: ClassVar = {"eps": or_none(check_eps)}

    def __init__(self, *, eps: float | None = None) -> None:
        self.eps = eps

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
        min(½ · smallest positive p, 1 / 2n).

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

    _state = ("factors_", "shifts_", "floor_")
    factors_: Floats
    shifts_: Floats
    _parameters: ClassVar = {"l2": check_not_negative, "eps": or_none(check_eps)}

    def __init__(self, *, l2: float = 1e-4, eps: float | None = None) -> None:
        self.l2 = l2
        self.eps = eps

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
        table = [
            {"class": str(label), "factor": float(factor), "shift": float(shift)}
            for label, factor, shift in zip(self.classes_, self.factors_, self.shifts_, strict=True)
        ]
        return "The logit of every class is factor · ln(p) + shift.", table


class DirichletCalibrator(_LogLinearCalibrator):
    r"""Dirichlet calibration: a full linear map of the log-probabilities.

    .. math:: q \propto \exp(W \ln p + b), \qquad
              \min_{W, b}\ \text{mean log-loss} + \lambda \|W - W_0\|^2 + \mu \|b\|^2

    Any number of classes; K² + K parameters.

    Parameters
    ----------
    l2 : float, optional
        λ; None means ¼ K (K − 1) / n.
    l2_intercept : float, optional
        μ; None means λ, or where that is not given either ¼ K / n.
    penalty : {"all", "off_diagonal"}
        Whether λ applies to all of W or only off its diagonal (ODIR).
    toward : {"temperature", "identity", "zero"}
        W₀: temperature scaling, that is the identity for log-probabilities that were divided by
        the best T first; the identity, so that few rows change little; or zero, as first
        published, so that few rows give flat probabilities. With zero, the last rows of W and b
        are fixed at 0.
    eps : float, optional
        The least p before taking the logarithm; None means the floor of all calibrators by score,
        min(½ · smallest positive p, 1 / 2n).

    Attributes
    ----------
    coef_ : ndarray of shape (K, K)
        W.
    intercept_ : ndarray of shape (K,)
        b.

    Notes
    -----
    ODIR here and in the package dirichletcal are different penalties. dirichletcal first subtracts
    the last row of W from all others, and then leaves out the diagonal of these differences: the
    entries W_iK − W_KK are penalized, which are −1 where nothing is changed, so that its result
    depends on which class is the last one. Here the penalty is that of the paper, on W itself.

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

    _state = ("coef_", "intercept_", "floor_")
    coef_: Floats
    intercept_: Floats
    _parameters: ClassVar = {
        "l2": or_none(check_not_negative),
        "l2_intercept": or_none(check_not_negative),
        "penalty": one_of("all", "off_diagonal"),
        "toward": one_of("temperature", "identity", "zero"),
        "eps": or_none(check_eps),
    }

    def __init__(
        self,
        *,
        l2: float | None = None,
        l2_intercept: float | None = None,
        penalty: Literal["all", "off_diagonal"] = "all",
        toward: Literal["temperature", "identity", "zero"] = "temperature",
        eps: float | None = None,
    ) -> None:
        self.l2 = l2
        self.l2_intercept = l2_intercept
        self.penalty = penalty
        self.toward = toward
        self.eps = eps

    @classmethod
    def paper(cls) -> Self:
        """Return the settings of Kelly & Smyth: λ = μ = 1e-3, towards zero."""
        return cls(l2=1e-3, toward="zero", eps=2.2e-308)

    def _learn(self, rows: CalibrationRows) -> None:
        k, n = rows.n_classes, rows.total()
        identity = _identity(k)
        penalty = np.full((k, k + 1), SHRINKAGE * k * (k - 1) / n if self.l2 is None else self.l2)
        if self.penalty == "off_diagonal":
            np.fill_diagonal(penalty, 0.0)
        if self.l2_intercept is not None or self.l2 is None:
            own = SHRINKAGE * k / n if self.l2_intercept is None else self.l2_intercept
            penalty[:, -1] = own
        logs, sharpness = self._logs(rows), 1.0
        if self.toward == "temperature":
            found, separated = fit_sharpness(logs, rows.y, rows.weight)
            sharpness = 1.0 if separated else max(found, LEAST_SHARPNESS)
        target, start, free = identity, identity, np.ones(identity.shape, bool)
        if self.toward == "zero":
            target, start = np.zeros_like(identity), identity - identity[-1]
            free[-1] = False
        theta, self.separated_ = fit_softmax(
            logs * sharpness,
            rows.y,
            rows.weight,
            penalty=penalty,
            target=target,
            free=free,
            start=start,
        )
        self.coef_, self.intercept_ = theta[:, :k] * sharpness, theta[:, k].copy()

    def _logits(self, logs: Step) -> Step:
        return dot(logs, self.coef_.T) + constant(self.intercept_)

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        off = self.coef_ - np.diag(np.diag(self.coef_))
        words = (
            "The logit of each class is a sum of coefficients times ln(p) of all classes, plus an "
            f"intercept; the largest one off the diagonal is {np.abs(off).max():.3g} in size."
        )
        table = [
            {"class": str(label)}
            | {f"ln p({other})": float(w) for other, w in zip(self.classes_, row, strict=True)}
            | {"intercept": float(shift)}
            for label, row, shift in zip(self.classes_, self.coef_, self.intercept_, strict=True)
        ]
        return words, table


def _identity(k: int) -> Floats:
    """Return W = 1 and b = 0."""
    return np.hstack([np.eye(k), np.zeros((k, 1))])
