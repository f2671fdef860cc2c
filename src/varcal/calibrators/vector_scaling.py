"""Vector scaling: a factor and a shift for each class."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from varcal._arrays import Floats
from varcal._options import EPS, check_eps, check_not_negative
from varcal.calibrators.calibrator import Calibrator
from varcal.calibrators.rows import CalibrationRows
from varcal.calibrators.softmax import blocks, fit_softmax, softmax
from varcal.calibrators.steps import Step, clipped, constant, join, log
from varcal.calibrators.steps import softmax as softmax_steps


class VectorScalingCalibrator(Calibrator):
    r"""Vector scaling: a factor and a shift for each class.

    .. math:: q_k \propto \exp(w_k \ln p_k + b_k)

    which minimizes the mean log-loss :math:`+ \lambda \sum_k [(w_k - 1)^2 + b_k^2]`, so that
    few rows change little. Any number of classes.

    Parameters
    ----------
    l2 : float
        λ.
    eps : float
        The least p before taking the logarithm.

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

    _state = ("factors_", "shifts_")
    _parameters: ClassVar = {"l2": check_not_negative, "eps": check_eps}

    def __init__(self, *, l2: float = 1e-4, eps: float = EPS) -> None:
        self.l2 = l2
        self.eps = eps

    def _learn(self, rows: CalibrationRows) -> None:
        k = rows.n_classes
        identity = np.append(np.ones(k), np.zeros(k))
        fit = fit_softmax(
            _Diagonal(np.log(np.maximum(rows.columns(), self.eps))),
            rows.y,
            rows.weight,
            k,
            penalty=np.full(2 * k, float(self.l2)),
            target=identity,
            start=identity,
        )
        self.factors_, self.shifts_ = fit.theta[:k].copy(), fit.theta[k:].copy()
        self.separated_ = fit.separated

    def _answer(self, rows: CalibrationRows) -> Floats:
        answer = np.empty((len(rows), rows.n_classes))
        for part in blocks(len(rows), rows.n_classes):
            logs = np.log(np.maximum(rows.block(part).columns(), self.eps))
            answer[part] = softmax(logs * self.factors_ + self.shifts_)
        return answer

    def _steps(self, scores: tuple[Step, ...], *, exact: bool = True) -> tuple[Step, ...]:
        logs = log(clipped(join(scores), self.eps, np.inf))
        logits = logs * constant(self.factors_) + constant(self.shifts_)
        q = softmax_steps(logits.named("logit"))
        return tuple(q.item(k) for k in range(q.width))

    def _describe(self) -> tuple[str, list[dict[str, Any]]]:
        table = [
            {"class": str(label), "factor": float(factor), "shift": float(shift)}
            for label, factor, shift in zip(self.classes_, self.factors_, self.shifts_, strict=True)
        ]
        return "The logit of every class is factor · ln(p) + shift.", table


class _Diagonal:
    """Logits w_k · x_k + b_k."""

    def __init__(self, logs: Floats) -> None:
        self.logs = logs
        self.n_parameters = 2 * logs.shape[1]

    def logits(self, theta: Floats, rows: slice) -> Floats:
        k = self.logs.shape[1]
        return self.logs[rows] * theta[:k] + theta[k:]

    def adjoint(self, cells: Floats, rows: slice) -> Floats:
        return np.append(np.einsum("ij,ij->j", cells, self.logs[rows]), cells.sum(axis=0))

    def squares(self, cells: Floats, rows: slice) -> Floats:
        logs = self.logs[rows]
        return np.append(np.einsum("ij,ij,ij->j", cells, logs, logs), cells.sum(axis=0))

    def hessian(self, probability: Floats, weight: Floats, rows: slice) -> Floats:
        k = self.logs.shape[1]
        logs = self.logs[rows]
        rooted = probability * np.sqrt(weight)[:, None]
        wide = np.hstack([rooted * logs, rooted])
        hessian = -(wide.T @ wide)
        cells = probability * weight[:, None]
        index = np.arange(k)
        hessian[index, index] += np.einsum("ij,ij,ij->j", cells, logs, logs)
        hessian[index + k, index + k] += cells.sum(axis=0)
        cross = np.einsum("ij,ij->j", cells, logs)
        hessian[index, index + k] += cross
        hessian[index + k, index] += cross
        return hessian
